from collections import Counter
from math import log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.curation.similarity import BLOCK, near_duplicates

WORDS = st.lists(st.sampled_from(["pump", "loom", "well", "school", "river", "2"]), max_size=6)


def cosine_by_hand(texts: list[str], first: int, second: int) -> float:
    """The same number, from the definition and without a matrix."""
    bags = [Counter(text.split()) for text in texts]
    idf = {
        word: log((1 + len(texts)) / (1 + sum(word in bag for bag in bags))) + 1
        for bag in bags
        for word in bag
    }
    one, two = bags[first], bags[second]
    product = sum(one[word] * two[word] * idf[word] ** 2 for word in one)
    lengths = [sqrt(sum((bag[word] * idf[word]) ** 2 for word in bag)) for bag in (one, two)]
    return product / (lengths[0] * lengths[1]) if product else 0.0


def test_a_small_case_agrees_with_the_hand() -> None:
    # Two texts share one word of two: idf(shared) = ln(3/3) + 1 = 1, idf(own) = ln(3/2) + 1 = 1.4055,
    # so the cosine is 1 / (1 + 1.4055 ** 2) = 0.3361.
    (pair,) = near_duplicates(["well pump", "well loom"], 0.3)
    assert (pair.first, pair.second) == (0, 1)
    assert pair.cosine == pytest.approx(0.3361, abs=5e-5)
    assert list(near_duplicates(["well pump", "well loom"], 0.34)) == []


def test_no_text_one_text_and_empty_texts_have_no_duplicates() -> None:
    assert list(near_duplicates([], 0.5)) == []
    assert list(near_duplicates(["alone"], 0.5)) == []
    assert list(near_duplicates(["", "...", ""], 0.5)) == []


def test_duplicates_are_found_across_blocks_of_rows() -> None:
    texts = [f"word{number} term{number}" for number in range(BLOCK + 90)]
    texts[BLOCK + 70] = texts[3]
    texts[BLOCK + 80] = texts[BLOCK + 1]
    found = [(pair.first, pair.second) for pair in near_duplicates(texts, 0.8)]
    assert found == [(3, BLOCK + 70), (BLOCK + 1, BLOCK + 80)]


@given(st.lists(WORDS.map(" ".join), max_size=7), st.floats(0.05, 0.95))
def test_pairs_are_those_that_the_definition_gives(texts: list[str], threshold: float) -> None:
    found = {(pair.first, pair.second): pair.cosine for pair in near_duplicates(texts, threshold)}
    for second in range(len(texts)):
        for first in range(second):
            cosine = cosine_by_hand(texts, first, second)
            if (first, second) in found:
                assert found[first, second] == pytest.approx(cosine)
            else:
                assert cosine < threshold + 1e-9
    assert all(first < second for first, second in found)
