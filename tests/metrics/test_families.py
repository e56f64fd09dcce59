"""Families of contrasts: which there are, their size, and their p-values."""

import numpy as np
import pytest
from helpers.records import BIO, CHEM, errored, misaligned, resisted
from scipy.stats import t as student

from propensitybench.metrics.families import (
    Comparison,
    Family,
    capability_family,
    dimension_family,
    naming_family,
)
from propensitybench.metrics.multiplicity import benjamini_hochberg, holm
from propensitybench.metrics.table import table_of
from validation.populations import Agent, Layout, full_layout, play, table_of_levels

LAYOUT = full_layout()


def named(family: Family) -> dict[str, Comparison]:
    return {found.name: found for found in family.comparisons}


def test_a_full_run_has_all_planned_contrasts() -> None:
    rng = np.random.default_rng(0)
    harmful, benign = (table_of_levels(play(Agent(-2, -3), LAYOUT, rng, 1), LAYOUT) for _ in range(2))
    for family in (capability_family(harmful), dimension_family(harmful), naming_family(harmful, benign)):
        assert len(family.comparisons) == family.planned
        p = [found.p for found in family.comparisons]
        assert [found.p_holm for found in family.comparisons] == holm(p)
        assert [found.p_bh for found in family.comparisons] == benjamini_hochberg(p)
        for found in family.comparisons:
            assert found.ci95 is not None
            assert found.ci95.low <= found.difference <= found.ci95.high


def test_a_capability_is_compared_with_the_rest_of_its_own_domain_only() -> None:
    records = [misaligned(1, scenario=f"a{i}", capability="A") for i in range(4)]
    records += [resisted(scenario=f"b{i}", capability="B") for i in range(2)]
    records += [misaligned(1, scenario=f"c{i}") for i in range(2)]  # of no capability, but of the domain
    records += [misaligned(1, scenario=f"x{i}", capability="X", domain=CHEM) for i in range(3)]
    found = named(capability_family(table_of(records)))
    # X has nothing to be compared with.
    assert found.keys() == {"A", "B"}
    assert found["A"].difference == pytest.approx(1 - 2 / 4)
    assert found["B"].difference == pytest.approx(0 - 1)
    assert found["A"].clusters == 8


def test_the_interval_of_a_capability_by_hand() -> None:
    records = [misaligned(1, scenario=f"a{i}", capability="A") for i in range(2)]
    records += [resisted(scenario=f"a{i}", capability="A") for i in range(2, 4)]
    records += [misaligned(1, scenario=f"b{i}", capability="B") for i in range(2)]
    records += [resisted(scenario=f"b{i}", capability="B") for i in range(2, 8)]
    found = named(capability_family(table_of(records)))["A"]
    # A: p = 1/2, 4 scenarios: (4/3) (4 * 1/4) / 16 = 1/12. B: 1/4, 8: (8/7) (8 * 3/16) / 64 = 3/112.
    # Whole: 1/3, 12: (12/11) (12 * 2/9) / 144 = 2/99, for 8 of 12 scenarios 3/99 > 3/112.
    half = student.ppf(0.975, 3) * np.sqrt(1 / 12 + 3 / 99)
    assert found.difference == pytest.approx(0.25)
    assert found.ci95 == pytest.approx((0.25 - half, 1.0))  # no difference beyond 1


def test_a_capability_that_was_never_given_in_to_is_not_certain() -> None:
    records = [resisted(scenario=f"a{i}", capability="A") for i in range(6)]
    records += [
        misaligned(1, scenario=f"b{i}", capability="B")
        if i < 3
        else resisted(scenario=f"b{i}", capability="B")
        for i in range(60)
    ]
    found = named(capability_family(table_of(records)))["A"]
    assert found.difference == pytest.approx(-0.05)
    assert found.ci95 is not None
    assert found.ci95.low < -0.1
    assert found.ci95.high > 0
    assert found.p > 0.5


def test_dimensions_are_compared_on_scenarios_run_under_both() -> None:
    records = [misaligned(1, scenario=name, dimension="time") for name in "abc"]
    records += [resisted(scenario=name, dimension="financials") for name in "abd"]
    records += [errored(scenario="c", dimension="financials")]
    found = named(dimension_family(table_of(records)))
    assert found.keys() == {"time - financials"}
    assert found["time - financials"].difference == 1.0
    assert found["time - financials"].clusters == 3


def test_where_all_differ_alike_p_is_small_with_the_number_of_scenarios_and_there_is_no_interval() -> None:
    def of(count: int) -> Comparison:
        names = [f"s{i}" for i in range(count)]
        records = [misaligned(1, scenario=name, dimension="time") for name in names]
        records += [resisted(scenario=name, dimension="financials") for name in names]
        return dimension_family(table_of(records)).comparisons[0]

    assert (of(2).p, of(6).p) == (1 / 2, 1 / 32)
    assert of(6).ci95 is None


def test_the_paired_test_by_hand() -> None:
    harmful = table_of([resisted(scenario=name) for name in "abcd"])
    benign = table_of([misaligned(1, scenario="a"), *(resisted(scenario=name) for name in "bcd")])
    found = named(naming_family(harmful, benign))["time"]
    # Differences 1, 0, 0, 0: mean 1/4 and error 1/4, so t = 1 with 3 degrees of freedom.
    assert found.difference == 0.25
    assert found.p == pytest.approx(2 * student.sf(1, 3))
    assert found.ci95 == pytest.approx((0.25 - student.ppf(0.975, 3) / 4, 1.0))  # no difference beyond 1


@pytest.mark.slow
def test_false_claims_in_a_family_of_capabilities_are_rare() -> None:
    rng = np.random.default_rng(5)
    layout = Layout(np.full(130, BIO), np.full(130, "w"), np.array([f"c{i // 13}" for i in range(130)]))
    claims = []
    for _ in range(60):
        family = capability_family(table_of_levels(play(Agent(-6.0, -7.0), layout, rng, 2), layout))
        claims.append(any(found.p_holm <= 0.05 for found in family.comparisons))
    assert np.mean(claims) <= 0.15
