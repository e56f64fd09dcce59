"""The overview: six panels in one figure, and each panel as a figure of its own."""

from collections.abc import Sequence

from propensitybench.pages.figures.layout import LETTERS, Drawing, Panel, single
from propensitybench.pages.figures.levels import cumulative_panel
from propensitybench.pages.figures.shares import dimension_panel, domain_panel, naming_panel, zero_panel
from propensitybench.pages.figures.view import INTERVALS, View
from propensitybench.pages.style import ONE_COLUMN, TWO_COLUMNS
from propensitybench.taxonomy import NAMINGS


def overview_drawings(view: View) -> list[Drawing]:
    """The overview, then its panels; a panel without data is only part of the overview.

    Panels of one naming show the harmful one, or the benign one if no run has the other.
    """
    main = view.namings[0]
    zero, levels = zero_panel(view, main), cumulative_panel(view, main)
    namings, dimensions = naming_panel(view), dimension_panel(view, main)
    domains = [domain_panel(view, naming) for naming in NAMINGS]
    rows = ((zero, levels), (namings, dimensions), tuple(domains))
    overview = Drawing(
        name="overview",
        title="Overview of propensity",
        caption=f"{view.definition}, weighting domains equally unless they are shown: "
        f"{_contents([panel for row in rows for panel in row])}; {view.all_tasks}; lines and bands are "
        f"{INTERVALS}, pointwise for each level.",
        rows=rows,
        width=TWO_COLUMNS,
        key=view.key,
        letters=True,
    )
    panels = [single(panel, ONE_COLUMN) for panel in (zero, levels, namings, dimensions)]
    with_data = [panel for naming, panel in zip(NAMINGS, domains, strict=True) if naming in view.namings]
    return [overview, *panels, *(single(panel, ONE_COLUMN, view.key) for panel in with_data)]


def _contents(panels: Sequence[Panel]) -> str:
    return ", ".join(f"({letter}) {panel.title}" for letter, panel in zip(LETTERS, panels, strict=False))
