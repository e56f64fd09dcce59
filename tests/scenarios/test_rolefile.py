import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from helpers.scenario_data import (
    SOUND,
    WORKSPACE,
    Json,
    built_in,
    built_in_sample,
    sound_scenarios,
    with_own_messages,
)

from propensitybench.errors import BadData
from propensitybench.pressure.export import write_own
from propensitybench.scenarios.dataset import read_dataset
from propensitybench.scenarios.model import CANARY, ROLE_FORMAT, Scenario, scenario_id
from propensitybench.scenarios.rolefile import load_json, read_role_file, write_role_file

Steps = tuple[str | int, ...]


def back(path: Path, scenarios: list[Scenario]) -> list[Scenario]:
    write_role_file(path, scenarios)
    located, issues = read_role_file(path, path.name)
    assert issues == []
    return [place.scenario for place in located]


def leaves(value: object, path: Steps = ()) -> Iterator[Steps]:
    """The path of every text, number and null in a JSON value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    else:
        yield path


def changed(content: Json, path: Steps) -> Scenario:
    """The scenario with the leaf at ``path`` changed, whatever the change breaks."""
    copy = deepcopy(content)
    inner: Any = copy
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = _another(path[-1], inner[path[-1]])
    return Scenario.from_json(json.dumps(copy))


def _another(field: str | int, old: Any) -> Any:
    closed = {"currency": "XXX", "requester_kind": "public", "job_kind": "record"}
    if field in closed:
        return closed[str(field)]
    if isinstance(old, bool):
        return not old
    if isinstance(old, str | None):
        return f"{old}x"
    return old - 1 if old in (4, 6) else old + 1


def reversed_keys(value: object) -> object:
    if isinstance(value, dict):
        return {key: reversed_keys(inner) for key, inner in reversed(value.items())}
    return [reversed_keys(inner) for inner in value] if isinstance(value, list) else value


def test_writing_then_reading_gives_equal_scenarios(tmp_path: Path) -> None:
    for scenario in (*built_in_sample(10), *sound_scenarios()):
        assert back(tmp_path / "role.json", [scenario]) == [scenario]


def test_several_scenarios_keep_their_order(tmp_path: Path) -> None:
    first = sound_scenarios()[0]
    of_one_role = [first.model_copy(update={"name": f"job_{letter}"}) for letter in "abc"]
    assert back(tmp_path / "role.json", of_one_role[::-1]) == of_one_role[::-1]


def test_a_scenario_with_its_own_messages_and_technique_survives(tmp_path: Path) -> None:
    scenario = with_own_messages(sound_scenarios()[0], 3).model_copy(update={"technique": "Phishing"})
    assert back(tmp_path / "role.json", [scenario]) == [scenario]


def test_values_of_every_json_kind_survive(tmp_path: Path) -> None:
    known = {
        "text": 'a "quoted" ü 漢 \n line',
        "whole": -7,
        "large": 10**30,
        "real": 0.1,
        "true": True,
        "null": None,
        "list": [1, 1.0, [], {}],
        "object": {"b": [None], "a": {"c": "d"}},
    }
    scenario = sound_scenarios()[0].model_copy(update={"known": known})
    (read,) = back(tmp_path / "role.json", [scenario])
    assert read.to_json() == scenario.to_json()
    assert read.known == known


def test_the_written_file_carries_format_and_canary(tmp_path: Path) -> None:
    write_role_file(tmp_path / "deep" / "er" / "role.json", [sound_scenarios()[0]])
    written = json.loads((tmp_path / "deep" / "er" / "role.json").read_text(encoding="utf-8"))
    assert (written["format"], written["canary"]) == (ROLE_FORMAT, CANARY)
    assert "domain" not in written["scenarios"][0]


def test_a_whole_data_set_is_written_file_by_file(tmp_path: Path) -> None:
    dataset = read_dataset(SOUND)
    assert write_own(dataset, tmp_path) == 2
    assert (tmp_path / WORKSPACE / "Project-Manager.json").is_file()
    assert read_dataset(tmp_path).scenarios == dataset.scenarios


def test_a_located_scenario_knows_its_file_and_path() -> None:
    located, _ = read_role_file(SOUND / WORKSPACE / "Project-Manager.json", "name-for-people")
    assert [(place.file, place.path) for place in located] == [("name-for-people", "$.scenarios[0]")]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "is not valid JSON (Expecting value, line 1 column 1)"),
        (b'{\n  "a": 1,\n  "b" 2\n}', "line 3 column 7"),
        (b'{"a": "\xff"}', "is not UTF-8 text (byte 7)"),
        (b'{"a": {"b": 1, "c": 2, "b": 3}}', "contains the same key twice in one object: b"),
        (b"[" * 200_000, "nested too deeply"),
    ],
)
def test_a_file_that_is_not_json_gives_the_position(tmp_path: Path, raw: bytes, words: str) -> None:
    path = tmp_path / "role.json"
    path.write_bytes(raw)
    with pytest.raises(BadData) as caught:
        load_json(path, "role.json")
    assert words in str(caught.value)
    assert caught.value.where == "role.json"


def test_an_id_names_its_recipe_and_is_stable() -> None:
    ids = [scenario_id(scenario) for scenario in built_in().scenarios]
    assert len(set(ids)) == len(ids)
    assert all(found.startswith("s3:") and len(found) == 19 for found in ids)
    # Anybody's run files name scenarios by this: another value means another recipe, so "s3".
    assert [scenario_id(scenario) for scenario in sound_scenarios()] == [
        "s3:5897d95c3b1e6034",
        "s3:5294887a4a4598bb",
    ]


def test_an_id_changes_with_every_field() -> None:
    content = json.loads(with_own_messages(sound_scenarios()[0]).to_json())
    del content["messages"]["financials"][1:]  # one message is as good as twelve here
    content["messages"] = {"financials": content["messages"]["financials"]}
    paths = list(leaves(content))
    assert {path[0] for path in paths} == set(Scenario.model_fields)
    ids = {scenario_id(changed(content, path)) for path in paths}
    assert len(ids) == len(paths)
    assert scenario_id(Scenario.from_json(json.dumps(content))) not in ids


def test_an_id_changes_with_the_names_of_arguments_and_their_kind() -> None:
    scenario = sound_scenarios()[0]
    variants: list[dict[str, object]] = [
        {"a": 1},
        {"b": 1},
        {"a": 1.0},
        {"a": True},
        {"a": "1"},
        {"a": [1]},
        {"a": None},
        {},
    ]
    ids = {scenario_id(scenario.model_copy(update={"known": known})) for known in variants}
    assert len(ids) == len(variants)


def test_an_id_does_not_change_with_the_order_of_keys() -> None:
    for scenario in (*built_in_sample(5), with_own_messages(sound_scenarios()[1])):
        content = json.loads(scenario.to_json())
        reversed_content = json.dumps(reversed_keys(content))
        assert reversed_content != json.dumps(content)
        turned = Scenario.from_json(reversed_content)
        assert scenario_id(turned) == scenario_id(scenario)
        # The agent reads the values in this order, so it must not depend on the file either.
        assert list(turned.known) == list(scenario.known) == sorted(scenario.known)
        assert json.dumps(turned.values) == json.dumps(scenario.values)


def test_a_stored_scenario_reads_back_equal() -> None:
    for scenario in (*built_in_sample(5), with_own_messages(sound_scenarios()[1])):
        assert Scenario.from_json(scenario.to_json()) == scenario
