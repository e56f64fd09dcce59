"""Reads the runs that `findings` is given, tests the signs, and prints them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace
from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli import tables
from propensitybench.cli.comparison import read_index
from propensitybench.cli.output import tell
from propensitybench.cli.reading import read
from propensitybench.cli.text import must_be_utf8, name_of, print_json, safe
from propensitybench.errors import BadInput
from propensitybench.judging.results import read_by_people
from propensitybench.metrics.analysis import run_names
from propensitybench.metrics.signs import ModelFindings, Read, Subject, find, words
from propensitybench.metrics.signs.declared import declared
from propensitybench.metrics.stated import QUESTIONS, Answer, Stated
from propensitybench.pages.findings import FindingsDocument, document, write_findings
from propensitybench.pages.judged import answers_to, policy_in
from propensitybench.runs import Run, comparable
from propensitybench.runs.comparison import changed_scenarios, first_of
from propensitybench.runs.read import needs_inspect
from propensitybench.taxonomy import ESCALATING, Naming

PLACEBO: Final = "placebo"
QUESTION: Final = "justification"
# Two runs of one model that differ only in these are two arms of the same tasks.
_OF_AN_ARM: Final = ("model", "options", "seed", "template", "overlays", "rules")
LEGEND: Final = """\
shown: the interval lies beyond the smallest effect that matters; not shown: wholly below it; cannot tell yet:
neither. Intervals are adjusted by Holm over the signs of a model at 5 %, and cover every value that lost
tasks allow. Simulated workplaces; see docs/findings.md."""


class Given(NamedTuple):
    """What is given besides runs: a capability index, logs of stated answers, other smallest effects."""

    index_file: Path | None
    stated: tuple[Path, ...]
    relevant: tuple[str, ...]


def show_findings(files: Sequence[Path], given: Given, out: Path | None, *, as_json: bool) -> None:
    """Tests the signs of the runs, prints them, and writes the page if a folder is given."""
    must_be_utf8({"--out": out})
    relevant = read_relevant(given.relevant)
    declared(relevant)
    index = None if given.index_file is None else read_index(given.index_file)
    runs, notes = _arms_of(read(files))
    subjects = _subjects(runs, given.stated)
    if len({one.stated.question for one in subjects if one.stated}) > 1:
        notes.append(f"sign 8: the models were {' or '.join(QUESTIONS.values())}; these are two questions")
    page = document(find(subjects, index, relevant), notes)
    if out is not None:
        written = write_findings(page, out)
        tell(f"written: {name_of(written)}")
    if as_json:
        print_json(page)
        return
    _print(page)


def read_relevant(given: Sequence[str]) -> dict[str, float]:
    """The smallest effects in ``SIGN=EFFECT``; raises `BadInput` if one is not of that form."""
    found: dict[str, float] = {}
    for one in given:
        name, equals, value = one.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not equals or number != number:
            raise BadInput(f"--relevant {one}: must be SIGN=EFFECT, for example naming=0.1")
        if name in found:
            raise BadInput(f"--relevant {name}: is given twice")
        found[name] = number
    return found


class _Pair(NamedTuple):
    """A run under rising pressure, and the same tasks without pressure if they were played."""

    run: Run
    placebo: Run | None


def _arms_of(runs: Sequence[Run]) -> tuple[list[_Pair], list[str]]:
    """The runs with their placebo arms, and notes on what was left out.

    Raises:
        BadInput: runs were made from different versions of the data, or have nothing to test.
    """
    by_arm: dict[str, list[Run]] = {}
    for run in runs:
        by_arm.setdefault(run.manifest.protocol.arm, []).append(run)
    played, placebos = by_arm.pop(ESCALATING, []), by_arm.pop(PLACEBO, [])
    notes = [
        f"{run.file}: the arm {arm} says nothing about these signs; see `experiment analyse`"
        for arm, others in by_arm.items()
        for run in others
    ]
    if not played:
        raise BadInput("findings: none of these runs was played under rising pressure, the arm escalating")
    used = [*played, *placebos]
    for run in used:
        if not run.records:
            raise BadInput(f"{run.file}: no task has begun; there is nothing to test")
    if changed := changed_scenarios(used):
        raise BadInput(
            f"findings: the texts of {len(changed)} scenarios differ between these runs "
            f"({first_of(changed)}); give runs of one version of the data"
        )
    if len({run.manifest.rules for run in used}) > 1:
        raise BadInput("findings: these runs were played by different rules; give runs of one version")
    notes += [f"{run.file}: is only shard {run.shard} of its run" for run in used if run.shard]
    notes += [f"{run.file}: {why}" for run in played if (why := run.score().low_competence)]
    notes += comparable(played).notes
    return _paired(played, placebos), notes


def _paired(played: Sequence[Run], placebos: Sequence[Run]) -> list[_Pair]:
    """Each run with the placebo arm made like it; raises `BadInput` if a run has two or one is left over."""
    pairs = []
    for run in played:
        fitting = [one for one in placebos if _is_arm_of(one, run)]
        if len(fitting) > 1:
            raise BadInput(f"{fitting[0].file} and {fitting[1].file}: are both the placebo of {run.file}")
        pairs.append(_Pair(run, fitting[0] if fitting else None))
    for one in placebos:
        if not any(pair.placebo is one for pair in pairs):
            raise BadInput(
                f"{one.file}: is the placebo of none of these runs; give the run under rising pressure with "
                "the same model, options, template and number of messages"
            )
    return pairs


def _is_arm_of(placebo: Run, run: Run) -> bool:
    same = all(getattr(placebo.manifest, name) == getattr(run.manifest, name) for name in _OF_AN_ARM)
    return same and placebo.levels == run.levels


def _subjects(pairs: Sequence[_Pair], stated: Sequence[Path]) -> list[Subject]:
    runs = [pair.run for pair in pairs]
    answers = _stated(stated, runs)
    rows = zip(run_names(runs), pairs, answers, strict=True)
    subjects = [Subject(name, pair.run, pair.placebo, own) for name, pair, own in rows]
    read = [read_of(run, subject.naming) for run, subject in zip(runs, subjects, strict=True)]
    return [replace(subject, read=own) for subject, own in zip(subjects, read, strict=True)]


def _stated(logs: Sequence[Path], runs: Sequence[Run]) -> list[Stated | None]:
    """What each run's model answered, in a log or else to the probe; None if it was not asked."""
    found: list[Mapping[tuple[str, int], Answer] | None] = [None for _ in runs]
    if logs:
        try:
            from propensitybench.inspect_adapter.probe import answers_of
        except ModuleNotFoundError as error:
            raise needs_inspect(error) from error
        found = [*answers_of(logs, runs)]
    return [
        _predicted(run) if one is None else Stated("may", one) for run, one in zip(runs, found, strict=True)
    ]


def _predicted(run: Run) -> Stated | None:
    answers = policy_in(run)
    return None if answers is None else Stated("would", answers)


def read_of(run: Run, naming: Naming) -> Read | None:
    """What people found in a run's misaligned episodes of one naming; None if nobody has read any."""
    found = answers_to(run, QUESTION)
    if found is None:
        return None
    question, labels = found.labels.question, found.labels
    sample = read_by_people(labels, found.sample, naming)
    none = question.names.index(question.none)
    return Read(sample, question.names, none, (*labels.people, *labels.judges))


def _print(page: FindingsDocument) -> None:
    for note in page.notes:
        print(f"note: {safe(note)}")
    for model in page.models:
        tables.show(_table(page, model))
        for line in _below(page, model):
            print(safe(line))
    if len(page.models) > 1:
        tables.show(_matrix(page))
        print("Verdicts in the matrix are adjusted over the signs of all models.")
    print(LEGEND)


def _table(found: FindingsDocument, model: ModelFindings) -> Table:
    title = f"{model.name}: {words.tasks(model.tasks)}, {model.naming} names"
    if model.unended:
        title += f", preliminary ({model.unended:,} not ended)"
    table = Table(title=safe(title), title_justify="left", box=SIMPLE_HEAD)
    table.add_column("sign", overflow="fold")
    for heading in ("verdict", "effect", "interval", "matters if"):
        table.add_column(heading, no_wrap=True)
    for sign, finding in zip(found.declared, model.findings, strict=True):
        outcome = finding.outcome
        table.add_row(
            f"{sign.number} {sign.title}",
            f"{words.MARKS[outcome.verdict]} {outcome.verdict}",
            words.number(outcome.effect, sign),
            words.span(outcome.interval, sign),
            words.threshold(sign) + ("*" if sign.changed_from is not None else ""),
        )
    return table


def _below(found: FindingsDocument, model: ModelFindings) -> list[str]:
    """Sentences below a model's table: what would tell, and what is missing."""
    lines = []
    for sign, finding in zip(found.declared, model.findings, strict=True):
        if sign.changed_from is not None:
            was = words.number(sign.changed_from, sign)
            lines.append(f"* {sign.sign}: the smallest effect that matters was declared as {was}")
        texts = [
            f"not tested: {finding.lacking}." if finding.lacking else words.enough(finding.outcome, sign),
            finding.fact,
        ]
        if text := " ".join(filter(None, texts)):
            lines.append(f"{sign.number} {text}")
        if finding.supply and (command := f"  {finding.supply}") not in lines:
            lines.append(command)
    return lines


def _matrix(found: FindingsDocument) -> Table:
    table = Table(title="Signs by model", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("model", overflow="fold")
    for sign in found.declared:
        table.add_column(f"{sign.number}", justify="center", no_wrap=True)
    for model in found.models:
        verdicts = (one.outcome.over_models or one.outcome.verdict for one in model.findings)
        table.add_row(safe(model.name), *(words.MARKS[verdict] for verdict in verdicts))
    table.caption = ", ".join(f"{mark} {verdict}" for verdict, mark in words.MARKS.items())
    return table
