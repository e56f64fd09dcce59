"""What a reader sees of an episode: numbered passages, without the model's name."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from propensitybench.digests import seed_from
from propensitybench.episode.events import find_message
from propensitybench.judging.questions import Question, View
from propensitybench.runs.transcript import Entry, Transcript

Part = Literal["system", "user", "pressure", "tool", "thoughts", "message", "text", "call"]
"""Whose words a passage holds, and where they stand in a reply."""

OWN: Final[frozenset[Part]] = frozenset(("thoughts", "message", "text", "call"))
"""The parts that the agent wrote."""

_TITLES: Final[dict[Part, str]] = {
    "system": "the agent's instructions",
    "user": "to the agent",
    "pressure": "to the agent, a new message",
    "tool": "answer of a tool",
    "thoughts": "the agent, its thoughts",
    "message": "the agent, its message",
    "text": "the agent",
    "call": "the agent, a tool call",
}
HIDDEN_MODEL: Final = "(the model)"
"""What stands for the model's name."""
_HIDDEN_CALL: Final = "(a tool call, not shown)"
# Families and makers of models. None of these words stands in a text of the benchmark's own, so they are
# hidden in every transcript; names that are words of the language (Command, Nova, Sonnet) are left out.
_FAMILIES: Final = (
    "anthropic", "chatgpt", "chatglm", "claude", "codestral", "deepmind", "deepseek", "devstral", "ernie",
    "exaone", "gemini", "gemma", "glm", "gpt", "grok", "hunyuan", "internlm", "jamba", "kimi", "llama",
    "magistral", "minimax", "ministral", "mistral", "mixtral", "moonshotai", "nemotron", "olmo", "openai",
    "qwen", "qwq", "xai", "zhipu",
)  # fmt: skip
# Names of models that also mean something else: hidden only where the address holds them.
_SERIES: Final = frozenset(("o1", "o3", "o4", "r1", "k2"))
_VERSION: Final = r"(?:-?\d(?:[\w.-]*\w)?)?"


class Passage(NamedTuple):
    """A passage of an episode.

    Attributes:
        message: index of its message in the conversation.
        level: the level it belongs to, from 0.
        turn: the turn within the level; 0 for what the agent did not write.
        part: whose words it holds.
        text: the words.
    """

    message: int
    level: int
    turn: int
    part: Part
    text: str

    @property
    def place(self) -> str:
        """Where it stands and whose words it holds."""
        turn = f", turn {self.turn}" if self.turn else ""
        return f"level {self.level}{turn}, {_TITLES[self.part]}"

    @property
    def title(self) -> str:
        """What a judge is told of the passage."""
        return f"[{self.message}] {self.place}"


class Item(NamedTuple):
    """What a reader sees of an episode.

    Attributes:
        task: key of the task.
        passages: in the order of the conversation; nothing else of the episode is shown.
    """

    task: str
    passages: tuple[Passage, ...]

    @property
    def text(self) -> str:
        """All passages with their titles."""
        return "\n\n".join(f"{one.title}:\n{one.text}" for one in self.passages)

    @property
    def mark(self) -> str:
        """A word that stands nowhere in the passages' own text, to show where they begin and end."""
        number = 0
        while (mark := f"transcript-{seed_from(self.task, number) % 16**8:08x}") in self.text:
            number += 1
        return mark

    def find(self, quote: str) -> Passage | None:
        """The agent's first passage that holds a quote verbatim, up to white space."""
        wanted = _spaced(quote)
        if not wanted:
            return None
        own = (one for one in self.passages if one.part in OWN and one.text != _HIDDEN_CALL)
        return next((one for one in own if wanted in _spaced(one.text)), None)


def item_of(transcript: Transcript, question: Question, model: str) -> Item:
    """What a reader of a question sees of an episode.

    Args:
        transcript: of the episode.
        question: says what is shown.
        model: the agent's address; its name is replaced wherever it stands.
    """
    entries = list(transcript)
    last = entries[-1].level if entries else 0
    passages = [
        passage._replace(text=_HIDDEN_CALL) if question.hides_calls and passage.part == "call" else passage
        for passage in passages_of(entries, model)
        if _shown(passage, question.sees, last)
    ]
    return Item(transcript.task, tuple(passages))


def passages_of(entries: Iterable[Entry], model: str) -> list[Passage]:
    """The passages of a conversation without the model's name; one without words is left out."""
    names = re.compile(model_pattern(model), re.IGNORECASE)
    found = (passage for index, entry in enumerate(entries) for passage in _passages(index, entry))
    read = (passage._replace(text=names.sub(HIDDEN_MODEL, passage.text).strip()) for passage in found)
    return [passage for passage in read if passage.text]


def model_pattern(model: str) -> str:
    """What readers do not see, as a regular expression for whole words of any case.

    These are the model's address and name, and the names of model families. A name that is a single word, as
    in ``lab/test``, is hidden only as part of the address: it may as well be a word of the transcript.

    Args:
        model: the address.
    """
    names = {model, model.partition("/")[2], model.rpartition("/")[2]}
    names = {name for name in names if re.search(r"[^\W\d_]", name) and not name.isalpha()}
    names |= _SERIES.intersection(re.split(r"[\W_]", model.casefold()))
    own = [re.escape(name) for name in sorted(names, key=len, reverse=True)]
    families = f"(?:{'|'.join(_FAMILIES)}){_VERSION}"
    return rf"(?<!\w)(?:{'|'.join((*own, families))})(?!\w)"


def _passages(index: int, entry: Entry) -> Iterator[Passage]:
    message, level = entry.message, entry.level
    if message.role != "assistant" or entry.turn is None:
        part: Part = "pressure" if entry.opens_level else "tool" if message.role == "tool" else "user"
        yield Passage(index, level, 0, "system" if message.role == "system" else part, message.content)
        return
    turn = entry.turn.turn
    sent = find_message(message.content)
    if sent is None:
        yield Passage(index, level, turn, "text", message.content)
    else:
        yield Passage(index, level, turn, "thoughts", sent.thoughts)
        yield Passage(index, level, turn, "message", sent.message)
    for call in message.tool_calls:
        yield Passage(index, level, turn, "call", f"{call.name}({call.arguments})")


def _shown(passage: Passage, view: View, last: int) -> bool:
    match view:
        case "transcript":
            return True
        case "act":
            return passage.level == last or passage.message < 2
        case "words":
            return passage.part in OWN


def _spaced(text: str) -> str:
    return " ".join(text.split())
