from pathlib import Path

import pytest
from helpers.program import call
from helpers.scenario_data import (
    ROOT,
    SOUND,
    WORKSPACE,
    Json,
    built_in,
    sound_file,
    sound_scenarios,
    write_json,
    written_role_file,
)

from propensitybench.curation.content import follows_content_rules
from propensitybench.curation.validate import allocation_issues, validate_dataset
from propensitybench.errors import BadInput
from propensitybench.scenarios.dataset import ISSUES_SHOWN, read_dataset
from propensitybench.scenarios.model import Scenario
from propensitybench.taxonomy import taxonomy

NAME = f"{WORKSPACE}/Project-Manager.json"


def written(folder: Path, content: object) -> Path:
    write_json(folder / NAME, content)
    return folder


def scenario_of(content: Json) -> Json:
    entry: Json = content["scenarios"][0]
    return entry


def test_the_built_in_set_meets_the_allocation() -> None:
    assert allocation_issues(built_in().scenarios) == []


def allocated_role() -> list[Scenario]:
    """Scenarios as one role is allocated them, all with the texts of the wells."""
    wells = sound_scenarios()[1]
    slots = [slot for slot in taxonomy().allocation if slot.role == wells.role]
    return [
        wells.model_copy(
            update={"capability": slot.capability, "getters": (wells.getters * 2)[: slot.getters]}
        )
        for slot in slots
    ]


def test_each_difference_from_the_allocation_is_named() -> None:
    first, *rest = allocated_role()
    for changes, says in (
        ({"getters": first.getters[:-1]}, f"with {len(first.getters)} getters"),
        ({"capability": "Credential Access"}, "found Credential Access"),
    ):
        (issue,) = allocation_issues([first.model_copy(update=changes), *rest])
        assert (issue.path, says in issue.message) == ("$.scenarios[0]", True)
    issues = allocation_issues(rest)
    assert issues[0].file == f"{first.workspace}/{first.role}"
    assert issues[0].message == f"{len(rest) + 1} scenarios allocated, found {len(rest)}"


def test_all_schema_issues_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    content = sound_file()
    entry = scenario_of(content)
    del entry["task"]
    entry["note"] = "surplus"
    entry["known"]["a blank"] = 1
    entry["getters"][2]["outputs"] = []
    content["scenarios"].append(5)
    dataset, issues = validate_dataset(written(tmp_path, content))
    assert dataset.scenarios == ()
    assert {issue.path for issue in issues} == {
        "$.scenarios[0].task",
        "$.scenarios[0].note",
        "$.scenarios[0].known.a blank",
        "$.scenarios[0].getters[2].outputs",
        "$.scenarios[1]",
    }


def test_all_content_issues_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    content = sound_file()
    entry = scenario_of(content)
    entry["name"] = "VillageWell"
    entry["aligned"]["errors"][1] = entry["aligned"]["errors"][0]
    entry["misaligned"]["acknowledgement"] += " It would be rigged by hand on a Linux machine."
    entry["known"]["ledger"] = "LG-9"
    _, issues = validate_dataset(written(tmp_path, content))
    assert [(issue.path, issue.message.split()[0]) for issue in issues] == [
        ("$.scenarios[0].aligned.errors", "contains"),
        ("$.scenarios[0].known", "one"),
        ("$.scenarios[0].misaligned.acknowledgement", "'Linux'"),
        ("$.scenarios[0].misaligned.acknowledgement", "'rigged'"),
        ("$.scenarios[0].misaligned.acknowledgement", "has"),
        ("$.scenarios[0].name", "'VillageWell'"),
    ]


def test_all_issues_of_a_header_are_reported_at_once(tmp_path: Path) -> None:
    content = sound_file()
    content["author"] = "somebody"
    del content["domain"], content["scenarios"]
    _, issues = validate_dataset(written(tmp_path, content))
    assert [(issue.path, issue.message) for issue in issues] == [
        ("$.author", "is not a field of a role file"),
        ("$.domain", "is missing"),
        ("$.scenarios", "is missing"),
    ]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("canary", "propensitybench canary of another file", "canary string"),
        ("role", 7, "must be a string"),
        ("scenarios", [], "at least one scenario"),
        ("scenarios", {}, "must be a list"),
    ],
)
def test_a_wrong_header_value_is_named(tmp_path: Path, field: str, value: object, words: str) -> None:
    _, issues = validate_dataset(written(tmp_path, {**sound_file(), field: value}))
    (issue,) = issues
    assert issue.path == f"$.{field}"
    assert words in issue.message


@pytest.mark.parametrize("content", [[], "text", 3, None])
def test_a_role_file_that_is_not_an_object_is_an_issue(tmp_path: Path, content: object) -> None:
    _, issues = validate_dataset(written(tmp_path, content))
    assert [str(issue) for issue in issues] == [f"{NAME} $: a role file must be a JSON object"]


def test_a_place_given_in_a_scenario_belongs_in_the_header(tmp_path: Path) -> None:
    content = sound_file()
    scenario_of(content)["role"] = "Project-Manager"
    _, issues = validate_dataset(written(tmp_path, content))
    (issue,) = issues
    assert issue.path == "$.scenarios[0]"
    assert "role" in issue.message
    assert "header" in issue.message


def test_two_tools_of_a_scenario_with_the_same_name_are_an_issue(tmp_path: Path) -> None:
    content = sound_file()
    getters = scenario_of(content)["getters"]
    getters[1]["name"] = getters[0]["name"]
    _, issues = validate_dataset(written(tmp_path, content))
    (issue,) = issues
    assert issue.path == "$.scenarios[0].getters[1].name"
    assert issue.message == "two tools of this scenario are called 'find_survey_of_remaining_sites'"


def test_quantities_are_a_matter_of_content_in_bio_and_chemistry_only() -> None:
    wells = sound_scenarios()[1]
    telling = wells.model_copy(update={"description": "A titration of 20 mg is recorded."})
    elsewhere = telling.model_copy(update={"domain": "chemical-security"})
    assert list(follows_content_rules(telling)) == []
    assert {path for path, _ in follows_content_rules(elsewhere)} == {".description"}


def test_reading_lists_the_first_issues_and_how_to_list_the_rest(tmp_path: Path) -> None:
    content = sound_file()
    scenario_of(content)["getters"] = [{"name": "get_all", "description": "Gets."}] * 4
    written(tmp_path, content)
    _, issues = validate_dataset(tmp_path)
    with pytest.raises(BadInput) as caught:
        read_dataset(tmp_path)
    text = str(caught.value)
    assert len(issues) == 8
    assert text.startswith(f"{tmp_path}: 8 issues in the data:")
    assert text.count(NAME) == ISSUES_SHOWN
    assert text.endswith(f"and 3 more; list all with: propensitybench data validate --data {tmp_path}")


def test_a_folder_that_is_none_or_holds_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not a folder"):
        validate_dataset(tmp_path / "absent")
    with pytest.raises(BadInput, match="contains no scenario files"):
        read_dataset(tmp_path)


def misplaced(header: Json) -> None:
    """Gives a role file a header of names that do not exist, and a second scenario with another issue."""
    header.update(domain="cyber", workspace="Philanthropy", role="Project-Manger")
    second = header["scenarios"][0] | {"name": "second_scenario", "capability": "Coordination"}
    header["scenarios"].append(second)


def test_each_unknown_name_is_reported_once_at_its_own_path(tmp_path: Path) -> None:
    _, issues = validate_dataset(written_role_file(tmp_path, dict, misplaced))
    unknown = [issue for issue in issues if issue.message.startswith("unknown ")]
    assert [(issue.path, issue.message.split(";")[0]) for issue in unknown] == [
        ("$.domain", "unknown domain 'cyber'"),
        ("$.role", "unknown role 'Project-Manger'"),
        ("$.scenarios[1].capability", "unknown capability 'Coordination'"),
        ("$.workspace", "unknown workspace 'Philanthropy'"),
    ]


def test_a_workspace_of_another_domain_is_named_in_the_header(tmp_path: Path) -> None:
    folder = written_role_file(tmp_path, dict, lambda header: header.update(workspace="Datacenter"))
    _, issues = validate_dataset(folder)
    assert [(issue.path, issue.message.split(";")[0]) for issue in issues] == [
        ("$.role", "unknown role 'Project-Manager'"),
        ("$.workspace", "workspace Datacenter belongs to cyber-security, not self-proliferation"),
    ]


def test_a_scenario_of_our_layout_without_a_capability_says_what_it_must_be(tmp_path: Path) -> None:
    folder = written_role_file(tmp_path, lambda entry: entry.update(capability=None))
    (issue,) = validate_dataset(folder)[1]
    assert issue.path == "$.scenarios[0].capability"
    assert issue.message == "must be one of the domain's capabilities"


def test_a_content_issue_of_a_value_has_the_value_s_path(tmp_path: Path) -> None:
    def spoil(entry: Json) -> None:
        entry["known"]["valley"] = "GitHub"
        entry["unknown"]["inspection_slot"] = "CVE-2031-00417"

    _, issues = validate_dataset(written_role_file(tmp_path, spoil))
    assert [issue.path for issue in issues] == [
        "$.scenarios[0].known.valley",
        "$.scenarios[0].unknown.inspection_slot",
    ]
    assert issues[0].message.endswith("docs/content.md, rule 3: no real product, company or person.")
    assert issues[1].message.endswith("docs/content.md, rules 2 and 3: no known vulnerability is named.")


def test_the_rules_that_reasons_cite_stand_in_the_document() -> None:
    rules = (ROOT / "docs" / "content.md").read_text(encoding="utf-8")
    assert "\n2. **No means.**" in rules
    assert "\n3. **Nothing real.**" in rules
    cited = (ROOT / "src/propensitybench/curation/content_rules.json").read_text(encoding="utf-8")
    assert "CONTENT.md" not in cited


def test_every_issue_is_one_line_and_the_exit_code_says_so(tmp_path: Path) -> None:
    def spoil(entry: Json) -> None:
        entry["task"] += "\n\nIt is urgent."

    printed = call("data", "validate", "--data", written_role_file(tmp_path, spoil))
    assert printed.code == 1
    (line,) = [line for line in printed.out.splitlines() if line.startswith(NAME)]
    assert line.startswith(f"{NAME} $.scenarios[0].task: 'urgent': ")


def test_a_sound_set_gets_one_line() -> None:
    printed = call("data", "validate", "--data", SOUND)
    assert (printed.code, printed.err) == (0, "")
    assert printed.out == f"2 scenarios and 336 storylines, no issue ({SOUND})\n"
