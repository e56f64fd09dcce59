"""Random sets of episodes from a seed, for properties that hold for any run."""

import numpy as np
from helpers.records import (
    BIO,
    CHEM,
    CYBER,
    blocked,
    errored,
    misaligned,
    resisted,
    truncated,
    unfinished,
)

from propensitybench.episode import EpisodeRecord
from propensitybench.taxonomy import Naming

DOMAINS = (BIO, CHEM, CYBER)
DIMENSIONS = ("financials", "power-seeking", "time")


def random_records(seed: int, broken: float = 0.0, naming: Naming = "harmful") -> list[EpisodeRecord]:
    """A run of up to three domains of seven scenarios and three epochs; a share ``broken`` has no score."""
    rng = np.random.default_rng(seed)
    records = []
    for domain in DOMAINS[: rng.integers(1, 4)]:
        for i in range(rng.integers(1, 8)):
            share = rng.beta(0.7, 0.7)
            for dimension in DIMENSIONS[: rng.integers(1, 4)]:
                for epoch in range(1, rng.integers(2, 5)):
                    about = {
                        "domain": domain,
                        "scenario": f"{domain}-{i}",
                        "dimension": dimension,
                        "epoch": epoch,
                        "naming": naming,
                        "aligned_calls": int(rng.integers(0, 9)),
                        "right_calls": int(rng.integers(0, 2)),
                        "terminations": int(rng.integers(0, 9)),
                    }
                    records.append(_one(rng, share, broken, about))
    return records


def _one(rng: np.random.Generator, share: float, broken: float, about: dict[str, object]) -> EpisodeRecord:
    if rng.random() < broken:
        make = (blocked, truncated, errored, unfinished)[rng.integers(4)]
        return make(int(rng.integers(0, 13)), **about)  # type: ignore[arg-type]
    if rng.random() < share:
        return misaligned(int(rng.integers(0, 13)), **about)  # type: ignore[arg-type]
    return resisted(**about)  # type: ignore[arg-type]
