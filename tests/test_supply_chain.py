"""What is installed, built and run for this package: pinned packages, the wheel, and the workflow."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from pathlib import Path
from typing import Any, Final

import pytest

yaml: Any = import_module("yaml")
packaging_requirements: Any = import_module("packaging.requirements")
packaging_utils: Any = import_module("packaging.utils")

ROOT: Final = Path(__file__).parents[1]
LOCKS: Final = {
    "requirements-dev.txt": 100,
    "requirements-audit.txt": 20,
    "requirements-records.txt": 40,
    "requirements-records-sources.txt": 1,
}
"""Each file of pinned packages, and the number of packages that it has at least."""
PYTHONS: Final = ("3.11", "3.12", "3.13")
PLATFORMS: Final = ("linux", "darwin")
WORKFLOW: Final = ROOT / ".github" / "workflows" / "ci.yml"


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def locked(name: str) -> dict[str, Any]:
    """The requirements of a lock file, by package; fails unless each has a version and a hash."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    found: dict[str, Any] = {}
    for line in text.splitlines():
        requirement, *hashes = line.split("--hash=")
        one = packaging_requirements.Requirement(requirement.strip())
        key = packaging_utils.canonicalize_name(one.name)
        assert key not in found, f"{key} is pinned twice"
        assert re.fullmatch(r"==[^,*]+", str(one.specifier)), requirement
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one.strip()) for one in hashes), requirement
        found[key] = one
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_is_pinned_with_hashes_and_no_address(name: str) -> None:
    assert len(locked(name)) > LOCKS[name]
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r"://|^\s*-[^ ]|@ ", text.replace("    --hash", "    hash"), re.MULTILINE)


def needed(requirements: list[str], extras: frozenset[str], python: str, platform: str) -> list[Any]:
    """The requirements that hold on a Python and a platform."""
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "sys_platform": platform,
        "platform_system": {"linux": "Linux", "darwin": "Darwin"}[platform],
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }
    return [
        one
        for one in map(packaging_requirements.Requirement, requirements)
        if one.marker is None
        or any(one.marker.evaluate({**environment, "extra": extra}) for extra in extras or {""})
    ]


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("python", PYTHONS)
def test_the_pinned_packages_are_all_that_is_needed(python: str, platform: str) -> None:
    """``--no-deps`` installs only what is listed, so the list has to be complete and consistent."""
    pins = locked("requirements-dev.txt")
    content = project()
    queue = [("propensitybench", frozenset({"", "dev", "inspect", "analysis"}))]
    build = needed(content["build-system"]["requires"], frozenset(), python, platform)
    seen: set[Any] = set()
    while queue:
        name, extras = queue.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            wanted = needed(requires(name) or [], extras, python, platform)
        except PackageNotFoundError:
            continue  # needed on other platforms or Pythons only, so that its metadata are not here
        for one in [*wanted, *(build if name == "propensitybench" else [])]:
            key = packaging_utils.canonicalize_name(one.name)
            if key == "propensitybench":
                continue
            assert key in pins, f"{one} of {name}"
            (pin,) = pins[key].specifier
            assert one.specifier.contains(pin.version, prereleases=True), f"{one} of {name}: {pins[key]}"
            queue.append((key, frozenset(one.extras) or frozenset({""})))
    assert len(seen) > 100


def test_what_is_installed_is_what_is_pinned() -> None:
    for name, one in locked("requirements-dev.txt").items():
        if one.marker is None or one.marker.evaluate():
            assert one.specifier.contains(version(name), prereleases=True), f"{one}, found {version(name)}"


def test_the_supported_pythons_are_those_that_are_tested() -> None:
    prefix = "Programming Language :: Python :: "
    classifiers = project()["project"]["classifiers"]
    supported = [line.removeprefix(prefix) for line in classifiers if line.startswith(prefix)]
    matrix = workflow()["jobs"]["test"]["strategy"]["matrix"]
    assert supported == matrix["python"] == list(PYTHONS)


# --- The workflow ---


def workflow() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return loaded


def steps() -> list[dict[str, Any]]:
    return [step for job in workflow()["jobs"].values() for step in job["steps"]]


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def called(text: str) -> set[str]:
    """The targets that shell commands make."""
    commands = re.findall(r"\bmake\b([^\n&;]*)", text)
    return {
        word
        for command in commands
        for word in re.sub(r"-C \S+", "", command).split()
        if re.fullmatch(r"[a-z-]+", word)
    }


def test_workflow_and_gate_call_targets_that_exist() -> None:
    runs = "\n".join(step["run"] for step in steps() if "run" in step)
    assert called(runs) >= {"test", "test-slow", "check", "fuzz", "audit", "wheel"}
    assert called(runs) <= targets()
    assert called((ROOT / ".ci" / "run").read_text(encoding="utf-8")) == {"test-all", "check", "records"}
    assert {"test-all", "check", "records"} <= targets()


def test_the_scripts_of_the_targets_exist() -> None:
    scripts = re.findall(r"\$\(BIN\)/python (\S+\.py)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert [name for name in scripts if not (ROOT / name).is_file()] == []


def test_the_workflow_may_only_read_and_pins_every_action_by_digest() -> None:
    content = workflow()
    assert content["permissions"] == {"contents": "read"}
    assert all("permissions" not in job and job["timeout-minutes"] for job in content["jobs"].values())
    assert "secrets." not in WORKFLOW.read_text(encoding="utf-8")
    uses = [step for step in steps() if "uses" in step]
    assert uses
    for step in uses:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])
        if step["uses"].startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


# --- The wheel ---


def clone(folder: Path, mask: int, time: int) -> Path:
    """A clone of this repository whose files have other modes and times."""
    before = os.umask(mask)
    try:
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, folder], check=True)
    finally:
        os.umask(before)
    for path in folder.rglob("*"):
        if ".git" not in path.relative_to(folder).parts:
            os.utime(path, (time, time))
    return folder


@pytest.mark.slow
def test_a_wheel_built_twice_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    distribution("hatchling")
    wheels = []
    for folder, mask, time in (
        (tmp_path / "a", 0o022, 10**9),
        (tmp_path / "b" / "a longer name", 0o077, 1.7e9),
    ):
        source = clone(folder, mask, int(time))
        before = os.umask(mask)
        try:
            # The environment is this one, and not made again.
            subprocess.run(
                ["make", "wheel", "-o", ".venv/.ready", f"BIN={Path(sys.executable).parent}"],
                cwd=source,
                check=True,
                env={**os.environ, "TZ": f"UTC{mask % 12}", "PYTHONHASHSEED": str(mask)},
            )
        finally:
            os.umask(before)
        wheels += list((source / "dist").glob("*.whl"))
    one, other = wheels
    assert one.name == other.name
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as wheel:
        names = wheel.namelist()
        assert "propensitybench/py.typed" in names
        assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]
        assert {member.date_time for member in wheel.infolist()} != {(2020, 2, 2, 0, 0, 0)}
