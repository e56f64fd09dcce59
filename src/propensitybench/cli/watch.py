"""``propensitybench watch``: a live view of a run that another program plays."""

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from propensitybench.cli import options
from propensitybench.cli.output import styled
from propensitybench.cli.text import shell_quoted
from propensitybench.errors import BadInput
from propensitybench.presentation.console import SafeConsole
from propensitybench.presentation.words import spent
from propensitybench.runs.watching import Glimpse, LastReply, RecentRates, WatchedRun

TICK_S: Final = 1.0
BAR_WIDTH: Final = 60
MINUTE: Final = 60
HOUR: Final = 3600


def command(file: options.RunPath) -> None:
    if not file.exists():
        raise BadInput(f"{file}: does not exist yet; begin the run in another terminal, then watch it")
    run = WatchedRun(file)
    with suppress(KeyboardInterrupt):
        if sys.stdout.isatty():
            _show(run, file)
        else:
            _print_changes(run, file)


def _looks(run: WatchedRun) -> Iterator[tuple[Glimpse, RecentRates]]:
    """Looks at a run every second, until it is over."""
    pace = RecentRates()
    while True:
        seen = run.look()
        pace.add(time.monotonic(), seen)
        yield seen, pace
        if seen.is_over:
            return
        time.sleep(TICK_S)


def _show(run: WatchedRun, file: Path) -> None:
    console = SafeConsole(file=styled("stdout"), markup=False, highlight=False, emoji=False)
    with Live(console=console, auto_refresh=False) as live:
        for seen, pace in _looks(run):
            live.update(_picture(run, file, seen, pace), refresh=True)


def _print_changes(run: WatchedRun, file: Path) -> None:
    """Prints a line whenever tasks have ended, or a program has begun or ceased to play."""
    before = None
    for seen, pace in _looks(run):
        now = seen.outcomes, seen.is_played
        if now != before:
            print("; ".join(_state(file, seen, pace)), flush=True)
        before = now


def _picture(run: WatchedRun, file: Path, seen: Glimpse, pace: RecentRates) -> RenderableType:
    """A run as it is drawn in a terminal."""
    counts, *rest = _state(file, seen, pace)
    bar = Table.grid()
    bar.add_row(ProgressBar(total=max(1, seen.total), completed=seen.ended, width=BAR_WIDTH))
    rows: list[RenderableType] = [
        Text(f"{run.name}: {run.model}", style="bold"),
        bar,
        Text(counts),
        Text("; ".join(rest)),
    ]
    for one in seen.last:
        rows += [Text(), *_ending(one)]
    if not seen.is_over:
        rows += [Text(), Text("Ctrl-C ends this view, not the run.", style="dim")]
    return Group(*rows)


def _state(file: Path, seen: Glimpse, pace: RecentRates) -> list[str]:
    """The state of a run in parts of a sentence, the counts first."""
    found = ", ".join(f"{count:,} {outcome}" for outcome, count in seen.outcomes.most_common())
    parts = [f"{seen.ended:,} of {seen.total:,} tasks ended{f': {found}' if found else ''}"]
    if pace.calls:
        parts.append(f"{pace.calls:.1f} calls/s, {pace.tasks:.1f} tasks/s")
    parts.append(f"{seen.calls:,} calls")
    if costs := spent(seen.usage, seen.usd):
        parts.append(costs)
    again = f"propensitybench resume {shell_quoted(file)}"
    left = pace.seconds_left(seen)
    if seen.is_over:
        errored = seen.outcomes["errored"]
        parts.append(f"the run has ended; to retry what errored: {again}" if errored else "the run has ended")
    elif not seen.is_played:
        parts.append(f"no program is playing it; to go on: {again}")
    elif left is not None:
        parts.append(f"about {_duration(left)} left")
    return parts


def _ending(one: LastReply) -> list[Text]:
    """How a task ended, and the last line that the agent wrote."""
    stats, style = one.record.stats, "red" if one.record.stats.outcome.value == "misaligned" else ""
    title = f"{one.record.metadata.task}: {stats.outcome.value} at level {stats.level}"
    words = " ".join(one.last_words.split())
    return [
        Text(line, style=how, no_wrap=True, overflow="ellipsis")
        for line, how in ((title, style), (f"  {words}", "dim"))
    ]


def _duration(seconds: float) -> str:
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.1f} h"
