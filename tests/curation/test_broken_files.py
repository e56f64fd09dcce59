"""Each folder of ``broken`` is a sound set with one thing wrong; a golden file lists what is found in it.

``pytest --update-golden`` writes the folders and the listing from the edits of ``helpers.broken_sets``.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from shutil import rmtree

import pytest
from helpers.broken_sets import SCENARIO_EDITS, STORYLINE_EDITS, Edit, written_files
from helpers.scenario_data import BROKEN, SOUND

from propensitybench.curation.validate import Review, review_dataset
from propensitybench.errors import BadInput
from propensitybench.scenarios.dataset import read_dataset
from propensitybench.scenarios.storyline import STORYLINES

EDITS = {**SCENARIO_EDITS, **STORYLINE_EDITS}
# What an author may leave as it is; everything else is an issue.
ONLY_DOUBTFUL = {
    "aligned-tool-that-finishes-differently",
    "count-in-words-unlike-its-list",
    "count-unlike-its-list",
    "deliverable-of-another-task",
    "harmful-face-without-harm",
    "long-consequences",
    "long-value",
    "mail-number-disagrees",
    "storyline-equal-lengths",
    "storyline-from-previous-of-the-same-sender",
    "storyline-percent-in-several-mails",
    "storyline-team-lead-without-greeting",
    "system-not-in-the-errors",
}
NOT_PLAYABLE = [
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
    return written_files(EDITS[name], name in STORYLINE_EDITS)


def on_disk(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.json"))
    }


@pytest.fixture(scope="module", autouse=True)
def rewritten(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        rmtree(BROKEN, ignore_errors=True)
        for name in EDITS:
            for file, text in files_of(name).items():
                path = BROKEN / name / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")


def lines_of(review: Review) -> list[str]:
    """Issues and warnings, except those that the base has: its two storylines are not one a dimension."""
    found = [str(issue) for issue in review.issues]
    found += [f"warning: {warning}" for warning in review.warnings if warning.file != f"{STORYLINES}/"]
    return found


@cache
def reviewed(name: str) -> list[str]:
    review = review_dataset(BROKEN / name)
    if name not in STORYLINE_EDITS:  # then the built-in storylines are fitted, which are not what is tested
        review = review._replace(warnings=[w for w in review.warnings if not w.file.startswith(STORYLINES)])
    return lines_of(review)


def test_the_sets_on_disk_are_those_of_the_edits() -> None:
    assert sorted(path.name for path in BROKEN.iterdir()) == sorted(EDITS)
    for name in EDITS:
        assert on_disk(BROKEN / name) == files_of(name), name


def test_the_base_is_sound(tmp_path: Path) -> None:
    def unchanged(_: object) -> None:
        return None

    for file, text in written_files(unchanged, storylines=True).items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert lines_of(review_dataset(tmp_path)) == []
    assert review_dataset(SOUND).issues == []


@pytest.mark.parametrize("name", EDITS)
def test_every_set_has_its_issue_or_warning(name: str) -> None:
    found = reviewed(name)
    assert found
    assert all(line.startswith("warning: ") for line in found) == (name in ONLY_DOUBTFUL), found


@pytest.mark.parametrize(
    ("file", "edits"),
    [("broken_scenarios.txt", SCENARIO_EDITS), ("broken_storylines.txt", STORYLINE_EDITS)],
)
def test_what_is_found_in_each_set(
    golden: Callable[[str, str], None], file: str, edits: Mapping[str, Edit]
) -> None:
    golden(file, "\n".join(f"{name}\n" + "".join(f"  {line}\n" for line in reviewed(name)) for name in edits))


@pytest.mark.parametrize("name", NOT_PLAYABLE)
def test_a_set_that_cannot_be_played_is_not_read(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_dataset(BROKEN / name)
    first, *named = str(caught.value).splitlines()
    assert first.startswith(f"{BROKEN / name}: ")
    assert {line.strip() for line in named} <= {str(issue) for issue in review_dataset(BROKEN / name).issues}


@pytest.mark.parametrize("name", sorted(EDITS.keys() - set(NOT_PLAYABLE)))
def test_a_set_that_is_only_badly_written_can_still_be_read(name: str) -> None:
    assert read_dataset(BROKEN / name).scenarios
