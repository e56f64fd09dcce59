"""Checks of messages as the agent gets them: a storyline fitted with a scenario's words."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from string import ascii_letters, digits
from typing import Final, NamedTuple

from propensitybench.curation.text_stats import words
from propensitybench.pressure.fitting import (
    NUMBERS,
    SLOT,
    SlotWords,
    fit,
    other_before,
    steps,
    without_slot,
)
from propensitybench.pressure.messages import suitable
from propensitybench.pressure.values import Step, schedule
from propensitybench.scenarios.issues import Finding
from propensitybench.scenarios.model import PressureMessage, Scenario
from propensitybench.scenarios.storyline import Storyline, StoryMessage

MESSAGE_WORDS: Final = range(15, 111)
EXCERPT: Final = 30
# Characters in which a word is looked for, so that no text takes long.
NEAR: Final = 60
ABBREVIATIONS: Final = frozenset(
    ("approx.", "co.", "corp.", "dr.", "e.g.", "i.e.", "inc.", "ltd.", "mr.", "mrs.", "ms.", "no.", "nos.")
)
SENTENCE_START: Final = re.compile(r"[.!?][ \n]+['\"(]*(?!p\.p\.)([a-z])")
# What a system wrote is quoted as it stands, and "p.p." begins a signature.
LINE_START: Final = re.compile(r"(?!p\.p\.)[\s'\"(]*([a-z])")
QUOTATION: Final = ">"
ARTICLES: Final = ("the", "a", "an")
BEFORE_NO_ARTICLE: Final = frozenset((*ARTICLES, "my", "our", "your", "their", "its", "every", "each"))
OPENING: Final = "'\"(>"
# Not in "do DO 61-14" and "For Bodeum IT it's".
DOUBLED: Final = re.compile(r"\b(?i:(?!(?:that|had|the|an?)\b)([a-z]+)) (?![A-Z]{2})(?i:\1)\b(?![-'])")
_PATTERNS: Final = (
    (
        re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(BEFORE_NO_ARTICLE))}) (?:the|an?)\b(?!-)", re.IGNORECASE),
        "two articles, or a possessive and an article: take the article from slot or text",
    ),
    (DOUBLED, "the same word twice"),
    (
        re.compile(
            r"(?<![\w/-])(?:[Aa] (?!eu|one\b|once\b)[aeio]"
            r"|[Aa]n (?!hour|hone|hono|heir)[b-df-hj-np-tv-z])[a-z]+"
        ),
        "the other form of the article is needed",
    ),
    (
        re.compile(r"[{}]|_cap\b|[^\s>] {2,}\S| [,;:!?](?=\s|$)| \.(?=\s|$)|,,|(?<!\.)\.\.(?!\.)|,\.|\(\)"),
        "surplus spaces, punctuation or braces, left by a slot",
    ),
)
# Stands for what is before a phrase or after it: an ordinary word that begins a sentence.
OTHER: Final = "Somebody"
NAME: Final = "Kim"
NUMBER: Final = "40"
REFERENCE: Final = "RQ-4711"
LAST_WORDS: Final = re.compile(r"(?:\S+\s+){3}\S*\Z")
FIRST_WORDS: Final = re.compile(r"\s*(?:\S+\s*){0,3}")
LETTERS: Final = ascii_letters + digits + "-/"


class TextIssue(NamedTuple):
    """What is wrong in a fitted text, and around which of its characters."""

    what: str
    start: int
    end: int


class _Seam(NamedTuple):
    """What matters of a phrase where it meets a text.

    Attributes:
        first, last: its first and last word.
        several: whether these are two words.
        broken: whether something is wrong within the phrase.
    """

    first: str
    last: str
    several: bool
    broken: bool


class _Phrase(NamedTuple):
    """What a slot stands for, and the number of its words."""

    text: str
    words: int
    seam: _Seam


class FittedScenario:
    """A scenario with the phrases that slots stand for, by who writes and who has written before."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._slots = SlotWords(scenario)
        self._phrases: dict[tuple[int | None, int | None, bool], dict[str, _Phrase]] = {}
        own = {
            word for text in self._slots.at(schedule()[-1], schedule()[-3]).values() for word in words(text)
        }
        # The words of the tools' names that a storyline would have to bring along.
        self.foreign = [set(words(tool.replace("_", " "))) - own for tool in scenario.tool_names()]

    def at(self, step: Step, before: Step | None) -> dict[str, _Phrase]:
        """The phrases at a step of a storyline; see `SlotWords.at`."""
        key = step.rank, before and before.rank, before is None
        if key not in self._phrases:
            numbers = dict.fromkeys(NUMBERS, _phrase(NUMBER))
            slots = self._slots.at(step, before).items()
            self._phrases[key] = {slot: _phrase(text) for slot, text in slots} | numbers
        return self._phrases[key]


def fitted_scenarios(scenarios: Iterable[Scenario]) -> list[FittedScenario]:
    """The scenarios into which storylines can be fitted; made once for all storylines."""
    return [
        FittedScenario(scenario)
        for scenario in scenarios
        if scenario.organisation is not None and scenario.situation is not None
    ]


def fitted_issues(storyline: Storyline, scenarios: Sequence[FittedScenario]) -> Iterator[Finding]:
    """Every issue of the messages in the scenarios that the storyline suits.

    An issue of a message that occurs in several scenarios is reported for the first, with their number.

    A large set has half a million messages. What a slot can break lies within its phrase or beside it, and
    most scenarios give a place the same words as others: so only messages that may be broken are read.

    Args:
        storyline: one whose slots all have words (`storyline_checks.slots_have_words`).
        scenarios: those of the data set.
    """
    first: dict[tuple[str, str], str] = {}
    uses: Counter[tuple[str, str]] = Counter()
    suiting = [
        one for one in scenarios if suitable([storyline], one.scenario, storyline.dimension, storyline.ladder)
    ]
    for place, doubtful in sorted(_doubtful(storyline, suiting).items()):
        one = suiting[place]
        messages = fit(storyline, one.scenario, 0)
        for index in sorted(doubtful):
            found: dict[tuple[str, str], str] = {}
            for path, what, shown in _message_issues(messages[index], one.scenario.tool_names()):
                found.setdefault((f".messages[{index}]{path}", what), shown)
            uses.update(found.keys())
            for key, shown in found.items():
                first.setdefault(key, f"{shown} in {one.scenario.name}")
    for (path, what), where in first.items():
        more = uses[path, what] - 1
        yield path, f"{what}: {where}" + (f" and {more} more" if more else "")


def _doubtful(storyline: Storyline, scenarios: Sequence[FittedScenario]) -> Mapping[int, set[int]]:
    """The messages that may have an issue, by the place of the scenario."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    ladder = steps(storyline)
    for index, (step, message) in enumerate(zip(ladder, storyline.messages, strict=True)):
        levels = [one.at(step, other_before(ladder, step)) for one in scenarios]
        for place in _doubtful_places(message.subject, levels):
            found[place].add(index)
        for body in bodies(message):
            for place in (
                *_doubtful_places(body, levels),
                *_odd_places(message.subject, body, scenarios, levels),
            ):
                found[place].add(index)
    return found


def _odd_places(
    subject: str,
    body: str,
    scenarios: Sequence[FittedScenario],
    levels: Sequence[Mapping[str, _Phrase]],
) -> Iterator[int]:
    """The places of the scenarios in which a message may be too long or short, or may name a tool."""
    texts, slots = _parts(body)
    written = sum(len(words(part)) for part in texts)
    # A phrase and the text beside it may make one word that is counted twice, as in "{requester}'s".
    twice = sum(bool(part) and not part[0].isspace() for part in texts[1:])
    surely = range(MESSAGE_WORDS.start + twice, MESSAGE_WORDS.stop)
    brought = set(words(SLOT.sub(" ", f"{subject} {body}")))
    for place, one in enumerate(scenarios):
        phrases = [levels[place][slot] for slot in slots]
        length = written + sum(phrase.words for phrase in phrases)
        if length not in surely or any(name <= brought for name in one.foreign):
            given = [*(phrase.text for phrase in phrases), ""]
            filled = "".join(chain.from_iterable(zip(texts, given, strict=True)))
            named = _tools_in(f"{subject} {filled}", one.scenario.tool_names())
            if len(words(filled)) not in MESSAGE_WORDS or any(named):
                yield place


def bodies(message: StoryMessage) -> set[str]:
    """The forms of the body, after a message from the agent and after silence, with the deadline if any."""
    whole = message.body.replace("{deadline}", message.deadline) if message.deadline else message.body
    whole = whole if message.deadline else without_slot(whole, "deadline")
    return {
        whole.replace("{opening}", line) if line else without_slot(whole, "opening")
        for line in (message.after_message, message.after_silence)
    }


def _parts(text: str) -> tuple[list[str], list[str]]:
    """The texts around the slots, one more than slots, and the slots."""
    parts = SLOT.split(text)
    return parts[::2], parts[1::2]


def _doubtful_places(text: str, phrases: Sequence[Mapping[str, _Phrase]]) -> Iterator[int]:
    """The places of the scenarios with whose phrases something may be wrong in a text."""
    texts, slots = _parts(text)
    between = [OTHER * (at > 0) + part + OTHER * (at < len(slots)) for at, part in enumerate(texts)]
    if any(map(_is_broken, between)):
        yield from range(len(phrases))
        return
    for at, slot in enumerate(slots):
        before = _end(OTHER * (at > 0) + texts[at])
        after = _start(texts[at + 1] + OTHER * (at + 1 < len(slots)))
        # Where no word is between two phrases, the last word of one is beside the first of the other.
        beside = slots[at - 1] if at and not any(map(str.isalnum, texts[at])) else ""
        seams = [(given[beside].seam.last if beside else "", given[slot].seam) for given in phrases]
        wrong = {
            (last, seam)
            for last, seam in set(seams)
            if seam.broken or _is_seam_broken(f"{OTHER} {last}{texts[at]}" if beside else before, seam, after)
        }
        if wrong:
            yield from (place for place, seam in enumerate(seams) if seam in wrong)


def _is_seam_broken(before: str, seam: _Seam, after: str) -> bool:
    around = {*words(before), *words(after)}
    several = f" {OTHER} {_plain(seam.last, around)}" if seam.several else ""
    return _is_broken(f"{before}{_plain(seam.first, around)}{several}{after}")


def _plain(word: str, around: set[str]) -> str:
    """A word, or one for all that differ from it in nothing that matters beside these words."""
    if word in around or not around.isdisjoint(("a", "an")) or word in BEFORE_NO_ARTICLE:
        return word
    return "it" if word.isalpha() and word.islower() else word


@lru_cache(maxsize=1 << 16)
def _phrase(text: str) -> _Phrase:
    first, _, rest = text.partition(" ")
    last = rest.rpartition(" ")[2] or first
    seam = _Seam(_like_all(first), _like_all(last), bool(rest), _is_broken(f"{OTHER} {text}"))
    return _Phrase(text, len(words(text)), seam)


def _like_all(word: str) -> str:
    """A word, or one for all references and all names, which differ between scenarios but not in this."""
    if not word[:1].isupper():
        return word
    if not word.strip(LETTERS) and any(map(str.isdigit, word)):
        return REFERENCE
    # Not "The" and "Our", before which there may be no article.
    return NAME if len(word) > 3 and word.isalpha() and word[1:].islower() else word


def _end(text: str) -> str:
    """The last few words of a text, after a word that begins a sentence."""
    found = LAST_WORDS.search(text)
    start = found.start() if found else 0
    return f"{OTHER} {text[start:]}" if start else text


def _start(text: str) -> str:
    """The first few words of a text."""
    return text[: FIRST_WORDS.match(text).end()]  # type: ignore[union-attr]


def _message_issues(message: PressureMessage, tools: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Every issue of a message."""
    forms = [(".body", message.body), (".body", message.answered)][: 1 + bool(message.answered)]
    for path, text in forms:
        if len(words(text)) not in MESSAGE_WORDS:
            least, most = MESSAGE_WORDS.start, MESSAGE_WORDS.stop - 1
            yield path, f"a message has {least} to {most} words", f"{len(words(text))}"
    for path, text in ((".subject", message.subject), *forms):
        for wrong in text_issues(text):
            around = text[max(0, wrong.start - EXCERPT) : wrong.end + EXCERPT]
            yield path, wrong.what, repr(around)
        for tool in _tools_in(text, tools):
            yield path, "names a tool, say what is wanted instead", repr(tool)


def _tools_in(text: str, tools: Iterable[str]) -> Iterator[str]:
    """The tools that a text names, as they are called or in words."""
    lower = text.lower()
    return (tool for tool in tools if tool in lower or tool.replace("_", " ") in lower)


def text_issues(text: str) -> Iterator[TextIssue]:
    """What is broken in a fitted text: starts of sentences, articles, leftovers of slots."""
    for pattern, what in _PATTERNS:
        for match in pattern.finditer(text):
            yield TextIssue(what, match.start(), match.end())
    for start, end in _small_starts(text):
        yield TextIssue("a sentence begins in lower case: use the slot's form ending in _cap", start, end)


@lru_cache(maxsize=1 << 16)
def _is_broken(text: str) -> bool:
    return next(text_issues(text), None) is not None


def _small_starts(text: str) -> Iterator[tuple[int, int]]:
    for match in SENTENCE_START.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if line.startswith(QUOTATION) and "\n" in match.group():
            continue
        before = text[max(0, match.start() - NEAR) : match.start() + 1].split()[-1].lower().lstrip(OPENING)
        if before not in ABBREVIATIONS and not before.endswith("...") and not _is_name(text, match.start(1)):
            yield match.span(1)
    place, previous = 0, ""
    for line in text.split("\n"):
        begun = LINE_START.match(line)
        # After "Hello," and after a quotation the text may begin with a small letter.
        goes_on = previous.endswith(",") or previous.startswith(QUOTATION)
        if begun and not goes_on and not _is_name(text, place + begun.start(1)):
            yield place + begun.start(1), place + begun.end(1)
        place += len(line) + 1
        previous = line.strip() or previous


def _is_name(text: str, start: int) -> bool:
    """Whether an identifier, such as bdb-07 or vault/billing, begins there."""
    name = text[start : start + NEAR].split(maxsplit=1)[0].strip("'\"().,:;!?")
    return any(letter.isdigit() or letter in "_/" for letter in name)
