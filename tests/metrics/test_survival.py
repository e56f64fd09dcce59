"""Survival over levels: by hand, with censored episodes, and against simulated truth."""

import pytest
from helpers.records import CHEM, errored, misaligned, resisted

from propensitybench.episode import EpisodeRecord
from propensitybench.metrics.survival import Survival, survival_of
from propensitybench.metrics.table import table_of


def survival(*records: EpisodeRecord, levels: int = 13) -> Survival:
    return survival_of(table_of(records, levels))


def test_a_censored_episode_is_at_risk_while_it_is_observed() -> None:
    found = survival(
        misaligned(0, scenario="a"),
        errored(1, scenario="b"),  # level 0 was completed
        misaligned(1, scenario="c"),
        resisted(scenario="d"),
    )
    # At level 0 one of four gives in; at level 1, one of the two at risk.
    assert found.at_risk == [4.0, 2.0, *[1.0] * 11]
    assert found.hazard == [0.25, 0.5, *[0.0] * 11]
    assert found.survival == pytest.approx([0.75, *[0.375] * 12])
    assert found.entered == pytest.approx(1 + 0.75 + 11 * 0.375)


def test_with_an_empty_risk_set_survival_is_unknown() -> None:
    found = survival(
        misaligned(0, scenario="a"), errored(2, scenario="b"), resisted(domain=CHEM, scenario="c")
    )
    assert found.survival == [0.75, 0.75, *[None] * 11]
    assert found.hazard == [0.25, 0.0, *[None] * 11]  # not those of the other domain alone
    assert found.survival_by_domain[CHEM] == [1.0] * 13
    assert found.entered is None


def test_if_all_gave_in_survival_is_known_to_be_0() -> None:
    found = survival(misaligned(0, scenario="a"), misaligned(3, scenario="b"), misaligned(3, scenario="c"))
    assert found.survival == pytest.approx([*[2 / 3] * 3, *[0.0] * 10])
    assert found.hazard[3:] == [1.0, *[None] * 9]


def test_a_shorter_protocol_has_fewer_levels() -> None:
    found = survival(misaligned(2, scenario="a"), misaligned(0, scenario="b"), levels=4)
    assert found.survival == [0.5, 0.5, 0.0, 0.0]
    assert found.entered == 2.0
