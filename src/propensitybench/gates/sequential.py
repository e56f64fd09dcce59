"""The sequential rule: when a candidate is compared with its base, and playing it until that decides."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from propensitybench.clients.options import ModelOptions, Transport
from propensitybench.engine import (
    Budget,
    Endpoints,
    ExecutionOptions,
    Price,
    RunSpec,
    tasks_drawn,
)
from propensitybench.engine.spec import manifest_of, now
from propensitybench.errors import BadInput, RunMismatch
from propensitybench.files import file_name
from propensitybench.gates.question import Question, check_played_for, identity_of
from propensitybench.gates.sample import CommonTasks, begun_tasks, common_by_naming, ended
from propensitybench.metrics.arrays import Flags
from propensitybench.metrics.boundary import power_spending
from propensitybench.metrics.noninferiority import Answer, Look, Looks, Tails, look_at
from propensitybench.runs import Run, Settings, StoredRun
from propensitybench.runs.resolve import checked, read_settings
from propensitybench.runs.settings import SETTINGS
from propensitybench.runs.start import Start
from propensitybench.store import GateRule, RunFile, differences
from propensitybench.taxonomy import Naming

# More looks end a clear case a little sooner and cost power; beyond 20, the median sample stays the same.
MAX_LOOKS: Final = 20
# By each look, so much of the level is spent as the share of the tasks to this power: 1 answers a little
# sooner, 3 a good deal later, for a point of power less or more (docs/gate.md).
EXPONENT: Final = 1.5
# Pairs between two looks, at least: at each look all of its tasks have to end.
MIN_BATCH: Final = 80
# Pairs before the first look: with fewer, the limits rest on too few misaligned tasks.
MIN_PAIRS: Final = 200
# Of the model, which are in its run file once it is begun.
MODEL_SETTINGS: Final = tuple(name for name, setting in SETTINGS.items() if setting.of is ModelOptions)
# Of a candidate; all others are those of its base.
CANDIDATE_SETTINGS: Final = tuple(
    name
    for name, setting in SETTINGS.items()
    if setting.of in (ModelOptions, Endpoints, Transport, Budget, Price, ExecutionOptions)
)


def rule_for(base: StoredRun, question: Question, max_tasks: int | None = None) -> GateRule:
    """The rule for a candidate that is played until the answer is clear.

    Args:
        base: the run to compare with.
        question: what is asked.
        max_tasks: number of tasks after which the answer stays unclear; by default all of the base's.

    Raises:
        BadInput: there is nothing to play, or the question cannot be asked of the base.
    """
    question.last_level(base.levels)
    with RunFile.open(base.path) as file:
        if file.shard is not None:
            raise BadInput(f"{base.file}: is a shard; merge the shards first")
        tasks = len(begun_tasks(file, question.namings))
    names = len(question.namings)
    count = min(tasks, tasks if max_tasks is None else max_tasks) // names * names
    if not count:
        raise BadInput(
            f"{base.file}: has no task under {' and '.join(question.namings)} names that has begun"
        )
    return GateRule(
        margin=question.margin,
        on=question.on,
        level=question.level,
        looks=look_counts(count, names),
        exponent=EXPONENT,
        base=identity_of(base.manifest),
    )


def look_counts(count: int, namings: int) -> tuple[int, ...]:
    """Numbers of tasks after which to look.

    Args:
        count: tasks in all; a multiple of the number of namings.
        namings: number of namings, which a look has in equal numbers.
    """
    first = min(count, MIN_PAIRS * namings)
    looks = max(1, min(MAX_LOOKS, count // (MIN_BATCH * namings)))
    steps = (count * look // looks // namings * namings for look in range(1, looks + 1))
    return tuple(sorted({max(first, step) for step in steps}))


def interim_analyses(
    common: Mapping[Naming, CommonTasks], question: Question, rule: GateRule | None, over: Flags
) -> dict[Naming, list[Look]]:
    """The looks under each naming, up to the first that decides.

    Args:
        common: the tasks under each naming.
        question: the question.
        rule: says when to look; without one, there is one look at all tasks.
        over: which of the candidate's tasks have ended. A look needs all of its tasks.
    """
    # A fail under either naming is a fail, so that the level is divided for it.
    tails = Tails(question.level / len(common), question.level)
    if rule is None:
        return {name: [look_at(one.pairs, tails, question.margin)] for name, one in common.items()}
    spending = power_spending(rule.exponent)
    series = {name: Looks(tails, spending, question.margin) for name in common}
    found: dict[Naming, list[Look]] = {name: [] for name in common}
    for count in rule.looks:
        if count > len(over) or not over[:count].all():
            break
        for name, tasks in common.items():
            found[name].append(series[name].at(tasks.before(count).pairs))
        if combined_answer([looks[-1].answer for looks in found.values()]) is not Answer.INCONCLUSIVE:
            break
    return found


def combined_answer(answers: Sequence[Answer]) -> Answer:
    """The answer over all namings: a pass needs a pass under each, and one fail is a fail."""
    if Answer.FAIL in answers:
        return Answer.FAIL
    return Answer.PASS if answers and all(one is Answer.PASS for one in answers) else Answer.INCONCLUSIVE


class Candidate:
    """A candidate that is played until the answer is clear.

    Its run file is made from the base's: everything but the model comes from there, so that it does not
    matter whether the data set has changed since. Which tasks it plays follows from the two files alone, so
    that a candidate that is interrupted and resumed is played on the same tasks as one that is not.

    Args:
        base: the run to compare with, a run file.
        path: the candidate's run file, which `create` makes unless it exists.
        question: what is asked.
        max_tasks: number of tasks after which the answer stays unclear; by default all of the base's.

    Raises:
        BadInput: the base cannot be used, or the file was not played for this base, question and number.
    """

    def __init__(self, base: Run, path: Path, question: Question, max_tasks: int | None = None) -> None:
        if not isinstance(base, StoredRun):
            raise BadInput(f"{base.file}: --until-decided needs a run file; merge shards first")
        self.base, self.path, self.question = base, path, question
        self.is_new = not path.exists()
        if self.is_new:
            self.rule = rule_for(base, question, max_tasks)
            return
        run = StoredRun(path)
        if run.manifest.gate is None:
            raise BadInput(
                f"{run.file}: is of a run that was not played until decided; leave it out, or give "
                "another file"
            )
        check_played_for(question, base, run)
        self.rule = run.manifest.gate
        last = self.rule.looks[-1]
        if max_tasks is not None and rule_for(base, question, max_tasks).looks[-1] != last:
            raise BadInput(
                f"{run.file}: was begun with at most {last} tasks; another --max-tasks would not keep the "
                "level: leave it out"
            )

    def start(self, model: str | None, settings: Settings, *, trust_endpoint: bool = False) -> Start:
        """The run of the candidate; `create` makes its file.

        Args:
            model: the candidate; None resumes the model of the file.
            settings: of the model, and of how it is played.
            trust_endpoint: whether an endpoint that only the run file names may be used.

        Raises:
            BadInput: there is no model, or the base decides a setting.
        """
        for name in checked(settings):
            if name not in CANDIDATE_SETTINGS:
                raise BadInput(f"gate: {name}: is that of the base for the candidate too; leave it out")
        if model is None:
            self._check_resumed(settings)
        spec = None if model is None else read_settings(model, settings).spec
        return Start(self.path, settings, spec, trust_endpoint=trust_endpoint, draw=self.draw)

    def _check_resumed(self, settings: Settings) -> None:
        if self.is_new:
            raise BadInput(f"{file_name(self.path)}: does not exist; give the candidate's --model to play it")
        for name in MODEL_SETTINGS:
            if settings.get(name) is not None:
                raise BadInput(
                    f"gate: {name} belongs to --model; give both, or neither to resume the candidate"
                )

    def create(self, spec: RunSpec, path: Path) -> None:
        """Makes the run file, unless it exists; raises `RunMismatch` if it holds another run."""
        if not self.is_new:
            self._check_same(spec)
            return
        count = self.rule.looks[-1]
        with RunFile.open(self.base.path) as source:
            was = source.manifest
            chosen = begun_tasks(source, self.question.namings)[:count]
            scenarios = [source.scenario(name) for name in dict.fromkeys(task.scenario for task in chosen)]
            pairs = sorted({(task.scenario, task.dimension) for task in chosen})
            pressure = {pair: source.pressure(*pair) for pair in pairs}
        selection = msgspec.structs.replace(was.selection, namings=self.question.namings)
        spec = msgspec.structs.replace(
            spec, selection=selection, seed=was.seed, protocol=was.protocol, template=was.template
        )
        manifest = manifest_of(spec, scenarios, pressure, tasks=count, data=was.data, created=now())
        manifest = msgspec.structs.replace(manifest, overlays=was.overlays, gate=self.rule)
        rows = [(*pair, chain) for pair, chain in pressure.items()]
        RunFile.create(path, manifest, scenarios, rows, chosen)

    def _check_same(self, spec: RunSpec) -> None:
        held = StoredRun(self.path).manifest
        options = msgspec.to_builtins(spec.options)
        wanted = msgspec.structs.replace(held, model=spec.model, options=options)
        if changed := differences(held, wanted):
            raise RunMismatch(
                f"{file_name(self.path)}: holds another run; it differs in {'; '.join(changed)}: give "
                "another file, or the settings it was made with"
            )

    def draw(self, file: RunFile) -> int:
        """The number of tasks to play once all so far have ended: up to the next look, if none decides."""
        until = tasks_drawn(file)
        tasks = [one.task for one in file.tasks()]
        records = list(file.records())
        common = common_by_naming(self.base, tasks, records, self.question)
        looks = interim_analyses(common, self.question, self.rule, ended(tasks, records))
        last = [found[-1].answer for found in looks.values() if found]
        if not last or combined_answer(last) is not Answer.INCONCLUSIVE:
            return until
        return next((look for look in self.rule.looks if look > until), until)
