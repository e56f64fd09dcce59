"""The page on which a person reads episodes and answers a question about each; it works offline."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
from markupsafe import Markup

from propensitybench.escaping import json_text, visible
from propensitybench.judging.items import Item
from propensitybench.judging.people import LABELS_FORMAT, quotable
from propensitybench.judging.questions import Question
from propensitybench.pages.template import render

KEYS: Final = 9
"""Categories that a key chooses."""


class LabellingPage(NamedTuple):
    """What is on the page.

    Attributes:
        question: the question.
        run: identifies the run in the saved file.
        person: who reads; empty if the page asks.
        items: the episodes, in the order of reading.
    """

    question: Question
    run: str
    person: str
    items: Sequence[Item]


def render_labelling(page: LabellingPage) -> str:
    """The HTML of the page."""
    return render(
        "label.html.j2",
        styles=("label.css",),
        scripts=("dom.js", "label.js"),
        question=page.question,
        person=page.person,
        keys=KEYS,
        data=Markup(json_text(msgspec.json.encode(_data(page)))),
    )


def _data(page: LabellingPage) -> dict[str, Any]:
    question = page.question
    return {
        "format": LABELS_FORMAT,
        "run": page.run,
        "question": question.digest,
        "name": question.name,
        "person": page.person,
        "categories": question.names,
        "none": question.none,
        "items": [{"task": item.task, "passages": _passages(question, item)} for item in page.items],
    }


def _passages(question: Question, item: Item) -> list[dict[str, Any]]:
    own = set(quotable(question, item))
    return [
        {
            "title": passage.place,
            "level": passage.level,
            "part": passage.part,
            "own": passage in own,
            "text": passage.text,
            "shown": visible(passage.text),
        }
        for passage in item.passages
    ]
