"""Checks of messages as the agent gets them: a storyline fitted with a scenario's words."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from propensitybench.curation.slot_places import SlotPlaces
from propensitybench.curation.text_stats import words
from propensitybench.pressure.fitting import SlotWords, fit
from propensitybench.pressure.messages import suitable
from propensitybench.scenarios.issues import Finding
from propensitybench.scenarios.model import PressureMessage, Scenario
from propensitybench.scenarios.storyline import Storyline

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
VERB_AFTER: Final = re.compile(r"\{(\w+?)(?:_cap)?\} (is|was|has|are|were|have)\b")
# Names of organisations and people need no article, and their number cannot be told from their form.
NUMBERED: Final = (
    "deliverable",
    "deliverable_short",
    "system",
    "event",
    "unit_at_risk",
    "revenue",
    "approver",
)
AFTER_PREPOSITION: Final = re.compile(r"\b(?:of|for|from|on|in|to|with|by|at|without) $")
PLURAL_VERBS: Final = ("are", "were", "have")
_HEAD_ENDS: Final = re.compile(r" (?:of|for|on|in|at|from|by|with|to|under|that|which|between|over|across) ")


class TextIssue(NamedTuple):
    """What is wrong in a fitted text, and around which of its characters."""

    what: str
    start: int
    end: int


def fitted_issues(storyline: Storyline, scenarios: Sequence[Scenario]) -> Iterator[Finding]:
    """Every issue of the messages in the scenarios that the storyline suits.

    An issue of a message that occurs in several scenarios is reported for the first, with their number.

    Args:
        storyline: one whose slots all have words (`storyline_checks.slots_have_words`).
        scenarios: those of the data set.
    """
    first: dict[tuple[str, str], str] = {}
    uses: Counter[tuple[str, str]] = Counter()
    places = SlotPlaces(storyline, MESSAGE_WORDS, _is_broken)
    for scenario in suiting(storyline, scenarios):
        names = _names(scenario)
        if not places.are_doubtful(SlotWords(scenario), names):
            continue
        for index, message in enumerate(fit(storyline, scenario, 0)):
            found: dict[tuple[str, str], str] = {}
            for path, what, shown in _message_issues(message, names):
                found.setdefault((f".messages[{index}]{path}", what), shown)
            uses.update(found.keys())
            for key, shown in found.items():
                first.setdefault(key, f"{shown} in {scenario.name}")
    for (path, what), where in first.items():
        more = uses[path, what] - 1
        yield path, f"{what}: {where}" + (f" and {more} more" if more else "")


def suiting(storyline: Storyline, scenarios: Iterable[Scenario]) -> list[Scenario]:
    """The scenarios in which a storyline may be used."""
    return [
        scenario
        for scenario in scenarios
        if scenario.organisation is not None and suitable([storyline], scenario, storyline.dimension)
    ]


def _names(scenario: Scenario) -> list[str]:
    """The names of a scenario's tools, as they are and in words."""
    return sorted({shape for tool in scenario.tool_names() for shape in (tool, tool.replace("_", " "))})


def _message_issues(message: PressureMessage, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Every issue of a message."""
    count = len(words(message.body))
    if count not in MESSAGE_WORDS:
        least, most = MESSAGE_WORDS.start, MESSAGE_WORDS.stop - 1
        yield ".body", f"a message has {least} to {most} words", f"{count}"
    for path, text in ((".subject", message.subject), (".body", message.body)):
        for wrong in text_issues(text):
            around = text[max(0, wrong.start - EXCERPT) : wrong.end + EXCERPT]
            yield path, wrong.what, repr(around)
        lower = text.lower()
        for name in names:
            if name in lower:
                yield path, "names a tool, say what is wanted instead", repr(name)


def text_issues(text: str) -> Iterator[TextIssue]:
    """What is broken in a fitted text: starts of sentences, articles, leftovers of slots."""
    for pattern, what in _PATTERNS:
        for match in pattern.finditer(text):
            yield TextIssue(what, match.start(), match.end())
    for start, end in _small_starts(text):
        yield TextIssue("a sentence begins in lower case: use the slot's form ending in _cap", start, end)


# The phrases of a scenario are read once for all storylines.
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


def number_warnings(storyline: Storyline, scenarios: Sequence[Scenario]) -> Iterator[Finding]:
    """A verb in the singular after a phrase in the plural, or the other way round."""
    for index, message in enumerate(storyline.messages):
        for field, text in (("deadline", message.deadline), ("body", message.body)):
            for match in VERB_AFTER.finditer(text):
                name, verb = match.group(1), match.group(2)
                if name not in NUMBERED or AFTER_PREPOSITION.search(text[: match.start()]):
                    continue
                wrong = [
                    phrase
                    for scenario in suiting(storyline, scenarios)
                    if is_plural(phrase := getattr(scenario.situation, name)) != (verb in PLURAL_VERBS)
                ]
                if wrong:
                    yield (
                        f".messages[{index}].{field}",
                        f"{wrong[0]!r} and {verb!r} do not agree in number (scenarios: {len(wrong)}): "
                        "reword it so that both forms fit",
                    )


def is_plural(phrase: str) -> bool:
    """Whether a noun phrase looks like a plural: by its head, or because it joins two with *and*."""
    head = _HEAD_ENDS.split(phrase)[0]
    return " and " in head or (head.endswith("s") and not head.endswith(("ss", "us", "is", "ics")))
