"""Empty, blocked and truncated replies from the command line; folders of runs; options of other versions."""

import json
import re
import sqlite3
from pathlib import Path

import pytest
from helpers.openai_server import Answer, Behaviour, always, completion, one_by_one, says, serving
from helpers.program import Done, call
from helpers.runs import journal, make

MESSAGE = '{"thoughts": "", "message": "no", "interaction_status": "terminate"}'
CUT = completion({"content": '{"thoughts": "I will now'}, "length")
BLOCKED = completion({"content": ""}, "content_filter")
EMPTY = completion({"content": ""})


def over_http(behaviour: Behaviour, path: Path, *more: str) -> Done:
    with serving(behaviour) as server:
        return call(
            "run", "--model", "m", "--base-url", server.base_url, "--run", path, "--limit", "1",
            "--concurrency", "1", "--no-preflight", *more,
        )  # fmt: skip


def test_show_numbers_turns_and_levels_after_empty_and_blocked_replies(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    answers: list[Answer] = [EMPTY, BLOCKED, CUT, says(MESSAGE)]
    over_http(one_by_one(*answers), path, "--naming", "harmful", "--levels", "4")
    ((task, _), *_) = sorted(journal(path))
    assert re.findall(r"^=== (.*)$", call("show", path, task).out, re.MULTILINE) == [
        "system",
        "user",
        "assistant, level 0, turn 1: empty reply",
        "pressure, level 1 begins",
        "assistant, level 1, turn 1: blocked reply",
        "pressure, level 2 begins",
        "assistant, level 2, turn 1: truncated reply",
        "pressure, level 3 begins",
        "assistant, level 3, turn 1: terminated",
        "pressure, level 4 begins",
        "assistant, level 4, turn 1: terminated",
    ]


@pytest.mark.slow
def test_truncated_tasks_have_no_score_and_are_not_played_again(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    done = over_http(always(CUT), path, "--levels", "1")
    advice = (
        "no score for 2 tasks: replies were cut off by the length limit. `resume` does not play these again; "
        "start a new run with a higher --max-tokens\n"
    )
    assert (done.code, done.err.startswith(advice)) == (0, True)
    assert "0.0-100.0" in done.out
    replies = journal(path)
    resumed = call("resume", path)
    kept = "as before: --concurrency 1 --no-preflight\n"
    assert (resumed.code, resumed.err, resumed.out) == (0, kept + done.err, done.out)
    assert journal(path) == replies
    scored = call("score", path)
    assert f"{path}: of 2 tasks, 2 truncated (raise --max-tokens)" in scored.out
    legend = "lowest and highest propensity that tasks begun but without a score allow"
    assert legend in " ".join(scored.out.split())
    (numbers,) = call("score", path, "--json", "--all").json["runs"]
    assert numbers["tasks"]["truncated"] == 2
    assert numbers["naming"]["harmful"]["propensity"] is None


def test_score_reads_the_run_files_in_a_folder(tmp_path: Path) -> None:
    for name in ("never", "always"):
        make(tmp_path / "runs" / f"{name}.run", f"simulated/{name}", limit=1)
        assert call("resume", tmp_path / "runs" / f"{name}.run").code == 0
    found = call("score", tmp_path / "runs", "--json", "--all").json["runs"]
    assert [run["model"] for run in found] == ["simulated/always", "simulated/never"]
    assert "-100.0" in call("compare", tmp_path / "runs").out


def test_an_option_of_another_version_is_named(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", limit=1)
    with sqlite3.connect(path) as db:
        (body,) = db.execute("SELECT body FROM manifest").fetchone()
        manifest = {**json.loads(body), "options": {"top_k": 5}, "package": "7.0"}
        db.execute("UPDATE manifest SET body = ?", (json.dumps(manifest),))
    db.close()
    done = call("resume", path)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"propensitybench: {path}: stores the model option 'top_k', which this version does not know; resume "
        "it with propensitybench 7.0, which made it\n"
    )
