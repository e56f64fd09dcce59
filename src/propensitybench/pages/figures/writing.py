"""Writes the figures of an analysis to files."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Final, Literal

from propensitybench.errors import BadInput
from propensitybench.metrics.analysis import Analysis
from propensitybench.metrics.hierarchical import Fit
from propensitybench.pages.figures.archetypes import archetype_drawing
from propensitybench.pages.figures.capabilities import capability_drawing
from propensitybench.pages.figures.layout import Drawing, compose
from propensitybench.pages.figures.levels import hazard_drawing, survival_drawing
from propensitybench.pages.figures.missing import missing_drawing
from propensitybench.pages.figures.overview import overview_drawings
from propensitybench.pages.figures.pairs import pair_drawing
from propensitybench.pages.figures.selection import selection_drawing
from propensitybench.pages.figures.view import view_of
from propensitybench.pages.style import styled
from propensitybench.store.atomic import draft_folder
from propensitybench.taxonomy import Naming

Format = Literal["svg", "png"]
FORMATS: Final[tuple[Format, ...]] = ("svg", "png")
Fits = Mapping[str, Mapping[Naming, Fit]]

# Written near the beginning of every file, to tell our figures from other files.
MAKER: Final = "PropensityBench figures"
_MARK_WITHIN: Final = 4096


@dataclass(frozen=True)
class Figure:
    """A figure that was written.

    Attributes:
        name: name of its files, without the suffix.
        title: a few words.
        caption: one sentence: what it shows, the number of tasks, the meaning of lines and bands.
        width: inches at its final size, at which all text is at least 7 points high.
        files: one per format.
    """

    name: str
    title: str
    caption: str
    width: float
    files: tuple[Path, ...]


def write_figures(
    analysis: Analysis,
    out: Path,
    formats: Sequence[Format] = FORMATS,
    fits: Fits | None = None,
    only: Collection[str] = (),
) -> list[Figure]:
    """Writes every figure for which an analysis has data; the output is deterministic.

    Figures of an earlier call are replaced; other files in the folder are left alone.

    Args:
        analysis: the runs.
        out: the folder.
        formats: of the files.
        fits: hierarchical models by the run's name and naming, which have a figure of their own.
        only: names of figures; without them, all are written.

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
        return write_drawings(chosen, out, formats)


def write_drawings(to_draw: Sequence[Drawing], out: Path, formats: Sequence[Format]) -> list[Figure]:
    """Writes drawings to files; raises `BadInput` as `write_figures` does."""
    with styled():
        _check_replaceable([out / f"{drawing.name}.{form}" for drawing in to_draw for form in formats])
        try:
            out.mkdir(parents=True, exist_ok=True)
            with draft_folder(out / "figures") as draft:
                written = [_write(drawing, draft, out, formats) for drawing in to_draw]
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
    several = len(view.models) > 1
    endings = [
        f"-{number}-{_slug(model.run.name)}" if several else ""
        for number, model in enumerate(view.models, start=1)
    ]
    optional = [
        *overview_drawings(view),
        survival_drawing(view),
        hazard_drawing(view),
        *(
            selection_drawing(view, model, (fits or {}).get(model.run.name, {}), f"selection{ending}")
            for model, ending in zip(view.models, endings, strict=True)
        ),
        *(
            capability_drawing(view, model, f"capabilities{ending}")
            for model, ending in zip(view.models, endings, strict=True)
        ),
        archetype_drawing(view),
        *(pair_drawing(view, naming) for naming in view.namings),
        missing_drawing(view),
    ]
    return [_with_remarks(drawing, view.remarks) for drawing in optional if drawing is not None]


def _with_remarks(drawing: Drawing, remarks: Sequence[str]) -> Drawing:
    return replace(drawing, caption="; ".join([drawing.caption.removesuffix("."), *remarks]) + ".")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "run"


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


def _write(drawing: Drawing, draft: Path, out: Path, formats: Sequence[Format]) -> Figure:
    """Writes a figure into the draft folder; its files are named as they will be in ``out``."""
    canvas = compose(drawing)
    files = []
    for form in formats:
        metadata: dict[str, str | None] = {"Title": drawing.title, "Description": drawing.caption}
        metadata |= {"Creator": MAKER, "Date": None} if form == "svg" else {"Software": MAKER}
        image = BytesIO()
        canvas.savefig(image, format=form, metadata=metadata)
        files.append(out / f"{drawing.name}.{form}")
        (draft / files[-1].name).write_bytes(image.getvalue())
    return Figure(drawing.name, drawing.title, drawing.caption, drawing.width, tuple(files))
