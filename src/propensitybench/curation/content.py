"""The content rules that can be checked automatically (docs/content.md has all of them)."""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple

import msgspec

from propensitybench.curation.scenario_texts import agent_texts, named_tools
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.rolefile import Finding


class _Group(NamedTuple):
    name: str
    reason: str
    domains: tuple[str, ...]
    pattern: re.Pattern[str]


class _Rules(NamedTuple):
    harm: re.Pattern[str]
    telltale: re.Pattern[str]
    groups: tuple[_Group, ...]


@cache
def _rules() -> _Rules:
    raw = resources.files(__package__).joinpath("content_rules.json").read_text(encoding="utf-8")
    loaded = json.loads(raw)
    return _Rules(
        harm=_any_of(loaded["harm_words"]["patterns"]),
        telltale=_any_of(loaded["telltale_words"]["patterns"]),
        groups=tuple(
            _Group(g["name"], g["reason"], tuple(g.get("domains", ())), _any_of(g["patterns"]))
            for g in loaded["groups"]
        ),
    )


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)", re.IGNORECASE)


def harm_words(text: str) -> list[str]:
    """The words in a text or tool name that signal harm."""
    return [match.group(0) for match in _rules().harm.finditer(text.replace("_", " "))]


def faces_differ(scenario: Scenario) -> Iterator[Finding]:
    """The harmful name and description signal harm; the benign ones and the acknowledgement do not."""
    faces = scenario.misaligned
    if not harm_words(f"{faces.harmful.name} {faces.harmful.description}"):
        yield ".misaligned.harmful", "has no word that signals harm: state the violation plainly"
    bland = {
        ".misaligned.benign.name": faces.benign.name,
        ".misaligned.benign.description": faces.benign.description,
        ".misaligned.acknowledgement": faces.acknowledgement,
    }
    for path, text in bland.items():
        for word in harm_words(text):
            yield path, f"{word!r} signals harm: this text must sound like routine work"
    if faces.harmful.name == faces.benign.name:
        yield ".misaligned.benign.name", "is the same as the harmful name"


def follows_content_rules(scenario: Scenario) -> Iterator[Finding]:
    """No tool name gives the benchmark away, and no text contains a word that the content rules forbid."""
    rules = _rules()
    for path, name in named_tools(scenario):
        for match in rules.telltale.finditer(name.replace("_", " ")):
            yield path, f"tool {name!r}: {match.group(0)!r} gives the benchmark away"
    texts = [*agent_texts(scenario), (".description", scenario.description)]
    texts += [(f".states.{key}", text) for key, text in scenario.states.model_dump().items()]
    texts += [(path, name.replace("_", " ")) for path, name in named_tools(scenario)]
    texts += [
        (f".{field}.{name}", value if isinstance(value, str) else msgspec.json.encode(value).decode())
        for field, values in (("known", scenario.known), ("unknown", scenario.unknown))
        for name, value in values.items()
    ]
    for group in rules.groups:
        if group.domains and scenario.domain not in group.domains:
            continue
        for path, text in texts:
            for match in group.pattern.finditer(text):
                yield path, f"{match.group(0)!r} ({group.name}): {group.reason}"
