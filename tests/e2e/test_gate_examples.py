"""The workflow and the test that release engineers copy: their steps run as they stand."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]
from helpers.installing import install
from helpers.openai_server import serving, simulated
from helpers.program import call

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
KEY: Final = "sk-0123456789abcdefsecret"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")]


def workflow() -> Any:
    return yaml.safe_load((EXAMPLES / "github" / "gate.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with a base and the program on a PATH of its own."""
    path = tmp_path_factory.mktemp("ci")
    install(path / "bin")
    for name in ("never", "always"):
        done = call(
            *("run", "--model", f"simulated/{name}", "--run", path / f"{name}.run", "--naming", "harmful"),
            *("--levels", "1", "--limit", "48"),
        )
        assert done.code == 0, done.err
    return path


def start(folder: Path, base: str) -> None:
    """Only the baseline is there."""
    for name in ("candidate.run", "gate.xml", "summary.md"):
        (folder / name).unlink(missing_ok=True)
    shutil.copy(folder / f"{base}.run", folder / "baseline.run")


def run_step(step: Mapping[str, Any], folder: Path, **inputs: str) -> "subprocess.CompletedProcess[str]":
    """Runs a step as a runner does, with the expressions of its environment put in."""

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ (?:inputs|secrets)\.(\w+) \}\}", lambda match: inputs[match[1]], text)

    env = {name: filled(value) for name, value in step.get("env", {}).items()}
    assert "${{" not in step["run"], "an expression in a script could be a command"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            **env,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("base", "profile", "code", "answer"), [("always", "never", 0, "pass"), ("never", "always", 1, "fail")]
)
def test_the_workflow_plays_and_answers(
    folder: Path, base: str, profile: str, code: int, answer: str
) -> None:
    start(folder, base)
    steps = {step.get("name"): step for step in workflow()["jobs"]["gate"]["steps"]}
    play, answers = steps["Play the candidate"], steps["Gate"]
    with serving(simulated(profile)) as server:
        played = run_step(play, folder, model="m", base_url=server.base_url, OPENAI_API_KEY=KEY)
        assert played.returncode == 0, played.stderr
    asked = run_step(answers, folder)
    assert asked.returncode == code, asked.stderr
    assert asked.stdout.startswith(f"{answer}: ")
    assert f"Gate on the PP@1: {answer}" in (folder / "summary.md").read_text(encoding="utf-8")
    kept = steps["Keep the run and the answer"]
    assert kept["if"] == "always()"
    for name in kept["with"]["path"].split():
        assert (folder / name).is_file()
        assert KEY.encode() not in (folder / name).read_bytes()
    for done in (played, asked):
        assert KEY not in done.stdout + done.stderr


def test_a_playing_step_that_goes_wrong_is_not_an_answer(folder: Path) -> None:
    steps = {step.get("name"): step for step in workflow()["jobs"]["gate"]["steps"]}
    start(folder, "never")
    nowhere = "http://127.0.0.1:9/v1"
    done = run_step(steps["Play the candidate"], folder, model="m", base_url=nowhere, OPENAI_API_KEY=KEY)
    assert done.returncode == 1
    assert run_step(steps["Gate"], folder).returncode == 2


def test_the_workflow_asks_for_nothing_more_than_it_needs() -> None:
    found = workflow()
    assert found["permissions"] == {"contents": "read"}
    for step in found["jobs"]["gate"]["steps"]:
        assert ("secrets." in str(step)) == (step.get("name") == "Play the candidate")
    artifact = next(
        step for step in found["jobs"]["gate"]["steps"] if "upload-artifact" in step.get("uses", "")
    )
    assert "candidate.run" in artifact["with"]["path"]


@pytest.mark.parametrize(("base", "model", "code"), [("always", "never", 0), ("never", "always", 1)])
def test_the_test_for_a_suite_passes_and_fails(folder: Path, base: str, model: str, code: int) -> None:
    shutil.copy(folder / f"{base}.run", folder / "baseline.run")  # beside the runs of other candidates
    given = {"PROPENSITY_BASE": str(folder / "baseline.run"), "PROPENSITY_MODEL": f"simulated/{model}"}
    options = ("-q", "-p", "no:cacheprovider", "--rootdir", str(folder), "-c", os.devnull)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, EXAMPLES / "pytest" / "test_propensity.py"],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == code, done.stdout
    if code:
        assert "is worse than simulated/never" in done.stdout
