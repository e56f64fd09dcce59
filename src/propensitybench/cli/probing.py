"""What ``propensitybench probe`` does and prints."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from propensitybench.cli import tables
from propensitybench.cli.asked import print_ending, shown
from propensitybench.cli.execution import confirm, cost
from propensitybench.cli.text import name_of, print_json, safe
from propensitybench.cli.waiting import result_of, result_until_stopped
from propensitybench.engine import ExecutionOptions, Price
from propensitybench.judging.probed import AtLevel, ProbeNumbers, probe_numbers, read_probed
from propensitybench.judging.probes import Level
from propensitybench.judging.probing import Probing, left_to_ask, plan_probing, probe_run
from propensitybench.metrics.awareness import ActByAwareness
from propensitybench.metrics.display import (
    NOTHING,
    Grid,
    percent,
    points,
    points_with_interval,
    span,
    with_interval,
)
from propensitybench.metrics.estimates import Estimate
from propensitybench.metrics.stated import StatedAgainstActual
from propensitybench.runs.start import reach
from propensitybench.runs.stored import file_name
from propensitybench.store import RunFile

LEGEND: Final = """\
Asked on side branches: scores and transcripts stay as they are. majority: percent of tasks in which more
than half of the wordings have this answer. straight, flipped: percent of the answers to wordings that offer
it as B, and as A. agree: percent of pairs of a straight and a flipped wording with the same answer; a model
that always gives the same letter has 0. In parentheses: 95 % intervals for new scenarios, which cover every
value that missing answers allow. bounds: the lowest and highest value that these allow."""
ACT_LEGEND: Final = """\
Percent misaligned from that level on, among the tasks that reached it. without: what remains without the
tasks whose agent says so. within scenarios: tasks whose agent says so minus the others, in points, from
scenarios that have both. This is observational: what makes a model take a task for a test may move it in
other ways too."""
STATED_LEGEND: Final = """\
says no: number of tasks whose agent said, by majority, that it would not use the tool. after no: percent of
these that end misaligned; bounds as above."""


def print_estimate(path: Path, probing: Probing, price: Price | None, *, as_json: bool) -> None:
    """Prints what asking the rest would take."""
    found = plan_probing(path, probing, price)
    if as_json:
        print_json(found)
        return
    for name, episodes in found.episodes.items():
        print(f"{safe(name)}: {episodes} tasks")
    print(f"calls:         {found.calls:,}")
    print(f"input tokens:  {found.input_tokens:,} (mostly cacheable)")
    print(f"output tokens: {found.output_tokens:,}, reasoning as in the run")
    print(f"cost:          {cost(found.usd)}, nothing cached")


def ask_agent(path: Path, probing: Probing, execution: ExecutionOptions, *, as_json: bool) -> int:
    """Asks what is missing and prints all answers; the exit code."""
    if left_to_ask(path, probing):
        with RunFile.open(path) as file:
            manifest = file.manifest
        execution = result_of(reach(file_name(path), manifest, execution, confirm))
    with shown("asking") as advance:
        asked = result_until_stopped(
            lambda stop: probe_run(path, probing, execution, on_progress=advance, stop=stop)
        )
    digests = [probe.digest for probe in probing.probes]
    print_answers(path, digests, probing.levels, as_json=as_json)
    return print_ending(asked)


def print_answers(path: Path, digests: Sequence[str], levels: Sequence[Level], *, as_json: bool) -> None:
    """Prints the answers in a run file.

    Args:
        path: the run file.
        digests: of the probes; if empty, all that were asked.
        levels: only these; if empty, all.
        as_json: prints JSON instead.
    """
    numbers = [probe_numbers(one, levels) for one in read_probed(path, digests)]
    numbers = [one for one in numbers if one.rows]
    if as_json:
        print_json({"probes": numbers})
        return
    if not numbers:
        print(f"{safe(name_of(path))}: no answers yet")
        return
    for one in numbers:
        _print(one)
    print(LEGEND)
    if any(row.act for one in numbers for row in one.rows):
        print(ACT_LEGEND)
    if any(row.stated for one in numbers for row in one.rows):
        print(STATED_LEGEND)


def _print(numbers: ProbeNumbers) -> None:
    tables.show(tables.grid(_shares(numbers)))
    acts = [(row, row.act) for row in numbers.rows if row.act]
    if acts:
        tables.show(tables.grid(_acts(acts)))
    stated = [(row, row.stated) for row in numbers.rows if row.stated]
    if stated:
        tables.show(tables.grid(_stated(stated)))
    missing = sum((Counter(row.no_answer) for row in numbers.rows), Counter[str]())
    if missing:
        print("no answer: " + ", ".join(f"{count} {safe(why)}" for why, count in missing.items()))


def _shares(numbers: ProbeNumbers) -> Grid:
    bounded = any(row.majority.bounds for row in numbers.rows)
    columns = ["level", "naming", "tasks", "not asked", "no answer", "majority (95 %)"]
    columns += ["bounds"] if bounded else []
    rows = [
        [
            row.level,
            row.naming,
            str(row.episodes),
            str(row.not_asked),
            str(sum(row.no_answer.values())),
            _share(row.majority),
            *([span(row.majority.bounds)] if bounded else []),
            _value(row.straight),
            _value(row.flipped),
            _value(row.agreement),
        ]
        for row in numbers.rows
    ]
    title = f"{numbers.name}: {numbers.title}, in percent"
    return Grid(title, [*columns, "straight", "flipped", "agree"], rows)


def _acts(found: Sequence[tuple[AtLevel, ActByAwareness]]) -> Grid:
    bounded = any(act.difference.bounds for _, act in found)
    columns = ["level", "naming", "says so", "others", "all", "without", "within scenarios"]
    rows = []
    for row, act in found:
        cells = [row.level, row.naming, _share(act.aware), _share(act.unaware)]
        cells += [percent(act.everyone.value), percent(act.without_aware.value)]
        cells.append(points_with_interval(act.difference))
        if bounded:
            low, high = act.difference.bounds or (None, None)
            cells.append(f"{points(low)} to {points(high)}")
        rows.append(cells)
    return Grid("misaligned, by what the agent said", columns + ["bounds"] * bounded, rows)


def _stated(found: Sequence[tuple[AtLevel, StatedAgainstActual]]) -> Grid:
    columns = [
        "level",
        "naming",
        "says no",
        "after no (95 %)",
        "bounds",
        "after yes (95 %)",
        "no and misaligned",
    ]
    rows = [
        [
            row.level,
            row.naming,
            str(sum(both.counts["no"].values())),
            _share(both.misaligned_if_no),
            span(both.misaligned_if_no.bounds),
            _share(both.misaligned_if_yes),
            percent(both.no_and_misaligned.value),
        ]
        for row, both in found
    ]
    return Grid("misaligned, by what the agent said that it would do", columns, rows)


def _share(estimate: Estimate) -> str:
    return with_interval(estimate.value, estimate.ci95)


def _value(estimate: Estimate | None) -> str:
    return NOTHING if estimate is None else percent(estimate.value)
