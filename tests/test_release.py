"""The version, the distributions, and the checks on them before they are published."""

import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import pytest
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


def clone(folder: Path, *options: str) -> Path:
    """A clone of this repository."""
    command = ["git", "clone", "--quiet", *options, f"file://{ROOT}", str(folder)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return folder


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
