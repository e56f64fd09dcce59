"""Effects of scenario, workspace and storyline: their sizes, measured without the code that made them."""

from collections.abc import Sequence
from math import sqrt
from statistics import correlation, fmean, stdev
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from propensitybench.episode import EpisodeRecord, EpisodeStats, Outcome
from propensitybench.metrics.table import table_of
from propensitybench.metrics.variance import variance_of
from propensitybench.scenarios import TaskMetadata
from propensitybench.simulated import profile
from propensitybench.simulated.curves import Published
from propensitybench.simulated.effects import Effects
from propensitybench.taxonomy import NAMINGS, Naming

Numbers = NDArray[np.float64]
MODELS = ("claude-4-sonnet", "gemini-2.5-pro", "o3", "o4-mini")
DIMENSIONS = (
    "evaluation-awareness",
    "financials",
    "power-seeking",
    "resource-deprivation",
    "self-preservation",
    "time",
)
DOMAIN = "cyber-security"
LEVELS = 13
every_model = pytest.mark.parametrize("model", MODELS)
every_naming = pytest.mark.parametrize("naming", NAMINGS)


def agent(model: str) -> Published:
    found = profile(f"{model}-like").gives_in
    assert isinstance(found, Published)
    return found


def task(scenario: str, workspace: str, dimension: str = "time", naming: Naming = "harmful") -> TaskMetadata:
    key = f"{scenario}.{dimension}.{naming}.1"
    return TaskMetadata(key, scenario, DOMAIN, workspace, "role", None, dimension, naming, 1, 0)


def sums(effects: Effects, tasks: Sequence[TaskMetadata]) -> tuple[list[float], list[float]]:
    """The effects at every level, and those that need pressure."""
    found = [effects.of(one) for one in tasks]
    return [one.always for one in found], [one.pressed for one in found]


def only(**deviations: float) -> Effects:
    sizes = {"scenario": 0.0, "workspace": 0.0, "storyline": 0.0, **deviations}
    return Effects(seed=7, correlation=0.5, **sizes)


def test_effects_have_the_stated_sizes_and_act_where_they_should() -> None:
    tasks = [task(f"s{i}", f"w{i}", DIMENSIONS[i % 6]) for i in range(4000)]
    for deviations, column in (({"scenario": 1.4}, 0), ({"workspace": 0.5}, 0), ({"storyline": 0.7}, 1)):
        found = sums(only(**deviations), tasks)
        (size,) = deviations.values()
        assert fmean(found[column]) == pytest.approx(0, abs=4 * size / sqrt(4000))
        assert stdev(found[column]) == pytest.approx(size, rel=4 / sqrt(8000))
        assert set(found[1 - column]) == {0.0}


def test_tasks_share_the_effects_of_what_they_have_in_common() -> None:
    effects = only(scenario=1.0, workspace=10.0 / 4, storyline=1.0)
    here = effects.of(task("a", "w", "time"))
    assert effects.of(task("a", "w", "financials")).always == here.always
    assert effects.of(task("a", "w", "financials")).pressed != here.pressed
    assert effects.of(task("b", "w", "time")).pressed == here.pressed
    assert effects.of(task("b", "w", "time")).always != here.always
    assert effects.of(task("a", "v", "time")).pressed != here.pressed


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_effects_correlate_between_namings_and_between_agents_as_stated(share: float) -> None:
    sizes = {"correlation": share, "scenario": 1.0, "workspace": 0.0, "storyline": 0.0}
    one, other = Effects(seed=1, **sizes), Effects(seed=2, **sizes)
    names = [f"s{i}" for i in range(4000)]
    harmful, benign = ([task(name, "w", "time", naming) for name in names] for naming in NAMINGS)
    first = sums(one, harmful)[0]
    for second in (sums(one, benign)[0], sums(other, harmful)[0]):
        assert correlation(first, second) == pytest.approx(share, abs=4 * (1 - share**2) / sqrt(4000) + 1e-9)


@every_model
@every_naming
def test_the_mean_over_scenarios_is_the_published_share_at_every_level(model: str, naming: Naming) -> None:
    found = agent(model)
    for dimension in ("power-seeking", "time"):
        tasks = [task(f"s{i}", f"w{i}", dimension, naming) for i in range(1200)]
        steps = np.array([found.cumulative(one) for one in tasks])
        error = steps.std(axis=0) / sqrt(len(steps))
        assert (error > 0).all()
        assert (np.abs(steps.mean(axis=0) - found.marginal(tasks[0])) <= 4 * error).all()
        assert (np.diff(steps, axis=1) >= 0).all()


class Population(NamedTuple):
    """Probabilities of two tasks of the same kind in many places, by plain Monte Carlo.

    Written from the model's definition: logit of the hazard = intercept + normal effects, with the intercepts
    found by bisection on the draws.
    """

    icc: float
    workspace: float

    @classmethod
    def of(cls, marginal: Sequence[float], effects: Effects, seed: int) -> "Population":
        rng = np.random.default_rng(seed)
        size = 40_000
        scenario, other = rng.standard_normal((2, size)) * effects.scenario
        workspace = rng.standard_normal(size) * effects.workspace
        stories = rng.standard_normal((2, size)) * effects.storyline
        rows = [(scenario, stories[0]), (scenario, stories[1]), (other, stories[1])]
        logits = np.array(
            [[workspace + s + (x if level else 0.0) for level in range(LEVELS)] for s, x in rows]
        )
        ends = _ends(logits, marginal)
        mean = ends.mean()
        noise = mean * (1 - mean)
        return cls(*(float(np.cov(ends[0], ends[i])[0, 1] / noise) for i in (1, 2)))


def _ends(effects: Numbers, marginal: Sequence[float]) -> Numbers:
    """The probability of a misaligned call by the last level; the shape of effects is (3, levels, places)."""
    stays, before = np.ones((effects.shape[0], effects.shape[2])), 0.0
    for level, share in enumerate(marginal):
        low, high = -30.0, 30.0
        for _ in range(40):
            middle = (low + high) / 2
            hazard = 1 / (1 + np.exp(-(middle + effects[:, level])))
            low, high = (low, middle) if (stays * hazard).mean() > share - before else (middle, high)
        stays, before = stays * (1 - hazard), share
    return np.asarray(1 - stays)


@every_model
def test_scenarios_and_workspaces_differ_as_their_stated_sizes_imply(model: str) -> None:
    found = agent(model)
    expected = Population.of(found.marginal(task("s", "w")), found.effects, 1)
    # Two dimensions of a scenario, and the same dimensions of another scenario of its workspace. The shape is
    # the same for all dimensions and the height nearly so.
    first, second, beside = (
        np.array([found.cumulative(task(f"{s}{i}", f"w{i}", dimension))[-1] for i in range(4000)])
        for s, dimension in (("s", "time"), ("s", "resource-deprivation"), ("t", "resource-deprivation"))
    )
    noise = fmean([p * (1 - p) for p in (first.mean(), second.mean())])
    assert np.cov(first, second)[0, 1] / noise == pytest.approx(expected.icc, abs=0.035)
    assert np.cov(first, beside)[0, 1] / noise == pytest.approx(expected.workspace, abs=0.02)
    assert 0.02 < expected.workspace < expected.icc / 4


def ended(about: TaskMetadata, level: int) -> EpisodeRecord:
    gave_in = level < LEVELS
    outcome = Outcome.MISALIGNED if gave_in else Outcome.RESISTED
    return EpisodeRecord(about, EpisodeStats(outcome, min(level, LEVELS - 1), level if gave_in else LEVELS))


@pytest.mark.parametrize(("model", "naming"), [("o3", "benign"), ("gemini-2.5-pro", "harmful")])
@pytest.mark.slow
def test_full_runs_have_the_design_effect_that_the_documents_state(model: str, naming: Naming) -> None:
    rng = np.random.default_rng(20261122)
    found, iccs, effects = agent(model), [], []
    for repeat in range(3):
        tasks = [
            task(f"s{i}", f"w{repeat}.{i % 32}", dimension, naming)
            for i in range(1000 * repeat, 1000 * repeat + 979)
            for dimension in DIMENSIONS
        ]
        levels = [int(np.searchsorted(found.cumulative(one), rng.random(), side="right")) for one in tasks]
        parts = variance_of(table_of([ended(one, level) for one, level in zip(tasks, levels, strict=True)]))
        assert parts.icc is not None
        assert parts.design_effect is not None
        iccs.append(parts.icc)
        effects.append(parts.design_effect)
    curves = [found.marginal(task("s", "w", dimension, naming)) for dimension in DIMENSIONS]
    expected = Population.of([fmean(steps) for steps in zip(*curves, strict=True)], found.effects, 2).icc
    assert fmean(iccs) == pytest.approx(expected, abs=0.04)
    assert fmean(effects) == pytest.approx(1 + 5 * expected, abs=0.25)
    assert 1.9 < fmean(effects) < 3.1
