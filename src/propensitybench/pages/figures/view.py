"""Runs as figures see them: a label, a colour and scores each. Nothing is computed here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from propensitybench.metrics import Interval, NamingScores
from propensitybench.metrics.analysis import Analysis, RunAnalysis
from propensitybench.metrics.estimates import Estimate
from propensitybench.pages.figures.layout import Key
from propensitybench.pages.page_numbers import MINUS
from propensitybench.pages.style import COLOURS, ELLIPSIS, clean, shorten, widest
from propensitybench.presentation import formats
from propensitybench.presentation.words import propensity_name, propensity_note
from propensitybench.taxonomy import NAMINGS, Naming

# Inches for a model's name beside a panel.
NAME_WIDTH: Final = 1.25
# Where an axis of shares may end, in percent.
AXIS_ENDS: Final = (10.0, 20.0, 40.0, 60.0, 80.0, 100.0)
INTERVALS: Final = "95% confidence intervals for new scenarios, clustered by scenario"
# What a propensity is, for captions.
SHARE: Final = "share of tasks with a call of the prohibited tool"


@dataclass(frozen=True)
class ModelView:
    """A run: its label and colour, the same in every figure, and its full name."""

    label: str
    colour: str
    run: RunAnalysis
    name: str

    def scores(self, naming: Naming) -> NamingScores | None:
        """Its scores under a naming; None if it has no tasks there."""
        return self.run.scores.naming.get(naming)


@dataclass(frozen=True)
class View:
    """The runs of a figure.

    Attributes:
        measure: ``propensity``, or ``PP@6`` if every run had only 6 pressure messages; where ladders
            differ, the labels of the models give them.
        axis_end: end of the axes of shares in percent, the same in every panel.
    """

    analysis: Analysis
    models: tuple[ModelView, ...]
    measure: str
    axis_end: float

    @property
    def last_level(self) -> int:
        """The last level of the longest ladder."""
        return max(model.run.scores.levels for model in self.models)

    @property
    def labels(self) -> list[str]:
        """Labels of the models."""
        return [model.label for model in self.models]

    @property
    def key(self) -> tuple[Key, ...]:
        """The legend of the models' colours."""
        return tuple(Key(model.label, model.colour) for model in self.models)

    @property
    def namings(self) -> list[Naming]:
        """Those under which any run has a score."""
        return [naming for naming in NAMINGS if self.scored(naming)]

    @property
    def remarks(self) -> list[str]:
        """Additions to every caption: shorter ladders, shortened names in full, and low competence."""
        played = {(model.run.scores.levels, model.run.scores.arm) for model in self.models}
        ladders = [note for levels, arm in sorted(played) if (note := propensity_note(levels, arm))]
        shortened = [model for model in self.models if ELLIPSIS in model.label]
        low = [(model.label, model.run.scores.low_competence) for model in self.models]
        return [
            *ladders,
            *(f"{model.label} is {model.name}" for model in shortened),
            *(f"{label}: {why}" for label, why in low if why),
        ]

    @property
    def margin(self) -> float:
        """Inches for the models' labels."""
        return widest(self.labels) + 0.12

    @property
    def definition(self) -> str:
        """What is measured, as the beginning of a caption."""
        return f"{capitalised(self.measure)} ({SHARE})"

    @property
    def axis_label(self) -> str:
        """Label of an axis of propensities."""
        return f"{capitalised(self.measure)} (share of tasks)"

    def scored(self, naming: Naming) -> list[tuple[ModelView, NamingScores]]:
        """The models that have a score under a naming, with their scores."""
        return [(model, scores) for model in self.models if (scores := model.scores(naming)) and scores.n]

    def tasks(self, naming: Naming) -> str:
        """Number of tasks behind the scores under a naming, in words."""
        return _task_counts([(model.label, scores.n) for model, scores in self.scored(naming)])

    @property
    def all_tasks(self) -> str:
        """Number of tasks behind the scores under each naming, in words."""
        return "; ".join(f"{naming} names: {self.tasks(naming)}" for naming in self.namings) or "no tasks"


def view_of(analysis: Analysis) -> View:
    """The runs of an analysis, ready to be drawn."""
    ladders = [(run.scores.levels, run.scores.arm) for run in analysis.runs]
    mixed = len(set(ladders)) > 1
    names = [clean(run.name) for run in analysis.runs]
    if mixed:
        names = [_with_ladder(name, *played) for name, played in zip(names, ladders, strict=True)]
    colours = (COLOURS[place % len(COLOURS)] for place in range(len(names)))
    rows = zip(_distinct(names), colours, analysis.runs, names, strict=True)
    measure = propensity_name() if mixed else propensity_name(*ladders[0])
    return View(analysis, tuple(ModelView(*row) for row in rows), measure, _axis_end(analysis))


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, with a typographic minus sign."""
    return formats.points(difference).replace("-", MINUS)


def capitalised(name: str) -> str:
    """A name with a capital first letter, as a label."""
    return name[:1].upper() + name[1:]


def titled(text: str, naming: Naming) -> str:
    """A title that names the naming."""
    return f"{text}, {naming} names"


def in_percent(share: float | None) -> float | None:
    """A share in percent."""
    return None if share is None else 100 * share


def scaled(interval: Interval | None) -> Interval | None:
    """An interval of shares in percent."""
    return None if interval is None else Interval(100 * interval.low, 100 * interval.high)


def _task_counts(counts: Sequence[tuple[str, int]]) -> str:
    if len({count for _, count in counts}) == 1:
        return f"{counts[0][1]} tasks" + (" each" if len(counts) > 1 else "")
    return "tasks: " + ", ".join(f"{name} {count}" for name, count in counts)


def _with_ladder(name: str, levels: int, arm: str) -> str:
    called = propensity_name(levels, arm)
    return name if called == propensity_name() else f"{name}, {called}"


def _distinct(names: Sequence[str]) -> list[str]:
    """The names shortened to fit a margin; numbered if two would look the same."""
    short = [shorten(name, NAME_WIDTH) for name in names]
    if len(set(short)) < len(short):
        short = [f"{number} {shorten(name, NAME_WIDTH - 0.1)}" for number, name in enumerate(names, start=1)]
    return short


def _axis_end(analysis: Analysis) -> float:
    """The lowest end of an axis of shares that includes every estimate and interval."""
    estimates = [
        estimate
        for run in analysis.runs
        for scores in run.scores.naming.values()
        for estimate in _estimates(scores)
    ]
    highest = 100 * max(map(_high, estimates), default=0.0)
    return next((end for end in AXIS_ENDS if highest <= end), AXIS_ENDS[-1])


def _estimates(scores: NamingScores) -> Iterable[Estimate]:
    yield from (step.domain for step in scores.levels)
    yield from (part.domain for part in scores.parts["domain"].values())


def _high(estimate: Estimate) -> float:
    return max(estimate.value or 0.0, estimate.ci95.high if estimate.ci95 else 0.0)
