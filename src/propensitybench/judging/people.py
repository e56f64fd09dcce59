"""The answers of people: which are still wanted, how they are stored, and the file that a page saves."""

import logging
import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import msgspec

from propensitybench.chat import Reply
from propensitybench.digests import digest
from propensitybench.errors import BadData, BadInput
from propensitybench.files import MIB, read_text
from propensitybench.judging.items import OWN, Item, Passage
from propensitybench.judging.labels import PERSON, Items, episodes_about
from propensitybench.judging.prompts import NoLabel, read_label
from propensitybench.judging.questions import Question, check_name, stored_questions
from propensitybench.judging.sampling import Sample, Size, sample_of, stored_sample
from propensitybench.runs import StoredRun
from propensitybench.store import Annotation, Manifest, RunFile
from propensitybench.store.rows import AnnotationKey

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
    return digest(manifest.created, manifest.model, manifest.data_digest, str(manifest.seed))


def rater_of(name: str) -> str:
    """A person's name among the raters; raises `BadInput` for one that is hard to read or to tell apart."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"the person's name {name[:_SHOWN]!r}: use up to 40 letters, digits, blanks, dots, dashes and "
            "apostrophes, beginning with a letter or digit"
        )
    return PERSON + name


def quotable(question: Question, item: Item) -> list[Passage]:
    """The passages that can show an answer: the agent's, except calls that are not shown."""
    return [
        one for one in item.passages if one.part in OWN and not (one.part == "call" and question.hides_calls)
    ]


class LabelReading:
    """A question's sample and what people have answered, in a run file that is open for writing.

    Args:
        run: the run.
        file: the same, open for writing.
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
        self._given: dict[str, dict[str, str]] = {}
        keys = {number: key for key, number in self._numbers.items()}
        for key, reply in file.annotations(question.digest):
            if key.rater.startswith(PERSON) and key.task in keys:
                self._given.setdefault(keys[key.task], {})[key.rater] = reply.content

    @property
    def later(self) -> int:
        """The number of episodes that have ended since the sample was drawn, and could not be drawn."""
        known = {task for stratum in self.sample.strata for task in stratum.tasks}
        return len(self._about - known)

    def left(self, rater: str) -> list[str]:
        """Keys of the tasks that a person has still to read, in this person's order."""
        readers = {task: tuple(by) for task, by in self._given.items()}
        return [task for task in self.sample.left(readers, rater) if task in self._drawn]

    def check_rater(self, rater: str) -> None:
        """Raises `BadInput` if somebody has answered under a name that is nearly the same."""
        for known in {known for by in self._given.values() for known in by} - {rater}:
            if _folded(known) == _folded(rater):
                had, asked = known.removeprefix(PERSON), rater.removeprefix(PERSON)
                raise BadInput(f"{asked}: {had} has answers in {self._file.path}; use the same spelling")

    def checked(self, task: str, answer: PersonsAnswer) -> PersonsAnswer:
        """An answer as it is stored.

        Raises:
            BadInput: the task is not in the sample, the category is none of the question, or the quote is
                not in the agent's words.
        """
        if task not in self._drawn:
            raise BadInput(f"task {task[:_SHOWN]!r} is not in the sample of {self._file.path}")
        label = read_label(self.question, self.items[task], _reply(answer), must_quote=False)
        if label.category is not None:
            return PersonsAnswer(label.category, label.quote)
        if label.why is NoLabel.FALSE_QUOTE:
            raise BadInput(f"task {task}: the quote {answer.quote[:_SHOWN]!r} is not in the agent's words")
        known = ", ".join(self.question.names)
        raise BadInput(f"task {task}: there is no category {answer.category[:_SHOWN]!r}; use one of {known}")

    def store(self, rater: str, answers: Mapping[str, PersonsAnswer]) -> int:
        """Stores answers that have been checked, all or none.

        Args:
            rater: the person.
            answers: by the key of the task; one that is there already is left out.

        Returns:
            How many are new.

        Raises:
            BadInput: the person has given another answer about one of the tasks.
        """
        new: dict[str, str] = {}
        for task, answer in answers.items():
            content = _reply(answer).content
            had = self._given.get(task, {}).get(rater)
            if had is None:
                new[task] = content
            elif had != content:
                raise BadInput(
                    f"task {task}: {rater.removeprefix(PERSON)} has answered otherwise in {self._file.path}; "
                    "an answer that is stored is not changed"
                )
        rows = [
            Annotation(AnnotationKey(self._numbers[task], self.question.digest, "", rater), Reply(content))
            for task, content in new.items()
        ]
        if rows:
            self._file.annotate(rows, raters={rater: "{}"})
        for task, content in new.items():
            self._given.setdefault(task, {})[rater] = content
        return len(new)


def open_reading(run: StoredRun, file: RunFile, question: Question, size: Size) -> LabelReading:
    """The reading of a question; a sample is drawn and stored if there is none.

    Raises:
        BadInput: the run file has another question of that name, or the sample cannot be had as asked for.
    """
    check_name(file, question)
    return LabelReading(run, file, question, sample_of(run, file, question, size))


@contextmanager
def reading_of(path: Path, question: Question, size: Size) -> Iterator[LabelReading]:
    """The reading of a question about the run in a file, which is open meanwhile."""
    run = StoredRun(path)
    with RunFile.open(path, write=True) as file:
        reading = open_reading(run, file, question, size)
        if reading.later:
            logger.warning(
                "%s episodes have ended since the sample was drawn and are not in it", reading.later
            )
        yield reading


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
        reading = LabelReading(run, file, question, sample)
        rater = rater_of(saved.person)
        reading.check_rater(rater)
        answers = {task: reading.checked(task, answer) for task, answer in saved.answers.items()}
        return saved, reading.store(rater, answers)
    except BadInput as error:
        raise BadInput(f"--read {path}: {error}") from error


def _reply(answer: PersonsAnswer) -> Reply:
    return Reply(msgspec.json.encode(answer).decode())


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()
