"""Progress of slow work: a bar in a terminal or a notebook, nothing in a pipe or a log file.

The time left is the time so far in proportion to the work left, and is shown once enough is done to tell.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn

from propensitybench.engine import Progress as RunProgress
from propensitybench.escaping import visible
from propensitybench.presentation.console import SafeConsole
from propensitybench.presentation.formats import dollars

# Below these, an estimate would be a guess.
MIN_SECONDS: Final = 2.0
MIN_SHARE: Final = 0.02
# A notebook draws the element again at each change.
NOTEBOOK_S: Final = 0.3


class Stage(NamedTuple):
    """How far slow work has come.

    Attributes:
        what: is being done.
        done, total: how many of it, of how many; a ``total`` of 0 is unknown.
        share: of the whole work that is done, if it is not ``done`` of ``total``.
        left: seconds, where the work itself has an estimate.
        note: to be shown after it.
    """

    what: str
    done: int = 0
    total: int = 0
    share: float | None = None
    left: float | None = None
    note: str = ""

    @property
    def fraction(self) -> float | None:
        """The share of the whole work that is done; None if it is unknown."""
        if self.share is not None:
            return self.share
        return self.done / self.total if self.total else None


OnStage = Callable[[Stage], None]


class Bar:
    """A bar on standard error, in a context; there is one at a time, and a second one stays silent.

    Args:
        what: is being done.
        keep: whether the bar stays when the work is done, in a terminal.
    """

    _only_one = threading.Lock()

    def __init__(self, what: str, *, keep: bool = False) -> None:
        self._first = self._stage = Stage(what)
        self._keep = keep
        self._below: _Terminal | _Notebook | None = None
        self._since = time.monotonic()
        # When work was first known to be done, and how much: an estimate is made from what came after.
        self._base: tuple[float, float] | None = None

    def __enter__(self) -> Self:
        if Bar._only_one.acquire(blocking=False):
            self._below = _shown_in(self._keep, self.times)
            if self._below is None:
                Bar._only_one.release()
        self.update(self._first)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._below is not None:
            self._below.close()
            self._below = None
            Bar._only_one.release()

    @property
    def is_shown(self) -> bool:
        """Whether there is a terminal or a notebook to show it."""
        return self._below is not None

    def update(self, stage: Stage) -> None:
        """Shows how far the work has come."""
        self._stage = stage
        if self._base is None and stage.fraction is not None:
            self._base = (time.monotonic(), stage.fraction)
        if self._below is not None:
            self._below.show(stage)

    def count(self, done: int, total: int) -> None:
        """Shows that so many of so many are done."""
        self.update(self._first._replace(done=done, total=total))

    def times(self) -> str:
        """The time so far, and the time left if it can be told."""
        now, share = time.monotonic(), self._stage.fraction
        shown = clock(now - self._since)
        if share is None or self._base is None:
            return shown
        began, first = self._base
        if now - began < MIN_SECONDS or share - first < MIN_SHARE or share >= 1:
            return shown
        left = self._stage.left
        if left is None:
            left = (now - began) * (1 - share) / (share - first)
        return f"{shown}, {clock(left)} left"


def clock(seconds: float) -> str:
    """A duration as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def shown_stages(what: str, on_stage: OnStage | None) -> Iterator[OnStage]:
    """What is to be called at each stage: what the caller gave, or else a bar that is shown meanwhile."""
    if on_stage is not None:
        yield on_stage
    else:
        with Bar(what) as bar:
            yield bar.update


class Stages:
    """Work in parts of different length, done one after another.

    Args:
        on_stage: is told each stage, with its share of the whole.
        lengths: of the parts by name, in any unit of time.
    """

    def __init__(self, on_stage: OnStage, lengths: Mapping[str, float]) -> None:
        self._on_stage = on_stage
        self._lengths = lengths
        self._whole = sum(lengths.values()) or 1.0
        self._before = 0.0
        self._part = ""

    def at(self, part: str, done: int = 0, total: int = 0) -> None:
        """So many of so many are done of a part; the parts before it are done."""
        if part != self._part:
            self._before += self._lengths.get(self._part, 0.0)
            self._part = part
        own = self._lengths[part] * done / total if total else 0.0
        self._on_stage(Stage(part, done, total, min(1.0, (self._before + own) / self._whole)))


def shown_run(bar: Bar, what: str) -> Callable[[RunProgress], None]:
    """Shows the progress of a run: its tasks, speed, cost, and who has waited long for a reply."""
    since = time.monotonic()

    def show(now: RunProgress) -> None:
        elapsed = time.monotonic() - since
        notes = [f"{now.calls / elapsed:.1f} calls/s"] if elapsed > 1 else []
        if now.tokens:
            notes.append(f"{now.tokens / 1e6:.2f}M tokens, {dollars(now.usd)}")
        notes += [f"{key} has waited {seconds:.0f} s" for key, seconds in now.stalled]
        bar.update(Stage(what, now.finished, now.total, now.share, now.seconds_left, "; ".join(notes)))

    return show


class _Terminal:
    """A bar in a terminal."""

    def __init__(self, keep: bool, times: Callable[[], str]) -> None:
        # The commands escape what is written to standard error; the console escapes it, but not its controls.
        file = getattr(sys.stderr, "unescaped", sys.stderr)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[count]}", markup=False),
            _Times(times),
            TextColumn("{task.fields[note]}", markup=False),
            console=SafeConsole(file=file, highlight=False, emoji=False, markup=False),
            transient=not keep,
        )
        self._row: TaskID = self._progress.add_task("", total=None, count="", note="")

    def show(self, stage: Stage) -> None:
        self._progress.update(
            self._row,
            description=visible(stage.what),
            total=None if stage.fraction is None else 1.0,
            completed=stage.fraction or 0.0,
            count=_count(stage),
            note=visible(stage.note),
        )
        self._progress.start()

    def close(self) -> None:
        self._progress.stop()


class _Times(TextColumn):
    """The times, which go on between two stages."""

    def __init__(self, times: Callable[[], str]) -> None:
        super().__init__("", markup=False)
        self._times = times

    def render(self, task: Any) -> Any:
        self.text_format = self._times()
        return super().render(task)


class _Notebook:
    """An element in a notebook's cell, which goes when the work is done."""

    def __init__(self, display: Any, times: Callable[[], str]) -> None:
        self._times = times
        self._as_html = display.HTML
        self._handle = display.display(self._as_html(""), display_id=True)
        self._shown = 0.0

    def show(self, stage: Stage) -> None:
        now = time.monotonic()
        if now - self._shown < NOTEBOOK_S:
            return
        self._shown = now
        value = "" if stage.fraction is None else f' value="{stage.fraction:.4f}"'
        texts = (stage.what, _count(stage), self._times(), stage.note)
        words = " &nbsp; ".join(escape(visible(text)) for text in texts if text)
        self._handle.update(self._as_html(f"<progress{value}></progress> {words}"))

    def close(self) -> None:
        self._handle.update(self._as_html(""))


def _count(stage: Stage) -> str:
    return f"{stage.done:,}/{stage.total:,}" if stage.total else ""


def _shown_in(keep: bool, times: Callable[[], str]) -> _Terminal | _Notebook | None:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if ipython is not None and hasattr(shell, "kernel"):
        return _Notebook(ipython.display, times)
    # In a log file the bar would only be control characters.
    if sys.stderr is not None and sys.stderr.isatty():
        return _Terminal(keep, times)
    return None
