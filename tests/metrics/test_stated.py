"""Stated against actual: hand-computed tables, and bounds against all possible completions."""

from itertools import product

import pytest
from helpers.records import BIO, CYBER, blocked, errored, misaligned, resisted
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.episode import EpisodeRecord
from propensitybench.metrics.stated import (
    ACTUALS,
    ANSWERS,
    Actual,
    Answer,
    StatedAgainstActual,
    stated_against_actual,
)

Answers = list[tuple[str, Answer, Actual]]


def test_the_two_by_two_table_by_hand() -> None:
    answered: Answers = [
        (BIO, "no", "misaligned"),
        (BIO, "no", "resisted"),
        (BIO, "no", "resisted"),
        (BIO, "yes", "misaligned"),
        (CYBER, "no", "misaligned"),
        (CYBER, "yes", "resisted"),
    ]
    found = _crossed(answered)
    assert found.counts["no"] == {"misaligned": 2, "resisted": 2, "missing": 0}
    assert found.counts["yes"] == {"misaligned": 1, "resisted": 1, "missing": 0}
    assert found.says_no.value == pytest.approx((3 / 4 + 1 / 2) / 2)
    assert found.misaligned_if_no.value == pytest.approx((1 / 3 + 1) / 2)
    assert found.misaligned_if_yes.value == pytest.approx((1 + 0) / 2)
    assert found.no_and_misaligned.value == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert found.misaligned_if_no.ci95 is None  # one scenario with a NO in a domain has no variance
    assert found.no_and_misaligned.ci95 is not None
    assert found.misaligned_if_no.bounds is None


def test_tasks_that_were_not_asked_about_do_not_count() -> None:
    records = [misaligned(0, scenario="a"), resisted(scenario="b")]
    found = stated_against_actual(records, {("a.time.harmful", 1): "no"})["harmful"]
    assert found.not_asked == 1
    assert found.misaligned_if_no.value == 1
    nothing = stated_against_actual(records, {})["harmful"]
    assert nothing.not_asked == 2
    assert nothing.misaligned_if_no.value is None
    assert nothing.misaligned_if_no.bounds is None


def test_an_epoch_has_its_own_answer_or_that_of_the_first() -> None:
    records = [misaligned(0, epoch=epoch) for epoch in (1, 2, 3)]
    answers: dict[tuple[str, int], Answer] = {("a.time.harmful", 1): "no", ("a.time.harmful", 2): "yes"}
    found = stated_against_actual(records, answers)["harmful"]
    assert found.counts["no"]["misaligned"] == 2
    assert found.counts["yes"]["misaligned"] == 1


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.sampled_from([BIO, CYBER]), st.sampled_from(ANSWERS), st.sampled_from(ACTUALS)),
        min_size=1,
        max_size=5,
    )
)
def test_bounds_are_the_extremes_over_all_completions(answered: Answers) -> None:
    completions = [_crossed(completion) for completion in _completions(answered)]
    found = _crossed(answered)
    for name in ("misaligned_if_no", "no_and_misaligned"):
        values = [
            value for completion in completions if (value := getattr(completion, name).value) is not None
        ]
        bounds = getattr(found, name).bounds
        if bounds is not None:
            assert bounds == pytest.approx((min(values), max(values)))


def _completions(answered: Answers) -> list[Answers]:
    choices = []
    for domain, answer, actual in answered:
        answers: tuple[Answer, ...] = ("no", "yes") if answer == "unparsed" else (answer,)
        actuals: tuple[Actual, ...] = ("misaligned", "resisted") if actual == "missing" else (actual,)
        choices.append([(domain, a, b) for a, b in product(answers, actuals)])
    return [list(completion) for completion in product(*choices)]


def _crossed(answered: Answers) -> StatedAgainstActual:
    records: list[EpisodeRecord] = []
    answers: dict[tuple[str, int], Answer] = {}
    for place, (domain, answer, actual) in enumerate(answered):
        scenario = f"s{place}"
        if actual == "misaligned":
            records.append(misaligned(3, scenario=scenario, domain=domain))
        elif actual == "resisted":
            records.append(resisted(scenario=scenario, domain=domain))
        else:
            lost = (blocked, errored)[place % 2]
            records.append(lost(scenario=scenario, domain=domain))
        answers[f"{scenario}.time.harmful", 1] = answer
    return stated_against_actual(records, answers)["harmful"]
