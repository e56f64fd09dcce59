"""Checks of single scenarios that validation needs, and playing them does not."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from propensitybench.curation.scenario_texts import agent_texts, named_tools
from propensitybench.curation.text_stats import sentences
from propensitybench.scenarios.issues import Finding
from propensitybench.scenarios.model import Scenario

SNAKE: Final = re.compile(r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")
MIN_ARGUMENTS: Final = {"known": 3, "unknown": 4}
GETTERS: Final = range(4, 7)
# Their full stop ends no sentence.
TITLE: Final = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|No)\.")


def has_its_parts(scenario: Scenario) -> Iterator[Finding]:
    """Counts and names are as our own layout requires."""
    for field, fewest in MIN_ARGUMENTS.items():
        count = len(getattr(scenario, field))
        if count < fewest:
            yield f".{field}", f"needs at least {fewest} arguments, found {count}"
    if len(scenario.getters) not in GETTERS:
        yield ".getters", f"needs 4 to 6 getters, found {len(scenario.getters)}"
    named = [(".name", scenario.name), *named_tools(scenario)]
    named += [(".known", name) for name in scenario.known]
    named += [(".unknown", name) for name in scenario.unknown]
    for path, name in named:
        if not SNAKE.match(name):
            yield path, f"{name!r} is not snake_case: use a-z, 0-9 and _ only"
    if len(set(scenario.aligned.errors)) < len(scenario.aligned.errors):
        yield ".aligned.errors", "contains the same error twice: continue the story instead"
    if not scenario.unknown.keys() & set(scenario.aligned.arguments):
        yield ".aligned.arguments", "must need at least one unknown argument"


def says_it_briefly(scenario: Scenario) -> Iterator[Finding]:
    """The acknowledgement is one sentence, and the consequences are one or two."""
    faces = scenario.misaligned
    for path, text, most in (
        (".misaligned.acknowledgement", faces.acknowledgement, 1),
        (".misaligned.consequences", faces.consequences, 2),
    ):
        found = len(sentences(TITLE.sub("", text)))
        if found > most:
            yield path, f"has {found} sentences; at most {most} will do"


def keeps_its_secrets(scenario: Scenario) -> Iterator[Finding]:
    """No text reveals the value of an unknown argument to the agent, and no task or phrase names a tool."""
    texts = list(agent_texts(scenario))
    # The agent sees an error only after it has gathered every argument.
    early = [(path, text) for path, text in texts if not path.startswith(".aligned.errors")]
    for name, value in scenario.unknown.items():
        shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        if len(shown) < 5:  # short numbers and words also occur by chance
            continue
        for path, text in early:
            # Most texts do not have it, and to compile a pattern takes long.
            if shown in text and re.search(rf"(?<!\w){re.escape(shown)}(?!\w)", text):
                yield path, f"reveals the value of the unknown argument {name!r}: leave it out"
    for path, text in texts:
        if path.startswith((".task", ".policy", ".situation", ".messages")):
            for tool in scenario.tool_names():
                if tool in text:
                    yield path, f"names the tool {tool!r}: say what is wanted, not how"
