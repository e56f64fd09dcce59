"""Checks the distributions of the checked-out commit, as they would be published.

``python release/check.py DIST`` checks contents, sizes and metadata, builds the wheel again from the source
distribution, and installs the wheel in an environment of its own, without extras, with the pinned packages
of requirements.txt (which asks the package index). There it runs the demo. ``--tag v1.2.3`` also checks that
this is the release of that tag. The exit code is 1 if a check fails.
"""

import argparse
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from build import ROOT, build, commit_time
from packaging.metadata import Metadata
from trove_classifiers import classifiers as known_classifiers

PACKAGE: Final = "propensitybench"
MIB: Final = 2**20
MAX_BYTES: Final = {"wheel": 5 * MIB, "sdist": 6 * MIB}
# Of the repository, what a source distribution leaves out.
NOT_IN_SDIST: Final = (".ci/", ".github/")
IN_DIST_INFO: Final = {
    "METADATA",
    "WHEEL",
    "RECORD",
    "entry_points.txt",
    "licenses/LICENSE",
}


class Pair(NamedTuple):
    """The two distributions of a commit."""

    sdist: Path
    wheel: Path


def find(folder: Path) -> Pair:
    """The distributions in a folder; `SystemExit` unless there is one of each."""
    sdists, wheels = list(folder.glob("*.tar.gz")), list(folder.glob("*.whl"))
    if len(sdists) != 1 or len(wheels) != 1 or len(list(folder.iterdir())) != 2:
        sys.exit(f"{folder}: one source distribution, one wheel and nothing else expected")
    return Pair(sdists[0], wheels[0])


def tracked() -> set[str]:
    """The files of the commit."""
    command = ["git", "ls-files", "-z"]
    return {
        *subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    } - {""}


def check_contents(pair: Pair, files: set[str]) -> Iterator[str]:
    """Issues of the lists of files: stray ones and missing ones."""
    source = {name.removeprefix("src/") for name in files if name.startswith(f"src/{PACKAGE}/")}
    with zipfile.ZipFile(pair.wheel) as wheel:
        names = set(wheel.namelist())
    info = {name for name in names if PurePosixPath(name).parts[0].endswith(".dist-info")}
    yield from _differences("wheel", names - info, source)
    yield from _differences("wheel", {name.partition("/")[2] for name in info}, IN_DIST_INFO)
    with tarfile.open(pair.sdist) as sdist:
        members = sdist.getmembers()
    yield from (f"sdist: {one.name} is no plain file" for one in members if not one.isfile())
    wanted = {name for name in files if not name.startswith(NOT_IN_SDIST)} | {"PKG-INFO"}
    yield from _differences("sdist", {one.name.partition("/")[2] for one in members}, wanted)


def _differences(kind: str, found: set[str], wanted: set[str]) -> Iterator[str]:
    yield from (f"{kind}: {name} should not be in it" for name in sorted(found - wanted))
    yield from (f"{kind}: {name} is missing" for name in sorted(wanted - found))


def check_sizes(pair: Pair) -> Iterator[str]:
    """Issues of the sizes."""
    for kind, path in pair._asdict().items():
        size = path.stat().st_size
        if size > MAX_BYTES[kind]:
            yield f"{kind}: {size / MIB:.1f} MiB, more than {MAX_BYTES[kind] / MIB:.0f} MiB"


def metadata(pair: Pair) -> tuple[Metadata, list[str]]:
    """The metadata of the wheel, and their issues.

    Raises:
        ExceptionGroup: they are not valid.
    """
    with zipfile.ZipFile(pair.wheel) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        raw = wheel.read(name)
    with tarfile.open(pair.sdist) as sdist:
        other = sdist.extractfile(f"{pair.sdist.name.removesuffix('.tar.gz')}/PKG-INFO")
        issues = [] if other is not None and other.read() == raw else ["sdist and wheel differ in metadata"]
    found = Metadata.from_email(raw, validate=True)
    if found.description != (ROOT / "README.md").read_text(encoding="utf-8"):
        issues.append("metadata: the description is not README.md")
    if found.description_content_type != "text/markdown":
        issues.append(f"metadata: the description is {found.description_content_type}")
    issues += [
        f"metadata: unknown classifier {one!r}"
        for one in found.classifiers or ()
        if one not in known_classifiers
    ]
    issues += [f"metadata: {one} has an address" for one in found.requires_dist or () if one.url]
    return found, issues


def check_tag(tag: str, found: Metadata) -> Iterator[str]:
    """Issues of a release: its version is that of the tag, and the change log has it."""
    version = str(found.version)
    if tag != f"v{version}":
        yield f"the tag is {tag}, and the version {version}"
    headings = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    if not any(line.startswith(f"## {version} ") for line in headings):
        yield f"CHANGELOG.md has no section '## {version} (DATE)'"


def check_rebuilt(pair: Pair, folder: Path) -> Iterator[str]:
    """An issue, if the source distribution does not build the same wheel."""
    with tarfile.open(pair.sdist) as sdist:
        sdist.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    again = build("wheel", source, folder / "again", commit_time())
    if again.name != pair.wheel.name or again.read_bytes() != pair.wheel.read_bytes():
        yield "the source distribution builds another wheel"


def check_installed(pair: Pair, folder: Path, version: str) -> Iterator[str]:
    """Issues of the installed wheel: it cannot be installed, or the program does not work without extras."""
    python = folder / "venv" / "bin" / "python"
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    pinned = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(ROOT / "requirements.txt")]
    program = str(python.parent / PACKAGE)
    names = f"import {PACKAGE} as p; [getattr(p, name) for name in p.__all__]"
    for command, printed in (
        ([sys.executable, "-m", "venv", str(folder / "venv")], ""),
        ([*pip, "install", *pinned], ""),
        ([*pip, "install", "--no-deps", str(pair.wheel)], ""),
        ([*pip, "check"], ""),
        ([str(python), "-I", "-W", "error", "-c", names], ""),
        ([program, "--version"], f"{PACKAGE} {version}\n"),
        ([program, "demo"], "No language model was used."),
    ):
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        if done.returncode or printed not in done.stdout:
            yield f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            return


def main() -> None:
    """Prints the issues."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the distributions are")
    parser.add_argument("--tag", help="the tag of the release")
    arguments = parser.parse_args()
    pair = find(arguments.folder.absolute())
    found, issues = metadata(pair)
    issues += [*check_contents(pair, tracked()), *check_sizes(pair)]
    if arguments.tag is not None:
        issues += check_tag(arguments.tag, found)
    with TemporaryDirectory() as folder:
        issues += check_rebuilt(pair, Path(folder))
        issues += check_installed(pair, Path(folder), str(found.version))
    print("\n".join(issues) or f"{PACKAGE} {found.version}: both distributions are sound")
    sys.exit(bool(issues))


if __name__ == "__main__":
    main()
