"""Pairwise comparison of models on the same tasks."""

from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from propensitybench.metrics.compare import BEGUN_IN_BOTH, P_TESTS
from propensitybench.metrics.families import CLAIM
from propensitybench.metrics.models import ModelPair
from propensitybench.pages.figures.layout import Drawing, Key, Panel, single
from propensitybench.pages.figures.marks import FILLED, MARKER, MarkStyle, point, row_axis, write_beside
from propensitybench.pages.figures.view import SHARE, View, capitalised, in_percent, scaled, titled
from propensitybench.pages.style import FAINT, INK, TWO_COLUMNS, widest
from propensitybench.presentation.formats import p_value
from propensitybench.taxonomy import Naming

ROW: Final = 0.19


def pair_drawing(view: View, naming: Naming) -> Drawing | None:
    """The differences between all pairs under a naming; None with fewer than two models."""
    comparison = view.analysis.models.get(naming)
    if comparison is None:
        return None
    names = {model.run.name: model.label for model in view.models}
    labels = [f"{names[pair.second]} \u2212 {names[pair.first]}" for pair in comparison.pairs]
    verdicts = [verdict(pair) for pair in comparison.pairs]

    def draw(axes: Axes) -> None:
        for row, (pair, text) in enumerate(zip(comparison.pairs, verdicts, strict=True)):
            difference = pair.contrast.propensity
            style = MarkStyle(INK, MARKER[naming], FILLED[naming])
            point(axes, row, in_percent(difference.value), scaled(difference.ci95), style)
            write_beside(axes, row, text)
        row_axis(axes, labels)
        axes.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
        axes.margins(x=0.05)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.grid(axis="x")
        axes.set_xlabel(f"{capitalised(view.measure)}, difference (percentage points)")

    counts = sorted({pair.contrast.propensity.n for pair in comparison.pairs})
    tasks = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    panel = Panel(
        name=f"pairs-{naming}",
        title=titled("Pairwise differences", naming),
        caption=f"Difference in {view.measure} ({SHARE}), model minus model, {naming} names, domains "
        f"weighted equally, on the {tasks} tasks {BEGUN_IN_BOTH}; lines are unadjusted 95% confidence "
        "intervals for new scenarios, clustered by scenario; at the right, the p-value, adjusted over all "
        f"pairs by Holm's method and significant at {CLAIM:.2f}, of a {P_TESTS}.",
        height=ROW * len(labels) + 0.1,
        draw=draw,
        left=widest(labels) + 0.12,
        right=widest(verdicts) + 0.14,
        key=(
            Key("difference with 95% CI", INK, MARKER[naming], FILLED[naming], line=1.0),
            Key("right: test of this difference (p adjusted by Holm)", marker=""),
        ),
    )
    return single(panel, TWO_COLUMNS)


def verdict(pair: ModelPair) -> str:
    """Whether a pair differs after Holm's adjustment, with p."""
    if pair.p_holm is None:
        return "no common tasks"
    result = "significant" if pair.p_holm <= CLAIM else "not significant"
    p = p_value(pair.p_holm)
    return f"{result}, p {p}" if p.startswith("<") else f"{result}, p = {p}"
