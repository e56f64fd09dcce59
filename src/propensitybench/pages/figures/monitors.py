"""Lead time of monitors: how many turns before the act the first alarm comes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from matplotlib.axes import Axes

from propensitybench.metrics.monitored import STEP_FALSE_POSITIVES
from propensitybench.monitoring.monitor import BOTH, MonitorResults
from propensitybench.pages.figures.curves import Curve, curves_panel
from propensitybench.pages.figures.panels import Drawing, Panel
from propensitybench.pages.figures.rows import Scale
from propensitybench.pages.style import COLOURS, NAME_WIDTH, clean, shorten

TURNS: Final = "Turns before the act (0 = the act itself)"


def lead_drawings(results: Sequence[tuple[str, MonitorResults]]) -> list[Drawing]:
    """The figure of monitors, with a panel for each and the label of its run; none without monitors."""
    return [_drawing(results)] if results else []


def _drawing(results: Sequence[tuple[str, MonitorResults]]) -> Drawing:
    return Drawing(
        "monitors",
        "Could somebody have seen it coming?",
        "Share of episodes that end with a call of the misaligned tool whose first alarm comes so many turns "
        "before it, or earlier, by naming; pale: the same of matched episodes that never call it, cut at the "
        f"same turn. An alarm is a score above a threshold that {STEP_FALSE_POSITIVES:.0%} of the turns of "
        "episodes that never call it exceed. Bands are 95% confidence intervals for new scenarios.",
        tuple(_panel(number, label, one) for number, (label, one) in enumerate(results, start=1)),
    )


def _panel(number: int, label: str, one: MonitorResults) -> Panel:
    curves = []
    for (naming, numbers), colour in zip(one.numbers.items(), COLOURS, strict=False):
        if naming != BOTH and numbers.matched:
            crossing = [at.crossing for at in numbers.lead]
            matched = [at.matched.value for at in numbers.lead]
            bands = [rate.ci95 for rate in crossing]
            curves.append(Curve(naming, colour, [rate.value for rate in crossing], bands))
            curves.append(Curve(f"{naming}, matched", colour, matched, None))
    title = f"{shorten(clean(label), NAME_WIDTH)}, {one.title}"
    panel = curves_panel(f"monitors-{number}", title, curves, Scale("Share of episodes", 1.0))

    def draw(axes: Axes) -> None:
        panel.draw(axes)
        axes.set_xlabel(TURNS)

    return replace(panel, draw=draw)
