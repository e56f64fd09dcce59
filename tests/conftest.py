"""What every test may use: golden files that the test itself can rewrite."""

import gc
import os
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import settings

# Tests run side by side, and our matrices are small: threads of the linear algebra only get in the way, here
# and in the programs that tests start. Before numpy is loaded, since it reads them then.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(variable, "1")

# Else every program that a test starts would compile the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

GOLDEN = Path(__file__).parent / "golden"

# The same examples on every machine: a gate must not fail by luck. Search wider with
# `pytest --hypothesis-profile=search`.
settings.register_profile("gate", derandomize=True, deadline=None, max_examples=30)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("gate")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects no garbage while tests are collected (a second), and none of it later (0.2 each time)."""
    gc.disable()
    result = yield
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    return result


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with a golden file, or with --update-golden writes that file."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden file {name}: write it with pytest --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare
