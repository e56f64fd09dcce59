"""What is imported before it is needed: heavy packages cost more than most commands."""

import json
import subprocess
import sys

import pytest

from propensitybench.cli.app import COMMANDS

HEAVY = (
    "aiohttp",
    "inspect_ai",
    "matplotlib",
    "numpy",
    "polars",
    "propensitybench.scenarios",  # hundreds of milliseconds of pydantic models
    "scipy",
    "statsmodels",
)
# Every command's help in one process; after each, which heavy packages have been imported so far.
HELP = f"""
import contextlib, io, json, sys
from propensitybench.cli.app import build
found = {{}}
for name in {list(COMMANDS)}:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        build([name])([name, "--help"], standalone_mode=False)
    assert "--help" in out.getvalue(), name
    found[name] = sorted(set({HEAVY}) & sys.modules.keys())
print(json.dumps(found))
"""


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_no_help_imports_what_only_the_command_needs() -> None:
    assert json.loads(run(HELP)) == {name: [] for name in COMMANDS}


@pytest.mark.parametrize(
    "module",
    ["propensitybench.runs", "propensitybench.metrics.analysis", "propensitybench.metrics.regression"],
)
def test_runs_and_metrics_import_no_statistics_before_something_is_tested(module: str) -> None:
    heavy = {"inspect_ai", "matplotlib", "polars", "scipy", "statsmodels"}
    assert run(f"import sys, {module}; print(sorted({heavy} & sys.modules.keys()))").strip() == "[]"
