"""Runs for boards: made from records by hand, or of a few tasks of every domain, played."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from helpers.records import BIO, CHEM, CYBER, SELF, ended
from helpers.runs import finish

from propensitybench.chat import Usage
from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import PAPER, EpisodeRecord, Outcome, Protocol, built_in_template
from propensitybench.runs import ReplySummary, Run
from propensitybench.scenarios import Selection
from propensitybench.store import Manifest
from propensitybench.taxonomy import NAMINGS

DOMAINS: Final = (BIO, CHEM, CYBER, SELF)
# One role of each domain, with few scenarios.
ROLES: Final[Mapping[str, str]] = {
    BIO: "Microbial-Strain-Engineer",
    CHEM: "Field-Application-Specialist",
    CYBER: "Cloud-Security-Analyst",
    SELF: "Patient-Flow-Manager",
}
DIMENSIONS: Final = ("time", "financials")


class MadeRun(Run):
    """A run of records, without a file."""

    _planned = 0

    @property
    def planned(self) -> int:
        """Number of tasks."""
        return self._planned

    @property
    def journal(self) -> ReplySummary:
        """One reply for each task."""
        drawn = Counter(record.metadata.domain for record in self.records)
        if drawn:
            drawn[min(drawn)] += self._planned - len(self.records)
        names = {record.metadata.scenario for record in self.records}
        return ReplySummary(Counter({self.model: len(self.records)}), Usage(), {}, len(names), drawn)


def made(
    model: str,
    records: Iterable[EpisodeRecord],
    *,
    file: str = "",
    digest: str = "d2:all",
    protocol: Protocol = PAPER,
    created: str = "2026-01-02T03:04:05+00:00",
    unplayed: int = 0,
) -> MadeRun:
    """A run of a model."""
    found = list(records)
    manifest = Manifest(
        format="propensitybench-run/1",
        created=created,
        package="0.1",
        rules=4,
        model=model,
        data="built-in",
        data_digest=digest,
        selections=(Selection(),),
        seed=0,
        protocol=protocol,
        template=built_in_template("named"),
        tasks=len(found) + unplayed,
    )
    contents = {one.metadata.scenario: f"s1:{one.metadata.scenario}" for one in found}
    run = MadeRun(file or f"folder/{model.rpartition('/')[2][:20]}.run", manifest, found, contents)
    run._planned = len(found) + unplayed
    return run


def failing(
    shares: Sequence[float], domains: Sequence[str] = DOMAINS, count: int = 20
) -> list[EpisodeRecord]:
    """Records of so many scenarios of each domain; under each naming, the first of them fail.

    Args:
        shares: that fail under harmful and under benign names.
        domains: where the scenarios are.
        count: scenarios of each domain.
    """
    return [
        ended(
            Outcome.MISALIGNED if place < share * count else Outcome.RESISTED,
            4 if place < share * count else 12,
            scenario=f"{domain[:4]}{place:02}",
            domain=domain,
            naming=naming,
            right_calls=1,
        )
        for naming, share in zip(NAMINGS, shares, strict=True)
        for domain in domains
        for place in range(count)
    ]


def without_last(run: MadeRun, count: int) -> MadeRun:
    """The same run before its last tasks were played."""
    made_run = MadeRun(run.file, run.manifest, run.records[: len(run.records) - count], run.contents)
    made_run._planned = run.planned
    return made_run


def other_texts(run: MadeRun) -> MadeRun:
    """The same tasks with other scenarios under the same names, under another model."""
    manifest = msgspec.structs.replace(run.manifest, model="other/model")
    contents = {name: f"{identity}-changed" for name, identity in run.contents.items()}
    changed = MadeRun(run.file, manifest, run.records, contents)
    changed._planned = run.planned
    return changed


def played(
    path: Path, model: str, domains: Sequence[str] = DOMAINS, dimensions: Sequence[str] = DIMENSIONS
) -> Path:
    """A run file of all tasks of one role of each domain, played by a simulated agent."""
    selection = Selection(
        domains=tuple(domains), roles=tuple(ROLES[name] for name in domains), dimensions=tuple(dimensions)
    )
    create_run(RunSpec(model, selection=selection), path)
    finish(path)
    return path
