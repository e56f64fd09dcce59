"""The figures of runs, with one call; a notebook shows them."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from propensitybench.errors import BadInput
from propensitybench.metrics.analysis import analyse
from propensitybench.pages.figures.writing import FORMATS, Figure, Format, write_figures
from propensitybench.presentation.progress import OnStage, Stage, shown_stages
from propensitybench.runs import comparable
from propensitybench.runs.read import Runs, runs_of


class Figures(tuple[Figure, ...]):
    """Figures that were written, one after another; a notebook shows all of them.

    Attributes:
        notes: differences between the runs that a reader has to know of.
    """

    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        return "".join(figure._repr_html_() for figure in self)

    def __repr__(self) -> str:
        folders = {str(path.parent) for figure in self for path in figure.files}
        names = ", ".join(figure.name for figure in self)
        return f"<{len(self)} figures in {', '.join(sorted(folders))}: {names}>"


def figures(
    runs: Runs,
    folder: str | os.PathLike[str],
    *,
    only: str | Collection[str] = (),
    formats: Sequence[Format] = FORMATS,
    on_progress: OnStage | None = None,
) -> Figures:
    """Writes figures of runs, for papers and pages, and shows them in a notebook.

    Args:
        runs: one or more, or their files or folders. The runs of a comparison share a figure.
        folder: figures of an earlier call are replaced; other files are left alone.
        only: names of figures, such as ``overview``; by default all for which the runs have data.
        formats: ``svg``, and ``png`` with 300 dots per inch.
        on_progress: is told each figure; None shows a bar in a terminal or a notebook.

    Raises:
        BadInput: a run cannot be read, runs cannot be compared, a name is not that of a figure, or the folder
            cannot be used.
    """
    found = comparable(runs_of(runs))
    if unknown := sorted(set(formats) - set(FORMATS)):
        raise BadInput(f"formats: must be of {', '.join(FORMATS)}, found {unknown[0]!r}")
    with shown_stages("figures", on_progress) as tell:
        written = write_figures(
            analyse(found.runs),
            Path(folder),
            formats,
            only=(only,) if isinstance(only, str) else only,
            on_figure=lambda done, total: tell(Stage("figures", done, total)),
        )
    made = Figures(written)
    made.notes = tuple(found.notes)
    return made
