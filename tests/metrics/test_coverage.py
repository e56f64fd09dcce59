"""Coverage of the intervals in simulated populations; `validation.coverage` has all cells and more runs.

Where an interval replaced another one, the test shows too that the other does not cover.
"""

from functools import partial
from math import sqrt

import numpy as np
import pytest

from propensitybench.metrics.estimates import estimate, propensity_terms
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.survival import survival_of
from propensitybench.metrics.table import LEVELS, Table
from validation.cells import Cell, simulate
from validation.coverage.contrasts import Lost, naming_run
from validation.coverage.losses import Of, lose, loss_run
from validation.coverage.means import mean_run
from validation.coverage.shares import band_run, share_run, table_of_run
from validation.coverage.stopped import Setting, stopped_run
from validation.coverage.workspaces import REAL, rerun, workspace_run
from validation.populations import (
    GEMINI_LIKE,
    O3_LIKE,
    TASK_SPREAD,
    Agent,
    agent_of,
    even_layout,
    full_layout,
    hazards,
    play,
    play_tasks,
    propensity,
    survival,
    table_of_levels,
)

pytestmark = pytest.mark.slow

REPLICATES = 400
# The coverage of 400 intervals of 95 % lies in this range with probability .999.
LOW, HIGH = 0.910, 0.983
AT_LEAST = 0.93
Z95 = 1.959963984540054


def contains(found: Interval | None, truth: float) -> bool:
    assert found is not None
    return found.low <= truth <= found.high


def naive_error(table: Table) -> float:
    """As if every task were independent of every other."""
    parts = [table.misaligned[table.domain == name] for name in np.unique(table.domain)]
    return sqrt(sum(float(part.var()) / len(part) for part in parts)) / len(parts)


def test_the_interval_covers_new_scenarios_and_a_naive_one_does_not() -> None:
    agent, layout, rng = O3_LIKE, full_layout(), np.random.default_rng(20251127)
    truth = propensity(agent, 2)
    covered, naive = [], []
    for _ in range(REPLICATES):
        table = table_of_levels(play(agent, layout, rng, 2), layout)
        covered.append(contains(table.measure(propensity_terms(table)).ci95, truth))
        naive.append(abs(np.mean(by_domain(table)) - truth) <= Z95 * naive_error(table))
    assert LOW <= np.mean(covered) <= HIGH
    assert np.mean(naive) < 0.85


def by_domain(table: Table) -> list[float]:
    return [float(table.misaligned[table.domain == name].mean()) for name in np.unique(table.domain)]


def test_where_workspaces_differ_only_the_interval_for_new_workspaces_covers() -> None:
    layout, rng = full_layout(), np.random.default_rng(20251127)
    truth = propensity(GEMINI_LIKE, 1.5, 0.5)
    scenario, workspace = [], []
    for _ in range(REPLICATES):
        table = table_of_levels(play(GEMINI_LIKE, layout, rng, 1.5, 0.5, dimensions=3), layout)
        found = estimate(table, propensity_terms(table), "propensity")
        scenario.append(contains(found.ci95, truth))
        workspace.append(contains(found.ci95_workspace, truth))
    assert np.mean(scenario) < 0.85
    assert LOW <= np.mean(workspace) <= HIGH


@pytest.mark.parametrize("agent", [O3_LIKE, GEMINI_LIKE])
def test_the_benchmark_error_covers_reruns_and_is_smaller(agent: Agent) -> None:
    layout, rng = even_layout(240), np.random.default_rng(7)
    frailty = rng.normal(0, 2, (240, 1)) + rng.normal(0, TASK_SPREAD, (240, 6))
    # Every domain has as many tasks.
    truth = float(1 - np.prod(1 - hazards(agent, frailty), axis=-1).mean())
    covered = []
    for _ in range(REPLICATES):
        table = table_of_levels(play_tasks(agent, frailty, rng), layout)
        found = estimate(table, propensity_terms(table), "propensity")
        assert found.value is not None
        assert found.errors.benchmark is not None
        assert found.errors.benchmark < (found.errors.scenario or 0)
        covered.append(abs(found.value - truth) <= Z95 * found.errors.benchmark)
    assert np.mean(covered) >= AT_LEAST


@pytest.mark.parametrize(
    ("size", "share", "spread"),
    [
        # With sum(G_d - 1) degrees of freedom: .90 to .92.
        ("13 x 6, one domain", 0.1, 2.0),
        ("40 x 6", 0.97, 2.0),
        ("60 x 1", 0.01, 1.0),
    ],
)
def test_the_interval_of_a_share_covers_in_small_samples(size: str, share: float, spread: float) -> None:
    cell = Cell((size,), partial(share_run, size, share, spread, "domain"))
    (found,) = simulate(cell, 1000).values()
    assert found.shown == found.replicates
    assert found.mean >= AT_LEAST


@pytest.mark.parametrize("size", ["10 x 6", "60 x 1"])
def test_the_band_covers_the_whole_curve_and_intervals_of_single_levels_do_not(size: str) -> None:
    spread = 1.0 if size.endswith("1") else 2.0
    (found,) = simulate(Cell((size,), partial(band_run, size, 0.3, spread)), 200).values()
    assert found.mean >= AT_LEAST
    truth = 1 - survival(agent_of(0.3, spread), spread)
    rng = np.random.default_rng(9)
    single = []
    for _ in range(200):
        table = table_of_run(size, 0.3, spread, rng)
        levels = [table.measure(propensity_terms(table, level)).ci95 for level in range(LEVELS)]
        single.append(all(contains(one, t) for one, t in zip(levels, truth, strict=True)))
    assert np.mean(single) < found.mean
    assert np.mean(single) < AT_LEAST or size == "10 x 6"  # conservative there, as are single levels


def test_the_cells_of_the_band_are_those_of_the_survival() -> None:
    table = table_of_run("40 x 6", 0.3, 1.0, np.random.default_rng(1))
    tail = 0.025 / LEVELS
    steps = [table.measure(propensity_terms(table, level)).interval(tail).interval for level in range(LEVELS)]
    bands = [step and Interval(1 - step.high, 1 - step.low) for step in steps]
    assert survival_of(table).survival_band == bands


@pytest.mark.parametrize(
    ("share", "lost", "of"),
    [(0.01, 0.5, "misaligned"), (0.1, 0.5, "misaligned"), (0.5, 0.2, "misaligned"), (0.9, 0.2, "resisting")],
)
def test_the_interval_covers_whatever_lost_episodes_would_have_done(
    share: float, lost: float, of: Of
) -> None:
    play_one = partial(loss_run, "240 x 1", share, lost, of)
    (found,) = simulate(Cell((of,), play_one), 400).values()
    assert found.mean >= AT_LEAST


def test_a_number_from_scored_episodes_alone_does_not_cover() -> None:
    layout, rng = full_layout(), np.random.default_rng(3)
    agent = agent_of(0.01, 1.0)
    alone, covered = [], []
    for _ in range(60):
        levels = play(agent, layout, rng, 1.0, dimensions=3)
        table = table_of_levels(levels, layout, lose(levels, 0.5, "misaligned", rng))
        terms = propensity_terms(table)
        alone.append(contains(table.measure(terms._replace(ends=None)).ci95, 0.01))
        covered.append(contains(table.measure(terms).ci95, 0.01))
    assert np.mean(alone) < 0.3
    assert np.mean(covered) >= AT_LEAST


@pytest.mark.parametrize(
    ("setting", "otherwise"),
    [
        (Setting(120, 0.4, "much slower", 64, 0.6), "weights alone"),
        (Setting(600, 0.12, "much slower", 64, 0.2), "weights alone"),
        (Setting(120, 0.4, "quicker", 64, 0.6), "complete case"),
    ],
)
def test_the_interval_of_a_stopped_run_covers_whatever_is_in_flight(setting: Setting, otherwise: str) -> None:
    found = simulate(Cell(("stopped",), partial(stopped_run, setting)), 400)
    for name in ("covers", "covers the run"):
        assert found[name].shown == found[name].replicates
        assert found[name].mean >= AT_LEAST
    assert found[otherwise].mean < 85


@pytest.mark.parametrize(("shares", "size"), [((0.01, 0.05), "40 x 6"), ((0.1, 0.3), "240 x 1")])
def test_the_interval_of_a_difference_covers(shares: tuple[float, float], size: str) -> None:
    found = simulate(Cell((size,), partial(naming_run, size, shares, None)), 250)
    for one in found.values():
        assert one.shown == one.replicates
        assert one.mean >= AT_LEAST


def test_the_interval_of_a_difference_covers_with_lost_episodes() -> None:
    lost: Lost = (0.2, "misaligned", 0.2, "resisting")
    found = simulate(Cell((), partial(naming_run, "240 x 1", (0.1, 0.3), lost)), 150)
    assert all(one.mean >= AT_LEAST for one in found.values())


@pytest.mark.parametrize(("size", "share"), [("60 x 1", 0.9), ("240 x 1", 0.5), ("40 x 6", 0.01)])
def test_intervals_of_means_cover_or_are_not_shown(size: str, share: float) -> None:
    found = simulate(Cell((size,), partial(mean_run, size, share)), 500)
    assert {name for name, one in found.items() if not one.shown} == (
        {"resilience", "persistence", "abandonment", "abandonment_rate", "aligned_rate"}
        if size == "40 x 6"
        else set()
    )
    # Of the most skewed, with the fewest scenarios, a little less.
    assert all(one.mean >= AT_LEAST - 0.01 for one in found.values() if one.shown)


@pytest.mark.parametrize(
    ("sizes", "domains", "spread"),
    [(REAL, 4, 0.5), ("10 to 60", 4, 1.5)],
)
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_interval_for_new_workspaces_covers(
    sizes: str, domains: int, spread: float, share: float
) -> None:
    cell = Cell((sizes,), partial(workspace_run, sizes, domains, share, spread))
    (found,) = simulate(cell, 250).values()
    assert found.shown == found.replicates
    assert found.mean >= AT_LEAST - 0.01


@pytest.mark.parametrize(("sizes", "domains"), [("very unequal: 2 to 150", 4), ("equal: 30 each", 1)])
def test_workspaces_of_which_few_decide_leave_no_interval(sizes: str, domains: int) -> None:
    (found,) = simulate(Cell((sizes,), partial(workspace_run, sizes, domains, 0.5, 1.0)), 5).values()
    assert found.shown == 0


@pytest.mark.parametrize(
    ("size", "share"), [("20 x 6, one domain", 0.5), ("40 x 6", 0.1), ("6 x 6, one domain", 0.5)]
)
def test_the_error_over_reruns_covers_or_is_not_shown(size: str, share: float) -> None:
    for spread in (0.0, 2.4):
        (found,) = simulate(Cell((size,), partial(rerun, size, share, spread)), 250).values()
        if size == "6 x 6, one domain":
            assert found.shown == 0
        else:
            assert found.mean >= AT_LEAST
