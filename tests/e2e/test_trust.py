"""Requests and the key are sent only where the user agreed to, whatever file names an endpoint."""

import asyncio
import json
import os
import pty
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from helpers.openai_server import Server, serving, simulated
from helpers.program import argv, call
from helpers.runs import make

from propensitybench.errors import BadInput
from propensitybench.runs.start import Start
from propensitybench.runs.trust import is_this_machine

SECRET = "sk-a-key-of-the-user-that-nobody-else-may-have"
KEY = {"PROPENSITYBENCH_API_KEY": SECRET}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(simulated("never")) as one:
        yield one


def elsewhere(server: Server) -> str:
    """An address of the server that is not one of this machine's own names for itself."""
    return server.base_url.replace("127.0.0.1", "0.0.0.0")


def from_a_stranger(path: Path, model: str, **fields: Any) -> Path:
    """A run file whose manifest names a model and, by field, anything else."""
    make(path, limit=1)
    with closing(sqlite3.connect(path)) as db:
        (body,) = db.execute("SELECT body FROM manifest").fetchone()
        manifest = {**json.loads(body), "model": model, **fields}
        db.execute("UPDATE manifest SET body = ?", (json.dumps(manifest),))
        db.commit()
    return path


def test_resume_sends_nothing_to_an_address_that_only_the_file_names(server: Server, tmp_path: Path) -> None:
    url = elsewhere(server)
    path = from_a_stranger(tmp_path / "a.run", "m", options={"base_url": url})
    for preflight in ("--preflight", "--no-preflight"):
        done = call("resume", path, preflight, env=KEY)
        assert done.code == 2
        assert len(done.err.splitlines()) == 1
        assert url in done.err
        assert "--trust-endpoint" in done.err
    with pytest.raises(BadInput, match="--trust-endpoint"):
        asyncio.run(Start(path, {}).begin())
    assert server.calls == 0
    assert SECRET not in path.read_bytes().decode("latin-1")


def test_with_the_option_it_does(server: Server, tmp_path: Path) -> None:
    options = {"base_url": elsewhere(server), "extra_body": {"priority": 5}}
    path = from_a_stranger(tmp_path / "a.run", "m", options=options)
    done = call("resume", path, "--trust-endpoint", env=KEY)
    assert done.code == 0, done.err
    assert f"asking m at {elsewhere(server)}, with priority 5\n" in done.err
    assert set(server.authorizations) == {f"Bearer {SECRET}"}


def test_a_loopback_address_needs_no_option(server: Server, tmp_path: Path) -> None:
    path = from_a_stranger(tmp_path / "a.run", "m", options={"base_url": server.base_url})
    assert call("resume", path).code == 0
    assert server.calls > 0


def test_naming_the_address_again_confirms_it(server: Server, tmp_path: Path) -> None:
    run = (
        "run",
        "--model",
        "m",
        "--base-url",
        elsewhere(server),
        "--run",
        tmp_path / "a.run",
        "--limit",
        "1",
    )
    stopped = call(*run, "--max-tokens-total", "1", env=KEY)
    assert stopped.code == 1
    again = f"propensitybench resume {tmp_path / 'a.run'} --trust-endpoint --max-tokens-total N\n"
    assert stopped.err.endswith(again)
    assert call(*run, "--max-tokens-total", "100000", env=KEY).code == 0


DESIGN = """
format = "propensitybench-experiment/1"
name = "from-a-stranger"
models = [{{ name = "m", options = {{ base_url = "{url}" }} }}]
arms = ["escalating"]
levels = 0
[sample]
limit = 1
"""


def experiment(server: Server, folder: Path) -> list[str | Path]:
    """The command that plays an experiment of somebody else."""
    design = folder / "design.toml"
    design.write_text(DESIGN.format(url=elsewhere(server)))
    return ["experiment", "run", design, "--out", folder / "out"]


def test_the_design_of_an_experiment_is_trusted_no_more_than_a_run_file(
    server: Server, tmp_path: Path
) -> None:
    command = experiment(server, tmp_path)
    done = call(*command, env=KEY)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert f"the key in PROPENSITYBENCH_API_KEY, to {elsewhere(server)}; to allow that" in done.err
    assert (server.calls, (tmp_path / "out").exists()) == (0, False)
    assert call(*command, "--trust-endpoint", env=KEY).code == 0
    assert set(server.authorizations) == {f"Bearer {SECRET}"}


@pytest.mark.parametrize(("what", "answer", "code"), [("run file", "y", 0), ("design", "", 2)])
def test_in_a_terminal_it_asks(what: str, answer: str, code: int, server: Server, tmp_path: Path) -> None:
    path = from_a_stranger(tmp_path / "a.run", "m", options={"base_url": elsewhere(server)})
    terminal, program = pty.openpty()
    process = subprocess.Popen(
        argv(*(["resume", path] if what == "run file" else experiment(server, tmp_path))),
        stdin=program,
        stdout=subprocess.DEVNULL,
        stderr=program,
        env={**os.environ, **KEY},
    )
    os.close(program)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(terminal, 4096)
    assert elsewhere(server).encode() in shown.replace(b"\r\n", b"")
    assert server.calls == 0
    os.write(terminal, f"{answer}\n".encode())
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:  # the program has ended
        pass
    assert process.wait() == code
    assert (server.calls > 0) == (code == 0)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://127.9.9.9/v1", True),
        ("http://[::1]:8000/v1", True),
        ("https://LocalHost/v1", True),
        ("http://localhost.example.org/v1", False),
        ("http://127.0.0.1.example.org/v1", False),
        ("http://0.0.0.0/v1", False),
        ("http://10.0.0.1/v1", False),
        ("http://169.254.169.254/latest", False),
        ("https://api.openai.com/v1", False),
    ],
)
def test_this_machine_is_known_by_its_address(url: str, local: bool) -> None:
    assert is_this_machine(url) == local


@pytest.mark.parametrize(
    ("model", "fields", "complaint"),
    [
        ("m", {"options": {"base_url": "http://127.0.0.1\\@example.org/v1"}}, "--base-url"),
        ("m", {"options": {"base_url": "http://127.0.0.1\t/v1"}}, "--base-url"),
        ("m", {"options": {"base_url": "file:///etc/passwd"}}, "--base-url"),
        ("m", {"options": {"base_url": "http://user:secret@127.0.0.1/v1"}}, "--base-url"),
        ("m", {"options": {"extra_body": {"messages": []}}}, "--extra-body"),
        ("m", {"options": {"headers": {"X": "y"}}}, "does not know"),
        ("m", {"options": {"concurrency": 10**6}}, "does not know"),
        ("inspect/none/there", {}, "unknown provider"),
        ("scripted:/etc/passwd", {}, "unknown provider"),
        ("simulated/../../../../etc/passwd", {}, "unknown"),
        ("/etc/passwd", {}, "give provider/name"),
    ],
)
def test_a_stored_model_is_one_that_the_command_line_would_take(
    model: str, fields: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    path = from_a_stranger(tmp_path / "a.run", model, **fields)
    done = call("resume", path, env=KEY)
    assert done.code == 2, done
    assert complaint in done.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("dialect", "complaint"),
    [
        ({"extra": {"model": "a-dearer-one"}}, "extra"),
        ({"extra": {"stream": True}}, "extra"),
        ({"echo": ["role"]}, "echo"),
        ({"always": ["model"]}, "echo"),
        ({"call_id": "(a+)+$"}, "call_id"),
        ({"call_id": "("}, "call_id"),
        ({"description_limit": -5}, "description_limit"),
        ({"module": "os"}, "of another version"),
    ],
)
def test_a_stored_wire_policy_is_one_of_ours(
    dialect: dict[str, Any], complaint: str, server: Server, tmp_path: Path
) -> None:
    path = from_a_stranger(tmp_path / "a.run", "m", options={"base_url": server.base_url}, dialect=dialect)
    done = call("resume", path, "--no-preflight", env=KEY)
    assert done.code == 2, done
    assert "dialect" in done.err
    assert complaint in done.err
    assert server.calls == 0
