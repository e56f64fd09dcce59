"""Writes the texts of a plan with a model, stage by stage; what cannot be used goes back to the writer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from propensitybench.chat import Message
from propensitybench.curation.fitted_checks import FittedScenario, fitted_scenarios
from propensitybench.digests import digest
from propensitybench.errors import ModelError
from propensitybench.generation.blueprint import ActRow
from propensitybench.generation.checks import issues_of_scenario, issues_of_storyline
from propensitybench.generation.exchange import Draft, JournaledModel, Json, together
from propensitybench.generation.stages import (
    Order,
    organisation_order,
    read_organisation,
    read_sketches,
    read_storyline_reply,
    scenario_order,
    sketches_order,
    storyline_order,
)
from propensitybench.generation.templates import render
from propensitybench.generation.workfolder import (
    ORGANISATION,
    SKETCHES,
    Aside,
    Sketch,
    TextProvenance,
    WorkFolder,
)
from propensitybench.scenarios.issues import Finding
from propensitybench.scenarios.model import Organisation, Scenario
from propensitybench.scenarios.storyline import STORYLINES, Storyline, parse_storyline
from propensitybench.taxonomy import PAPER_LADDER

REWRITES: Final = 3
"""How often a text goes back to its writer."""
VERDICT_ROUNDS: Final = 3
"""How often a judge is asked until it answers in the form that it was told."""
T = TypeVar("T")
Reader = Callable[[Json], tuple[T | None, list[str]]]


@dataclass
class WritingSession:
    """One call of ``write``.

    Attributes:
        again: whether what was set aside or failed the last check is written again.
        failed: the findings of the last check, by file.
        on_progress: called with the number of texts that are done or set aside, and of how many.
        written: texts written in this session.
        aside: texts set aside in this session.
    """

    work: WorkFolder
    writer: JournaledModel
    judges: Sequence[JournaledModel]
    again: bool = False
    failed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    on_progress: Callable[[int, int], None] | None = None
    written: int = 0
    aside: int = 0
    finished: int = 0
    total: int = 0

    def tell(self, texts: int) -> None:
        """Counts texts as finished."""
        self.finished += texts
        if self.on_progress is not None:
            self.on_progress(self.finished, self.total)


class _Written(NamedTuple, Generic[T]):
    text: T
    provenance: TextProvenance


@dataclass(frozen=True)
class _Job(Generic[T]):
    """A text to be written.

    Attributes:
        file: its name within the folder, if it is known beforehand; otherwise where it is set aside.
        read: reads and checks a reply.
        judged: what judges are told that they read; empty for what they do not read.
        draft: what is there already, and what is wrong with it.
        attempt: see `TextProvenance`.
    """

    file: str
    order: Order
    read: Reader[T]
    judged: str = ""
    draft: Draft | None = None
    attempt: int = 0


async def write_all(session: WritingSession) -> None:
    """Writes everything that is missing, many texts at a time.

    Raises:
        Stopped: writing was stopped; the same call resumes it.
    """
    work = session.work
    units, wanted = work.units(), work.wanted_storylines()
    session.total = len(work.acts) + len(wanted)
    first, jobs = 1, []
    for number, (unit, acts) in enumerate(units.items(), start=1):
        jobs.append(_Unit(session, unit, acts, first, number).write())
        first += len(acts)
    await together(jobs)
    # Messages are checked as fitted into the scenarios.
    scenarios = fitted_scenarios(place.scenario for place in work.read()[0])
    await together([_write_storyline(session, dimension, place, scenarios) for dimension, place in wanted])


async def _compose(session: WritingSession, job: _Job[T]) -> _Written[T] | None:
    """A text that can be used, after as many rounds as it takes; None if it was set aside."""
    found: T | None = None

    async def read(text: Json) -> Sequence[str]:
        nonlocal found
        found, complaints = job.read(text)
        if found is not None and not complaints and job.judged:
            verdicts = [await _verdict(judge, job.judged, text, job.attempt) for judge in session.judges]
            complaints = [reason for reasons in verdicts for reason in reasons]
        return complaints

    writer = session.writer
    try:
        text, complaints, rounds = await writer.ask_for(
            job.order.messages(), read, (job.attempt,), REWRITES + 1, job.draft
        )
    except ModelError as error:
        text, complaints, rounds = None, [f"the model gave no reply: {error}"], 0
    if found is None or complaints:
        session.work.set_aside(job.file, Aside(tuple(complaints), text, job.attempt))
        session.aside += 1
        return None
    answered = digest(*job.draft.complaints) if job.draft is not None else ""
    judges = tuple(judge.client.model for judge in session.judges) if job.judged else ()
    origin = TextProvenance(writer.client.model, job.order.prompt, rounds, job.attempt, answered, judges)
    return _Written(found, origin)


class _Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keep: bool
    reasons: list[str]


async def _verdict(judge: JournaledModel, what: str, text: Json, attempt: int) -> Sequence[str]:
    """What a judge wants changed in a text; empty if it can stay."""
    found = _Verdict(keep=False, reasons=[])

    async def read(raw: Json) -> Sequence[str]:
        nonlocal found
        try:
            found = msgspec.convert(raw, _Verdict)
        except msgspec.ValidationError as error:
            return [str(error)]
        return ()

    shown = msgspec.json.format(msgspec.json.encode(text), indent=1).decode()
    asked = [Message("user", render("judge", what=what, text=shown))]
    try:
        complaints = (await judge.ask_for(asked, read, (attempt,), VERDICT_ROUNDS)).complaints
    except ModelError as error:
        complaints = [str(error)]
    if complaints:
        return [f"the judge {judge.client.model} gave no verdict: {complaints[0]}"]
    return () if found.keep else found.reasons or ["a reader would not keep it"]


def _as_complaints(findings: Sequence[Finding]) -> list[str]:
    return [f"${path}: {what}" for path, what in findings]


class _Unit:
    """The texts of one role: organisation, sketches, scenarios."""

    def __init__(
        self, session: WritingSession, unit: str, acts: Sequence[ActRow], first: int, number: int
    ) -> None:
        self._session = session
        self._work = session.work
        self._unit = unit
        self._acts = acts
        self._first = first
        self._number = number

    async def write(self) -> None:
        """Writes what is missing of the unit."""
        organisation = await self._organisation()
        sketches = None if organisation is None else await self._sketches(organisation)
        if organisation is None or sketches is None:
            self._session.tell(len(self._acts))
            return
        await together(
            [self._scenario(act, number, organisation, sketches[act.row]) for act, number in self._numbered()]
        )

    async def _organisation(self) -> Organisation | None:
        file = self._work.unit_file(self._unit, ORGANISATION)
        found = self._work.organisation(self._unit)
        if found is not None:
            return found
        attempt = _attempt(self._session, file)
        if attempt is None:
            return None

        def read(raw: Json) -> tuple[Organisation | None, list[str]]:
            organisation, findings = read_organisation(raw)
            return organisation, _as_complaints(findings)

        order = organisation_order(self._work.plan, self._unit, self._acts, self._number)
        written = await _compose(self._session, _Job(file, order, read, attempt=attempt))
        if written is None:
            return None
        self._work.save(file, written.text.model_dump(mode="json"), written.provenance)
        return written.text

    async def _sketches(self, organisation: Organisation) -> dict[str, Sketch] | None:
        file = self._work.unit_file(self._unit, SKETCHES)
        found = self._work.sketches(self._unit)
        missing = [(act, number) for act, number in self._numbered() if act.row not in found]
        if not missing:
            return found
        attempt = _attempt(self._session, file)
        if attempt is None:
            return None

        def read(raw: Json) -> tuple[list[Sketch] | None, list[str]]:
            sketches, findings = read_sketches(raw, [act for act, _ in missing], self._taken())
            return sketches or None, _as_complaints(findings)

        order = sketches_order(self._work.plan, missing, organisation)
        written = await _compose(self._session, _Job(file, order, read, attempt=attempt))
        if written is None:
            return None
        whole = found | {sketch.row: sketch for sketch in written.text}
        self._work.save_sketches(self._unit, [whole[act.row] for act in self._acts], written.provenance)
        return whole

    def _numbered(self) -> list[tuple[ActRow, int]]:
        """The unit's rows with their numbers in the act grid."""
        return [(act, self._first + index) for index, act in enumerate(self._acts)]

    def _taken(self) -> dict[str, str]:
        return {
            sketch.name: unit for unit in self._work.units() for sketch in self._work.sketches(unit).values()
        }

    async def _scenario(self, act: ActRow, number: int, organisation: Organisation, sketch: Sketch) -> None:
        file = self._work.scenario_file(self._unit, sketch.name)
        draft, attempt = _start(self._session, file)
        if attempt is None:
            self._session.tell(1)
            return

        def read(raw: Json) -> tuple[Scenario | None, list[str]]:
            inside = organisation.model_dump(mode="json")
            place, issues = self._work.located(self._unit, inside, raw, file)
            if place is None:
                return None, [f"{issue.path}: {issue.message}" for issue in issues]
            issues = issues_of_scenario(place, act)
            if place.scenario.name != sketch.name:
                issues.append(place.issue(".name", f"must be {sketch.name!r} as in the sketch"))
            return place.scenario, [f"{issue.path}: {issue.message}" for issue in issues]

        order = scenario_order(self._work.plan, act, number, organisation, sketch)
        job = _Job(file, order, read, "a scenario", draft, attempt)
        written = await _compose(self._session, job)
        if written is not None:
            self._work.save_scenario(self._unit, written.text, written.provenance)
            self._session.written += 1
        self._session.tell(1)


async def _write_storyline(
    session: WritingSession, dimension: str, place: str, scenarios: Sequence[FittedScenario]
) -> None:
    work = session.work
    written_as = {p.unit: name for name, p in work.provenance.items() if p.unit}
    file = written_as.get(place, f"{STORYLINES}/{place}.json")
    draft, attempt = _start(session, file)
    if attempt is None:
        session.tell(1)
        return

    def read(raw: Json) -> tuple[Storyline | None, list[str]]:
        plain, findings = read_storyline_reply(raw)
        found, issues = parse_storyline(plain, file)
        complaints = _as_complaints(findings) + [f"{issue.path}: {issue.message}" for issue in issues]
        if found is None or complaints:
            return None, complaints
        issues = issues_of_storyline(found, work.plan.domain, scenarios)
        complaints = [f"{issue.path}: {issue.message}" for issue in issues]
        if found.dimension != dimension:
            complaints.append(f"$.dimension: must be {dimension!r}")
        if found.ladder != PAPER_LADDER:
            complaints.append(f"$.ladder: must be {PAPER_LADDER!r}")
        if found.file != file and (work.root / found.file).exists():
            complaints.append(f"$.name: there is a storyline {found.name!r} already; choose another name")
        return found, complaints

    order = storyline_order(work.plan, dimension, place)
    job = _Job(file, order, read, "a chain of messages, with slots for the words", draft, attempt)
    written = await _compose(session, job)
    if written is not None:
        work.save_storyline(written.text, msgspec.structs.replace(written.provenance, unit=place))
        if written.text.file != file:
            work.forget(file)
        session.written += 1
    session.tell(1)


def _attempt(session: WritingSession, file: str) -> int | None:
    """The attempt at which a text is to be written; None if it was set aside and stays so."""
    aside = session.work.aside(file)
    if aside is None:
        return 0
    return aside.attempt + 1 if session.again else None


def _start(session: WritingSession, file: str) -> tuple[Draft | None, int | None]:
    """What is there of a text with what is wrong with it, and the attempt; None if nothing is to be done."""
    work = session.work
    known = work.provenance.get(file)
    if not (work.root / file).exists() or known is None:
        aside = work.aside(file)
        if aside is None:
            return None, 0
        if not session.again:
            return None, None
        draft = Draft(_json(aside.text), aside.reasons) if aside.text is not None else None
        return draft, aside.attempt + 1
    words = work.words_about(file)
    if session.again:
        words = (*words, *session.failed.get(file, ()))
    if not words or digest(*words) == known.answered:
        return None, None
    return Draft(_json(work.text(file)), words), known.attempt + 1


def _json(text: Any) -> str:
    return msgspec.json.encode(text).decode()
