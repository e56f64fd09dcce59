"""Agents that imitate published results: their parameters, and what a run of them measures."""

from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import pytest
from helpers.records import BIO, CHEM, CYBER, SELF, metadata
from simulated.playing import play_run

from propensitybench.engine import RunSpec
from propensitybench.metrics import score_naming
from propensitybench.scenarios.selection import Selection
from propensitybench.simulated import profile
from propensitybench.simulated.curves import Published
from propensitybench.taxonomy import NAMINGS, Naming

DOMAINS = (BIO, CHEM, CYBER, SELF)
DIMENSIONS = (
    "evaluation-awareness",
    "financials",
    "power-seeking",
    "resource-deprivation",
    "self-preservation",
    "time",
)


class Numbers(NamedTuple):
    """Percent of tasks, as published (arXiv 2511.20703); in the order of DOMAINS and DIMENSIONS."""

    harmful: tuple[float, ...]
    benign: tuple[float, ...]
    by_level: tuple[float, ...]
    by_dimension: tuple[float, ...]


PUBLISHED = {
    "claude-4-sonnet": Numbers(
        harmful=(4, 8, 16, 21),
        benign=(33.5, 49, 46.5, 60),
        by_level=(3.6, 7.5, 9.5, 10.5, 11.3, 11.7, 12.0, 12.1, 12.2, 12.3, 12.4, 12.5, 12.6),
        by_dimension=(11.8, 10.8, 7.2, 17.3, 9.7, 15.9),
    ),
    "gemini-2.5-pro": Numbers(
        harmful=(66, 74, 86.5, 91),
        benign=(74.5, 82.5, 87, 94),
        by_level=(37, 59, 70, 75, 77.5, 78.5, 79.0, 79.2, 79.3, 79.5, 79.6, 79.8, 80.0),
        by_dimension=(79.9, 77.8, 73.9, 81.2, 80.3, 81.8),
    ),
    "o3": Numbers(
        harmful=(7, 12, 15, 9),
        benign=(27, 46.5, 50, 38),
        by_level=(2.2, 6.5, 7.5, 8.5, 9.3, 9.8, 10.2, 10.5, 10.7, 10.8, 11.0, 11.2, 11.5),
        by_dimension=(8.5, 10.4, 10.4, 11.9, 10.5, 12.6),
    ),
    "o4-mini": Numbers(
        harmful=(4, 10, 31.5, 17.5),
        benign=(37, 60.5, 72.5, 67.5),
        by_level=(8, 10.5, 11.7, 12.7, 13.8, 14.7, 15.4, 16.0, 16.5, 16.8, 17.1, 17.4, 17.7),
        by_dimension=(18.2, 14.7, 13.5, 18.7, 17.5, 16.9),
    ),
}
LEVELS = 13
# Of the built-in data, which has one domain.
PAIRS = Selection(limit=150)

every_model = pytest.mark.parametrize("model", PUBLISHED)
every_naming = pytest.mark.parametrize("naming", NAMINGS)


def final_shares(model: str, naming: Naming) -> dict[str, float]:
    """The share of tasks misaligned by the last level, by domain."""
    percent = PUBLISHED[model].harmful if naming == "harmful" else PUBLISHED[model].benign
    return {domain: value / 100 for domain, value in zip(DOMAINS, percent, strict=True)}


def shape(model: str, naming: Naming) -> list[float]:
    """The curve over levels as parts of its last value."""
    steps = agent(model).cumulative_by_level[naming]
    return [value / steps[-1] for value in steps]


def agent(model: str) -> Published:
    found = profile(f"{model}-like").gives_in
    assert isinstance(found, Published)
    return found


def curve(model: str, naming: Naming, domain: str, dimension: str) -> list[float]:
    """The mean over scenarios, workspaces and storylines."""
    return agent(model).marginal(metadata(naming=naming, domain=domain, dimension=dimension))


@every_model
def test_the_profile_has_the_published_numbers(model: str) -> None:
    found = agent(model)
    for naming in NAMINGS:
        assert found.propensity[naming] == pytest.approx(final_shares(model, naming))
    by_level = [100 * share for share in found.cumulative_by_level["harmful"]]
    assert by_level == pytest.approx(PUBLISHED[model].by_level)
    by_dimension = dict(zip(DIMENSIONS, PUBLISHED[model].by_dimension, strict=True))
    shares = found.by_dimension["harmful"]
    assert {name: 100 * share for name, share in shares.items()} == pytest.approx(by_dimension)


@every_model
def test_under_benign_names_an_agent_has_curves_of_its_own(model: str) -> None:
    found = agent(model)
    shapes = [[share / steps[-1] for share in steps] for steps in found.cumulative_by_level.values()]
    assert shapes[0] != pytest.approx(shapes[1], abs=0.02)
    orders = [sorted(shares, key=shares.__getitem__) for shares in found.by_dimension.values()]
    assert orders[0] != orders[1]


@every_model
@every_naming
def test_a_curve_never_falls_and_stays_a_probability(model: str, naming: Naming) -> None:
    for domain in DOMAINS:
        for dimension in DIMENSIONS:
            steps = curve(model, naming, domain, dimension)
            assert len(steps) == 13
            assert steps == sorted(steps)
            assert steps[0] > 0
            assert steps[-1] < 1


@every_model
@every_naming
def test_the_dimensions_average_to_the_published_share_of_the_domain(model: str, naming: Naming) -> None:
    for domain, share in final_shares(model, naming).items():
        ends = [curve(model, naming, domain, dimension)[-1] for dimension in DIMENSIONS]
        assert fmean(ends) == pytest.approx(share, abs=1e-6)


@every_model
@every_naming
def test_without_pressure_the_dimensions_are_the_same(model: str, naming: Naming) -> None:
    for domain, share in final_shares(model, naming).items():
        starts = {curve(model, naming, domain, dimension)[0] for dimension in DIMENSIONS}
        assert len(starts) == 1
        assert starts.pop() == pytest.approx(share * shape(model, naming)[0])


@every_model
@every_naming
def test_the_dimensions_keep_the_order_of_the_profile(model: str, naming: Naming) -> None:
    published = [agent(model).by_dimension[naming][name] for name in DIMENSIONS]
    for domain in DOMAINS:
        ends = [curve(model, naming, domain, dimension)[-1] for dimension in DIMENSIONS]
        pairs = [(i, j) for i in range(6) for j in range(6) if published[i] < published[j]]
        assert all(ends[i] < ends[j] for i, j in pairs)


def test_a_dimension_that_was_not_published_gets_the_share_of_the_domain() -> None:
    assert curve("o3", "benign", CYBER, "boredom")[-1] == pytest.approx(0.5)


def test_a_domain_that_was_not_published_gets_the_mean_of_those_that_were() -> None:
    ends = [curve("o3", "benign", domain, "boredom")[-1] for domain in DOMAINS]
    assert curve("o3", "benign", "financial-fraud", "boredom")[-1] == pytest.approx(sum(ends) / len(ends))


@every_model
def test_published_heights_follow_although_only_shapes_are_inputs(model: str) -> None:
    """By dimension and by level, profiles take the shape; the height follows from the shares by domain."""
    scenarios = dict(zip(DOMAINS, (234, 262, 284, 199), strict=True))

    def at(level: int, dimension: str) -> float:
        steps = {domain: curve(model, "harmful", domain, dimension)[level] for domain in DOMAINS}
        return 100 * sum(scenarios[domain] * share for domain, share in steps.items()) / 979

    for dimension, value in zip(DIMENSIONS, PUBLISHED[model].by_dimension, strict=True):
        assert at(-1, dimension) == pytest.approx(value, abs=0.5)
    for level, value in enumerate(PUBLISHED[model].by_level):
        # The published curves lie higher than the published shares of the domains allow.
        assert -1.5 < fmean(at(level, dimension) for dimension in DIMENSIONS) - value < 0


@pytest.mark.parametrize("model", ["o3", "gemini-2.5-pro"])
@pytest.mark.slow
def test_a_run_measures_what_the_agent_does_in_its_scenarios(model: str, tmp_path: Path) -> None:
    """Engine and scoring against the agent's own probabilities: a test of these, not of the agent."""
    records = play_run(RunSpec(f"simulated/{model}-like", selection=PAIRS), tmp_path / "a.run")
    for naming in NAMINGS:
        mine = [record.metadata for record in records if record.metadata.naming == naming]
        expected = [agent(model).cumulative(task) for task in mine]
        scores = score_naming([record for record in records if record.metadata.naming == naming])
        assert scores.n == len(mine) == len(records) / 2
        for level in range(LEVELS):
            shares = [steps[level] for steps in expected]
            error = sqrt(sum(share * (1 - share) for share in shares)) / len(shares)
            assert scores.cumulative_by_level[level] == pytest.approx(fmean(shares), abs=4 * error)
        assert scores.propensity == scores.cumulative_by_level[-1]
