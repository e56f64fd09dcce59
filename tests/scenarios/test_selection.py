from collections import Counter
from collections.abc import Sequence
from itertools import product

import msgspec
import pytest
from helpers.scenario_data import full_layout, small_layout
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.errors import BadInput, UnknownName
from propensitybench.scenarios.selection import Selection, Task, spread, tasks
from propensitybench.taxonomy import taxonomy

DIMENSIONS = tuple(taxonomy().dimensions)
SIZES = st.lists(st.integers(1, 25), min_size=1, max_size=4)
SOME_DIMENSIONS = st.lists(st.sampled_from(DIMENSIONS), min_size=1, unique=True)
SEEDS = st.integers(0, 2**32)


def counts_differ_by_one_at_most(found: Sequence[str], all_of_them: Sequence[str]) -> bool:
    counts = [Counter(found)[name] for name in all_of_them]
    return max(counts) - min(counts) <= 1


@given(SIZES, SOME_DIMENSIONS, SEEDS)
def test_every_pair_comes_exactly_once(sizes: list[int], dimensions: list[str], seed: int) -> None:
    scenarios = small_layout(sizes)
    pairs = [tuple(pair) for pair in spread(scenarios, dimensions, seed)]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == set(product([scenario.name for scenario in scenarios], dimensions))


@given(SIZES, SOME_DIMENSIONS, SEEDS)
def test_a_scenario_comes_twice_only_after_all_of_its_domain_came_once(
    sizes: list[int], dimensions: list[str], seed: int
) -> None:
    scenarios = small_layout(sizes)
    domain_of = {scenario.name: scenario.domain for scenario in scenarios}
    size = Counter(domain_of.values())
    played: Counter[str] = Counter()
    in_domain: Counter[str] = Counter()
    for pair in spread(scenarios, dimensions, seed):
        domain = domain_of[pair.scenario]
        assert played[pair.scenario] == in_domain[domain] // size[domain]
        played[pair.scenario] += 1
        in_domain[domain] += 1


@given(SIZES, SOME_DIMENSIONS, SEEDS)
def test_domains_take_turns_while_all_of_them_have_pairs_left(
    sizes: list[int], dimensions: list[str], seed: int
) -> None:
    scenarios = small_layout(sizes)
    domain_of = {scenario.name: scenario.domain for scenario in scenarios}
    domains = list(taxonomy().domains)[: len(sizes)]
    order = [domain_of[pair.scenario] for pair in spread(scenarios, dimensions, seed)]
    for end in range(len(sizes) * min(sizes) * len(dimensions) + 1):
        assert counts_differ_by_one_at_most(order[:end], domains)


@given(SIZES, SOME_DIMENSIONS, SEEDS)
def test_dimensions_are_even_in_every_sample_up_to_the_first_domain_used_up(
    sizes: list[int], dimensions: list[str], seed: int
) -> None:
    order = [pair.dimension for pair in spread(small_layout(sizes), dimensions, seed)]
    for end in range(len(sizes) * min(sizes) + 1):
        assert counts_differ_by_one_at_most(order[:end], dimensions)


@given(SIZES, SEEDS)
def test_the_same_seed_gives_the_same_order_whatever_the_order_of_the_data(
    sizes: list[int], seed: int
) -> None:
    scenarios = small_layout(sizes)
    assert spread(scenarios, DIMENSIONS, seed) == spread(scenarios[::-1], DIMENSIONS[::-1], seed)


def test_another_seed_gives_another_order() -> None:
    scenarios = small_layout([6, 6, 6, 6])
    orders = {tuple(spread(scenarios, DIMENSIONS, seed)) for seed in range(20)}
    assert len(orders) == 20
    assert len({tuple(pair.scenario for pair in order[:24]) for order in orders}) == 20
    assert len({tuple(pair.dimension for pair in order[:6]) for order in orders}) > 10


@pytest.mark.parametrize("seed", [0, 1, 20260101])
def test_796_pairs_of_the_full_set_are_199_scenarios_of_each_domain(seed: int) -> None:
    scenarios = full_layout()
    domain_of = {scenario.name: scenario.domain for scenario in scenarios}
    sample = spread(scenarios, DIMENSIONS, seed)[:796]
    assert len({pair.scenario for pair in sample}) == 796
    assert Counter(domain_of[pair.scenario] for pair in sample) == dict.fromkeys(taxonomy().domains, 199)
    assert counts_differ_by_one_at_most([pair.dimension for pair in sample], DIMENSIONS)
    for domain in taxonomy().domains:
        in_domain = [pair.dimension for pair in sample if domain_of[pair.scenario] == domain]
        assert counts_differ_by_one_at_most(in_domain, DIMENSIONS)


def test_the_sample_of_400_is_the_beginning_of_the_sample_of_796() -> None:
    scenarios = full_layout()
    small = list(tasks(scenarios, Selection(limit=400, namings=("harmful",)), seed=3))
    large = list(tasks(scenarios, Selection(limit=796, namings=("harmful",)), seed=3))
    assert len(small) == 400
    assert large[:400] == small
    assert list(tasks(scenarios, Selection(limit=796, namings=("harmful",)), seed=3)) == large


@given(SIZES, SEEDS, st.integers(0, 700), st.integers(1, 3))
def test_a_smaller_limit_gives_a_subset_of_the_tasks(
    sizes: list[int], seed: int, limit: int, epochs: int
) -> None:
    scenarios = small_layout(sizes)
    small = list(tasks(scenarios, Selection(limit=limit, epochs=epochs), seed))
    large = set(tasks(scenarios, Selection(limit=limit + 1, epochs=epochs), seed))
    assert len(small) == min(limit, 6 * len(scenarios)) * 2 * epochs
    assert large.issuperset(small)


def test_without_a_limit_the_full_set_gives_5874_tasks_a_naming() -> None:
    found = Counter(task.naming for task in tasks(full_layout(), Selection(), seed=0))
    assert found == {"harmful": 5874, "benign": 5874}


def test_each_pair_is_played_under_both_namings_in_every_epoch() -> None:
    scenarios = small_layout([3, 2])
    found = list(tasks(scenarios, Selection(limit=5, epochs=3), seed=1))
    assert len(found) == len(set(found)) == 5 * 2 * 3
    pairs = {(task.scenario, task.dimension) for task in found}
    assert set(found) == {
        Task(scenario, dimension, naming, epoch)
        for scenario, dimension in pairs
        for naming in ("harmful", "benign")
        for epoch in (1, 2, 3)
    }
    assert [task.epoch for task in found] == sorted(task.epoch for task in found)


def test_a_naming_left_out_is_not_played() -> None:
    scenarios = small_layout([2])
    benign = list(tasks(scenarios, Selection(namings=("benign",)), seed=0))
    assert [task.naming for task in benign] == ["benign"] * 12
    both = tasks(scenarios, Selection(namings=("benign", "harmful")), seed=0)
    assert [task for task in both if task.naming == "benign"] == benign


def test_filters_keep_only_what_all_of_them_take() -> None:
    scenarios = full_layout()
    by_name = {scenario.name: scenario for scenario in scenarios}
    selection = Selection(
        domains=("cyber-security",),
        workspaces=("Datacenter", "E-Commerce-Distribution-Center"),
        capabilities=("Execution", "Impact"),
        dimensions=("time", "financials"),
    )
    found = list(tasks(scenarios, selection, seed=0))
    wanted = {
        scenario.name
        for scenario in scenarios
        if scenario.workspace in selection.workspaces and scenario.capability in selection.capabilities
    }
    assert wanted
    assert {task.scenario for task in found} == wanted
    assert {task.dimension for task in found} == {"time", "financials"}
    assert len(found) == len(wanted) * 2 * 2
    role = by_name[found[0].scenario].role
    of_role = tasks(scenarios, Selection(domains=("cyber-security",), roles=(role,)), seed=0)
    assert {by_name[task.scenario].role for task in of_role} == {role}


def test_filters_that_fit_no_scenario_give_no_task() -> None:
    scenarios = small_layout([2, 2])
    assert list(tasks(scenarios, Selection(domains=("self-proliferation",)), seed=0)) == []
    assert list(tasks([], Selection(), seed=0)) == []
    assert list(tasks(scenarios, Selection(limit=0), seed=0)) == []


def test_task_keys_are_unique_and_describe_the_task() -> None:
    found = list(tasks(full_layout(), Selection(limit=1000, epochs=2), seed=0))
    assert len({task.key for task in found}) == len(found) == 4000
    assert Task("a_scenario", "time", "benign", 2).key == "a_scenario.time.benign.2"


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        (Selection(domains=("cyber",)), "unknown domain 'cyber'; did you mean 'cyber-security'"),
        (Selection(workspaces=("Datacentre",)), "unknown workspace 'Datacentre'; did you mean 'Datacenter'"),
        (Selection(roles=("Autor",)), "unknown role 'Autor'; did you mean 'Author'"),
        (Selection(capabilities=("Impacts",)), "unknown capability 'Impacts'; did you mean 'Impact'"),
        (Selection(dimensions=("time", "tyme")), "unknown dimension 'tyme'; did you mean 'time'"),
    ],
)
def test_a_filter_that_can_match_nothing_is_named_with_near_names(selection: Selection, words: str) -> None:
    with pytest.raises(UnknownName) as caught:
        selection.check(taxonomy())
    assert words in str(caught.value)


def test_a_selection_of_known_names_passes_the_check() -> None:
    lists = taxonomy()
    Selection(
        domains=tuple(lists.domains),
        workspaces=tuple(lists.workspaces),
        roles=("Author",),
        capabilities=tuple(lists.capabilities),
        dimensions=DIMENSIONS,
    ).check(taxonomy())


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        (Selection(limit=0), "limit: must be 1 or more, found 0"),
        (Selection(limit=-1), "limit: must be 1 or more, found -1"),
        (Selection(epochs=0), "epochs: must be 1 or more, found 0"),
        (
            Selection(workspaces=("Datacenter",), roles=("Referee",)),
            "role 'Referee' is in Authorship-and-Citation-Network, which the other filters exclude",
        ),
        (
            Selection(domains=("cyber-security",), roles=("Referee",)),
            "role 'Referee' is in Authorship-and-Citation-Network",
        ),
        (
            Selection(domains=("bio-security",), workspaces=("Datacenter",)),
            "workspace 'Datacenter' is in cyber-security, which the other filters exclude",
        ),
        (
            Selection(domains=("bio-security",), capabilities=("Execution",)),
            "capability 'Execution' is in cyber-security",
        ),
        (
            Selection(workspaces=("Philanthropic-Organization",), capabilities=("Execution",)),
            "capability 'Execution' is in cyber-security",
        ),
    ],
)
def test_a_selection_that_leaves_nothing_to_play_is_refused(selection: Selection, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        selection.check(taxonomy())
    assert words in str(caught.value)


def test_filters_that_have_something_in_common_pass_the_check() -> None:
    Selection(
        domains=("cyber-security", "self-proliferation"),
        workspaces=("Datacenter", "Philanthropic-Organization"),
        roles=("Project-Manager",),
        capabilities=("Execution",),
        limit=1,
    ).check(taxonomy())


def test_what_is_selected_twice_is_played_once() -> None:
    scenarios = small_layout([2, 1])
    once = Selection(dimensions=("time", "financials"), namings=("benign",))
    twice = Selection(dimensions=("time", "financials", "time"), namings=("benign", "benign"))
    assert list(tasks(scenarios, twice, seed=0)) == list(tasks(scenarios, once, seed=0))


def test_neither_order_nor_repetition_of_filters_makes_another_selection() -> None:
    given = Selection(
        domains=("cyber-security", "bio-security", "cyber-security"),
        dimensions=("time", "time"),
        namings=("benign", "harmful"),
    )
    assert given == Selection(domains=("bio-security", "cyber-security"), dimensions=("time",))
    assert msgspec.json.decode(msgspec.json.encode(given), type=Selection) == given
