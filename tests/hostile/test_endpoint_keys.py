"""A key that an endpoint repeats, in any way and at any place, is in nothing that a run leaves behind."""

import asyncio
import logging
import traceback
from collections.abc import Mapping
from pathlib import Path

import pytest
from helpers.http_client import Got, client_at, one
from helpers.openai_server import in_thread, says, serving, simulated
from helpers.program import Done, call
from helpers.scenario_data import built_in
from hostile.endpoint_echoes import ECHOES, REPLIES, Echo
from hostile.endpoint_leaks import leaks, texts_of
from hostile.endpoint_server import Asked, Script, running

from propensitybench.chat import Reply
from propensitybench.clients.redaction import MARK
from propensitybench.errors import RunStopped

KEYS = {"usual": "sk-proj-4d1f0c_T3BlbkFJ-sentinel", "base64": "c2stc2VudGluZWw+/4d1f0c=="}
ORDINARY = lambda _body, _number: says("fine")  # noqa: E731


async def provoke(echoes: Mapping[str, Echo], key: str) -> dict[str, Got]:
    """What comes of each way to repeat a key."""
    got = {}
    async with running(lambda _: None, ORDINARY) as server:
        for name, echo in echoes.items():
            server.hostile = lambda asked, echo=echo: echo(asked.key)  # type: ignore[misc]
            client = client_at(server.base_url, keys=(key,))
            try:
                got[name] = await one(client)
            finally:
                await client.close()
        assert (server.complaints, server.calls) == ([], len(echoes))
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
def test_a_repeated_key_is_in_no_exception_and_in_no_log(
    kind: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    key = KEYS[kind]
    caplog.set_level(logging.DEBUG)
    got = asyncio.run(provoke(ECHOES, key))
    assert [name for name in ECHOES if leaks(shown(got[name]), key)] == []
    assert MARK in str(got["error message"])
    assert not leaks(caplog.text, key)
    printed = capfd.readouterr()
    assert not leaks(printed.out + printed.err, key)


@pytest.mark.parametrize("kind", KEYS)
def test_a_reply_that_repeats_a_key_stops_the_run(kind: str) -> None:
    got = asyncio.run(provoke(REPLIES, KEYS[kind]))
    assert {type(one) for one in got.values()} == {RunStopped}
    assert {"API key in a reply" in str(one) for one in got.values()} == {True}
    assert [name for name in REPLIES if leaks(shown(got[name]), KEYS[kind])] == []


WORDS = ("password", "anything", "postgres", "changeme", "not-needed", "EMPTY", "token-abc123", "sk-1234")


@pytest.mark.parametrize("key", WORDS)
def test_a_key_that_is_a_word_changes_no_reply(key: str) -> None:
    got = asyncio.run(provoke(REPLIES, key))
    names = {
        name: [call.name for call in one.tool_calls] for name, one in got.items() if isinstance(one, Reply)
    }
    assert names.keys() == REPLIES.keys()
    assert names["tool name"] == [key]
    content = got["content"]
    assert isinstance(content, Reply)
    assert content.content == f"your key is {key}"


@pytest.mark.parametrize("key", ["", "password"])
def test_a_key_that_is_a_word_changes_no_outcome(tmp_path: Path, key: str) -> None:
    scenario = next(one for one in built_in().scenarios if "password" in one.misaligned.harmful.name)
    with serving(simulated("always")) as server:
        done = call(
            "run", "--model", "m", "--base-url", server.base_url, "--run", tmp_path / "a.run", "--json",
            "--workspace", scenario.workspace, "--role", scenario.role, "--dimension", "time",
            "--levels", "1", "--naming", "harmful",
            env={"PROPENSITYBENCH_API_KEY": key},
        )  # fmt: skip
    assert (done.code, done.json["tasks"]["misaligned"]) == (0, done.json["tasks"]["total"]), done.err


class Echoing:
    """Repeats the key in the first answer of each task, in one way after another."""

    def __init__(self) -> None:
        self.left = [*ECHOES.values(), *(REPLIES[name] for name in ("content", "tool arguments", "model"))]

    def __call__(self, asked: Asked) -> Script | None:
        return self.left.pop()(asked.key) if self.left and len(asked.body["messages"]) == 2 else None


@pytest.mark.slow
def test_a_repeated_key_is_in_no_artefact(tmp_path: Path) -> None:
    key, path = KEYS["usual"], tmp_path / "a.run"
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
    tasks = [line.split()[0] for line in done[-5].out.splitlines() if "." in line][:2]
    done += [program("show", path, task) for task in tasks]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 3
    assert any(MARK in text for text in texts_of(path))
    assert [str(file) for file in files if any(leaks(text, key) for text in texts_of(file))] == []
    assert [end.err for end in done if leaks(end.out + end.err, key)] == []
