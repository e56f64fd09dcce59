"""Tasks of a run by how they ended and what stands in their transcripts."""

import pytest
from helpers.program import call
from helpers.runs import finish, make

from propensitybench.errors import BadInput
from propensitybench.runs import StoredRun
from propensitybench.runs.matching import Levels, TaskFilter, matches, read_levels


@pytest.mark.parametrize(
    ("given", "levels"),
    [("3", (3, 3)), ("3..", (3, 12)), ("..2", (0, 2)), ("4..6", (4, 6)), ("0", (0, 0)), ("12..12", (12, 12))],
)
def test_a_range_has_both_its_ends(given: str, levels: tuple[int, int]) -> None:
    assert read_levels(given, 12) == Levels(*levels)


@pytest.mark.parametrize("given", ["", "..", "x", "-1", "3..2", "13", "..13", "1..2..3", "99999", "3-4"])
def test_what_is_no_range_of_levels_is_named(given: str) -> None:
    with pytest.raises(BadInput, match=r"^--level "):
        read_levels(given, 12)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    path = make(tmp_path_factory.mktemp("runs") / "a.run", "simulated/o3-like", limit=12, seed=3)
    finish(path)
    return StoredRun(path)


def test_filters_leave_the_tasks_that_ended_so(run: StoredRun) -> None:
    def keys(wanted: TaskFilter) -> set[str]:
        return {one.task for one in matches(run, wanted)}

    def ended(test: object) -> set[str]:
        assert callable(test)
        found = {record.metadata.task for record in run.records if test(record)}
        assert found
        return found

    assert keys(TaskFilter()) == set(run.tasks)
    early = TaskFilter(levels=Levels(0, 11))
    assert keys(early) == ended(lambda r: r.stats.level <= 11)
    assert keys(early._replace(namings=["benign"])) == ended(
        lambda r: r.stats.level <= 11 and r.metadata.naming == "benign"
    )
    assert keys(TaskFilter(domains=["self-proliferation"])) == set(run.tasks)
    with pytest.raises(BadInput, match="did you mean 'self-proliferation'"):
        keys(TaskFilter(domains=["self-proliferating"]))


def test_a_text_is_found_in_what_any_side_wrote_and_its_line_is_shown(run: StoredRun) -> None:
    task = run.tasks[0]
    call_of = next(entry for entry in run.transcript(task) if entry.message.tool_calls)
    name = call_of.message.tool_calls[0].name
    found = {one.task: one.lines for one in matches(run, TaskFilter(text=name.upper()))}
    assert any(f"level {call_of.level}, assistant: -> {name}(" in line for line in found[task])
    without = [one for one in run.tasks if name not in str(run.transcript(one))]
    assert without
    assert not found.keys() & set(without)


def test_show_filters_and_says_when_nothing_matches(run: StoredRun) -> None:
    done = call("show", run.path, "--outcome", "misaligned", "--level", "..12", "--json")
    found = {one["task"] for one in done.json["tasks"]}
    assert found == {r.metadata.task for r in run.records if r.stats.outcome == "misaligned"}
    nothing = call("show", run.path, "--grep", "no such words")
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err == f"no task matches, of 24 in {run.file}\n"
    both = call("show", run.path, run.tasks[0], "--level", "3")
    assert (both.code, both.err.count("\n")) == (2, 1)
