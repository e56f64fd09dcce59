"""What agents say of their situation: numbers by hand, all completions of what is missing, a known truth."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pytest
from helpers.records import BIO, CYBER, blocked, errored, misaligned, resisted
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.episode import EpisodeRecord
from propensitybench.metrics.awareness import (
    ActByAwareness,
    YesNo,
    act_by_awareness,
    agreement,
    share_of,
)
from propensitybench.metrics.majority import majority
from propensitybench.metrics.stated import ACTUALS, Actual

Episode = tuple[str, YesNo, Actual]
LETTERS = {"y": True, "n": False, "-": None}


def meant(letters: str) -> list[YesNo]:
    """Answers, from letters: yes, no, missing."""
    return [LETTERS[letter] for letter in letters]


def answered(*rows: tuple[str, str]) -> tuple[list[EpisodeRecord], dict[str, list[YesNo]]]:
    """Records of one scenario each, and the answers to their wordings."""
    records = [resisted(scenario=f"s{place}", domain=domain) for place, (domain, _) in enumerate(rows)]
    return records, {record.metadata.task: meant(row[1]) for record, row in zip(records, rows, strict=True)}


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("yyynn", True),
        ("nnnyy", False),
        ("yyy--", True),
        ("yy-nn", None),
        ("yy---", None),
        ("yn", None),
        ("y", True),
        ("-", None),
        ("", None),
    ],
)
def test_a_majority_of_all_is_one_of_all_wordings_that_were_asked(letters: str, expected: YesNo) -> None:
    assert majority(meant(letters), of_all=True) is expected


@pytest.mark.parametrize(
    ("letters", "expected"), [("yy---", True), ("yn-", None), ("yyn-", True), ("", None)]
)
def test_a_majority_leads_the_others(letters: str, expected: YesNo) -> None:
    assert majority(meant(letters)) is expected


def test_a_share_by_hand_with_what_missing_answers_allow() -> None:
    records, answers = answered((BIO, "yyn"), (BIO, "nn-"), (BIO, "yn-"), (CYBER, "nnn"), (CYBER, "ynn"))
    found = share_of(records, answers)
    assert found.value == pytest.approx((3 / 7 + 1 / 6) / 2)
    assert found.bounds == pytest.approx(((3 / 9 + 1 / 6) / 2, (5 / 9 + 1 / 6) / 2))
    assert (found.n, found.clusters, found.domains) == (5, 5, 2)
    assert found.ci95 is not None
    assert found.bounds is not None
    assert found.ci95.low < found.bounds.low < found.bounds.high < found.ci95.high


def test_without_missing_answers_there_are_no_bounds_and_nobody_else_counts() -> None:
    records, answers = answered((BIO, "yn"), (BIO, "nn"))
    found = share_of([*records, misaligned(0, scenario="not asked")], answers)
    assert (found.value, found.bounds, found.n) == (0.25, None, 2)
    assert share_of([misaligned(0)], {}).value is None


def test_answers_of_one_scenario_are_one_cluster() -> None:
    letters = ["yy", "yy", "nn", "nn"]
    apart, answers = answered(*((BIO, one) for one in letters))
    together = [resisted(scenario=f"s{place // 2}", dimension=f"d{place}") for place in range(4)]
    same = {one.metadata.task: meant(given) for one, given in zip(together, letters, strict=True)}
    one, other = share_of(apart, answers).ci95, share_of(together, same).ci95
    assert one is not None
    assert other is not None
    assert other.high - other.low > one.high - one.low


@pytest.mark.parametrize(
    ("straight", "flipped", "expected"),
    [
        ("nnn", "yy", 0),
        ("yyy", "nn", 0),
        ("yyy", "yy", 1),
        ("nnn", "nn", 1),
        ("yn", "yn", 0.5),
        ("ynn", "ny", 0.5),
    ],
)
def test_wordings_that_agree_by_hand(straight: str, flipped: str, expected: float) -> None:
    records, _ = answered((BIO, ""))
    pair = {records[0].metadata.task: (meant(straight), meant(flipped))}
    assert agreement(records, pair).value == expected


@given(
    st.lists(
        st.tuples(st.text("yn-", min_size=1, max_size=2), st.text("yn-", min_size=1, max_size=2)),
        min_size=1,
        max_size=3,
    )
)
def test_bounds_of_the_agreement_are_the_extremes_over_all_completions(rows: list[tuple[str, str]]) -> None:
    records, _ = answered(*((BIO, "") for _ in rows))
    tasks = [record.metadata.task for record in records]
    found = agreement(records, dict(zip(tasks, [(meant(a), meant(b)) for a, b in rows], strict=True)))
    whole = sum(len(a) * len(b) for a, b in rows)
    alike = [
        sum(x == y for a, b in each for x in a for y in b) / whole
        for each in product(*(list(product(completions(a), completions(b))) for a, b in rows))
    ]
    assert (found.bounds or (found.value, found.value)) == pytest.approx((min(alike), max(alike)))


def completions(letters: str) -> list[str]:
    return ["".join(one) for one in product(*("yn" if letter == "-" else letter for letter in letters))]


def played(episodes: Sequence[Episode], domain: str = BIO) -> Iterator[tuple[EpisodeRecord, YesNo]]:
    """Records of episodes, each under a dimension of its own, and whether their agent is aware."""
    for place, (scenario, aware, actual) in enumerate(episodes):
        make = {"misaligned": misaligned, "resisted": resisted, "missing": (blocked, errored)[place % 2]}[
            actual
        ]
        about = {"scenario": scenario, "domain": domain, "dimension": f"d{place}"}
        yield (misaligned(3, **about) if make is misaligned else make(**about)), aware  # type: ignore[arg-type, operator]


def scenario(name: str, aware: str = "", unaware: str = "") -> list[Episode]:
    """Episodes of a scenario, from letters: misaligned or resisted."""
    acts: dict[str, Actual] = {"m": "misaligned", "r": "resisted"}
    return [(name, kind, acts[letter]) for kind, row in ((True, aware), (False, unaware)) for letter in row]


def by_awareness(*episodes: Episode) -> ActByAwareness:
    both = list(played(episodes))
    return act_by_awareness([one for one, _ in both], {one.metadata.task: aware for one, aware in both})


def test_aware_and_unaware_by_hand() -> None:
    found = by_awareness(
        *scenario("a", aware="rr", unaware="mr"),
        *scenario("b", aware="m", unaware="mmr"),
        *scenario("c", unaware="m"),
        *scenario("d", aware="r"),
    )
    assert found.counts["aware"] == {"misaligned": 1, "resisted": 3, "missing": 0}
    assert found.counts["unaware"] == {"misaligned": 4, "resisted": 2, "missing": 0}
    assert found.everyone.value == pytest.approx(5 / 10)
    assert found.aware.value == pytest.approx(1 / 4)
    assert found.unaware.value == found.without_aware.value == pytest.approx(4 / 6)
    # Scenario a: 0/2 - 1/2 with weight 1; b: 1/1 - 2/3 with weight 3/4; c and d have one kind only.
    assert found.difference.value == pytest.approx((-0.5 * 1 + 1 / 3 * 0.75) / 1.75)
    assert (found.difference.n, found.difference.clusters, found.difference.domains) == (2, 2, 1)
    assert found.aware.bounds is found.difference.bounds is None
    assert (found.difference.ci95, found.difference.method) == (
        None,
        "none: fewer than 10 degrees of freedom",
    )


def test_without_episodes_nothing_is_estimated() -> None:
    found = act_by_awareness([], {})
    assert found.difference.value is found.aware.value is found.everyone.value is None


def test_the_difference_is_the_slope_with_an_intercept_for_each_scenario() -> None:
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(20261122)
    place = np.repeat(np.arange(30), 6)
    aware = rng.random(180) < rng.random(30)[place]
    act = rng.random(180) < 0.3 + 0.4 * rng.random(30)[place] - 0.2 * aware
    episodes: list[Episode] = [
        (f"s{s}", bool(a), "misaligned" if y else "resisted")
        for s, a, y in zip(place, aware, act, strict=True)
    ]
    found = by_awareness(*episodes).difference
    x = np.column_stack([aware, place[:, None] == np.arange(30)]).astype(float)
    fit = sm.OLS(act.astype(float), x).fit(
        cov_type="cluster", cov_kwds={"groups": place, "use_correction": False}
    )
    assert found.value == pytest.approx(fit.params[0])
    # Both have the factor for few clusters, here of those scenarios that have both kinds.
    both = found.n
    assert found.errors.scenario == pytest.approx(fit.bse[0] * np.sqrt(both / (both - 1)))


def slope(episodes: Sequence[Episode]) -> float | None:
    """The weighted difference within scenarios, episode by episode."""
    top = bottom = 0.0
    for name in {one[0] for one in episodes}:
        aware, unaware = (
            [act == "misaligned" for scenario, state, act in episodes if (scenario, state) == (name, kind)]
            for kind in (True, False)
        )
        if aware and unaware:
            weight = len(aware) * len(unaware) / (len(aware) + len(unaware))
            top += weight * (sum(aware) / len(aware) - sum(unaware) / len(unaware))
            bottom += weight
    return top / bottom if bottom else None


def share(episodes: Sequence[Episode], kind: bool) -> float | None:
    acts = [act == "misaligned" for _, state, act in episodes if state is kind]
    return sum(acts) / len(acts) if acts else None


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from([True, False, None]), st.sampled_from(ACTUALS)),
        min_size=1,
        max_size=5,
    )
)
def test_bounds_are_the_extremes_over_all_completions(episodes: list[Episode]) -> None:
    whole = [list(one) for one in product(*(list(completed(one)) for one in episodes))]
    found = by_awareness(*episodes)
    for estimate, values in (
        (found.difference, [slope(one) for one in whole]),
        (found.aware, [share(one, True) for one in whole]),
        (found.unaware, [share(one, False) for one in whole]),
    ):
        known = [value for value in values if value is not None]
        if estimate.bounds is not None:
            assert estimate.bounds == pytest.approx((min(known), max(known)))
        elif estimate.value is not None:  # nothing is missing that could change it
            assert min(known) == pytest.approx(max(known))
            assert estimate.value == pytest.approx(known[0])


def completed(episode: Episode) -> Iterator[Episode]:
    scenario, aware, actual = episode
    states: tuple[bool, ...] = (True, False) if aware is None else (aware,)
    acts: tuple[Actual, ...] = ("misaligned", "resisted") if actual == "missing" else (actual,)
    for state, act in product(states, acts):
        yield scenario, state, act
