"""What `propensitybench gate` does, as functions."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Unpack, cast, get_type_hints

from propensitybench.clients import Client
from propensitybench.clients.function import AgentFunction
from propensitybench.clients.given import GivenClient, given_client
from propensitybench.engine import Result, StopCause, StopSignal, block_on
from propensitybench.errors import BadInput, RunStopped, UnknownName
from propensitybench.gates.candidate_run import CandidateRun
from propensitybench.gates.decision import decide
from propensitybench.gates.question import LEVEL, MARGIN, PROPENSITY, question_of
from propensitybench.gates.sample import (
    CommonTasks,
    check_comparable,
    common_by_naming,
    tasks_to_compare,
)
from propensitybench.gates.sample_size import GatePlan, needed_for
from propensitybench.gates.verdict import Verdict
from propensitybench.runs import Run, Settings, StoredRun
from propensitybench.runs.execute import OnProgress
from propensitybench.runs.read import run_file_of, run_of
from propensitybench.taxonomy import Naming

logger = logging.getLogger(__name__)

RunOrFile = Run | str | os.PathLike[str]


class CandidateSettings(Settings, total=False):
    """How a candidate is played: its model, and those settings of a run that do not say what is played.

    ``naming`` is part of the question: ``harmful`` (the default), ``benign`` or ``both``; with both, a pass
    needs a pass under each. ``max_tasks`` is the number of tasks after which the answer stays open. ``model``
    may be left out for a candidate that is resumed; an endpoint that only its run file names needs
    ``trust_endpoint``. ``client`` answers in the model's place, as for `propensitybench.run`.
    ``on_progress`` is called after each task and every second.
    """

    model: str | None
    client: Client | AgentFunction | None
    max_tasks: int | None
    trust_endpoint: bool
    on_progress: OnProgress | None


ARGUMENTS: Final = ("margin", "on", "level", "until_decided", *get_type_hints(CandidateSettings))


def gate(
    base: RunOrFile,
    candidate: RunOrFile,
    *,
    margin: float = MARGIN,
    on: str = PROPENSITY,
    level: float = LEVEL,
    until_decided: bool = False,
    **settings: Unpack[CandidateSettings],
) -> Verdict:
    """Whether a candidate is worse than a base: paired non-inferiority on the tasks that both have.

    With ``until_decided``, the candidate is played on the base's tasks until the answer is clear, and its
    file is made if it does not exist. The same call resumes it. A budget that is spent or a provider that is
    down leaves the answer open.

    Args:
        base: a run, or its file.
        candidate: a run, or its file. Every task that it was to play counts: one without a score may have
            ended either way.
        margin: the increase in the share of misaligned tasks that is too much.
        on: ``propensity``, ``propensity@6`` or ``propensity_zero``.
        level: probability of a wrong pass if the candidate is worse by the margin, and of a wrong fail if it
            is not worse.
        until_decided: plays the candidate.
        settings: ``naming`` and, with ``until_decided``, how it is played; see `CandidateSettings`.

    The question is never taken from the candidate's file. A candidate that was played until decided answers
    only the one that it was played for.

    Raises:
        BadInput: the runs cannot be compared or are one run, a setting cannot be used, or the candidate was
            played until decided for another question.
        RunStopped: the candidate cannot be played any further because of its settings.
        KeyboardInterrupt: Ctrl-C while it was played; the same call resumes it.
    """
    refuse_unknown(settings)
    question = question_of(margin, on, settings.pop("naming", None), level)
    first = run_of(base)
    if not until_decided:
        refuse_playing(settings)
        return decide(first, run_of(candidate), question)
    path = run_file_of(candidate)
    own = CandidateRun(first, path, question, settings.pop("max_tasks", None))
    model, trust = settings.pop("model", None), settings.pop("trust_endpoint", False)
    client = _given(settings.pop("client", None), model)
    on_progress, stop = settings.pop("on_progress", None), StopSignal()
    start = own.start(model, cast(Settings, settings), trust_endpoint=trust)

    async def play() -> Result:
        await start.begin(client, create=own.create_or_check)
        return await start.play(on_progress, stop)

    try:
        result = block_on(play, stop)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{path}: interrupted; the same call resumes the candidate") from None
    if result.finished < result.total and result.cause is StopCause.BAD_INPUT:
        raise RunStopped(f"{path}: stopped: {result.reason}", bad_input=True)
    return verdict_after(own, result)


def refuse_unknown(settings: Mapping[str, object]) -> None:
    """Raises `UnknownName` for a setting that `gate` does not have."""
    for name in settings:
        if name not in ARGUMENTS:
            raise UnknownName("setting", name, ARGUMENTS)


def _given(client: Client | AgentFunction | None, model: str | None) -> GivenClient | None:
    if client is None:
        return None
    if model is None:
        raise BadInput("gate: client: needs model, the name that it has in the run file; give both")
    return given_client(client, model)


def verdict_after(candidate: CandidateRun, result: Result) -> Verdict:
    """The verdict on what was played; a note says what stopped it before the answer was clear."""
    cause = None if result.finished == result.total else result.cause
    if cause is not None:
        more = "with a higher one " if cause is StopCause.BUDGET else ""
        logger.warning("stopped: %s; %sthe same command resumes the candidate", result.reason, more)
    stopped = None if cause is None else cause.value
    return decide(candidate.base, StoredRun(candidate.path), candidate.question, stopped)


def plan_gate(
    base: RunOrFile,
    candidate: RunOrFile | None = None,
    *,
    margin: float = MARGIN,
    on: str = PROPENSITY,
    naming: str = "harmful",
    level: float = LEVEL,
) -> GatePlan:
    """How many tasks it takes to tell whether a candidate is worse than a base; nothing is sent.

    Args:
        base: a run, or its file.
        candidate: a run, or its file. Its differences from the base replace the assumptions.
        margin: as for `gate`.
        on: as for `gate`.
        naming: ``harmful``, ``benign`` or ``both``.
        level: as for `gate`.

    Raises:
        BadInput: the question cannot be asked, or the runs cannot be compared.
    """
    question, first = question_of(margin, on, naming, level), run_of(base)
    common: dict[Naming, CommonTasks] = {}
    if candidate is not None and (isinstance(candidate, Run) or Path(candidate).exists()):
        other = run_of(candidate)
        check_comparable(first, other)
        common = common_by_naming(first, tasks_to_compare(other), other.records, question)
    return GatePlan(
        margin=question.margin,
        on=question.on,
        level=question.level,
        measure=question.measure(first),
        needed={name: needed_for(first, question, name, common.get(name)) for name in question.namings},
    )


def refuse_playing(settings: Mapping[str, object]) -> None:
    """Raises `BadInput` for a setting that only a candidate to be played can use."""
    for name, value in settings.items():
        if value is not None and value is not False:
            raise BadInput(f"gate: {name}: needs --until-decided; add it, or play the candidate with `run`")
