"""Small samples of judged items, written out."""

from collections.abc import Iterable
from itertools import repeat

import numpy as np

from propensitybench.metrics.judged import MISSING, NOT_DRAWN, Judged

# An item: its domain, the judge's label, people's label.
Item = tuple[str, int, int]


def items_of(items: Iterable[Item], categories: int = 2, each: int = 1) -> Judged:
    """A sample drawn by domain and judge's label, with so many items a scenario."""
    rows = list(items)
    domain, judge, person = (list(column) for column in zip(*rows, strict=True))
    kinds = sorted({(name, label) for name, label, _ in rows})
    return Judged(
        domain=np.array(domain),
        scenario=np.array([f"{name}{row // each}" for row, name in enumerate(domain)]),
        judge=np.array(judge),
        person=np.array(person),
        stratum=np.array([kinds.index((name, label)) for name, label, _ in rows]),
        categories=categories,
    )


def block(domain: str, judge: int, people: dict[int, int], unseen: int = 0) -> list[Item]:
    """Items with one judge's label: how many have each of people's labels, and how many people do not see."""
    found = [(domain, judge, label) for label, count in people.items() for _ in repeat(None, count)]
    return found + [(domain, judge, NOT_DRAWN)] * unseen


# 20 of 100 labelled 1 by the judge. Each of the 10 + 10 that people see stands for 2 or 8 items, so that
# of the 24 items that people would label 1 the judge finds 16, and 72 of the other 76 it leaves alone.
HUNDRED = [*block("d", 1, {1: 8, 0: 2}, unseen=10), *block("d", 0, {1: 1, 0: 9}, unseen=70)]
REFUSED = block("d", MISSING, {}, unseen=25)
