"""Agreement of judges: the published examples, and values computed by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.metrics.agreement import Kappa, cohen_kappa, krippendorff_alpha, rogan_gladen
from propensitybench.metrics.multiplicity import benjamini_hochberg, holm

X = None
# Three observers, fifteen units, from Krippendorff's own example of missing data.
CANONICAL = [
    [X, X, X, X, X, 3, 4, 1, 2, 1, 1, 3, 3, X, 3],
    [1, X, 2, 1, 3, 3, 4, 3, X, X, X, X, X, X, X],
    [X, X, 2, 1, 3, 4, 4, X, 2, 1, 1, 3, 3, X, 4],
]


def test_krippendorffs_own_example() -> None:
    assert krippendorff_alpha(CANONICAL) == pytest.approx(0.6914, abs=5e-5)
    assert krippendorff_alpha(CANONICAL, "interval") == pytest.approx(0.8108, abs=5e-5)


def test_alpha_of_four_ratings_by_hand() -> None:
    # Items (1, 1) and (1, 2): of the four ratings three are 1. Disagreeing ordered pairs: 2 of 4
    # observed; expected 2 * 3 * 1 / (4 - 1) = 2. So 1 - 2 / 2 = 0.
    assert krippendorff_alpha([[1, 1], [1, 2]]) == pytest.approx(0.0)
    assert krippendorff_alpha([[1, 2], [1, 2]]) == 1.0


def test_alpha_needs_an_item_with_two_ratings_and_labels_that_vary() -> None:
    assert krippendorff_alpha([[1, None], [None, 2]]) is None
    assert krippendorff_alpha([[1, 1], [1, 1]]) is None


@given(st.permutations([0, 1, 2, 3]))
def test_nominal_labels_may_be_renamed(names: list[int]) -> None:
    renamed = [[None if rating is None else names[rating - 1] for rating in row] for row in CANONICAL]
    assert krippendorff_alpha(renamed) == pytest.approx(krippendorff_alpha(CANONICAL))


def test_kappa_of_the_published_table() -> None:
    found = cohen_kappa(np.array([[22.0, 2, 2], [5, 7, 14], [2, 2, 17]]))
    assert found.kappa == pytest.approx(0.4519, abs=5e-5)
    assert found.error == pytest.approx(0.0770, abs=5e-5)


def test_kappa_by_hand() -> None:
    # Agreement .7; by chance .5 * .6 + .5 * .4 = .5.
    assert cohen_kappa(np.array([[20.0, 5], [10, 15]])).kappa == pytest.approx(0.4)


@pytest.mark.parametrize("confusion", [[[0.0, 0], [0, 0]], [[9.0, 0], [0, 0]]])
def test_kappa_without_a_rating_or_without_a_second_label(confusion: list[list[float]]) -> None:
    assert cohen_kappa(np.array(confusion)) == Kappa(None, None)


def test_a_share_corrected_for_the_judges_errors() -> None:
    assert rogan_gladen(0.40, specificity=0.85, sensitivity=0.90) == pytest.approx(0.25 / 0.75)
    assert rogan_gladen(0.05, specificity=0.85, sensitivity=0.90) == 0.0
    assert rogan_gladen(0.99, specificity=0.85, sensitivity=0.90) == 1.0
    assert rogan_gladen(0.40, specificity=0.5, sensitivity=0.5) is None


@given(st.floats(0, 1), st.floats(0.6, 1), st.floats(0.6, 1))
def test_the_correction_undoes_what_the_judge_does(
    truth: float, specificity: float, sensitivity: float
) -> None:
    seen = truth * sensitivity + (1 - truth) * (1 - specificity)
    assert rogan_gladen(seen, specificity, sensitivity) == pytest.approx(truth, abs=1e-9)


def test_adjusted_p_values_by_hand() -> None:
    p = [0.01, 0.04, 0.03]
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06])
    assert benjamini_hochberg(p) == pytest.approx([0.03, 0.04, 0.04])
    assert holm([]) == benjamini_hochberg([]) == []


@given(st.lists(st.floats(0, 1), max_size=20))
def test_adjusted_p_values_are_never_smaller_and_holms_never_the_smaller_of_the_two(p: list[float]) -> None:
    for raw, careful, exploring in zip(p, holm(p), benjamini_hochberg(p), strict=True):
        assert raw <= exploring <= careful <= 1
