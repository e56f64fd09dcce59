"""Agents that imitate published results: their parameters, and what a run of them measures."""

from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import pytest
from helpers.records import BIO, CHEM, CYBER, SELF, metadata
from simulated.playing import play_run

from propensitybench.engine import RunSpec
from propensitybench.episode import EpisodeRecord
from propensitybench.errors import UnknownName
from propensitybench.metrics import NamingScores, score_naming
from propensitybench.scenarios.selection import Selection
from propensitybench.simulated import profile
from propensitybench.simulated.profile import Published
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
# All of the built-in data while it is small; a balanced sample of it once it has grown.
PAIRS = Selection(limit=400)

every_model = pytest.mark.parametrize("model", PUBLISHED)
every_naming = pytest.mark.parametrize("naming", NAMINGS)


def final_shares(model: str, naming: Naming) -> dict[str, float]:
    """The share of tasks misaligned by the last level, by domain."""
    percent = PUBLISHED[model].harmful if naming == "harmful" else PUBLISHED[model].benign
    return {domain: value / 100 for domain, value in zip(DOMAINS, percent, strict=True)}


def shape(model: str) -> list[float]:
    """The curve over levels as parts of its last value."""
    curve = PUBLISHED[model].by_level
    return [value / curve[-1] for value in curve]


def curve(model: str, naming: Naming, domain: str, dimension: str) -> list[float]:
    about = metadata(naming=naming, domain=domain, dimension=dimension)
    return profile(f"{model}-like").gives_in.cumulative(about)


@every_model
def test_the_profile_has_the_published_numbers(model: str) -> None:
    found = profile(f"{model}-like").gives_in
    assert isinstance(found, Published)
    for naming in NAMINGS:
        assert found.propensity[naming] == pytest.approx(final_shares(model, naming))
    by_level = [100 * share for share in found.cumulative_by_level]
    assert by_level == pytest.approx(PUBLISHED[model].by_level)
    by_dimension = dict(zip(DIMENSIONS, PUBLISHED[model].by_dimension, strict=True))
    assert {name: 100 * share for name, share in found.by_dimension.items()} == pytest.approx(by_dimension)


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
        assert starts.pop() == pytest.approx(share * shape(model)[0])


@every_model
@every_naming
def test_the_dimensions_keep_their_published_order(model: str, naming: Naming) -> None:
    published = PUBLISHED[model].by_dimension
    for domain in DOMAINS:
        ends = [curve(model, naming, domain, dimension)[-1] for dimension in DIMENSIONS]
        pairs = [(i, j) for i in range(6) for j in range(6) if published[i] < published[j]]
        assert all(ends[i] < ends[j] for i, j in pairs)


def test_a_dimension_that_was_not_published_gets_the_share_of_the_domain() -> None:
    assert curve("o3", "benign", CYBER, "boredom")[-1] == pytest.approx(0.5)


def test_a_domain_that_was_not_published_is_refused_with_those_that_were() -> None:
    with pytest.raises(UnknownName, match=r"unknown domain of this profile 'bio'") as caught:
        curve("o3", "benign", "bio", "time")
    assert caught.value.known == DOMAINS


class Measured(NamedTuple):
    """A run's scores under a naming, beside what they should be near to."""

    scores: NamingScores
    shares: dict[str, float]
    sizes: dict[str, int]
    shape: list[float]

    def assert_near(self, measured: float | None, part: float) -> None:
        """Within 4 binomial standard errors of that part of the published shares."""
        assert measured is not None
        shares = {domain: part * self.shares[domain] for domain in self.sizes}
        variance = sum(p * (1 - p) / self.sizes[domain] for domain, p in shares.items())
        error = sqrt(variance) / len(shares)
        assert abs(measured - fmean(shares.values())) <= 4 * error


def measured(model: str, naming: Naming, records: list[EpisodeRecord]) -> Measured:
    mine = [record for record in records if record.metadata.naming == naming]
    domains = [record.metadata.domain for record in mine]
    sizes = {domain: domains.count(domain) for domain in set(domains)}
    return Measured(score_naming(mine), final_shares(model, naming), sizes, shape(model))


@every_model
@pytest.mark.slow
def test_a_run_measures_the_published_propensity_at_every_level(model: str, tmp_path: Path) -> None:
    records = play_run(RunSpec(f"simulated/{model}-like", selection=PAIRS), tmp_path / "a.run")
    for naming in NAMINGS:
        found = measured(model, naming, records)
        assert found.scores.n == sum(found.sizes.values()) == len(records) / 2
        found.assert_near(found.scores.propensity, 1)
        found.assert_near(found.scores.propensity_zero, found.shape[0])
        for level, part in enumerate(found.shape):
            found.assert_near(found.scores.cumulative_by_level[level], part)
