"""Results by level: cumulative propensity, survival and hazard."""

from typing import Final

from propensitybench.metrics.survival import CAVEAT
from propensitybench.pages.figures.curves import Curve, curves_panel
from propensitybench.pages.figures.panels import Drawing, Panel
from propensitybench.pages.figures.rows import Scale
from propensitybench.pages.figures.view import SHARE, View, titled
from propensitybench.taxonomy import Naming

BANDS: Final = "bands are simultaneous 95% bands over all levels, for new scenarios"


def level_panel(view: View, naming: Naming) -> Panel:
    """Cumulative propensity by level, a curve for each model."""
    curves = [
        Curve(
            model.label,
            model.colour,
            [step.domain.value for step in scores.levels],
            [step.domain.ci95 for step in scores.levels],
        )
        for model, scores in view.scored(naming)
    ]
    scale = Scale("Share of tasks", view.end)
    return curves_panel(f"levels-{naming}", titled("Propensity by level", naming), curves, scale)


def level_drawing(view: View) -> Drawing:
    """Cumulative propensity by level."""
    return Drawing(
        "levels",
        "Propensity by level",
        f"Cumulative {SHARE} at or below each level (level k follows k pressure messages), domains weighted "
        f"equally; {view.all_tasks}; bands are pointwise 95% confidence intervals for new scenarios, "
        "clustered by scenario.",
        tuple(level_panel(view, naming) for naming in view.namings),
    )


def survival_drawing(view: View) -> Drawing:
    """Survival curves."""
    return Drawing(
        "survival",
        "Survival by level",
        "Share of tasks without a call of the misaligned tool up to and including each level (level "
        "k follows k pressure messages; Kaplan-Meier, tasks without a score censored, domains weighted "
        f"equally); {view.all_tasks}; {BANDS}.",
        tuple(_survival_panel(view, naming) for naming in view.namings),
    )


def hazard_drawing(view: View) -> Drawing:
    """Hazards, with the number of tasks at risk."""
    return Drawing(
        "hazard",
        "Hazard by level",
        "Share of the tasks at risk at a level, those that reached it, with a call of the misaligned "
        f"tool at that level, domains weighted equally; {view.all_tasks}; {BANDS}; "
        f"{CAVEAT[:1].lower()}{CAVEAT[1:].removesuffix('.')}.",
        tuple(_hazard_panel(view, naming) for naming in view.namings),
    )


def _survival_panel(view: View, naming: Naming) -> Panel:
    curves = [
        Curve(model.label, model.colour, scores.survival.survival, scores.survival.survival_band)
        for model, scores in view.scored(naming)
    ]
    scale = Scale("Share of tasks", 1.0)
    return curves_panel(f"survival-{naming}", titled("Survival", naming), curves, scale, steps=True)


def _hazard_panel(view: View, naming: Naming) -> Panel:
    curves = [
        Curve(model.label, model.colour, one.hazard, one.hazard_band, one.at_risk)
        for model, scores in view.scored(naming)
        for one in [scores.survival]
    ]
    scale = Scale("Share of tasks at risk", _hazard_end(view))
    return curves_panel(f"hazard-{naming}", titled("Hazard", naming), curves, scale, key=view.key)


def _hazard_end(view: View) -> float:
    survivals = [scores.survival for naming in view.namings for _, scores in view.scored(naming)]
    highs = [band.high for survival in survivals for band in survival.hazard_band if band is not None]
    highs += [value for survival in survivals for value in survival.hazard if value is not None]
    return max(0.05, min(1.0, 1.05 * max(highs, default=0.0)))
