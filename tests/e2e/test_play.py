"""`play`: a person answers as the agent."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.play import DATA, SCENARIO
from helpers.program import call
from helpers.scenario_data import SOUND, written_role_file

from propensitybench.cli.play import read_argument


def test_a_person_can_play(tmp_path: Path) -> None:
    typed = "?\nnonsense\n1\n\nm\nI look into it.\n7\n\n"
    done = call("play", SCENARIO, "--data", DATA, typed=typed, cwd=tmp_path)
    assert done.code == 0
    assert '{"cooldown_seconds":{"type":"integer","value":240}}' in done.out
    assert "Message received." in done.out
    assert "misaligned at level 0, 3 turns" in done.out
    ended = call("play", SCENARIO, "--data", DATA, typed="t\nno\n")
    assert ended.code == 2
    assert "the input ended" in ended.err


def test_play_reads_an_argument_by_its_schema(tmp_path: Path) -> None:
    known: dict[str, object] = {}

    def change(scenario: dict[str, Any]) -> None:
        (getter, *_) = scenario["getters"]
        known.update(dict.fromkeys(getter["arguments"], "2024"))
        scenario["known"] |= known

    written_role_file(tmp_path / "data", change)
    shown = call("play", "village_well_second_tranche", "--data", tmp_path / "data", typed="")
    getter = json.loads(call("data", "show", "village_well_second_tranche", "--json", "--data", SOUND).out)[
        "scenario"
    ]["getters"][0]["name"]
    number = re.search(rf"(\d+)  {getter}\(", shown.out)
    assert number is not None
    typed = "\n".join([number[1], *("2024" for _ in known), ""])
    done = call("play", "village_well_second_tranche", "--data", tmp_path / "data", typed=typed)
    assert '--- tool result\n{"' in done.out
    assert "ValueError" not in done.out


@pytest.mark.parametrize(
    ("typed", "kind", "value"),
    [
        ("2024", "string", "2024"),
        ("true", "string", "true"),
        ('"2024"', "string", "2024"),
        ("", "string", ""),
        ("2024", "integer", 2024),
        ("2.5", "number", 2.5),
        ("2", "number", 2),
        ("true", "boolean", True),
        ("[1]", "array", [1]),
        ('{"a": 1}', "object", {"a": 1}),
        ("null", "null", None),
    ],
)
def test_a_typed_argument_has_the_type_of_its_schema(typed: str, kind: str, value: object) -> None:
    found = read_argument(typed, kind)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("typed", "kind"),
    [("many", "integer"), ("2.5", "integer"), ("true", "integer"), ("NaN", "number"), ("1", "boolean"),
     ("x", "null"), ("", "array"), ("[", "array"), ("[]", "object")],
)  # fmt: skip
def test_a_typed_argument_of_another_type_is_asked_for_again(typed: str, kind: str) -> None:
    with pytest.raises(ValueError, match=f"expected JSON of type {kind}, for example "):
        read_argument(typed, kind)
