"""What is installed and run for this package: pinned packages and the workflows."""

import re
import tomllib
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Final

import pytest

yaml: Any = import_module("yaml")
packaging_requirements: Any = import_module("packaging.requirements")
packaging_utils: Any = import_module("packaging.utils")

ROOT: Final = Path(__file__).parents[1]
LOCKS: Final = {
    "requirements.txt": 20,
    "requirements-dev.txt": 100,
    "requirements-audit.txt": 20,
    "requirements-records.txt": 40,
    "requirements-records-sources.txt": 1,
}
"""Each file of pinned packages, and the number of packages that it has at least."""
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS: Final = ("linux", "darwin")
WORKFLOWS: Final = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in (ROOT / ".github" / "workflows").glob("*.yml")
}
# What jobs may do besides reading the repository.
MAY: Final = {
    ("release", "attest"): {"attestations": "write", "contents": "read", "id-token": "write"},
    ("release", "publish"): {"id-token": "write"},
    ("release", "notes"): {"contents": "write"},
    ("site", "deploy"): {"id-token": "write", "pages": "write"},
}


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
@pytest.mark.parametrize(
    ("name", "extras", "least"),
    [("requirements-dev.txt", {"", "dev"}, 100), ("requirements.txt", {""}, 30)],
)
def test_the_pinned_packages_are_all_that_is_needed(
    python: str, platform: str, name: str, extras: set[str], least: int
) -> None:
    """``--no-deps`` installs only what is listed, so the list has to be complete and consistent."""
    pins = locked(name)
    queue = [("propensitybench", frozenset(extras))]
    requires_of_build = project()["build-system"]["requires"] if "dev" in extras else []
    build = needed(requires_of_build, frozenset(), python, platform)
    seen: set[Any] = set()
    while queue:
        package, asked = queue.pop()
        if (package, asked) in seen:
            continue
        seen.add((package, asked))
        try:
            wanted = needed(requires(package) or [], asked, python, platform)
        except PackageNotFoundError:
            continue  # needed on other platforms or Pythons only, so that its metadata are not here
        for one in [*wanted, *(build if package == "propensitybench" else [])]:
            key = packaging_utils.canonicalize_name(one.name)
            if key == "propensitybench":
                continue
            assert key in pins, f"{one} of {package}"
            (pin,) = pins[key].specifier
            assert one.specifier.contains(pin.version, prereleases=True), f"{one} of {package}: {pins[key]}"
            queue.append((key, frozenset(one.extras) or frozenset({""})))
    assert len(seen) > least


def test_users_get_the_versions_that_are_tested() -> None:
    tested = locked("requirements-dev.txt")
    assert all(one.specifier == tested[name].specifier for name, one in locked("requirements.txt").items())


def test_what_is_installed_is_what_is_pinned() -> None:
    for name, one in locked("requirements-dev.txt").items():
        if one.marker is None or one.marker.evaluate():
            assert one.specifier.contains(version(name), prereleases=True), f"{one}, found {version(name)}"


def test_the_supported_pythons_are_those_that_are_tested() -> None:
    prefix = "Programming Language :: Python :: "
    classifiers = project()["project"]["classifiers"]
    supported = [line.removeprefix(prefix) for line in classifiers if line.startswith(prefix)]
    matrix = WORKFLOWS["ci"]["jobs"]["test"]["strategy"]["matrix"]
    assert supported == matrix["python"] == list(PYTHONS)


# --- The workflows ---


def steps(*names: str) -> list[dict[str, Any]]:
    """The steps of workflows; of all without a name."""
    jobs = [job for name in names or WORKFLOWS for job in WORKFLOWS[name]["jobs"].values()]
    return [step for job in jobs for step in job["steps"]]


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


def test_workflows_and_gate_call_targets_that_exist() -> None:
    gate = called((ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    assert gate == {"test-all", "check", "records", "site", "check-dist"}
    ci = called("\n".join(step["run"] for step in steps("ci") if "run" in step))
    assert ci >= {"test", "test-slow", "check", "records", "fuzz", "audit", "site", "check-dist"}
    everywhere = called("\n".join(step["run"] for step in steps() if "run" in step))
    assert everywhere | gate <= targets()


def test_the_scripts_of_the_targets_exist() -> None:
    scripts = re.findall(r"\$\(BIN\)/python (\S+\.py)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert [name for name in scripts if not (ROOT / name).is_file()] == []


def test_workflows_may_do_only_what_they_need() -> None:
    assert {name for name, _ in MAY} < set(WORKFLOWS)
    for name, content in WORKFLOWS.items():
        assert content["permissions"] == {"contents": "read"}
        for job, about in content["jobs"].items():
            assert about["timeout-minutes"]
            assert about.get("permissions") == MAY.get((name, job)), (name, job)


def test_workflows_know_no_secret_and_pin_every_action_by_digest() -> None:
    for name in WORKFLOWS:
        text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
        assert "secrets." not in text
        # The version beside the digest is for people.
        assert len(re.findall(r"uses: [\w/-]+@[0-9a-f]{40}  # v[0-9.]+\n", text)) == text.count("uses: ")
    for step in steps():
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_examples_pin_actions_as_our_workflows_do() -> None:
    def uses(folder: Path) -> set[str]:
        text = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("*.yml"))
        return set(re.findall(r"uses: (.+)", text))

    examples = uses(ROOT / "examples" / "github")
    assert len(examples) == 3
    assert examples <= uses(ROOT / ".github" / "workflows")


def test_a_release_publishes_what_was_built_and_checked_once() -> None:
    release = WORKFLOWS["release"]
    # YAML reads the key `on` as true.
    assert release[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+*"]}}
    jobs = release["jobs"]
    (built,) = [step for step in jobs["build"]["steps"] if "upload-artifact" in step.get("uses", "")]
    runs = [step["run"] for step in jobs["build"]["steps"] if "run" in step]
    assert runs[-1] == 'make check-dist TAG="$GITHUB_REF_NAME"'
    for name in ("attest", "publish", "notes"):
        (taken,) = [step for step in jobs[name]["steps"] if "download-artifact" in step.get("uses", "")]
        assert taken["with"] == {"name": built["with"]["name"], "path": "dist/"}
        assert "make" not in str(jobs[name]["steps"])
    assert jobs["publish"]["needs"] == ["build", "attest"]
    assert jobs["publish"]["environment"]  # where a person approves
    (upload,) = [step for step in jobs["publish"]["steps"] if step["uses"].startswith("pypa/")]
    assert upload["with"] == {"attestations": True}
