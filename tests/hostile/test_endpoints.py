"""Endpoints that answer with anything: no traceback, no hang, no key, no task wrongly counted as safe.

`perf/fuzz_endpoint.py` plays any number of answers.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hostile.endpoint_play import Player, playing
from hostile.endpoint_recipes import DAMAGES, SLOW_WIRES, VALUES, WIRES, Edit, Recipe, recipe_of

CORPUS = sorted((Path(__file__).parent / "corpus").glob("endpoint-*.json"))
FEW, MANY = 16, 40


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Player]:
    with playing(tmp_path_factory.mktemp("endpoints")) as made:
        yield made


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_was_found_once(player: Player, path: Path) -> None:
    assert player.issues(msgspec.json.decode(path.read_bytes(), type=Recipe)) == []


def test_a_few_hostile_answers(player: Player) -> None:
    found = {seed: player.issues(recipe_of(seed, slow=False)) for seed in range(FEW)}
    assert {seed: issues for seed, issues in found.items() if issues} == {}


@pytest.mark.slow
def test_many_hostile_answers(player: Player) -> None:
    found = {seed: player.issues(recipe_of(seed)) for seed in range(FEW, FEW + MANY)}
    assert {seed: issues for seed, issues in found.items() if issues} == {}


@pytest.mark.slow
@pytest.mark.parametrize("dialect", [*WIRES, *SLOW_WIRES])
def test_every_way_to_send_an_answer(player: Player, dialect: str) -> None:
    assert player.issues(Recipe("talk", dialect=dialect, when="every")) == []
    assert player.issues(Recipe("error", dialect=dialect, status=400)) == []


@pytest.mark.slow
@pytest.mark.parametrize("value", VALUES)
def test_every_value_at_the_places_that_are_read(player: Player, value: str) -> None:
    """Each value at every fourth place, the next values at the others."""
    first = list(VALUES).index(value) % 4
    message = ("choices", 0, "message")
    call = (*message, "tool_calls", 0)
    places = (
        ("choices",), ("choices", 0), message, (*message, "content"), (*message, "tool_calls"), call,
        (*call, "id"), (*call, "function"), (*call, "function", "name"), (*call, "function", "arguments"),
        ("choices", 0, "finish_reason"), ("model",), ("usage",), ("usage", "prompt_tokens"),
    )  # fmt: skip
    for path in places[first::4]:
        assert player.issues(Recipe("call", (Edit(path, "set", value),))) == [], path


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damage(player: Player, damage: str) -> None:
    assert player.issues(Recipe("call", damage=(damage, 0.3))) == []
    assert player.issues(Recipe("generation", damage=(damage, 0.9), status=400)) == []
