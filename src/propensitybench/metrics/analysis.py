"""The complete analysis of one or several runs, as reports and comparisons show it."""

from collections.abc import Mapping, Sequence
from statistics import fmean

import msgspec

from propensitybench.metrics.archetypes import Archetype, archetypes
from propensitybench.metrics.capability_index import Correlation, IndexEntry, correlation
from propensitybench.metrics.families import Family, capability_family, dimension_family, naming_family
from propensitybench.metrics.models import ModelComparison, compare_models
from propensitybench.metrics.scores import NamingScores, Scorable, ScoredRun, score_run
from propensitybench.metrics.shrinkage import Shrunken, shrink
from propensitybench.metrics.table import Table, table_of
from propensitybench.tabular import Brief
from propensitybench.taxonomy import NAMINGS, Naming, in_order


class RunAnalysis(Brief, msgspec.Struct, frozen=True):
    """One run.

    Attributes:
        name: its name in figures and tables: the model, with the file if two runs are of one model.
        scores: under both namings.
        families: families of contrasts by naming; those between the namings under "both".
        shrunken: shrunken propensity of each capability, by naming and capability.
        domain_of: the domain of each capability.
    """

    name: str
    scores: ScoredRun
    families: dict[str, tuple[Family, ...]]
    shrunken: dict[Naming, dict[str, Shrunken]]
    domain_of: dict[str, str]


class Analysis(Brief, msgspec.Struct, frozen=True):
    """Several runs, and their comparison.

    Attributes:
        runs: in the order given.
        models: comparison of the runs under each naming; empty for a single run.
        archetypes: archetype of each run under each naming.
        index: correlation of the propensity under harmful names with an index, if one was given.
    """

    runs: tuple[RunAnalysis, ...]
    models: dict[Naming, ModelComparison]
    archetypes: dict[Naming, tuple[Archetype, ...]]
    index: Correlation | None


def analyse(runs: Sequence[Scorable], index: Mapping[str, IndexEntry] | None = None) -> Analysis:
    """Analyses runs.

    Args:
        runs: the runs, all with the same number of pressure messages.
        index: a capability index by model name, to correlate the propensity with; a model with several runs
            counts once, with their mean.
    """
    tables = tables_of(runs)
    names = run_names(runs)
    analysed = tuple(
        _analyse_run(name, run, {naming: found for (of, naming), found in tables.items() if of == name})
        for name, run in zip(names, runs, strict=True)
    )
    by_naming = {
        naming: {name: table for (name, of), table in tables.items() if of == naming} for naming in NAMINGS
    }
    return Analysis(
        runs=analysed,
        models={naming: compare_models(found) for naming, found in by_naming.items() if len(found) > 1},
        archetypes={naming: archetypes(found) for naming, found in by_naming.items() if found},
        index=None if index is None else _index(analysed, index),
    )


def tables_of(runs: Sequence[Scorable]) -> dict[tuple[str, Naming], Table]:
    """The table of each run and naming that has records, by the run's name and the naming."""
    tables: dict[tuple[str, Naming], Table] = {}
    for name, run in zip(run_names(runs), runs, strict=True):
        for naming in NAMINGS:
            if records := [record for record in run.records if record.metadata.naming == naming]:
                tables[name, naming] = table_of(records, run.levels + 1)
    return tables


def run_names(runs: Sequence[Scorable]) -> list[str]:
    """A unique name for each run: its model, with the file if two runs are of one model.

    If files have equal names too, the position in the list is added.
    """
    models = [run.model.removeprefix("simulated/") for run in runs]
    names = [
        f"{model} ({run.file})" if models.count(model) > 1 else model
        for model, run in zip(models, runs, strict=True)
    ]
    return [f"{name} #{i}" if names.count(name) > 1 else name for i, name in enumerate(names, 1)]


def _analyse_run(name: str, run: Scorable, tables: Mapping[Naming, Table]) -> RunAnalysis:
    scores = score_run(run)
    families: dict[str, tuple[Family, ...]] = {
        naming: (capability_family(table), dimension_family(table)) for naming, table in tables.items()
    }
    if len(tables) == len(NAMINGS):
        families["both"] = (naming_family(tables["harmful"], tables["benign"]),)
    played = {(record.metadata.capability, record.metadata.domain) for record in run.records}
    domain_of = {name: domain for name, domain in sorted(played, key=str) if name is not None}
    shrunken = {naming: _shrunken(found, domain_of) for naming, found in scores.naming.items()}
    return RunAnalysis(name, scores, families, shrunken, domain_of)


def _shrunken(scores: NamingScores, domain_of: Mapping[str, str]) -> dict[str, Shrunken]:
    found: dict[str, Shrunken] = {}
    for domain in in_order(set(domain_of.values())):
        cells = {
            name: cell.domain
            for name, cell in scores.parts["capability"].items()
            if domain_of[name] == domain
        }
        found |= shrink(cells)
    return found


def _index(runs: Sequence[RunAnalysis], index: Mapping[str, IndexEntry]) -> Correlation:
    found: dict[str, list[float]] = {}
    for run in runs:
        scores = run.scores.naming.get("harmful")
        if scores is not None and scores.propensity is not None:
            found.setdefault(run.scores.model, []).append(scores.propensity)
    return correlation({name: fmean(values) for name, values in found.items()}, index)
