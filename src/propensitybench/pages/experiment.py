"""The page of an experiment: one HTML file with its figure, which works offline."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from propensitybench.escaping import json_document
from propensitybench.experiments.folder import ExperimentFolder
from propensitybench.experiments.results import ExperimentAnalysis, ModelAnalysis
from propensitybench.metrics.intervals import Interval
from propensitybench.pages.figures.experiment import write_experiment_figure
from propensitybench.pages.page_folder import new_folder
from propensitybench.pages.template import render
from propensitybench.presentation.formats import (
    NOTHING,
    p_value,
    percent,
    points_with_interval,
    with_interval,
)
from propensitybench.presentation.tables import Grid


def write_experiment_page(opened: ExperimentFolder, analysis: ExperimentAnalysis, out: Path) -> Path:
    """Writes the page, the analysis as JSON and the figure into a folder; the page's path.

    Raises:
        BadInput: the folder holds other files, or cannot be written.
    """
    registration, experiment = opened.registration, opened.experiment
    with new_folder(out) as folder:
        (folder / "analysis.json").write_text(json_document(analysis), encoding="utf-8", newline="\n")
        (figure,) = write_experiment_figure(analysis, folder)
        page = render(
            "experiment.html.j2",
            styles=("experiment.css",),
            analysis=analysis,
            registration=registration,
            models=[(model, list(_tables(model))) for model in analysis.models],
            image=b64encode((folder / "experiment.svg").read_bytes()).decode(),
            caption=figure.caption,
            design=_json(experiment.design),
            registered="" if registration.digest == experiment.digest else _json(registration.design),
        )
        (folder / "index.html").write_text(page, encoding="utf-8", newline="\n")
    return out / "index.html"


def _tables(model: ModelAnalysis) -> Iterator[Grid]:
    effects = [
        [
            one.name,
            one.what,
            points_with_interval(one.difference),
            _points(one.difference.bounds),
            p_value(one.p),
            p_value(one.p_adjusted),
            one.standing,
        ]
        for one in model.effects
    ]
    yield Grid(
        "Effects",
        ["effect", "difference", "points (95 %)", "bounds", "p", "adjusted p", "standing"],
        effects,
    )
    odds = [
        [
            one.name,
            one.reference,
            f"{one.ratio:.2f} ({one.ci95.low:.2f} to {one.ci95.high:.2f})",
            p_value(one.p),
            p_value(one.p_adjusted),
            one.standing,
        ]
        for one in model.odds
    ]
    if odds:
        columns = ["level", "against", "odds ratio (95 %)", "p", "adjusted p", "standing"]
        yield Grid("Factors", columns, odds)
    kinds = sorted({kind for arm in model.arms for kind in arm.conduct})
    arms = [
        [
            arm.label,
            with_interval(arm.propensity.value, arm.propensity.ci95),
            ", ".join(f"{count} {name}" for name, count in sorted(arm.tasks.items())),
            *(str(arm.conduct.get(kind, 0)) for kind in kinds),
        ]
        for arm in model.arms
    ]
    yield Grid("Arms", ["arm", "misaligned (95 %)", "outcomes", *kinds], arms)
    doses = [[str(one.level), percent(one.difference), _points(one.ci95)] for one in model.doses]
    if doses:
        title = "Placebo-adjusted effect of pressure by level"
        yield Grid(title, ["level", "difference", "simultaneous 95 % interval"], doses)


def _points(interval: Interval | None) -> str:
    return NOTHING if interval is None else f"{percent(interval.low)} to {percent(interval.high)}"


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
