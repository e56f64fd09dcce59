"""Ways in which an endpoint can repeat the key that it was sent."""

import gzip
import json
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, Final

from helpers.openai_server import a_call
from hostile.endpoint_server import Script

Echo = Callable[[str], Script]
_JSON: Final = "Content-Type: application/json\r\n"


def raw(status: str, headers: str, body: bytes) -> Script:
    """A response with a status line and headers as given."""
    head = f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return Script([head.encode("utf-8", "surrogateescape") + body])


def failing(text: str, status: str = "400 Bad Request") -> Script:
    """An error whose body is that text."""
    return raw(status, _JSON, text.encode())


def error(key: str, field: str = "message", **more: Any) -> Script:
    return failing(json.dumps({"error": {"message": "refused", field: f"bad key {key} here", **more}}))


def reply(message: Mapping[str, Any] | None = None, finish: str = "stop", **fields: Any) -> Script:
    """A chat completion; ``fields`` replace those of the whole."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "hm", **(message or {})},
        "finish_reason": finish,
    }
    usage = {"prompt_tokens": 9, "completion_tokens": 9}
    body = {"id": "x", "model": "m", "choices": [choice], "usage": usage, **fields}
    return raw("200 OK", _JSON, json.dumps(body).encode())


def unicode_escaped(key: str) -> str:
    """A key as JSON escapes it if it escapes everything."""
    units = key.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def chunked(*chunks: bytes, size: str = "") -> Script:
    head = f"HTTP/1.1 200 OK\r\n{_JSON}Transfer-Encoding: chunked\r\n\r\n".encode()
    sizes = [(size or f"{len(chunk):x}").encode("utf-8", "surrogateescape") for chunk in chunks]
    body = b"".join(length + b"\r\n" + chunk + b"\r\n" for length, chunk in zip(sizes, chunks, strict=True))
    return Script([head + body + b"0\r\n\r\n"])


def halves(key: str) -> tuple[str, str]:
    return key[: len(key) // 2], key[len(key) // 2 :]


def zipped(key: str, status: str) -> Script:
    body = gzip.compress(json.dumps({"error": {"message": f"bad {key}"}}).encode())
    return raw(status, _JSON + "Content-Encoding: gzip\r\n", body)


ECHOES: Final[Mapping[str, Echo]] = {
    "error message": error,
    "error type": lambda key: error(key, "type"),
    "error code": lambda key: error(key, "code"),
    "error param": lambda key: error(key, "param"),
    "error detail": lambda key: failing(json.dumps({"detail": [{"loc": ["body", key], "msg": key}]})),
    "error inner code": lambda key: error("", innererror={"code": key}),
    "error cut within the key": lambda key: error("x" * (300 - 17 - len(key) // 2) + key),
    "plain body": lambda key: failing(f"bad key {key}"),
    "HTML body": lambda key: failing(f"<html><p>bad key {escape(key)}</p></html>", "502 Bad Gateway"),
    "escaped in JSON": lambda key: failing('{"error":{"message":"bad ' + unicode_escaped(key) + '"}}'),
    "slashes and quotes escaped": lambda key: failing(
        '{"error":{"message":' + json.dumps(f"bad {key}").replace("/", "\\/") + "}}"
    ),
    "JSON in JSON": lambda key: error(json.dumps(json.dumps({"key": key}))),
    "gzip": lambda key: zipped(key, "400 Bad Request"),
    "gzip that says it is deflate": lambda key: raw(
        "400 Bad Request", _JSON + "Content-Encoding: deflate\r\n", b"\x1f" + key.encode()
    ),
    "status line": lambda key: raw(f"400 bad {key}", _JSON, b"{}"),
    "status line that is none": lambda key: Script([f"HTTP/1.1 {key}\r\n\r\n".encode()]),
    "no HTTP": lambda key: Script([f"bad key {key}\r\n\r\n".encode()]),
    "header value": lambda key: raw("400 Bad Request", f"X-Key: {key}\r\n{_JSON}", b"{}"),
    "header value with a control character": lambda key: raw("200 OK", f"X-Key: {key}\x00\r\n", b"{}"),
    "header name": lambda key: raw("200 OK", f"{key}: 1\r\n", b"{}"),
    "header name with a space": lambda key: raw("200 OK", f"X {key} y: 1\r\n", b"{}"),
    "header line without a colon": lambda key: raw("200 OK", f"{key}\r\n", b"{}"),
    "authorization in another case": lambda key: raw("401 No", f"aUTHORIZATION: Bearer {key}\r\n", b"{}"),
    "cookie": lambda key: raw("400 No", f"Set-Cookie: key={key}; Path=/\r\n", b"{}"),
    "cookie name": lambda key: raw("400 No", f"Set-Cookie: a[{key}]=1; b {key}=2\r\n", b"{}"),
    "content type": lambda key: raw("200 OK", f"Content-Type: {key}; charset={key}\r\n", b"{}"),
    "content encoding": lambda key: raw("200 OK", f"Content-Encoding: {key}\r\n", b"{}"),
    "content length": lambda key: Script([f"HTTP/1.1 200 OK\r\nContent-Length: {key}\r\n\r\n{{}}".encode()]),
    "retry after": lambda key: raw("429 Slow", f"Retry-After: {key}\r\n{_JSON}", b"{}"),
    "redirect": lambda key: raw("307 There", f"Location: http://127.0.0.1:1/{key}\r\n", b""),
    "redirect to nowhere": lambda key: raw("302 There", f"Location: http://[{key}\r\n", b""),
    "chunk size": lambda key: chunked(b"{}", size=key),
    "chunk extension": lambda key: chunked(b"{}", size=f"2;{key}"),
    "split over chunks": lambda key: chunked(
        b'{"error":{"message":"bad ' + halves(json.dumps(key)[1:-1])[0].encode(),
        halves(json.dumps(key)[1:-1])[1].encode() + b'","code":400}}',
    ),
    "trailer": lambda key: Script(
        [f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\n{key}\r\n\r\n".encode()]
    ),
    "truncated body": lambda key: Script(
        [f'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{{"error":"{key}'.encode()]
    ),
    "reply that is not one": lambda key: raw("200 OK", _JSON, b'{"choice":"' + b"x" * 100 + key.encode()),
    "error in 200": lambda key: raw("200 OK", _JSON, json.dumps({"error": "x" * 270 + key}).encode()),
}
"""Errors, and answers that are none."""

REPLIES: Final[Mapping[str, Echo]] = {
    "failed generation": lambda key: error(
        "", code="tool_use_failed", failed_generation=f'<function=look>{{"at": "{key}"}}</function>'
    ),
    "content": lambda key: reply({"content": f"your key is {key}"}),
    "content in chunks": lambda key: reply(
        {"content": [{"type": "text", "text": half} for half in halves(f"the key {key} is yours")]}
    ),
    "refusal": lambda key: reply({"content": None, "refusal": f"no, {key}"}),
    "tool name": lambda key: reply({"tool_calls": [a_call(key)]}, "tool_calls"),
    "tool arguments": lambda key: reply(
        {"tool_calls": [a_call(arguments=json.dumps({"at": key}))]}, "tool_calls"
    ),
    "tool arguments as an object": lambda key: reply(
        {"tool_calls": [a_call(arguments={key: key})]}, "tool_calls"
    ),
    "call id": lambda key: reply({"tool_calls": [a_call(call_id=key)]}, "tool_calls"),
    "call in the text": lambda key: reply(
        {"content": '<tool_call>{"name":"look","arguments":' + json.dumps({"at": key}) + "}</tool_call>"}
    ),
    "field of a call": lambda key: reply({"tool_calls": [a_call(extra_content={"key": key})]}, "tool_calls"),
    "reasoning": lambda key: reply({"reasoning_content": f"they sent {key}"}),
    "name of a field": lambda key: reply({"reasoning_details": [{key: 1}]}),
    "model": lambda key: reply(model=key),
}
"""Chat completions that repeat the key in what is stored."""
