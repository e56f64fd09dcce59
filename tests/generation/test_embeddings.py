"""Near-duplicates in other words are found by embeddings."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from helpers.scenario_data import built_in_sample
from model2vec import StaticModel
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace

from propensitybench.curation.cross_checks import alike_stories, story
from propensitybench.curation.similarity import FUNCTION_WORDS
from propensitybench.errors import BadInput
from propensitybench.generation.embeddings import Embedder, alike_in_meaning
from propensitybench.scenarios.issues import Located
from propensitybench.scenarios.model import Scenario

WORD = re.compile(r"[a-z]+")


def words_of(scenarios: Sequence[Scenario]) -> list[str]:
    found = {word for one in scenarios for word in WORD.findall(story(one).lower())}
    return sorted(found - FUNCTION_WORDS)


def abroad(text: str) -> str:
    """The text with other words of the same meaning."""
    return WORD.sub(lambda match: match[0] if match[0] in FUNCTION_WORDS else f"{match[0]}ung", text.lower())


def save_model(folder: Path, words: Sequence[str]) -> None:
    """A model that knows these words, and the ones that `abroad` makes of them, by the same vectors.

    As in real models, all vectors have much in common.
    """
    rng = np.random.default_rng(3)
    meanings = (rng.normal(size=(len(words), 64)) + 1).astype(np.float32)
    names = ["[UNK]", *words, *(f"{word}ung" for word in words)]
    vectors = np.concatenate([np.zeros((1, 64), np.float32), meanings, meanings])
    tokenizer = Tokenizer(WordLevel({name: index for index, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    StaticModel(vectors, tokenizer).save_pretrained(folder)


def located(scenarios: Sequence[Scenario]) -> list[Located]:
    return [Located(one, f"{index}.json", "$") for index, one in enumerate(scenarios)]


def test_a_copy_in_other_words_is_found_by_its_meaning_alone(tmp_path: Path) -> None:
    scenarios = list(built_in_sample(12))
    save_model(tmp_path / "model", words_of(scenarios))
    copy = scenarios[4].model_copy(
        update={name: abroad(getattr(scenarios[4], name)) for name in ("description", "task")}
    )
    places = located([*scenarios, copy])
    assert list(alike_stories(places)) == []
    embedder = Embedder(str(tmp_path / "model"))
    assert list(alike_in_meaning(places[:-1], embedder)) == []
    (issue,) = alike_in_meaning(places, embedder)
    assert (issue.file, issue.path) == ("12.json", "$")
    assert issue.message == "means nearly the same as 4.json $ (embedding cosine 1.00): rewrite one"


def test_rows_have_length_one_and_unknown_words_none(tmp_path: Path) -> None:
    save_model(tmp_path / "model", ["pump", "valve"])
    rows = Embedder(str(tmp_path / "model")).rows(["pump valve valve", "nothing known", "pumpung"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 0, 1])


def test_a_model_that_is_not_there_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match=r"^--embeddings /no/such/model: is not a folder$"):
        Embedder("/no/such/model")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=r"empty: cannot be loaded") as found:
        Embedder(str(tmp_path / "empty"))
    assert "\n" not in str(found.value)
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(BadInput, match=r"pip install 'propensitybench\[embeddings\]'"):
        Embedder(str(tmp_path))
