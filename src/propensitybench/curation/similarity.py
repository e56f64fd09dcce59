"""Near-duplicates by TF-IDF cosine."""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

WORD: Final = re.compile(r"[a-z0-9]+")
# In a small set of texts, idf does not separate these from content words.
FUNCTION_WORDS: Final = frozenset(
    WORD.findall(
        "a an and are as at be been but by can could for from had has have how if in into is it its may not "
        "of on or our out should so than that the their them then there these they this those to up was we "
        "were what when where which while who will with would you your"
    )
)
# Rows compared at a time; bounds memory for the 6,648 tool descriptions of the full set.
BLOCK: Final = 512


class SimilarPair(NamedTuple):
    """The indices of two texts (first < second) and their similarity (0..1)."""

    first: int
    second: int
    cosine: float


def vectors(texts: Iterable[str]) -> sparse.csr_array:
    """TF-IDF rows of unit length: raw counts, idf = ln((1 + n) / (1 + df)) + 1, without function words.

    A text without words has a row of zeros.
    """
    vocabulary: dict[str, int] = {}
    columns, counts, ends = array("q"), array("q"), array("q", [0])
    for text in texts:
        count = Counter(word for word in WORD.findall(text.lower()) if word not in FUNCTION_WORDS)
        columns.extend(vocabulary.setdefault(word, len(vocabulary)) for word in count)
        counts.extend(count.values())
        ends.append(len(columns))
    n = len(ends) - 1
    df = np.bincount(columns, minlength=len(vocabulary)) if columns else np.zeros(0)
    values = np.array(counts, dtype=np.float64) * (np.log((1 + n) / (1 + df)) + 1)[np.array(columns)]
    rows = np.repeat(np.arange(n), np.diff(ends))
    norms = np.sqrt(np.bincount(rows, weights=values**2, minlength=n))
    return sparse.csr_array((values / norms[rows], np.array(columns), np.array(ends)), (n, len(vocabulary)))


def near_duplicates(texts: Sequence[str], threshold: float) -> Iterator[SimilarPair]:
    """Every pair of texts whose cosine is at least ``threshold``, in order of the second text."""
    if len(texts) > 1:
        yield from alike_pairs(vectors(texts), threshold)


def alike_pairs(rows: sparse.csr_array | NDArray[np.float64], threshold: float) -> Iterator[SimilarPair]:
    """Every pair of rows of unit length whose cosine is at least ``threshold``, in order of the second.

    Pairs with a cosine of 0 are left out.
    """
    for start in range(0, rows.shape[0], BLOCK):
        block = sparse.coo_array(rows[start : start + BLOCK] @ rows.T)
        close = block.data >= threshold
        found = zip(block.row[close] + start, block.col[close], block.data[close], strict=True)
        for second, first, cosine in sorted(found):
            if first < second:
                yield SimilarPair(int(first), int(second), float(cosine))
