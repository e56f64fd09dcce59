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
HELP = f"""
import contextlib, io, json, sys
from propensitybench.cli.app import build
with contextlib.redirect_stdout(io.StringIO()) as out:
    build([])(["--help"], standalone_mode=False)
assert all(name in out.getvalue() for name in {list(COMMANDS)})
print(json.dumps(sorted(set({HEAVY}) & sys.modules.keys())))
"""


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_the_help_of_the_program_imports_no_command() -> None:
    assert json.loads(run(HELP)) == []


@pytest.mark.parametrize(
    "module",
    ["propensitybench.runs", "propensitybench.metrics.analysis", "propensitybench.metrics.regression"],
)
def test_runs_and_metrics_import_no_statistics_before_something_is_tested(module: str) -> None:
    heavy = {"inspect_ai", "matplotlib", "polars", "scipy", "statsmodels"}
    assert run(f"import sys, {module}; print(sorted({heavy} & sys.modules.keys()))").strip() == "[]"
