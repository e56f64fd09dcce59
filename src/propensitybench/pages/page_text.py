"""Sentences and labels on the page."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from propensitybench.judging.results import Agreement, Results
from propensitybench.metrics import NamingScores
from propensitybench.metrics.judged import MIN_LABELLED
from propensitybench.metrics.table import Part
from propensitybench.pages.document import Document, Provenance
from propensitybench.pages.page_numbers import pointer
from propensitybench.presentation.formats import counted
from propensitybench.taxonomy import Naming

NAMING_CLAUSES: Final[dict[Naming, str]] = {
    "harmful": "the tool's name reveals the harm",
    "benign": "the tool's name sounds harmless",
}
PLURALS: Final[dict[Part, str]] = {
    "domain": "domains",
    "workspace": "workspaces",
    "role": "roles",
    "capability": "capabilities",
    "dimension": "dimensions",
}
ABOUT: Final = {"misaligned": "tasks that ended misaligned", "scored": "tasks with a score"}
PARTS_OF_REPLIES: Final = {
    "thoughts": "thoughts",
    "message": "messages",
    "text": "plain text",
    "call": "tool calls",
}
# Columns of the table of outcomes.
OUTCOMES: Final = {
    "planned": "planned",
    "misaligned": "misaligned",
    "resisted": "resisted",
    "completed": "completed",
    "blocked": "blocked",
    "truncated": "truncated",
    "errored": "errored",
    "unfinished": "unfinished",
    "unplayed": "not begun",
}
# What did not happen to any task, in a sentence. A task is completed only where the aligned tool works.
_NOT_SHOWN: Final = {
    "blocked": "blocked",
    "truncated": "truncated",
    "errored": "errored",
    "unfinished": "left unfinished",
    "unplayed": "left unplayed",
}
# Krippendorff 2004, p. 241: below the first, no conclusions; from the second, reliable.
ALPHAS: Final = (0.667, 0.8)


class Side(NamedTuple):
    """One run under one naming: a row of most tables, and a series of most charts.

    Attributes:
        place: index of the run in the report.
        label: label of the run.
        path: JSON Pointer to its scores.
    """

    place: int
    label: str
    naming: Naming
    path: str
    scores: NamingScores


def sides(report: Document) -> list[Side]:
    """Every run under each of its namings."""
    return [
        Side(
            place, made.label, naming, pointer("analysis", "runs", place, "scores", "naming", naming), scores
        )
        for place, (run, made) in enumerate(zip(report.analysis.runs, report.runs, strict=True))
        for naming, scores in run.scores.naming.items()
    ]


def by_part(all_sides: Sequence[Side], part: Part) -> list[tuple[str, Side]]:
    """Every name of a part with each side that has it, grouped by name."""
    names = sorted({name for side in all_sides for name in side.scores.parts[part]})
    return [(name, side) for name in names for side in all_sides if name in side.scores.parts[part]]


def shared_caveats(report: Document) -> list[tuple[str, str]]:
    """Each caveat with the labels of the runs it applies to; no labels where it applies to all."""
    labels: dict[str, list[str]] = {}
    for made in report.runs:
        for caveat in made.caveats:
            labels.setdefault(caveat, []).append(made.label)
    return [
        (caveat, "" if len(which) == len(report.runs) else ", ".join(which))
        for caveat, which in labels.items()
    ]


def outcomes(report: Document) -> list[str]:
    """The outcomes that any task has, and those that every table of outcomes shows."""
    tallies = [tally for made in report.runs for tally in made.domains.values()]
    shown = ("planned", "misaligned", "resisted")
    return [name for name in OUTCOMES if name in shown or any(getattr(one, name) for one in tallies)]


def none_of(kinds: Sequence[str]) -> str:
    """Which outcomes without a score no task has, as a sentence; empty if some task has each."""
    *first, last = [""] + [words for kind, words in _NOT_SHOWN.items() if kind not in kinds]
    listed = f"{', '.join(first[1:])} or {last}" if first[1:] else last
    return f"No task was {listed}." if listed else ""


def facts(made: Provenance) -> Iterator[tuple[str, str]]:
    """How a run was made, as names and values."""
    protocol = made.protocol
    yield "model", made.model
    yield "options", _pairs(made.options) or "provider defaults"
    yield (
        "answered by",
        ", ".join(
            f"{name} ({'1 reply' if count == 1 else f'{count:,} replies'})"
            for name, count in made.answered_by.items()
        ),
    )
    yield "run file", made.file
    yield "created", f"{made.created} by propensitybench {made.package}, rules version {made.rules}"
    yield "data", f"{made.data}, {counted(made.scenarios, 'scenario')}, {made.data_digest}"
    yield "tasks", f"{made.tasks:,} planned; {made.stopping}"
    yield "sampling", made.sampling
    yield "epochs", str(made.epochs)
    yield "random seed", str(made.seed)
    yield (
        "protocol",
        f"{counted(protocol.levels, 'pressure message')}; at most {protocol.turns_per_level} turns, "
        f"{protocol.messages_in_a_row} messages in a row and {protocol.calls_per_tool} calls of a tool per "
        f"level; parallel calls: {protocol.parallel_calls}",
    )
    yield "system message", made.template
    usage = made.usage
    yield (
        "tokens",
        f"{usage.input:,} input ({usage.cached:,} cached), {usage.output:,} output "
        f"({usage.reasoning:,} reasoning), {made.replies:,} replies",
    )
    yield "cost", f"{'unknown' if made.usd is None else f'${made.usd:,.2f}'} ({made.price})"


def _pairs(options: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.items())


def remarks(scores: NamingScores) -> Sequence[str]:
    """What to know about the tasks that have a score; empty if there is nothing."""
    counts = {
        "scored although a model other than the requested one gave some of their replies": scores.other_model,
        "misaligned calls not counted because another call came first in the same reply": (
            scores.ignored_misaligned_calls
        ),
    }
    return [f"{count:,} {text}" for text, count in counts.items() if count]


def kinds_missing(results: Results) -> list[str]:
    """The kinds of replies without an answer that any reader of a question gave."""
    return list(dict.fromkeys(kind for reader in results.readers for kind in reader.missing))


def agreements(results: Results) -> list[tuple[str, Agreement, str]]:
    """The agreement of the judges and of the people who read: who, how far, and its JSON Pointer there."""
    found = (("judges", results.judges_agree), ("people", results.people_agree))
    return [(who, one, f"{who}_agree") for who, one in found if one is not None]


def reliability(alpha: float) -> str:
    """What Krippendorff's alpha allows."""
    least, reliable = ALPHAS
    if alpha < least:
        return f"too low for conclusions (below {least})"
    return "reliable" if alpha >= reliable else f"enough for tentative conclusions only (below {reliable})"


def people_read(results: Results) -> str:
    """How many tasks people have labelled, and what follows for the correction; empty if there is nothing."""
    enough = results.labelled >= MIN_LABELLED
    drawn = f" of {results.drawn:,} drawn for them" if results.drawn else ""
    needed = f" A correction for the judges' errors needs {MIN_LABELLED} tasks that people have labelled."
    least = "" if enough else needed
    if not results.labelled and not drawn:
        return f"People have labelled no task.{least}"
    return f"People have labelled {counted(results.labelled, 'task')}{drawn}.{least}"
