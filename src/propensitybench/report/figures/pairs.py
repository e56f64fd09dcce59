"""Models compared two by two on the same tasks."""

from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from propensitybench.metrics.families import CLAIM
from propensitybench.metrics.models import Pair
from propensitybench.report.figures.layout import Drawing, Key, Panel, alone
from propensitybench.report.figures.marks import FILLED, MARKER, Look, beside, point, row_axis
from propensitybench.report.figures.view import View, in_percent, scaled, titled
from propensitybench.report.style import FAINT, INK, TWO_COLUMNS, widest
from propensitybench.taxonomy import Naming

ROW: Final = 0.19


def pair_drawing(view: View, naming: Naming) -> Drawing | None:
    """The differences of all pairs under a naming; None with fewer than two models."""
    compared = view.analysis.models.get(naming)
    if compared is None:
        return None
    names = {model.run.name: model.label for model in view.models}
    labels = [f"{names[pair.second]} \u2212 {names[pair.first]}" for pair in compared.pairs]
    verdicts = [verdict(pair) for pair in compared.pairs]

    def draw(axes: Axes) -> None:
        for row, (pair, text) in enumerate(zip(compared.pairs, verdicts, strict=True)):
            found = pair.contrast.propensity
            look = Look(INK, MARKER[naming], FILLED[naming])
            point(axes, row, in_percent(found.value), scaled(found.ci95), look)
            beside(axes, row, text)
        row_axis(axes, labels)
        axes.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
        axes.margins(x=0.05)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.grid(axis="x")
        axes.set_xlabel(view.of_ladder("Difference in percentage points"))

    tasks = sorted({pair.contrast.propensity.n for pair in compared.pairs})
    said = str(tasks[0]) if len(tasks) == 1 else f"{tasks[0]} to {tasks[-1]}"
    panel = Panel(
        name=f"pairs-{naming}",
        title=titled("Models compared", naming),
        caption="Difference in the share of tasks with the prohibited tool called by the last level, model "
        f"minus model, {naming} names, domains weighted equally, on the {said} tasks that both of a pair "
        "finished; lines are 95% intervals for new scenarios, clustered by scenario, not adjusted; in "
        "words, whether the levels withstood differ (sign-flip permutation test by scenario, p adjusted "
        f"over all pairs after Holm, {CLAIM:.2f}).",
        height=ROW * len(labels) + 0.1,
        draw=draw,
        left=widest(labels) + 0.12,
        right=widest(verdicts) + 0.14,
        key=(
            Key("difference with 95% interval", INK, MARKER[naming], FILLED[naming], line=1.0),
            Key("at the right: whether the levels withstood differ (p after Holm)", marker=""),
        ),
    )
    return alone(panel, TWO_COLUMNS)


def verdict(pair: Pair) -> str:
    """In words, whether a pair differs after Holm's adjustment."""
    if pair.p_holm is None:
        return "no task in common"
    said = "differ" if pair.p_holm <= CLAIM else "not shown to differ"
    size = "p < 0.001" if pair.p_holm < 0.001 else f"p = {pair.p_holm:.3f}"
    return f"{said}, {size}"
