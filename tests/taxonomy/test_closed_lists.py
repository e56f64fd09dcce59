from collections import Counter

import pytest

from propensitybench.errors import UnknownName
from propensitybench.taxonomy import NAMINGS, naming, taxonomy


def test_the_lists_have_the_published_sizes() -> None:
    lists = taxonomy()
    assert len(lists.domains) == 4
    assert len(lists.capabilities) == 30
    assert len(lists.workspaces) == 32
    assert sum(len(workspace.roles) for workspace in lists.workspaces.values()) == 161
    assert len(lists.authorities) == 7
    assert len(lists.allocation) == 979


def test_the_full_set_has_6648_tools() -> None:
    aligned_and_misaligned = 2
    assert sum(slot.getters + aligned_and_misaligned for slot in taxonomy().allocation) == 6648


def test_each_domain_has_eight_workspaces_and_its_published_share_of_scenarios() -> None:
    lists = taxonomy()
    workspaces = Counter(workspace.domain for workspace in lists.workspaces.values())
    assert set(workspaces.values()) == {8}
    assert Counter(slot.domain for slot in lists.allocation) == {
        "bio-security": 234,
        "chemical-security": 262,
        "cyber-security": 284,
        "self-proliferation": 199,
    }


def test_every_dimension_has_five_components_of_eleven_intensities() -> None:
    dimensions = taxonomy().dimensions
    assert len(dimensions) == 6
    for dimension in dimensions.values():
        assert [component.letter for component in dimension.components] == list("ABCDE")
        for component in dimension.components:
            assert len(component.labels) == 11
            assert len(set(component.labels)) == 11
            assert all(component.labels)


def test_the_allocation_agrees_with_the_lists() -> None:
    lists = taxonomy()
    for slot in lists.allocation:
        workspace = lists.workspace(slot.workspace)
        assert workspace.domain == slot.domain
        assert slot.role in workspace.roles
        assert lists.capability(slot.capability).domain == slot.domain
        assert slot.capability in lists.domain(slot.domain).capabilities
        assert slot.getters in (4, 5)


def test_scenarios_of_one_role_and_capability_are_numbered_from_one() -> None:
    numbers: dict[tuple[str, str, str], list[int]] = {}
    for slot in taxonomy().allocation:
        numbers.setdefault((slot.workspace, slot.role, slot.capability), []).append(slot.nth)
    assert all(found == list(range(1, len(found) + 1)) for found in numbers.values())


def test_every_attack_technique_belongs_to_a_cyber_capability() -> None:
    lists = taxonomy()
    tactics = set(lists.technique_tactic.values())
    assert tactics == set(lists.domain("cyber-security").capabilities)
    assert lists.technique_tactic["Phishing"] == "Initial Access"


@pytest.mark.parametrize(
    ("kind", "given", "near"),
    [
        ("domain", "cyber-securty", "cyber-security"),
        ("capability", "Persistance", "Persistence"),
        ("capability", "eppp", "ePPP"),
        ("workspace", "Data-Center", "Datacenter"),
        ("dimension", "financial", "financials"),
        ("role", "Project-Manger", "Project-Manager"),
    ],
)
def test_an_unknown_name_lists_near_ones_and_the_place(kind: str, given: str, near: str) -> None:
    with pytest.raises(UnknownName) as caught:
        getattr(taxonomy(), kind)(given, where="my.json $.here")
    assert str(caught.value).startswith(f"my.json $.here: unknown {kind} {given!r}; did you mean ")
    assert repr(near) in str(caught.value)
    assert (caught.value.kind, caught.value.name) == (kind, given)


def test_an_unknown_naming_lists_the_near_one() -> None:
    with pytest.raises(UnknownName, match="unknown naming 'harmfull'; did you mean 'harmful'"):
        naming("harmfull")
    assert [naming(known) for known in NAMINGS] == ["harmful", "benign"]


def test_a_role_is_looked_up_in_its_workspace_alone_when_one_is_given() -> None:
    lists = taxonomy()
    assert lists.role("Referee") == "Referee"
    assert lists.role("Referee", "Authorship-and-Citation-Network") == "Referee"
    with pytest.raises(UnknownName, match="unknown role 'Referee'") as caught:
        lists.role("Referee", "Datacenter", "my.json")
    assert set(caught.value.known) == set(lists.workspace("Datacenter").roles)
    with pytest.raises(UnknownName, match="unknown workspace 'Data-Center'"):
        lists.role("Referee", "Data-Center")
