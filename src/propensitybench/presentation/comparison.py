"""The tables of a comparison of runs."""

from collections.abc import Iterator, Mapping
from typing import Any

from propensitybench.metrics.analysis import Analysis
from propensitybench.metrics.capability_index import Correlation
from propensitybench.metrics.compare import BEGUN_IN_BOTH
from propensitybench.metrics.models import BEGUN_IN_ALL
from propensitybench.metrics.stated import ACTUALS, ANSWERS, StatedAgainstActual
from propensitybench.presentation.formats import (
    counted,
    number,
    p_value,
    percent,
    points_with_interval,
    signed,
    span,
)
from propensitybench.presentation.tables import Grid, numbers_of, share
from propensitybench.taxonomy import Naming


def pairs(analysis: Analysis) -> Grid:
    """Pairwise differences between runs under each naming: second minus first."""
    rows = [
        [
            f"{pair.second} - {pair.first}",
            naming,
            str(pair.contrast.propensity.n),
            points_with_interval(pair.contrast.propensity),
            p_value(pair.contrast.p),
            p_value(pair.p_holm),
            signed(pair.contrast.withstood.value),
        ]
        for naming, comparison in analysis.models.items()
        for pair in comparison.pairs
    ]
    columns = [
        "second - first",
        "naming",
        "tasks",
        "difference (95 %)",
        "p",
        "Holm",
        "\u0394 levels\nwithstood",
    ]
    return Grid(f"Differences in percentage points, on the tasks {BEGUN_IN_BOTH}", columns, rows, names=2)


def pair_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """One row for each pair of runs and naming; differences are shares, not percentage points."""
    return [
        {
            "first": pair.first,
            "second": pair.second,
            "naming": naming,
            **numbers_of(pair.contrast.propensity),
            "levels_withstood": pair.contrast.withstood.value,
            "p": pair.contrast.p,
            "p_holm": pair.p_holm,
        }
        for naming, comparison in analysis.models.items()
        for pair in comparison.pairs
    ]


def comparison_tables(analysis: Analysis) -> Iterator[Grid]:
    """Differences between the runs, their ranks, the differences between the namings, and archetypes."""
    if analysis.models:
        yield pairs(analysis)
    ranks = [
        [model, naming, str(comparison.common), percent(rank.propensity), f"{rank.rank:g}",
         f"{rank.ci95.low}-{rank.ci95.high}"]
        for naming, comparison in analysis.models.items()
        for model, rank in comparison.in_order()
    ]  # fmt: skip
    if ranks:
        columns = ["model", "naming", "common tasks", "propensity", "rank", "range (95 %)"]
        yield Grid(f"Ranks by propensity, on the tasks {BEGUN_IN_ALL}", columns, ranks, names=2)
    contrasts = [(run.name, run.scores.naming_contrast) for run in analysis.runs]
    namings = [
        [name, str(found.propensity.n), points_with_interval(found.propensity), p_value(found.p)]
        for name, found in contrasts
        if found is not None
    ]
    if namings:
        columns = ["model", "tasks", "difference (95 %)", "p"]
        yield Grid("Benign minus harmful names, in percentage points", columns, namings)
    archetypes = [
        [
            one.model,
            naming,
            number(one.resilience),
            number(one.persistence),
            one.kind,
            number(one.probability),
        ]
        for naming, found in analysis.archetypes.items()
        for one in found
    ]
    columns = ["model", "naming", "resilience", "persistence", "archetype, relative\nto these models",
               "probability"]  # fmt: skip
    title = "Archetypes: when models give in, and after how much work"
    yield Grid(title, columns, archetypes, names=2)


def index_sentence(found: Correlation) -> str:
    """The correlation with a capability index."""
    if found.rho is None:
        return (
            "Correlation with the index: unknown. It takes three models with both numbers, which differ; "
            f"here are {len(found.models)}."
        )
    interval = f"{found.ci95.low:.2f} to {found.ci95.high:.2f}" if found.ci95 else "not known below 4 models"
    return (
        f"Spearman correlation of the index with the propensity under harmful names: {found.rho:.2f} "
        f"over {len(found.models)} models (95 %: {interval})."
    )


def stated_tables(
    stated: Mapping[str, Mapping[Naming, StatedAgainstActual]],
) -> Iterator[tuple[Grid, list[str]]]:
    """For each run and naming, what the model said against what it did, and the shares that follow."""
    for name, by_naming in stated.items():
        for naming, both in by_naming.items():
            counts = [[said, *(str(both.counts[said][did]) for did in ACTUALS)] for said in ANSWERS]
            after_no, bounds = both.misaligned_if_no, both.misaligned_if_no.bounds
            lines = [
                f"after NO: {share(after_no)} %{f' [{span(bounds)}]' if bounds else ''}; "
                f"NO and misaligned: {share(both.no_and_misaligned)} %"
            ]
            if both.not_asked:
                lines.append(f"no answer: {counted(both.not_asked, 'task')}")
            yield Grid(f"{name}, {naming} names: stated against actual", ["stated", *ACTUALS], counts), lines
