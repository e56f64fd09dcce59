"""A key that an endpoint repeats, in any way and at any place, is in nothing that a run leaves behind."""

import asyncio
import logging
import traceback
from pathlib import Path

import pytest
from helpers.http_client import Got, client_at, one
from helpers.openai_server import in_thread, says, simulated
from helpers.program import Done, call
from hostile.endpoint_echoes import ECHOES
from hostile.endpoint_leaks import leaks, texts_of
from hostile.endpoint_server import Asked, Script, running

from propensitybench.chat import Reply
from propensitybench.clients.redaction import MARK, Redactor

KEYS = {
    "usual": "sk-proj-4d1f0c_T3BlbkFJ-sentinel",
    "short": "k9-f3a7x",
    "quotes": "sk'sent\"inel",
    "backslashes": "\\sk\\\\sentinel\\",
    "base64": "c2stc2VudGluZWw+/4d1f0c==",
    "other letters": "schlüssel-ключ-🔑-4d1f",
}
ORDINARY = lambda _body, _number: says("fine")  # noqa: E731


async def provoke(key: str) -> dict[str, Got]:
    """What comes of each way to repeat a key."""
    got = {}
    async with running(lambda _: None, ORDINARY) as server:
        for name, echo in ECHOES.items():
            server.hostile = lambda asked, echo=echo: echo(asked.key)  # type: ignore[misc]
            client = client_at(server.base_url, keys=(key,))
            try:
                got[name] = await one(client)
            finally:
                await client.close()
        assert (server.complaints, server.calls) == ([], len(ECHOES))
    return got


def shown(got: Got) -> str:
    """All that can be seen of a reply, or of an exception and all that led to it."""
    if isinstance(got, Reply):
        return repr(got)
    texts = []
    error: BaseException | None = got
    while error is not None:
        texts += [repr(error), repr(vars(error)), *map(repr, error.args)]
        error = error.__cause__ or error.__context__
    return "".join((*texts, *traceback.format_exception(got)))


@pytest.mark.filterwarnings("ignore:.*token counts:UserWarning")
@pytest.mark.parametrize("kind", KEYS)
def test_a_repeated_key_is_in_no_reply_and_in_no_exception(
    kind: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    key = KEYS[kind]
    caplog.set_level(logging.DEBUG)
    got = asyncio.run(provoke(key))
    assert [name for name in ECHOES if leaks(shown(got[name]), key)] == []
    assert MARK in str(got["error message"])
    assert not leaks(caplog.text, key)
    printed = capfd.readouterr()
    assert not leaks(printed.out + printed.err, key)


def test_there_are_more_than_the_32_ways_that_were_tried_from_outside() -> None:
    assert len(ECHOES) > 32


@pytest.mark.parametrize("key", ["x", "EMPTY", "none", "ollama", "secret7"])
def test_a_dummy_key_of_a_local_server_changes_no_reply(key: str) -> None:
    assert Redactor([key]).text(f"the {key} key") == f"the {key} key"


def test_what_is_no_key_stays_as_it_is() -> None:
    redactor = Redactor(KEYS.values())
    text = '95 % of "it" \\u00e9t\\u00e9 \\\\n &amp; %41%ff&#65; {"a": "C:\\\\dir\\\\sk"}'
    assert redactor.text(text) == text
    assert redactor.body(text.encode() + b"\xff\x00") == text.encode() + b"\xff\x00"


def test_a_text_around_an_escaped_key_stays_as_it_is() -> None:
    key = KEYS["usual"]
    escaped = "".join(f"\\u{ord(character):04x}" for character in key)
    redactor = Redactor([key])
    assert (
        redactor.text(f'{{"a": "\\n{escaped}\\n", "b": "\\\\{key}"}}')
        == '{"a": "\\n[key]\\n", "b": "\\\\[key]"}'
    )


@pytest.mark.parametrize(
    "unit", ["\\", "\\u0073", "%41", "&#65;", "s", "\\u0073k-proj-4d1f0c_T3BlbkFJ-sentinel"]
)
def test_a_long_text_of_escapes_takes_no_time_and_gives_nothing_away(unit: str) -> None:
    text = unit * (2**21 // len(unit))
    assert not leaks(Redactor([KEYS["usual"]]).text(f"{text}%{KEYS['usual']}")[-200:], KEYS["usual"])


class Echoing:
    """Repeats the key in the first answer of each task, in one way after another."""

    def __init__(self) -> None:
        self.left = list(ECHOES.values())

    def __call__(self, asked: Asked) -> Script | None:
        return self.left.pop()(asked.key) if self.left and len(asked.body["messages"]) == 2 else None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["usual", "quotes"])
def test_a_repeated_key_is_in_no_artefact(tmp_path: Path, kind: str) -> None:
    key, path = KEYS[kind], tmp_path / "a.run"
    echoing = Echoing()
    environment = {"PROPENSITYBENCH_API_KEY": key}
    with in_thread(running(echoing, simulated("always"))) as server:

        def program(*arguments: str | Path) -> Done:
            return call(*arguments, env=environment)

        first = ("run", "--model", "m", "--base-url", server.base_url, "--run", path, "--limit", "40")
        how = ("--concurrency", "1", "--max-retries", "0", "--no-preflight", "--timeout", "5")
        done = [program(*first, "--levels", "1", *how)]
        while echoing.left:
            left = len(echoing.left)
            done.append(program("resume", path, *how))
            assert len(echoing.left) < left, done[-1]
        done.append(program("resume", path, *how))
        assert done[-1].code == 0, done[-1]
    done.append(program("verify", path))
    assert done[-1].code == 0, done[-1]
    done += [
        program("show", path),
        program("score", path, "--json"),
        program("export", path, "--transcripts"),
    ]
    done += [
        program("export", path, "--format", "eval"),
        program("report", path, "--out", tmp_path / "report"),
    ]
    tasks = [line.split()[0] for line in done[-5].out.splitlines() if "." in line][:8]
    done += [program("show", path, task) for task in tasks]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 3
    assert any(MARK in text for text in texts_of(path))
    assert [str(file) for file in files if any(leaks(text, key) for text in texts_of(file))] == []
    assert [end.err for end in done if leaks(end.out + end.err, key)] == []
