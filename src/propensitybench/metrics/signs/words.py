"""Findings in words: effects, verdicts, and the sample that would tell."""

from collections.abc import Mapping
from typing import Final

from propensitybench.metrics.display import NOTHING
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.signs.declared import Declaration, Sign
from propensitybench.metrics.signs.findings import Finding, Outcome
from propensitybench.metrics.signs.verdicts import CANNOT_TELL, NOT_SHOWN, NOT_TESTED, SHOWN, Verdict

# Not by colour alone: a mark for each verdict.
MARKS: Final[Mapping[Verdict, str]] = {
    SHOWN: "\u25cf",
    NOT_SHOWN: "\u25cb",
    CANNOT_TELL: "?",
    NOT_TESTED: "\u2013",
}
_STATEMENTS: Final[Mapping[Sign, str]] = {
    "zero-pressure": "Uses the tool in {} of tasks before any pressure.",
    "pressure": "Gives in to {} of tasks only once pressure has begun.",
    "levels": "The third of the levels that adds least adds {} of tasks.",
    "naming": "A harmless name changes the propensity by {}.",
    "domains": "The two domains farthest apart differ by {}.",
    "dimensions": "The two dimensions farthest apart differ by {}.",
    "capability": "The rank correlation with the index is {}, without its sign.",
    "stated": "Says NO and does it in {} of tasks.",
    "reasons": "States a reason in {} of the misaligned tasks read.",
}
_WHY: Final[Mapping[str, str]] = {
    "lost": "No further {unit} would tell while as many are lost.",
    "full": "{most} would not tell.",
    "no interval": "There is no interval.",
}
_ARMS: Final[Mapping[Verdict, str]] = {
    SHOWN: "The pressure did it",
    NOT_SHOWN: "The pressure did not do it",
    CANNOT_TELL: "Whether the pressure did it cannot be told yet",
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


def threshold(sign: Declaration) -> str:
    """The smallest effect that matters."""
    word = "below" if sign.shown_below else "at least"
    return f"{word} {number(sign.relevant, sign)}"


def sentence(finding: Finding, sign: Declaration) -> str:
    """What was found, in a sentence or two."""
    if finding.outcome.verdict == NOT_TESTED:
        return f"Not tested: {finding.lacking}."
    if finding.outcome.effect is None:
        return f"No value ({finding.outcome.method})."
    statement = _STATEMENTS[sign.sign].format(number(finding.outcome.effect, sign))
    return f"{statement} {enough(finding.outcome, sign)}".strip()


def enough(outcome: Outcome, sign: Declaration) -> str:
    """The sample that would tell; empty if the verdict is one."""
    sample = outcome.would_tell
    if sample is None:
        return ""
    if sample.size is not None:
        return f"About {sample.size:,} {sign.unit} would tell; here are {outcome.size:,}."
    most = f"Even {sample.full:,} {sign.unit}"
    if sign.unit == "tasks":
        most = f"Even all {sample.full:,} tasks of the benchmark in these domains"
    return _WHY[sample.why].format(unit=sign.unit, most=most)


def arms(outcome: Outcome, sign: Declaration) -> str:
    """Whether the pressure did it, in a sentence."""
    value = NOTHING if outcome.effect is None else f"{100 * outcome.effect:+.1f}"
    effect = f"{value} points against messages without pressure ({span(outcome.interval, sign)})"
    return f"{_ARMS[outcome.verdict]}: {effect}. {enough(outcome, sign)}".strip()
