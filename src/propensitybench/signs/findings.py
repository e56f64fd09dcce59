"""Tests the signs of propensity on runs: `propensitybench.findings`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.errors import BadInput
from propensitybench.judging.labels import annotated_file, read_labels
from propensitybench.judging.probe_numbers import stated_policy
from propensitybench.judging.results import read_by_people
from propensitybench.judging.sample import stored_sample
from propensitybench.metrics.analysis import run_names
from propensitybench.metrics.capability_index import IndexEntry
from propensitybench.metrics.estimates import competent_terms
from propensitybench.metrics.scores import low_competence
from propensitybench.presentation.words import NamedAgent, notices
from propensitybench.runs import Run, comparable
from propensitybench.runs.comparison import changed_scenarios, first_of, read_index
from propensitybench.runs.read import PathLike, Runs, TaskAnswers, read_stated, runs_of
from propensitybench.signs.find import ModelFindings, find
from propensitybench.signs.nine import Sign, declared
from propensitybench.signs.subject import Read, Subject
from propensitybench.signs.words import ADJUSTED, LIMITS, MARKS
from propensitybench.store import RunFile
from propensitybench.tabular import Tabular
from propensitybench.taxonomy import ESCALATING, Naming

FORMAT: Final = "propensitybench-findings/3"
PLACEBO: Final = "placebo"
REASONS: Final = "justification"
# Two runs of one model that differ only in other settings are two arms of the same tasks.
_SAME_IN_ARMS: Final = ("model", "options", "seed", "template", "overlays", "rules")


class Findings(msgspec.Struct, Tabular, frozen=True):
    """The nine signs of models, tested; as a table, a row for each model and sign.

    Attributes:
        format: of ``findings.json``, whose contents these are.
        package: version that tested them.
        adjusted: how verdicts are adjusted.
        limits: what is not claimed.
        notes: what a reader has to know of the runs.
        declared: the signs as they were tested.
        models: what was found, in the order of the runs.
    """

    format: str
    package: str
    adjusted: str
    limits: tuple[str, ...]
    notes: tuple[str, ...]
    declared: tuple[Sign, ...]
    models: tuple[ModelFindings, ...]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Verdict, effect and interval of each sign of each model; ``relevant`` is the declared effect."""
        return [
            {
                "model": model.name,
                "number": sign.number,
                "sign": sign.sign,
                "verdict": finding.verdict,
                "effect": finding.effect,
                "low": finding.interval and finding.interval.low,
                "high": finding.interval and finding.interval.high,
                "relevant": sign.relevant,
                "n": finding.size,
                "missing": finding.missing,
            }
            for model in self.models
            for sign, finding in zip(self.declared, model.findings, strict=True)
        ]

    def __repr__(self) -> str:
        models = []
        for model in self.models:
            counts = Counter(finding.verdict for finding in model.findings)
            models.append(f"{model.name}: {', '.join(f'{counts[one]} {one}' for one in MARKS)}")
        return f"<Findings of {len(self.declared)} signs, {'; '.join(models)}>"


def findings(
    runs: Runs,
    *,
    index: Mapping[str, IndexEntry] | PathLike | None = None,
    stated: Sequence[PathLike] = (),
    relevant: Mapping[str, float] | None = None,
) -> Findings:
    """Tests the nine signs of propensity on models; docs/findings.md explains the verdicts.

    Args:
        runs: runs, or paths of run files, Inspect logs and folders of them: one for each model, played under
            rising pressure, and the same tasks in the arm ``placebo`` where signs 2 and 3 are to be tested.
        index: a capability index by model address, or a JSON file of one.
        stated: logs of the Inspect task ``stated_policy``, used instead of the answers to `probe`.
        relevant: other smallest effects of interest, by the name of the sign: shares or correlations.

    Raises:
        BadInput: there is nothing to test, a run is the placebo of none, runs were made from different
            versions of the data, or a file or an effect cannot be used.
    """
    signs = declared(relevant)
    entries = index if index is None or isinstance(index, Mapping) else read_index(Path(index))
    given = runs_of(runs)
    arms, notes = _paired_arms(given)
    subjects = _subjects(arms, [Path(log) for log in stated])
    notes += comparable([run for run, _ in arms]).notes
    low = [_low_competence(one) for one in subjects]
    return findings_of(signs, find(subjects, entries, relevant), notes, low)


def findings_of(
    signs: Sequence[Sign],
    models: Sequence[ModelFindings],
    notes: Sequence[str] = (),
    low_competence: Sequence[str] = (),
) -> Findings:
    """Findings with what is needed to read them; ``low_competence`` is that of each model, if known."""
    low = low_competence or [""] * len(models)
    agents = zip(models, low, strict=True)
    about = notices(NamedAgent(model.name, model.model, why) for model, why in agents)
    return Findings(
        FORMAT, version("propensitybench"), ADJUSTED, LIMITS, (*about, *notes), tuple(signs), tuple(models)
    )


class _PairedRuns(NamedTuple):
    """A run under rising pressure, and the same tasks without pressure if they were played."""

    run: Run
    placebo: Run | None


def _paired_arms(runs: Sequence[Run]) -> tuple[list[_PairedRuns], list[str]]:
    """The runs with their placebo arms, and notes on what was left out."""
    played = [run for run in runs if run.manifest.protocol.arm == ESCALATING]
    placebos = [run for run in runs if run.manifest.protocol.arm == PLACEBO]
    if not played:
        raise BadInput("findings: none of these runs was played under rising pressure, the arm escalating")
    used = [*played, *placebos]
    _check_versions(used)
    notes = [
        f"{run.file}: the arm {run.manifest.protocol.arm} says nothing about these signs; see "
        "`experiment analyse`"
        for run in runs
        if run not in used
    ]
    notes += [f"{run.file}: is only shard {run.shard} of its run" for run in used if run.shard]
    pairs = [_PairedRuns(run, _placebo_of(run, placebos)) for run in played]
    for one in placebos:
        if not any(pair.placebo is one for pair in pairs):
            raise BadInput(
                f"{one.file}: is the placebo of none of these runs; give the run under rising pressure with "
                "the same model, options, template and number of messages"
            )
    return pairs, notes


def _check_versions(runs: Sequence[Run]) -> None:
    for run in runs:
        if not run.records:
            raise BadInput(f"{run.file}: no task has begun; there is nothing to test")
    if changed := changed_scenarios(runs):
        raise BadInput(
            f"findings: the texts of {len(changed)} scenarios differ between these runs "
            f"({first_of(changed)}); give runs of one version of the data"
        )
    if len({run.manifest.rules for run in runs}) > 1:
        raise BadInput("findings: these runs were played by different rules; give runs of one version")


def _placebo_of(run: Run, placebos: Sequence[Run]) -> Run | None:
    def settings(of: Run) -> list[Any]:
        return [of.levels, *(getattr(of.manifest, name) for name in _SAME_IN_ARMS)]

    fitting = [one for one in placebos if settings(one) == settings(run)]
    if len(fitting) > 1:
        raise BadInput(f"{fitting[0].file} and {fitting[1].file}: are both the placebo of {run.file}")
    return fitting[0] if fitting else None


def _low_competence(subject: Subject) -> str:
    return low_competence(
        {
            f"{name} names": table.measure(competent_terms(table)).value
            for name, table in subject.tables.items()
        }
    )


def _subjects(pairs: Sequence[_PairedRuns], logs: Sequence[Path]) -> list[Subject]:
    runs = [pair.run for pair in pairs]
    rows = zip(run_names(runs), pairs, read_stated(logs, runs), strict=True)
    return [_subject(name, pair, answers) for name, pair, answers in rows]


def _subject(name: str, pair: _PairedRuns, answers: TaskAnswers | None) -> Subject:
    """A model, with what it said in a log or else to the probe, and what people read in its episodes."""
    subject = Subject(name, pair.run, pair.placebo, answers)
    path = annotated_file(pair.run)
    if path is None:
        return subject
    stated = stated_policy(path) if answers is None else answers
    return msgspec.structs.replace(subject, stated=stated, read=_reasons(path, subject.naming))


def _reasons(path: Path, naming: Naming) -> Read | None:
    """What people found in a run's misaligned episodes of one naming; None if nobody has read any."""
    labels = next((one for one in read_labels(path, REASONS) if one.given), None)
    if labels is None:
        return None
    question = labels.question
    with RunFile.open(path) as file:
        sample = read_by_people(labels, stored_sample(file, question), naming)
    none = question.names.index(question.none)
    return Read(sample, question.names, none, (*labels.people, *labels.judges))
