"""Shares of tasks: before and under pressure, by naming, by domain and by dimension."""

from math import radians, sin
from typing import Final

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle

from propensitybench.report.figures.layout import Key, Panel
from propensitybench.report.figures.marks import (
    MARKER,
    OFFSET,
    Look,
    beside,
    empty,
    looks,
    point,
    row_axis,
    share_axis,
)
from propensitybench.report.figures.view import (
    CALLED,
    INTERVALS,
    View,
    in_percent,
    percent,
    points,
    scaled,
    titled,
    words,
)
from propensitybench.report.style import FAINT, INK, RULE, SHADES, text_width, widest
from propensitybench.taxonomy import NAMINGS, Naming, taxonomy

# Inches: a row of two marks, the least height of axes, the most that a row takes of taller ones.
ROW: Final = 0.27
LOW: Final = 0.6
WIDE_ROW: Final = 0.45
# Degrees, of labels that would not fit beside each other.
SLANT: Final = 35
# Above this share a cell is so dark that its number must be white.
DARK: Final = 0.65
NO_SCORE: Final = "no score"


def zero_panel(view: View, naming: Naming) -> Panel:
    """Level 0 against the end of all pressure, a row for each model."""

    def draw(axes: Axes) -> None:
        for row, model in enumerate(view.models):
            scores = model.scores(naming)
            if scores is None or not scores.n:
                beside(axes, row, NO_SCORE, colour=FAINT)
                continue
            zero, whole = (scores.estimates[name].domain for name in ("propensity_zero", "propensity"))
            for found, side, filled in ((zero, -1, False), (whole, 1, True)):
                look = Look(model.colour, MARKER[naming], filled)
                point(axes, row + side * OFFSET, in_percent(found.value), scaled(found.ci95), look)
            beside(axes, row, f"{percent(zero.value)} \u2192 {percent(whole.value)}%")
        row_axis(axes, view.labels, widest=WIDE_ROW)
        share_axis(axes, "x", view.top, view.called)

    return Panel(
        name="zero-and-pressure",
        title=titled("Without and under pressure", naming),
        caption=f"Share of tasks with the {CALLED} before any pressure and by the last level, {naming} "
        f"names, domains weighted equally; {view.tasks(naming)}; lines are {INTERVALS}.",
        height=max(LOW, ROW * len(view.models)),
        draw=draw,
        left=view.margin,
        right=_margin("100.0 \u2192 100.0%"),
        key=(
            Key("level 0, the task alone", marker=MARKER[naming], filled=False),
            Key("by the last level", marker=MARKER[naming]),
        ),
    )


def naming_panel(view: View) -> Panel:
    """Harmful against benign names of the same tool, a row for each model."""

    def draw(axes: Axes) -> None:
        for row, model in enumerate(view.models):
            for naming, side in zip(NAMINGS, (-1, 1), strict=True):
                scores = model.scores(naming)
                if scores is not None:
                    look = looks(model.colour, naming)
                    point(axes, row + side * OFFSET, in_percent(scores.propensity), scaled(scores.ci95), look)
            contrast = model.run.scores.naming_contrast
            if contrast is None or contrast.propensity.value is None:
                beside(axes, row, "one only", colour=FAINT)
            else:
                beside(axes, row, f"{points(contrast.propensity.value)} pp")
        row_axis(axes, view.labels, widest=WIDE_ROW)
        share_axis(axes, "x", view.top, view.called)

    return Panel(
        name="namings",
        title="Naming of the prohibited tool",
        caption=f"Share of tasks with the {CALLED} by the last level where the tool has a harmful and where "
        "it has a benign name, domains weighted equally, and at the right the difference in percentage "
        f"points on the tasks finished under both; {view.all_tasks}; lines are {INTERVALS}.",
        height=max(LOW, ROW * len(view.models)),
        draw=draw,
        left=view.margin,
        right=_margin("100.0 \u2192 100.0%"),
        key=(Key("harmful name"), Key("benign name", marker="s", filled=False)),
    )


def domain_panel(view: View, naming: Naming) -> Panel:
    """Each domain, with a point for each model; the colours need the key of the models."""
    found = view.scored(naming)
    domains = [name for name in taxonomy().domains if any(name in s.by_domain for _, s in found)]
    step = 0.8 / max(1, len(view.models))

    def draw(axes: Axes) -> None:
        for place, model in enumerate(view.models):
            scores = model.scores(naming)
            parts = scores.parts["domain"] if scores else {}
            for row, name in enumerate(domains):
                if name in parts:
                    part = parts[name].domain
                    at = row + (place - (len(view.models) - 1) / 2) * step
                    point(axes, at, in_percent(part.value), scaled(part.ci95), looks(model.colour, naming))
        row_axis(axes, [words(name) for name in domains])
        share_axis(axes, "x", view.top, view.called)
        if not found:
            empty(axes, f"{naming} names: {NO_SCORE}")

    tasks = f"; {view.tasks(naming)}" if found else ""
    return Panel(
        name=f"domains-{naming}",
        title=titled("Domains", naming),
        caption=f"Share of tasks with the {CALLED} by the last level in each domain, {naming} names{tasks}; "
        f"lines are {INTERVALS}.",
        height=max(LOW, len(domains) * max(0.3, 0.1 * len(view.models) + 0.06)),
        draw=draw,
        left=widest([words(name) for name in taxonomy().domains]) + 0.12,
        right=0.15,
    )


def dimension_panel(view: View, naming: Naming) -> Panel:
    """Heat map: models by the six dimensions of pressure, with the numbers."""
    names = list(taxonomy().dimensions)
    shades = LinearSegmentedColormap.from_list("shades", SHADES)

    def draw(axes: Axes) -> None:
        for row, model in enumerate(view.models):
            scores = model.scores(naming)
            for column, name in enumerate(names):
                share = scores.by_dimension.get(name) if scores else None
                # Light cells have no need of an edge, but the empty ones would not be seen without.
                face = "white" if share is None else shades(share)
                axes.add_patch(Rectangle((column, row), 1, 1, facecolor=face, edgecolor=RULE, linewidth=0.5))
                axes.text(
                    column + 0.5,
                    row + 0.5,
                    percent(share),
                    ha="center",
                    va="center_baseline",
                    color="white" if share is not None and share > DARK else INK,
                )
        axes.set_xlim(0, len(names))
        axes.set_ylim(len(view.models), 0)
        axes.set_yticks([row + 0.5 for row in range(len(view.models))], view.labels)
        axes.set_xticks([column + 0.62 for column in range(len(names))], [words(name) for name in names])
        axes.tick_params(length=0)
        for label in axes.get_xticklabels():
            label.set(rotation=SLANT, ha="right", rotation_mode="anchor")
        for spine in axes.spines.values():
            spine.set_visible(False)

    return Panel(
        name="dimensions",
        title=titled("Kind of pressure", naming) + f" ({', '.join(filter(None, ['%', view.ladder]))})",
        caption=f"Percent of tasks with the {CALLED} by the last level under each kind of pressure, "
        f"{naming} names, domains weighted equally; {view.tasks(naming)}; darker is more, from 0 to 100, "
        "and a dash is a kind without a score (evaluation awareness: the agent is told that oversight is "
        "reduced).",
        height=0.22 * len(view.models),
        draw=draw,
        left=view.margin,
        right=0.1,
        below=widest([words(name) for name in names]) * sin(radians(SLANT)) + 0.2,
    )


def _margin(text: str) -> float:
    return text_width(text) + 0.14
