"""The settings of the Ray engine, and the program without Ray."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers.runs import client_of

import propensitybench as pb
from propensitybench.engine import ExecutionOptions
from propensitybench.engine.agents import variables_of
from propensitybench.errors import BadInput

# A program in which Ray cannot be imported.
WITHOUT_RAY = """
import sys
sys.modules["ray"] = None
from propensitybench.cli import main
sys.argv[0] = "propensitybench"
main()
"""


def without_ray(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_RAY, *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def test_without_ray_everything_else_works_and_its_engine_says_what_to_install(tmp_path: Path) -> None:
    run = ("run", "--model", "simulated/never", "--limit", "2", "--run")
    usual = without_ray(*run, tmp_path / "a.run")
    assert (usual.returncode, "Ray" in usual.stderr) == (0, False)
    wanted = without_ray(*run, tmp_path / "b.run", "--engine", "ray")
    assert wanted.returncode == 2
    install = "engine ray: Ray is not installed; type: pip install 'propensitybench[ray]'"
    assert wanted.stderr == f"propensitybench: {install}\n"
    assert not (tmp_path / "b.run").exists()


def test_settings_of_ray_need_its_engine(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="workers: is a setting of the Ray engine"):
        ExecutionOptions(workers=2)
    with pytest.raises(BadInput, match="ray_address: is a setting of the Ray engine"):
        pb.run("simulated/never", tmp_path / "a.run", ray_address="10.0.0.5:6379")
    with pytest.raises(BadInput, match="workers: must be a whole number of 1 or more"):
        pb.run("simulated/never", tmp_path / "a.run", engine="ray", workers=0)


def test_a_client_object_is_not_sent_to_ray(tmp_path: Path) -> None:
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    client = client_of("simulated/o3-like")
    with pytest.raises(BadInput, match="client: cannot be sent to Ray's workers"):
        pb.run("simulated/o3-like", tmp_path / "a.run", client=client, engine="ray", limit=2)


def test_only_what_the_client_needs_leaves_this_machine() -> None:
    environment = {
        "OPENAI_API_KEY": "a",
        "OPENAI_BASE_URL": "b",
        "PROPENSITYBENCH_API_KEY": "d",
        "HTTPS_PROXY": "e",
    }
    assert variables_of("openai/o4-mini", None, environment) == {
        "OPENAI_API_KEY": "a",
        "OPENAI_BASE_URL": "b",
    }
    assert variables_of("openai/x", "http://h/v1", environment) == {"PROPENSITYBENCH_API_KEY": "d"}
    assert variables_of("simulated/never", None, environment) == {}
