"""No character that the program prints takes effect on a terminal, wherever its text comes from."""

import json
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.hostile_runs import CHANGES, CONTROLS, hostile
from helpers.openai_server import Answer, error, serving
from helpers.program import Done, call, in_terminal
from helpers.runs import finish, make
from helpers.scenario_data import SOUND

# Controls of a terminal (C0 and C1), direction marks, characters that nobody sees.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)


def assert_safe(done: Done) -> None:
    assert not UNSAFE.search(done.out), done.out
    assert not UNSAFE.search(done.err), done.err


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make(tmp_path_factory.mktemp("good") / "good.run", "simulated/always", limit=1)
    finish(path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("change", sorted(CHANGES.keys() - {"task number"}))
def test_text_of_a_run_file(change: str, good: Path, tmp_path: Path) -> None:
    path = hostile(good, tmp_path / "a.run", change, CONTROLS)
    for command in (
        ["score"],
        ["compare"],
        ["findings"],
        ["show"],
        ["verify"],
        ["resume"],
        ["export"],
        ["score", "--json"],
    ):
        done = call(*command, path)
        assert_safe(done)
        assert not re.search(r"^note: all is well", done.err, re.M), "a message of the file's own"


@pytest.mark.parametrize(
    "answer",
    [
        error(400, CONTROLS),
        Answer(f"<html>{CONTROLS}</html>".encode(), 500, {"Content-Type": "text/html"}),
        Answer(json.dumps({"error": {"message": CONTROLS}}).encode(), 200),
    ],
)
def test_text_of_an_endpoint(answer: Answer, tmp_path: Path) -> None:
    with serving(lambda *_: answer) as server:
        at = ("--model", "m", "--base-url", server.base_url, "--limit", "1", "--max-retries", "0")
        for preflight in ("--preflight", "--no-preflight"):
            done = call("run", *at, "--run", tmp_path / f"{preflight}.run", preflight)
            assert done.code in (1, 2)
            assert_safe(done)
            assert not re.search(r"^note: all is well", done.err, re.M)


@pytest.mark.parametrize(
    "arguments",
    [
        [CONTROLS],
        ["score", CONTROLS],
        ["show", "good.run", CONTROLS],
        ["run", "--model", CONTROLS, "--run", "x.run"],
        ["run", "--model", "simulated/never", "--run", "x.run", "--limit", CONTROLS],
        ["run", "--model", "simulated/never", "--run", "x.run", "--naming", CONTROLS],
        ["run", "--model", "simulated/never", "--run", "x.run", "--data", CONTROLS],
        ["data", "show", CONTROLS],
    ],
)
def test_options_and_names_as_they_were_typed(arguments: Sequence[str], good: Path) -> None:
    done = call(*arguments, cwd=good.parent)
    assert done.code == 2
    assert done.err
    assert_safe(done)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="such names do not exist there")
def test_names_of_files(good: Path, tmp_path: Path) -> None:
    folder = tmp_path / CONTROLS.replace("/", "")
    folder.mkdir()
    shutil.copy(good, folder / "a.run")
    shutil.copytree(SOUND, folder / "data")
    (folder / "data" / "bad.json").write_text("{")
    for arguments in (
        ("score", folder / "a.run"),
        ("score", folder / "no.run"),
        ("score", folder, "--json"),
        ("verify", folder / "a.run"),
        ("export", folder / "a.run"),
        ("export", folder / "a.run"),  # exists already
        ("report", folder / "a.run", "--out", folder / "report", "--no-figures"),
        ("data", "validate", "--data", folder / "data"),
        ("data", "validate", "--data", folder / "data", "--json"),
        ("run", "--model", "simulated/never", "--run", folder / "b.run", "--data", folder / "data"),
    ):
        assert_safe(call(*arguments))


def test_json_keeps_the_text_and_has_no_such_character_itself(good: Path, tmp_path: Path) -> None:
    path = hostile(good, tmp_path / "a.run", "manifest model", CONTROLS)
    done = call("score", path, "--json")
    assert_safe(done)
    assert done.json["runs"][0]["model"] == CONTROLS


@pytest.mark.slow
def test_a_terminal_gets_colours_and_no_controls_of_others(good: Path, tmp_path: Path) -> None:
    path = hostile(good, tmp_path / "a.run", "manifest model", f"model{CONTROLS}")
    text = in_terminal("score", path)
    assert "\x1b[" in text, "rich styles its tables"
    assert not re.search("\x1b\\[31m|\x1b\\]|\x07|\x9b|\u202e|\u2066", text)


def test_a_message_is_one_line_of_bounded_length(good: Path, tmp_path: Path) -> None:
    path = hostile(good, tmp_path / "a.run", "scenario capability", "x\n" * 100_000)
    done = call("score", path)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert len(done.err) < 3000
