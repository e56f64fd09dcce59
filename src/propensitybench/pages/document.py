"""The report as data: the contents of ``report.json``, which the page displays.

The contents follow STREAM (arXiv 2508.09853) and ABC (arXiv 2507.02825): estimates with their
uncertainty, missing data, methods, and limitations.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

import msgspec

from propensitybench.chat import Usage
from propensitybench.digests import digest
from propensitybench.engine import Price, price_table
from propensitybench.episode import EpisodeRecord, Outcome, Protocol, built_in_name
from propensitybench.escaping import visible
from propensitybench.metrics import ScoredRun
from propensitybench.metrics.analysis import Analysis, analyse
from propensitybench.metrics.sequential import StoppingState
from propensitybench.pages.judged import JudgedQuestion
from propensitybench.pages.publishing import NOTE, PublishableRun
from propensitybench.pages.watched import MonitoredRun
from propensitybench.presentation.words import (
    ESTIMAND,
    LIMITATIONS,
    STANDARD_ERRORS,
    cautions,
    propensity_name,
    propensity_note,
)
from propensitybench.runs import ComparableRuns, Run
from propensitybench.scenarios import Selection
from propensitybench.simulated import PREFIX
from propensitybench.store import Manifest
from propensitybench.taxonomy import NAMINGS, Naming

FORMAT: Final = "propensitybench-report/2"
# Reasons for missing scores: characters shown of each, and how many are listed.
REASON_LENGTH: Final = 160
REASONS: Final = 8


class DomainTally(msgspec.Struct, frozen=True):
    """Tasks of one domain by outcome, with the most frequent reasons for missing scores."""

    planned: int
    misaligned: int
    resisted: int
    completed: int
    blocked: int
    truncated: int
    errored: int
    unfinished: int
    unplayed: int
    blocked_because: dict[str, int]
    errored_because: dict[str, int]


class Provenance(msgspec.Struct, frozen=True):
    """How a run was made.

    Attributes:
        label: the run's name on the page: its name in the analysis, with PP@K for a shorter ladder.
        simulated: whether a simulated agent answered instead of a model.
        template: ``named``, ``unnamed``, or a digest of the system message's template.
        sampling: how tasks were sampled, in words.
        scenarios: number of scenarios.
        answered_by: number of replies by model, as named by the provider.
        replies, usage: totals over all replies.
        usd: cost in US dollars; None if the price is unknown.
        price: source of the price.
        complete: whether nothing is left to play: every drawn task has ended, and no more will be drawn.
        stopping: the same in words, and the state of its stopping rule if it has one.
        absent_domains: domains of the benchmark without any task in the run.
        caveats: limitations of this run in particular.
    """

    label: str
    file: str
    model: str
    simulated: bool
    options: dict[str, Any]
    created: str
    package: str
    rules: int
    data: str
    data_digest: str
    scenarios: int
    template: str
    protocol: Protocol
    selections: tuple[Selection, ...]
    sampling: str
    seed: int
    tasks: int
    answered_by: dict[str, int]
    replies: int
    usage: Usage
    usd: float | None
    price: str
    complete: bool
    stopping: str
    domains: dict[str, DomainTally]
    absent_domains: list[str]
    caveats: list[str]

    @property
    def namings(self) -> list[Naming]:
        """The namings that were asked for."""
        return [name for name in NAMINGS if any(name in one.namings for one in self.selections)]

    @property
    def epochs(self) -> int:
        """The most repetitions of a task that were asked for."""
        return max(one.epochs for one in self.selections)


class Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """The contents of a report.

    Attributes:
        standard_errors: the question that each standard error answers.
        runs: how each run was made, in the order of ``analysis.runs``.
        notes: differences between the runs other than the model.
        limitations: limitations of the benchmark, whatever the run.
        judged: what readers said of transcripts, by run and question.
        watched: how early monitors see it coming, by run.
        left_out: what the report does not say because it is made for publication; empty if nothing.
    """

    format: str
    package: str
    estimand: str
    standard_errors: dict[str, str]
    analysis: Analysis
    runs: tuple[Provenance, ...]
    notes: tuple[str, ...]
    limitations: tuple[str, ...]
    judged: tuple[JudgedQuestion, ...] = ()
    watched: tuple[MonitoredRun, ...] = ()
    left_out: str = ""


def provenance(run: Run, scores: ScoredRun) -> Provenance:
    """How a run was made, with the caveats on its scores."""
    records, rule, manifest, journal = run.records, run.stopping_rule, run.manifest, run.journal
    drawn = run.planned if rule is None else rule.drawn
    unplayed = drawn - len(records)
    unfinished = sum(record.stats.outcome is Outcome.UNFINISHED for record in records)
    waits = rule is not None and not rule.met and drawn < run.planned
    price = run.price
    domains = dict(_tallies(journal.drawn, records, journal.stops))
    return Provenance(
        label="",
        file=run.file,
        model=manifest.model,
        simulated=manifest.model.startswith(PREFIX),
        options=manifest.options,
        created=manifest.created,
        package=manifest.package,
        rules=manifest.rules,
        data=manifest.data,
        data_digest=manifest.data_digest,
        scenarios=journal.scenarios,
        template=template_name(manifest),
        protocol=manifest.protocol,
        selections=manifest.selections,
        sampling=_sampling(manifest.selections) + (f"; only shard {run.shard}" if run.shard else ""),
        seed=manifest.seed,
        tasks=run.planned,
        answered_by=dict(journal.models.most_common()),
        replies=journal.models.total(),
        usage=journal.usage,
        usd=None if price is None else price.of(journal.usage),
        price=_source(price, manifest.model),
        complete=not (unplayed or unfinished or waits),
        stopping=_stopping(run.planned, drawn, {"not run yet": unplayed, "unfinished": unfinished}, rule),
        domains=domains,
        absent_domains=_absent(run, domains),
        caveats=[*cautions(manifest.model, scores.low_competence), *_caveats(run, domains)],
    )


def document(
    comparable: ComparableRuns, judged: Sequence[JudgedQuestion] = (), watched: Sequence[MonitoredRun] = ()
) -> Document:
    """The report of runs, with what readers and monitors made of their transcripts."""
    analysis = analyse(comparable.runs)
    runs = tuple(
        msgspec.structs.replace(
            provenance(run, analysed.scores), label=_label(analysed.name, analysed.scores)
        )
        for analysed, run in zip(analysis.runs, comparable.runs, strict=True)
    )
    return Document(
        format=FORMAT,
        package=version("propensitybench"),
        estimand=ESTIMAND,
        standard_errors=STANDARD_ERRORS,
        analysis=analysis,
        runs=runs,
        notes=tuple(comparable.notes),
        limitations=LIMITATIONS,
        judged=tuple(judged),
        watched=tuple(watched),
        left_out=NOTE if any(isinstance(run, PublishableRun) for run in comparable.runs) else "",
    )


def _tallies(
    planned: Counter[str], records: Sequence[EpisodeRecord], stops: Mapping[str, str]
) -> Iterator[tuple[str, DomainTally]]:
    for domain, count in sorted(planned.items()):
        ended = [record for record in records if record.metadata.domain == domain]
        outcomes = Counter(record.stats.outcome for record in ended)
        blocked = (stops.get(r.metadata.task, "") for r in ended if r.stats.outcome is Outcome.BLOCKED)
        errored = (r.error for r in ended if r.stats.outcome is Outcome.ERRORED)
        tally = DomainTally(
            planned=count,
            **{one.value: outcomes[one] for one in Outcome},
            unplayed=count - len(ended),
            blocked_because=_counted(blocked),
            errored_because=_counted(errored),
        )
        yield domain, tally


def _source(price: Price | None, model: str) -> str:
    if price is None:
        return "model not in the price table"
    listed = price == price_table().find(model)
    return f"price table of {price_table().date}" if listed else "price given for the run"


def _stopping(tasks: int, drawn: int, left: Mapping[str, int], state: StoppingState | None) -> str:
    counts = "".join(f", {count:,} {what}" for what, count in left.items() if count)
    if state is None:
        return f"incomplete{counts}" if counts else "complete"
    target = f"half-width of {100 * state.half_width:g} percentage points"
    met = "met" if state.met else "not met"
    return f"stopping rule ({target}) {met}: {drawn:,} of {tasks:,} tasks drawn{counts}"


def _counted(reasons: Iterator[str]) -> dict[str, int]:
    counts = Counter(reason[:REASON_LENGTH] or "(no reason given)" for reason in reasons)
    listed = dict(counts.most_common(REASONS))
    others = counts.total() - sum(listed.values())
    return {**listed, "(others)": others} if others else listed


def _label(name: str, scores: ScoredRun) -> str:
    called = propensity_name(scores.levels, scores.arm, scores.ladder)
    return visible(name if called == propensity_name() else f"{name}, {called}")


def template_name(manifest: Manifest) -> str:
    """``named``, ``unnamed``, or a digest of the system message's template."""
    return built_in_name(manifest.template) or "t1:" + digest(manifest.template)


def _sampling(selections: Sequence[Selection]) -> str:
    return "; then ".join(map(_sample, selections))


def _sample(selection: Selection) -> str:
    filters = [
        f"{kind}: {', '.join(names)}"
        for kind in ("domains", "workspaces", "roles", "capabilities", "dimensions")
        if (names := getattr(selection, kind))
    ]
    filtered = f" with {'; '.join(filters)}" if filters else ""
    if selection.limit is None:
        return f"full: every task of the data{filtered}"
    return (
        f"spread: at most {selection.limit} pairs of scenario and dimension{filtered}, balanced over domains "
        "and using every scenario once before any is used again"
    )


def _absent(run: Run, domains: dict[str, DomainTally]) -> list[str]:
    return sorted(set(run.lists.whole) - domains.keys())


def _caveats(run: Run, domains: dict[str, DomainTally]) -> Iterator[str]:
    manifest = run.manifest
    planned = sum(tally.planned for tally in domains.values())
    own = manifest.lists.descriptions()
    if own:
        named = " ".join(f"{name}: {text}" for name, text in own.items())
        yield f"The data has names of its own, which are not those of the benchmark. {named}"
    if absent := _absent(run, domains):
        yield (
            f"Covers {' and '.join(sorted(domains))} only: this is not the propensity of the whole "
            f"benchmark, which also has {', '.join(absent)}."
        )
    unplayed = sum(tally.unplayed for tally in domains.values())
    unfinished = sum(tally.unfinished for tally in domains.values())
    if unplayed or unfinished:
        yield (
            f"Preliminary: of {planned:,} tasks {unplayed:,} have not begun and are in no number, and "
            f"{unfinished:,} were in progress and count for the levels that they had completed; intervals "
            "and bounds cover every way in which they may have ended."
        )
    truncated = sum(tally.truncated for tally in domains.values())
    if truncated:
        yield (
            f"{truncated:,} of {planned:,} tasks were truncated: the output limit cut off a reply before it "
            "was usable. They have no score and widen the bounds; run again with a higher --max-tokens."
        )
    protocol = manifest.protocol
    if note := propensity_note(protocol.last_level, protocol.arm, protocol.ladder):
        yield f"Propensity here means {note}."
    if manifest.protocol.parallel_calls == "any":
        yield (
            "A misaligned call counted at any position among the calls of a reply; the published rule counts "
            "only the first call."
        )
