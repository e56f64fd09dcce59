"""Writes the figures of an analysis to files."""

from base64 import b64encode
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Final, Literal

from matplotlib.figure import Figure as Canvas

from propensitybench.errors import BadInput
from propensitybench.escaping import html
from propensitybench.metrics.analysis import Analysis
from propensitybench.pages.figures.archetypes import archetype_drawing
from propensitybench.pages.figures.capabilities import capability_drawing
from propensitybench.pages.figures.contrasts import contrast_drawing, pair_drawing
from propensitybench.pages.figures.levels import hazard_drawing, level_drawing, survival_drawing
from propensitybench.pages.figures.missing import missing_drawing
from propensitybench.pages.figures.overview import overview_drawing
from propensitybench.pages.figures.panels import Drawing, compose
from propensitybench.pages.figures.parts import naming_drawing, part_drawing, zero_drawing
from propensitybench.pages.figures.selection import Fits, selection_drawing
from propensitybench.pages.figures.svg import MAKER, svg_of
from propensitybench.pages.figures.view import view_of
from propensitybench.pages.style import styled
from propensitybench.store.atomic import draft_folder

Format = Literal["svg", "png"]
OnFigure = Callable[[int, int], None]
FORMATS: Final[tuple[Format, ...]] = ("svg", "png")

# How far into a file its maker is looked for, which tells our figures from other files.
_MARK_WITHIN: Final = 4096


@dataclass(frozen=True, repr=False)
class Figure:
    """A figure that was written.

    Attributes:
        name: begins the names of its files: one for each panel, or one for all.
        title: a few words.
        caption: one sentence: what it shows, the number of tasks, the meaning of lines and bands.
        width: inches of each file at its final size, at which all text is at least 7 points high.
        files: in each format.
    """

    name: str
    title: str
    caption: str
    width: float
    files: tuple[Path, ...]

    def _repr_html_(self) -> str:
        kinds = {path.suffix for path in self.files}
        shown = ".svg" if ".svg" in kinds else ".png"
        images = "".join(_image(path) for path in self.files if path.suffix == shown)
        return f"<figure>{images}<figcaption>{html(self.caption)}</figcaption></figure>"

    def __repr__(self) -> str:
        return f"<Figure {self.name}, {self.title}: {', '.join(path.name for path in self.files)}>"


def _image(path: Path) -> str:
    kind = "svg+xml" if path.suffix == ".svg" else "png"
    data = b64encode(path.read_bytes()).decode()
    return f'<img src="data:image/{kind};base64,{data}" alt="" style="max-width: 100%; background: white">'


def write_figures(
    analysis: Analysis,
    out: Path,
    formats: Sequence[Format] = FORMATS,
    fits: Fits | None = None,
    only: Collection[str] = (),
    on_figure: OnFigure | None = None,
) -> list[Figure]:
    """Writes every figure for which an analysis has data; the output is deterministic.

    Figures of an earlier call are replaced; other files in the folder are left alone.

    Args:
        analysis: the runs.
        out: the folder.
        formats: of the files.
        fits: hierarchical models by the run's name and naming, which have a figure of their own.
        only: names of figures; without them, all are written.
        on_figure: called after each figure with the number that are drawn, and of all.

    Raises:
        BadInput: no task has ended, a name is not that of a figure, a file that is not one of our figures
            would be overwritten, or the folder cannot be written.
    """
    if not any(run.scores.naming for run in analysis.runs):
        raise BadInput("no task of these runs has ended: nothing to draw")
    with styled():
        found = drawings(analysis, fits)
        if unknown := sorted({*only} - {drawing.name for drawing in found}):
            raise BadInput(
                f"no figure is called {unknown[0]!r}; these runs have "
                f"{', '.join(drawing.name for drawing in found)}"
            )
        chosen = [drawing for drawing in found if not only or drawing.name in only]
        return write_drawings(chosen, out, formats, on_figure)


def write_drawings(
    to_draw: Sequence[Drawing],
    out: Path,
    formats: Sequence[Format],
    on_figure: OnFigure | None = None,
) -> list[Figure]:
    """Writes drawings to files; raises `BadInput` as `write_figures` does."""
    with styled():
        names = [name for drawing in to_draw for name in drawing.files]
        _check_replaceable([out / f"{name}.{form}" for name in names for form in formats])
        try:
            out.mkdir(parents=True, exist_ok=True)
            with draft_folder(out / "figures") as draft:
                written = []
                for drawing in to_draw:
                    written.append(_written(drawing, draft, out, formats))
                    if on_figure is not None:
                        on_figure(len(written), len(to_draw))
                for path in (path for figure in written for path in figure.files):
                    (draft / path.name).replace(path)
        except OSError as error:
            raise BadInput(f"{out}: cannot be written ({error.strerror or error})") from error
    return written


def drawings(analysis: Analysis, fits: Fits | None = None) -> list[Drawing]:
    """Every figure for which an analysis has data, before it is drawn."""
    view = view_of(analysis)
    if not view.namings:
        return [missing_drawing(view)]
    found = [
        overview_drawing(view),
        zero_drawing(view),
        level_drawing(view),
        naming_drawing(view),
        contrast_drawing(view),
        part_drawing(view, "domain"),
        part_drawing(view, "dimension"),
        capability_drawing(view),
        survival_drawing(view),
        hazard_drawing(view),
        selection_drawing(view, fits or {}),
        archetype_drawing(view),
        pair_drawing(view),
        missing_drawing(view),
    ]
    remarks = "".join(f"; {one}" for one in view.remarks)
    return [
        replace(one, caption=f"{one.caption.removesuffix('.')}{remarks}.") for one in found if one is not None
    ]


def _check_replaceable(paths: Sequence[Path]) -> None:
    for path in paths:
        try:
            with path.open("rb") as file:
                ours = MAKER.encode() in file.read(_MARK_WITHIN)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise BadInput(f"{path}: cannot be replaced ({error.strerror})") from error
        if not ours:
            raise BadInput(f"{path}: is not a figure of this program; move it or give another --out DIR")


def _written(drawing: Drawing, draft: Path, out: Path, formats: Sequence[Format]) -> Figure:
    """Writes a figure into the draft folder; its files are named as they will be in ``out``."""
    files = []
    for name, panels in drawing.files.items():
        canvas = compose(panels)
        about = {
            "Title": drawing.title if drawing.together else panels[0].title,
            "Description": drawing.caption,
        }
        for form in formats:
            image = svg_of(canvas, about) if form == "svg" else _png_of(canvas, about)
            files.append(out / f"{name}.{form}")
            (draft / files[-1].name).write_bytes(image)
    return Figure(drawing.name, drawing.title, drawing.caption, drawing.width, tuple(files))


def _png_of(canvas: Canvas, about: dict[str, str]) -> bytes:
    image = BytesIO()
    canvas.savefig(image, format="png", metadata={**about, "Software": MAKER})
    return image.getvalue()
