"""Narrow terminals, full disks, closed pipes, file names that are not UTF-8."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.openai_server import always, error, serving
from helpers.program import argv, call
from helpers.scenario_data import SOUND

FULL = Path("/dev/full")


def played(path: Path, model: str = "simulated/o3-like") -> Path:
    done = call("run", "--model", model, "--run", path, "--limit", "6")
    assert done.code == 0, done.err
    return path


@pytest.mark.slow
def test_a_narrow_terminal_cuts_no_number_and_no_name(tmp_path: Path) -> None:
    runs = [played(tmp_path / "a.run"), played(tmp_path / "b.run", "simulated/claude-4-sonnet-like")]
    terminal = {"FORCE_COLOR": "1", "COLUMNS": "50", "TERM": "xterm"}
    for command in ("score", "compare"):
        out = re.sub(r"\x1b\[[0-9;]*m", "", call(command, *runs, env=terminal).out)
        assert "\N{HORIZONTAL ELLIPSIS}" not in out
        wide = call(command, *runs).out
        assert "o3-like" in out
        assert sorted(re.findall(r"\d+\.\d+", out)) == sorted(re.findall(r"\d+\.\d+", wide))


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_sentence() -> None:
    with FULL.open("w") as full:
        done = subprocess.run(argv("--version"), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert re.fullmatch(r"propensitybench: standard output: cannot be used \(.*\)\n", done.stderr)


def test_a_closed_pipe_is_not_reported() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(argv("data", "list"), stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_the_command_that_resumes_a_run_can_be_pasted(tmp_path: Path) -> None:
    path = tmp_path / "my run's file.run"
    with serving(always(error(400))) as server:
        endpoint = ("--base-url", server.base_url, "--no-preflight")
        done = call("run", "--model", "m", *endpoint, "--run", path, "--limit", "1")
    assert done.code == 1
    assert shlex.split(done.err.splitlines()[-1]) == ["propensitybench", "resume", str(path)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere file names are text")
def test_file_names_that_are_not_utf8(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    run = played(folder / "a.run")
    assert call("verify", run, "--json").json["differences"] == []
    shutil.copytree(SOUND, folder / "data")
    for command in ("stats", "validate"):
        done = call("data", command, "--data", folder / "data", "--json")
        assert json.loads(done.out)["source"].endswith("\N{REPLACEMENT CHARACTER}/data")
    for done in (
        call("export", run, "--format", "parquet"),
        call("run", "--model", "simulated/never", "--run", tmp_path / "b.run", "--data", folder / "data"),
    ):
        assert (done.code, done.out) == (2, "")
        assert "is not valid UTF-8" in done.err
        assert len(done.err.splitlines()) == 1


def test_a_template_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.j2").write_bytes(b"\xff\xfe")
    (tmp_path / "c.j2").write_text("{{ role }}")
    for name, complaint in (
        ("a.j2", "is not UTF-8 text (byte 0)"),
        ("b.j2", "nor is there a file of that name"),
        ("c.j2", "uses neither {{ policy.prohibitions }} nor"),
    ):
        path = tmp_path / "a.run"
        done = call("run", "--model", "simulated/never", "--run", path, "--template", tmp_path / name)
        assert done.code == 2
        assert done.err.count(name) == 1
        assert complaint in done.err
