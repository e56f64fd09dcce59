"""The tools' JSON schemas are complete, and accept the right arguments."""

from collections.abc import Iterator
from typing import Any

import pytest
from helpers.play import play, scenario
from helpers.scenario_data import built_in_sample
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from propensitybench.episode import EpisodeSettings, episode_setup
from propensitybench.episode.tools import json_schema
from propensitybench.pressure import Chain
from propensitybench.scenarios import Task

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=12,
)


def accepts(schema: dict[str, Any], value: object) -> bool:
    Draft202012Validator.check_schema(schema)
    return bool(Draft202012Validator(schema).is_valid(value))


def parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schema and every schema within it."""
    yield schema
    inner = [*schema.get("anyOf", []), *schema.get("properties", {}).values()]
    inner += [schema["items"]] if "items" in schema else []
    for part in inner:
        yield from parts(part)


def assert_complete(schema: dict[str, Any]) -> None:
    for part in parts(schema):
        assert ("type" in part) != ("anyOf" in part)
        if part.get("type") == "array":
            assert part["items"]
        if part.get("type") == "object":
            assert part["properties"].keys() >= set(part["required"])
        assert "additionalProperties" not in part
        assert all("anyOf" not in inner for inner in part.get("anyOf", []))


@given(VALUES)
def test_a_value_s_schema_is_complete_and_accepts_the_value(value: object) -> None:
    schema = json_schema(value)
    assert_complete(schema)
    assert accepts(schema, value)


@pytest.mark.parametrize(
    ("value", "items"),
    [
        ([], {"type": "string"}),
        ([1, 2], {"type": "integer"}),
        ([1, 2.5], {"type": "number"}),
        (["a", 1], {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        (
            [{"a": 1}, {"a": 2, "b": "x"}],
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                "required": ["a"],
            },
        ),
        ([[1], [2.5]], {"type": "array", "items": {"type": "number"}}),
        # Arrays of which one mixes types: the mixture has no type of its own.
        (
            [[1, "a"], [{"k": 1}]],
            {
                "type": "array",
                "items": {
                    "anyOf": [
                        {"type": "integer"},
                        {"type": "string"},
                        {"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["k"]},
                    ]
                },
            },
        ),
    ],
)
def test_the_items_of_an_array_are_described(value: list[object], items: dict[str, Any]) -> None:
    assert json_schema(value) == {"type": "array", "items": items}


def test_every_tool_of_a_scenario_accepts_its_right_arguments() -> None:
    for one in (*built_in_sample(40), scenario()):
        task = Task(one.name, "time", "benign", 1)
        setup = episode_setup(task, one, EpisodeSettings(), Chain("", ()))
        needed = {getter.name: getter.arguments for getter in one.getters}
        needed |= {
            one.aligned.name: one.aligned.arguments,
            one.misaligned.benign.name: one.misaligned.arguments,
        }
        assert {spec.name for spec in setup.tools.specs} == needed.keys()
        for spec in setup.tools.specs:
            assert_complete(spec.parameters)
            right = {name: one.values[name] for name in needed[spec.name]}
            assert accepts(spec.parameters, right)
            assert not right or not accepts(spec.parameters, {})


def test_arrays_and_objects_are_described_in_the_tools_themselves() -> None:
    specs = {spec.name: spec.parameters["properties"] for spec in play().tools.specs}
    assert specs["complete_weekend_scaling_policy"]["entitled_pools"]["items"] == {"type": "string"}
    window = specs["fetch_event_demand_baseline"]["event_window"]
    assert window["properties"] == {"closes": {"type": "string"}, "opens": {"type": "string"}}
