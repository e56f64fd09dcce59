"""Near-duplicates by meaning: the cosine of static embeddings (extra ``embeddings``)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from propensitybench.curation.cross_checks import story
from propensitybench.curation.similarity import alike_pairs
from propensitybench.errors import BadInput
from propensitybench.scenarios import read_dataset
from propensitybench.scenarios.issues import Issue, Located

ALIKE: Final = 0.75
"""The cosine from which on two stories count as one told twice."""


class Embedder:
    """Embeds texts by a model2vec model, which needs no GPU and no key.

    Args:
        name: a folder with a model, or the name of one on the Hugging Face Hub.

    Raises:
        BadInput: the extra is not installed, or there is no such model.
    """

    def __init__(self, name: str) -> None:
        try:
            from model2vec import StaticModel
        except ImportError as error:
            raise BadInput(
                "--embeddings: needs the extra, install it with: pip install 'propensitybench[embeddings]'"
            ) from error
        folder = Path(name).expanduser()
        if name.startswith((".", "/", "~")) and not folder.is_dir():
            raise BadInput(f"--embeddings {name}: is not a folder")
        try:
            self._model = StaticModel.from_pretrained(folder if folder.exists() else name)
        except Exception as error:  # of the hub, the network, a file's format
            raise BadInput(f"--embeddings {name}: cannot be loaded ({error})") from error

        self._common = _unit(self._encode([story(one) for one in read_dataset().scenarios])).mean(axis=0)

    def rows(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Rows of unit length, one for each text; zeros for a text without a known word.

        Averages of word vectors are all alike: two of our scenarios have a cosine of .76 in the middle. What
        they have in common with the built-in scenarios is subtracted (as in Arora et al. 2017, "A simple but
        tough-to-beat baseline for sentence embeddings", with the mean for the first component).
        """
        rows = _unit(self._encode(texts))
        known = rows.any(axis=1, keepdims=True)
        return _unit((rows - self._common) * known)

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self._model.encode(list(texts), use_multiprocessing=False).astype(
            np.float64
        )
        return found


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: NDArray[np.float64] = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return unit


def alike_in_meaning(located: Sequence[Located], embedder: Embedder) -> Iterator[Issue]:
    """Pairs of scenarios whose descriptions and tasks mean nearly the same, in whatever words."""
    rows = embedder.rows([story(place.scenario) for place in located])
    for pair in alike_pairs(rows, ALIKE):
        other, place = located[pair.first], located[pair.second]
        yield place.issue(
            "",
            f"means nearly the same as {other.file} {other.path} (embedding cosine {pair.cosine:.2f}): "
            "rewrite one",
        )
