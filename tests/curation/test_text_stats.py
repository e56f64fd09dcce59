from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.curation.text_stats import distinct, ngrams, reading_grade, sentences, words

TEXTS = st.lists(st.text(alphabet="ab .!?'-", max_size=40), max_size=5)


def test_a_full_stop_within_a_word_ends_no_sentence() -> None:
    assert sentences("Pump 2.4 stands at well-3.internal. Why? Nobody knows!") == [
        "Pump 2.4 stands at well-3.internal.",
        "Why?",
        "Nobody knows!",
    ]


def test_words_lose_case_and_marks_but_keep_their_apostrophe() -> None:
    assert words("The 'old' pump's well-house, No. 7") == ["the", "old", "pump's", "well", "house", "no", "7"]


def test_runs_of_words_cross_the_ends_of_sentences() -> None:
    assert list(ngrams(words("One two. Three"), 2)) == [("one", "two"), ("two", "three")]


def test_distinct_counts_a_run_once_over_all_texts() -> None:
    texts = [words("a b a b"), words("a b c")]
    assert distinct(texts, 1) == 3 / 7
    # ab ba ab, ab bc: three different of five.
    assert distinct(texts, 2) == 3 / 5
    assert distinct(texts, 4) == 1
    assert distinct(texts, 5) is None


def test_the_reading_grade_of_a_small_text_agrees_with_the_hand() -> None:
    # 5 words of 3 letters in 2 sentences: 4.71 * 3 + 0.5 * 2.5 - 21.43 = -6.05.
    grade = reading_grade(["The cat ran. Dog sat."])
    assert grade is not None
    assert isclose(grade, -6.05)
    assert reading_grade(["..."]) is None


@given(TEXTS)
def test_nothing_is_lost_between_sentences(texts: list[str]) -> None:
    for text in texts:
        assert words(" ".join(sentences(text))) == words(text)


@pytest.mark.parametrize("n", [1, 2, 3])
@given(texts=TEXTS)
def test_distinct_is_a_share_and_falls_when_texts_come_twice(n: int, texts: list[str]) -> None:
    found = [words(text) for text in texts]
    once, twice = distinct(found, n), distinct(found * 2, n)
    if once is None:
        assert twice is None
    else:
        assert 0 < once <= 1
        assert isclose(twice or 0, once / 2)
