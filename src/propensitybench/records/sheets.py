"""Records that are texts: a reporting checklist, a model card, BibTeX."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, Literal, NamedTuple

import jinja2

from propensitybench.metrics import NamingScores
from propensitybench.presentation import formats
from propensitybench.presentation.words import LIMITATIONS, STANDARD_ERRORS
from propensitybench.records.escapes import Escaped, code, escaper, markdown, tex, yaml
from propensitybench.records.facts import RunFacts
from propensitybench.records.measures import MeasuredValue

Sheet = Literal["checklist", "model-card", "bibtex"]
TEMPLATES: Final[Mapping[Sheet, str]] = {
    "checklist": "checklist.md",
    "model-card": "model-card.md",
    "bibtex": "citation.bib",
}
ASKED: Final = "TODO (author)"


class Text(NamedTuple):
    """A record as text, and the number of places in it that a person has to fill in."""

    text: str
    asked: int


def sheet(kind: Sheet, runs: Sequence[RunFacts]) -> Text:
    """A record as text, with the number of places that a person has to fill in at its top.

    Args:
        kind: which record.
        runs: one run; for BibTeX any number.
    """
    template = _environment(kind).get_template(TEMPLATES[kind])
    asked = 0
    for _ in range(2):  # the number at the top is known only at the end
        questions = _Questions()
        text = template.render(
            runs=runs,
            only=runs[0],
            person=questions.ask,
            asked=asked,
            mark=ASKED,
            cell=cell,
            where=where,
            headline=headline,
            code=code,
            yaml=yaml,
            limitations=LIMITATIONS,
            errors=STANDARD_ERRORS,
            lists=runs[0].run.lists,
            written=Escaped,
        )
        asked = questions.count
    return Text(re.sub(r"\n{3,}", "\n\n", text).strip() + "\n", asked)


def cell(
    one: MeasuredValue, part: Literal["value", "interval", "same tasks", "new scenarios", "bounds"]
) -> str:
    """A part of a measure for a table: proportions in percent, differences in percentage points."""
    estimate, errors = one.estimate, one.estimate.errors
    plain = formats.number if one.measure.unit == "levels" else formats.percent
    write = formats.points if one.naming is None else plain
    match part:
        case "value":
            return write(estimate.value)
        case "same tasks":
            return plain(errors.benchmark)
        case "new scenarios":
            return plain(errors.scenario)
        case _:
            interval = estimate.ci95 if part == "interval" else estimate.bounds
            return formats.NOTHING if interval is None else f"{write(interval.low)} to {write(interval.high)}"


def where(one: MeasuredValue) -> str:
    """Naming and domain of a measure, in words."""
    naming = f"{one.naming} names" if one.naming else "benign minus harmful names"
    return f"{naming}, {one.domain}" if one.domain else naming


def headline(scores: NamingScores) -> dict[str, str]:
    """Propensity under one naming with its interval, that before any pressure, and competence, in words."""
    interval, missing = scores.ci95, "a share that cannot be computed"

    def words(share: float | None) -> str:
        return missing if share is None else f"{formats.percent(share)} %"

    return {
        "share": words(scores.propensity),
        "interval": f"95 % interval {formats.span(interval)} %" if interval else "no interval",
        "zero": words(scores.propensity_zero),
        "competent": words(scores.competent),
    }


class _Questions:
    """Marks the places that a person has to fill in, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def ask(self, what: str) -> Escaped:
        self.count += 1
        return Escaped(f"[{ASKED}: {what}]")


@cache
def _environment(kind: Sheet) -> jinja2.Environment:
    escape = tex if kind == "bibtex" else markdown
    return jinja2.Environment(
        loader=jinja2.PackageLoader("propensitybench.records", "templates"),
        undefined=jinja2.StrictUndefined,
        finalize=escaper(escape),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # `finalize` escapes, for Markdown or BibTeX
    )
