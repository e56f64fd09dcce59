"""Digests, from which content ids and random seeds are made."""

from hashlib import blake2b, shake_256


def digest(*parts: bytes | str) -> str:
    """16 hexadecimal digits of BLAKE2b over the parts, each prefixed with its length."""
    return _hash(parts).hex()


def seed_from(*parts: bytes | str | int) -> int:
    """A 64-bit seed that depends on every part and on their order."""
    texts = [str(part) if isinstance(part, int) else part for part in parts]
    return int.from_bytes(_hash(texts), "big")


def shuffled(items: range, *parts: str | int) -> list[int]:
    """The numbers of ``items``, shuffled; the order depends only on the parts."""
    raw = shake_256(seed_from(*parts).to_bytes(8, "big")).digest(8 * len(items))
    keys = [raw[i : i + 8] for i in range(0, len(raw), 8)]
    return [item for _, item in sorted(zip(keys, items, strict=True))]


def _hash(parts: "tuple[bytes | str, ...] | list[bytes | str]") -> bytes:
    hasher = blake2b(digest_size=8)
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        hasher.update(len(raw).to_bytes(8, "big"))
        hasher.update(raw)
    return hasher.digest()
