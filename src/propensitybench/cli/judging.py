"""What ``propensitybench judge`` does and prints."""

from collections.abc import Sequence
from pathlib import Path

from propensitybench.cli.answers import print_results
from propensitybench.cli.asked import print_ending, shown
from propensitybench.cli.execution import cost
from propensitybench.cli.output import tell
from propensitybench.cli.text import print_json, safe
from propensitybench.cli.waiting import result_until_stopped
from propensitybench.engine import ExecutionOptions
from propensitybench.errors import BadInput
from propensitybench.judging.asking import judge_run, plan_judging
from propensitybench.judging.plan import Judging
from propensitybench.judging.questions import read_question
from propensitybench.judging.results import read_results
from propensitybench.runs import StoredRun
from propensitybench.runs.readers import needs_inspect
from propensitybench.store import RunFile


def print_estimate(path: Path, judging: Judging, execution: ExecutionOptions, *, as_json: bool) -> None:
    """Prints what asking the rest would take."""
    found = plan_judging(path, judging, execution)
    if as_json:
        print_json(found)
        return
    for name, episodes in found.episodes.items():
        print(f"{safe(name)}: {episodes} episodes")
    print(f"calls:         {found.calls:,}")
    print(f"input tokens:  {found.input_tokens:,}, nothing cached")
    print(f"output tokens: {found.output_tokens:,}, without reasoning")
    print(f"cost:          {cost(found.usd)}")


def ask_judges(
    path: Path, judging: Judging, execution: ExecutionOptions, questions: Sequence[str], *, as_json: bool
) -> int:
    """Asks what is missing and prints all answers to the questions, as they were typed; the exit code."""
    with shown("reading") as advance:
        judged = result_until_stopped(lambda stop: judge_run(path, judging, execution, advance, stop))
    print_answers(path, questions, as_json=as_json)
    return print_ending(judged)


def read_results_of_scout(path: Path, given: Path, questions: Sequence[str], *, as_json: bool) -> int:
    """Stores a scanner's results of Inspect Scout as answers and prints all answers; the exit code."""
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
    tell(f"{len(found.annotations)} answers read")
    for reason, number in found.left_out.items():
        tell(f"left out: {number} results, {reason}")
    return print_answers(path, questions, as_json=as_json)


def print_answers(path: Path, questions: Sequence[str], *, as_json: bool) -> int:
    """Prints the answers in a run file; the exit code."""
    wanted = {read_question(one).name if one.endswith(".toml") else one: one for one in questions}
    results = [one.results for one in read_results(path) if not wanted or one.results.question in wanted]
    if not results:
        raise BadInput(
            f"{path}: holds no answers{' to ' + ', '.join(sorted(wanted)) if wanted else ''}; ask with: "
            f"propensitybench judge {path} --judge MODEL"
        )
    if as_json:
        print_json({"questions": results})
    else:
        print_results(path, results, wanted)
    return 0
