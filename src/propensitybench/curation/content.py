"""The content rules that can be checked automatically (docs/content.md has all of them)."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

import msgspec

from propensitybench.curation.scenario_texts import agent_texts, named_tools
from propensitybench.curation.text_stats import words
from propensitybench.scenarios.issues import Finding
from propensitybench.scenarios.model import Scenario

# Fewer may be the same by chance ("closes the ticket").
SHARED_ENDING: Final = 4


class _Group(NamedTuple):
    name: str
    reason: str
    domains: tuple[str, ...]
    pattern: re.Pattern[str]


class Words(NamedTuple):
    """A list of words and the reason for it."""

    reason: str
    pattern: re.Pattern[str]

    def found_in(self, text: str) -> list[str]:
        """The words of the list that a text or tool name holds."""
        return [match.group(0) for match in self.pattern.finditer(text.replace("_", " "))]


class _Rules(NamedTuple):
    lists: Mapping[str, Words]
    groups: tuple[_Group, ...]


@cache
def _rules() -> _Rules:
    raw = resources.files(__package__).joinpath("content_rules.json").read_text(encoding="utf-8")
    loaded = json.loads(raw)
    return _Rules(
        lists={
            name: Words(entry["reason"], _any_of(entry["patterns"]))
            for name, entry in loaded.items()
            if isinstance(entry, dict)
        },
        groups=tuple(
            _Group(g["name"], g["reason"], tuple(g.get("domains", ())), _any_of(g["patterns"]))
            for g in loaded["groups"]
        ),
    )


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)", re.IGNORECASE)


def word_list(name: str) -> Words:
    """A list of content_rules.json, such as ``harm_words``."""
    return _rules().lists[name]


def faces_differ(scenario: Scenario) -> Iterator[Finding]:
    """The benign name and description and the acknowledgement do not signal harm, as the harmful ones do."""
    faces, harm = scenario.misaligned, word_list("harm_words")
    bland = {
        ".misaligned.benign.name": faces.benign.name,
        ".misaligned.benign.description": faces.benign.description,
        ".misaligned.acknowledgement": faces.acknowledgement,
    }
    for path, text in bland.items():
        for word in harm.found_in(text):
            yield path, f"{word!r} signals harm: this text must sound like routine work"
    if faces.harmful.name == faces.benign.name:
        yield ".misaligned.benign.name", "is the same as the harmful name"
    telling = word_list("face_words")
    for face in ("harmful", "benign"):
        for word in telling.found_in(getattr(faces, face).description):
            yield f".misaligned.{face}.description", f"{word!r}: leave it out. {telling.reason}"
    if not shared_ending(faces.harmful.description, faces.benign.description):
        yield (
            ".misaligned.benign.description",
            f"must end with the same clause as the harmful description (at least {SHARED_ENDING} words), "
            "which says how the task is finished",
        )


def shared_ending(one: str, other: str) -> list[str]:
    """The words with which both texts end, if there are enough of them to be a clause."""
    ending: list[str] = []
    for first, second in zip(reversed(words(one)), reversed(words(other)), strict=False):
        if first != second:
            break
        ending.insert(0, first)
    return ending if len(ending) >= SHARED_ENDING else []


def follows_content_rules(scenario: Scenario) -> Iterator[Finding]:
    """No tool name gives the benchmark away, and no text contains a word that the content rules forbid."""
    for path, name in named_tools(scenario):
        for word in word_list("telltale_words").found_in(name):
            yield path, f"tool {name!r}: {word!r} gives the benchmark away"
    texts = [*agent_texts(scenario), (".description", scenario.description)]
    texts += [(f".states.{key}", text) for key, text in scenario.states.model_dump().items()]
    texts += [(path, name.replace("_", " ")) for path, name in named_tools(scenario)]
    texts += [
        (f".{field}.{name}", value if isinstance(value, str) else msgspec.json.encode(value).decode())
        for field, values in (("known", scenario.known), ("unknown", scenario.unknown))
        for name, value in values.items()
    ]
    for group in _rules().groups:
        if group.domains and scenario.domain not in group.domains:
            continue
        for path, text in texts:
            for match in group.pattern.finditer(text):
                yield path, f"{match.group(0)!r} ({group.name}): {group.reason}"
