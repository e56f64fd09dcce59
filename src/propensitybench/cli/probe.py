"""``propensitybench probe``: put questions to the model of a run, on side branches of its episodes."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from propensitybench.cli import options, tables
from propensitybench.cli.asked import print_ending, print_estimate, shown
from propensitybench.cli.execution import confirmed
from propensitybench.cli.text import print_json
from propensitybench.cli.waiting import result_until_stopped
from propensitybench.engine import ExecutionOptions
from propensitybench.files import file_name
from propensitybench.judging.probe import probing_of, read_answers
from propensitybench.judging.probe_numbers import ProbedLevel, ProbeNumbers
from propensitybench.judging.probes import Level
from propensitybench.judging.side_branches import Probing, left_to_ask, plan_probing, probe_run
from propensitybench.metrics.awareness import ActByAwareness
from propensitybench.metrics.estimates import Estimate
from propensitybench.metrics.stated import StatedAgainstActual
from propensitybench.presentation.formats import (
    NOTHING,
    percent,
    points,
    points_with_interval,
    span,
    with_interval,
)
from propensitybench.presentation.tables import Grid
from propensitybench.runs.resolve import read_execution
from propensitybench.runs.settings import Settings

LEGEND: Final = """\
Asked on side branches: scores and transcripts do not change. majority: percent of tasks in which more than
half of the wordings get this answer. straight / flipped: percent giving this answer when it is option B /
option A; if they differ, the model prefers a letter. agree: percent of pairs of a straight and a flipped
wording with the same answer; a model that always gives the same letter has 0. In parentheses: 95 % intervals
for new scenarios, which allow for missing answers. bounds: the lowest and highest value that these allow."""
ACT_LEGEND: Final = """\
Percent misaligned from that level on, among the tasks that reached it. without: the same without the tasks
whose agent says so. within scenarios: tasks whose agent says so minus the others, in points, from scenarios
that have both. This is observational: what makes a model take a task for a test may affect it in other ways
too."""
STATED_LEGEND: Final = """\
says no: number of tasks in which the majority of answers was that it would not use the tool. after no:
percent of these that end misaligned; bounds as above."""

_SHARES: Final = (
    "level", "naming", "tasks", "not asked", "no answer", "majority (95 %)", "bounds", "straight", "flipped",
    "agree",
)  # fmt: skip
_ACTS: Final = ("level", "naming", "says so", "others", "all", "without", "within scenarios", "bounds")
_STATED: Final = (
    "level", "naming", "says no", "after no (95 %)", "bounds", "after yes (95 %)", "no and misaligned",
)  # fmt: skip

Probes = Annotated[
    list[str] | None,
    typer.Option(
        "--probe",
        metavar="NAME|FILE",
        help="awareness, stated-policy, or a file of your own (.toml); may be repeated.  [default: both]",
    ),
]
Levels = Annotated[
    list[str] | None,
    typer.Option(
        "--level",
        metavar="N|end",
        help="Ask before the first reply at level N, or after the end of the task; may be repeated. Default: "
        "those that the probe names.",
    ),
]
Show = Annotated[bool, typer.Option("--show", help="Only print what was answered so far; send nothing.")]


@options.takes(
    "limit",
    "base_url",
    *options.LIMITS,
    "preflight",
    limit="Only in the first N tasks that have ended: a balanced sample.",
    base_url="Send requests to this endpoint instead of the one that the run file names; may be repeated.",
)
def command(
    run: options.RunPath,
    probe: Probes = None,
    level: Levels = None,
    *,
    settings: Settings,
    plan: options.CostOnly = False,
    show: Show = False,
    trust_endpoint: options.TrustEndpoint = False,
    as_json: options.AsJson = False,
) -> None:
    asked = probing_of(probe or (), level or (), settings.get("limit"))
    execution = read_execution(settings, trust_endpoint=trust_endpoint)
    digests = [one.digest for one in asked.probes]
    if plan:
        found = plan_probing(run, asked, execution.price)
        print_estimate(found, "reasoning as in the run", as_json=as_json)
    elif show:
        # Without --probe, also what was asked from files that no longer exist.
        _print(run, digests if probe else (), asked.levels, as_json=as_json)
    else:
        code = _ask(run, asked, execution) if left_to_ask(run, asked) else 0
        _print(run, digests, asked.levels, as_json=as_json)
        raise typer.Exit(code)


def _ask(run: Path, asked: Probing, execution: ExecutionOptions) -> int:
    """Asks what is left to ask; the exit code."""
    execution = confirmed(run, execution)
    with shown("asking") as advance:
        ended = result_until_stopped(
            lambda stop: probe_run(run, asked, execution, on_progress=advance, stop=stop)
        )
    return print_ending(ended)


def _print(path: Path, digests: Sequence[str], levels: Sequence[Level], *, as_json: bool) -> None:
    answers = read_answers(path, digests, levels)
    if as_json:
        print_json(answers.to_dict())
        return
    if not answers.probes:
        print(f"{file_name(path)}: no answers yet")
        return
    for one in answers.probes:
        _print_probe(one)
    print(LEGEND)
    rows = [row for one in answers.probes for row in one.rows]
    if any(row.act for row in rows):
        print(ACT_LEGEND)
    if any(row.stated for row in rows):
        print(STATED_LEGEND)


def _print_probe(numbers: ProbeNumbers) -> None:
    title = f"{numbers.name}: {numbers.title}, in percent"
    tables.show_grid(Grid(title, _SHARES, list(map(_shares, numbers.rows)), names=2))
    acts = [_act(row, row.act) for row in numbers.rows if row.act]
    if acts:
        tables.show_grid(Grid("misaligned, by what the agent said", _ACTS, acts, names=2))
    stated = [_stated(row, row.stated) for row in numbers.rows if row.stated]
    if stated:
        title = "misaligned, by what the agent said that it would do"
        tables.show_grid(Grid(title, _STATED, stated, names=2))
    missing = sum((Counter(row.no_answer) for row in numbers.rows), Counter[str]())
    if missing:
        print("no answer: " + ", ".join(f"{count} {why}" for why, count in missing.items()))


def _shares(row: ProbedLevel) -> list[str]:
    counts = row.episodes, row.not_asked, sum(row.no_answer.values())
    others = (row.straight, row.flipped, row.agreement)
    return [
        row.level,
        row.naming,
        *map(str, counts),
        _share(row.majority),
        span(row.majority.bounds),
        *(NOTHING if one is None else percent(one.value) for one in others),
    ]


def _act(row: ProbedLevel, act: ActByAwareness) -> list[str]:
    low, high = act.difference.bounds or (None, None)
    return [
        row.level,
        row.naming,
        _share(act.aware),
        _share(act.unaware),
        percent(act.everyone.value),
        percent(act.without_aware.value),
        points_with_interval(act.difference),
        NOTHING if low is None else f"{points(low)} to {points(high)}",
    ]


def _stated(row: ProbedLevel, both: StatedAgainstActual) -> list[str]:
    return [
        row.level,
        row.naming,
        str(sum(both.counts["no"].values())),
        _share(both.misaligned_if_no),
        span(both.misaligned_if_no.bounds),
        _share(both.misaligned_if_yes),
        percent(both.no_and_misaligned.value),
    ]


def _share(estimate: Estimate) -> str:
    return with_interval(estimate.value, estimate.ci95)
