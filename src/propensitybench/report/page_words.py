"""Sentences of the page: the answer in plain words, with what must be said beside it."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from propensitybench.metrics import NamingScores
from propensitybench.metrics.missing import Headline
from propensitybench.metrics.table import Part
from propensitybench.report.document import Document, Provenance
from propensitybench.report.page_numbers import pointer
from propensitybench.taxonomy import Naming

NAMING_WORDS: Final[dict[Naming, str]] = {
    "harmful": "its name shows the harm",
    "benign": "its name sounds harmless",
}
PLURALS: Final[dict[Part, str]] = {
    "domain": "domains",
    "workspace": "workspaces",
    "role": "roles",
    "capability": "capabilities",
    "dimension": "dimensions",
}
HEADLINES: Final[dict[Headline, str]] = {
    "complete case": "finished tasks",
    "interval": "bounds",
    "none": "nothing",
}
SCORE_NAMES: Final = {
    "propensity_zero": "propensity before pressure",
    "propensity_competent": "propensity where able",
    "withstood": "levels withstood, finished tasks",
    "competent": "able",
}


class Side(NamedTuple):
    """One run under one naming: the unit of most tables and charts.

    Attributes:
        place: of the run in the report.
        label: of the run.
        path: where its scores stand in the report's data.
    """

    place: int
    label: str
    naming: Naming
    path: str
    scores: NamingScores


def sides(report: Document) -> list[Side]:
    """Every run under every naming that it was played under."""
    return [
        Side(place, made.label, naming, pointer("analysis", "runs", place, "scores", "naming", naming), found)
        for place, (run, made) in enumerate(zip(report.analysis.runs, report.runs, strict=True))
        for naming, found in run.scores.naming.items()
    ]


def by_part(found: Sequence[Side], part: Part) -> list[tuple[str, Side]]:
    """Every name of a part with every side that has it, the sides of one name together."""
    names = sorted({name for side in found for name in side.scores.parts[part]})
    return [(name, side) for name in names for side in found if name in side.scores.parts[part]]


def shared_caveats(report: Document) -> list[tuple[str, str]]:
    """What must be said beside the answer, and of which runs; nobody is named where it holds of all."""
    whose: dict[str, list[str]] = {}
    for made in report.runs:
        for caveat in made.caveats:
            whose.setdefault(caveat, []).append(made.label)
    return [
        (caveat, "" if len(metadata) == len(report.runs) else ", ".join(metadata))
        for caveat, metadata in whose.items()
    ]


def score_name(name: str) -> str:
    """What the page calls a score."""
    return SCORE_NAMES.get(name, name.replace("_", " "))


def facts(made: Provenance) -> Iterator[tuple[str, str]]:
    """How a run was made, as names and values."""
    protocol = made.protocol
    yield "model", made.model
    yield "options", _pairs(made.options) or "none set: left to the provider"
    yield "answered by", ", ".join(f"{name} ({count:,} replies)" for name, count in made.answered_by.items())
    yield "run file", made.file
    yield "made", f"{made.created} by propensitybench {made.package}, rules of play {made.rules}"
    yield "data", f"{made.data}, {made.scenarios} scenarios, {made.data_digest}"
    yield "tasks", f"{made.tasks:,} planned; {made.stopping}"
    yield "sampling", made.sampling
    yield "epochs, seed", f"{made.selection.epochs}, {made.seed}"
    yield (
        "protocol",
        f"{protocol.levels} pressure messages, {protocol.turns_per_level} turns a level, "
        f"{protocol.messages_in_a_row} messages in a row, {protocol.calls_per_tool} calls of a tool a level, "
        f"of several calls in one reply: {protocol.parallel_calls}",
    )
    yield "system message", made.template
    usage = made.usage
    yield (
        "tokens",
        f"{usage.input:,} in ({usage.cached:,} cached), {usage.output:,} out "
        f"({usage.reasoning:,} reasoning), {made.replies:,} replies",
    )
    yield "cost", f"{'unknown' if made.usd is None else f'${made.usd:,.2f}'} ({made.price})"


def _pairs(options: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.items())


def doubts(scores: NamingScores) -> Sequence[str]:
    """What a reader has to know of the scored tasks, in words; empty where there is nothing."""
    counts = {
        "scored although the provider kept back some reply": scores.partly_blocked,
        "scored although another model answered than the one asked for": scores.other_model,
        "prohibited calls that did not count, because another call of the same reply came first": (
            scores.ignored_misaligned_calls
        ),
    }
    return [f"{count:,} {what}" for what, count in counts.items() if count]
