"""People's answers about a run's transcripts: the sample that they read, the page, and the answers."""

import os
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from propensitybench.errors import BadInput
from propensitybench.judging.labels import PERSON, Answers, read_labels
from propensitybench.judging.people import (
    LabellingSession,
    checked_name,
    labelling,
    run_id,
    store_labels_file,
)
from propensitybench.judging.questions import Question, read_question
from propensitybench.judging.results import Agreement, results_of
from propensitybench.judging.sample import Sample, Size
from propensitybench.pages.label_page import LabellingPage, render_labelling
from propensitybench.runs import Run, StoredRun
from propensitybench.runs.read import run_file_of
from propensitybench.store import RunFile
from propensitybench.store.atomic import new_file
from propensitybench.tabular import Tabular


class PeopleLabels(Tabular):
    """The episodes that people are to read for a question, and what they have answered.

    The table has a row for each answer, and one for each episode that nobody has read.

    Attributes:
        path: the run file.
        question: the question.
        sample: the episodes to read.
    """

    def __init__(self, path: Path, question: Question, sample: Sample) -> None:
        self.path = path
        self.question = question
        self.sample = sample

    @cached_property
    def _answers(self) -> Answers:
        named = read_labels(self.path, self.question.name)
        return next((one for one in named if one.question == self.question), Answers(self.question, (), ()))

    @cached_property
    def agreement(self) -> Agreement | None:
        """How far two people or more agree; None with fewer."""
        return results_of(self._answers, self.sample).people_agree if self._answers.people else None

    def rows(self) -> list[dict[str, Any]]:
        """Columns: task, whether two people are to read it, person, category, quote."""
        twice = set(self.sample.read_twice)
        answers = {person: self._answers.by(person) for person in self._answers.people}
        rows: list[dict[str, Any]] = []
        for task in self.sample.drawn:
            given = {person: labels[task] for person, labels in answers.items() if task in labels}
            about = {"task": task, "twice": task in twice}
            rows += [
                {**about, "person": who.removeprefix(PERSON), "category": one.category, "quote": one.quote}
                for who, one in given.items()
            ] or [{**about, "person": None, "category": None, "quote": None}]
        return rows

    def to_dict(self) -> dict[str, Any]:
        """The question's name, the number of episodes to read, the agreement, and the table."""
        return {
            "question": self.question.name,
            "drawn": len(self.sample.drawn),
            "agreement": msgspec.to_builtins(self.agreement),
            "labels": self.rows(),
        }

    def __repr__(self) -> str:
        labelled = len({row["task"] for row in self.rows() if row["person"] is not None})
        people = ", ".join(person.removeprefix(PERSON) for person in self._answers.people) or "nobody"
        alpha = self.agreement and self.agreement.alpha.value
        agree = "" if alpha is None else f"; Krippendorff's alpha {alpha:.2f}"
        return f"{self.question.title}: {labelled} of {len(self.sample.drawn)} read by {people}{agree}"

    def write_page(self, page: str | os.PathLike[str], by: str = "") -> int:
        """Writes a page to read and answer on, which works offline and saves a file for `read`.

        Args:
            page: a file that does not exist yet.
            by: who reads, always in the same spelling; if empty, the page asks.

        Returns:
            The number of episodes on it; without any, nothing is written.

        Raises:
            BadInput: the file cannot be written, or somebody has answered under nearly the same name.
        """
        path, person = Path(page), checked_name(by) if by else ""
        if path.exists():
            raise BadInput(f"--page {path}: exists already; give another name")
        run = StoredRun(self.path)
        with RunFile.open(self.path) as file:
            labels = LabellingSession(run, file, self.question, self.sample)
            labels.check_spelling(person)
            items = [labels.items[task] for task in labels.left(person)]
        if not items:
            return 0
        text = render_labelling(LabellingPage(self.question, run_id(run.manifest), by, items))
        try:
            with new_file(path) as out:
                out.write(text.encode())
        except OSError as error:
            raise BadInput(f"--page {path}: cannot be written ({error.strerror or error})") from error
        return len(items)

    def read(self, saved: str | os.PathLike[str]) -> "PeopleLabels":
        """Stores the answers that a page has saved, all or none, and returns all with them.

        Raises:
            BadInput: the file is not of such a page, or answers something else than this run was asked.
        """
        store_saved(self.path, Path(saved))
        return PeopleLabels(self.path, self.question, self.sample)


def label(
    run: Run | str | os.PathLike[str],
    question: str,
    *,
    number: int | None = None,
    twice: float | None = None,
    seed: int | None = None,
) -> PeopleLabels:
    """The sample of episodes that people read to answer a question, and their answers so far.

    The sample is drawn once, stratified by domain and judges' answers, and kept in the run file.

    Args:
        run: a run in a run file, or the file.
        question: ``justification``, ``awareness``, ``noticed-rule``, or a file of your own (.toml).
        number: episodes in the sample, by default 200; a larger number later adds to it.
        twice: share of them that two people read, by default 0.25.
        seed: of the draw, by default 0.

    Raises:
        BadInput: there is no such question or nothing to read, or the sample was drawn otherwise before.
    """
    path, asked = run_file_of(run), read_question(question)
    with labelling(path, asked, Size(number, seed, twice)) as labels:
        return PeopleLabels(path, asked, labels.sample)


def store_saved(path: Path, saved: Path) -> tuple[str, int, int]:
    """Stores what a page has saved; returns who answered, and how many answers are new and were known."""
    run = StoredRun(path)
    with RunFile.open(path, write=True) as file:
        found, new = store_labels_file(saved, run, file)
    return found.person, new, len(found.answers) - new
