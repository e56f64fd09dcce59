"""The version, the distributions, and the checks on them before they are published."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import pytest
from build import build
from check import MAX_BYTES, NOT_IN_SDIST, Pair, check_contents, check_sizes, check_tag, metadata

ROOT: Final = Path(__file__).parents[1]
FILES: Final = {"src/propensitybench/__init__.py", "README.md", "LICENSE", ".ci/run"}
INFO: Final = (
    "METADATA",
    "WHEEL",
    "RECORD",
    "entry_points.txt",
    "licenses/LICENSE",
)
METADATA: Final = """\
Metadata-Version: 2.4
Name: propensitybench
Version: 1.2.3
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

"""


def pair(folder: Path, extra_wheel: str = "", extra_sdist: str = "", head: str = METADATA) -> Pair:
    """Distributions of a package of a few files, perhaps with a stray one."""
    content = head + (ROOT / "README.md").read_text(encoding="utf-8")
    made = Pair(folder / "propensitybench-1.2.3.tar.gz", folder / "propensitybench-1.2.3-py3-none-any.whl")
    with zipfile.ZipFile(made.wheel, "w") as wheel:
        for name in ["propensitybench/__init__.py", extra_wheel]:
            if name:
                wheel.writestr(name, "")
        for name in INFO:
            wheel.writestr(f"propensitybench-1.2.3.dist-info/{name}", content)
    with tarfile.open(made.sdist, "w:gz") as sdist:
        for name in [*sorted(FILES - {".ci/run"}), "PKG-INFO", extra_sdist]:
            if name:
                one = tarfile.TarInfo(f"propensitybench-1.2.3/{name}")
                one.size = len(content.encode())
                sdist.addfile(one, io.BytesIO(content.encode()))
    return made


def test_sound_distributions_have_no_issue(tmp_path: Path) -> None:
    made = pair(tmp_path)
    found, issues = metadata(made)
    assert issues == [*check_contents(made, FILES), *check_sizes(made)] == []
    assert str(found.version) == "1.2.3"


def test_stray_and_missing_files_are_found(tmp_path: Path) -> None:
    made = pair(tmp_path, "tests/test_a.py", "notes.txt")
    assert [*check_contents(made, FILES | {"src/propensitybench/py.typed"})] == [
        "wheel: tests/test_a.py should not be in it",
        "wheel: propensitybench/py.typed is missing",
        "sdist: notes.txt should not be in it",
        "sdist: src/propensitybench/py.typed is missing",
    ]


def test_a_distribution_that_is_too_large_is_found(tmp_path: Path) -> None:
    made = pair(tmp_path)
    with made.wheel.open("ab") as file:
        file.truncate(MAX_BYTES["wheel"] + 1)
    assert [*check_sizes(made)] == ["wheel: 5.0 MiB, more than 5 MiB"]


def test_bad_metadata_are_found(tmp_path: Path) -> None:
    head = METADATA.replace("Typing :: Typed", "Typing :: None").replace("text/markdown", "text/plain")
    _, issues = metadata(pair(tmp_path, head=head))
    assert issues == [
        "metadata: the description is text/plain",
        "metadata: unknown classifier 'Typing :: None'",
    ]


def test_a_release_has_the_version_of_its_tag_and_a_section_in_the_change_log(tmp_path: Path) -> None:
    found, _ = metadata(pair(tmp_path))
    assert [*check_tag("v1.3.0", found)] == [
        "the tag is v1.3.0, and the version 1.2.3",
        "CHANGELOG.md has no section '## 1.2.3 (DATE)'",
    ]


# --- Built from clones of this repository ---


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def clone(folder: Path, *options: str) -> Path:
    """A clone of this repository."""
    command = ["git", "clone", "--quiet", *options, f"file://{ROOT}", str(folder)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return folder


def version_of(source: Path) -> str:
    """The version of a source folder, as its build would have it."""
    command = [sys.executable, "-m", "hatchling", "version"]
    done = subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.slow
def test_the_version_comes_from_the_tag_and_is_known_without_git(tmp_path: Path) -> None:
    source = clone(tmp_path / "source")
    for tag in git(source, "tag").split():
        git(source, "tag", "--delete", tag)
    _, commit = version_of(source).split("+unknown.g")
    assert git(source, "rev-parse", "HEAD").startswith(commit)
    git(source, "tag", "--annotate", "v7.1.0", "--message", "7.1.0")
    assert version_of(source) == "7.1.0"

    archive = tmp_path / "archive"
    archive.mkdir()
    subprocess.run(["tar", "xf", "-"], cwd=archive, check=True, input=_archive(source))
    assert version_of(archive) == "7.1.0"

    sdist = build("sdist", source, tmp_path / "dist", "1000000000")
    assert sdist.name == "propensitybench-7.1.0.tar.gz"
    with tarfile.open(sdist) as file:
        file.extractall(tmp_path / "unpacked", filter="data")
    assert version_of(tmp_path / "unpacked" / "propensitybench-7.1.0") == "7.1.0"

    git(source, "commit", "--quiet", "--allow-empty", "--message", "later")
    assert version_of(source).startswith("7.1.1.dev1+g")


def _archive(source: Path) -> bytes:
    """The archive of a commit, as code hosts offer it."""
    return subprocess.run(["git", "archive", "HEAD"], cwd=source, check=True, stdout=subprocess.PIPE).stdout


@pytest.mark.slow
def test_a_shallow_clone_and_a_copy_without_git_still_have_a_version(tmp_path: Path) -> None:
    shallow = clone(tmp_path / "shallow", "--depth", "1", "--no-tags")
    _, commit = version_of(shallow).split("+unknown.g")
    assert git(shallow, "rev-parse", "HEAD").startswith(commit)
    shutil.rmtree(shallow / ".git")
    (shallow / ".git_archival.txt").unlink()
    assert version_of(shallow) == "0.0.0+unknown"


@pytest.mark.slow
def test_distributions_built_twice_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    built = []
    for folder, mask, time in (
        (tmp_path / "a", 0o022, 10**9),
        (tmp_path / "b" / "a longer name", 0o077, 1_700_000_000),
    ):
        before = os.umask(mask)
        try:
            source = clone(folder)
            for path in folder.rglob("*"):
                if ".git" not in path.relative_to(folder).parts:
                    os.utime(path, (time, time))
            # The environment is this one, and not made again.
            subprocess.run(
                ["make", "dist", "-o", ".venv/.ready", f"BIN={Path(sys.executable).parent}"],
                cwd=source,
                check=True,
                env={**os.environ, "TZ": f"UTC{mask % 12}", "PYTHONHASHSEED": str(mask)},
            )
        finally:
            os.umask(before)
        built.append({path.name: path.read_bytes() for path in (source / "dist").iterdir()})
    one, other = built
    assert len(one) == 2
    assert one == other
    made = Pair(*(source / "dist" / name for name in sorted(one, reverse=True)))
    with zipfile.ZipFile(made.wheel) as wheel:
        assert {member.date_time for member in wheel.infolist()} != {(2020, 2, 2, 0, 0, 0)}


def test_what_a_source_distribution_leaves_out_exists() -> None:
    assert all((ROOT / name).exists() for name in NOT_IN_SDIST)
