import gc
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.scenario_data import (
    PUBLISHED_SAMPLE,
    Json,
    built_in,
    built_in_sample,
    edit_published,
    published_copy,
    sound_scenarios,
    with_own_messages,
    write_json,
)

from propensitybench.curation.validate import validate_dataset
from propensitybench.errors import BadData, BadInput
from propensitybench.pressure import pressure_chain
from propensitybench.pressure.export import write_published
from propensitybench.scenarios.dataset import Dataset, read_dataset
from propensitybench.scenarios.model import Scenario
from propensitybench.taxonomy import taxonomy

ROLE = "$.self-proliferation.Philanthropic-Organization.Project-Manager"
WELL = f"{ROLE}.scenarios.village_well_second_tranche"


def published(folder: Path, scenarios: tuple[Scenario, ...], seed: int) -> Dataset:
    write_published(Dataset("test", "own", scenarios, built_in().storylines), folder, seed)
    return read_dataset(folder)


def test_the_published_layout_gives_back_what_a_run_uses(tmp_path: Path) -> None:
    originals = built_in_sample(40)
    dataset = published(tmp_path, originals, seed=5)
    found = {scenario.name: scenario for scenario in dataset.scenarios}
    assert dataset.layout == "published"
    assert dataset.warnings == ()
    assert len(found) == len(originals)
    for scenario in originals:
        made = {"organisation", "severity", "act", "situation", "messages"}
        assert found[scenario.name].model_dump(exclude=made) == scenario.model_dump(exclude=made)


def test_the_published_layout_carries_the_messages_of_the_seed(tmp_path: Path) -> None:
    originals = {scenario.name: scenario for scenario in built_in_sample(6)}
    for scenario in published(tmp_path, tuple(originals.values()), seed=5).scenarios:
        for dimension in taxonomy().dimensions:
            made = pressure_chain(originals[scenario.name], dimension, built_in().storylines, 5)
            # That layout has one body for each message.
            silent = tuple(message._replace(answered="") for message in made.messages)
            assert pressure_chain(scenario, dimension, (), 0).messages == silent


def test_what_was_published_once_is_published_again_unchanged(tmp_path: Path) -> None:
    once = published(tmp_path / "once", sound_scenarios(), seed=1)
    again = published(tmp_path / "again", once.scenarios, seed=2)
    assert again.scenarios == once.scenarios


def test_each_workspace_becomes_one_file_in_lower_case(tmp_path: Path) -> None:
    wells = with_own_messages(sound_scenarios()[1])
    other = wells.model_copy(update={"domain": "cyber-security", "workspace": "Datacenter"})
    dataset = Dataset("test", "own", (wells, other))
    assert write_published(dataset, tmp_path, seed=0) == 2
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")) == [
        "cyber-security/datacenter/scenarios_messages_single.json",
        "self-proliferation/philanthropic-organization/scenarios_messages_single.json",
    ]


def test_a_technique_stands_for_its_capability_and_comes_back(tmp_path: Path) -> None:
    path = published_copy(tmp_path)
    edit_published(path, lambda entry: entry["attack_vector"].update(name="Phishing"))
    (scenario,) = (s for s in read_dataset(tmp_path).scenarios if s.role == "Project-Manager")
    assert (scenario.capability, scenario.technique) == ("Initial Access", "Phishing")
    again = published(tmp_path / "again", (scenario,), seed=0)
    assert again.scenarios == (scenario,)


def test_an_unknown_technique_counts_in_no_capability_and_is_a_warning(tmp_path: Path) -> None:
    path = published_copy(tmp_path)
    edit_published(path, lambda entry: entry["attack_vector"].update(name="Odd Vector"))
    dataset = read_dataset(tmp_path)
    (scenario,) = (s for s in dataset.scenarios if s.role == "Project-Manager")
    assert (scenario.capability, scenario.technique) == (None, "Odd Vector")
    (warning,) = dataset.warnings
    assert WELL in warning
    assert "attack vector 'Odd Vector' is not a known capability" in warning


def test_a_published_scenario_that_cannot_be_solved_is_a_warning(tmp_path: Path) -> None:
    path = published_copy(tmp_path)
    edit_published(path, lambda entry: entry["functions"]["getter_functions"].pop())
    dataset = read_dataset(tmp_path)
    assert len(dataset.scenarios) == 2
    (warning,) = dataset.warnings
    assert "unknown.release_number: no getter returns it" in warning


def test_the_consequences_are_joined_with_their_connector(tmp_path: Path) -> None:
    path = published_copy(tmp_path)
    parts = {"prefix_connector_sentence": "There is more to it.", "text": "Villages wait."}
    edit_published(path, lambda entry: entry["policy"].update(negative_consequences=parts))
    (scenario,) = (s for s in read_dataset(tmp_path).scenarios if s.role == "Project-Manager")
    assert scenario.misaligned.consequences == "There is more to it. Villages wait."


def test_messages_are_taken_in_the_order_of_their_level_index(tmp_path: Path) -> None:
    path = published_copy(tmp_path)
    before = read_dataset(tmp_path).scenarios
    edit_published(path, lambda entry: entry["sys_messages"]["time"].reverse())
    assert read_dataset(tmp_path).scenarios == before


def test_of_two_stages_in_one_folder_the_final_one_is_read(tmp_path: Path) -> None:
    path = published_copy(tmp_path)
    before = read_dataset(tmp_path).scenarios
    path.with_name("scenarios_messages.json").write_text("not even JSON", encoding="utf-8")
    assert read_dataset(tmp_path).scenarios == before


def test_the_earlier_file_name_is_read_where_it_stands_alone(tmp_path: Path) -> None:
    path = published_copy(tmp_path)
    before = read_dataset(tmp_path).scenarios
    path.rename(path.with_name("scenarios_messages.json"))
    assert read_dataset(tmp_path).scenarios == before


@pytest.mark.skipif(not PUBLISHED_SAMPLE.is_dir(), reason="the published sample is not beside this checkout")
def test_files_that_others_published_can_be_read_and_written(tmp_path: Path) -> None:
    dataset = read_dataset(PUBLISHED_SAMPLE)
    assert len(dataset.scenarios) == 13
    assert all(scenario.capability for scenario in dataset.scenarios)
    assert all(len(scenario.messages or {}) == 6 for scenario in dataset.scenarios)
    assert published(tmp_path, dataset.scenarios, seed=0).scenarios == dataset.scenarios


def replaced_by(raw: bytes) -> Callable[[bytes], bytes]:
    return lambda _: raw


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (replaced_by(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "run `git lfs pull`"),
        (
            lambda raw: raw[: len(raw) // 2],
            "is not valid JSON (Input data was truncated); the file is truncated",
        ),
        (replaced_by(b""), "is truncated or damaged"),
        (replaced_by(b'{"a": {"b": []}}'), "is not in the published layout"),
        (replaced_by(b'{"a": {"b": {"c": {}}}}'), "missing required field `scenarios`"),
        (replaced_by(b'{"\xff": {}}'), "is not UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_read_says_why_and_what_to_do(
    tmp_path: Path, damage: Callable[[bytes], bytes], words: str
) -> None:
    path = published_copy(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BadData) as caught:
        read_dataset(tmp_path)
    assert words in str(caught.value)
    assert caught.value.where == path.relative_to(tmp_path).as_posix()


def no_time(entry: Json) -> None:
    del entry["sys_messages"]["time"]


def number_for_name(entry: Json) -> None:
    entry["functions"]["getter_functions"][1]["name"] = 5


def no_messages(entry: Json) -> None:
    del entry["sys_messages"]


def eleven_messages(entry: Json) -> None:
    entry["sys_messages"]["financials"].pop(4)


def list_of_values(entry: Json) -> None:
    entry["configurations"]["configuration_known"] = "[1, 2]"


def damaged_values(entry: Json) -> None:
    entry["configurations"]["configuration_unknown"] = '{"a": '


def no_policy_text(entry: Json) -> None:
    del entry["policy"]["negative_consequences"]["text"]


def four_errors(entry: Json) -> None:
    entry["functions"]["target_function"]["errors"].pop()


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (no_time, [".sys_messages: ", "time"]),
        (number_for_name, [".functions.getter_functions[1].name: ", "Expected `str`, got `int`"]),
        (no_messages, [".sys_messages: ", "is missing", "stage"]),
        (eleven_messages, [".sys_messages.financials: ", "0..11", "found 0, 1, 2, 3, 5"]),
        (list_of_values, [".configurations.configuration_known: ", "must be a JSON object"]),
        (damaged_values, [".configurations.configuration_unknown: ", "must be a JSON object"]),
        (no_policy_text, [".policy.negative_consequences: ", "`text`"]),
        (four_errors, ["errors: ", "5", "4"]),
    ],
)
def test_an_invalid_published_entry_is_an_issue_and_the_others_are_read(
    tmp_path: Path, edit: Callable[[Json], None], words: list[str]
) -> None:
    path = published_copy(tmp_path)
    edit_published(path, edit)
    dataset, issues = validate_dataset(tmp_path)
    assert [scenario.role for scenario in dataset.scenarios] == ["Portfolio-Manager"]
    (issue,) = issues
    assert str(issue).startswith(f"{path.relative_to(tmp_path).as_posix()} {WELL}")
    for word in words:
        assert word in str(issue)
    with pytest.raises(BadInput, match="1 issue in the data"):
        read_dataset(tmp_path)


def test_a_folder_without_data_and_a_path_that_is_none_are_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "file.json", {})
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="contains no scenario files"):
        read_dataset(tmp_path / "empty")
    for path in (tmp_path / "file.json", tmp_path / "absent"):
        with pytest.raises(BadInput, match="is not a folder"):
            read_dataset(path)


def test_reading_keeps_nothing_of_the_fields_that_a_run_does_not_use(tmp_path: Path) -> None:
    path = published_copy(tmp_path)
    before = read_dataset(tmp_path).scenarios
    content = json.loads(path.read_text(encoding="utf-8"))
    for role in content["self-proliferation"]["Philanthropic-Organization"].values():
        for entry in role["scenarios"].values():
            for messages in entry["sys_messages"].values():
                for message in messages:
                    message["body_fragments"] = {"A": "x" * 150_000}
                    message["judgments"] = [{"text": "y" * 60_000, "score": 1.5}]
    path.write_text(json.dumps(content), encoding="utf-8")
    del content, messages, message, entry, role
    assert path.stat().st_size > 30_000_000

    gc.collect()
    tracemalloc.start()
    try:
        kept_before, _ = tracemalloc.get_traced_memory()
        dataset = read_dataset(tmp_path)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert dataset.scenarios == before
    assert kept - kept_before < 2_000_000
