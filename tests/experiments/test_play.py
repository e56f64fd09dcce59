"""`pb.experiment`: what the command does, in one call."""

from pathlib import Path

import pytest
from helpers.openai_server import serving, simulated

import propensitybench as pb
from propensitybench.errors import BadInput, RunStopped

DESIGN = """
format = "propensitybench-experiment/1"
name = "small"
models = [{model}]
arms = ["escalating", "placebo"]
levels = 2
[sample]
limit = 4
"""


def written(folder: Path, model: str = '"simulated/at-level-1"') -> Path:
    path = folder / "small.toml"
    path.write_text(DESIGN.format(model=model), encoding="utf-8")
    return path


def test_a_design_is_played_and_analysed_and_the_same_call_only_analyses(tmp_path: Path) -> None:
    design = written(tmp_path)
    plan = pb.plan_experiment(design, simulate=0)
    assert [row["tasks"] for row in plan.rows()] == [8, 8]
    assert repr(plan).startswith("<ExperimentPlan: 2 cells, 16 tasks, ")
    found = pb.experiment(design, tmp_path / "out", concurrency=2)
    files = {path: path.read_bytes() for path in (tmp_path / "out" / "cells").iterdir()}
    assert pb.experiment(design, tmp_path / "out") == pb.analyse_experiment(tmp_path / "out") == found
    assert {path: path.read_bytes() for path in files} == files
    assert found.digest == plan.digest
    (row,) = found.rows()
    assert (row["effect"], row["kind"], row["value"]) == ("total", "difference", 0.0)
    assert found.to_dict()["models"][0]["model"] == "simulated/at-level-1"
    assert repr(found).endswith("simulated/at-level-1: no registered effect can be claimed.")


def test_a_budget_is_that_of_all_cells_and_without_it_the_same_call_goes_on(tmp_path: Path) -> None:
    with serving(simulated("at-level-1")) as server:
        design = written(tmp_path, f'{{ name = "m", options = {{ base_url = "{server.base_url}" }} }}')
        with pytest.raises(RunStopped, match=r"budget of 1 tokens is used up .*; the same call resumes"):
            pb.experiment(design, tmp_path / "out", max_tokens_total=1, concurrency=1)
        (model,) = pb.experiment(design, tmp_path / "out").models
    assert [sum(arm.tasks.values()) for arm in model.arms] == [8, 8]


def test_what_cannot_be_played_leaves_no_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(BadInput, match="limit: is no setting of how cells are played: concurrency, "):
        pb.experiment(written(tmp_path), out, limit=3)
    elsewhere = '{ name = "m", options = { base_url = "http://203.0.113.9/v1" } }'
    with pytest.raises(BadInput, match=r"small\.toml: sends requests, and the key .*--trust-endpoint"):
        pb.experiment(written(tmp_path, elsewhere), out)
    unknown = written(tmp_path, '"Qwen/Qwen3-8B"')
    for refused in (lambda: pb.plan_experiment(unknown), lambda: pb.experiment(unknown, out)):
        with pytest.raises(BadInput, match=r"unknown provider 'Qwen'; .* options = \{ base_url = "):
            refused()
    assert not out.exists()
