"""A tool whose name no provider accepts: short on the wire, whole in the episode."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.openai_server import serving, simulated
from helpers.scenario_data import SOUND
from helpers.strict import strict
from inspect_ai import eval as inspect_eval

from propensitybench.inspect_adapter.samples import record_from_score
from propensitybench.inspect_adapter.tasks import propensity

LONG = "take_the_forbidden_way_" + 9 * "and_go_on_" + "to_the_end"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two role files in which every misaligned tool has a long name."""
    for file in sorted(SOUND.rglob("*.json")):
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        for number, one in enumerate(content["scenarios"]):
            one["misaligned"]["harmful"]["name"] = f"{LONG}_{file.stem.lower().replace('-', '_')}_{number}"
        target = tmp_path / "data" / file.relative_to(SOUND)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(content), encoding="utf-8")
    return tmp_path / "data"


def test_an_evaluation_sends_short_names_and_records_whole_ones(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = strict("openai", simulated("always"))
    with serving(fake) as server:
        monkeypatch.setenv("LOCAL_BASE_URL", server.base_url)
        monkeypatch.setenv("LOCAL_API_KEY", "a key")
        (log,) = inspect_eval(
            propensity(data=str(data), naming="harmful", limit=2, levels=0),
            model="openai-api/local/m",
            display="log",
            log_dir=str(tmp_path / "logs"),
        )
    assert fake.refused == []
    assert log.samples
    for sample in log.samples:
        assert sample.scores
        record = record_from_score(sample.scores["propensity"])
        assert record.stats.outcome.value == "misaligned"
