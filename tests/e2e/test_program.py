"""The command line from end to end, as a user meets it."""

import json
import logging
import os
import signal
import sqlite3
import subprocess
from pathlib import Path
from threading import Thread

import pytest
from helpers.openai_server import always, error, serving
from helpers.program import argv, call, until
from helpers.runs import journal, make
from helpers.scenario_data import SOUND, built_in, published_copy

import propensitybench as pb
from propensitybench.cli.app import Notes
from propensitybench.scenarios import read_dataset
from propensitybench.simulated import CAVEAT
from propensitybench.store import RunFile

PUBLISHED = Path(__file__).parents[3] / "shared" / "published_sample"


def play(path: Path, model: str = "simulated/o3-like", *more: str) -> None:
    done = call("run", "--model", model, "--run", path, "--limit", "8", *more)
    assert done.code == 0, done.err


def test_run_score_verify_show(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    done = call("run", "--model", "simulated/at-level-3", "--run", path, "--limit", "6", "--json")
    assert done.code == 0
    assert done.json["tasks"] == {
        "total": 12, "misaligned": 12, "resisted": 0, "blocked": 0, "truncated": 0, "errored": 0,
        "unfinished": 0, "unplayed": 0, "not_drawn": 0, "completed": 0,
    }  # fmt: skip
    (scored,) = call("score", path, "--json", "--all").json["runs"]
    assert scored["naming"]["harmful"]["propensity"] == 1.0
    assert scored["naming"]["benign"]["resilience"] == 3.0
    assert scored["naming"]["harmful"]["cumulative_by_level"] == [0, 0, 0] + [1] * 10
    assert scored["naming_sensitivity"] == 0
    verified = call("verify", path, "--json")
    assert (verified.code, verified.json["differences"]) == (0, [])
    task = next(iter(journal(path)))[0]
    shown = call("show", path, task)
    assert "<<< GAVE IN" in shown.out
    assert "misaligned at level 3" in shown.out
    assert "pressure, level 3 begins" in shown.out
    assert f"{task}  misaligned at level 3\n" in call("show", path).out
    listed = call("show", path, "--json").json["tasks"]
    assert {row["record"]["stats"]["outcome"] for row in listed} == {"misaligned"}
    turns = call("show", path, task, "--json").json["turns"]
    assert turns[-1]["event"] == "misaligned tool called"


def test_an_agent_that_never_made_a_right_call_is_said_to_look_safe(tmp_path: Path) -> None:
    run = tmp_path / "a.run"
    done = call("run", "--model", "simulated/incompetent", "--limit", "20", "--run", run)
    assert "0.0 (0.0-18.3)" in done.out
    sentence = call("score", run, "--json").json["runs"][0]["low_competence"]
    assert sentence.startswith("competence is only 0.0 % (harmful names) and 0.0 % (benign names): ")
    notices = [f"{run}: {CAVEAT}", f"{run}: C{sentence[1:]}."]
    assert all(notice in done.out for notice in notices)
    never = tmp_path / "never.run"
    assert call("run", "--model", "simulated/never", "--limit", "20", "--run", never).code == 0
    gated = call("gate", run, never).out
    assert f"note: {run}, {never}: {CAVEAT}" in gated
    assert f"note: {run}: Competence is only 0.0 % (harmful names): " in gated
    assert f"{run}, {never}: {CAVEAT}" in call("compare", run, never).out
    for done in (call("score", run), call("compare", run, never)):
        assert notices[1] in done.out
    assert f"note: incompetent: C{sentence[1:]}." in call("findings", run).out


def test_the_score_contract_has_every_field(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    play(path)
    (scored,) = call("score", path, "--json", "--all").json["runs"]
    assert {"file", "model", "tasks", "naming", "naming_sensitivity"} <= scored.keys()
    for naming in ("harmful", "benign"):
        promised = {
            "propensity", "propensity_zero", "ci95", "bounds", "by_domain", "by_dimension", "by_capability",
            "cumulative_by_level", "resilience", "persistence", "abandonment",
        }  # fmt: skip
        assert promised <= scored["naming"][naming].keys()
        assert len(scored["naming"][naming]["cumulative_by_level"]) == 13
        assert len(scored["naming"][naming]["ci95"]) == 2


def test_tables_show_what_is_missing_and_errored_runs_exit_with_1(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    with serving(always(error(400, "no tools here"))) as server:
        endpoint = ("--base-url", server.base_url, "--no-preflight")
        done = call("run", "--model", "m", *endpoint, "--run", path, "--limit", "2")
    assert done.code == 1
    assert (
        "4 tasks errored, the last one: request refused after 1 attempt: HTTP 400: no tools here" in done.err
    )
    scored = call("score", path)
    assert "of 4 tasks, 4 errored" in scored.out
    assert call("score", path, "--json", "--all").json["runs"][0]["naming"]["harmful"]["propensity"] is None
    assert call("score", path, "--json", "--all").json["runs"][0]["naming"]["harmful"]["bounds"] == [0.0, 1.0]


def test_run_on_an_existing_file_resumes_it_or_names_the_difference(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    play(path)
    before = path.read_bytes()
    play(path)
    assert path.read_bytes() == before
    done = call("run", "--model", "simulated/o3-like", "--run", path, "--limit", "8", "--seed", "1")
    assert done.code == 2
    assert "seed (was 0, now 1)" in done.err
    assert path.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_in_the_middle_leaves_a_file_that_resume_finishes(tmp_path: Path, number: int) -> None:
    whole, broken = make(tmp_path / "whole.run", limit=120), make(tmp_path / "broken.run", limit=120)
    process = subprocess.Popen(
        argv("resume", broken, "--concurrency", "1"),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    until(process, lambda: journal(broken))
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == 130, err
    assert f"propensitybench resume {broken}" in err
    assert len(journal(broken)) > 0
    assert call("resume", whole, "--json").code == 0
    assert call("resume", broken, "--json").code == 0
    first, second = (call("score", path, "--json", "--all").json["runs"][0] for path in (whole, broken))
    assert {**first, "file": ""} == {**second, "file": ""}
    assert call("verify", broken).code == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["run", "--model", "simulated/nver", "--run", "x.run"], "did you mean 'never'"),
        (["run", "--model", "openai/gpt", "--run", "x.run"], "needs a key; type: export OPENAI_API_KEY"),
        (["run", "--model", "simulated/never", "--run", "x.run", "--domain", "cyber"], "'cyber-security'"),
        (["run", "--model", "simulated/never", "--run", "x.run", "--dimension", "tme"], "'time'"),
        (["run", "--model", "simulated/never", "--run", "x.run", "--workspace", "x"], "unknown workspace"),
        (["run", "--model", "simulated/never", "--run", "x.run", "--data", "nowhere"], "is not a folder"),
        (
            ["run", "--model", "simulated/never", "--run", "x.run", "--template", "no.j2"],
            "nor is there a file of that name",
        ),
        (["run", "--model", "simulated/never", "--run", "x.run", "--limit", "0"], "--limit"),
        (["score", "nowhere.run"], "does not exist"),
        (["verify", "pyproject.toml"], "is not a run file"),
        (["resume", "nowhere.run"], "does not exist"),
        (["score", "."], ".: holds neither a run file nor an Inspect log"),
        (["play", "nobody_home"], "unknown scenario"),
        (["data", "export", "--out", "."], "is not empty"),
        (["frobnicate"], "No such command"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments: list[str], complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    done = call(*arguments, cwd=tmp_path)
    assert done.code == 2
    assert complaint in done.err
    assert done.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["pyproject.toml"]


def test_show_suggests_similar_task_keys(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", limit=1)
    with RunFile.open(path) as run:
        task, other = run.task_keys()
    done = call("show", path, task.replace(".1", ".2"))
    assert done.code == 2
    assert f"unknown task {task.replace('.1', '.2')!r}; did you mean" in done.err
    assert repr(task) in done.err
    assert "not finished yet" in call("show", path, other).out
    assert call("show", path).out == f"{task}  not finished yet\n{other}  not finished yet\n"


def test_data_stats_and_list() -> None:
    stats = call("data", "stats", "--json").json
    assert stats["by_domain"] == {
        "bio-security": 234,
        "chemical-security": 262,
        "cyber-security": 284,
        "self-proliferation": 199,
    }
    assert stats["tools"] == stats["getters"] + 2 * stats["scenarios"]
    assert f"scenarios: {stats['scenarios']}" in call("data", "stats").out
    listed = call("data", "list", "--role", "Cost-Optimization-Analyst", "--json").json["scenarios"]
    assert len(listed) == 8
    assert all(row["id"].startswith("s3:") for row in listed)


def test_the_built_in_data_is_the_same_when_exported(tmp_path: Path) -> None:
    out = tmp_path / "own"
    assert call("data", "export", "--layout", "own", "--out", out).code == 0
    exported = read_dataset(out)
    assert exported.scenarios == built_in().scenarios
    assert exported.storylines == built_in().storylines


def test_validate_names_the_issues_of_broken_data(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{")
    done = call("data", "validate", "--data", tmp_path, "--json")
    assert (done.code, len(done.json["issues"])) == (1, 1)
    assert call("data", "validate", "--data", SOUND, "--json").json["issues"] == []


@pytest.mark.parametrize("layout", ["own", "published"])
@pytest.mark.parametrize(("field", "name"), [("domain", "../../x"), ("workspace", "/tmp/x")])
def test_an_export_stays_in_its_folder(tmp_path: Path, layout: str, field: str, name: str) -> None:
    file = published_copy(tmp_path / "data")
    ((domain, workspaces),) = json.loads(file.read_text(encoding="utf-8")).items()
    ((workspace, roles),) = workspaces.items()
    content = {name: {workspace: roles}} if field == "domain" else {domain: {name: roles}}
    file.write_text(json.dumps(content), encoding="utf-8")
    out = tmp_path / "a" / "b" / "out"
    done = call("data", "export", "--data", tmp_path / "data", "--layout", layout, "--out", out)
    assert done.code == 2
    assert f"{name!r} cannot name a file or folder" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_data_show_prints_a_scenario_and_its_messages() -> None:
    name = "storefront_capacity_ceiling"
    shown = call("data", "show", name, "--dimension", "financials").out
    found = call("data", "show", name, "--dimension", "financials", "--json").json
    assert shown.startswith(f"{name}\n")
    assert "Pressure messages: financials" in shown
    assert shown.count("  From: ") == shown.count("  Subject: ") == len(found["messages"]) == 12
    flat = " ".join(shown.split())
    scenario = found["scenario"]
    assert scenario["task"] in flat
    for text in (*scenario["aligned"]["errors"], scenario["misaligned"]["harmful"]["description"]):
        assert text in flat
    for message in found["messages"]:
        assert " ".join(message["body"].split()) in flat
    assert max(map(len, shown.splitlines())) <= 100
    assert call("data", "show", "storefront_capacity_celing").code == 2
    assert "did you mean" in call("data", "show", "storefront_capacity_celing").err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "model"),
    # The published layout loses the storylines' names, on which the effects of most profiles depend.
    [("own", "simulated/claude-4-sonnet-like"), ("published", "simulated/constant-0.05")],
)
def test_an_exported_data_set_gives_the_same_scores(layout: str, model: str, tmp_path: Path) -> None:
    call("data", "export", "--layout", layout, "--out", tmp_path / "data")
    for name, more in (("a", []), ("b", ["--data", str(tmp_path / "data")])):
        play(tmp_path / f"{name}.run", model, *more)
    first, second = (call("score", tmp_path / f"{n}.run", "--json", "--all").json["runs"][0] for n in "ab")
    assert 0 < first["naming"]["benign"]["propensity"] < 1
    assert {**first, "file": ""} == {**second, "file": ""}


@pytest.mark.slow
@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published sample is not beside this checkout")
def test_the_published_sample_runs_and_survives_an_export(tmp_path: Path) -> None:
    scores = {}
    for name, model, data in (
        ("level", "simulated/at-level-3", PUBLISHED),
        ("never", "simulated/never", PUBLISHED),
        ("again", "simulated/at-level-3", tmp_path / "exported"),
    ):
        if name == "again":
            assert call("data", "export", "--data", PUBLISHED, "--out", data).code == 0
        path = tmp_path / f"{name}.run"
        assert call("run", "--model", model, "--data", data, "--run", path).code == 0
        assert call("verify", path).code == 0
        scores[name] = call("score", path, "--json", "--all").json["runs"][0]["naming"]
    for naming in ("harmful", "benign"):
        level, never = scores["level"][naming], scores["never"][naming]
        assert (level["propensity"], level["resilience"], level["propensity_zero"]) == (1.0, 3.0, 0.0)
        assert (never["propensity"], never["resilience"]) == (0.0, None)
        assert set(level["by_domain"]) == {"cyber-security", "self-proliferation"}
    assert scores["again"] == scores["level"]


@pytest.mark.slow
def test_demo_ends_with_a_table_and_what_it_means(tmp_path: Path) -> None:
    out = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))  # not UTF-8
    done = call("demo", "--out", out)
    assert done.code == 0
    assert r"propensitybench score '" in done.out
    for part in (
        "o3-like",
        "claude-4-sonnet-like",
        "gemini-2.5-pro-like",
        "harmful",
        "benign",
        "No language model was used",
        "say nothing about any model",
    ):
        assert part in done.out
    assert len(list(out.glob("*.run"))) == 3
    assert call("demo", "--out", out).out == done.out


def test_a_transcript_with_control_characters_shows_as_text(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    play(path)
    with sqlite3.connect(path) as db:
        nasty = "\x1b[31mred\x1b]0;title\x07 \u202egnp.exe [bold]x[/bold]"
        db.execute("UPDATE reply SET body = json_set(body, '$.content', ?)", (nasty,))
    db.close()
    task = next(iter(journal(path)))[0]
    shown = call("show", path, task)
    assert "\\x1b[31mred\\x1b]0;title\\x07 \\u202egnp.exe [bold]x[/bold]" in shown.out
    assert "\x1b" not in shown.out
    assert "\u202e" not in shown.out


def test_help_names_every_command() -> None:
    done = call("--help")
    for command in ("demo", "run", "resume", "score", "verify", "show", "data", "play"):
        assert command in done.out
        assert call(command, "--help").code == 0


def test_a_template_that_fails_when_it_is_rendered_is_bad_input(tmp_path: Path) -> None:
    template = tmp_path / "t.j2"
    template.write_text("{{ policy.nothing_of_that_name }}")
    new = ("run", "--model", "simulated/never", "--run", tmp_path / "a.run", "--limit", "6")
    done = call(*new, "--template", template)
    assert done.code == 2
    assert "system message template: 'dict object' has no attribute 'nothing_of_that_name'" in done.err


def test_a_run_under_the_policy_that_names_no_tool_is_another_run(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    play(path, "simulated/at-level-2", "--template", "unnamed")
    assert pb.open(path).score().naming["benign"].resilience == 2.0
    done = call("report", path, "--out", tmp_path / "report", "--no-figures", "--transcripts", "none")
    assert done.code == 0
    made = json.loads((tmp_path / "report/report.json").read_text(encoding="utf-8"))["runs"][0]
    assert made["template"] == "unnamed"
    done = call("run", "--model", "simulated/at-level-2", "--run", path, "--limit", "6")
    assert (done.code, "system message template" in done.err) == (2, True)


@pytest.mark.slow
def test_without_standard_error_a_run_is_played_and_errors_do_not_go_to_standard_output(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.run"
    program, *arguments = argv("run", "--model", "simulated/never", "--run", path, "--limit", "1", "--json")
    command = ["sh", "-c", f"exec '{program}' \"$@\" 2>&-", "sh", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert '"unplayed":0' in done.stdout


def test_the_version_is_printed() -> None:
    assert call("--version").out.startswith("propensitybench 0.")


def test_a_note_is_shown_each_time_from_whatever_thread(capsys: pytest.CaptureFixture[str]) -> None:
    notes, logger = Notes(), logging.getLogger("propensitybench.a_room")
    logging.getLogger("propensitybench").addHandler(notes)
    try:
        for _ in range(2):
            thread = Thread(target=logger.warning, args=("the proxy %s can read the key", "http://a\n"))
            thread.start()
            thread.join()
    finally:
        logging.getLogger("propensitybench").removeHandler(notes)
    assert capsys.readouterr().err == "note: the proxy http://a\\n can read the key\n" * 2
