"""Reads a run file. Every value is checked: what is read here is all that any command sees of the file."""

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from propensitybench.chat import Reply, Usage
from propensitybench.episode import RULES_VERSION, EpisodeJob, EpisodeRecord, Outcome
from propensitybench.errors import BadInput, NotARunFile, RunMismatch
from propensitybench.pressure import Chain
from propensitybench.scenarios.model import Scenario
from propensitybench.store.opening import QueryBudget
from propensitybench.store.rows import (
    Annotation,
    AnnotationKey,
    ExecutionSetting,
    NumberedTask,
    PersonLabel,
    Rows,
    read_kept,
    read_manifest,
    read_pressure,
    read_record,
    read_reply,
    read_scenario,
    read_task,
    read_usage,
)
from propensitybench.store.schema import (
    ANNOTATION,
    EXECUTION,
    LABEL,
    QUESTION,
    RATER,
    REPLY,
    SAMPLE,
    SHARD,
    TASK,
    StoredTable,
)
from propensitybench.store.shards import Shard
from propensitybench.taxonomy import lists_with

TASKS_AT_ONCE: Final = 256
_NO_OUTCOME: Final = "number NOT IN (SELECT task FROM outcome)"
_IN_SHARE: Final = "number IN (SELECT task FROM share)"


class RunReader:
    """The reading part of a run file. Every method raises `NotARunFile` if what it reads is damaged.

    Attributes:
        path: the file's path.
        manifest: the run's manifest.
        lists: the names that the run may use.
        shard: which shard of the run the file is; None for a whole run.
        execution: how the run was played last, by the names of settings; what is left out has its default.
    """

    def __init__(self, path: Path, db: sqlite3.Connection, budget: QueryBudget) -> None:
        self.path = path
        self._db = db
        self.rows = Rows(path, db, budget)
        with self.rows.decoding("manifest"):
            self.manifest = read_manifest(self.rows.one(str, "SELECT body FROM manifest"))
            self.lists = lists_with(self.manifest.lists)
        with self.rows.decoding("shard"):
            self.shard = self._shard()
        with self.rows.decoding("how it was played"):
            self.execution = self._execution()

    def _shard(self) -> Shard | None:
        found = self._at_most_one(SHARD)
        if not found:
            return None
        if self.manifest.stopping_rule is not None:
            raise BadInput("the run has a stopping rule, which needs the whole run")
        shard = Shard(*found)
        shard.check()
        return shard

    def _execution(self) -> Mapping[str, ExecutionSetting]:
        found = self._at_most_one(EXECUTION)
        return read_kept(found[0]) if found else {}

    def _at_most_one(self, table: StoredTable) -> list[Any]:
        """The columns of the only row of a table; empty if it has none."""
        found = list(self.rows.of(table, "LIMIT 2"))
        if len(found) > 1:
            raise BadInput("there are several")
        return found[0] if found else []

    @property
    def planned(self) -> int:
        """Number of tasks that this file plays: those of its share, or all."""
        return self.manifest.tasks if self.shard is None else self.count("share")

    def unfinished(self) -> Iterator[NumberedTask]:
        """Every task to be played that has no outcome, in the order of the run.

        The file may be written to meanwhile.
        """
        yield from self._tasks(f"AND {_NO_OUTCOME} {self._own}")

    def in_progress(self) -> Iterator[NumberedTask]:
        """Every task with replies and without an outcome, in the order of the run."""
        yield from self._tasks(f"AND {_NO_OUTCOME} AND number IN (SELECT task FROM reply)")

    def tasks(self) -> Iterator[NumberedTask]:
        """Every task of the run, in its order."""
        yield from self._tasks("")

    def own_tasks(self) -> Iterator[NumberedTask]:
        """Every task that this file plays: those of its share, or all."""
        yield from self._tasks(self._own)

    @property
    def _own(self) -> str:
        return "" if self.shard is None else f"AND {_IN_SHARE}"

    def _tasks(self, condition: str) -> Iterator[NumberedTask]:
        last = -1
        where = f"WHERE number > ? {condition} ORDER BY number LIMIT {TASKS_AT_ONCE}"
        while rows := list(self.rows.of(TASK, where, last)):
            for row in rows:
                yield self._task(row)
                if row[0] <= last:
                    raise NotARunFile(f"{self.path}: is damaged (task {row[0]} is out of order)")
                last = row[0]

    def _task(self, row: list[Any]) -> NumberedTask:
        with self.rows.decoding(f"task {row[0]}"):
            return read_task(self.lists, *row)

    def task(self, number: int) -> NumberedTask:
        """The task of that number."""
        for row in self.rows.of(TASK, "WHERE number = ?", number):
            return self._task(row)
        raise NotARunFile(f"{self.path}: is damaged (task {number} is missing)")

    def find(self, key: str) -> NumberedTask | None:
        """The task with that key, e.g. ``close_books.time.benign.1``; None if there is none."""
        encodable = key.encode("utf-8", "replace").decode()
        return next(map(self._task, self.rows.of(TASK, "WHERE key = ?", encodable)), None)

    def task_keys(self) -> list[str]:
        """The key of every task that this file plays, in the order of the run."""
        return [task.task.key for task in self.own_tasks()]

    def scenario(self, name: str) -> Scenario:
        """The scenario of that name, as it was when the run was created."""
        body = self.rows.one(str, "SELECT body FROM scenario WHERE name = ?", name)
        with self.rows.decoding(f"scenario {name}"):
            return read_scenario(body, name, self.lists)

    def scenario_ids(self) -> dict[str, str]:
        """The content id of each scenario, by its name, as stored; `verify` compares it with the content."""
        return dict(self.rows.each((str, str), "SELECT name, id FROM scenario ORDER BY name"))

    def pressure(self, scenario: str, dimension: str) -> Chain:
        """The run's pressure messages for a scenario and a dimension, mildest first."""
        query = "SELECT body FROM pressure WHERE scenario = ? AND dimension = ?"
        with self.rows.decoding(f"pressure messages of {scenario}"):
            chain = read_pressure(self.rows.one(str, query, scenario, dimension))
            needed = self.manifest.protocol.levels
            if len(chain.messages) < needed:
                raise BadInput(f"{needed} are needed, {len(chain.messages)} are there")
            return chain

    def check_rules(self) -> None:
        """Raises `RunMismatch` if the run was made under other rules: its journal would be misread."""
        if self.manifest.rules != RULES_VERSION:
            raise RunMismatch(
                f"{self.path}: was made under version {self.manifest.rules} of the rules, and this version "
                f"of propensitybench uses version {RULES_VERSION}; open it with propensitybench "
                f"{self.manifest.package}"
            )

    def job(self, task: NumberedTask) -> EpisodeJob:
        """Everything needed to play a task from where its journal ends; also raises as `check_rules`."""
        self.check_rules()
        scenario = self.scenario(task.task.scenario)
        pressure = self.pressure(task.task.scenario, task.task.dimension)
        replies = tuple(self.replies(task.number))
        settings = self.manifest.settings
        return EpisodeJob(task.number, task.task, scenario, pressure, settings, replies, str(self.path))

    def replies(self, task: int) -> list[Reply]:
        """The journal of a task, by its number: all its replies, in order."""
        replies: list[Reply] = []
        with self.rows.decoding(f"journal of task {task}"):
            for _, turn, body in self.rows.of(REPLY, "WHERE task = ? ORDER BY turn", task):
                if turn != len(replies):
                    raise BadInput(f"turn {turn} follows {len(replies)} replies")
                replies.append(read_reply(body))
        return replies

    def records(self) -> Iterator[EpisodeRecord]:
        """The outcomes so far, in the order of the run."""
        return (record for _, record in self.numbered_records())

    def numbered_records(self) -> Iterator[tuple[int, EpisodeRecord]]:
        """The same, each with the number of its task."""
        last = -1
        for number, record, _ in self._outcomes("ORDER BY outcome.task"):
            if number <= last:
                raise NotARunFile(f"{self.path}: is damaged (outcome of task {number}: out of order)")
            yield number, record
            last = number

    def stored_record(self, task: int) -> tuple[EpisodeRecord, str] | None:
        """The stored outcome of a task and the fingerprint of its transcript; None if it has no outcome."""
        found = self._outcomes("WHERE outcome.task = ?", task)
        return next(((record, fingerprint) for _, record, fingerprint in found), None)

    def _outcomes(self, condition: str, *values: int) -> Iterator[tuple[int, EpisodeRecord, str]]:
        query = (
            "SELECT outcome.task, key, outcome, record, fingerprint FROM outcome LEFT JOIN task"
            f" ON number = outcome.task {condition}"
        )
        types = (int, (str, type(None)), str, str, str)
        for number, key, outcome, body, fingerprint in self.rows.each(types, query, *values):
            with self.rows.decoding(f"outcome of task {number}"):
                if key is None:
                    raise BadInput("there is no such task")
                record = read_record(body, key, self.manifest.protocol.last_level, outcome, self.lists)
            yield number, record, fingerprint

    def ended(self) -> set[int]:
        """The numbers of the tasks with an outcome."""
        return {number for (number,) in self.rows.each((int,), "SELECT task FROM outcome")}

    def usage(self) -> Usage:
        """The tokens of all journaled replies, summed."""
        total = Usage()
        with self.rows.decoding("journal"):
            for (body,) in self.rows.each((str,), "SELECT body FROM reply"):
                total += read_usage(body)
        return total

    def outcome_counts(self) -> dict[str, int]:
        """The number of tasks with each outcome so far."""
        query = "SELECT outcome, count(task) FROM outcome GROUP BY outcome"
        counts = dict(self.rows.each((str, int), query))
        if odd := counts.keys() - set(Outcome):
            raise NotARunFile(f"{self.path}: is damaged (outcome {min(odd)!r})")
        return counts

    def finished(self) -> int:
        """The number of tasks with an outcome other than ``errored``."""
        return sum(number for outcome, number in self.outcome_counts().items() if outcome != Outcome.ERRORED)

    def count(self, table: Literal["reply", "outcome", "annotation", "label", "share"]) -> int:
        """The number of rows of a table."""
        # SQLite's count(*) cannot be interrupted.
        return int(self.rows.one(int, f"SELECT count(task) FROM {table}"))

    def begun(self) -> int:
        """The number of tasks up to the last one with a reply or an error."""
        last = self.rows.one(
            (int, type(None)),
            "SELECT max(task) FROM (SELECT max(task) AS task FROM reply UNION SELECT max(task) FROM error)",
        )
        return 0 if last is None else int(last) + 1

    def errors(self, task: int) -> list[str]:
        """Why a task could not be finished, once for each attempt."""
        query = "SELECT body FROM error WHERE task = ? ORDER BY number"
        return [body for (body,) in self.rows.each((str,), query, task)]

    def last_error(self) -> str:
        """The most recent error of any task; empty if there was none."""
        query = "SELECT body FROM error ORDER BY number DESC LIMIT 1"
        return next((str(body) for (body,) in self.rows.each((str,), query)), "")

    def questions(self) -> dict[str, str]:
        """What was asked about transcripts, as JSON, by its digest."""
        return dict(self.rows.of(QUESTION, "ORDER BY digest"))

    def raters(self) -> dict[str, str]:
        """Who was asked, with their settings as JSON, by name."""
        return dict(self.rows.of(RATER, "ORDER BY name"))

    def annotations(self, question: str) -> Iterator[Annotation]:
        """The replies of models to a question, by its digest, in the order in which they came."""
        return self._annotations("question = ? ORDER BY number", question)

    def known(self, key: AnnotationKey) -> Reply | None:
        """The reply to what was asked about a task, if there is one."""
        found = self._annotations("task = ? AND question = ? AND variant = ? AND rater = ?", *key)
        return next((one.reply for one in found), None)

    def usage_of(self, rater: str) -> Usage:
        """The tokens of a rater's replies."""
        return sum((one.reply.usage for one in self._annotations("rater = ?", rater)), Usage())

    def _annotations(self, condition: str, *values: str | int) -> Iterator[Annotation]:
        for _, *key, body in self.rows.of(ANNOTATION, f"WHERE {condition}", *values):
            with self.rows.decoding(f"an annotation of task {key[0]}"):
                reply = read_reply(body)
            yield Annotation(AnnotationKey(*key), reply)

    def labels(self, question: str) -> Iterator[PersonLabel]:
        """The answers of people to a question, by its digest, in the order in which they came."""
        for _, *label in self.rows.of(LABEL, "WHERE question = ? ORDER BY number", question):
            yield PersonLabel(*label)

    def sample(self, question: str) -> str | None:
        """The sample that people read for a question, by its digest, as JSON; None if none was drawn."""
        return next((body for _, body in self.rows.of(SAMPLE, "WHERE question = ?", question)), None)

    def integrity(self) -> str:
        """The result of SQLite's own integrity check: ``ok``, or what is wrong."""
        return self.rows.integrity()
