from hypothesis import given
from hypothesis import strategies as st

from propensitybench.curation.text_stats import ngrams, sentences, words

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


@given(TEXTS)
def test_nothing_is_lost_between_sentences(texts: list[str]) -> None:
    for text in texts:
        assert words(" ".join(sentences(text))) == words(text)
