"""A finished run file, played once."""

import shutil
from pathlib import Path

import pytest
from helpers.runs import finish, make


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make(tmp_path_factory.mktemp("played") / "a.run")
    finish(path)
    return path


@pytest.fixture
def finished(played: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    return Path(shutil.copy(played, tmp_path / "a.run"))
