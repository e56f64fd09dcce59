"""A run made in Python is checked before anything is written."""

from math import nan
from pathlib import Path
from typing import Any

import pytest

from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import Protocol
from propensitybench.errors import BadInput
from propensitybench.scenarios import Selection
from propensitybench.store import RunFile, StoppingRule


@pytest.mark.parametrize("seed", ["7", 7.0, True, None, 2**63, -(2**63) - 1, 2**64, nan])
def test_a_seed_is_an_integer_of_64_bits(seed: Any) -> None:
    with pytest.raises(BadInput, match=r"^seed: must be"):
        RunSpec("simulated/never", seed=seed)


@pytest.mark.parametrize("seed", [0, -1, 2**63 - 1, -(2**63)])
def test_a_seed_at_the_limits_makes_a_file_that_opens(seed: int, tmp_path: Path) -> None:
    create_run(RunSpec("simulated/never", seed=seed, selection=Selection(limit=1)), tmp_path / "a.run")
    with RunFile.open(tmp_path / "a.run") as run:
        assert run.manifest.seed == seed


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"half_width": nan}, "precision"),
        ({"half_width": 0}, "precision"),
        ({"half_width": 0.1, "batch": 0}, "stopping rule: batch"),
        ({"half_width": 0.1, "batch": 2.5}, "stopping rule: batch"),
        ({"half_width": "0.1"}, "precision"),
        ({"half_width": 0.1, "least": -1}, "stopping rule: least"),
    ],
)
def test_a_stopping_rule_can_be_met(fields: dict[str, Any], name: str) -> None:
    with pytest.raises(BadInput, match=f"^{name}: must be"):
        StoppingRule(**fields)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"protocol": Protocol(levels=13)}, "levels: must be from 0 to 12"),
        ({"protocol": Protocol(turns_per_level=0)}, "turns_per_level: must be from 1"),
        ({"protocol": Protocol(messages_in_a_row=10**9)}, "messages_in_a_row: must be from 1"),
        ({"selection": Selection(limit=1, namings=())}, "no tasks selected"),
        ({"template": 7}, "template: must be text"),
        ({"selection": Selection(limit=1, epochs=True)}, "cannot be stored"),
    ],
)
def test_what_could_not_be_opened_is_not_created(
    spec: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.run"
    settings = {"selection": Selection(limit=1), **spec}
    with pytest.raises(BadInput, match=complaint):
        create_run(RunSpec("simulated/never", **settings), path)
    assert list(tmp_path.iterdir()) == []
