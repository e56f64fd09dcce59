"""What must fit together in a run file, besides each outcome and its journal."""

from collections.abc import Iterator
from itertools import product

from propensitybench.digests import digest
from propensitybench.scenarios.model import scenario_id
from propensitybench.scenarios.selection import Task
from propensitybench.store.manifest import Manifest, data_digest
from propensitybench.store.reading import RunReader
from propensitybench.store.rows import read_task
from propensitybench.store.schema import PLAYED, PRESSURE, SHARE, TASK
from propensitybench.store.shards import share_of


def inconsistencies(run: RunReader) -> Iterator[str]:
    """What does not fit together in a file, in words.

    Together with the replay of every task this covers all rows that any command reads.

    Raises:
        NotARunFile: a row cannot be read at all.
    """
    numbers, tasks = _tasks(run)
    planned = run.manifest.tasks
    if numbers != list(range(planned)):
        yield f"the manifest plans {planned} tasks; the file has {len(tasks)}, or odd numbers"
    if len(set(tasks)) != len(tasks):
        yield "a task is there twice"
    yield from strays(run)
    yield from _scenarios(run, tasks)
    yield from _errors(run)
    yield from _annotations(run)
    yield from _share(run, tasks)
    yield from _selection(run.manifest, tasks)


def _tasks(run: RunReader) -> tuple[list[int], list[Task]]:
    numbers, tasks = [], []
    for row in run.rows.of(TASK, "ORDER BY number"):
        with run.rows.decoding(f"task {row[0]}"):
            number, task = read_task(run.lists, *row)
        numbers.append(number)
        tasks.append(task)
    return numbers, tasks


def strays(run: RunReader) -> Iterator[str]:
    """Rows that belong to no task, or to a task that the file does not play."""
    homes = {"no task": "SELECT number FROM task"}
    if run.shard is not None:
        homes["other shards"] = "SELECT task FROM share"
    for table in PLAYED:
        for owner, home in homes.items():
            query = f"SELECT count(task) FROM {table.name} WHERE task NOT IN ({home})"
            if count := run.rows.one(int, query):
                yield f"rows of {table.name!r} that belong to {owner}: {count}"


def _share(run: RunReader, tasks: list[Task]) -> Iterator[str]:
    stored = [number for (number,) in run.rows.of(SHARE, "ORDER BY task")]
    if run.shard is None:
        if stored:
            yield f"tasks of a share, and the file is no shard: {len(stored)}"
        return
    domains = {name: run.scenario(name).domain for name in run.scenario_ids()}
    if stored != share_of(run.shard, (domains.get(task.scenario, "") for task in tasks)):
        yield f"the share is not that of shard {run.shard}"


def _annotations(run: RunReader) -> Iterator[str]:
    questions, raters = run.questions(), run.raters()
    for name, body in questions.items():
        if digest(body) != name:
            yield f"question {name!r} has the digest {digest(body)}"
    query = "SELECT DISTINCT question, rater FROM annotation"
    for question, rater in run.rows.each((str, str), query):
        if question not in questions or rater not in raters:
            yield f"annotations of {rater!r} belong to no question or rater"
    query = "SELECT question FROM label UNION SELECT question FROM sample"
    for (question,) in run.rows.each((str,), query):
        if question not in questions:
            yield f"answers of people belong to no question: {question!r}"
    for question in questions:
        for _ in (*run.annotations(question), *run.labels(question)):
            pass  # reading checks each of them


def _scenarios(run: RunReader, tasks: list[Task]) -> Iterator[str]:
    stored = run.scenario_ids()
    computed = {name: scenario_id(run.scenario(name)) for name in stored}
    for name in stored:
        if stored[name] != computed[name]:
            yield f"scenario {name} is stored under the id {stored[name]!r}, and has {computed[name]}"
    used = {(task.scenario, task.dimension) for task in tasks}
    given = {(name, dimension) for name, dimension, _ in run.rows.of(PRESSURE)}
    if missing := sorted(used - given):
        yield f"pairs of scenario and dimension without pressure messages: {len(missing)}"
    if surplus := sorted(given - used):
        yield f"pressure messages that belong to no task: {len(surplus)}"
    chains = (run.pressure(name, dimension) for name, dimension in sorted(given & used))
    if data_digest(computed.values(), chains) != run.manifest.data_digest:
        yield "scenarios and pressure messages are not those of the manifest"
    if names := {name for name, _ in used} ^ computed.keys():
        yield f"scenarios without a task, or tasks without a scenario: {', '.join(sorted(names)[:3])}"


def _errors(run: RunReader) -> Iterator[str]:
    query = (
        "SELECT number, turn, body, (SELECT count(turn) FROM reply WHERE reply.task = error.task) FROM error"
    )
    for number, turn, body, replies in run.rows.each((int, int, str, int), query):
        if not 0 <= turn <= replies or not body:
            yield f"error {number} is one of turn {turn}, and its task has {replies} replies"


def _selection(manifest: Manifest, tasks: list[Task]) -> Iterator[str]:
    """The tasks are some that the manifest's selections give, each of which gives a pair all its tasks."""
    alone = manifest.protocol.messages_played_alone
    messages = range(1, alone + 1) if alone else range(1)
    pairs: dict[tuple[str, str], set[Task]] = {}
    for task in tasks:
        pairs.setdefault((task.scenario, task.dimension), set()).add(task)
    for (scenario, dimension), found in pairs.items():
        given: set[Task] = set()
        for one in manifest.selections:
            count = len(one.namings) * one.epochs * len(messages)
            if count > len(found) or (one.dimensions and dimension not in one.dimensions):
                continue
            numbers = product(one.namings, range(1, one.epochs + 1), messages)
            whole = {Task(scenario, dimension, *of) for of in numbers}
            given |= whole if whole <= found else set()
        if odd := sorted(found - given):
            yield f"task {odd[0].key} is not part of the manifest's selections, or others of its pair lack"
            return
    limits = [one.limit for one in manifest.selections if one.limit is not None]
    if len(limits) == len(manifest.selections) and len(pairs) > sum(limits):
        yield f"the manifest plans {sum(limits)} pairs of scenario and dimension, not {len(pairs)}"
