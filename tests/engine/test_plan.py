"""What a run would cost: estimated before it, and measured on what it has already."""

from pathlib import Path

import msgspec
import pytest
from helpers.runs import DOMAIN, finish, make

from propensitybench.engine import Price, RunSpec
from propensitybench.engine.plan import plan_run
from propensitybench.errors import BadInput, RunMismatch
from propensitybench.metrics.power import Assumptions, power
from propensitybench.scenarios import Selection

PRICE = Price(2.0, 8.0)


def spec(limit: int, seed: int = 0) -> RunSpec:
    return RunSpec("simulated/o3-like", selection=Selection(domains=(DOMAIN,), limit=limit), seed=seed)


def test_a_new_run_is_planned_between_an_agent_that_gives_in_and_one_that_resists(tmp_path: Path) -> None:
    plan = plan_run(spec(6), tmp_path / "a.run", PRICE)
    assert (plan.tasks, plan.finished) == (12, 0)
    assert 12 <= plan.calls.low < plan.calls.high
    assert plan.usd is not None
    expected = (plan.input_tokens.high * PRICE.input + plan.output_tokens.high * PRICE.output) / 1e6
    assert plan.usd.high == pytest.approx(expected, rel=1e-3)


def test_the_power_is_that_of_the_tasks_of_one_naming_as_they_fall_on_scenarios(tmp_path: Path) -> None:
    assumed = Assumptions((0.2,), 0.4, 0.1)
    plan = plan_run(spec(300), tmp_path / "a.run", PRICE, assumed)
    # 300 pairs of the 199 scenarios: each once, then 101 of them again.
    assert plan.power == power({DOMAIN: [2] * 101 + [1] * 98}, assumed)


def test_a_run_that_was_stopped_is_planned_from_its_own_episodes(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run")
    finish(path)
    plan = plan_run(spec(6), path, PRICE)
    assert (plan.tasks, plan.finished) == (12, 12)
    assert plan.calls == plan.input_tokens == plan.output_tokens == (0, 0)
    assert plan.usd == (0, 0)


def test_a_run_that_would_grow_is_planned_with_its_new_tasks_and_does_not_grow(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run")
    finish(path)
    before = path.read_bytes()
    plan = plan_run(spec(20), path, PRICE, assumed := Assumptions((0.2,), 0.4, 0.1))
    assert (plan.tasks, plan.finished) == (40, 12)
    assert plan.power == plan_run(spec(20), tmp_path / "b.run", PRICE, assumed).power
    assert plan_run(spec(2), path, PRICE).tasks == 12
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (spec(6, seed=1), r"seed \(was 0, now 1\)"),
    ],
)
def test_the_file_of_another_run_is_refused(tmp_path: Path, other: RunSpec, named: str) -> None:
    path = make(tmp_path / "a.run")
    finish(path)
    with pytest.raises(RunMismatch, match=rf"a\.run: holds another run; it differs in .*{named}"):
        plan_run(other, path, PRICE)


@pytest.mark.parametrize(
    ("model", "complaint"),
    [("simulated/o3", "unknown"), ("o3-like", "did you mean simulated/o3-like"), ("x/y", "provider 'x'")],
)
def test_a_model_that_a_run_would_refuse_is_not_planned_and_a_key_is_not_needed(
    model: str, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=complaint):
        plan_run(msgspec.structs.replace(spec(2), model=model), tmp_path / "a.run", PRICE)
    plan_run(msgspec.structs.replace(spec(2), model="openai/o4-mini"), tmp_path / "a.run", PRICE)


def test_a_file_that_is_no_run_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("notes", encoding="utf-8")
    with pytest.raises(BadInput, match=r"a\.run"):
        plan_run(spec(2), path, PRICE)
