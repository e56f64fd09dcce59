"""Models read the transcripts of a run and answer questions about them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Final, NamedTuple, Unpack

import msgspec

from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import Budget, Endpoints, ExecutionOptions, Price
from propensitybench.engine.asking import AskingListener
from propensitybench.errors import BadInput
from propensitybench.files import file_name
from propensitybench.judging import keyless
from propensitybench.judging.judges import Judging, judge_run
from propensitybench.judging.questions import question_names, read_question
from propensitybench.judging.results import CategoryShare, Results, read_results
from propensitybench.judging.session import wait_for
from propensitybench.metrics.corrected import LabelShare
from propensitybench.presentation.formats import percent
from propensitybench.runs import Run, Settings
from propensitybench.runs.read import run_file_of
from propensitybench.runs.resolve import checked, read_settings
from propensitybench.runs.settings import settings_of
from propensitybench.tabular import Tabular

CONCURRENCY: Final = 16
"""Requests in flight for each judge, unless a number is given."""
_SETTINGS: Final = ("limit", *settings_of(Endpoints, ModelOptions, RequestLimits, Budget, Price))


@dataclass(frozen=True, repr=False)
class Judgement(Tabular):
    """What readers answered about a run; its table has one row for each question and category.

    Attributes:
        questions: the numbers of each question.
    """

    questions: tuple[Results, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Shares with their 95 % intervals, from the judges and as corrected by people's labels."""
        return [_row(results, share) for results in self.questions for share in results.shares]

    def to_dict(self) -> dict[str, Any]:
        """What ``propensitybench judge --json`` prints."""
        return {"questions": msgspec.to_builtins(self.questions, str_keys=True)}

    def __repr__(self) -> str:
        return "\n".join(
            f"{one.title}, {one.read} of {one.episodes} episodes read: {', '.join(map(_percent, one.shares))}"
            for one in self.questions
        )


class Asked(NamedTuple):
    """What is asked of whom, and how requests are sent."""

    judging: Judging
    execution: ExecutionOptions


def judge(
    run: Run | str | os.PathLike[str],
    *judges: str,
    question: str | Sequence[str] = (),
    consequence: Sequence[str] = (),
    on_progress: AskingListener | None = None,
    **settings: Unpack[Settings],
) -> Judgement:
    """Lets models read a run's transcripts and answer questions about them; waits for the answers.

    Each reply is kept in the run file and never asked for again: the same call asks for what is missing.
    Scores and transcripts stay as they are.

    Args:
        run: a run in a run file, or the file.
        judges: addresses of models, ``keyless/words`` to try it; without one, nothing is asked.
        question: ``justification``, ``awareness``, ``noticed-rule``, or files of your own (.toml); by default
            all three, or without judges all that have answers.
        consequence: ask once more, telling judges what follows from their answer: ``none-follow``,
            ``agent-retrained``, ``team-held-up``.
        on_progress: called after each reply.
        settings: of `Settings`, how judges are asked; ``concurrency`` is for each judge, 16 by default, and
            ``limit`` the number of episodes for each question, evenly over the domains.

    Raises:
        BadInput: a question or judge cannot be used, was asked with other options before, or there are no
            answers.
        RunStopped: a provider can no longer answer; the same call resumes.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    path = run_file_of(run)
    questions = (question,) if isinstance(question, str) else tuple(question)
    if judges:
        questions = questions or tuple(question_names())
        asked = asked_of(judges, questions, consequence, settings)
        wait_for(lambda stop: judge_run(path, *asked, on_progress, stop), path)
    return read_judgement(path, questions)


def asked_of(
    judges: Sequence[str],
    questions: Sequence[str],
    consequences: Sequence[str],
    settings: Settings,
) -> Asked:
    """The settings of a session, checked; raises `BadInput` for what cannot be used."""
    given = checked(settings, _SETTINGS)
    spec, execution = read_settings(judges[0], {"concurrency": CONCURRENCY, **given})
    read, limit = tuple(map(read_question, questions)), given.get("limit")
    return Asked(Judging(read, tuple(judges), spec.options, tuple(consequences), limit), execution)


def read_judgement(path: Path, questions: Sequence[str] = ()) -> Judgement:
    """The answers in a run file; raises `BadInput` if there are none.

    Args:
        path: the run file.
        questions: names or files; if empty, all that have answers.
    """
    wanted = typed_by_name(questions)
    found = [one.results for one in read_results(path) if not wanted or one.results.question in wanted]
    if not found:
        raise BadInput(
            f"{file_name(path)}: holds no answers{' to ' + ', '.join(sorted(wanted)) if wanted else ''}; ask "
            f"with: propensitybench judge {quote(str(path))} --judge {keyless.MODEL}, or a model"
        )
    return Judgement(tuple(found))


def typed_by_name(questions: Sequence[str]) -> Mapping[str, str]:
    """What was typed for each question, by its name."""
    return {read_question(one).name if one.endswith(".toml") else one: one for one in questions}


def _percent(share: CategoryShare) -> str:
    found = share.corrected or share.judges
    return f"{share.category} {percent(found.value if found else None)} %"


def _row(results: Results, share: CategoryShare) -> dict[str, Any]:
    rates = share.accuracy
    return {
        "question": results.question,
        "category": share.category,
        "read": results.read,
        **_interval("judges", share.judges),
        **_interval("corrected", share.corrected),
        "sensitivity": rates.sensitivity.value if rates else None,
        "specificity": rates.specificity.value if rates else None,
        "biased": share.biased,
    }


def _interval(name: str, share: LabelShare | None) -> dict[str, float | None]:
    low, high = share.ci95 if share is not None and share.ci95 else (None, None)
    return {name: share.value if share is not None else None, f"{name}_low": low, f"{name}_high": high}
