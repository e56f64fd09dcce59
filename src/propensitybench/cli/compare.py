"""``propensitybench compare``: runs on the tasks that they share."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from propensitybench.cli import fits, options
from propensitybench.cli.score import print_remarks, share
from propensitybench.cli.tables import show, table
from propensitybench.cli.text import print_json
from propensitybench.metrics import display
from propensitybench.metrics.analysis import Analysis, RunAnalysis
from propensitybench.metrics.archetypes import Archetype
from propensitybench.metrics.capability_index import Correlation
from propensitybench.metrics.compare import BEGUN_IN_BOTH, P_TESTS
from propensitybench.metrics.models import BEGUN_IN_ALL, ModelComparison
from propensitybench.metrics.ranks import ALL_COVERED
from propensitybench.metrics.stated import ACTUALS, ANSWERS, StatedAgainstActual
from propensitybench.runs import compare
from propensitybench.runs.read import runs_in
from propensitybench.taxonomy import Naming

LEGEND: Final = f"""\
tasks: those {BEGUN_IN_BOTH}. difference: in percentage points, on these tasks, with a 95 % interval for new
scenarios. levels: difference in levels withstood (0-13; more is safer).
p: {P_TESTS}.
Holm: adjusted for the number of pairs. common tasks: those {BEGUN_IN_ALL}. rank: 1 is the lowest
propensity on these. The ranges are simultaneous:
{ALL_COVERED}."""
STATED: Final = """\
stated: what the model says before its first reply, whether it would use the tool. missing: blocked,
truncated and errored tasks. after NO: percent of tasks that end misaligned although the model said NO, with
a 95 % interval for new scenarios, which covers every value that missing answers and scores allow; in
brackets the lowest and highest of these."""


def command(
    files: options.RunPaths,
    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            metavar="FILE",
            help="JSON file with a capability index to correlate the propensity with: for three models or "
            'more, named as in --model, {"MODEL": {"value": 1.2, "source": "...", "date": "...", '
            '"family": "..."}}.',
        ),
    ] = None,
    stated: Annotated[
        list[Path] | None,
        typer.Option(
            "--stated",
            metavar="LOG",
            help="A log of the Inspect task propensitybench/stated_policy, to compare what the model said "
            "with what it did; give one or more for each model.",
        ),
    ] = None,
    regress: options.Regress = False,
    as_json: options.AsJson = False,
) -> None:
    found = compare(*runs_in(files), index=index, regress=regress, stated=stated or ())
    if as_json:
        print_json(found.to_dict())
        return
    for note in found.notes:
        print(f"note: {note}")
    _print_analysis(found.analysis)
    if found.regression is not None:
        fits.print_regression(found.regression)
    if found.stated is not None:
        _print_stated(found.stated)
    print_remarks([run.scores for run in found.analysis.runs])


def _print_analysis(analysis: Analysis) -> None:
    for naming, comparison in analysis.models.items():
        if comparison.common or any(pair.contrast.propensity.n for pair in comparison.pairs):
            columns = ["first", "second", "tasks", "difference (95 %)", "levels", "p", "Holm"]
            show(table(f"{naming} names: the second minus the first", columns, _pairs(comparison), names=2))
            columns = ["model", "propensity", "rank", "range (95 %)"]
            title = f"{naming} names: ranks (common tasks: {comparison.common})"
            show(table(title, columns, _ranks(comparison)))
    if any(run.scores.naming_contrast for run in analysis.runs):
        columns = ["model", "tasks", "difference (95 %)", "p"]
        show(table("benign minus harmful names", columns, _namings(analysis.runs)))
    columns = ["model", "naming", "resilience", "persistence", "archetype, relative\nto these models",
               "probability"]  # fmt: skip
    title = "Archetypes: when models give in, and after how much work"
    show(table(title, columns, _archetypes(analysis.archetypes), names=2))
    if analysis.index is not None:
        print(_index(analysis.index))
        missing = sorted({run.scores.model for run in analysis.runs} - set(analysis.index.models))
        if missing:
            print(f"Not in the index under this name, or without a propensity: {', '.join(missing)}.")
    print(LEGEND)


def _pairs(comparison: ModelComparison) -> Iterator[Sequence[str]]:
    for pair in comparison.pairs:
        contrast = pair.contrast
        yield (
            pair.first,
            pair.second,
            str(contrast.propensity.n),
            display.points_with_interval(contrast.propensity),
            display.signed(contrast.withstood.value),
            display.p_value(contrast.p),
            display.p_value(pair.p_holm),
        )


def _ranks(comparison: ModelComparison) -> Iterator[Sequence[str]]:
    for model, rank in comparison.in_order():
        ends = f"{rank.ci95.low}-{rank.ci95.high}"
        yield model, display.percent(rank.propensity), f"{rank.rank:g}", ends


def _namings(runs: Sequence[RunAnalysis]) -> Iterator[Sequence[str]]:
    for run in runs:
        contrast = run.scores.naming_contrast
        if contrast is not None:
            difference = display.points_with_interval(contrast.propensity)
            yield run.name, str(contrast.propensity.n), difference, display.p_value(contrast.p)


def _archetypes(archetypes: Mapping[Naming, Sequence[Archetype]]) -> Iterator[Sequence[str]]:
    for naming, found in archetypes.items():
        for one in found:
            means = (display.number(one.resilience), display.number(one.persistence))
            yield one.model, naming, *means, one.kind, display.number(one.probability)


def _index(found: Correlation) -> str:
    """The correlation with a capability index, in a sentence."""
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


def _print_stated(stated: Mapping[str, Mapping[Naming, StatedAgainstActual]]) -> None:
    """Prints a 2 x 2 table, with missing tasks, for each run and naming."""
    for name, by_naming in stated.items():
        for naming, both in by_naming.items():
            counts = [(said, *(str(both.counts[said][did]) for did in ACTUALS)) for said in ANSWERS]
            show(table(f"{name}, {naming} names: stated against actual", ("stated", *ACTUALS), counts))
            found = both.misaligned_if_no
            bounds = f" [{display.span(found.bounds)}]" if found.bounds else ""
            print(f"after NO: {share(found)} %{bounds}; NO and misaligned: {share(both.no_and_misaligned)} %")
            if both.not_asked:
                print(f"{both.not_asked} tasks have no answer")
            print()
    print(STATED)
