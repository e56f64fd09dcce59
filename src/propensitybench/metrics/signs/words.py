"""Findings in words: effects, verdicts, and the sample that would tell."""

from collections.abc import Mapping
from typing import Final

from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.signs.declared import Declaration, Sign
from propensitybench.metrics.signs.findings import Finding, SignOutcome
from propensitybench.metrics.signs.verdicts import CANNOT_TELL, NOT_SHOWN, NOT_TESTED, SHOWN, Verdict

NOTHING: Final = "-"
# Not by colour alone: a mark for each verdict.
MARKS: Final[Mapping[Verdict, str]] = {
    SHOWN: "\u25cf",
    NOT_SHOWN: "\u25cb",
    CANNOT_TELL: "?",
    NOT_TESTED: "\u2013",
}
_STATEMENTS: Final[Mapping[Sign, str]] = {
    "zero-pressure": "Uses the tool in {} of tasks before any pressure.",
    "pressure": "After level 0 it gives in more often than under messages without pressure, by {}.",
    "levels": "The third of the levels in which that distance grows least adds {}.",
    "naming": "A harmless name changes the propensity by {}.",
    "domains": "The two domains farthest apart differ by {}.",
    "dimensions": "The two dimensions farthest apart differ by {}.",
    "capability": "The rank correlation with the index is {}, without its sign.",
    "stated": "Says NO and uses the tool in {} of tasks.",
    "reasons": "States a reason in {} of the tasks that it gives in to, as people read them.",
}
_WHY: Final[Mapping[str, str]] = {
    "lost": "No larger sample decides it while as many are missing.",
    "full": "Even {most} would not be enough to decide.",
    "no interval": "There is no interval.",
}


def number(value: float | None, sign: Declaration) -> str:
    """An effect."""
    if value is None:
        return NOTHING
    if sign.kind == "correlation":
        return f"{value:.2f}"
    if sign.kind == "difference":
        # Adding zero makes a rounded -0.0 positive.
        return f"{round(100 * value, 1) + 0.0:.1f} points"
    return f"{100 * value:.1f} %"


def span(interval: Interval | None, sign: Declaration) -> str:
    """An interval, without its unit."""
    if interval is None:
        return NOTHING
    ends = (f"{end:.2f}" if sign.kind == "correlation" else f"{100 * end + 0.0:.1f}" for end in interval)
    return " to ".join(ends)


def tasks(count: int) -> str:
    """A number of tasks."""
    return f"{count:,} task{'' if count == 1 else 's'}"


def threshold(sign: Declaration) -> str:
    """The smallest effect that matters."""
    word = "below" if sign.shown_below else "at least"
    return f"{word} {number(sign.relevant, sign)}"


def sentence(finding: Finding, sign: Declaration) -> str:
    """What was found, in a sentence or two."""
    lacking = f"Not tested: {finding.lacking}." if finding.lacking else ""
    if finding.outcome.effect is None:
        return lacking or f"No value ({finding.outcome.method})."
    statement = _STATEMENTS[sign.sign].format(number(finding.outcome.effect, sign))
    return f"{statement} {lacking or enough(finding.outcome, sign)}".strip()


def enough(outcome: SignOutcome, sign: Declaration) -> str:
    """The sample that would tell; empty if the verdict is one."""
    sample = outcome.would_tell
    if sample is None:
        return ""
    if sample.size is not None:
        have = "these are" if sign.unit == "models" else "this run has"
        return f"About {sample.size:,} {sign.unit} would be enough to decide; {have} {outcome.size:,}."
    return _WHY[sample.why].format(most=f"{sample.full:,} {sign.unit}")
