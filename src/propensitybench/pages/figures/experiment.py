"""An experiment at a glance: the share misaligned by level in each arm, and the effects."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from propensitybench.experiments.results import ArmScore, EffectFound, ExperimentAnalysis, ModelAnalysis
from propensitybench.pages.figures.layout import Drawing, Panel
from propensitybench.pages.figures.marks import (
    End,
    MarkStyle,
    curve,
    end_labels,
    level_axis,
    point,
    row_axis,
    share_axis,
    write_beside,
)
from propensitybench.pages.figures.view import scaled
from propensitybench.pages.figures.writing import FORMATS, Figure, Format, write_drawings
from propensitybench.pages.style import COLOURS, FAINT, INK, TWO_COLUMNS, widest
from propensitybench.presentation.formats import p_value

HEIGHT: Final = 1.9
ROW: Final = 0.2
ADJUSTED: Final = "adjusted p"


def write_experiment_figure(
    analysis: ExperimentAnalysis, out: Path, formats: Sequence[Format] = FORMATS
) -> list[Figure]:
    """Writes the figure of an experiment; raises `BadInput` as `write_figures` does."""
    return write_drawings([_drawing(analysis)], out, formats)


def _drawing(analysis: ExperimentAnalysis) -> Drawing:
    return Drawing(
        name="experiment",
        title=analysis.question or analysis.name,
        caption="Left: share of tasks with a call of the prohibited tool by each level, domains weighted "
        "equally; 'apart' are arms whose messages were each played alone, put together as if levels did not "
        "depend on each other. "
        "Right: effects as differences in percentage points on the same tasks, with 95% "
        "confidence intervals for new scenarios, and p-values adjusted by Holm over the registered effects; "
        "open marks are exploratory.",
        rows=tuple((_levels(model), _effects(model)) for model in analysis.models),
        width=TWO_COLUMNS,
        letters=len(analysis.models) > 1,
    )


def _levels(model: ModelAnalysis) -> Panel:
    curves = [arm for arm in model.arms if len(arm.by_level) > 1]
    last = max((len(arm.by_level) for arm in curves), default=1) - 1

    def draw(axes: Axes) -> None:
        ends = []
        for arm, colour in zip(curves, COLOURS, strict=False):
            curve(axes, arm.by_level, [None] * len(arm.by_level), colour)
            reached = [100 * value for value in arm.by_level if value is not None]
            if reached:
                ends.append(End(len(arm.by_level) - 1, reached[-1], _label(arm), colour))
        share_axis(axes, "y", 100, "Share of tasks")
        level_axis(axes, last)
        end_labels(axes, ends)

    return Panel(
        name="arms",
        title=f"{model.model}: misaligned by level",
        caption="",
        height=HEIGHT,
        draw=draw,
        left=0.55,
        right=widest([_label(arm) for arm in curves]) + 0.12,
    )


def _label(arm: ArmScore) -> str:
    return f"{arm.arm}, apart" if arm.together else arm.arm


def _effects(model: ModelAnalysis) -> Panel:
    effects = model.effects

    def draw(axes: Axes) -> None:
        axes.axvline(0, color=FAINT, linewidth=0.6)
        for row, effect in enumerate(effects):
            value, interval = effect.difference.value, scaled(effect.difference.ci95)
            style = MarkStyle(INK, filled=not effect.exploratory)
            point(axes, row, None if value is None else 100 * value, interval, style)
            write_beside(axes, row, _p(effect), colour=INK if effect.claimed else FAINT)
        row_axis(axes, [effect.name for effect in effects], widest=ROW * 1.6)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel("Difference in percentage points")
        axes.grid(axis="x")

    return Panel(
        name="effects",
        title="Effects",
        caption="",
        height=HEIGHT,
        draw=draw,
        left=widest([effect.name for effect in effects]) + 0.12,
        right=widest([_p(effect) for effect in effects]) + 0.14,
    )


def _p(effect: EffectFound) -> str:
    if effect.p_adjusted is None:
        return f"exploratory, p {p_value(effect.p)}"
    return f"{ADJUSTED} {p_value(effect.p_adjusted)}"
