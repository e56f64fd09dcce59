"""Near-duplicates by TF-IDF cosine."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy import sparse

WORD: Final = re.compile(r"[a-z0-9]+")
# Rows compared at once: bounds memory for the 6,648 tool descriptions of the full set.
BLOCK: Final = 512


class Pair(NamedTuple):
    """Two texts, by their places in the sequence (first < second), and how alike they are (0..1)."""

    first: int
    second: int
    cosine: float


def vectors(texts: Sequence[str]) -> sparse.csr_array:
    """TF-IDF rows of length 1: raw counts, idf = ln((1 + n) / (1 + df)) + 1."""
    counts = [Counter(WORD.findall(text.lower())) for text in texts]
    vocabulary: dict[str, int] = {}
    for count in counts:
        for word in count:
            vocabulary.setdefault(word, len(vocabulary))
    rows = np.repeat(np.arange(len(texts)), [len(count) for count in counts])
    columns = np.array([vocabulary[word] for count in counts for word in count], dtype=np.int64)
    values = np.array([n for count in counts for n in count.values()], dtype=np.float64)
    matrix = sparse.csr_array((values, (rows, columns)), shape=(len(texts), len(vocabulary)))
    df = np.bincount(columns, minlength=len(vocabulary))
    weighted = matrix.multiply(np.log((1 + len(texts)) / (1 + df)) + 1).tocsr()
    norms = np.sqrt(weighted.multiply(weighted).sum(axis=1))
    norms[norms == 0] = 1.0
    return sparse.csr_array(weighted.multiply((1 / norms)[:, None]))


def near_duplicates(texts: Sequence[str], threshold: float) -> Iterator[Pair]:
    """Every pair of texts whose cosine is at least ``threshold``, in order of the second text."""
    if len(texts) < 2:
        return
    rows = vectors(texts)
    for start in range(0, len(texts), BLOCK):
        block = (rows[start : start + BLOCK] @ rows.T).tocoo()
        close = block.data >= threshold
        found = zip(block.row[close] + start, block.col[close], block.data[close], strict=True)
        for second, first, cosine in sorted(found):
            if first < second:
                yield Pair(int(first), int(second), float(cosine))
