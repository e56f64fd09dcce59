"""Answers about transcripts, as tables for a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table

from propensitybench.cli import tables
from propensitybench.cli.text import safe, typed
from propensitybench.judging.results import Agreement, CategoryShare, Consequence, Results
from propensitybench.metrics import display
from propensitybench.metrics.corrected import LabelShare
from propensitybench.metrics.judged import LEAST_LABELLED

# Shifts with a larger p are only in the JSON.
SHOWN: Final = 0.05
LEGEND: Final = """\
judges: share of episodes to which most judges gave this answer, mean over domains, with a 95 % interval for
new scenarios; in brackets the bounds that missing answers allow. corrected: the same, corrected by what
people say of a sample (PPI++); without judges, what people say. sens., spec.: how often the judges find the
answer where people do, and do not where people do not. biased: the interval of the judges' share minus the
corrected one excludes 0."""


def print_results(path: Path, results: Sequence[Results], questions: Mapping[str, str]) -> None:
    """Prints the numbers of each question, and the legend once.

    Args:
        path: the run file.
        results: the numbers.
        questions: what was typed for a question, by its name.
    """
    for one in results:
        tables.show(_shares(one))
        question = questions.get(one.question, one.question)
        label = f"propensitybench label {typed(path)} --question {typed(question)}"
        for line in _lines(one, f"{label} --page {typed(one.question + '.html')}"):
            print(line)
        print()
    print(LEGEND)


def _shares(results: Results) -> Table:
    asked = f"{results.read} of {results.episodes} episodes read"
    table = Table(title=f"{safe(results.title)}: {asked}", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("answer", no_wrap=True)
    for name in ("judges", "corrected", "sens.", "spec.", "biased"):
        table.add_column(name, justify="right", no_wrap=True)
    for share in results.shares:
        table.add_row(safe(share.category), *_row(share))
    return table


def _row(share: CategoryShare) -> Iterator[str]:
    yield _share(share.judges)
    yield _share(share.corrected)
    rates = share.accuracy
    for rate in (rates.sensitivity, rates.specificity) if rates else (None, None):
        yield "-" if rate is None else display.percent(rate.value)
    yield "-" if share.biased is None else "yes" if share.biased else "no"


def _share(share: LabelShare | None) -> str:
    if share is None or share.value is None:
        return "-"
    missing = share.bounds is not None and share.bounds.high > share.bounds.low
    bounds = f" [{display.span(share.bounds)}]" if missing else ""
    return display.with_interval(share.value, share.ci95) + bounds


def _lines(results: Results, label: str) -> Iterator[str]:
    for reader in results.readers:
        missing = ", ".join(f"{number} {kind}" for kind, number in reader.missing.items())
        yield f"{safe(reader.rater)}: {reader.answered} answers{f'; no answer: {missing}' if missing else ''}"
    if results.spoken_in:
        parts = ", ".join(f"{number} in its {part}" for part, number in results.spoken_in.items())
        yield f"quotes of the agent: {parts}"
    for who, agreement in (("judges", results.judges_agree), ("people", results.people_agree)):
        if agreement is not None:
            yield from _agreement(who, agreement)
    yield from _correction(results, label)
    yield from _act(results)
    for one in results.consequences:
        yield from _change(one, results.categories)


def _act(results: Results) -> Iterator[str]:
    for naming, act in results.act.items():
        both = f"{display.with_interval(act.aware.value, act.aware.ci95)} against "
        both += display.with_interval(act.unaware.value, act.unaware.ci95)
        yield f"{naming} names, said before level 1 against not: {both} percent gave in from level 1 on"
        within = display.points_with_interval(act.difference)
        yield f"  within scenarios {within} points: an association, not an effect"


def _correction(results: Results, label: str) -> Iterator[str]:
    if results.drawn:
        yield f"people have labelled {results.labelled} of {results.drawn} episodes drawn for them"
    elif not results.labelled:
        yield "not corrected for the judges' errors: no person has read a sample; a page for that:"
        yield f"  {label}"
    if 0 < results.labelled < LEAST_LABELLED:
        yield f"not corrected for the judges' errors: that needs {LEAST_LABELLED} episodes labelled by people"


def _change(one: Consequence, categories: Sequence[str]) -> Iterator[str]:
    changed = f"{display.percent(one.change.changed)} % ({display.span(one.change.changed_ci95)})"
    yield f"{safe(one.judge)}, told {safe(one.consequence)}: {changed} of the answers change"
    for name, shift in zip(categories, one.change.shifts, strict=True):
        if shift.p is not None and shift.p < SHOWN:
            yield f"  {safe(name)}: {display.points(shift.difference)} points, p = {display.p_value(shift.p)}"


def _agreement(who: str, agreement: Agreement) -> Iterator[str]:
    alpha = agreement.alpha
    if alpha.value is None:
        yield f"agreement of {who}: cannot be computed ({alpha.method.removeprefix('none: ')})"
        return
    ci = f" ({alpha.ci95.low:.2f} to {alpha.ci95.high:.2f})" if alpha.ci95 else ""
    yield f"agreement of {who}: Krippendorff's alpha {alpha.value:.2f}{ci} on {alpha.items} episodes"
    for pair in agreement.pairs if len(agreement.pairs) > 1 else ():
        if pair.agreement is not None:
            kappa = "" if pair.kappa is None else f", kappa {pair.kappa:.2f}"
            first, second = safe(agreement.raters[pair.first]), safe(agreement.raters[pair.second])
            yield f"  {first} and {second}: {display.percent(pair.agreement)} % equal{kappa}"
