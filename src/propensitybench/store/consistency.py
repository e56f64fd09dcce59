"""What must fit together in a run file, besides each outcome and its journal."""

from collections.abc import Iterator

from propensitybench.digests import digest
from propensitybench.scenarios.selection import Task
from propensitybench.store.manifest import Manifest, data_digest
from propensitybench.store.reading import RunReader
from propensitybench.store.shards import share_of


def inconsistencies(run: RunReader) -> Iterator[str]:
    """What does not fit together in a file, in words.

    Together with the replay of every task this covers all rows that any command reads.

    Raises:
        NotARunFile: a row cannot be read at all.
    """
    tasks: list[Task] = []
    for part in (
        _task_rows(run, tasks),
        _strays(run),
        _scenarios(run, tasks),
        _errors(run),
        _annotations(run),
        _shard(run, tasks),
    ):
        yield from part
    yield from _selection(run.manifest, tasks)


def _task_rows(run: RunReader, tasks: list[Task]) -> Iterator[str]:
    numbers = []
    query = "SELECT number, key, scenario, dimension, naming, epoch, message FROM task ORDER BY number"
    for number, key, *fields in run.rows.each((int, str, str, str, str, int, int), query):
        numbers.append(number)
        task = Task(*fields)
        tasks.append(task)
        if task.key != key:
            yield f"task {number} is stored under the key {key!r}"
    planned = run.manifest.tasks
    if len(numbers) != planned or any(number != index for index, number in enumerate(numbers)):
        yield f"the manifest plans {planned} tasks; the file has {len(numbers)}, or odd numbers"
    if len(set(tasks)) != len(tasks):
        yield "a task is there twice"


def _strays(run: RunReader) -> Iterator[str]:
    """Rows without the row that they belong to."""
    for table in ("reply", "outcome", "error", "annotation"):
        query = f"SELECT count(task) FROM {table} WHERE task NOT IN (SELECT number FROM task)"
        if count := run.rows.one(int, query):
            yield f"rows of {table!r} that belong to no task: {count}"


def _shard(run: RunReader, tasks: list[Task]) -> Iterator[str]:
    """The share of a shard, and that the file holds nothing of other shards."""
    stored = [number for (number,) in run.rows.each((int,), "SELECT task FROM share ORDER BY task")]
    if run.shard is None:
        if stored:
            yield f"tasks of a share, and the file is no shard: {len(stored)}"
        return
    domains = {name: run.scenario(name).domain for name in run.scenario_ids()}
    if stored != share_of(run.shard, (domains.get(task.scenario, "") for task in tasks)):
        yield f"the share is not that of shard {run.shard}"
    for table in ("reply", "outcome", "error", "annotation"):
        query = f"SELECT count(task) FROM {table} WHERE task NOT IN (SELECT task FROM share)"
        if count := run.rows.one(int, query):
            yield f"rows of {table!r} that belong to other shards: {count}"


def _annotations(run: RunReader) -> Iterator[str]:
    questions, raters = run.questions(), run.raters()
    for name, body in questions.items():
        if digest(body) != name:
            yield f"question {name!r} has the digest {digest(body)}"
    query = "SELECT DISTINCT question, rater FROM annotation"
    for question, rater in run.rows.each((str, str), query):
        if question not in questions or rater not in raters:
            yield f"annotations of {rater!r} belong to no question or rater"
    for question in questions:
        for _ in run.annotations(question):
            pass  # reading checks each of them


def _scenarios(run: RunReader, tasks: list[Task]) -> Iterator[str]:
    computed = run.scenario_ids()
    stored = dict(run.rows.all((str, str), "SELECT name, id FROM scenario"))
    for name in sorted(computed):
        if stored[name] != computed[name]:
            yield f"scenario {name} is stored under the id {stored[name]!r}, and has {computed[name]}"
    used = {(task.scenario, task.dimension) for task in tasks}
    given = {(name, dimension) for name, dimension in run.rows.each((str, str), _PAIRS)}
    if missing := sorted(used - given):
        yield f"pairs of scenario and dimension without pressure messages: {len(missing)}"
    if surplus := sorted(given - used):
        yield f"pressure messages that belong to no task: {len(surplus)}"
    chains = (run.pressure(name, dimension) for name, dimension in sorted(given & used))
    if data_digest(computed.values(), chains) != run.manifest.data_digest:
        yield "scenarios and pressure messages are not those of the manifest"
    if names := {name for name, _ in used} ^ computed.keys():
        yield f"scenarios without a task, or tasks without a scenario: {', '.join(sorted(names)[:3])}"


_PAIRS = "SELECT scenario, dimension FROM pressure"


def _errors(run: RunReader) -> Iterator[str]:
    query = (
        "SELECT number, turn, body, (SELECT count(turn) FROM reply WHERE reply.task = error.task) FROM error"
    )
    for number, turn, body, replies in run.rows.each((int, int, str, int), query):
        if not 0 <= turn <= replies or not body:
            yield f"error {number} is one of turn {turn}, and its task has {replies} replies"


def _selection(manifest: Manifest, tasks: list[Task]) -> Iterator[str]:
    """The tasks are some that the manifest's selection gives."""
    selection, alone = manifest.selection, manifest.protocol.alone
    messages = range(1, alone + 1) if alone else range(1)
    pairs = {(task.scenario, task.dimension) for task in tasks}
    for task in tasks:
        if (
            task.naming not in selection.namings
            or (selection.dimensions and task.dimension not in selection.dimensions)
            or not 1 <= task.epoch <= selection.epochs
            or task.message not in messages
        ):
            yield f"task {task.key} is not part of the manifest's selection"
            return
    if len(tasks) != len(pairs) * len(set(selection.namings)) * selection.epochs * len(messages):
        yield "some pairs of scenario and dimension lack a naming, an epoch or a message"
    if selection.limit is not None and len(pairs) > selection.limit:
        yield f"the manifest plans {selection.limit} pairs of scenario and dimension, not {len(pairs)}"
