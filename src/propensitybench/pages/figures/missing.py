"""Missing data: how far tasks without a score could move the propensity."""

from typing import Final

from propensitybench.metrics import NamingScores
from propensitybench.pages.figures.panels import Drawing, Key, MarkStyle
from propensitybench.pages.figures.rows import Mark, Row, Scale, rows_panel, scale_end
from propensitybench.pages.figures.view import INTERVALS, ModelView, View
from propensitybench.taxonomy import NAMINGS, Naming

KEY: Final = (
    Key("propensity", MarkStyle()),
    Key("95% CI", MarkStyle(marker=""), line=1.0),
    Key("bounds", MarkStyle(marker=""), line=6.0, alpha=0.3),
)
NONE_MISSING: Final = "every task has a score, so the bounds coincide with the propensity"
TRUNCATED: Final = (
    "truncated: the output limit cut off a reply before it was usable; run again with a higher --max-tokens"
)


def missing_drawing(view: View) -> Drawing:
    """Propensity, its interval and its bounds, by model and naming."""
    found = [
        (model, naming, scores)
        for model in view.models
        for naming in NAMINGS
        if (scores := model.scores(naming)) is not None
    ]
    ends = [one.ci95 or one.missing.bounds for _, _, one in found]
    end = scale_end(max([view.end, *(one.high for one in ends if one is not None)]))
    rows = [_row(*one) for one in found]
    return Drawing(
        "missing",
        "Missing data",
        "; ".join(
            [
                f"{view.definition}, tasks without a score censored at the last level at which the agent "
                "was heard, domains weighted equally, with the bounds that tasks begun without a score allow "
                "(all resisted to all misaligned), under harmful (filled) and benign names (open)",
                f"with a score, {view.all_tasks}",
                f"lines are {INTERVALS}, for every value that these tasks allow (Imbens and Manski)",
                *_remarks(view, [scores for _, _, scores in found]),
            ]
        )
        + ".",
        (rows_panel("missing", "Missing data", rows, Scale(view.scale.label, end), KEY),),
    )


def _row(model: ModelView, naming: Naming, scores: NamingScores) -> Row:
    label = f"{model.label}, {naming}"
    mark = Mark(label, scores.propensity, scores.ci95, model.style(naming), scores.missing.bounds)
    return Row(label, _counts(scores), [[mark]])


def _remarks(view: View, found: list[NamingScores]) -> list[str]:
    remarks = [] if any(map(_missing, found)) else [NONE_MISSING]
    remarks += [TRUNCATED] if any(sum(scores.missing.truncated.values()) for scores in found) else []
    unplayed = {model.label: model.run.scores.tasks.unplayed for model in view.models}
    counts = ", ".join(f"{label} {count}" for label, count in unplayed.items() if count)
    return [*remarks, f"tasks not run yet are not included: {counts}"] if counts else remarks


def _counts(scores: NamingScores) -> str:
    """Number of tasks without a score by outcome, in words."""
    missing = _missing(scores)
    if not missing:
        return "none missing"
    parts = ", ".join(f"{number} {outcome}" for outcome, number in missing.items())
    return f"of {scores.n + sum(missing.values())}: {parts}"


def _missing(scores: NamingScores) -> dict[str, int]:
    """Number of tasks begun that have no score, by outcome."""
    names = ("blocked", "truncated", "errored", "unfinished")
    counts = {name: sum(getattr(scores.missing, name).values()) for name in names}
    return {name: count for name, count in counts.items() if count}
