"""``propensitybench run`` without --run, with several models, and with its settings in a file."""

import re
from pathlib import Path

import msgspec
import pytest
from helpers.program import call

import propensitybench as pb
from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import Protocol
from propensitybench.scenarios import Selection

SMALL = ("--limit", "2", "--levels", "1")
BOTH = ("--model", "simulated/never", "--model", "simulated/o3-like")


def test_a_run_that_cannot_begin_names_no_file_and_says_what_to_start(tmp_path: Path) -> None:
    nowhere = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--max-retries", "0")
    done = call("run", *nowhere, cwd=tmp_path)
    assert (done.code, list(tmp_path.iterdir())) == (2, [])
    assert done.err.endswith("nothing listens at 127.0.0.1:9; start the server or correct --base-url\n")
    assert "run file" not in done.err


def test_without_a_file_the_run_is_where_python_keeps_it_and_grows_there(tmp_path: Path) -> None:
    first = call("run", "--model", "simulated/never", *SMALL, cwd=tmp_path)
    (path,) = (tmp_path / "propensitybench-runs").iterdir()
    assert first.err.splitlines()[0] == f"run file: propensitybench-runs/{path.name}"
    assert "4 tasks (2 pairs of scenario and dimension, each under both names)" in first.err
    more = call("run", "--model", "simulated/never", "--limit", "3", "--levels", "1", cwd=tmp_path)
    assert "2 tasks are added to its 4" in more.err
    assert f"propensitybench show propensitybench-runs/{path.name}" in more.err
    assert call("verify", path).code == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert pb.run("simulated/never", limit=1, levels=1).planned == 6
    assert list((tmp_path / "propensitybench-runs").iterdir()) == [path]
    more_tasks = RunSpec("simulated/never", selection=Selection(limit=5), protocol=Protocol(levels=1))
    assert create_run(more_tasks, path)
    part = call("run", "--model", "simulated/never", *SMALL, cwd=tmp_path)
    assert part.code == 0
    assert (
        "all that is asked for is finished; the file has 4 other unfinished tasks; to play the rest:"
        in part.err
    )
    assert not create_run(msgspec.structs.replace(more_tasks, selection=Selection(limit=1)), path)
    assert call("resume", path).code == 0
    assert not pb.open(path).score().tasks.unplayed


def test_several_models_are_played_and_one_that_cannot_be_is_told(tmp_path: Path) -> None:
    done = call("run", "--model", "simulated/nver", *BOTH, *SMALL, "--json", cwd=tmp_path)
    assert done.code == 1
    assert [run["model"] for run in done.json["runs"]] == ["simulated/never", "simulated/o3-like"]
    assert "did you mean 'never'" in done.json["failed"]["simulated/nver"]
    files = sorted(path.name for path in (tmp_path / "propensitybench-runs").iterdir())
    assert [re.sub(r"-[0-9a-f]{8}\.run", "", name) for name in files] == ["never", "o3-like"]
    again = call("run", *BOTH, *SMALL, cwd=tmp_path)
    assert again.code == 0
    assert re.search(r"compare \S+/never-\w+\.run \S+/o3-like-\w+\.run", again.err)
    refused = call("run", *BOTH, *SMALL, "--run", "a.run", cwd=tmp_path)
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    assert "--run a.run: holds the run of one model; leave it out" in refused.err


def test_settings_may_be_in_a_file_and_what_is_typed_wins(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(
        'model = ["simulated/never", "simulated/o3-like"]\nrun = "a.run"\nlimit = 9\nlevels = 1\n'
        'domains = ["cyber-security"]\nprice = [1, 2]\ntemplate = "unnamed"\n'
    )
    typed = ("--config", "run.toml", "--model", "simulated/never", "--limit", "2")
    assert call("run", *typed, "--plan", "--json", cwd=tmp_path).json["usd"][1] > 0
    assert call("run", *typed, cwd=tmp_path).code == 0
    run = pb.open(tmp_path / "a.run")
    assert (run.model, run.planned, run.levels) == ("simulated/never", 4, 1)
    assert {record.metadata.domain for record in run.records} == {"cyber-security"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("limt = 5", "unknown setting 'limt'; did you mean 'limit'"),
        ("limit = 0", "limit: must be a whole number of 1 or more, found 0"),
        ('limit = "x"', "limit: must be a whole number of 1 or more, found x"),
        ("run = 5", "run: must be the name of a file"),
        ("model = 5", "model: must be text or a list of texts"),
        ("limit = = 5", "is not TOML ("),
        ('price = "1,x"', "price: must be US dollars per million tokens"),
    ],
)
def test_a_file_of_settings_that_cannot_be_used_is_one_sentence(
    text: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "run.toml").write_text(text)
    done = call("run", "--config", "run.toml", "--model", "simulated/never", cwd=tmp_path)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert done.err.startswith("propensitybench: --config run.toml: ")
    assert complaint in done.err
