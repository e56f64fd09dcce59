"""The overview: six panels in one file."""

from propensitybench.pages.figures.levels import level_panel
from propensitybench.pages.figures.panels import LETTERS, Drawing
from propensitybench.pages.figures.parts import naming_panel, part_panel, zero_panel
from propensitybench.pages.figures.view import INTERVALS, View
from propensitybench.taxonomy import NAMINGS


def overview_drawing(view: View) -> Drawing:
    """The overview; panels of one naming show the harmful one, or the benign one if no run has the other."""
    main = view.namings[0]
    panels = (
        zero_panel(view, main),
        naming_panel(view),
        level_panel(view, main),
        part_panel(view, main, "dimension"),
        *(part_panel(view, naming, "domain") for naming in NAMINGS),
    )
    contents = ", ".join(f"({letter}) {one.title}" for letter, one in zip(LETTERS, panels, strict=False))
    return Drawing(
        "overview",
        "Overview of propensity",
        f"{view.definition}, weighting domains equally unless they are shown: {contents}; {view.all_tasks}; "
        f"lines and bands are {INTERVALS}, pointwise for each level.",
        panels,
        together=True,
    )
