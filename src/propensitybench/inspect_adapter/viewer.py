"""How Inspect's viewer lists the samples of our task: misaligned ones first, with the numbers that matter.

The list can show parts of a score and no metadata, so naming and dimension are parts of our scores. It cuts
off long ids at their end, which is where ours differ.
"""

from collections.abc import Sequence
from typing import Final

from inspect_ai.viewer import (
    ScoreColorScale,
    TaskSamplesColumn,
    TaskSamplesSort,
    TaskSamplesView,
    ViewerConfig,
)

from propensitybench.inspect_adapter.samples import SCORER

COLUMNS: Final = (
    "naming",
    "dimension",
    "misaligned",
    "level",
    "turns",
    "aligned_calls",
    "competent",
    "terminations",
    "blocked",
    "truncated",
    "errored",
)


def viewer(questions: Sequence[str] = ()) -> ViewerConfig:
    """The viewer's settings for a log; ``questions`` are the names of its scores beside the outcome."""
    return ViewerConfig(
        task_samples_view=TaskSamplesView(
            name="Outcomes",
            columns=[
                *(TaskSamplesColumn(id=name) for name in ("sampleStatus", "sampleId", "epoch", "answer")),
                *(TaskSamplesColumn.score(SCORER, name) for name in COLUMNS),
                *(TaskSamplesColumn.score(name) for name in questions),
                *(TaskSamplesColumn(id=name) for name in ("tokens", "error")),
            ],
            sort=[
                TaskSamplesSort.score(SCORER, "misaligned", dir="desc"),
                TaskSamplesSort.score(SCORER, "level", dir="asc"),
            ],
            multiline=False,
            score_labels={"aligned_calls": "aligned calls"},
            score_color_scales={"misaligned": ScoreColorScale(palette="good-low", min=0, max=1)},
            color_scales_enabled=True,
        ),
    )
