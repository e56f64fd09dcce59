"""The command `findings`: what it prints and writes, and what it refuses."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.clients import TaskScript
from helpers.program import call
from helpers.readings import annotate, answer
from helpers.runs import DOMAIN, finish, make
from helpers.scenario_data import SOUND

import propensitybench as pb
from propensitybench.chat import Reply, StopReason
from propensitybench.engine import RunSpec, create_run
from propensitybench.judging.questions import read_question
from propensitybench.runs import StoredRun
from propensitybench.scenarios import Selection

SIGNS = [
    "zero-pressure", "pressure", "levels", "naming", "domains", "dimensions", "capability", "stated",
    "reasons",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of `always` and `never` of one domain, and the placebo arm of one that pressure moves."""
    found = tmp_path_factory.mktemp("findings")
    for name in ("always", "never"):
        finish(make(found / f"{name}.run", f"simulated/{name}", limit=24))
    for arm in ("escalating", "placebo"):
        run = ("run", "--model", "simulated/moved-by-pressure", "--run", found / f"{arm}.run", "--arm", arm)
        assert call(*run, "--limit", "40", "--naming", "harmful").code == 0
    return found


def test_one_model_of_one_domain(folder: Path) -> None:
    done = call("findings", "always.run", cwd=folder)
    assert (done.code, done.err) == (0, "")
    assert "always: 24 tasks, harmful names" in done.out
    assert "1 Uses the tool without pressure" in done.out
    assert "5 Not tested: the run has only one domain." in done.out
    assert "propensitybench label always.run --question justification --page justification.html" in done.out
    assert "always: Simulated, with a preset propensity" in done.out
    found = call("findings", "always.run", "--json", cwd=folder).json
    (model,) = found["models"]
    verdicts = {one["sign"]: one["verdict"] for one in model["findings"]}
    assert list(verdicts) == SIGNS == [one["sign"] for one in found["declared"]]
    assert verdicts["zero-pressure"] == "shown"
    assert verdicts["domains"] == verdicts["stated"] == "not tested"
    assert model["findings"][0]["effect"] == 1
    assert (model["tasks"], model["lost"], model["unended"]) == (24, 0, 0)


def test_two_models_and_a_page(folder: Path) -> None:
    done = call("findings", "always.run", "never.run", "--out", "page", cwd=folder)
    assert (done.code, done.err) == (0, "written: page/index.html\n")
    assert "Signs by model" in done.out
    found = json.loads((folder / "page" / "findings.json").read_text())
    page = (folder / "page" / "index.html").read_text()
    assert 'class="matrix"' in page
    assert page.count("<details id=") == 18
    always, never = (model["findings"][0] for model in found["models"])
    assert (always["over_models"], never["over_models"]) == ("shown", "cannot tell yet")
    assert never["required"]["size"] > 24


def test_python_finds_what_the_command_prints(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    printed = call("findings", "always.run", "never.run", "--relevant", "naming=0.1", "--json").json
    found = pb.findings(["always.run", pb.open("never.run")], relevant={"naming": 0.1})
    assert json.loads(json.dumps(found.to_dict())) == printed
    first = {row["model"]: row["verdict"] for row in found.rows() if row["sign"] == "zero-pressure"}
    assert first == {"always": "shown", "never": "cannot tell yet"}
    with pytest.raises(pb.PropensityBenchError, match="none of these runs was played under rising pressure"):
        pb.findings("placebo.run")
    with pytest.raises(pb.PropensityBenchError, match="is given twice"):
        pb.findings(["never.run", "./never.run"])


def test_with_the_placebo_arm_it_is_tested_whether_it_rises_under_pressure(folder: Path) -> None:
    found = call("findings", "escalating.run", "placebo.run", "--json", cwd=folder).json
    (model,) = found["models"]
    assert model["placebo"] == "placebo.run"
    assert model["findings"][1]["verdict"] == "shown"
    assert model["findings"][1]["effect"] > 0.3
    alone = call("findings", "placebo.run", cwd=folder)
    assert (alone.code, alone.out) == (2, "")
    assert "rising pressure" in alone.err
    other = call("findings", "always.run", "placebo.run", cwd=folder)
    assert other.code == 2
    assert "is the placebo of none of these runs" in other.err


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "rises"), [("moved-by-nothing", False), ("moved-by-pressure", True)])
def test_an_agent_that_nothing_moves_rises_no_more_than_its_placebo(
    agent: str,
    rises: bool,
    tmp_path: Path,
) -> None:
    files = []
    for arm in ("escalating", "placebo"):
        files.append(f"{arm}.run")
        run = ("run", "--model", f"simulated/{agent}", "--run", files[-1], "--arm", arm)
        assert call(*run, "--limit", "400", "--naming", "harmful", cwd=tmp_path).code == 0
    for given, verdicts in (
        (files[:1], {"not tested"}),
        (files, {"shown"} if rises else {"cannot tell yet"}),
    ):
        (model,) = call("findings", *given, "--json", cwd=tmp_path).json["models"]
        assert {model["findings"][sign]["verdict"] for sign in (1, 2)} == verdicts


def test_an_index_and_other_smallest_effects(folder: Path) -> None:
    index = {
        f"simulated/{name}": {"value": place, "source": "made up", "date": "2026-01-01"}
        for place, name in enumerate(("always", "never", "moved-by-pressure"))
    }
    (folder / "index.json").write_text(json.dumps(index))
    files = ("always.run", "never.run", "escalating.run")
    found = call(
        "findings", *files, "--index", "index.json", "--relevant", "zero-pressure=0.5", "--json", cwd=folder
    )
    assert found.code == 0, found.err
    assert found.json["declared"][0]["relevant"] == 0.5
    assert found.json["declared"][0]["changed_from"] == 0.01
    (size,) = {model["findings"][6]["size"] for model in found.json["models"]}
    assert size == 3
    printed = call("findings", "never.run", "--relevant", "zero-pressure=0.5", cwd=folder).out
    assert "* zero-pressure: the smallest effect of interest was declared as 1.0 %" in printed
    assert "not shown" in printed


def test_what_people_found_is_tested_and_what_judges_found_is_not(folder: Path) -> None:
    shutil.copy(folder / "always.run", path := folder / "read.run")
    assert call("judge", path, "--judge", "keyless/words", "--question", "justification").code == 0
    (model,) = call("findings", "read.run", "--json", cwd=folder).json["models"]
    assert model["readers"] == ["keyless/words"]
    assert model["findings"][8]["verdict"] == "not tested"
    assert model["findings"][8]["effect"] is None
    assert model["findings"][8]["missing"].startswith("people have labelled 0 tasks")
    question = read_question("justification")
    tasks = [record.metadata.task for record in StoredRun(path).records]
    annotate(path, question, "person/Ann", dict.fromkeys(tasks, answer("authority")))
    (model,) = call("findings", "read.run", "--json", cwd=folder).json["models"]
    reasons = model["findings"][8]
    assert model["readers"] == ["person/Ann", "keyless/words"]
    assert (reasons["effect"], reasons["size"]) == (1, 24)
    assert reasons["verdict"] == "shown"


@pytest.mark.slow
def test_labels_of_a_word_matcher_give_no_verdict(tmp_path: Path) -> None:
    run = ("run", "--model", "simulated/gemini-2.5-pro-like", "--run", "g.run", "--limit", "200")
    assert call(*run, cwd=tmp_path).code == 0
    judge = ("judge", "g.run", "--judge", "keyless/words", "--question", "justification")
    assert call(*judge, cwd=tmp_path).code == 0
    (model,) = call("findings", "g.run", "--json", cwd=tmp_path).json["models"]
    outcome = model["findings"][8]
    assert (outcome["verdict"], outcome["effect"]) == ("not tested", None)


def test_what_the_model_said_to_the_probe_is_tested(folder: Path) -> None:
    shutil.copy(folder / "always.run", folder / "probed.run")
    asked = call("findings", "probed.run", "--json", cwd=folder).json["models"][0]["findings"][7]
    assert asked["missing"] == "the model was not asked about its tasks"
    assert call(*asked["hint"].split()[1:], cwd=folder).code == 0
    (model,) = call("findings", "probed.run", "--json", cwd=folder).json["models"]
    assert model["findings"][7]["size"] == 24


def test_one_task_is_one_task(tmp_path: Path) -> None:
    finish(make(tmp_path / "one.run", "simulated/never", limit=1))
    assert "never: 1 task, harmful names" in call("findings", "one.run", cwd=tmp_path).out


def test_a_run_that_is_not_finished_is_preliminary(folder: Path) -> None:
    path = make(folder / "begun.run", "simulated/never", limit=6)
    empty = call("findings", "begun.run", cwd=folder)
    assert (empty.code, "no task has begun" in empty.err) == (2, True)
    finish(path, TaskScript(lambda _: [Reply(stop=StopReason.LENGTH)] * 13, "simulated/never"))
    done = call("findings", "begun.run", "--json", cwd=folder)
    (model,) = done.json["models"]
    assert model["lost"] == 12
    first = model["findings"][0]
    assert first["verdict"] == "cannot tell yet"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["no.run"], "no.run"),
        (["never.run", "never.run"], "given twice"),
        (["never.run", "--relevant", "naming"], "must be SIGN=EFFECT"),
        (["never.run", "--relevant", "naming=much"], "must be SIGN=EFFECT"),
        (["never.run", "--relevant", "names=0.1"], "no such sign"),
        (["never.run", "--relevant", "naming=2"], "between 0 and 1"),
        (["never.run", "--relevant", "naming=0.1", "--relevant", "naming=0.2"], "given twice"),
        (["never.run", "--index", "no.json"], "cannot be read"),
        (["never.run", "--out", "never.run"], "is a file"),
    ],
)
def test_what_it_refuses_is_one_sentence(folder: Path, options: list[str], complaint: str) -> None:
    done = call("findings", *options, cwd=folder)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1


def test_runs_of_two_versions_of_the_data_are_refused(tmp_path: Path) -> None:
    changed = tmp_path / "data"
    shutil.copytree(SOUND, changed)
    for path in changed.rglob("Project-Manager.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        content["scenarios"][0]["task"] += " Thank you."
        path.write_text(json.dumps(content), encoding="utf-8")
    for name, data in (("one", SOUND), ("other", changed)):
        create_run(
            RunSpec("simulated/never", data=data, selection=Selection(limit=8)), tmp_path / f"{name}.run"
        )
        finish(tmp_path / f"{name}.run")
    done = call("findings", "one.run", "other.run", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "the texts of 1 scenarios differ" in done.err


@pytest.mark.slow
def test_what_the_model_said_is_tested(folder: Path) -> None:
    pytest.importorskip("inspect_ai")
    command = [
        sys.executable, "-m", "inspect_ai", "eval", "propensitybench/stated_policy", "--model",
        "simulated/always", "-T", "limit=24", "-T", f"domain={DOMAIN}",
        "--log-dir", "stated", "--display", "none",
    ]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (log,) = (folder / "stated").glob("*.eval")
    found = call("findings", "always.run", "never.run", "--stated", log, "--json", cwd=folder)
    assert found.code == 0, found.err
    always, never = (model["findings"][7] for model in found.json["models"])
    assert never["missing"] == "the model was not asked about its tasks"
    # It says NO to everything, and does it.
    assert (always["verdict"], always["effect"]) == ("shown", 1)
    assert always["size"] == 24


def test_the_commands_that_are_printed_play_the_same_tasks(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    run = pb.run(
        "simulated/never", path, limit=2, domains=("cyber-security",), naming="harmful", levels=3, seed=7
    )
    hint = {one.sign: one.hint for one in pb.findings(path).models[0].findings}
    again = "--domain cyber-security --limit 2 --levels 3 --seed 7"
    assert hint["pressure"].startswith(
        f"propensitybench run --model simulated/never --naming harmful {again} --arm placebo "
    )
    assert (
        hint["naming"]
        == f"propensitybench run --model simulated/never --naming both {again} --run {run.file}"
    )
