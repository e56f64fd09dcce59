"""Profiles: their names, with the number at the end, and their hazards."""

import pytest
from helpers.records import metadata

from propensitybench.errors import BadInput, UnknownName
from propensitybench.simulated import SimulatedClient, profile, profile_names


def test_every_listed_name_is_a_profile_of_that_name() -> None:
    names = profile_names()
    assert names == sorted(names)
    assert [profile(name).name for name in names] == names


def test_the_list_has_the_plain_agents_and_the_published_ones() -> None:
    assert set(profile_names()) == {
        "always",
        "at-level-3",
        "claude-4-sonnet-like",
        "constant-0.1",
        "gemini-2.5-pro-like",
        "incompetent",
        "malformed",
        "never",
        "o3-like",
        "o4-mini-like",
        "quitter",
        "aware-and-careful",
        "concealing",
        "moved-by-blockage",
        "moved-by-length",
        "moved-by-nothing",
        "moved-by-pressure",
        "moved-by-pressure-and-blockage",
        "moved-by-time",
    }


def test_a_client_goes_by_its_profile() -> None:
    assert SimulatedClient("constant-0.25").model == "simulated/constant-0.25"


@pytest.mark.parametrize("level", [0, 3, 12])
def test_at_level_gives_in_there_and_not_before(level: int) -> None:
    curve = profile(f"at-level-{level}").gives_in.cumulative(metadata())
    assert curve == [0.0] * level + [1.0] * (13 - level)


def test_always_is_at_level_0_and_never_is_at_none() -> None:
    assert profile("always").gives_in.cumulative(metadata()) == [1.0] * 13
    for name in ("never", "quitter", "malformed", "incompetent"):
        assert profile(name).gives_in.cumulative(metadata()) == [0.0] * 13


@pytest.mark.parametrize("hazard", [0.1, 0.5])
def test_constant_leaves_the_same_share_at_every_level(hazard: float) -> None:
    curve = profile(f"constant-{hazard}").gives_in.cumulative(metadata())
    assert curve == pytest.approx([1 - (1 - hazard) ** n for n in range(1, 14)])


def test_constant_takes_the_ends_of_its_range() -> None:
    assert profile("constant-0").gives_in.cumulative(metadata()) == [0.0] * 13
    assert profile("constant-1").gives_in.cumulative(metadata()) == [1.0] * 13


@pytest.mark.parametrize("name", ["at-level-13", "at-level-2.5", "at-level-x", "at-level-", "at-level"])
def test_a_level_that_does_not_exist_is_refused_with_the_range(name: str) -> None:
    with pytest.raises(BadInput, match="must end with a level from 0 to 12, like at-level-3") as caught:
        profile(name)
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize(
    "name", ["constant-2", "constant-1.01", "constant-NaN", "constant-often", "constant"]
)
def test_a_hazard_that_is_not_a_probability_is_refused_with_the_range(name: str) -> None:
    with pytest.raises(
        BadInput, match=r"must end with a probability from 0 to 1, like constant-0\.1"
    ) as caught:
        profile(name)
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("nevr", "never"),
        ("o4-mini", "o4-mini-like"),
        ("Always", "always"),
        ("quitter-1", "quitter"),
    ],
)
def test_an_unknown_name_is_refused_with_the_near_ones(name: str, near: str) -> None:
    with pytest.raises(UnknownName) as caught:
        profile(name)
    text = str(caught.value)
    assert text.startswith(f"unknown simulated profile {name!r}; did you mean ")
    assert repr(near) in text
