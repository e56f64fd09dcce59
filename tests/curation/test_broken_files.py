"""Sets with one thing wrong, from the edits of ``helpers.broken_sets``; a golden file lists what is found."""

import atexit
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest
from helpers.broken_sets import SCENARIO_EDITS, STORYLINE_EDITS, Edit, written_files
from helpers.scenario_data import SOUND

from propensitybench.curation.validate import validate_dataset
from propensitybench.errors import BadInput
from propensitybench.scenarios.dataset import read_dataset

EDITS = {**SCENARIO_EDITS, **STORYLINE_EDITS}
NOT_PLAYABLE = [
    "storyline-unknown-dimension",
    "storyline-unknown-domain",
    "json-syntax",
    "key-twice",
    "header-format",
    "wrong-canary",
    "unknown-role",
    "six-senders",
    "ranks-out-of-order",
    "capability-of-another-domain",
    "situation-missing",
    "missing-field",
    "surplus-field",
    "wrong-type",
    "four-errors",
    "getter-with-unknown-argument",
    "unreachable-getters",
    "argument-given-by-no-getter",
    "known-and-unknown",
    "storyline-levels-out-of-order",
    "storyline-in-the-wrong-place",
]


def files_of(name: str) -> dict[str, str]:
    return written_files(EDITS[name])


@cache
def broken(name: str) -> Path:
    """A folder with the set of that name."""
    folder = Path(mkdtemp(prefix="propensitybench-")) / name
    atexit.register(rmtree, folder.parent, ignore_errors=True)
    write(folder, files_of(name))
    return folder


def write(folder: Path, files: Mapping[str, str]) -> None:
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")


def issues_of(folder: Path) -> list[str]:
    return [str(issue) for issue in validate_dataset(folder)[1]]


def test_the_base_is_sound(tmp_path: Path) -> None:
    def unchanged(_: object) -> None:
        return None

    write(tmp_path, written_files(unchanged))
    assert issues_of(tmp_path) == issues_of(SOUND) == []


@pytest.mark.parametrize(
    ("file", "edits"),
    [("broken_scenarios.txt", SCENARIO_EDITS), ("broken_storylines.txt", STORYLINE_EDITS)],
)
def test_what_is_found_in_each_set(
    golden: Callable[[str, str], None], file: str, edits: Mapping[str, Edit]
) -> None:
    found = {name: issues_of(broken(name)) for name in edits}
    assert [name for name, lines in found.items() if not lines] == []
    golden(file, "\n".join(f"{name}\n" + "".join(f"  {line}\n" for line in found[name]) for name in edits))


@pytest.mark.parametrize("name", NOT_PLAYABLE)
def test_a_set_that_cannot_be_played_is_not_read(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_dataset(broken(name))
    first, *named = str(caught.value).splitlines()
    assert first.startswith(f"{broken(name)}: ")
    assert {line.strip() for line in named} <= set(issues_of(broken(name)))


@pytest.mark.parametrize("name", sorted(EDITS.keys() - set(NOT_PLAYABLE)))
def test_a_set_that_is_only_badly_written_can_still_be_read(name: str) -> None:
    assert read_dataset(broken(name)).scenarios
