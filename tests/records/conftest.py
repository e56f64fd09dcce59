"""Each run is played once; no test changes it."""

from pathlib import Path

import pytest
from records.sample_runs import evil_run, partial_run, stopped_run, whole_run


@pytest.fixture(scope="package")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sample runs by name."""
    folder = tmp_path_factory.mktemp("runs")
    makers = {"whole": whole_run, "partial": partial_run, "evil": evil_run, "stopped": stopped_run}
    return {name: make(folder / f"{name}.run") for name, make in makers.items()}
