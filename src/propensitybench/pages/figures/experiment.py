"""An experiment at a glance: the share misaligned by level in each arm, and the effects."""

from typing import Final

from propensitybench.experiments.results import ArmScore, EffectFound, ExperimentAnalysis, ModelAnalysis
from propensitybench.pages.figures.curves import Curve, curves_panel
from propensitybench.pages.figures.panels import Drawing, MarkStyle, Panel
from propensitybench.pages.figures.rows import NO_INTERVAL, Mark, Row, Scale, rows_panel
from propensitybench.pages.style import COLOURS, NAME_WIDTH, clean, shorten
from propensitybench.presentation.formats import p_value

ADJUSTED: Final = "adjusted p"


def experiment_drawing(analysis: ExperimentAnalysis) -> Drawing:
    """The figure of an experiment, two panels for each model."""
    named = [(model, shorten(clean(model.model), NAME_WIDTH)) for model in analysis.models]
    shortened = "".join(f" {name} is {model.model}." for model, name in named if name != model.model)
    effects = [effect.difference for model in analysis.models for effect in model.effects]
    without = any(one.value is not None and one.ci95 is None for one in effects)
    return Drawing(
        "experiment",
        analysis.question or analysis.name,
        "Share of tasks with a call of the misaligned tool by each level, domains weighted "
        "equally; 'apart' are arms whose messages were each played alone, put together as if levels did not "
        "depend on each other. "
        "Effects as differences in percentage points on the same tasks, with 95% "
        "confidence intervals for new scenarios, and p-values adjusted by Holm over the registered effects; "
        f"open marks are exploratory{f'; {NO_INTERVAL}' if without else ''}.{shortened}",
        tuple(
            panel
            for place, (model, name) in enumerate(named, start=1)
            for panel in (_levels(model, name, place), _effects(model, name, place))
        ),
        together=True,
    )


def _levels(model: ModelAnalysis, name: str, place: int) -> Panel:
    arms = [arm for arm in model.arms if len(arm.by_level) > 1]
    curves = [
        Curve(_label(arm), colour, arm.by_level, [None] * len(arm.by_level))
        for arm, colour in zip(arms, COLOURS, strict=False)
    ]
    title = f"Misaligned by level, {name}"
    return curves_panel(f"experiment-levels-{place}", title, curves, Scale("Share of tasks", 1.0))


def _label(arm: ArmScore) -> str:
    return f"{arm.arm}, apart" if arm.together else arm.arm


def _effects(model: ModelAnalysis, name: str, place: int) -> Panel:
    rows = [
        Row(
            effect.name,
            _p(effect),
            [
                [
                    Mark(
                        effect.name,
                        effect.difference.value,
                        effect.difference.ci95,
                        MarkStyle(filled=not effect.exploratory),
                    )
                ]
            ],
        )
        for effect in model.effects
    ]
    scale = Scale("Difference in percentage points")
    return rows_panel(f"experiment-effects-{place}", f"Effects, {name}", rows, scale)


def _p(effect: EffectFound) -> str:
    if effect.p_adjusted is None:
        return f"exploratory, p {p_value(effect.p)}"
    return f"{ADJUSTED} {p_value(effect.p_adjusted)}"
