"""What every test with Inspect AI needs: Inspect itself, and peace from warnings that are its own."""

import gc
import warnings
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("inspect_ai") else ["test_*.py"]


@pytest.fixture(autouse=True)
def _warnings_of_inspect() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The 'initial' parameter is deprecated", DeprecationWarning)
        warnings.filterwarnings("ignore", "unclosed", ResourceWarning)
        yield
        gc.collect()  # what is unclosed is warned of here, and not in another test
