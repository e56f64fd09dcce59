"""A writer and readers for ``generate --demo``, which need no key: their texts are the built-in ones."""

import json
import re
from typing import Final

from propensitybench.chat import CHARACTERS_PER_TOKEN, ConversationContext, Reply, Request, Usage
from propensitybench.clients import Client
from propensitybench.generation.exchange import Json
from propensitybench.generation.stages import assignment_in
from propensitybench.scenarios import Scenario, read_dataset
from propensitybench.scenarios.rolefile import scenario_entry
from propensitybench.scenarios.storyline import storyline_entry
from propensitybench.taxonomy import PAPER_LADDER

DEADLINE: Final = " It has to be done by Tuesday."
"""What the first draft of the first scenario says, so that a check sends it back."""
SCORES: Final = {"R": 5, "C": 6, "T": 5, "D": 6, "L": 6, "P": 5, "E": 4}
_ITEM: Final = re.compile(r'<file name="\w+\.txt">\n(.*)\n</file>', re.DOTALL)


class CannedClient(Client):
    """Answers the prompts of the writer with built-in texts, and those of readers with the same scores.

    Args:
        model: the address to go by; several readers need several.
    """

    def __init__(self, model: str) -> None:
        self.model = model

    async def reply(self, request: Request, context: ConversationContext) -> Reply:  # noqa: ARG002
        """What the prompt asks for."""
        prompts = [message.content for message in request.messages if message.role == "user"]
        if item := _ITEM.search(prompts[0]):
            found = _scores(item[1])
        else:
            assignment = assignment_in(prompts[0])
            found = canned_text(assignment)
            if len(prompts) == 1 and assignment["stage"] == "scenario" and assignment["row"]["number"] == 1:
                found["task"] += DEADLINE
        return _reply(request, found, self.model)


def _reply(request: Request, found: Json, model: str) -> Reply:
    text = json.dumps(found, ensure_ascii=False)
    sent = sum(len(message.content) for message in request.messages)
    usage = Usage(sent // CHARACTERS_PER_TOKEN, len(text) // CHARACTERS_PER_TOKEN)
    return Reply(content=text, usage=usage, model=model)


def canned_text(assignment: Json) -> Json:
    """The built-in text for an assignment of `stages`, whose rows are of the built-in allocation."""
    stage = assignment["stage"]
    if stage == "storyline":
        return _storyline(assignment)
    scenarios = _by_row(assignment)
    if stage == "organisation":
        organisation = next(iter(scenarios.values())).organisation
        assert organisation is not None
        return organisation.model_dump(mode="json")
    if stage == "sketches":
        return {"sketches": [_sketch(row["row"], scenarios[row["row"]]) for row in assignment["rows"]]}
    row = assignment["row"]
    return {**scenario_entry(scenarios[row["row"]]), "severity": row["severity"], "act": row["act"]}


def _by_row(assignment: Json) -> dict[str, Scenario]:
    """The built-in scenarios of a role by the label of their row: the capability and a number."""
    place = tuple(assignment[name] for name in ("domain", "workspace", "role"))
    found: dict[str, Scenario] = {}
    for scenario in read_dataset().scenarios:
        if (scenario.domain, scenario.workspace, scenario.role) == place:
            nth = 1 + sum(other.capability == scenario.capability for other in found.values())
            found[f"{scenario.capability} {nth}"] = scenario
    return found


def _sketch(row: str, scenario: Scenario) -> Json:
    return {
        "row": row,
        "name": scenario.name,
        "job": scenario.states.target,
        "obstacle": scenario.aligned.errors[0],
        "way": scenario.misaligned.acknowledgement,
    }


def _storyline(assignment: Json) -> Json:
    fitting = [
        storyline
        for storyline in read_dataset().storylines
        if (storyline.dimension, storyline.ladder) == (assignment["dimension"], PAPER_LADDER)
        and assignment["domain"] in storyline.domains
    ]
    # Those that suit most kinds of requester come first.
    fitting.sort(key=lambda storyline: len(storyline.fits), reverse=True)
    return storyline_entry(fitting[int(assignment["place"].rpartition("-")[2]) - 1])


def _scores(text: str) -> Json:
    pressure = SCORES["P"] if "LATER MESSAGE" in text else None
    quote = " ".join(text.partition("\nUSER\n")[2].split()[:3])
    return {**SCORES, "P": pressure, "comment": "Not read.", "quote": quote}
