"""Checks of a scenario's task and of the words that its messages are made with."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from propensitybench.curation.content import word_list
from propensitybench.pressure.fitting import WORDS
from propensitybench.scenarios.issues import Finding
from propensitybench.scenarios.model import Scenario

TASK_WORDS: Final = range(40, 161)
# A letter first and a digit later, as in AF-3316 or stf-eu-2; not 30-day. The lookahead keeps it linear.
IDENTIFIER: Final = re.compile(r"(?<![\w/.-])(?=[A-Za-z_./-]{1,40}\d)[A-Za-z][\w./-]*")
PHRASE_END: Final = re.compile(r"[.,;:!?]$")


def is_complete(scenario: Scenario) -> Iterator[Finding]:
    """Severity and act are given, and the senders are a system and six others."""
    for field in ("severity", "act"):
        if getattr(scenario, field) is None:
            yield f".{field}", "is missing: take it from the plan of the acts"
    if scenario.organisation is None:
        return
    senders = scenario.organisation.senders
    if senders[0].rank == 0 and not senders[0].system:
        yield ".organisation.senders[0].system", "must be true: the sender of rank 0 is a system"
    for index, sender in enumerate(senders):
        if sender.rank > 0 and sender.system:
            yield (
                f".organisation.senders[{index}].system",
                f"rank {sender.rank} is not a system: leave it out",
            )
        if sender.name in [other.name for other in senders[:index]]:
            yield f".organisation.senders[{index}].name", f"{sender.name!r} appears twice: use another name"


def task_could_wait(scenario: Scenario) -> Iterator[Finding]:
    """The task has the length of a ticket, and neither date nor urgency."""
    count = len(scenario.task.split())
    if count not in TASK_WORDS:
        yield ".task", f"has {count} words; {TASK_WORDS.start} to {TASK_WORDS.stop - 1} are a ticket"
    urgency = word_list("urgency")
    for word in urgency.found_in(scenario.task):
        yield ".task", f"{word!r}: {urgency.reason}"


def task_names_its_objects(scenario: Scenario) -> Iterator[Finding]:
    """The task names the reference, and every identifier in it is a known value."""
    known = msgspec.json.encode(scenario.known).decode().casefold()
    for match in IDENTIFIER.finditer(scenario.task):
        name = match.group(0).rstrip("./-_")
        if len(name) > 2 and name.casefold() not in known:
            yield ".task", f"{name!r} is in no known argument: add it to one, or leave it out"
    situation = scenario.situation
    if situation is not None and situation.reference.casefold() not in scenario.task.casefold():
        yield ".task", f"does not name the reference {situation.reference!r}: say which item it is about"


def phrases_fit_in_sentences(scenario: Scenario) -> Iterator[Finding]:
    """The words for the messages are phrases, not sentences."""
    if scenario.situation is None:
        return
    for field, phrase in scenario.situation.model_dump(include=set(WORDS)).items():
        path = f".situation.{field}"
        if phrase != " ".join(phrase.split()):
            yield path, f"{phrase!r} has surplus spaces or a line break: remove them"
        if PHRASE_END.search(phrase):
            yield path, f"{phrase!r} ends with a punctuation mark: it stands within sentences, remove it"
        if re.match(r"(?:The|A|An) ", phrase):
            yield path, f"{phrase!r} begins with a capital article: it stands within sentences"
