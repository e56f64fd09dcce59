"""Each folder of ``broken`` is ``sound`` with one issue; the table lists what the validator must find."""

from typing import NamedTuple

import pytest
from helpers.scenario_data import BROKEN, SOUND, WORKSPACE

from propensitybench.curation.validate import validate_dataset
from propensitybench.errors import BadInput
from propensitybench.scenarios.dataset import read_dataset
from propensitybench.scenarios.rolefile import ValidationIssue

PROJECTS = f"{WORKSPACE}/Project-Manager.json"
PORTFOLIO = f"{WORKSPACE}/Portfolio-Manager.json"
IN = "$.scenarios[0]"


class Complaint(NamedTuple):
    path: str
    words: tuple[str, ...]
    file: str = PROJECTS


TABLE: dict[str, list[Complaint]] = {
    "01-json-syntax": [Complaint("$", ("not valid JSON", "line 26 column 9"))],
    "02-repeated-key": [Complaint("$", ("twice", "name"))],
    "03-header-format": [Complaint("$.format", ("propensitybench-role/1", "found 'propensitybench-role/2'"))],
    "04-missing-canary": [Complaint("$.canary", ("missing",))],
    "05-unknown-role": [
        Complaint(
            "$.role",
            ("unknown role 'Project-Manger'", "did you mean 'Project-Manager'"),
            f"{WORKSPACE}/Project-Manger.json",
        )
    ],
    "06-capability-of-another-domain": [
        Complaint(f"{IN}.capability", ("'Credential Access'", "not a capability of self-proliferation"))
    ],
    "07-missing-field": [Complaint(f"{IN}.policy.duties", ("missing",))],
    "08-surplus-field": [Complaint(f"{IN}.difficulty", ("not a field of a scenario",))],
    "09-wrong-type": [Complaint(f"{IN}.task", ("string", "found '7'"))],
    "10-four-errors": [Complaint(f"{IN}.aligned.errors", ("needs at least 5 items, found 4",))],
    "11-error-twice": [Complaint(f"{IN}.aligned.errors", ("twice",))],
    "12-getter-with-unknown-argument": [
        Complaint(f"{IN}.getters[4].arguments", ("'treasurer_desk'", "neither known nor unknown"))
    ],
    "13-unreachable-getters": [
        Complaint(f"{IN}.getters[2]", ("never be called", "inspection_day")),
        Complaint(f"{IN}.getters[3]", ("never be called", "unit_price_offer")),
    ],
    "14-argument-given-by-no-getter": [Complaint(f"{IN}.unknown.pump_depth", ("no getter returns it",))],
    "15-aligned-needs-no-unknown": [Complaint(f"{IN}.aligned.arguments", ("at least one unknown",))],
    "16-known-and-unknown": [Complaint(f"{IN}.unknown", ("also among the known", "site_survey"))],
    "17-harm-word-in-benign-text": [
        Complaint(f"{IN}.misaligned.benign.description", ("'covertly'", "signals harm"))
    ],
    "18-harmful-face-without-harm": [Complaint(f"{IN}.misaligned.harmful", ("no word that signals harm",))],
    "19-vulnerability-named": [
        Complaint(f"{IN}.aligned.errors[3]", ("'CVE-2031-00417'", "vulnerability identifier"))
    ],
    "20-real-product-named": [Complaint(f"{IN}.policy.role", ("'GitHub'", "real product"))],
    "21-tool-name-twice": [
        Complaint(
            f"{IN}.getters[4].name",
            ("tool 'request_treasurer_release'", f"also in {PORTFOLIO} {IN}.getters["),
        )
    ],
    "22-scenario-name-twice": [
        Complaint(f"{IN}.name", ("'village_well_second_tranche'", f"also in {PORTFOLIO} {IN}"))
    ],
    "23-task-of-another-scenario": [
        Complaint(
            f"{IN}.task",
            ("has a sentence that is also in", f"{PORTFOLIO} {IN}.task", "obtain the release number"),
        ),
        Complaint(
            f"{IN}.task", ("has a sentence that is also in", f"{PORTFOLIO} {IN}.task", "second instalment")
        ),
    ],
    "24-secret-given-away": [
        Complaint(f"{IN}.misaligned.acknowledgement", ("reveals the value", "'release_number'"))
    ],
    "25-tool-named-in-the-task": [Complaint(f"{IN}.task", ("names the tool", "'complete_well_instalment'"))],
    "26-file-in-the-wrong-place": [
        Complaint("$", ("belongs at", PROJECTS), f"{WORKSPACE}/Grantmaking-Strategist.json")
    ],
    "27-story-of-another-scenario": [
        Complaint(IN, ("nearly the same story", f"{PORTFOLIO} {IN}", "cosine 0.7"))
    ],
}


def issues_in(folder: str) -> list[ValidationIssue]:
    _, issues = validate_dataset(BROKEN / folder)
    return issues


def test_the_base_of_the_broken_files_is_sound() -> None:
    dataset, issues = validate_dataset(SOUND)
    assert issues == []
    assert [scenario.role for scenario in dataset.scenarios] == ["Portfolio-Manager", "Project-Manager"]


def test_every_broken_folder_is_in_the_table() -> None:
    assert sorted(path.name for path in BROKEN.iterdir()) == sorted(TABLE)


@pytest.mark.parametrize("folder", TABLE)
def test_a_broken_file_gets_its_complaint_and_no_other(folder: str) -> None:
    issues = issues_in(folder)
    assert [(issue.file, issue.path) for issue in issues] == [(row.file, row.path) for row in TABLE[folder]]
    for issue, row in zip(issues, TABLE[folder], strict=True):
        for word in row.words:
            assert word in issue.message


@pytest.mark.parametrize("folder", TABLE)
def test_an_issue_reads_as_file_path_and_message(folder: str) -> None:
    for issue in issues_in(folder):
        assert str(issue) == f"{issue.file} {issue.path}: {issue.message}"
        assert issue.message == issue.message.strip()


@pytest.mark.parametrize(
    "folder",
    [
        "01-json-syntax",
        "02-repeated-key",
        "03-header-format",
        "04-missing-canary",
        "05-unknown-role",
        "06-capability-of-another-domain",
        "07-missing-field",
        "08-surplus-field",
        "09-wrong-type",
        "10-four-errors",
        "12-getter-with-unknown-argument",
        "13-unreachable-getters",
        "14-argument-given-by-no-getter",
        "16-known-and-unknown",
    ],
)
def test_a_set_that_cannot_be_played_is_not_read(folder: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_dataset(BROKEN / folder)
    for row in TABLE[folder]:
        assert f"{row.file} {row.path}: " in str(caught.value)


@pytest.mark.parametrize(
    "folder", ["11-error-twice", "19-vulnerability-named", "23-task-of-another-scenario"]
)
def test_a_set_that_is_only_badly_written_can_still_be_played(folder: str) -> None:
    assert read_dataset(BROKEN / folder).scenarios
