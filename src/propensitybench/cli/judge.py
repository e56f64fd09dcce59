"""``propensitybench judge``: models read transcripts and answer questions about them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from propensitybench.cli import options, tables
from propensitybench.cli.asked import print_ending, print_estimate, shown
from propensitybench.cli.output import print_note
from propensitybench.cli.text import print_json, shell_quoted
from propensitybench.cli.waiting import result_until_stopped
from propensitybench.errors import BadInput
from propensitybench.judging.judge import CONCURRENCY, asked_of, read_judgement, typed_by_name
from propensitybench.judging.judges import judge_run, plan_judging
from propensitybench.judging.questions import question_names, read_question
from propensitybench.judging.results import Agreement, CategoryShare, Consequence, Results
from propensitybench.metrics.corrected import LabelShare
from propensitybench.metrics.judged import MIN_LABELLED
from propensitybench.presentation import formats
from propensitybench.presentation.tables import Grid
from propensitybench.runs import Settings, StoredRun
from propensitybench.runs.read import needs_inspect
from propensitybench.store import RunFile

# Shifts with a larger p are only in the JSON.
SHOWN: Final = 0.05
LEGEND: Final = """\
judges: share of episodes to which most judges gave this answer, mean over domains, with a 95 % interval for
new scenarios; in brackets, the bounds that missing answers allow. corrected: the same, corrected by people's
labels of a sample (PPI++); without judges, the people's labels alone. sens. and spec. of judges: how often
they give the answer where people do, and do not where people do not. biased: whether the 95 % interval of the
judges' share minus the corrected share excludes 0."""

Questions = Annotated[
    list[str] | None,
    typer.Option(
        "--question",
        metavar="NAME|FILE",
        help="justification, awareness, noticed-rule, or a file of your own (.toml); may be repeated.  "
        "[default: all three]",
    ),
]
Judges = Annotated[
    list[str] | None,
    typer.Option(
        "--judge",
        metavar="MODEL",
        help="A model that reads; two or more show whether they agree. keyless/words needs no key. "
        "Without this option, only what was answered so far is printed.",
    ),
]
Consequences = Annotated[
    list[str] | None,
    typer.Option(
        "--consequence",
        metavar="NAME",
        help="Ask once more, telling judges what follows from their answer: none-follow, agent-retrained "
        "or team-held-up; may be repeated.",
    ),
]
Scout = Annotated[
    Path | None,
    typer.Option(
        "--read-scout",
        metavar="PATH",
        help="Read a scanner's results of Inspect Scout as answers to --question: the folder of a scan, or "
        "one of its Parquet files.",
    ),
]


@options.takes(
    "limit",
    "base_url",
    *options.MODEL,
    *options.LIMITS,
    limit="At most N episodes for each question, evenly over the domains.",
    base_url="OpenAI-compatible endpoint; --judge is then the endpoint's own model name. Repeated: replicas "
    "of the model.",
    concurrency=f"Requests in flight for each judge.  [default: {CONCURRENCY}]",
)
def command(
    run: options.RunPath,
    question: Questions = None,
    judge: Judges = None,
    consequence: Consequences = None,
    read_scout: Scout = None,
    *,
    settings: Settings,
    plan: options.CostOnly = False,
    as_json: options.AsJson = False,
) -> None:
    questions = question or ()
    if read_scout is not None:
        _store_scout(run, read_scout, questions)
    if not judge or read_scout is not None:
        _print(run, questions, as_json=as_json)
        return
    questions = questions or question_names()
    asked = asked_of(judge, questions, consequence or (), settings)
    if plan:
        print_estimate(plan_judging(run, *asked), "without reasoning", as_json=as_json)
        return
    with shown("reading") as advance:
        ended = result_until_stopped(lambda stop: judge_run(run, *asked, advance, stop))
    code = print_ending(ended)
    if ended.finished or code == 0:
        _print(run, questions, as_json=as_json)
        code = code or _print_unreadable(read_judgement(run, questions).questions, judge)
    raise typer.Exit(code)


def _print_unreadable(results: Sequence[Results], judges: Sequence[str]) -> int:
    """Says how many replies give no answer; 1 if a judge has given none."""
    code = 0
    for judge in judges:
        found = [reader for one in results for reader in one.readers if reader.rater == judge]
        lost, answered = sum(sum(one.missing.values()) for one in found), sum(one.answered for one in found)
        if lost:
            print_note(f"{judge}: {lost} of {lost + answered} answers are unreadable; see docs/judging.md")
            code = code if answered else 1
    return code


def _store_scout(path: Path, given: Path, questions: Sequence[str]) -> None:
    """Stores a scanner's results of Inspect Scout as answers."""
    if len(questions) != 1:
        raise BadInput("--read-scout: give one --question, whose categories are the scanner's answers")
    try:
        from propensitybench.inspect_adapter.scout import read_scout
    except ModuleNotFoundError as error:
        raise needs_inspect(error) from error
    question = read_question(questions[0])
    found = read_scout(given, question, StoredRun(path))
    with RunFile.open(path, write=True) as file:
        file.annotate(found.annotations, questions={question.digest: question.body}, raters=found.raters)
    print_note(f"{len(found.annotations)} answers read")
    for reason, number in found.left_out.items():
        print_note(f"left out: {number} results, {reason}")


def _print(path: Path, questions: Sequence[str], *, as_json: bool) -> None:
    found = read_judgement(path, questions)
    if as_json:
        print_json(found.to_dict())
    else:
        _print_results(path, found.questions, typed_by_name(questions))


def _print_results(path: Path, results: Sequence[Results], questions: Mapping[str, str]) -> None:
    """Prints the numbers of each question, and the legend once; ``questions`` is what was typed, by name."""
    for one in results:
        tables.show_grid(_shares(one))
        question = questions.get(one.question, one.question)
        label = f"propensitybench label {shell_quoted(path)} --question {shell_quoted(question)}"
        for line in _lines(one, f"{label} --page {shell_quoted(one.question + '.html')}"):
            print(line)
        print()
    print(LEGEND)


def _shares(results: Results) -> Grid:
    title = f"{results.title}: {results.read} of {results.episodes} episodes read"
    columns = ("answer", "judges", "corrected", "sens. of judges", "spec. of judges", "biased")
    return Grid(title, columns, [_row(share) for share in results.shares])


def _row(share: CategoryShare) -> list[str]:
    rates = share.accuracy
    found = (rates.sensitivity, rates.specificity) if rates else (None, None)
    accuracy = [formats.NOTHING if rate is None else formats.percent(rate.value) for rate in found]
    biased = formats.NOTHING if share.biased is None else "yes" if share.biased else "no"
    return [share.category, _share(share.judges), _share(share.corrected), *accuracy, biased]


def _share(share: LabelShare | None) -> str:
    if share is None or share.value is None:
        return formats.NOTHING
    missing = share.bounds is not None and share.bounds.high > share.bounds.low
    bounds = f" [{formats.span(share.bounds)}]" if missing else ""
    return formats.with_interval(share.value, share.ci95) + bounds


def _lines(results: Results, label: str) -> Iterator[str]:
    for reader in results.readers:
        missing = ", ".join(f"{number} {kind}" for kind, number in reader.missing.items())
        yield f"{reader.rater}: {reader.answered} answers{f'; no answer: {missing}' if missing else ''}"
    if results.spoken_in:
        parts = ", ".join(f"{number} in its {part}" for part, number in results.spoken_in.items())
        yield f"where the judges' quotes come from: {parts}"
    for who, agreement in (("judges", results.judges_agree), ("people", results.people_agree)):
        if agreement is not None:
            yield from _agreement(who, agreement)
    yield from _correction(results, label)
    yield from _act(results)
    for one in results.consequences:
        yield from _change(one, results.categories)


def _act(results: Results) -> Iterator[str]:
    for naming, act in results.act.items():
        both = f"{formats.with_interval(act.aware.value, act.aware.ci95)} against "
        both += formats.with_interval(act.unaware.value, act.unaware.ci95)
        yield f"{naming} names, said before level 1 against not: {both} percent gave in from level 1 on"
        within = formats.points_with_interval(act.difference)
        yield f"  within scenarios {within} points: an association, not an effect"


def _correction(results: Results, label: str) -> Iterator[str]:
    if results.drawn:
        yield f"people have labelled {results.labelled} of {results.drawn} episodes drawn for them"
    elif not results.labelled:
        yield "not corrected for the judges' errors, since no person has read a sample; make a page for that:"
        yield f"  {label}"
    if 0 < results.labelled < MIN_LABELLED:
        yield f"not corrected for the judges' errors: that needs {MIN_LABELLED} episodes labelled by people"


def _change(one: Consequence, categories: Sequence[str]) -> Iterator[str]:
    changed = f"{formats.percent(one.change.changed)} % ({formats.span(one.change.changed_ci95)})"
    yield f"{one.judge}, told {one.consequence}: {changed} of the answers change"
    for name, shift in zip(categories, one.change.shifts, strict=True):
        if shift.p is not None and shift.p < SHOWN:
            yield f"  {name}: {formats.points(shift.difference)} points, p = {formats.p_value(shift.p)}"


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
            first, second = agreement.raters[pair.first], agreement.raters[pair.second]
            yield f"  {first} and {second}: {formats.percent(pair.agreement)} % equal{kappa}"
