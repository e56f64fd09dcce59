"""A scenario has a unique name in its data set, whatever is selected."""

import shutil
from pathlib import Path

import pytest
from helpers.scenario_data import (
    Json,
    built_in,
    edit_published,
    published_copy,
    sound_scenarios,
    written_role_file,
)

from propensitybench.curation.validate import validate_dataset
from propensitybench.errors import BadInput
from propensitybench.pressure.export import write_own, write_published
from propensitybench.scenarios.dataset import Dataset, ScenarioLabel, read_dataset, unique_names
from propensitybench.scenarios.model import Scenario

FILE = "self-proliferation/philanthropic-organization/scenarios_messages_single.json"


def namesakes(*places: tuple[str, str]) -> tuple[Scenario, ...]:
    """Scenarios with one name, in these workspaces and roles."""
    model = sound_scenarios()[0]
    return tuple(
        model.model_copy(update={"name": "same_name", "workspace": workspace, "role": role})
        for workspace, role in places
    )


def published_namesakes(folder: Path, *places: tuple[str, str]) -> Path:
    write_published(Dataset("test", "own", namesakes(*places), built_in().storylines), folder, seed=0)
    return folder


def test_a_repeated_name_gets_its_role_in_letters_that_a_name_may_hold(tmp_path: Path) -> None:
    folder = published_namesakes(tmp_path, ("R&D-Lab", "Head of R&D"), ("R&D-Lab", "Clerk"))
    scenarios = read_dataset(folder).scenarios
    assert [scenario.name for scenario in scenarios] == [
        "same_name_in_Head_of_R_D",
        "same_name_in_Clerk",
    ]
    assert [Scenario.from_json(scenario.to_json()) for scenario in scenarios] == list(scenarios)


def test_a_repeated_name_may_get_its_workspace_too(tmp_path: Path) -> None:
    folder = published_namesakes(tmp_path, ("R&D-Lab", "Clerk"), ("Yard", "Clerk"))
    assert {scenario.name for scenario in read_dataset(folder).scenarios} == {
        "same_name_in_Clerk_at_R_D-Lab",
        "same_name_in_Clerk_at_Yard",
    }


def test_a_name_with_a_long_role_and_workspace_behind_it_is_still_a_name(tmp_path: Path) -> None:
    folder = published_namesakes(tmp_path, ("Lab", "r" * 300), ("Lab", "Clerk"))
    for scenario in read_dataset(folder).scenarios:
        assert Scenario.from_json(scenario.to_json()) == scenario


@pytest.mark.parametrize("role", ["Head", "Clerk"])
def test_a_name_does_not_depend_on_what_is_selected(tmp_path: Path, role: str) -> None:
    folder = published_namesakes(tmp_path, ("Lab", "Head"), ("Lab", "Clerk"), ("Yard", "Clerk"))
    whole = [scenario for scenario in read_dataset(folder).scenarios if scenario.role == role]
    assert list(read_dataset(folder, lambda scenario: scenario.role == role).scenarios) == whole


def test_a_published_folder_copied_in_twice_is_refused_with_both_files(tmp_path: Path) -> None:
    path = published_copy(tmp_path)
    shutil.copytree(path.parent, path.parent.with_name("copy"))
    copy = "self-proliferation/copy/scenarios_messages_single.json"
    _, issues = validate_dataset(tmp_path)
    assert [issue.file for issue in issues] == [FILE, FILE]
    with pytest.raises(BadInput) as caught:
        read_dataset(tmp_path)
    for text in (str(issues[1]), str(caught.value)):
        assert "'village_well_second_tranche' of the same role and workspace is also in" in text
        assert FILE in text
        assert copy in text
        assert "remove or rename one of the two" in text


def test_a_role_file_copied_in_twice_is_refused_with_both_files(tmp_path: Path) -> None:
    write_own(Dataset("test", "own", sound_scenarios()[:1]), tmp_path / "one")
    write_own(Dataset("test", "own", sound_scenarios()[:1]), tmp_path / "two")
    with pytest.raises(BadInput, match=r"two/.*Portfolio-Manager.json .* also in one/.*Portfolio-Manager"):
        read_dataset(tmp_path)


def test_names_that_differ_only_in_invalid_characters_are_an_issue() -> None:
    labels = [ScenarioLabel("a", role, "w", "f.json", f"$.{role}") for role in ("R&D", "R+D", "Other")]
    names, issues = unique_names(labels)
    assert names[2] == "a_in_Other"
    (issue,) = issues
    assert (issue.path, "f.json $.R&D" in issue.message) == ("$.R+D", True)


def test_a_name_of_300_characters_can_be_read_and_a_longer_one_not(tmp_path: Path) -> None:
    path = published_copy(tmp_path)

    def rename(entry: Json, length: int) -> None:
        entry["functions"]["trigger_function"]["harmful_name"] = "n" * length

    edit_published(path, lambda entry: rename(entry, 300))
    assert len(read_dataset(tmp_path).scenarios) == 2
    edit_published(path, lambda entry: rename(entry, 301))
    (issue,) = validate_dataset(tmp_path)[1]
    assert issue.path.endswith(".functions.trigger_function.harmful_name")
    assert issue.message.startswith("allows at most 300 characters")


def test_a_name_says_what_it_may_hold(tmp_path: Path) -> None:
    def spoil(entry: Json) -> None:
        entry["known"]["a blank"] = 1

    issues = validate_dataset(written_role_file(tmp_path, spoil))[1]
    assert [(issue.path, issue.message) for issue in issues] == [
        (
            "$.scenarios[0].known.a blank",
            "a name may contain only letters (a-z, A-Z), digits, _ and -, and must begin with a letter or _, "
            "found 'a blank'",
        ),
    ]
