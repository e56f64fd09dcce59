"""Findings in words, for the terminal, the page and the figures."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, log10
from typing import Final, NamedTuple

from propensitybench.metrics.intervals import Interval
from propensitybench.presentation.formats import NOTHING, counted
from propensitybench.signs.decide import CANNOT_TELL, NOT_SHOWN, NOT_TESTED, SHOWN, SignVerdict
from propensitybench.signs.find import Finding, ModelFindings
from propensitybench.signs.nine import Sign

ADJUSTED: Final = (
    "Verdicts of one model are adjusted together (Holm, 5 %). Intervals are for new scenarios and cover "
    "every value that lost tasks allow."
)
LIMITS: Final = (
    "Simulated workplaces, proxy tools, and an aligned tool that always fails: a sign is a fact about the "
    "model in these, not a forecast of what it would do elsewhere.",
    "Signs 2 and 3 compare with the placebo arm; the others are observational: they say that, not why.",
    "Not shown is not safe: the effect is smaller than the smallest effect of interest.",
)
LEGEND: Final = """\
shown: the interval lies beyond the smallest effect of interest; not shown: wholly below it; cannot tell yet:
neither. Intervals are adjusted by Holm over the signs of a model at 5 %, and cover every value that lost
tasks allow. Simulated workplaces; see docs/findings.md."""
MATRIX: Final = (
    "This table corrects for testing all models at once; the sections below correct within one model. "
    "Sign 7 is one test over all models."
)
# Not by colour alone: a mark for each verdict.
MARKS: Final[Mapping[SignVerdict, str]] = {
    SHOWN: "\u25cf",
    NOT_SHOWN: "\u25cb",
    CANNOT_TELL: "?",
    NOT_TESTED: "\u2013",
}
SMALLEST: Final = "Smallest effect of interest"


class SignRow(NamedTuple):
    """One sign of one model in words.

    Attributes:
        number, sign, title: of the sign.
        verdict: what was decided.
        effect: with its unit; "-" if there is none.
        interval: without a unit; "-" if there is none.
        threshold: the smallest effect of interest.
        remark: why it was not tested, or how many tasks would be enough, and a further fact; may be empty.
        sentence: what was found, with the remark.
        details: names and texts of what opens below it.
        hint: the command that supplies what is missing; may be empty.
    """

    number: int
    sign: str
    title: str
    verdict: SignVerdict
    effect: str
    interval: str
    threshold: str
    remark: str
    sentence: str
    details: Sequence[tuple[str, str]]
    hint: str


def sign_row(sign: Sign, finding: Finding) -> SignRow:
    """A finding in words."""
    statement = "" if finding.effect is None else sign.statement.format(effect_text(finding.effect, sign))
    if finding.effect is None and not finding.missing:
        statement = f"No value ({finding.method})."
    missing = f"Not tested: {finding.missing}." if finding.missing else ""
    remark = _joined(missing or enough(finding, sign), finding.fact)
    return SignRow(
        sign.number,
        sign.sign,
        sign.title,
        finding.verdict,
        effect_text(finding.effect, sign),
        interval_text(finding.interval, sign),
        threshold(sign),
        remark,
        _joined(statement, remark),
        list(_details(sign, finding)),
        finding.hint,
    )


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _details(sign: Sign, finding: Finding) -> Iterator[tuple[str, str]]:
    yield "Question", sign.question
    yield "Effect", sign.estimand
    changed = ""
    if sign.changed_from is not None:
        changed = f" (changed by the user; declared as {effect_text(sign.changed_from, sign)})"
    yield SMALLEST, threshold(sign) + changed
    yield "Method", sign.method
    if not finding.size:
        return
    if finding.interval is not None and finding.confidence is not None:
        level = f"at {100 * finding.confidence:.2f} %"
        yield "Interval", f"{interval_text(finding.interval, sign)}, {level} ({finding.method})"
    else:
        yield "Interval", finding.method
    yield "Sample", f"{finding.size:,} {sign.unit}"
    if finding.bounds is not None and finding.bounds.low < finding.bounds.high:
        yield "Lost tasks allow", interval_text(finding.bounds, sign)
    if finding.over_models is not None:
        yield "With all models as one family", finding.over_models


def effect_text(value: float | None, sign: Sign) -> str:
    """An effect with its unit."""
    if value is None:
        return NOTHING
    if sign.kind == "correlation":
        return f"{value:.2f}"
    if sign.kind == "difference":
        # Adding zero makes a rounded -0.0 positive.
        return f"{round(100 * value, 1) + 0.0:.1f} points"
    return f"{100 * value:.1f} %"


def interval_text(interval: Interval | None, sign: Sign) -> str:
    """An interval, without its unit."""
    if interval is None:
        return NOTHING
    ends = (f"{end:.2f}" if sign.kind == "correlation" else f"{100 * end + 0.0:.1f}" for end in interval)
    return " to ".join(ends)


def threshold(sign: Sign) -> str:
    """The smallest effect of interest."""
    return ("below " if sign.kind == "correlation" else "") + effect_text(sign.relevant, sign)


def enough(finding: Finding, sign: Sign) -> str:
    """The sample that would be enough; empty if there is a verdict."""
    required = finding.required
    if required is None:
        return ""
    if required.why == "lost":
        return "No larger sample would decide while as many tasks are lost."
    if required.why == "no interval":
        return "No interval can be computed from these tasks."
    if required.size is None:
        return f"Even {required.full:,} {sign.unit} would probably not be enough to decide."
    size = _rounded_up(required.size)
    return f"About {size:,} {sign.unit} would be enough to decide; this run has {finding.size:,}."


def _rounded_up(count: int) -> int:
    """To two significant digits."""
    unit = int(10 ** max(0, int(log10(count)) - 1))
    return ceil(count / unit) * unit


def model_facts(model: ModelFindings) -> str:
    """What a model's findings rest on, as a line below its name."""
    messages = counted(model.levels, "pressure message")
    facts = [f"{counted(model.tasks, 'task')} under {model.naming} names, {messages}"]
    facts += [f"{model.lost:,} lost"] if model.lost else []
    facts += [f"preliminary: {counted(model.unended, 'task')} not ended"] if model.unended else []
    facts += [f"placebo arm: {model.placebo}"] if model.placebo else []
    return f"{model.file}: {'; '.join(facts)}."
