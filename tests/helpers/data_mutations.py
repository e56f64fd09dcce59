"""Damaged and hostile copies of JSON files and ZIP archives, by a seeded generator."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

DEEP: Final = 100_000
# Values that a field may hold in a hostile file; the text ones are JSON that `json.dumps` would not write.
VALUES: Final[tuple[Any, ...]] = (
    None, True, -1, 0, 1.5, 10**30, -(2**63) - 1, 1e308, "", " ", "0", "x" * 100_000, [], {}, [[]], {"": {}},
    "../../../etc/passwd", "/dev/zero", "a\x00b", "\x1b]0;title\x07", "\u202egnol", "\U0001f600" * 50,
    "{{ 7 * 7 }}", "{value}", "%s%n", "__class__", "constructor", "nan", ["x"] * 1000,
    {str(i): i for i in range(1000)},
)  # fmt: skip
RAW: Final = (
    "NaN",
    "-Infinity",
    "1e999",
    "1" * 5000,
    '"\\ud800"',
    "[" * DEEP + "]" * DEEP,
    '{"a":' * 400 + "1" + "}" * 400,
    "[" * 5000,
    '{"a": 1, "a": 2}',
    "'single'",
    "",
)
_PLACE: Final = "7f3a-the-place-of-a-raw-value"

Place = tuple[Any, Any]
"""A list or an object, and an index or a key in it."""


def mutated_json(content: Any, rng: random.Random, changes: int = 1) -> bytes:
    """A JSON value with some hostile changes; the value itself is left as it is."""
    tree = json.loads(json.dumps(content))
    raw = ""
    for _ in range(changes):
        if rng.random() < 0.15:
            raw = rng.choice(RAW)
            _at(tree, rng, lambda _: _PLACE)
        else:
            rng.choice(_CHANGES)(tree, rng)
    return (
        json.dumps(tree, ensure_ascii=False).replace(f'"{_PLACE}"', raw, 1).encode("utf-8", "surrogatepass")
    )


def mutated_bytes(content: bytes, rng: random.Random) -> bytes:
    """Bytes with a bit flipped, a part cut out, repeated or overwritten, or the end missing."""
    at = rng.randrange(len(content))
    size = rng.choice((1, 2, 16, 400))
    match rng.randrange(5):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]
        case 2:
            return content[:at] + content[at + size :]
        case 3:
            return content[:at] + content[at : at + size] * 2 + content[at + size :]
        case _:
            return content[:at] + rng.randbytes(size) + content[at + size :]


def places(tree: Any) -> Iterator[Place]:
    """Every place in a JSON value."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key
        yield from places(tree[key])


def _at(tree: Any, rng: random.Random, change: Callable[[Any], Any]) -> None:
    holder, key = rng.choice(list(places(tree)) or [({"": None}, "")])
    holder[key] = change(holder[key])


def _replace(tree: Any, rng: random.Random) -> None:
    _at(tree, rng, lambda _: json.loads(json.dumps(rng.choice(VALUES))))


def _remove(tree: Any, rng: random.Random) -> None:
    found = list(places(tree))
    if found:
        holder, key = rng.choice(found)
        del holder[key]


def _rename(tree: Any, rng: random.Random) -> None:
    holders = [(holder, key) for holder, key in places(tree) if isinstance(holder, dict)]
    if holders:
        holder, key = rng.choice(holders)
        holder[rng.choice((key.upper(), key + "x", "", "__proto__", "a b", "x" * 400))] = holder.pop(key)


def _swap(tree: Any, rng: random.Random) -> None:
    """Exchanges two values: the types are right, and the meaning is not."""
    found = list(places(tree))
    (one, first), (other, second) = rng.choice(found), rng.choice(found)
    one[first], other[second] = json.loads(json.dumps(other[second])), json.loads(json.dumps(one[first]))


def _repeat(tree: Any, rng: random.Random) -> None:
    lists = [holder[key] for holder, key in places(tree) if isinstance(holder[key], list) and holder[key]]
    if lists:
        chosen = rng.choice(lists)
        chosen.append(json.loads(json.dumps(rng.choice(chosen))))


def _nest(tree: Any, rng: random.Random) -> None:
    _at(tree, rng, lambda value: [value])


_CHANGES: Final = (_replace, _replace, _remove, _rename, _swap, _repeat, _nest)
