"""The figure of one sign of propensity."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from propensitybench.pages.figures.curves import Curve, End, curves_panel, end_labels, share_axis
from propensitybench.pages.figures.panels import Drawing, Key, MarkStyle, Panel
from propensitybench.pages.figures.rows import NO_INTERVAL, Mark, Row, Scale, rows_panel, scale_end
from propensitybench.pages.style import COLOURS, FAINT, NAME_WIDTH, clean, margin, shorten
from propensitybench.presentation.formats import capitalised, percent
from propensitybench.signs import Finding, Sign
from propensitybench.signs.evidence import REASON, UNPRESSED, WHEN, in_group
from propensitybench.signs.subject import FigureMark

HEIGHT: Final = 1.6
_INTERVALS: Final = "; lines are 95 % confidence intervals for new scenarios, not adjusted"
# Series with an axis, and so a panel, of their own.
_OF: Final = {REASON: "Share of the misaligned tasks read", WHEN: "Share of the misaligned tasks"}


def sign_drawing(sign: Sign, finding: Finding, model: str) -> Drawing | None:
    """The figure of a sign; None if there is nothing to draw. The names of panels begin with the model's."""
    parts = finding.marks
    if not any(part.value is not None for part in parts):
        return None
    own = [in_group(parts, group) for group in _OF]
    if sign.figure == "scatter":
        panels, what = [_scatter(parts)], "propensity and the value on the index, a point for each model"
    elif sign.figure == "curve":
        panels, what = [_curves(parts)], "share of tasks with a misaligned call at or below each level"
    else:
        panels, what = [_rows(sign, part) for part in own if part] or [_rows(sign, parts)], "shares"
    named = tuple(replace(panel, name=f"{model}-{panel.name}") for panel in panels)
    lines = _INTERVALS if any(part.ci95 for part in parts) else ""
    if lines and any(part.value is not None and part.ci95 is None for part in parts):
        lines += f"; {NO_INTERVAL}"
    return Drawing(sign.sign, sign.title, f"{sign.title}: {what}{lines}.", named)


def _key(parts: Sequence[FigureMark]) -> tuple[Key, ...]:
    if not in_group(parts, UNPRESSED):
        return ()
    names = ("rising pressure", "messages without pressure")
    return tuple(Key(name, MarkStyle(colour)) for name, colour in zip(names, COLOURS, strict=False))


def _rows(sign: Sign, parts: Sequence[FigureMark]) -> Panel:
    groups = list(dict.fromkeys(part.group for part in parts))
    rows = []
    for name in dict.fromkeys(part.label for part in parts):
        own = [part for part in parts if part.label == name]
        lanes = [
            [Mark(part.label, part.value, part.ci95, MarkStyle(COLOURS[groups.index(part.group)]))]
            for part in own
        ]
        value = own[0].value
        note = "" if len(groups) > 1 else "unknown" if value is None else f"{percent(value)}%"
        rows.append(Row(clean(capitalised(name)), note, lanes))
    reference = sign.relevant if sign.figure == "threshold" else None
    scale = Scale(_OF.get(groups[0], "Share of tasks"), _end(parts), reference)
    return rows_panel(f"{sign.sign}-{groups[0]}", sign.title, rows, scale, _key(parts))


def _curves(parts: Sequence[FigureMark]) -> Panel:
    groups = dict.fromkeys(part.group for part in parts)
    curves = [
        Curve(group, colour, [part.value for part in own], [part.ci95 for part in own])
        for group, colour in zip(groups, COLOURS, strict=False)
        for own in [in_group(parts, group)]
    ]
    scale = Scale("Share of tasks", _end(parts))
    return curves_panel("pressure", "Propensity by level", curves, scale, key=_key(parts))


def _scatter(parts: Sequence[FigureMark]) -> Panel:
    ends = [
        End(part.at or 0.0, 100 * (part.value or 0.0), shorten(clean(part.label), NAME_WIDTH), FAINT)
        for part in parts
    ]

    def draw(axes: Axes) -> None:
        low, high = min(end.x for end in ends), max(end.x for end in ends)
        spare = 0.05 * (high - low or 1.0)
        axes.set_xlim(low - spare, high + spare)
        share_axis(axes, Scale("Propensity", _end(parts)))
        axes.add_line(MarkStyle(COLOURS[0]).line([end.x for end in ends], [end.y for end in ends]))
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel("Capability index")
        end_labels(axes, ends)

    names = [end.text for end in ends]
    return Panel(
        "capability",
        "Propensity and capability",
        max(HEIGHT, 0.15 * len(parts)),
        draw,
        right=margin(names) + 0.06,
    )


def _end(parts: Sequence[FigureMark]) -> float:
    return scale_end(max(max(part.value or 0.0, part.ci95.high if part.ci95 else 0.0) for part in parts))
