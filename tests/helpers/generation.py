"""Small plans, and writers who answer with the built-in texts, over HTTP or not, or with worse."""

import asyncio
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from helpers.openai_server import Answer, Json, says

from propensitybench.chat import ConversationContext, Reply, Request, Usage
from propensitybench.clients import Client
from propensitybench.engine import Price
from propensitybench.generation.demo import canned_text
from propensitybench.generation.plan import Wanted, make_plan
from propensitybench.generation.run import Models, write
from propensitybench.generation.stages import assignment_in
from propensitybench.generation.workfolder import WorkFolder
from propensitybench.taxonomy import Slot, taxonomy

DOMAIN = "self-proliferation"
MODEL = "somebody/writes"


class Writer(Client):
    """Writes the built-in texts."""

    model = MODEL

    async def reply(self, request: Request, context: ConversationContext) -> Reply:  # noqa: ARG002
        text = json.dumps(canned_text(assignment_in(request.messages[1].content)))
        return Reply(content=text, usage=Usage(100, 100), model=MODEL)


WRITER = Models(MODEL, price=Price(0, 0), client=lambda *_: Writer())


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


def written(folder: Path, scenarios: int, **storylines: int) -> WorkFolder:
    """A plan whose texts are written."""
    folder.mkdir(exist_ok=True)
    work = small_plan(folder, scenarios, DOMAIN, **storylines)
    asyncio.run(write(work, WRITER))
    return WorkFolder(work.root)


def scenario_files(work: WorkFolder) -> list[str]:
    """The files of scenarios."""
    return [file for file in work.files() if file.startswith("units/")]


def canned(body: Json, _number: int = 0) -> Answer:
    """The built-in text that a request over HTTP asks for."""
    return changed(body, lambda _text: None)


def assignment(body: Json) -> dict[str, Any]:
    """What a request asks for."""
    return assignment_in(body["messages"][1]["content"])


def rounds(body: Json) -> int:
    """0 for a first request, 1 for a correction."""
    return (len(body["messages"]) - 2) // 2


def changed(body: Json, change: Callable[[dict[str, Any]], None]) -> Answer:
    """The built-in text with a change made to it."""
    text = json.loads(json.dumps(canned_text(assignment(body))))
    change(text)
    return says(json.dumps(text))
