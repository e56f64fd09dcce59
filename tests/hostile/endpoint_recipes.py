"""Hostile answers, made from valid ones by a recipe: edits of the reply, its bytes and its HTTP response.

A recipe is plain data, so that one that found an issue can be kept as a file in ``corpus/``.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final, Literal

import msgspec
from helpers.openai_server import a_call
from hostile.endpoint_server import Script

Where = tuple[str | int, ...]
_CALL: Final = '{"name":"look","arguments":{"at":1}}'


class Edit(msgspec.Struct, frozen=True):
    """One edit of the reply: ``path`` leads to a part of it, which is replaced by a value of that name.

    ``how``: ``set`` replaces it, ``drop`` leaves it out, ``again`` has it twice under the same name, ``wrap``
    puts it into a list.
    """

    path: Where
    how: Literal["set", "drop", "again", "wrap"]
    value: str = "null"


class Recipe(msgspec.Struct, frozen=True):
    """One hostile answer.

    Attributes:
        base: name of the valid reply.
        edits: of the reply.
        damage: of its bytes; a name, and where as a share of their length.
        dialect: how it is sent.
        status: of the response.
        headers: more lines of it.
        when: whether to answer the ``first`` request of each task with it, or ``every`` request.
    """

    base: str
    edits: tuple[Edit, ...] = ()
    damage: tuple[str, float] = ("none", 0.0)
    dialect: str = "plain"
    status: int = 200
    headers: tuple[str, ...] = ()
    when: Literal["first", "every"] = "first"


def _completion(message: Mapping[str, Any], finish: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    details = {
        "prompt_tokens_details": {"cached_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18, **details}
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


_TALK: Final = json.dumps({"thoughts": "t", "message": "no", "interaction_status": "terminate"})
BASES: Final[Mapping[str, dict[str, Any]]] = {
    "talk": _completion({"content": _TALK}, "stop"),
    "call": _completion({"content": None, "tool_calls": [a_call(), a_call(call_id="c2")]}, "tool_calls"),
    "provider fields": _completion(
        {"content": [{"type": "text", "text": "hm"}, {"type": "thinking", "thinking": [{"text": "x"}]}],
         "reasoning_content": "r", "reasoning_details": [{"type": "x", "data": "e30="}], "refusal": None,
         "tool_calls": [a_call(extra_content={"google": {"thought_signature": "c2ln"}})]}, "tool_calls"),
    "in text": _completion({"content": f"I call.<tool_call>{_CALL}</tool_call>"}, "stop"),
    "error": {"error": {"message": "refused", "type": "t", "code": "c", "param": None,
                        "innererror": {"code": "x"}}},
    "detail": {"detail": [{"loc": ["body", "messages", 0], "msg": "field required", "type": "missing"}]},
    "generation": {"error": {"message": "Failed to call a function.", "code": "tool_use_failed",
                             "failed_generation": '<function=look>{"at": 1}</function>'}},
}  # fmt: skip


def _values(key: str) -> Mapping[str, Callable[[], bytes]]:
    """Values by name, as JSON or what is nearly JSON."""

    def text(value: str) -> Callable[[], bytes]:
        return lambda: json.dumps(value).encode()

    def raw(value: bytes) -> Callable[[], bytes]:
        return lambda: value

    numbers = (
        "-1",
        "0",
        "3",
        "1.5",
        "9e18",
        "1e308",
        "1e999",
        "-0",
        str(2**63),
        str(10**30),
        "NaN",
    )
    plain = ("null", "true", "false", "[]", "{}", '""', "[null]", "[[]]", "[{}]", '{"":""}', *numbers)
    texts = {
        "key": f"Bearer {key}",
        "control": "\x00\x1b[2J\x1b]0;owned\x07\x7f\x9b",
        "direction": "\u202eabc\u2066\u200b\ufeff",
        "astral": "\U0001f511\U0010ffff",
        "markup": "<script>alert(1)</script><img src=x onerror=x>",
        "template": "{{ 7 * 7 }}{% for x in y %}",
        "path": "../../../etc/passwd",
        "newlines": "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        "quotes": "\"'`" * 400,
        "tags": "<" * 5000,
        "calls": "<tool_call>" * 5000,
        "call": f"<tool_call>{_CALL}</tool_call>" * 40,
        "words": "quota context length rate limit content_filter model not found " * 3,
        "length": "length",
        "filter": "content_filter",
        "error": "error",
        "number": "12",
        "braces": "{" * 3000 + "}" * 3000,
        "long": "x" * 300_000,
    }
    return {
        **{name: raw(name.encode()) for name in plain},
        **{name: text(value) for name, value in texts.items()},
        "5000 digits": raw(b"9" * 5000),
        "lone surrogate": raw(b'"\\ud800 x"'),
        "invalid UTF-8": raw(b'"\xff\xfe\xc0\x80"'),
        "invalid escape": raw(b'"\\x41"'),
        "control character": raw(b'"\x01\x1b"'),
        "deep list": raw(b"[" * 3000 + b"]" * 3000),
        "deep object": raw(b'{"a":' * 800 + b"1" + b"}" * 800),
        "deep text": lambda: json.dumps("[" * 3000 + "]" * 3000).encode(),
        "many": raw(b"[" + b",".join([b"1"] * 5000) + b"]"),
        "many calls": lambda: json.dumps([a_call(call_id=f"c{number}") for number in range(700)]).encode(),
        "nameless calls": raw(b"[" + b",".join([b"{}"] * 250) + b"]"),
    }


VALUES: Final = tuple(_values(""))


def _encoded(value: Any, edits: Mapping[Where, Edit], key: str, at: Where = ()) -> bytes:
    """A value as JSON, with the edits of it and of its parts."""
    edit = edits.get(at)
    if edit is not None and edit.how == "set":
        return _values(key)[edit.value]()
    if isinstance(value, dict):
        parts = [(name, inner, (*at, name)) for name, inner in value.items()]
        body = b"{" + b",".join(_items(parts, edits, key, named=True)) + b"}"
    elif isinstance(value, list):
        parts = [("", inner, (*at, index)) for index, inner in enumerate(value)]
        body = b"[" + b",".join(_items(parts, edits, key, named=False)) + b"]"
    else:
        body = json.dumps(value).encode()
    return b"[" + body + b"]" if edit is not None and edit.how == "wrap" else body


def _items(
    parts: Sequence[tuple[str, Any, Where]], edits: Mapping[Where, Edit], key: str, *, named: bool
) -> Iterator[bytes]:
    for name, inner, at in parts:
        edit = edits.get(at)
        prefix = json.dumps(name).encode() + b":" if named else b""
        if edit is None or edit.how != "drop":
            yield prefix + _encoded(inner, edits, key, at)
        if edit is not None and edit.how == "again":
            yield prefix + _values(key)[edit.value]()


def _places(value: Any, at: Where = ()) -> Iterator[Where]:
    yield at
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _places(inner, (*at, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _places(inner, (*at, index))


DAMAGES: Final[Mapping[str, Callable[[bytes, int], bytes]]] = {
    "none": lambda body, _: body,
    "truncated": lambda body, at: body[:at],
    "flipped": lambda body, at: (
        body[:at] + bytes([body[at] ^ 1 << at % 8]) + body[at + 1 :] if body else body
    ),
    "NUL": lambda body, at: body[:at] + b"\x00" + body[at:],
    "invalid UTF-8": lambda body, at: body[:at] + b"\xff" + body[at:],
    "byte order mark": lambda body, _: b"\xef\xbb\xbf" + body,
    "garbage behind": lambda body, _: body + b"}]{",
    "twice": lambda body, _: body + body,
    "events": lambda body, _: b"data: " + body + b"\n\ndata: [DONE]\n\n",
    "UTF-16": lambda body, _: body.decode("utf-8", "replace").encode("utf-16"),
    "empty": lambda _body, _at: b"",
    "HTML": lambda _body, _at: b"<html>" + b"<p" * 4000,
    "blanks": lambda body, _: b" \n" * 200_000 + body,
}


def _head(recipe: Recipe, *lines: str) -> bytes:
    first = f"HTTP/1.1 {recipe.status} X"
    return "\r\n".join((first, "Content-Type: application/json", *recipe.headers, *lines, "", "")).encode(
        "utf-8", "surrogateescape"
    )


def _sized(recipe: Recipe, body: bytes, size: int | str, *lines: str) -> Script:
    return Script([_head(recipe, f"Content-Length: {size}", *lines) + body])


def _chunks(recipe: Recipe, body: bytes, size: str = "") -> Script:
    head = _head(recipe, "Transfer-Encoding: chunked")
    parts = [body[at : at + 700] for at in range(0, len(body), 700)]
    made = [f"{size or format(len(part), 'x')}\r\n".encode() + part + b"\r\n" for part in parts]
    return Script([head + b"".join(made) + b"0\r\n\r\n"])


def _coded(recipe: Recipe, body: bytes, coding: str) -> Script:
    return _sized(recipe, body, len(body), f"Content-Encoding: {coding}")


def _dripped(whole: bytes, pieces: int) -> Script:
    size = max(1, len(whole) // pieces)
    return Script([whole[at : at + size] for at in range(0, len(whole), size)], drip=True)


Wire = Callable[[Recipe, bytes], Script]
_BOMB: Final = gzip.compress(bytes(64 * 2**20))
WIRES: Final[Mapping[str, Wire]] = {
    "plain": lambda recipe, body: _sized(recipe, body, len(body)),
    "kept open": lambda recipe, body: _sized(recipe, body, len(body))._replace(end="keep"),
    "without a length": lambda recipe, body: Script([_head(recipe) + body]),
    "length too small": lambda recipe, body: _sized(recipe, body, len(body) // 2),
    "length too large": lambda recipe, body: _sized(recipe, body, len(body) + 9),
    "length negative": lambda recipe, body: _sized(recipe, body, -5),
    "length huge": lambda recipe, body: _sized(recipe, body, 10**30),
    "length is none": lambda recipe, body: _sized(recipe, body, "a lot"),
    "two lengths": lambda recipe, body: _sized(recipe, body, len(body), "Content-Length: 1"),
    "chunks": _chunks,
    "chunk size is none": lambda recipe, body: _chunks(recipe, body, "zz"),
    "chunk size huge": lambda recipe, body: _chunks(recipe, body, "f" * 40),
    "chunks and a length": lambda recipe, body: _sized(recipe, body, 3, "Transfer-Encoding: chunked"),
    "gzip": lambda recipe, body: _coded(recipe, gzip.compress(body), "gzip"),
    "gzip truncated": lambda recipe, body: _coded(recipe, gzip.compress(body)[:-9], "gzip"),
    "gzip that is none": lambda recipe, body: _coded(recipe, body, "gzip"),
    "gzip bomb": lambda recipe, _: _coded(recipe, _BOMB, "gzip"),
    "deflate": lambda recipe, body: _coded(recipe, zlib.compress(body), "deflate"),
    "unknown coding": lambda recipe, body: _coded(recipe, body, "rot13"),
    "no HTTP": lambda _, body: Script([body or b"\n"]),
    "HTTP/2": lambda _, body: Script([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + body]),
    "nothing": lambda _recipe, _body: Script([]),
    "reset": lambda _recipe, _body: Script([b"HTTP/1.1 200 OK\r\n"], end="reset"),
    "half a head": lambda recipe, _: Script([_head(recipe)[:-9]]),
    "two responses": lambda recipe, body: Script([_sized(recipe, body, len(body)).parts[0] * 2], end="keep"),
    "1xx before": lambda recipe, body: Script(
        [b"HTTP/1.1 102 Wait\r\n\r\n" * 500 + _sized(recipe, body, len(body)).parts[0]]
    ),
    "101": lambda _, body: Script(
        [b"HTTP/1.1 101 Switch\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n" + body]
    ),
    "many headers": lambda recipe, body: _sized(recipe, body, len(body), *(f"X-{n}: y" for n in range(5000))),
    "long header": lambda recipe, body: _sized(recipe, body, len(body), "X: " + "y" * 100_000),
    "NUL in a header": lambda recipe, body: _sized(recipe, body, len(body), "X: a\x00b"),
    "folded header": lambda recipe, body: _sized(recipe, body, len(body), "X: a", " b"),
}
SLOW_WIRES: Final[Mapping[str, Wire]] = {
    "1xx without end": lambda _recipe, _body: Script([b"HTTP/1.1 100 Go\r\n\r\n" * 20], endless=True),
    "headers without end": lambda recipe, _: Script([_head(recipe)[:-2], b"X: y\r\n" * 20], endless=True),
    "body without end": lambda recipe, _: Script([_head(recipe), b"x" * 65536], endless=True),
    "chunks without end": lambda recipe, _: Script(
        [_head(recipe, "Transfer-Encoding: chunked"), b"1\r\n \r\n"], endless=True
    ),
    "dripped": lambda recipe, body: _dripped(_sized(recipe, body, len(body)).parts[0], 4),
    "dripped without end": lambda recipe, _: Script([_head(recipe), b" "], drip=True, endless=True),
}
_EVERY_WIRE: Final = {**WIRES, **SLOW_WIRES}
_STATUSES: Final = (
    100,
    201,
    204,
    206,
    301,
    304,
    400,
    401,
    402,
    403,
    404,
    418,
    422,
    429,
    500,
    503,
    529,
    599,
    600,
    999,
)
_HEADERS: Final = (
    "Retry-After: 1e308", "Retry-After: -1", "Retry-After: nan", "Retry-After: inf", "Retry-After: \u0663",
    "Retry-After: Wed, 21 Oct 99999999999999 07:28:00 GMT", "retry-after-ms: 1e999", "Retry-After: 0",
    "Set-Cookie: a=b; Path=/; Expires=Thu, 99", "Set-Cookie: \"=;;==", "Location: http://127.0.0.1:1/",
    "Content-Type: text/event-stream", "Content-Type: application/json; charset=utf-7", "Connection: close",
    "Keep-Alive: timeout=-1", "Link: <x>; rel=", "Content-Type: ;;;",
)  # fmt: skip


def script_of(recipe: Recipe, key: str) -> Script:
    """The bytes of an answer to a request with that key."""
    body = _encoded(BASES[recipe.base], {edit.path: edit for edit in recipe.edits}, key)
    damage, share = recipe.damage
    damaged = DAMAGES[damage](body, min(int(share * len(body)), max(0, len(body) - 1)))
    return _EVERY_WIRE[recipe.dialect](recipe, damaged)


def recipe_of(seed: int, *, slow: bool = True) -> Recipe:
    """The recipe of a seed: mostly a few edits of the reply, now and then damage or an odd response.

    Args:
        seed: decides all of it.
        slow: whether it may take the client's whole timeout.
    """
    chance = Random(seed)
    base = chance.choice([*BASES])
    places = [*_places(BASES[base])]
    kinds: tuple[Literal["set", "drop", "again", "wrap"], ...] = (
        "set",
        "set",
        "set",
        "drop",
        "again",
        "wrap",
    )
    edits = tuple(
        Edit(chance.choice(places), chance.choice(kinds), chance.choice(VALUES))
        for _ in range(chance.choice((0, 1, 1, 1, 2, 3)))
    )
    is_error = base in ("error", "detail", "generation")
    wires = [*WIRES, *SLOW_WIRES] if slow else [*WIRES]
    return Recipe(
        base=base,
        edits=edits,
        damage=(chance.choice([*DAMAGES]) if chance.random() < 0.2 else "none", chance.random()),
        dialect=chance.choice(wires) if chance.random() < 0.3 else "plain",
        status=chance.choice(_STATUSES) if is_error or chance.random() < 0.1 else 200,
        headers=(chance.choice(_HEADERS),) if chance.random() < 0.2 else (),
        when="first" if chance.random() < 0.7 else "every",
    )
