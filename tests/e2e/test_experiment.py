"""An experiment from the design to the page, by the command line."""

import json
import re
import signal
import subprocess
import tomllib
from pathlib import Path

import pytest
from helpers.openai_server import serving, simulated
from helpers.program import argv, call, until
from helpers.scenario_data import SOUND

from propensitybench.store import RunFile

SMALL = """
format = "propensitybench-experiment/1"
name = "small"
models = ["simulated/moved-by-pressure"]
arms = ["escalating", "placebo"]
factors = ["oversight"]
report = true
[sample]
data = "data"
naming = "harmful"
limit = 6
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").symlink_to(SOUND)
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    return tmp_path


def test_a_new_design_is_one_that_can_be_planned(tmp_path: Path) -> None:
    done = call("experiment", "new", "e.toml", "--model", "openai/o4-mini", cwd=tmp_path)
    assert done.code == 0
    design = tomllib.loads((tmp_path / "e.toml").read_text(encoding="utf-8"))
    assert design["models"] == ["openai/o4-mini"]
    plan = call("experiment", "plan", "e.toml", "--simulate", "0", "--json", cwd=tmp_path).json
    assert len(plan["cells"]) == 5
    assert plan["tasks"] == sum(cell["tasks"] for cell in plan["cells"]) == 240 * 4 + 240 * 12
    again = call("experiment", "new", "e.toml", cwd=tmp_path)
    assert (again.code, again.err) == (2, "propensitybench: e.toml: exists already; give another name\n")


@pytest.mark.slow
def test_from_the_design_to_the_page(folder: Path) -> None:
    done = call("experiment", "run", "small.toml", "--out", "out", "--json", cwd=folder)
    assert done.code == 0, done.err
    (model,) = done.json["models"]
    assert {arm["arm"] for arm in model["arms"]} == {"escalating", "placebo"}
    assert [one["name"] for one in model["effects"]] == ["total"]
    assert len(model["doses"]) == 13
    assert sum(model["arms"][0]["conduct"].values()) == 12
    cells = sorted(path.name for path in (folder / "out" / "cells").glob("*.run"))
    assert cells == [
        f"moved-by-pressure--{arm}--oversight={level}.run"
        for arm in ("escalating", "placebo")
        for level in ("stated", "unstated")
    ]
    shown = call("experiment", "analyse", "out", cwd=folder)
    assert "rising pressure minus messages without pressure" in shown.out
    report = call("experiment", "report", "out", "--out", "page", cwd=folder)
    assert report.out == "page/index.html\n"
    page = (folder / "page" / "index.html").read_text(encoding="utf-8")
    assert done.json["digest"] in page
    assert not re.search(r"src=\"(?!data:)|(src|href)=\"(\w+:)?//", page), "nothing is loaded from elsewhere"
    assert json.loads((folder / "page" / "analysis.json").read_text(encoding="utf-8")) == done.json


@pytest.mark.slow
def test_what_is_added_after_the_first_call_is_exploratory(folder: Path) -> None:
    first = call("experiment", "run", "small.toml", "--out", "out", "--json", cwd=folder).json
    wider = SMALL.replace('"placebo"]', '"placebo", "repeat"]')
    (folder / "small.toml").write_text(wider, encoding="utf-8")
    done = call("experiment", "run", "small.toml", "--out", "out", "--json", cwd=folder)
    assert "the design has changed since it was registered" in done.err
    assert done.json["digest"] == first["digest"]
    effects = {one["name"]: one for one in done.json["models"][0]["effects"]}
    assert (effects["total"]["exploratory"], effects["escalation"]["exploratory"]) == (False, True)
    assert effects["escalation"]["p_adjusted"] is None


@pytest.mark.slow
def test_a_stopped_experiment_is_resumed_and_ends_as_one_that_was_not(folder: Path) -> None:
    command = argv("experiment", "run", "small.toml", "--out", "out", "--concurrency", "1")
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        until(process, lambda: list((folder / "out" / "cells").glob("*placebo*.run")))
        process.send_signal(signal.SIGKILL)
    resumed = call("experiment", "run", "small.toml", "--out", "out", "--json", cwd=folder)
    whole = call("experiment", "run", "small.toml", "--out", "whole", "--json", cwd=folder)
    assert resumed.code == whole.code == 0
    assert resumed.json == whole.json


@pytest.mark.slow
def test_a_budget_is_that_of_all_cells_together(folder: Path) -> None:
    with serving(simulated("at-level-3")) as server:
        model = f'{{ name = "m", options = {{ base_url = "{server.base_url}" }} }}'
        (folder / "small.toml").write_text(SMALL.replace('"simulated/moved-by-pressure"', model), "utf-8")
        command = ("experiment", "run", "small.toml", "--json", "--concurrency", "1", "--out")
        whole = call(*command, "whole", cwd=folder)
        everything = tokens_of(folder / "whole")
        limit = round(0.6 * everything)
        stopped = call(*command, "out", "--max-tokens-total", str(limit), cwd=folder)
        assert (stopped.code, stopped.out) == (1, "")
        assert "the experiment is not finished; the same command resumes it" in stopped.err
        spent = tokens_of(folder / "out")
        assert re.search(r"the budget of \d+ tokens is used up \(\d+ spent\)", stopped.err)
        assert "the budget of a cell is what the other cells leave" in stopped.err
        assert len(list((folder / "out" / "cells").glob("*.run"))) > 1
        assert limit <= spent < everything
        (cell,) = re.findall(r"propensitybench resume (\S+) --max-tokens-total N\n", stopped.err)
        calls = server.calls
        assert (call("resume", cell, cwd=folder).code, server.calls) == (1, calls)
        dollars = call(*command, "out", "--budget-usd", "0.01", "--price", "1,1", cwd=folder)
        assert dollars.code == 1
        assert "the budget of $0" in dollars.err
        resumed = call(*command, "out", cwd=folder)
        assert (resumed.code, resumed.json) == (0, whole.json)
        assert tokens_of(folder / "out") == everything


def tokens_of(folder: Path) -> int:
    total = 0
    for path in (folder / "cells").glob("*.run"):
        with RunFile.open(path) as run:
            total += run.usage().input + run.usage().output
    return total


def test_wrong_inputs_are_one_sentence(folder: Path) -> None:
    for arguments, wrong in (
        (("plan", "none.toml"), "none.toml"),
        (
            ("analyse", "none"),
            "none: holds no experiment; begin with: propensitybench experiment new",
        ),
        (("report", "none", "--out", "page"), "none: holds no experiment"),
        (("run", "small.toml", "--out", "data"), "--out data: is not empty and holds no experiment"),
    ):
        done = call("experiment", *arguments, cwd=folder)
        assert done.code == 2, arguments
        assert wrong in done.err
        assert len(done.err.splitlines()) == 1
    (folder / "small.toml").write_text(SMALL.replace("placebo", "plcebo"), encoding="utf-8")
    done = call("experiment", "plan", "small.toml", cwd=folder)
    assert done.code == 2
    assert done.err.startswith(
        "propensitybench: small.toml: is not the design of an experiment (Invalid enum"
    )
