"""``propensitybench label``: people read transcripts and answer a question about each."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from propensitybench.cli import options
from propensitybench.cli.tables import console
from propensitybench.cli.text import shell_quoted
from propensitybench.errors import BadInput
from propensitybench.escaping import visible
from propensitybench.judging.items import Item, Passage
from propensitybench.judging.people import (
    LabellingSession,
    PersonsAnswer,
    checked_name,
    labelling,
    quotable,
)
from propensitybench.judging.questions import Question, question_names, read_question
from propensitybench.judging.sample import Size
from propensitybench.pages.label import label, store_saved

HELP: Final = "1 to {last}: the answer; b: back, to correct the last one; s: skip; r: read again; q: quit"
BACK, SKIP, AGAIN, QUIT = "b", "s", "r", "q"
MIN_QUOTE: Final = 5


def command(
    file: options.RunPath,
    question: Annotated[
        str | None,
        typer.Option(
            "--question", metavar="NAME|FILE", help="A built-in question, or one of your own (.toml)."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="The reader's name; spell it the same way each time."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            "--page",
            metavar="FILE.html",
            help="Write a page to read and answer on instead; it works offline and saves a file.",
        ),
    ] = None,
    read: Annotated[
        Path | None,
        typer.Option("--read", metavar="FILE.json", help="Store the answers that such a page has saved."),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--number",
            min=1,
            help="Episodes in the sample; a larger number later adds to it. Default: 200.",
        ),
    ] = None,
    twice: Annotated[
        float | None,
        typer.Option("--twice", metavar="SHARE", help="Share of them that two people read. Default: 0.25."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Random seed of the sample. Default: 0.")] = None,
) -> None:
    if read is not None:
        if any(one is not None for one in (question, name, page, number, twice, seed)):
            raise BadInput(f"--read {read}: is given alone; the file says who answered which question")
        person, new, known = store_saved(file, read)
        print(f"answers of {person} stored: {new}; there already: {known}")
    elif question is None:
        raise BadInput(f"label: give a question: --question {' | --question '.join(question_names())}")
    elif page is not None:
        drawn = label(file, question, number=number, twice=twice, seed=seed)
        if count := drawn.write_page(page, name or ""):
            print(f"{page}: {count} episodes to read in a browser. Store what it saves with:")
            print(f"propensitybench label {shell_quoted(file)} --read FILE.json")
        else:
            print(_nothing_left(name or ""))
    elif name is None:
        raise BadInput("label: give your name with --as NAME, or write a page with --page FILE.html")
    else:
        _read_in_terminal(file, read_question(question), Size(number, seed, twice), checked_name(name))


def _read_in_terminal(path: Path, question: Question, size: Size, person: str) -> None:
    with labelling(path, question, size) as labels:
        labels.check_spelling(person)
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="backslashreplace")
        session = _Session(labels, person)
        try:
            with suppress(EOFError):
                session.run()
        finally:
            session.close()


def _nothing_left(person: str) -> str:
    who = f" for {person}" if person else ""
    return f"nothing is left to read{who}; a larger --number adds episodes to the sample"


class _Session:
    """One person reading one episode after the other.

    The last answer can be corrected. It is stored after the next episode, or when the session ends.
    """

    def __init__(self, labels: LabellingSession, person: str) -> None:
        self._labels = labels
        self._person = person
        self._tasks = labels.left(person)
        self._twice = set(labels.sample.read_twice)
        self._categories = _numbered(labels.question.names)
        self._pending: dict[str, PersonsAnswer] = {}
        self._stored = 0
        self._console = console()

    def run(self) -> None:
        """Reads until nothing is left, or the person quits."""
        if not self._tasks:
            print(_nothing_left(self._person))
            return
        self._console.print(_question_text(self._labels.question))
        place = 0
        while (step := self._read(place)) is not None:
            place += step
            if place == len(self._tasks):
                if _ask("that was the last one; Enter: finish; b: back: ") != BACK:
                    return
                place -= 1

    def close(self) -> None:
        """Stores the last answer, and says what is left."""
        self._store()
        if self._tasks:
            print(f"\nanswers stored: {self._stored}; {self._left(self._labels.left(self._person))}")

    def _read(self, place: int) -> int | None:
        """Shows an episode and takes an answer; how far to move on, or None to quit."""
        task, before = self._tasks[place], self._tasks[place - 1] if place else ""
        item = self._labels.items[task]
        self._show(item, place)
        while (given := _ask("answer: ")) != QUIT:
            if given in self._categories:
                self._answer(item, self._categories[given])
                return 1
            if given == SKIP:
                self._pending.pop(task, None)
                self._store()
                return 1
            if given == BACK and before in self._pending:
                return -1
            if given == BACK:
                print("there is no answer to correct: only the last one can be")
            elif given == AGAIN:
                self._show(item, place)
            else:
                print(HELP.format(last=len(self._categories)))
        return None

    def _answer(self, item: Item, category: str) -> None:
        if item.task not in self._pending:
            self._store()
        self._pending[item.task] = PersonsAnswer(category)  # an interrupt in the next line loses no answer
        if category != self._labels.question.none:
            self._pending[item.task] = PersonsAnswer(
                category, _quote(quotable(self._labels.question, item), item)
            )

    def _store(self) -> None:
        self._stored += self._labels.store(self._person, self._pending)
        self._pending = {}

    def _show(self, item: Item, place: int) -> None:
        question = self._labels.question
        episode = _episode_text(item, quotable(question, item), self._left(self._tasks[place:]))
        self._console.print(Group(episode, _question_text(question)))

    def _left(self, tasks: list[str]) -> str:
        twice = sum(task in self._twice for task in tasks)
        return f"{len(tasks)} left, {twice} of them in the part that two people read"


def _quote(passages: Sequence[Passage], item: Item) -> str:
    """The words that show an answer: one of these passages, or a part of one."""
    own = _numbered([passage.text for passage in passages])
    while given := _ask("which passage shows it? its number, words from it, or Enter: "):
        if given in own:
            return own[given]
        if len(given) >= MIN_QUOTE and item.find(given):
            return given
        print(f"give a number from 1 to {len(own)}, or words of the agent exactly as they are written")
    return ""


def _numbered(texts: Sequence[str]) -> dict[str, str]:
    return {str(number): text for number, text in enumerate(texts, start=1)}


def _episode_text(item: Item, numbered: Sequence[Passage], left: str) -> Text:
    """An episode, with the passages that can show an answer numbered."""
    text = Text(f"\n=== {left}\n", style="bold")
    numbers = {passage: number for number, passage in enumerate(numbered, start=1)}
    for passage in item.passages:
        number = f"[{numbers[passage]}] " if passage in numbers else ""
        text.append(f"\n{number}{passage.place}\n", style="bold cyan" if number else "bold")
        text.append(f"{visible(passage.text)}\n", style="not bold")  # rich drops some control characters
    return text


def _question_text(question: Question) -> Group:
    parts = [Text(f"\n=== {question.title}", style="bold")]
    parts += [Text(part.strip()) for part in (question.text, question.people) if part]
    rows = Table.grid(padding=(0, 1))
    for number, category in enumerate(question.categories, start=1):
        text = Text.assemble((category.name, "bold"), ": ", category.definition)
        if category.example:
            text.append(f'\nFor example: "{category.example}"', style="dim")
        rows.add_row(f"{number:3}", text)
    return Group(*parts, rows, "")


def _ask(prompt: str) -> str:
    """What was typed; raises `EOFError` at the end of the input."""
    try:
        return input(prompt).strip()
    except RuntimeError as error:  # standard input is closed
        raise EOFError from error
