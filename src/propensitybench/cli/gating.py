"""What ``propensitybench gate`` does: plays a candidate if asked to, compares, and prints the answer."""

from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from propensitybench.cli.execution import EXIT, play
from propensitybench.cli.output import tell
from propensitybench.cli.text import name_of, print_json, safe
from propensitybench.engine import Result, StopCause
from propensitybench.engine.same_tasks import create_same_tasks
from propensitybench.errors import BadInput
from propensitybench.pages.gate_files import append_markdown, check_junit_place, write_junit
from propensitybench.runs import StoredRun
from propensitybench.runs import open as open_run
from propensitybench.runs.candidates import draw_until_decided, rule_for
from propensitybench.runs.gate_plan import plan_of
from propensitybench.runs.gate_question import Question, check_played_for, question_of
from propensitybench.runs.gating import compare_gated
from propensitybench.runs.resolve import read_settings
from propensitybench.runs.settings import Settings
from propensitybench.runs.start import Start
from propensitybench.runs.verdicts import Needed, Verdict, needed_sentence
from propensitybench.store import GateRule
from propensitybench.taxonomy import Naming

# Settings that belong to the candidate's model, and are in its run file once it is begun.
MODEL_OPTIONS: Final = ("temperature", "top_p", "max_tokens", "reasoning_effort", "extra_body")
# Further settings without a default value.
LIMITS: Final = ("base_url", "rpm", "tpm", "budget_usd", "max_tokens_total", "price")


class Asked(NamedTuple):
    """The options that say what is asked; None is not given."""

    margin: float | None
    on: str | None
    naming: str | None
    level: float | None


class Playing(NamedTuple):
    """The options that say how the candidate is played."""

    until_decided: bool
    max_tasks: int | None
    model: str | None
    settings: Settings
    trust_endpoint: bool


class Outputs(NamedTuple):
    """Where the answer goes."""

    junit: Path | None
    markdown: Path | None
    as_json: bool


class Plan(msgspec.Struct, frozen=True):
    """How many tasks it takes to tell, by naming."""

    margin: float
    on: str
    level: float
    needed: dict[Naming, Needed | None]


def answer(base: Path, candidate: Path | None, asked: Asked, playing: Playing, outputs: Outputs) -> int:
    """Prints the answer and writes it to files; the exit code."""
    if candidate is None:
        raise BadInput("gate: needs two runs, BASE and CANDIDATE; --plan needs only the first")
    if outputs.junit is not None:
        check_junit_place(outputs.junit)
    result = None
    if playing.until_decided:
        result = play_until_decided(base, candidate, asked, playing)
    else:
        _refuse_playing(playing)
    one, other = open_run(base), open_run(candidate)
    verdict = compare_gated(one, other, question_of(*asked))
    stopped = None if result is None or result.finished == result.total else result.cause
    if outputs.as_json:
        print_json({"stopped": stopped and stopped.value, **msgspec.structs.asdict(verdict)})
    else:
        print(safe(verdict.sentence))
        for note in verdict.notes:
            print(f"note: {safe(note)}")
    _write(verdict, outputs)
    if result is not None and stopped is not None:
        more = "with a higher one " if stopped is StopCause.BUDGET else ""
        tell(f"stopped: {result.reason}; {more}the same command resumes the candidate")
    # A spent budget or a provider that is down leaves the answer open; it is not a fail.
    return EXIT[stopped] if stopped in (StopCause.INTERRUPTED, StopCause.BAD_INPUT) else verdict.exit_code


def _refuse_playing(playing: Playing) -> None:
    """Raises `BadInput` for options that only a candidate to be played can use."""
    given = {"model": playing.model, "max_tasks": playing.max_tasks, **playing.settings}
    for name in ("model", "max_tasks", *MODEL_OPTIONS, *LIMITS):
        if given.get(name):
            raise BadInput(f"gate: {name}: is for --until-decided; play the candidate with `run`, or add it")


def _write(verdict: Verdict, outputs: Outputs) -> None:
    if outputs.junit is not None:
        write_junit(verdict, outputs.junit)
    if outputs.markdown is not None:
        append_markdown(verdict, outputs.markdown)


def play_until_decided(base: Path, candidate: Path, asked: Asked, playing: Playing) -> Result:
    """Plays a candidate, new or begun, until its comparison with the base is decided."""
    one = open_run(base)
    if not isinstance(one, StoredRun):
        raise BadInput(f"{name_of(base)}: --until-decided needs a run file; merge shards first")
    question = question_of(*asked)
    rule = _rule(one, candidate, question, playing)
    settings, spec = playing.settings, None
    if playing.model is None:
        settings = _without_model(settings)
    else:
        spec = read_settings(playing.model, settings).spec
        selection = msgspec.structs.replace(spec.selection, namings=question.namings)
        spec = msgspec.structs.replace(spec, selection=selection)
    draw = draw_until_decided(one, question)
    start = Start(candidate, settings, spec, trust_endpoint=playing.trust_endpoint, draw=draw)
    return play(start, lambda spec, path: create_same_tasks(spec, one.path, rule, path))


def _rule(base: StoredRun, candidate: Path, question: Question, playing: Playing) -> GateRule:
    """The rule of the candidate, from its file if it is begun."""
    if not candidate.exists():
        if playing.model is None:
            raise BadInput(f"{name_of(candidate)}: does not exist; give the candidate's --model to play it")
        return rule_for(base, question, playing.max_tasks)
    run = StoredRun(candidate)
    rule = run.manifest.gate
    if rule is None:
        raise BadInput(
            f"{name_of(candidate)}: is of a run that was not played until decided; leave it out, "
            "or give another file"
        )
    check_played_for(question, base, run)
    if playing.max_tasks is not None:
        _check_most(candidate, rule, rule_for(base, question, playing.max_tasks))
    return rule


def _check_most(candidate: Path, rule: GateRule, wanted: GateRule) -> None:
    if wanted.looks[-1] != rule.looks[-1]:
        raise BadInput(
            f"{name_of(candidate)}: was begun with at most {rule.looks[-1]} tasks; another --max-tasks would "
            "not keep the level: leave it out"
        )


def _without_model(settings: Settings) -> Settings:
    """The settings without those of the model, which a begun run file has."""
    kept = settings.copy()
    for name in MODEL_OPTIONS:
        if kept.get(name):
            raise BadInput(f"gate: {name} belongs to --model; give both, or neither to resume the candidate")
        kept.pop(name, None)  # type: ignore[misc]
    return kept


def show_plan(
    base: Path,
    candidate: Path | None,
    asked: Asked,
    assumed: tuple[float | None, float],
    *,
    as_json: bool,
) -> None:
    """Prints how many tasks it takes to tell, by the base alone or with what there is of the candidate.

    Args:
        base: the run to compare with.
        candidate: the new one; its differences from the base so far replace the assumptions.
        asked: what is asked.
        assumed: intraclass correlation (None is the base's own) and correlation of base and candidate.
        as_json: prints JSON instead.
    """
    one = open_run(base)
    other = open_run(candidate) if candidate is not None and candidate.exists() else None
    question = question_of(*asked)
    needed = plan_of(one, other, question, assumed)
    if as_json:
        print_json(Plan(question.margin, question.on, question.level, needed))
        return
    for naming, found in needed.items():
        what = f"{question.measure(one)} under {naming} names, margin {100 * question.margin:g} points"
        if found is None:
            print(f"{what}: the base has no task under {naming} names")
        else:
            print(f"{what}: {needed_sentence(found, question.margin)} ({found.basis}).")
