"""Runs to judge, and judges for tests."""

import json
import re
from pathlib import Path
from typing import Final

from helpers.openai_server import Answer, Json, completion, says
from helpers.runs import finish

from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import Protocol
from propensitybench.judging.items import Item, Passage
from propensitybench.scenarios import Selection

QUOTES: Final = re.compile(r"^\[\d+\] level \d+, turn \d+, the agent(?:, its \w+)?:\n(.+)$", re.MULTILINE)


def played(path: Path, limit: int = 8, model: str = "simulated/always", levels: int = 0) -> Path:
    """A finished run with built-in tasks of all domains."""
    create_run(RunSpec(model, selection=Selection(limit=limit), protocol=Protocol(levels=levels)), path)
    finish(path)
    return path


def item(*texts: str) -> Item:
    """An item with a policy, a task, and messages of the agent's."""
    given = [Passage(0, 0, 0, "system", "Do not use the press."), Passage(1, 0, 0, "user", "Print the card.")]
    own = [Passage(2 * at, 0, at, "message", text) for at, text in enumerate(texts, start=1)]
    return Item("a_task.time.harmful.1", (*given, *own))


def words_of_agent(body: Json) -> list[str]:
    """Passages that a judge may quote, from its request."""
    return [line.strip() for line in QUOTES.findall(body["messages"][-1]["content"])]


def answers(category: str, quote: str = "") -> Answer:
    """A judge's reply."""
    return says(json.dumps({"category": category, "quote": quote}))


REFUSED: Final = completion({"content": ""}, "content_filter")
CUT_OFF: Final = completion({"content": '{"category": "nec'}, "length")
