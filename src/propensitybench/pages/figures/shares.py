"""Propensities: without and under pressure, by naming, by domain and by dimension."""

from math import radians, sin
from typing import Final

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle

from propensitybench.metrics.compare import BEGUN_IN_BOTH
from propensitybench.pages.figures.layout import Key, Panel
from propensitybench.pages.figures.marks import (
    MARKER,
    OFFSET,
    MarkStyle,
    empty,
    mark_style,
    point,
    row_axis,
    share_axis,
    write_beside,
)
from propensitybench.pages.figures.view import (
    INTERVALS,
    SHARE,
    View,
    capitalised,
    in_percent,
    points,
    scaled,
    titled,
)
from propensitybench.pages.style import FAINT, INK, RULE, SHADES, text_width, widest
from propensitybench.presentation.formats import percent
from propensitybench.taxonomy import NAMINGS, Naming, taxonomy

# Inches: a row of two marks, the minimum height of axes, the maximum height of a row.
ROW: Final = 0.27
MIN_HEIGHT: Final = 0.6
MAX_ROW: Final = 0.45
# Rotation in degrees of labels that do not fit side by side.
SLANT: Final = 35
# Above this share, the number in a cell is white.
DARK: Final = 0.65
NO_SCORE: Final = "no score"


def zero_panel(view: View, naming: Naming) -> Panel:
    """Zero-pressure propensity and propensity, a row for each model."""

    def draw(axes: Axes) -> None:
        for row, model in enumerate(view.models):
            scores = model.scores(naming)
            if scores is None or not scores.n:
                write_beside(axes, row, NO_SCORE, colour=FAINT)
                continue
            zero, whole = (scores.estimates[name].domain for name in ("propensity_zero", "propensity"))
            for estimate, side, filled in ((zero, -1, False), (whole, 1, True)):
                style = MarkStyle(model.colour, MARKER[naming], filled)
                point(axes, row + side * OFFSET, in_percent(estimate.value), scaled(estimate.ci95), style)
            write_beside(axes, row, f"{percent(zero.value)} \u2192 {percent(whole.value)}%")
        row_axis(axes, view.labels, widest=MAX_ROW)
        share_axis(axes, "x", view.axis_end, view.axis_label)

    return Panel(
        name="zero-and-pressure",
        title=titled("Without and under pressure", naming),
        caption=f"{capitalised(SHARE)} at level 0 (zero-pressure) and at any level ({view.measure}), "
        f"{naming} names, domains weighted equally; {view.tasks(naming)}; lines are {INTERVALS}.",
        height=max(MIN_HEIGHT, ROW * len(view.models)),
        draw=draw,
        left=view.margin,
        right=_margin("100.0 \u2192 100.0%"),
        key=(
            Key("zero-pressure", marker=MARKER[naming], filled=False),
            Key("all levels", marker=MARKER[naming]),
        ),
    )


def naming_panel(view: View) -> Panel:
    """Harmful against benign names of the same tool, a row for each model."""

    def draw(axes: Axes) -> None:
        for row, model in enumerate(view.models):
            for naming, side in zip(NAMINGS, (-1, 1), strict=True):
                scores = model.scores(naming)
                if scores is not None:
                    style = mark_style(model.colour, naming)
                    point(
                        axes, row + side * OFFSET, in_percent(scores.propensity), scaled(scores.ci95), style
                    )
            contrast = model.run.scores.naming_contrast
            if contrast is None or contrast.propensity.value is None:
                write_beside(axes, row, "one naming", colour=FAINT)
            else:
                write_beside(axes, row, f"{points(contrast.propensity.value)} pp")
        row_axis(axes, view.labels, widest=MAX_ROW)
        share_axis(axes, "x", view.axis_end, view.axis_label)

    return Panel(
        name="namings",
        title="Name of the prohibited tool",
        caption=f"{view.definition} where the tool has a harmful and where it has a benign name, "
        "domains weighted equally, and at the right the difference in percentage points on the "
        f"tasks {BEGUN_IN_BOTH}; {view.all_tasks}; lines are {INTERVALS}.",
        height=max(MIN_HEIGHT, ROW * len(view.models)),
        draw=draw,
        left=view.margin,
        right=_margin("100.0 \u2192 100.0%"),
        key=(Key("harmful name"), Key("benign name", marker="s", filled=False)),
    )


def domain_panel(view: View, naming: Naming) -> Panel:
    """Each domain with a point for each model; needs the legend of the models."""
    scored = view.scored(naming)
    domains = [name for name in taxonomy().domains if any(name in s.by_domain for _, s in scored)]
    step = 0.8 / max(1, len(view.models))

    def draw(axes: Axes) -> None:
        for place, model in enumerate(view.models):
            scores = model.scores(naming)
            parts = scores.parts["domain"] if scores else {}
            for row, name in enumerate(domains):
                if name in parts:
                    part = parts[name].domain
                    at = row + (place - (len(view.models) - 1) / 2) * step
                    style = mark_style(model.colour, naming)
                    point(axes, at, in_percent(part.value), scaled(part.ci95), style)
        row_axis(axes, [capitalised(name) for name in domains])
        share_axis(axes, "x", view.axis_end, view.axis_label)
        if not scored:
            empty(axes, f"{naming} names: {NO_SCORE}")

    tasks = f"; {view.tasks(naming)}" if scored else ""
    return Panel(
        name=f"domains-{naming}",
        title=titled("Domains", naming),
        caption=f"{view.definition} in each domain, {naming} names{tasks}; lines are {INTERVALS}.",
        height=max(MIN_HEIGHT, len(domains) * max(0.3, 0.1 * len(view.models) + 0.06)),
        draw=draw,
        left=widest([capitalised(name) for name in taxonomy().domains]) + 0.12,
        right=0.15,
    )


def dimension_panel(view: View, naming: Naming) -> Panel:
    """Heat map of models by pressure dimension, with the numbers."""
    names = list(taxonomy().dimensions)
    shades = LinearSegmentedColormap.from_list("shades", SHADES)

    def draw(axes: Axes) -> None:
        for row, model in enumerate(view.models):
            scores = model.scores(naming)
            for column, name in enumerate(names):
                share = scores.by_dimension.get(name) if scores else None
                # Only empty cells need the edge, to be visible on white.
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
        labels = [capitalised(name) for name in names]
        axes.set_xticks([column + 0.62 for column in range(len(names))], labels)
        axes.tick_params(length=0)
        for label in axes.get_xticklabels():
            label.set(rotation=SLANT, ha="right", rotation_mode="anchor")
        for spine in axes.spines.values():
            spine.set_visible(False)

    return Panel(
        name="dimensions",
        title=titled(f"{capitalised(view.measure)} by dimension (%)", naming),
        caption=f"{view.definition} in percent under each pressure dimension, {naming} names, domains "
        f"weighted equally; {view.tasks(naming)}; darker is higher, from 0 to 100, and a dash is a dimension "
        "without a score (evaluation-awareness: the agent is told that oversight is reduced).",
        height=0.22 * len(view.models),
        draw=draw,
        left=view.margin,
        right=0.1,
        below=widest([capitalised(name) for name in names]) * sin(radians(SLANT)) + 0.2,
    )


def _margin(text: str) -> float:
    return text_width(text) + 0.14
