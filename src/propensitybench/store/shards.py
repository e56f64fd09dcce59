"""Shards: the parts of a run that are played apart, each in a run file of its own."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from propensitybench.errors import BadInput

MAX_SHARDS: Final = 1_000_000


class Shard(NamedTuple):
    """Shard ``number``, from 1, ``of`` so many; as text ``3/64``."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def check(self) -> None:
        """Raises `BadInput` unless the numbers are those of a shard."""
        if not 1 <= self.of <= MAX_SHARDS:
            raise BadInput(f"shard {self}: there can be 1 to {MAX_SHARDS:,} shards")
        if not 1 <= self.number <= self.of:
            raise BadInput(f"shard {self}: shards are numbered from 1 to {self.of}")


def read_shard(text: str) -> Shard:
    """A shard from text like ``3/64``; raises `BadInput` if it is not one."""
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if found is None:
        raise BadInput(f"shard {text!r}: must be I/N, the I-th of N shards, for example 3/64")
    shard = Shard(*map(int, found.groups()))
    shard.check()
    return shard


def share_of(shard: Shard, domains: Iterable[str]) -> list[int]:
    """The numbers of the tasks that a shard plays, ascending.

    The tasks of each domain are dealt to the shards in rounds, of which each begins one shard later than the
    last. So the shards differ by at most one task, overall and within each domain, and no shard gets only one
    naming, though the namings of a pair follow each other.

    Args:
        shard: the shard.
        domains: the domain of each task, in the order of the run.
    """
    numbers: dict[str, list[int]] = {}
    for number, domain in enumerate(domains):
        numbers.setdefault(domain, []).append(number)
    share: list[int] = []
    extra = 0  # the shard that gets the first task of the next incomplete round
    for domain in sorted(numbers):
        rounds, left = divmod(len(numbers[domain]), shard.of)
        for place, number in enumerate(numbers[domain]):
            if (place + place // shard.of - rounds + extra) % shard.of == shard.number - 1:
                share.append(number)
        extra += left
    return sorted(share)
