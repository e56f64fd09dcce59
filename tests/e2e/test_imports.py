"""What is imported before it is needed: heavy packages cost more than most commands."""

import json
import subprocess
import sys

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


def test_runs_metrics_and_pages_import_nothing_heavy_before_it_is_used() -> None:
    heavy = {"inspect_ai", "matplotlib", "polars", "scipy", "statsmodels"}
    modules = "runs", "metrics.analysis", "metrics.regression", "pages"
    imports = ", ".join(f"propensitybench.{module}" for module in modules)
    drawn = "import propensitybench.pages.figures; print('matplotlib.pyplot' in sys.modules)"
    found = run(f"import sys, {imports}; print(sorted({heavy} & sys.modules.keys())); {drawn}")
    assert found.split() == ["[]", "False"]
