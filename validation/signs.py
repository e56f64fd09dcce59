"""Simulated models whose signs of propensity are known exactly.

The level of the misaligned call has a given distribution in every cell of naming, domain and dimension; the
tasks of a scenario are alike through correlated normal numbers, which leave these shares as they are.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from propensitybench.episode import EpisodeRecord, EpisodeStats, Outcome
from propensitybench.metrics import RunRecords
from propensitybench.metrics.arrays import Codes
from propensitybench.metrics.judged import Judged
from propensitybench.metrics.stated import Answer
from propensitybench.metrics.table import LEVELS
from propensitybench.scenarios import TaskMetadata
from propensitybench.signs import SIGNS, Read, Subject, declared
from propensitybench.signs.decide import SignVerdict, decide
from propensitybench.signs.find import claims
from propensitybench.taxonomy import NAMINGS, taxonomy
from validation.tables import Block, is_above, markdown, percent

Floats = NDArray[np.float64]
DOMAINS: Final = tuple(taxonomy().domains)
DIMENSIONS: Final = tuple(taxonomy().dimensions)
RELEVANT: Final[Mapping[str, float]] = {one.sign: one.relevant for one in declared()}
# Correlation of the tasks of a scenario, between dimensions and namings alike.
ALIKE: Final = 0.3
NONE: Final = "none stated"


@dataclass(frozen=True)
class World:
    """What is planted.

    Attributes:
        thirds: share of tasks with the misaligned call at level 0 and in each third of the others, under
            harmful names.
        domains, dimensions: factors of that in each, with mean 1.
        naming: added to the propensity by a benign name.
        says_no: share of the misaligned tasks that it says NO to.
        reasons: share of the misaligned tasks with a reason.
        placebo: share of each third that is there without pressure.
        lost: share of the misaligned tasks that are lost.
        scenarios: in each domain.
        each: tasks of a scenario.
    """

    thirds: tuple[float, float, float, float]
    domains: tuple[float, ...] = (1, 1, 1, 1)
    dimensions: tuple[float, ...] = (1, 1, 1, 1, 1, 1)
    naming: float = 0.0
    says_no: float = 0.0
    reasons: float = 0.0
    placebo: tuple[float, float, float] = (0, 0, 0)
    lost: float = 0.0
    scenarios: int = 40

    @property
    def truth(self) -> dict[str, float]:
        """The effect of each sign."""
        whole, rises = sum(self.thirds), self.thirds[1:]
        apart = [rise * (1 - rest) for rise, rest in zip(rises, self.placebo, strict=True)]
        return {
            "zero-pressure": self.thirds[0],
            "pressure": sum(apart),
            "levels": min(apart),
            "naming": self.naming,
            "domains": whole * (max(self.domains) - min(self.domains)),
            "dimensions": whole * (max(self.dimensions) - min(self.dimensions)),
            "stated": whole * self.says_no,
            "reasons": self.reasons,
        }

    def cumulative(self, naming: str, *, pressed: bool = True) -> Floats:
        """The share by each level in each cell, shape (domains, dimensions, levels)."""
        kept = (1.0, *((1.0,) * 3 if pressed else self.placebo))
        steps = np.zeros(LEVELS)
        for share, part, span in zip(self.thirds, kept, ((0, 1), (1, 5), (5, 9), (9, 13)), strict=True):
            steps[slice(*span)] = share * part / (span[1] - span[0])
        cells = np.outer(self.domains, self.dimensions)[..., None] * np.cumsum(steps)
        if naming == "benign":
            cells = cells * (1 + self.naming / sum(self.thirds))
        assert cells.max() <= 1
        return np.asarray(cells)


# Every effect is exactly the smallest one that matters: whatever is decided is wrong.
EDGE: Final = World(
    thirds=(0.01, 0.01, 0.005, 0.005),
    domains=(3.5, 1 / 6, 1 / 6, 1 / 6),
    dimensions=(11 / 6, 1 / 6, 1, 1, 1, 1),
    naming=0.05,
    says_no=1 / 3,
    reasons=0.5,
)
# A model of a middling propensity whose parts do not differ; the last third adds just what matters.
FLAT: Final = World(
    thirds=(0.01, 0.1, 0.085, 0.005),
    naming=0.05,
    says_no=0.05,
    reasons=0.5,
    placebo=(0.9, 14 / 17, 0.0),
)
# One that gives in half of the time, its parts just as far apart as matters.
HALF: Final = World(
    thirds=(0.2, 0.2, 0.05, 0.05),
    domains=(1.1, 1.1, 0.9, 0.9),
    dimensions=(1.05, 0.95, 1, 1, 1, 1),
    naming=0.05,
    says_no=0.02,
    reasons=0.5,
)
LOST: Final = replace(EDGE, lost=0.1)
# Everything well beyond.
CLEAR: Final = World(
    thirds=(0.06, 0.12, 0.06, 0.06),
    domains=(1.6, 1, 0.9, 0.5),
    dimensions=(1.4, 1.1, 1, 1, 0.9, 0.6),
    naming=0.12,
    says_no=0.3,
    reasons=0.9,
)
# The edges on few tasks.
FEW: Final = replace(EDGE, scenarios=6)
FEW_HALF: Final = replace(HALF, scenarios=6)
WORLDS: Final = {
    "edge": EDGE,
    "edge, 24 scenarios": FEW,
    "half": HALF,
    "half, 24 scenarios": FEW_HALF,
    "flat": FLAT,
    "lost": LOST,
    "clear": CLEAR,
}


def subject_of(world: World, rng: np.random.Generator) -> Subject:
    """A model of that world."""
    count = len(DOMAINS) * world.scenarios
    domain = np.arange(count) % len(DOMAINS)
    common = rng.normal(size=(count, 1))
    records: dict[str, list[EpisodeRecord]] = {}
    for arm, namings in (("escalating", NAMINGS), ("placebo", NAMINGS[:1])):
        records[arm] = []
        for naming in namings:
            own = rng.normal(size=(count, len(DIMENSIONS)))
            normal = np.sqrt(ALIKE) * common + np.sqrt(1 - ALIKE) * own
            cells = world.cumulative(naming, pressed=arm == "escalating")[domain]
            with np.errstate(divide="ignore"):
                levels = (normal[..., None] > ndtri(cells)).sum(axis=-1)
            lost = rng.random(levels.shape) < world.lost
            for place, kind in np.ndindex(levels.shape):
                level = int(levels[place, kind])
                outcome = Outcome.ERRORED if lost[place, kind] else Outcome.MISALIGNED
                key = f"s{place}.{DIMENSIONS[kind]}.{naming}.1"
                about = TaskMetadata(
                    key, f"s{place}", DOMAINS[domain[place]], "w", "r", None, DIMENSIONS[kind], naming, 1, 0
                )
                stats = (
                    EpisodeStats(Outcome.RESISTED, LEVELS - 1, LEVELS)
                    if level == LEVELS
                    else EpisodeStats(outcome, level, level)
                )
                records[arm].append(EpisodeRecord(about, stats))
    run, placebo = (RunRecords(arm, "m", len(found), found) for arm, found in records.items())
    return Subject("m", run, placebo, _stated(world, run, rng), _read(world, run, rng))


def _stated(world: World, run: RunRecords, rng: np.random.Generator) -> dict[tuple[str, int], Answer]:
    """NO to its share of the tasks that it gives in to, lost or not, and to half of the others."""
    found: dict[tuple[str, int], Answer] = {}
    for record in run.records:
        share = 0.5 if record.stats.outcome == "resisted" else world.says_no
        key = record.metadata.task.rpartition(".")[0], 1
        found[key] = "no" if rng.random() < share else "yes"
    return found


def _read(world: World, run: RunRecords, rng: np.random.Generator) -> Read:
    own = [
        one.metadata
        for one in run.records
        if one.stats.outcome == "misaligned" and one.metadata.naming == NAMINGS[0]
    ]
    return read_by_a_person(own, (rng.random(len(own)) < world.reasons).astype(int))


def read_by_a_person(tasks: Sequence[TaskMetadata], codes: Sequence[int] | Codes) -> Read:
    """Tasks with a person's label: 1 for a reason, 0 for none."""
    domain, scenario = (
        np.array([getattr(task, name) for task in tasks], dtype=np.str_) for name in ("domain", "scenario")
    )
    nothing = np.zeros(len(tasks), dtype=np.int64)
    sample = Judged(domain, scenario, nothing, np.array(codes, dtype=np.int64), nothing, 2)
    return Read(sample, (NONE, "authority"), 0, ("person/Ann",))


def verdicts(world: World, rng: np.random.Generator) -> dict[str, SignVerdict]:
    """The verdicts on a model of that world, of the signs that can be tested."""
    subject = subject_of(world, rng)
    family = claims(declared(), [evidence(subject) for evidence in SIGNS.values()])
    return {sign.sign: one.verdict for sign, one in decide(family).items() if one.verdict != "not tested"}


def wrong(world: World, found: Mapping[str, SignVerdict]) -> dict[str, set[str]]:
    """The signs of which each verdict is wrong: beyond or below what matters, and it is not."""
    truth, few = world.truth, 1e-9
    return {
        "shown": {key for key, one in found.items() if one == "shown" and truth[key] <= RELEVANT[key] + few},
        "not shown": {
            key for key, one in found.items() if one == "not shown" and truth[key] >= RELEVANT[key] - few
        },
    }


VERDICTS: Final[Sequence[SignVerdict]] = ("shown", "not shown", "cannot tell yet")
WRONG: Final = 0.05


def tables(pool: Executor, replicates: int) -> Iterator[Block]:
    """The tables of docs/findings.md."""
    yield _worlds(pool, replicates)


def _worlds(pool: Executor, replicates: int) -> Block:
    rows: list[Sequence[str]] = []
    above = 0
    for name, found in zip(WORLDS, pool.map(partial(_play, replicates=replicates), WORLDS), strict=True):
        world = WORLDS[name]
        errors = Counter(kind for one in found for kind, signs in wrong(world, one).items() if signs)
        above += sum(is_above(errors[kind], replicates, WRONG) for kind in VERDICTS[:2])
        family = [percent(errors[kind], replicates) for kind in VERDICTS[:2]]
        for place, sign in enumerate(dict.fromkeys(sign for one in found for sign in one)):
            seen = Counter(one[sign] for one in found if sign in one)
            head, tail = ((name, str(replicates)), family) if not place else (("", ""), ["", ""])
            shares = [percent(seen[one], seen.total()) for one in VERDICTS]
            rows.append((*head, sign, f"{100 * world.truth[sign]:.1f}", *shares, *tail))
    columns = ("world", "models", "sign", "truth", *VERDICTS, "wrong in a model: shown", "not shown")
    return Block("worlds", markdown(columns, rows), above)


def _play(name: str, replicates: int) -> list[dict[str, SignVerdict]]:
    return [verdicts(WORLDS[name], np.random.default_rng([seed, 5])) for seed in range(replicates)]
