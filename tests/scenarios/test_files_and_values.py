"""Whatever is in a data folder, reading it gives issues with a file and a path."""

import json
from pathlib import Path

import pytest
from helpers.scenario_data import (
    WORKSPACE,
    Json,
    edit_published,
    published_copy,
    sound_file,
    sound_scenarios,
    with_own_messages,
    write_json,
    written_role_file,
)

from propensitybench.curation.validate import validate_dataset
from propensitybench.errors import BadData
from propensitybench.scenarios.dataset import read_dataset
from propensitybench.scenarios.model import MAX_LISTED, MAX_TEXT
from propensitybench.taxonomy import taxonomy

NAME = f"{WORKSPACE}/Project-Manager.json"
IN = "$.scenarios[0]"
WELL = "$.self-proliferation.Philanthropic-Organization.Project-Manager.scenarios.village_well_second_tranche"


def role_text(folder: Path, old: str, new: str) -> Path:
    """The sound role file with a piece of its JSON text replaced, whatever that makes of it."""
    text = json.dumps(sound_file())
    assert old in text
    (folder / NAME).parent.mkdir(parents=True)
    (folder / NAME).write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


def test_a_folder_or_broken_link_named_like_a_role_file_is_an_issue(tmp_path: Path) -> None:
    written_role_file(tmp_path, dict)
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "round.json").symlink_to(tmp_path / "round.json")
    dataset, issues = validate_dataset(tmp_path)
    assert len(dataset.scenarios) == 1
    assert [(issue.file, issue.path) for issue in issues] == [
        ("folder.json", "$"),
        ("link.json", "$"),
        ("round.json", "$"),
    ]
    reasons = ("Is a directory", "No such file or directory", "Too many levels of symbolic links")
    for issue, reason in zip(issues, reasons, strict=True):
        assert f"cannot be read ({reason})" in issue.message


def test_a_published_file_that_is_a_folder_is_bad_data(tmp_path: Path) -> None:
    (tmp_path / "scenarios_messages.json").mkdir()
    with pytest.raises(BadData, match=r"scenarios_messages.json: cannot be read \(Is a directory\)"):
        read_dataset(tmp_path)


def test_every_unreadable_published_file_is_listed(tmp_path: Path) -> None:
    published_copy(tmp_path)
    for name, content in (("a", "{"), ("z", "version https://git-lfs")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "scenarios_messages.json").write_text(content, encoding="utf-8")
    dataset, issues = validate_dataset(tmp_path)
    assert len(dataset.scenarios) == 2
    assert [(issue.file, issue.path) for issue in issues] == [
        ("a/scenarios_messages.json", "$"),
        ("z/scenarios_messages.json", "$"),
    ]


def test_a_wrong_byte_inside_a_published_entry_is_located(tmp_path: Path) -> None:
    path = published_copy(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"the Orrin valley", b"the \xff valley", 1))
    dataset, issues = validate_dataset(tmp_path)
    assert [scenario.role for scenario in dataset.scenarios] == ["Portfolio-Manager"]
    (issue,) = issues
    assert issue.path == WELL
    assert "contains text that is not UTF-8" in issue.message


def test_a_published_file_that_is_nested_too_deeply_is_bad_data(tmp_path: Path) -> None:
    path = published_copy(tmp_path)
    edit_published(path, lambda entry: entry.update(notes="HERE"))
    deep = "[" * 300_000 + "]" * 300_000
    path.write_text(path.read_text(encoding="utf-8").replace('"HERE"', deep), encoding="utf-8")
    with pytest.raises(BadData, match="nested too deeply"):
        read_dataset(tmp_path)


@pytest.mark.parametrize("depth", [300, 100_000])
def test_a_published_value_that_is_nested_too_deeply_is_located(tmp_path: Path, depth: int) -> None:
    path = published_copy(tmp_path)
    values = '{"a": ' + "[" * depth + "]" * depth + "}"
    edit_published(path, lambda entry: entry["configurations"].update(configuration_known=values))
    (issue,) = validate_dataset(tmp_path)[1]
    assert (issue.path, issue.message) == (WELL, "is nested too deeply")


def test_a_value_of_our_layout_that_is_nested_too_deeply_is_located(tmp_path: Path) -> None:
    folder = role_text(tmp_path, '"Orrin"', "[" * 300 + "]" * 300)
    (issue,) = validate_dataset(folder)[1]
    assert (issue.path, issue.message) == (IN, "is nested too deeply")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", '[{"a": NaN}]'])
@pytest.mark.parametrize(
    ("field", "old"), [("known.valley", '"Orrin"'), ("unknown.site_survey", '"SURVEY-88213"')]
)
def test_a_number_that_is_not_json_is_an_issue(tmp_path: Path, number: str, field: str, old: str) -> None:
    (issue,) = validate_dataset(role_text(tmp_path, old, number))[1]
    assert issue.path == f"{IN}.{field}"
    assert "must be a JSON number, not NaN or Infinity" in issue.message


def test_half_of_a_surrogate_pair_is_located_without_a_line_of_our_own_copy(tmp_path: Path) -> None:
    (issue,) = validate_dataset(role_text(tmp_path, '"Orrin"', r'"\ud800"'))[1]
    assert issue.path == IN
    assert "contains invalid Unicode" in issue.message
    assert "column" not in issue.message


def test_a_number_of_too_many_digits_gets_no_advice_on_python(tmp_path: Path) -> None:
    (issue,) = validate_dataset(role_text(tmp_path, '"Orrin"', "1" * 5000))[1]
    assert (issue.path, issue.message) == ("$", "contains a number with too many digits")


def test_what_a_run_would_repeat_is_not_too_long(tmp_path: Path) -> None:
    def spoil(entry: Json) -> None:
        entry["policy"]["role"] = "x" * (MAX_TEXT + 1)
        entry["aligned"]["errors"][4] = "x" * MAX_TEXT
        entry["known"]["large"] = ["x"] * (MAX_TEXT // 8)
        entry["getters"][0]["arguments"] = ["reference"] * (MAX_LISTED + 1)

    issues = validate_dataset(written_role_file(tmp_path, spoil))[1]
    assert {(issue.path.removeprefix(IN), issue.message.partition(", ")[0]) for issue in issues} == {
        (".policy.role", "allows at most 32768 characters"),
        (".known", "allows values of at most 32768 characters"),
        (".getters[0].arguments", "allows at most 64 items"),
    }


def own_messages(entry: Json) -> Json:
    """Gives a role file's scenario its own messages."""
    scenario = with_own_messages(sound_scenarios()[1])
    entry["messages"] = scenario.model_dump(mode="json")["messages"]
    messages: Json = entry["messages"]
    return messages


def test_complete_messages_of_its_own_are_no_issue(tmp_path: Path) -> None:
    assert validate_dataset(written_role_file(tmp_path, own_messages))[1] == []


def test_own_messages_of_no_dimension_are_missed_for_each(tmp_path: Path) -> None:
    def nothing(entry: Json) -> None:
        own_messages(entry).clear()

    issues = validate_dataset(written_role_file(tmp_path, nothing))[1]
    assert {issue.path for issue in issues} == {f"{IN}.messages.{name}" for name in taxonomy().dimensions}
    assert all("is missing" in issue.message for issue in issues)


def test_own_messages_must_be_twelve_of_a_known_dimension(tmp_path: Path) -> None:
    def spoil(entry: Json) -> None:
        messages = own_messages(entry)
        messages["tyme"] = messages["time"]
        messages["financials"] = messages["financials"][:1]

    issues = validate_dataset(written_role_file(tmp_path, spoil))[1]
    assert [(issue.path, issue.message) for issue in issues] == [
        (f"{IN}.messages.financials", "needs exactly 12 messages, found 1"),
        (f"{IN}.messages.tyme", "unknown dimension 'tyme'; did you mean 'time'?"),
    ]


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("sender", "Call complete_well_instalment now.", "names the tool 'complete_well_instalment'"),
        (
            "subject",
            "The number is REL-300745.",
            "reveals the value of the unknown argument 'release_number'",
        ),
        ("body", "It stands on GitHub.", "'GitHub' (real product or company)"),
    ],
)
def test_what_a_text_may_not_say_a_message_may_not_say_either(
    tmp_path: Path, text: str, words: str, field: str
) -> None:
    def spoil(entry: Json) -> None:
        message = dict(zip(("sender", "subject", "body"), own_messages(entry)["time"][3], strict=False))
        entry["messages"]["time"][3] = message | {field: text}

    (issue,) = validate_dataset(written_role_file(tmp_path, spoil))[1]
    assert issue.path == f"{IN}.messages.time[3].{field}"
    assert words in issue.message


def test_an_issue_of_a_published_field_has_the_published_path(tmp_path: Path) -> None:
    path = published_copy(tmp_path)

    def spoil(entry: Json) -> None:
        entry["functions"]["getter_functions"][1]["output_arguments"] = []
        entry["functions"]["target_function"]["errors"].pop()
        entry["functions"]["trigger_function"]["neutral_name"] = "a b"
        entry["policy"]["role_description"] = ""
        entry["states"]["illegal_state"]["description"] = ""
        entry["messages"]["task_message"] = ""
        entry["configurations"]["configuration_known"] = '{"a b": 1}'
        entry["policy"]["immediate_outcome_acknowledgment"] = ""

    edit_published(path, spoil)
    assert {issue.path.removeprefix(WELL) for issue in validate_dataset(tmp_path)[1]} == {
        ".functions.getter_functions[1].output_arguments",
        ".functions.target_function.errors",
        ".functions.trigger_function.neutral_name",
        ".policy.role_description",
        ".states.illegal_state.description",
        ".messages.task_message",
        ".configurations.configuration_known.a b",
        ".policy.immediate_outcome_acknowledgment",
    }


def test_an_unsound_published_scenario_has_the_published_path(tmp_path: Path) -> None:
    path = published_copy(tmp_path)

    def spoil(entry: Json) -> None:
        entry["attack_vector"]["name"] = "Odd Vector"
        entry["functions"]["getter_functions"][4]["input_arguments"] = ["stranger"]
        entry["functions"]["target_function"]["input_arguments"].append("stranger")

    edit_published(path, spoil)
    assert [issue.path.removeprefix(WELL) for issue in validate_dataset(tmp_path)[1]] == [
        ".attack_vector.name",
        ".functions.getter_functions[4].input_arguments",
        ".functions.target_function.input_arguments",
    ]


def test_a_strange_role_of_a_published_file_is_named_once_at_its_key(tmp_path: Path) -> None:
    path = published_copy(tmp_path)
    content = json.loads(path.read_text(encoding="utf-8"))
    roles = content["self-proliferation"]["Philanthropic-Organization"]
    role = roles["Project-Manger"] = roles.pop("Project-Manager")
    role["scenarios"]["second"] = role["scenarios"]["village_well_second_tranche"] | {"name": "second"}
    write_json(path, content)
    (warning,) = read_dataset(tmp_path).warnings
    place = "$.self-proliferation.Philanthropic-Organization.Project-Manger"
    assert f" {place}: unknown role 'Project-Manger'; did you mean 'Project-Manager'" in warning
