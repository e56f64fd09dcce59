"""Every number of a run agrees with a second implementation to 1e-9, whatever is missing."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from helpers.records import BIO, CHEM, CYBER, blocked, errored, misaligned, resisted, truncated, unfinished
from metrics.second_scores import contrast, numbers_of

from propensitybench.episode import EpisodeRecord
from propensitybench.metrics import RunRecords, score_naming, score_run
from propensitybench.metrics.compare import paired
from propensitybench.metrics.table import table_of
from propensitybench.taxonomy import Naming

DIMENSIONS = ("financials", "power-seeking", "self-preservation", "time")
MISSING = (blocked, truncated, errored, unfinished)


def _run(
    seed: int,
    domains: Sequence[int],
    epochs: int = 1,
    gone: float = 0.15,
    naming: Naming = "harmful",
    rare: bool = False,
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
                        "capability": (None, "one", "two")[i % 3],
                        "dimension": str(dimension),
                        "epoch": epoch,
                        "naming": naming,
                        "aligned_calls": int(rng.integers(2, 9)),
                        "right_calls": int(rng.integers(0, 2)),
                        "terminations": int(rng.integers(0, 9)),
                    }
                    record = _episode(rng, share, gone, about)
                    told = msgspec.structs.replace(record.metadata, storyline=f"{dimension} {i % 3}")
                    records.append(msgspec.structs.replace(record, metadata=told))
    return records


def _episode(rng: np.random.Generator, share: float, gone: float, about: dict[str, Any]) -> EpisodeRecord:
    if rng.random() < gone:
        make = MISSING[rng.integers(4)]
        record = make(int(rng.integers(0, 13)), **about)
        if make is unfinished and rng.random() < 0.3:  # no reply yet at the level reached
            stats = msgspec.structs.replace(record.stats, levels_run=record.stats.level)
            return msgspec.structs.replace(record, stats=stats)
        return record
    return misaligned(int(rng.integers(0, 13)), **about) if rng.random() < share else resisted(**about)


RUNS: Mapping[str, list[EpisodeRecord]] = {
    "nothing missing": _run(1, (9, 6, 4), gone=0.0),
    "blocked, truncated, errored, unfinished": _run(2, (9, 6, 4)),
    "with epochs": _run(3, (8, 5, 6), epochs=3),
    "epochs everywhere and mixed": _run(4, (14, 12), epochs=4, gone=0.05),
    "most of it missing": _run(5, (12, 9, 3), epochs=2, gone=0.7),
    "very unequal domains": _run(6, (40, 2, 3)),
    "few clusters": _run(7, (2, 2, 2), gone=0.3),
    "a domain of one scenario": _run(8, (7, 1), epochs=2),
    "one domain": _run(9, (13,)),
    "many clusters": _run(10, (48, 44, 41), gone=0.1),
    "rare": _run(11, (42, 45), gone=0.2, rare=True),
    "a domain heard only up to level 4": [
        *_run(12, (9, 6), epochs=2),
        *(
            make(level, domain=CYBER, scenario=f"c{i}")
            for i, (make, level) in enumerate(
                [(misaligned, 1), (blocked, 4), (truncated, 5), (blocked, 3), (misaligned, 3)]
            )
        ),
    ],
    "a domain never heard": [
        *_run(13, (5, 6)),
        *(blocked(0, domain=CYBER, scenario=f"c{i}", dimension=d) for i in range(3) for d in DIMENSIONS[:2]),
    ],
    "everybody gives in by level 3": [
        *_run(14, (6,)),
        *(
            misaligned(i % 4, domain=CHEM, scenario=f"c{i % 5}", dimension=DIMENSIONS[i % 4])
            for i in range(20)
        ),
        errored(2, domain=CHEM, scenario="c9"),
    ],
    "only unfinished": [unfinished(level, scenario=str(level)) for level in range(6)],
    "nobody ever gives in": [resisted(scenario=f"s{i}", dimension=d) for i in range(6) for d in DIMENSIONS],
    "only level 0 was answered": [blocked(1, scenario=f"s{i}", dimension=d) for i in range(6) for d in "ab"],
}


def _same(ours: Any, other: Any, where: str) -> list[str]:
    """Where the two differ by more than 1e-9, in words."""
    if isinstance(other, Mapping):
        if set(other) != set(ours):
            return [f"{where}: {sorted(ours)} and {sorted(other)}"]
        return [line for key in other for line in _same(ours[key], other[key], f"{where}.{key}")]
    if isinstance(other, (list, tuple)) and isinstance(ours, (list, tuple)):
        if len(other) != len(ours):
            return [f"{where}: {ours} and {other}"]
        return [
            line
            for i, (a, b) in enumerate(zip(ours, other, strict=True))
            for line in _same(a, b, f"{where}[{i}]")
        ]
    if ours is None or other is None or isinstance(ours, (list, tuple)) or isinstance(other, (list, tuple)):
        return [] if ours is None and other is None else [f"{where}: {ours} and {other}"]
    return [] if abs(ours - other) <= 1e-9 * max(1.0, abs(other)) else [f"{where}: {ours!r} and {other!r}"]


def _plain(value: Any) -> Any:
    """Our scores in the form of the second implementation."""
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.asdict(value)
        if "estimand" in fields:
            errors = msgspec.structs.asdict(fields.pop("errors"))
            dropped = ("estimand", "weight", "method", "method_workspace")
            return errors | {name: _plain(v) for name, v in fields.items() if name not in dropped}
        counts = ("caveat", "begun", "blocked", "truncated", "errored", "unfinished")
        return {name: _plain(v) for name, v in fields.items() if name not in counts}
    if isinstance(value, dict):
        return {name: _plain(v) for name, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("name", RUNS)
def test_every_number_of_a_run_agrees(name: str) -> None:
    records = RUNS[name]
    scores, other = score_naming(records), numbers_of(records)
    assert _same(_plain({key: getattr(scores, key) for key in other}), other, "scores") == []
    # What stands at the top is the same numbers again.
    estimates, parts = other["estimates"], other["parts"]
    top = {
        "n": sum(record.stats.outcome in ("misaligned", "resisted") for record in records),
        **{
            key: estimates[key]["domain"]["value"]
            for key in (
                "propensity", "propensity_zero", "resilience", "persistence", "abandonment", "competent",
            )
        },
        "ci95": estimates["propensity"]["domain"]["ci95"],
        "bounds": other["missing"]["bounds"],
        "cumulative_by_level": [level["domain"]["value"] for level in other["levels"]],
        **{f"by_{part}": {k: v["domain"]["value"] for k, v in parts[part].items()} for part in
           ("domain", "dimension", "capability")},
    }  # fmt: skip
    assert _same({key: getattr(scores, key) for key in top}, top, "top") == []


PAIRS: Mapping[str, tuple[list[EpisodeRecord], list[EpisodeRecord]]] = {
    "nothing missing": (_run(21, (5, 4), gone=0.0), _run(21, (5, 4), gone=0.0, naming="benign")),
    "other tasks": (_run(22, (5, 4, 2)), _run(23, (4, 5), naming="benign")),
    "missing, with epochs": (_run(24, (6, 5), epochs=3), _run(25, (5, 6), epochs=3, naming="benign")),
    "most of it missing": (_run(26, (7, 5), gone=0.6), _run(27, (7, 5), gone=0.6, naming="benign")),
    "many clusters": (_run(28, (60, 50)), _run(29, (60, 50), naming="benign")),
    "a domain without a complete pair": (
        [*_run(30, (5,)), *(blocked(0, domain=CHEM, scenario=f"c{i}") for i in range(3))],
        [
            *_run(31, (5,), naming="benign"),
            *(misaligned(2, domain=CHEM, scenario=f"c{i}", naming="benign") for i in range(3)),
        ],
    ),
    "no common task": ([misaligned(1, scenario="a")], [resisted(scenario="b", naming="benign")]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_every_number_of_a_contrast_agrees(name: str) -> None:
    first, second = PAIRS[name]
    ours, other = _plain(paired(table_of(first), table_of(second))), contrast(first, second)
    if name == "many clusters":  # too many sign vectors to enumerate: the p-values are random
        del ours["p"], ours["p_withstood"], other["p"], other["p_withstood"]
    del ours["p_tests"]  # words
    assert _same(ours, other, "contrast") == []
    run = score_run(RunRecords("", "", len(first) + len(second), [*first, *second]))
    assert _same(run.naming_sensitivity, other["propensity"]["value"], "naming_sensitivity") == []
