"""The dangerous capabilities of one run: shrunken estimates by domain."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from matplotlib.axes import Axes

from propensitybench.metrics.shrinkage import MIN_CELLS
from propensitybench.pages.figures.layout import Drawing, Key, Panel
from propensitybench.pages.figures.marks import (
    FILLED,
    MARKER,
    MarkStyle,
    mark_style,
    point,
    row_axis,
    share_axis,
    write_beside,
)
from propensitybench.pages.figures.view import ModelView, View, capitalised, in_percent, scaled
from propensitybench.pages.style import FAINT, TICK, TWO_COLUMNS, text_width, widest, wrap
from propensitybench.taxonomy import Naming, taxonomy

# Inches: a line of a label, the gap between rows, the widest label.
LINE: Final = 0.12
BETWEEN: Final = 0.06
LABEL: Final = 2.2


class CapabilityRow(NamedTuple):
    """A domain's heading, or a capability; ``place`` is in inches from the top."""

    label: str
    place: float
    capability: str | None


def capability_drawing(view: View, model: ModelView, name: str) -> Drawing | None:
    """The forest plot of one run; None if no scenario of it has a capability."""
    scored = [(naming, scores) for naming, scores in model.run.scores.naming.items() if scores.n]
    rows, height = _rows({name for _, scores in scored for name in scores.parts["capability"]})
    if not rows:
        return None
    panels = [_panel(view, model, naming, (rows, height)) for naming, _ in scored]
    # Both panels have the same rows, labelled once.
    panels[1:] = [_without_labels(panel) for panel in panels[1:]]
    tasks = "; ".join(f"{naming} names: {scores.n} tasks" for naming, scores in scored)
    return Drawing(
        name=name,
        title=f"Capabilities, {model.label}",
        caption=f"{view.definition} for each dangerous capability, shrunk towards the mean of its "
        "domain (empirical Bayes), with the observed share as a tick and the number of tasks at the right; "
        f"{tasks}; lines are 95% confidence intervals of the shrunken share, or of the observed share where "
        f"a domain has fewer than {MIN_CELLS} capabilities and nothing is shrunk.",
        rows=(tuple(panels),),
        width=TWO_COLUMNS,
        key=(
            *(
                Key(f"shrunken, {naming} names", model.colour, MARKER[naming], FILLED[naming], line=1.0)
                for naming, _ in scored
            ),
            Key("observed", FAINT, "|", size=TICK),
        ),
    )


def _rows(present: set[str]) -> tuple[list[CapabilityRow], float]:
    """The rows in the order of the taxonomy, and their height in inches."""
    rows: list[CapabilityRow] = []
    place = 0.0
    for domain in taxonomy().domains.values():
        names = [name for name in domain.capabilities if name in present]
        if not names:
            continue
        rows.append(CapabilityRow(capitalised(domain.name), place, None))
        place += LINE + BETWEEN
        for name in names:
            lines = wrap(name, LABEL)
            tall = LINE * len(lines)
            rows.append(CapabilityRow("\n".join(lines), place + (tall - LINE) / 2, name))
            place += tall + BETWEEN
    return rows, place


def _panel(
    view: View, model: ModelView, naming: Naming, plan: tuple[Sequence[CapabilityRow], float]
) -> Panel:
    rows, height = plan

    def draw(axes: Axes) -> None:
        row_axis(axes, [row.label for row in rows], [row.place for row in rows])
        axes.set_ylim(height, -LINE)
        for row, label in zip(rows, axes.get_yticklabels(), strict=True):
            label.set_linespacing(1.1)
            if row.capability is None:
                label.set_fontweight("bold")
            else:
                _draw_capability(axes, row.place, model, naming, row.capability)
        share_axis(axes, "x", 100, view.axis_label)

    return Panel(
        name=f"capabilities-{naming}",
        title=f"{model.label}, {naming} names",
        caption="",
        height=height + LINE,
        draw=draw,
        left=widest([line for row in rows for line in row.label.split("\n")]) + 0.12,
        right=text_width("n = 1000") + 0.12,
    )


def _draw_capability(axes: Axes, place: float, model: ModelView, naming: Naming, capability: str) -> None:
    observed = model.run.scores.naming[naming].parts["capability"].get(capability)
    if observed is None:
        return
    write_beside(axes, place, f"n = {observed.domain.n}", colour=FAINT)
    shrunken = model.run.shrunken[naming].get(capability)
    if shrunken is not None:
        point(axes, place, 100 * shrunken.shrunken, scaled(shrunken.ci95), mark_style(model.colour, naming))
    interval = scaled(observed.domain.ci95) if shrunken is None else None
    point(axes, place, in_percent(observed.domain.value), interval, MarkStyle(FAINT, "|", size=TICK))


def _without_labels(panel: Panel) -> Panel:
    def draw(axes: Axes) -> None:
        panel.draw(axes)
        axes.set_yticks(axes.get_yticks(), ["" for _ in axes.get_yticks()])

    return replace(panel, draw=draw, left=0.15)
