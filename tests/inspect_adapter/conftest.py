"""What every test with Inspect AI needs: Inspect itself, and its own warnings silenced."""

import gc
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore_glob = [] if find_spec("inspect_ai") else ["test_*.py"]
FILTERS = (
    "ignore:The 'initial' parameter is deprecated:DeprecationWarning",
    "ignore:unclosed:ResourceWarning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Filters as markers hold for module fixtures too."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            for text in FILTERS:
                item.add_marker(pytest.mark.filterwarnings(text))


@pytest.fixture(scope="session", autouse=True)
def _fast() -> Iterator[None]:
    """Does once what would cost each test half a second.

    Inspect reads the file lists of all installed packages for each evaluation; they are cached. The objects
    that its import creates are kept out of garbage collection.
    """
    import inspect_ai._util.package as package

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(package, "packages_distributions", cache(packages_distributions))
        yield


@pytest.fixture(autouse=True)
def _collect_garbage() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # what is unclosed is warned of here, and not in another test
        gc.freeze()  # what outlives this test is not walked after each of the others
