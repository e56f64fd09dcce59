"""Runs as figures see them: a label, a colour and scores each. Nothing is computed here."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from propensitybench.metrics import NamingScores, ScoredRun
from propensitybench.metrics.analysis import Analysis, RunAnalysis
from propensitybench.metrics.estimates import Estimate
from propensitybench.pages.figures.panels import FILLED, MARKER, Key, MarkStyle
from propensitybench.pages.figures.rows import Scale, scale_end
from propensitybench.pages.page_numbers import MINUS
from propensitybench.pages.style import COLOURS, ELLIPSIS, NAME_WIDTH, clean, shorten
from propensitybench.presentation import formats
from propensitybench.presentation.formats import capitalised
from propensitybench.presentation.words import propensity_name, propensity_note
from propensitybench.taxonomy import NAMINGS, Naming

INTERVALS: Final = "95% confidence intervals for new scenarios, clustered by scenario"
# What a propensity is, for captions.
SHARE: Final = "share of tasks with a call of the misaligned tool"


@dataclass(frozen=True)
class ModelView:
    """A run.

    Attributes:
        label, colour: the same in every figure.
        name: its full name.
        slug: begins the names of files that show this run alone; empty for a single run.
    """

    label: str
    colour: str
    run: RunAnalysis
    name: str
    slug: str

    def scores(self, naming: Naming) -> NamingScores | None:
        """Its scores under a naming; None if it has no tasks there."""
        return self.run.scores.naming.get(naming)

    def style(self, naming: Naming) -> MarkStyle:
        """Style of its points under a naming."""
        return MarkStyle(self.colour, MARKER[naming], FILLED[naming])


@dataclass(frozen=True)
class View:
    """The runs of a figure.

    Attributes:
        measure: ``propensity``, or ``PP@6`` if every run had only 6 pressure messages; where ladders
            differ, the labels of the models give them.
        end: end of the scales of propensities, the same in every panel.
    """

    analysis: Analysis
    models: tuple[ModelView, ...]
    measure: str
    end: float

    @property
    def key(self) -> tuple[Key, ...]:
        """The legend of the models' colours."""
        return tuple(Key(model.label, MarkStyle(model.colour)) for model in self.models)

    def key_under(self, naming: Naming) -> tuple[Key, ...]:
        """The legend of the models' colours, with the mark of a naming."""
        return tuple(Key(model.label, model.style(naming)) for model in self.models)

    @property
    def namings(self) -> list[Naming]:
        """Those under which any run has a score."""
        return [naming for naming in NAMINGS if self.scored(naming)]

    @property
    def remarks(self) -> list[str]:
        """Additions to every caption: shorter ladders, shortened names in full, and low competence."""
        played = {_played(model.run.scores) for model in self.models}
        ladders = [note for one in sorted(played) if (note := propensity_note(*one))]
        shortened = [model for model in self.models if ELLIPSIS in model.label]
        low = [(model.label, model.run.scores.low_competence) for model in self.models]
        return [
            *ladders,
            *(f"{model.label} is {model.name}" for model in shortened),
            *(f"{label}: {why}" for label, why in low if why),
        ]

    @property
    def definition(self) -> str:
        """What is measured, as the beginning of a caption."""
        return f"{capitalised(self.measure)} ({SHARE})"

    @property
    def scale(self) -> Scale:
        """The scale of propensities."""
        return Scale(f"{capitalised(self.measure)} (share of tasks)", self.end)

    def scored(self, naming: Naming) -> list[tuple[ModelView, NamingScores]]:
        """The models that have a score under a naming, with their scores."""
        return [(model, scores) for model in self.models if (scores := model.scores(naming)) and scores.n]

    @property
    def all_tasks(self) -> str:
        """Number of tasks behind the scores under each naming, in words."""
        return "; ".join(f"{naming} names: {self._tasks(naming)}" for naming in self.namings) or "no tasks"

    def _tasks(self, naming: Naming) -> str:
        counts = [(model.label, scores.n) for model, scores in self.scored(naming)]
        if len({count for _, count in counts}) == 1:
            return formats.counted(counts[0][1], "task") + (" each" if len(counts) > 1 else "")
        return "tasks: " + ", ".join(f"{name} {count}" for name, count in counts)


def view_of(analysis: Analysis) -> View:
    """The runs of an analysis, ready to be drawn."""
    ladders = [_played(run.scores) for run in analysis.runs]
    mixed = len(set(ladders)) > 1
    names = [clean(run.name) for run in analysis.runs]
    if mixed:
        names = [_with_ladder(name, *played) for name, played in zip(names, ladders, strict=True)]
    colours = (COLOURS[place % len(COLOURS)] for place in range(len(names)))
    slugs = [f"{number}-{_slug(run.name)}-" for number, run in enumerate(analysis.runs, start=1)]
    slugs = slugs if len(slugs) > 1 else [""]
    rows = zip(_distinct(names), colours, analysis.runs, names, slugs, strict=True)
    measure = propensity_name() if mixed else propensity_name(*ladders[0])
    return View(analysis, tuple(ModelView(*row) for row in rows), measure, _end(analysis))


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, with a typographic minus sign."""
    return formats.points(difference).replace("-", MINUS)


def titled(text: str, naming: Naming) -> str:
    """A title that names the naming."""
    return f"{text}, {naming} names"


def _played(scores: ScoredRun) -> tuple[int, str, str]:
    return scores.levels, scores.arm, scores.ladder


def _with_ladder(name: str, levels: int, arm: str, ladder: str) -> str:
    called = propensity_name(levels, arm, ladder)
    return name if called == propensity_name() else f"{name}, {called}"


def _distinct(names: Sequence[str]) -> list[str]:
    """The names shortened to fit a margin; numbered if two would look the same."""
    short = [shorten(name, NAME_WIDTH) for name in names]
    if len(set(short)) < len(short):
        short = [f"{number} {shorten(name, NAME_WIDTH - 0.1)}" for number, name in enumerate(names, start=1)]
    return short


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "run"


def _end(analysis: Analysis) -> float:
    """The lowest end of a scale of shares that includes every estimate and interval."""
    estimates = [
        estimate
        for run in analysis.runs
        for scores in run.scores.naming.values()
        for estimate in _estimates(scores)
    ]
    return scale_end(max(map(_high, estimates), default=0.0))


def _estimates(scores: NamingScores) -> Iterable[Estimate]:
    yield from (step.domain for step in scores.levels)
    for part in ("domain", "dimension"):
        yield from (one.domain for one in scores.parts[part].values())


def _high(estimate: Estimate) -> float:
    return max(estimate.value or 0.0, estimate.ci95.high if estimate.ci95 else 0.0)
