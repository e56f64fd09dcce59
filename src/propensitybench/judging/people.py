"""The answers of people: which are still wanted, how they are stored, and the file that a page saves."""

import logging
import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import msgspec

from propensitybench.digests import digest
from propensitybench.errors import BadData, BadInput
from propensitybench.files import MIB, read_text
from propensitybench.judging.items import OWN, Item, Passage
from propensitybench.judging.labels import Items, episodes_about
from propensitybench.judging.prompts import NoLabel, checked_label
from propensitybench.judging.questions import Question, check_name, stored_questions
from propensitybench.judging.sample import Sample, Size, sample_of, stored_sample
from propensitybench.runs import StoredRun
from propensitybench.store import Manifest, PersonLabel, RunFile

logger = logging.getLogger(__name__)
LABELS_FORMAT: Final = "propensitybench-labels/1"
MAX_FILE: Final = 16 * MIB
_NAME: Final = re.compile(r"[^\W_](?:[\w .'-]{0,38}[\w.])?")
_SHOWN: Final = 60


class PersonsAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person's answer about an episode.

    Attributes:
        category: name of the category.
        quote: words of the agent that show it; may be empty.
    """

    category: str
    quote: str = ""


class LabelsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file that a page saves.

    Attributes:
        run: identifies the run; see `run_id`.
        question: digest of the question.
        person: who answered.
        answers: by the key of the task.
    """

    format: Literal["propensitybench-labels/1"]
    run: str
    question: str
    person: str
    answers: dict[str, PersonsAnswer]


def run_id(manifest: Manifest) -> str:
    """Identifies a run without naming its model."""
    return digest(manifest.created, manifest.model, manifest.first_digest, str(manifest.seed))


def checked_name(person: str) -> str:
    """A person's name; raises `BadInput` for one that is hard to read or to tell apart."""
    if not _NAME.fullmatch(person):
        raise BadInput(
            f"the person's name {person[:_SHOWN]!r}: use up to 40 letters, digits, blanks, dots, dashes and "
            "apostrophes, beginning with a letter or digit"
        )
    return person


def quotable(question: Question, item: Item) -> list[Passage]:
    """The passages that can show an answer: the agent's, except calls that are not shown."""
    return [
        one for one in item.passages if one.part in OWN and not (one.part == "call" and question.hides_calls)
    ]


class LabellingSession:
    """A question's sample and what people have answered, in a run file.

    Args:
        run: the run.
        file: the same, open.
        question: the question.
        sample: of the question.

    Attributes:
        items: what a reader sees of the episodes.
    """

    def __init__(self, run: StoredRun, file: RunFile, question: Question, sample: Sample) -> None:
        self.question = question
        self.sample = sample
        self.items = Items(file, question)
        self._file = file
        self._numbers = {task.task.key: task.number for task in file.tasks()}
        self._about = {record.metadata.task for record in episodes_about(run, question)}
        self._drawn = self._about.intersection(sample.drawn)
        self._given: dict[str, dict[str, PersonsAnswer]] = {}
        keys = {number: key for key, number in self._numbers.items()}
        for one in file.labels(question.digest):
            if one.task in keys:
                self._keep(keys[one.task], one.person, PersonsAnswer(one.category, one.quote))

    @property
    def later(self) -> int:
        """The number of episodes that have ended since the sample was drawn, and could not be drawn."""
        known = {task for stratum in self.sample.strata for task in stratum.tasks}
        return len(self._about - known)

    def left(self, person: str) -> list[str]:
        """Keys of the tasks that a person has still to read, in this person's order."""
        readers = {task: tuple(by) for task, by in self._given.items()}
        return [task for task in self.sample.left(readers, person) if task in self._drawn]

    def check_spelling(self, person: str) -> None:
        """Raises `BadInput` if somebody has answered under a name that is nearly the same."""
        for known in {known for by in self._given.values() for known in by} - {person}:
            if _folded(known) == _folded(person):
                raise BadInput(f"{person}: {known} has answers in {self._file.path}; use the same spelling")

    def checked(self, task: str, answer: PersonsAnswer) -> PersonsAnswer:
        """An answer as it is stored.

        Raises:
            BadInput: the task is not in the sample, the category is none of the question, or the quote is
                not in the agent's words.
        """
        if task not in self._drawn:
            raise BadInput(f"task {task[:_SHOWN]!r} is not in the sample of {self._file.path}")
        label = checked_label(
            self.question, self.items[task], answer.category, answer.quote, must_quote=False
        )
        if label.category is not None:
            return PersonsAnswer(label.category, label.quote)
        if label.why is NoLabel.FALSE_QUOTE:
            raise BadInput(f"task {task}: the quote {answer.quote[:_SHOWN]!r} is not in the agent's words")
        known = ", ".join(self.question.names)
        raise BadInput(f"task {task}: there is no category {answer.category[:_SHOWN]!r}; use one of {known}")

    def store(self, person: str, answers: Mapping[str, PersonsAnswer]) -> int:
        """Stores answers that have been checked, all or none.

        Args:
            person: who answered.
            answers: by the key of the task; one that is there already is left out.

        Returns:
            How many are new.

        Raises:
            BadInput: the person has given another answer about one of the tasks.
        """
        had = {task: by[person] for task, by in self._given.items() if person in by}
        for task, answer in answers.items():
            if had.get(task, answer) != answer:
                raise BadInput(
                    f"task {task}: {person} has answered otherwise in {self._file.path}; an answer that is "
                    "stored is not changed"
                )
        new = {task: answer for task, answer in answers.items() if task not in had}
        self._file.add_labels(
            [
                PersonLabel(self._numbers[task], self.question.digest, person, one.category, one.quote)
                for task, one in new.items()
            ]
        )
        for task, answer in new.items():
            self._keep(task, person, answer)
        return len(new)

    def _keep(self, task: str, person: str, answer: PersonsAnswer) -> None:
        self._given.setdefault(task, {})[person] = answer


@contextmanager
def labelling(path: Path, question: Question, size: Size) -> Iterator[LabellingSession]:
    """A session about the run in a file, which is open meanwhile; its sample is drawn if there is none.

    Raises:
        BadInput: the run file has another question of that name, or no sample of that size can be drawn.
    """
    run = StoredRun(path)
    with RunFile.open(path, write=True) as file:
        check_name(file, question)
        session = LabellingSession(run, file, question, sample_of(run, file, question, size))
        if session.later:
            logger.warning(
                "%s episodes have ended since the sample was drawn and are not in it", session.later
            )
        yield session


def read_labels_file(path: Path) -> LabelsFile:
    """The file that a page has saved.

    Raises:
        BadData: it cannot be read, or is not such a file.
    """
    text = read_text(path, f"--read {path}", MAX_FILE)
    try:
        return msgspec.json.decode(text, type=LabelsFile)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadData(f"--read {path}", f"is not a file of labels ({error})") from error


def store_labels_file(path: Path, run: StoredRun, file: RunFile) -> tuple[LabelsFile, int]:
    """Stores the answers of a saved file, all or none.

    Args:
        path: of the saved file.
        run: the run.
        file: the same, open for writing.

    Returns:
        The saved file, and how many of its answers are new.

    Raises:
        BadInput: it is not such a file, belongs to another run or question, or one of its answers is about
            a task that is not in the sample, is none of the question, or differs from one that is stored.
    """
    saved = read_labels_file(path)
    try:
        if saved.run != run_id(file.manifest):
            raise BadInput(f"its answers are about another run than {file.path}")
        question = next((one for one in stored_questions(file) if one.digest == saved.question), None)
        sample = stored_sample(file, question) if question is not None else None
        if question is None or sample is None:
            raise BadInput(f"no sample was drawn in {file.path} for the question that it answers")
        session = LabellingSession(run, file, question, sample)
        session.check_spelling(checked_name(saved.person))
        answers = {task: session.checked(task, answer) for task, answer in saved.answers.items()}
        return saved, session.store(saved.person, answers)
    except BadInput as error:
        raise BadInput(f"--read {path}: {error}") from error


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()
