"""Every number of the clustered sample agrees with a second implementation to 1e-9, whatever is missing."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest
from helpers.records import BIO, CHEM, CYBER, blocked, errored, misaligned, resisted, truncated, unfinished
from metrics.second import Estimand, Kind, Unit, difference
from metrics.second import estimate as second_estimate

from propensitybench.episode import EpisodeRecord
from propensitybench.metrics.compare import matched
from propensitybench.metrics.estimates import (
    competent_propensity_terms,
    competent_terms,
    count_terms,
    estimate,
    hazard_terms,
    propensity_terms,
    rise_terms,
    withstood_terms,
)
from propensitybench.metrics.sample import Weight
from propensitybench.metrics.table import Table, table_of
from propensitybench.metrics.terms import Quantity, Ratio, Terms, difference_of

DIMENSIONS = ("financials", "power-seeking", "self-preservation", "time")
MISSING = (blocked, truncated, errored, unfinished)


def _run(
    seed: int, domains: Sequence[int], epochs: int = 1, gone: float = 0.15, rare: bool = False
) -> list[EpisodeRecord]:
    """A run of so many scenarios a domain; a share ``gone`` of its episodes has no score."""
    rng = np.random.default_rng(seed)
    records = []
    for domain, scenarios in zip((BIO, CHEM, CYBER), domains, strict=False):
        for i in range(scenarios):
            share = rng.beta(0.3, 12) if rare else rng.beta(0.7, 0.9)
            for dimension in rng.permutation(DIMENSIONS)[: rng.integers(1, 5)]:
                for epoch in range(1, 1 + int(rng.integers(1, epochs + 1))):
                    about: dict[str, Any] = {
                        "domain": domain,
                        "scenario": f"{domain}-{i}",
                        "workspace": f"{domain}-{i * i % 11}",
                        "dimension": str(dimension),
                        "epoch": epoch,
                        "right_calls": int(rng.integers(0, 2)),
                        "terminations": int(rng.integers(0, 9)),
                    }
                    record = _episode(rng, share, gone, about)
                    told = msgspec.structs.replace(record.metadata, storyline=f"{dimension} {i % 3}")
                    records.append(msgspec.structs.replace(record, metadata=told))
    return records


def _episode(rng: np.random.Generator, share: float, gone: float, about: dict[str, Any]) -> EpisodeRecord:
    level = int(rng.integers(0, 13))
    if rng.random() < gone:
        return MISSING[rng.integers(4)](level, **about)
    return misaligned(level, **about) if rng.random() < share else resisted(**about)


RUNS: Mapping[str, list[EpisodeRecord]] = {
    "nothing missing": _run(1, (9, 6, 4), gone=0.0),
    "blocked, truncated, errored, unfinished": _run(2, (9, 6, 4)),
    "epochs everywhere and mixed": _run(4, (14, 12), epochs=4, gone=0.05),
    "most of it missing": _run(5, (12, 9, 3), epochs=2, gone=0.7),
    "very unequal domains": _run(6, (40, 2, 3)),
    "a domain of one scenario": _run(8, (7, 1), epochs=2),
    "a domain under other dimensions": [
        *_run(9, (9,), gone=0.0),
        *(
            one
            for one in _run(9, (1, 9, 9), gone=0.0)
            if one.metadata.dimension in DIMENSIONS[2 if one.metadata.domain == CHEM else 1 :]
            and one.metadata.domain != BIO
        ),
    ],
    "many clusters": _run(10, (48, 44, 41), gone=0.1),
    "many clusters, nothing missing": _run(10, (48, 44, 41), gone=0.0),
    "rare": _run(11, (42, 45), gone=0.2, rare=True),
    "a domain heard only up to level 4": [
        *_run(12, (9, 6), epochs=2),
        *(blocked(level, domain=CYBER, scenario=f"c{level}") for level in (1, 4, 3)),
    ],
    "only unfinished": [unfinished(level, scenario=str(level)) for level in range(6)],
    "nobody ever gives in": [resisted(scenario=f"s{i}", dimension=d) for i in range(6) for d in DIMENSIONS],
}


def _terminations(table: Table) -> Terms:
    return count_terms(table, table.weight * np.nan_to_num(table.terminations), table.weight)


TERMS: Mapping[str, Callable[[Table], Terms]] = {
    "propensity": propensity_terms,
    "propensity by level 3": partial(propensity_terms, level=3),
    "rise": partial(rise_terms, first=2, last=7),
    "withstood": withstood_terms,
    "hazard": partial(hazard_terms, level=4),
    "competent": competent_terms,
    "propensity of the competent": competent_propensity_terms,
    "terminations": _terminations,
}


def _units(table: Table, ratio: Ratio, noise: Any = None) -> list[Unit]:
    rows = zip(
        *(table.domain, table.scenario, table.workspace, table.storyline, table.dimension),
        *(ratio.x, ratio.y, np.ones(len(table)) if ratio.needed is None else ratio.needed),
        np.full(len(table), np.nan) if noise is None else noise,
        strict=True,
    )
    return [Unit(*row) for row in rows]


def _estimand(table: Table, terms: Terms) -> Estimand:
    """Our terms in the form of the second implementation."""
    kind = Kind(terms.form != "share", terms.limits, terms.form == "open count")
    quantities = terms.ends or (terms.seen,)
    if isinstance(terms.seen, Ratio):
        ends = [_units(table, one) for one in quantities if isinstance(one, Ratio)]
        return Estimand(_units(table, terms.seen, terms.noise), _two(ends), kind)
    sides = [_sides(table, one) for one in quantities]
    seen, ends = difference(*_sides(table, terms.seen)), [difference(*pair) for pair in sides]
    return Estimand(seen, _two(ends), kind, tuple(sides))


def _sides(table: Table, quantity: Quantity) -> tuple[list[Unit], list[Unit]]:
    assert not isinstance(quantity, Ratio)
    return _units(table, quantity.first), _units(table, quantity.second)


def _two(ends: list[list[Unit]]) -> tuple[list[Unit], list[Unit]] | None:
    return (ends[0], ends[1]) if len(ends) == 2 else None


def _check(table: Table, terms: Terms, weight: Weight, where: str) -> None:
    found = estimate(table, terms, "", weight)
    other = second_estimate(_estimand(table, terms), weight == "task")
    ours = {**msgspec.structs.asdict(found), **msgspec.structs.asdict(found.errors)}
    for name, value in other.items():
        if name == "bounds" and value is not None and None in value:
            value = None
        expected = None if value is None else pytest.approx(value, rel=1e-9, abs=1e-9)
        assert ours[name] == expected, f"{where}, {weight}: {name}"


@pytest.mark.parametrize("name", RUNS)
def test_every_number_of_an_estimate_agrees(name: str) -> None:
    table = table_of(RUNS[name])
    for part, terms in TERMS.items():
        for weight in ("domain", "task"):
            _check(table, terms(table), weight, part)


PAIRS: Mapping[str, tuple[list[EpisodeRecord], list[EpisodeRecord]]] = {
    "nothing missing": (_run(21, (5, 4), gone=0.0), _run(21, (5, 4), gone=0.0)),
    "other tasks": (_run(22, (5, 4, 2)), _run(23, (4, 5))),
    "most of it missing": (_run(26, (7, 5), gone=0.6), _run(27, (7, 5), gone=0.6)),
    "many clusters, with epochs": (_run(28, (60, 50), epochs=2), _run(29, (60, 50), epochs=3)),
    "no common task": ([misaligned(1, scenario="a")], [resisted(scenario="b")]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_every_number_of_a_paired_difference_agrees(name: str) -> None:
    one, other = matched(*(table_of(records) for records in PAIRS[name]))
    for terms in (propensity_terms, withstood_terms, partial(rise_terms, first=2, last=7)):
        _check(one, difference_of(terms(one), terms(other)), "domain", name)
