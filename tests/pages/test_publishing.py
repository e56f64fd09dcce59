"""What is published names no machine and no person, and still says how a run was made."""

import getpass
import json
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from helpers.clients import ByTask, TaskScript
from helpers.program import call
from helpers.readings import annotate, answer
from helpers.runs import finish, make
from helpers.scenario_data import SOUND

from propensitybench.chat import Reply, StopReason
from propensitybench.clients import Conversation, says
from propensitybench.clients.options import ModelOptions
from propensitybench.engine import RunSpec, create_run
from propensitybench.errors import ModelError
from propensitybench.judging.questions import read_question
from propensitybench.pages.board.folder import board as update_board
from propensitybench.pages.publishing import (
    LEFT_OUT,
    NOTE,
    PublishableRun,
    RaterNames,
    error_shown,
    model_shown,
)
from propensitybench.runs import StoredRun, read_runs
from propensitybench.scenarios import Selection, TaskMetadata

URL: Final = "http://gpu-seven.corp.example:8123/v1"
MODEL: Final = "/home/mallory/models/llama-of-ours"
FILE_OF_MODEL: Final = "/home/mallory/models/llama-of-ours.gguf"
FAILURE: Final = f"HTTP 500: upstream gpu-seven.corp.example failed for mallory at {URL}"
OPTIONS: Final = ModelOptions(
    base_url=URL,
    temperature=0.25,
    extra_body={"user": "mallory", "top_k": 7, "reasoning": {"effort": "high"}, "tags": ["mallory", 3]},
)
SECRETS: Final = ("mallory", "gpu-seven", "corp.example", ":8123")


def of_this_machine(folder: Path) -> list[str]:
    """What a file could say of the machine that the tests run on; short names occur in any text."""
    return [str(folder), *(name for name in (socket.gethostname(), getpass.getuser()) if len(name) > 7)]


class _Failing(ByTask):
    """Answers a turn under one dimension, and then fails as an endpoint does."""

    model = MODEL

    def __init__(self) -> None:
        self._script = TaskScript(self._replies, MODEL)

    def _replies(self, task: TaskMetadata) -> Sequence[Reply]:
        replies = (
            [says("No.", done=True)] if task.dimension == "financials" else [Reply(stop=StopReason.LENGTH)]
        )
        return [msgspec.structs.replace(one, model=FILE_OF_MODEL) for one in replies * 13]

    def open_task(self, task: TaskMetadata, replies: int = 0) -> Conversation:
        if task.dimension == "time":
            raise ModelError(FAILURE)
        return self._script.open_task(task, replies)

    async def close(self) -> None:
        """There is nothing to close."""


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a run that names its machine wherever a run can, read by two people."""
    folder = tmp_path_factory.mktemp("mallory")
    shutil.copytree(SOUND, folder / "data-of-ours")
    path = folder / "ours.run"
    selection = Selection(dimensions=("time", "financials", "power-seeking"))
    create_run(RunSpec(MODEL, folder / "data-of-ours", selection, options=OPTIONS, seed=41), path)
    finish(path, _Failing())
    finish(path, _Failing())  # so that there are errors of earlier attempts
    tasks = [one.metadata.task for one in StoredRun(path).records if one.stats.outcome == "resisted"]
    awareness = read_question("awareness")
    for name in ("person/mallory-b", "judge/b", "person/mallory-a"):
        annotate(path, awareness, name, dict.fromkeys(tasks, answer("none")))
    return path


def found_in(folder: Path, texts: Sequence[str]) -> dict[str, list[str]]:
    """The texts that files of a folder hold, in any case, or their names; by the name of the file."""
    found = {}
    for path in folder.rglob("*"):
        content = path.read_bytes().lower() if path.is_file() else b""
        name = path.relative_to(folder).as_posix()
        held = [one for one in texts if one.lower().encode() in content or one.lower() in name.lower()]
        if held:
            found[name] = held
    return found


def test_a_publishable_report_names_no_machine_and_no_person(private: Path, tmp_path: Path) -> None:
    done = call("report", private, "--out", tmp_path / "own", "--no-figures")
    assert done.code == 0, done.err
    texts = [*SECRETS, *of_this_machine(private.parent)]
    own = found_in(tmp_path / "own", texts)
    assert {*SECRETS, str(private.parent)} <= {one for held in own.values() for one in held}
    assert any(name.startswith("transcripts/1/") for name in own)
    assert NOTE not in (tmp_path / "own" / "index.html").read_text(encoding="utf-8")

    done = call("report", private, "--out", tmp_path / "published", "--no-figures", "--publishable")
    assert done.code == 0, done.err
    assert found_in(tmp_path / "published", [*texts, str(tmp_path)]) == {}
    assert (tmp_path / "published" / "index.html").read_text(encoding="utf-8").count(f"<p>{NOTE}</p>") == 1


def test_what_a_scientist_needs_stays(private: Path, tmp_path: Path) -> None:
    call("report", private, "--out", tmp_path / "a", "--no-figures", "--publishable")
    call("report", private, "--out", tmp_path / "b", "--no-figures")
    published, own = (json.loads((tmp_path / name / "report.json").read_text("utf-8")) for name in "ab")
    (made,), (whole,) = published["runs"], own["runs"]
    changed = {name for name in made if made[name] != whole[name]}
    assert changed == {"label", "file", "model", "options", "answered_by", "data", "domains"}
    assert (made["file"], made["model"], made["data"]) == ("ours.run", "llama-of-ours", "data-of-ours")
    assert made["answered_by"] == {"llama-of-ours.gguf": sum(whole["answered_by"].values())}
    assert made["options"] == {
        "base_url": LEFT_OUT,
        "temperature": 0.25,
        "extra_body": {
            "user": LEFT_OUT,
            "top_k": 7,
            "reasoning": {"effort": "high"},
            "tags": [LEFT_OUT, 3],
        },
    }
    for domain, tally in made["domains"].items():
        before = whole["domains"][domain]
        assert {name for name in tally if tally[name] != before[name]} == {"errored_because"}
        assert tally["errored_because"] == {f"HTTP 500 {LEFT_OUT}": tally["errored"]}
    scores, before = (one["analysis"]["runs"][0]["scores"] for one in (published, own))
    assert [*scores["errors"]] == [f"HTTP 500 {LEFT_OUT}"]
    hidden: dict[str, Any] = {"file": "", "model": "", "errors": {}}
    assert {**scores, **hidden} == {**before, **hidden}
    (judged,), (named,) = published["judged"], own["judged"]
    assert [one["rater"] for one in judged["results"]["readers"]] == ["judge/b", "person/1", "person/2"]
    assert [one["rater"] for one in named["results"]["readers"]][1:] == [
        "person/mallory-b",
        "person/mallory-a",
    ]
    assert judged["results"]["shares"] == named["results"]["shares"]


def test_a_board_names_no_machine_and_no_person(private: Path, tmp_path: Path) -> None:
    out = tmp_path / "board"
    other = finish_made(tmp_path / "other.run")
    update_board(read_runs([private]).runs, out)
    update_board(read_runs([other]).runs, out, transcripts="all")
    assert len(list(out.glob("reports/*/index.html"))) == 2
    texts = [*SECRETS, *of_this_machine(private.parent), str(tmp_path)]
    assert found_in(out, texts) == {}
    board = json.loads((out / "board.json").read_text("utf-8"))
    rows = [row["run"] for section in board["versions"] for row in section["rows"]]
    assert {row["model"] for row in rows} == {"llama-of-ours", "simulated/never"}
    assert any(row["id"].startswith("llama-of-ours-") for row in rows)
    assert board["left_out"] == NOTE
    # With transcripts, and made again from the file: the same row.
    update_board(read_runs([private]).runs, out, transcripts="all")
    assert len(list(out.glob("reports/llama-*/transcripts/1/*.html"))) > 3
    assert found_in(out, texts) == {}


def finish_made(path: Path) -> Path:
    """A run of a simulated agent."""
    make(path, "simulated/never", limit=2)
    finish(path)
    return path


def test_files_of_one_name_are_told_apart_without_their_folders(private: Path, tmp_path: Path) -> None:
    copy = tmp_path / "mallory" / "ours.run"
    copy.parent.mkdir()
    shutil.copy(private, copy)
    done = call("report", private, copy, "--out", tmp_path / "both", "--no-figures", "--publishable")
    assert done.code == 0, done.err
    assert found_in(tmp_path / "both", [*SECRETS, str(tmp_path)]) == {}
    runs = json.loads((tmp_path / "both" / "report.json").read_text("utf-8"))["runs"]
    assert [run["label"] for run in runs] == ["llama-of-ours (ours.run) #1", "llama-of-ours (ours.run) #2"]


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("openai/o4-mini", "openai/o4-mini"),
        ("simulated/o3-like", "simulated/o3-like"),
        ("openrouter/meta-llama/llama-3.1-8b:free", "openrouter/meta-llama/llama-3.1-8b:free"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("/srv/models/Qwen3-8B/", "Qwen3-8B"),
        ("vllm//srv/models/Qwen3-8B", "Qwen3-8B"),
        ("../models/Qwen3-8B", "Qwen3-8B"),
        ("hf/~/models/Qwen3-8B", "Qwen3-8B"),
        ("C:\\models\\qwen.gguf", "qwen.gguf"),
        ("C:/models/qwen.gguf", "qwen.gguf"),
        ("file:///srv/qwen.gguf", "qwen.gguf"),
    ],
)
def test_a_model_that_is_a_path_is_called_by_its_last_part(model: str, shown: str) -> None:
    assert model_shown(model) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://api.together.xyz/v1", "api.together.xyz"),
        ("https://API.openai.com:443/v1", "api.openai.com"),
        ("http://127.0.0.1:8000/v1", LEFT_OUT),
        ("https://ours.openai.azure.com/v1", LEFT_OUT),
        ("https://api.openai.com.corp.example/v1", LEFT_OUT),
        ("https://[bad/v1", LEFT_OUT),
    ],
)
def test_only_hosts_of_known_providers_are_named(private: Path, url: str, shown: str) -> None:
    run = StoredRun(private)
    run.manifest = msgspec.structs.replace(run.manifest, options={"base_url": url})
    assert PublishableRun(run).manifest.options == {"base_url": shown}


def test_time_of_creation_has_no_time_zone(private: Path) -> None:
    run = StoredRun(private)
    times = {
        "2026-01-02T03:04:05+05:30": "2026-01-01T21:34:05+00:00",
        "2026-01-02T03:04:05": "2026-01-02T03:04:05",
        "0001-01-01T00:00:00+14:00": "0001-01-01T00:00:00+14:00",
        "now": "now",
    }
    for created, shown in times.items():
        run.manifest = msgspec.structs.replace(run.manifest, created=created)
        assert PublishableRun(run).manifest.created == shown


def test_errors_keep_their_status_alone() -> None:
    assert [error_shown(one) for one in ("", FAILURE, "no route to host gpu-seven")] == [
        "",
        f"HTTP 500 {LEFT_OUT}",
        LEFT_OUT,
    ]


def test_raters_stay_different_and_people_stay_people() -> None:
    names = RaterNames()
    given = ("person/b", "/a/judge", "person/a", "/b/judge", "openai/o3", "person/b")
    assert [names(one) for one in given] == [
        "person/1", "judge", "person/2", "judge #2", "openai/o3", "person/1",
    ]  # fmt: skip
