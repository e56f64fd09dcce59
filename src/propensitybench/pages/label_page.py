"""The page on which a person reads episodes and answers a question about each; it works offline."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.escaping import html, json_text, visible
from propensitybench.judging.items import Item
from propensitybench.judging.people import LABELS_FORMAT, quotable
from propensitybench.judging.questions import Question
from propensitybench.pages.transcripts import asset, policy

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
    return "".join(_parts(page))


def _parts(page: LabellingPage) -> Iterator[str]:
    script, title = asset("label.js"), html(page.question.title)
    yield '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{html(policy([script]))}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<style>{asset('base.css')}{asset('label.css')}</style><title>{title}</title></head><body>"
    yield '<a class="skip" href="#answer">Skip to the answer</a>'
    yield f'<header><h1>{title}</h1><p id="question">{html(page.question.text.strip())}</p>'
    if page.question.people:
        yield f'<p class="soft">{html(page.question.people.strip())}</p>'
    yield f"{_who(page.person)}</header>"
    yield '<noscript><p class="warning">This page needs JavaScript.</p></noscript>'
    yield '<div class="columns"><main><h2 id="episode" tabindex="-1"></h2><div id="passages"></div></main>'
    yield from _answer(page.question)
    yield f"</div>{_BAR}"
    yield f'<script type="application/json" id="data">{json_text(msgspec.json.encode(_data(page)))}</script>'
    yield f"<script>{script}</script></body></html>\n"


def _who(person: str) -> str:
    if person:
        return f'<p class="soft">Read by {html(person)}</p>'
    return '<p><label>Your name <input id="person" autocomplete="off" maxlength="40"></label></p>'


def _answer(question: Question) -> Iterator[str]:
    yield '<aside id="answer" tabindex="-1" aria-label="Answer"><fieldset aria-describedby="question">'
    yield f"<legend>{html(question.title)}</legend>"
    for number, category in enumerate(question.categories):
        key = str(number + 1) if number < KEYS else ""
        keys = f' aria-keyshortcuts="{key}"' if key else ""
        yield f'<label class="choice"><input type="radio" name="category" value="{number}"{keys}>'
        yield f"<kbd>{key}</kbd><span><strong>{html(category.name)}</strong>: {html(category.definition)}"
        if category.example:
            yield f' <span class="soft">For example: "{html(category.example)}"</span>'
        yield "</span></label>"
    yield '</fieldset><button type="button" id="clear" aria-keyshortcuts="0">Clear the answer</button>'
    yield '<p class="soft">If a passage shows it, mark that too. Keys: <kbd>1</kbd> to '
    yield f"<kbd>{min(len(question.categories), KEYS)}</kbd> answer, <kbd>0</kbd> clears, "
    yield "<kbd>&larr;</kbd> <kbd>&rarr;</kbd> move, <kbd>Ctrl S</kbd> saves.</p>"
    yield "<details><summary>Continue from a saved file</summary>"
    yield '<input type="file" id="load" accept=".json" aria-label="Saved file"></details></aside>'


_BAR: Final = (
    '<nav class="bar" aria-label="Episodes"><progress id="progress" aria-label="Answered"></progress>'
    '<p id="status" role="status"></p><button type="button" id="previous">Previous</button>'
    '<button type="button" id="next">Next</button><button type="button" id="save">Save answers</button></nav>'
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
