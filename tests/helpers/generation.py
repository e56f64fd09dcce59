"""Small plans, and writers over HTTP that answer as the keyless writer does, or worse."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from helpers.openai_server import Answer, Json, encoded, request_of

from propensitybench.generation.keyless import answer
from propensitybench.generation.plan import Wanted, make_plan
from propensitybench.generation.stages import assignment_in
from propensitybench.generation.workfolder import WorkFolder
from propensitybench.taxonomy import Slot, taxonomy

DOMAIN = "self-proliferation"


def allocation(path: Path, scenarios: int, domain: str = DOMAIN) -> Path:
    """An allocation file with the first scenarios of a domain."""
    slots = [slot for slot in taxonomy().allocation if slot.domain == domain][:scenarios]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([Slot._fields, *slots])
    return path


def small_plan(folder: Path, scenarios: int, domain: str = DOMAIN, **storylines: int) -> WorkFolder:
    """A plan of the first scenarios of a domain, in the folder ``work``."""
    wanted = {name.replace("_", "-"): number for name, number in storylines.items()}
    path = allocation(folder / "allocation.csv", scenarios, domain)
    return make_plan(Wanted(domain, path, storylines=wanted), folder / "work")


def keyless(body: Json, _number: int = 0) -> Answer:
    """What the keyless writer answers."""
    return encoded(answer(request_of(body)), body["model"])


def assignment(body: Json) -> dict[str, Any]:
    """What a request asks for."""
    return assignment_in(body["messages"][1]["content"])


def rounds(body: Json) -> int:
    """0 for a first request, 1 for a correction."""
    return (len(body["messages"]) - 2) // 2


def changed(body: Json, change: Callable[[dict[str, Any]], None]) -> Answer:
    """The keyless writer's text with a change made to it."""
    reply = answer(request_of(body))
    text = msgspec.json.decode(reply.content)
    change(text)
    return encoded(msgspec.structs.replace(reply, content=msgspec.json.encode(text).decode()), body["model"])
