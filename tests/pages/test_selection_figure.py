"""The figure of pressure and selection."""

from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from helpers.records import BIO, misaligned, resisted

from propensitybench.metrics import Interval, RunRecords
from propensitybench.metrics.analysis import analyse
from propensitybench.metrics.hierarchical import Fit, LevelHazard, Posterior
from propensitybench.pages.figures import write_figures
from propensitybench.pages.figures.panels import compose
from propensitybench.pages.figures.selection import selection_drawing
from propensitybench.pages.figures.view import view_of
from propensitybench.pages.figures.writing import drawings
from propensitybench.pages.style import ONE_COLUMN, styled

RUN = RunRecords(
    "a.run", "a", 12, [misaligned(1, scenario="x", domain=BIO), resisted(scenario="y", domain=BIO)]
)


def around(value: float) -> Posterior:
    return Posterior(value, Interval(0.8 * value, 1.3 * value))


def fitted() -> Fit:
    levels = tuple(
        LevelHazard(around(0.06 * 0.9**level), around(0.05), around(0.02), around(1.0)) for level in range(13)
    )
    return Fit(levels, None, None, None, around(0.2), {}, {}, None, None, 700, 90, 40, "")


def test_the_figure_is_written_with_a_fit_only(tmp_path: Path) -> None:
    analysis = analyse([RUN])
    assert "selection" not in {drawing.name for drawing in drawings(analysis)}
    empty = Fit((), None, None, None, None, {}, {}, None, None, 0, 0, 2, "too few")
    assert "selection" not in {drawing.name for drawing in drawings(analysis, {"a": {"harmful": empty}})}
    figures = write_figures(analysis, tmp_path, ("svg",), {"a": {"harmful": fitted()}})
    (found,) = (figure for figure in figures if figure.name == "selection")
    assert found.width == ONE_COLUMN
    assert "a, harmful names: 40 scenarios" in found.caption
    text = "".join(ET.fromstring(found.files[0].read_text(encoding="utf-8")).itertext())
    for label in ("still at risk", "all, had none ended", "average scenario", "selection"):
        assert label in text


def test_lines_are_the_fits_hazards_in_percent() -> None:
    view = view_of(analyse([RUN]))
    with styled():
        drawing = selection_drawing(view, {"a": {"harmful": fitted()}})
        assert drawing is not None
        (axes,) = compose(drawing.panels).axes
    everyone, at_risk, average = (np.asarray(line.get_ydata()) for line in axes.lines)
    assert at_risk.tolist() == pytest.approx([6 * 0.9**level for level in range(13)])
    assert everyone.tolist() == pytest.approx([5.0] * 13)
    assert average.tolist() == pytest.approx([2.0] * 13)
    assert axes.get_ylim()[1] >= 6 * 1.3
