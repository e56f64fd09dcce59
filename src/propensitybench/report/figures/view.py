"""Runs as figures see them: a label, a colour and the numbers of each; no number is made here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from propensitybench.metrics import Interval, NamingScores
from propensitybench.metrics.analysis import Analysis, RunAnalysis
from propensitybench.metrics.estimates import Estimate
from propensitybench.metrics.table import LEVELS
from propensitybench.report.figures.layout import Key
from propensitybench.report.style import COLOURS, ELLIPSIS, clean, shorten, widest
from propensitybench.taxonomy import NAMINGS, Naming

# Inches that a model's name may take beside a panel.
NAME_WIDTH: Final = 1.25
# Percent: where an axis of shares may end.
TOPS: Final = (10.0, 20.0, 40.0, 60.0, 80.0, 100.0)
MESSAGES: Final = LEVELS - 1
INTERVALS: Final = "95% intervals for new scenarios, clustered by scenario"
CALLED: Final = "prohibited tool called"


@dataclass(frozen=True)
class Model:
    """One run: what figures call it, its colour, which is the same in all of them, and its whole name."""

    label: str
    colour: str
    run: RunAnalysis
    name: str

    def scores(self, naming: Naming) -> NamingScores | None:
        """Its scores under a naming, if it was played."""
        return self.run.scores.naming.get(naming)


@dataclass(frozen=True)
class View:
    """All runs of a figure.

    Attributes:
        ladder: "PP@6" where every run had only 6 pressure messages; empty for the whole ladder, and
            where ladders differ, since the labels of the models say it then.
        top: end of the axes of shares in percent, the same in every panel.
    """

    analysis: Analysis
    models: tuple[Model, ...]
    ladder: str
    top: float

    @property
    def last(self) -> int:
        """The last level of the longest ladder."""
        return max(model.run.scores.levels for model in self.models)

    @property
    def labels(self) -> list[str]:
        """What the models are called."""
        return [model.label for model in self.models]

    @property
    def key(self) -> tuple[Key, ...]:
        """Which colour is which model."""
        return tuple(Key(model.label, model.colour) for model in self.models)

    @property
    def namings(self) -> list[Naming]:
        """Those under which any of the runs has a score."""
        return [naming for naming in NAMINGS if self.scored(naming)]

    def of_ladder(self, label: str) -> str:
        """A label, with what must be said of a shorter ladder."""
        return f"{label}, {self.ladder} ({self.last} messages)" if self.ladder else label

    @property
    def remarks(self) -> list[str]:
        """In words, what every caption must add: shorter ladders, and names that were cut."""
        short = sorted({m.run.scores.levels for m in self.models if m.run.scores.levels < MESSAGES})
        cut = [model for model in self.models if ELLIPSIS in model.label]
        found = [f"PP@{levels}: pressure ended after {levels} of {MESSAGES} messages" for levels in short]
        return [*found, *(f"{model.label} is {model.name}" for model in cut)]

    @property
    def margin(self) -> float:
        """Inches that the models' names take."""
        return widest(self.labels) + 0.12

    @property
    def called(self) -> str:
        """Label of an axis of shares of tasks."""
        return self.of_ladder("Prohibited tool called" if self.ladder else f"Tasks with the {CALLED}")

    def scored(self, naming: Naming) -> list[tuple[Model, NamingScores]]:
        """The models with a task that has a score under a naming, and their scores."""
        return [(model, found) for model in self.models if (found := model.scores(naming)) and found.n]

    def tasks(self, naming: Naming) -> str:
        """In words, of how many tasks the scores under a naming are."""
        return tasks_said([(model.label, scores.n) for model, scores in self.scored(naming)])

    @property
    def all_tasks(self) -> str:
        """In words, of how many tasks the scores under each naming are."""
        return "; ".join(f"{naming} names: {self.tasks(naming)}" for naming in self.namings) or "no task"


def view_of(analysis: Analysis) -> View:
    """The runs of an analysis, ready to be drawn."""
    ladders = [run.scores.levels for run in analysis.runs]
    mixed = len(set(ladders)) > 1
    names = [clean(run.name) for run in analysis.runs]
    if mixed:
        names = [_with_ladder(name, levels) for name, levels in zip(names, ladders, strict=True)]
    colours = (COLOURS[place % len(COLOURS)] for place in range(len(names)))
    rows = zip(_distinct(names), colours, analysis.runs, names, strict=True)
    models = tuple(Model(*row) for row in rows)
    whole = mixed or ladders[0] == MESSAGES
    ladder = "" if whole else f"PP@{ladders[0]}"
    return View(analysis, models, ladder, _top(analysis))


def tasks_said(counts: Sequence[tuple[str, int]]) -> str:
    """In words, how many tasks each of some models has."""
    if len({count for _, count in counts}) == 1:
        return f"{counts[0][1]} tasks" + (" each" if len(counts) > 1 else "")
    return "tasks: " + ", ".join(f"{name} {count}" for name, count in counts)


def percent(share: float | None) -> str:
    """A share in percent, without the sign."""
    return "\u2013" if share is None else f"{100 * share:.1f}"


def points(difference: float) -> str:
    """A difference of shares in percentage points."""
    return f"{round(100 * difference, 1) + 0.0:+.1f}".replace("-", "\u2212")


def words(name: str) -> str:
    """A name of a closed list as a label: with a capital letter."""
    return name[:1].upper() + name[1:]


def titled(text: str, naming: Naming) -> str:
    """A title with the naming behind it."""
    return f"{text}, {naming} names"


def _with_ladder(name: str, levels: int) -> str:
    return name if levels == MESSAGES else f"{name}, PP@{levels}"


def _distinct(names: Sequence[str]) -> list[str]:
    """The names cut to the width of a margin; numbered where two would look alike."""
    short = [shorten(name, NAME_WIDTH) for name in names]
    if len(set(short)) < len(short):
        short = [f"{place} {shorten(name, NAME_WIDTH - 0.1)}" for place, name in enumerate(names, start=1)]
    return short


def _top(analysis: Analysis) -> float:
    """The least end of an axis of shares that holds everything."""
    found = [
        part for run in analysis.runs for scores in run.scores.naming.values() for part in _parts(scores)
    ]
    highest = 100 * max((_high(estimate) for estimate in found), default=0.0)
    return next((top for top in TOPS if highest <= top), TOPS[-1])


def _parts(scores: NamingScores) -> Iterable[Estimate]:
    yield from (step.domain for step in scores.levels)
    yield from (part.domain for part in scores.parts["domain"].values())


def _high(estimate: Estimate) -> float:
    return max(estimate.value or 0.0, estimate.ci95.high if estimate.ci95 else 0.0)


def in_percent(share: float | None) -> float | None:
    """A share in percent."""
    return None if share is None else 100 * share


def scaled(interval: Interval | None) -> Interval | None:
    """An interval of shares in percent."""
    return None if interval is None else Interval(100 * interval.low, 100 * interval.high)
