"""A run of another model on the tasks of its base, which is played until the comparison is decided."""

from pathlib import Path
from typing import Final

import msgspec

from propensitybench.clients.options import ModelOptions, RequestLimits
from propensitybench.engine import Budget, Endpoints, ExecutionOptions, Price, RunSpec
from propensitybench.engine.spec import manifest_of, now
from propensitybench.errors import BadInput, RunMismatch
from propensitybench.files import file_name
from propensitybench.gates.question import GateQuestion, check_played_for
from propensitybench.gates.sample import begun_tasks, common_by_naming, ended
from propensitybench.gates.sequential import combined_answer, interim_analyses, rule_for
from propensitybench.metrics.noninferiority import GateAnswer
from propensitybench.runs import Run, Settings, StoredRun
from propensitybench.runs.resolve import checked, read_spec
from propensitybench.runs.settings import settings_of
from propensitybench.runs.start import Start
from propensitybench.store import Manifest, RunFile, differences, scheduled

# Of the model, which are in its run file once it is begun.
MODEL_SETTINGS: Final = settings_of(ModelOptions)
# Of a candidate; all others are those of its base.
CANDIDATE_SETTINGS: Final = settings_of(
    ModelOptions, Endpoints, RequestLimits, Budget, Price, ExecutionOptions
)


class CandidateRun:
    """A candidate that is played until the answer is clear.

    Its run file is made from the base's: everything but the model comes from there, so that it does not
    matter whether the data set has changed since. Which tasks it plays follows from the two files alone, so
    that a candidate that is interrupted and resumed is played on the same tasks as one that is not.

    Args:
        base: the run to compare with, a run file.
        path: the candidate's run file, which `create_or_check` makes unless it exists.
        question: what is asked.
        max_tasks: number of tasks after which the answer stays unclear; by default all of the base's.

    Raises:
        BadInput: the base cannot be used, or the file was not played for this base, question and number.
    """

    def __init__(self, base: Run, path: Path, question: GateQuestion, max_tasks: int | None = None) -> None:
        if not isinstance(base, StoredRun):
            raise BadInput(f"{base.file}: --until-decided needs a run file; merge shards first")
        self.base, self.path, self.question = base, path, question
        self._held: Manifest | None = None
        if not path.exists():
            self.rule = rule_for(base, question, max_tasks)
            return
        run = StoredRun(path)
        if run.manifest.gate is None:
            raise BadInput(
                f"{run.file}: is of a run that was not played until decided; leave it out, or give "
                "another file"
            )
        check_played_for(question, base, run)
        self._held, self.rule = run.manifest, run.manifest.gate
        last = self.rule.looks[-1]
        if max_tasks is not None and rule_for(base, question, max_tasks).looks[-1] != last:
            raise BadInput(
                f"{run.file}: was begun with at most {last} tasks; another --max-tasks would not keep the "
                "level: leave it out"
            )

    def start(self, model: str | None, settings: Settings, *, trust_endpoint: bool = False) -> Start:
        """The run of the candidate, whose file `create_or_check` makes.

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
        spec = None if model is None else read_spec(model, settings)
        return Start(self.path, settings, spec, trust_endpoint=trust_endpoint, draw=self.draw)

    def _check_resumed(self, settings: Settings) -> None:
        if self._held is None:
            raise BadInput(f"{file_name(self.path)}: does not exist; give the candidate's --model to play it")
        for name in MODEL_SETTINGS:
            if settings.get(name) is not None:
                raise BadInput(
                    f"gate: {name} belongs to --model; give both, or neither to resume the candidate"
                )

    def create_or_check(self, spec: RunSpec, path: Path) -> None:
        """Makes the run file, unless it exists; raises `RunMismatch` if it holds another run."""
        if self._held is not None:
            self._check_same(spec, self._held)
            return
        count = self.rule.looks[-1]
        with RunFile.open(self.base.path) as source:
            was = source.manifest
            chosen = begun_tasks(source, self.question.namings)[:count]
            scenarios = [source.scenario(name) for name in dict.fromkeys(task.scenario for task in chosen)]
            pairs = sorted({(task.scenario, task.dimension) for task in chosen})
            pressure = {pair: source.pressure(*pair) for pair in pairs}
        asked = [msgspec.structs.replace(one, namings=self.question.namings) for one in was.selections]
        spec = msgspec.structs.replace(
            spec, selection=asked[0], seed=was.seed, protocol=was.protocol, template=was.template
        )
        manifest = manifest_of(spec, scenarios, pressure, tasks=count, data=was.data, created=now())
        manifest = msgspec.structs.replace(
            manifest,
            selections=tuple(dict.fromkeys(asked)),
            overlays=was.overlays,
            gate=self.rule,
            lists=was.lists,
        )
        rows = [(*pair, chain) for pair, chain in pressure.items()]
        RunFile.create(path, manifest, scenarios, rows, chosen)

    def _check_same(self, spec: RunSpec, held: Manifest) -> None:
        options = msgspec.to_builtins(spec.options)
        wanted = msgspec.structs.replace(held, model=spec.model, options=options)
        if changed := differences(held, wanted):
            raise RunMismatch(
                f"{file_name(self.path)}: holds another run; it differs in {'; '.join(changed)}: give "
                "another file, or the settings it was made with"
            )

    def draw(self, file: RunFile) -> int:
        """The number of tasks to play once all so far have ended: up to the next look, if none decides."""
        until = scheduled(file)
        tasks = [one.task for one in file.tasks()]
        records = list(file.records())
        common = common_by_naming(self.base, tasks, records, self.question)
        looks = interim_analyses(common, self.question, self.rule, ended(tasks, records))
        last = [found[-1].answer for found in looks.values() if found]
        if not last or combined_answer(last) is not GateAnswer.INCONCLUSIVE:
            return until
        return next((look for look in self.rule.looks if look > until), until)
