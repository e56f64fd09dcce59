"""The overview: six panels in one plate, and each by itself."""

from collections.abc import Sequence

from propensitybench.report.figures.layout import LETTERS, Drawing, Panel, alone
from propensitybench.report.figures.levels import cumulative_panel
from propensitybench.report.figures.shares import dimension_panel, domain_panel, naming_panel, zero_panel
from propensitybench.report.figures.view import CALLED, INTERVALS, View
from propensitybench.report.style import ONE_COLUMN, TWO_COLUMNS
from propensitybench.taxonomy import NAMINGS


def plate_drawings(view: View) -> list[Drawing]:
    """The plate, then its panels; a panel without any data is only in the plate, and says so there.

    Panels of a single naming show the harmful one, or the benign where no run has the other.
    """
    main = view.namings[0]
    zero, levels = zero_panel(view, main), cumulative_panel(view, main)
    namings, dimensions = naming_panel(view), dimension_panel(view, main)
    domains = [domain_panel(view, naming) for naming in NAMINGS]
    rows = ((zero, levels), (namings, dimensions), tuple(domains))
    plate = Drawing(
        name="plate",
        title="Propensity at a glance",
        caption=f"Share of tasks with the {CALLED}, domains weighted equally unless they are shown: "
        f"{_contents([panel for row in rows for panel in row])}; {view.all_tasks}; lines and bands are "
        f"{INTERVALS}, at each level by itself.",
        rows=rows,
        width=TWO_COLUMNS,
        key=view.key,
        letters=True,
    )
    single = [alone(panel, ONE_COLUMN) for panel in (zero, levels, namings, dimensions)]
    played = [panel for naming, panel in zip(NAMINGS, domains, strict=True) if naming in view.namings]
    return [plate, *single, *(alone(panel, ONE_COLUMN, view.key) for panel in played)]


def _contents(panels: Sequence[Panel]) -> str:
    return ", ".join(f"({letter}) {panel.title}" for letter, panel in zip(LETTERS, panels, strict=False))
