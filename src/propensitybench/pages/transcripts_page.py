"""One transcript as an HTML page."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from propensitybench.chat import Message, ToolCall
from propensitybench.episode import EpisodeRecord, Event, Outcome, Turn
from propensitybench.episode.events import find_message
from propensitybench.episode.prompt import FORWARDED
from propensitybench.escaping import html
from propensitybench.pages.judged import Readings
from propensitybench.pages.marks import Marks
from propensitybench.runs import Transcript
from propensitybench.runs.transcript import body
from propensitybench.taxonomy import ESCALATING

# Characters of a tool's answer that are shown without folding.
PREVIEW: Final = 160
OUTCOME_MEANINGS: Final = {
    Outcome.MISALIGNED: "The agent called the prohibited tool.",
    Outcome.COMPLETED: "The safe tool succeeded, so the agent finished the task.",
    Outcome.RESISTED: "The agent went through every level without calling the prohibited tool.",
    Outcome.BLOCKED: "The provider withheld at least one reply, and the prohibited tool was not called. "
    "The task has no score.",
    Outcome.TRUNCATED: "The output limit cut off at least one reply before it was usable, and the prohibited "
    "tool was not called. The task has no score; raise --max-tokens.",
    Outcome.ERRORED: "The task could not be finished. It has no score.",
    Outcome.UNFINISHED: "The task was in progress when the run stopped. It has no score yet.",
}


class TranscriptPage(NamedTuple):
    """A transcript with what its page links to.

    Attributes:
        run: label of the run.
        record: how the task ended.
        list_link: the list of transcripts that contains this one.
        previous, next: links to the neighbours; empty at either end.
        model: the agent's address.
        readings: what readers said of the transcript.
    """

    run: str
    transcript: Transcript
    record: EpisodeRecord
    list_link: str
    previous: str
    next: str
    model: str = ""
    readings: Readings = Readings()


def render(page: TranscriptPage, head: str) -> str:
    """The HTML of a transcript's page; ``head`` holds the policy, style and script of every page."""
    metadata = page.record.metadata
    title = f"{metadata.scenario}, {metadata.dimension}, {metadata.naming}"
    parts = [
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}<title>{html(title)}</title></head><body>',
        _links(page, "Transcripts"),
        f"<header><p>{html(page.run)}</p><h1>{html(metadata.scenario)}</h1>",
        *_facts(page),
        "</header>",
        *_level_links(page.transcript),
        "<main>",
        *_conversation(page),
        *_failed_attempts(page.transcript, page.record),
        _outcome(page.record),
        "</main>",
        _links(page, "Transcripts, again"),
        "</body></html>\n",
    ]
    return "".join(parts)


def _links(page: TranscriptPage, label: str) -> str:
    previous = f'<a rel="prev" href="{page.previous}">previous</a>' if page.previous else ""
    following = f'<a rel="next" href="{page.next}">next</a>' if page.next else ""
    return (
        f'<nav class="links" aria-label="{label}"><a href="../../index.html#transcripts">report</a>'
        f'<a href="{page.list_link}">list</a>{previous}{following}'
        '<button type="button" data-fold hidden>expand all</button></nav>'
    )


def _facts(page: TranscriptPage) -> Iterator[str]:
    metadata, stats = page.record.metadata, page.record.stats
    yield f'<p class="outcome {stats.outcome.value}"><strong>{stats.outcome.value}</strong> '
    if stats.outcome is Outcome.MISALIGNED:
        yield f'at level {stats.level}, turn {stats.turn}. <a href="#misaligned-call">Go to the call</a>'
    else:
        yield OUTCOME_MEANINGS[stats.outcome]
    yield "</p><dl>"
    facts = {
        "domain": metadata.domain,
        "workspace": metadata.workspace,
        "role": metadata.role,
        "capability": metadata.capability or "none",
        "pressure": metadata.dimension,
        "naming": metadata.naming,
        "arm": "" if metadata.arm == ESCALATING else metadata.arm,
        "epoch": str(metadata.epoch),
        "turns": str(stats.turns),
        "truncated replies": str(stats.truncated_turns or ""),
        "questions to deciders": str(stats.decisions_asked or ""),
        "closing report": stats.conduct.value if stats.conduct else "",
        "calls of the safe tool": f"{stats.aligned_calls}, {stats.aligned_calls_right} with valid arguments",
        "error": page.record.error,
    }
    for name, value in (*facts.items(), *page.readings.answers):
        if value:
            yield f"<div><dt>{html(name)}</dt><dd>{html(value)}</dd></div>"
    yield "</dl>"


def _level_links(transcript: Transcript) -> Iterator[str]:
    last = max((entry.level for entry in transcript), default=0)
    misaligned = any(turn.event is Event.MISALIGNED_CALLED for turn in transcript.turns)
    yield '<nav class="levels" aria-label="Levels">level'
    for level in range(last + 1):
        mark = ' class="last"' if misaligned and level == last else ""
        yield f' <a href="#level-{level}"{mark}>{level}</a>'
    yield "</nav>"


def _conversation(page: TranscriptPage) -> Iterator[str]:
    """Every message in order, in one section per level."""
    transcript = page.transcript
    yield '<section id="level-0"><h2>Level 0: the task alone</h2>'
    entries = list(transcript)
    for index, (message, level, turn, opens_level) in enumerate(entries):
        if opens_level:
            yield f'</section><section id="level-{level}"><h2>Level {level}</h2>{_pressure(message.content)}'
        elif turn is not None:
            following = (entry.message for entry in entries[index + 1 :])
            answers = [answer.content for answer in takewhile(lambda one: one.role == "tool", following)]
            quotes = [quote for quote in page.readings.quotes if quote.message == index]
            yield from _turn(turn, message, answers, Marks(quotes, index, page.model))
        elif message.role == "system":
            yield f"<details><summary>System message</summary>{_text(message.content)}</details>"
        elif message.role != "tool":  # a tool's answer is shown with its call
            sender = "Task" if index == 1 else "Harness"
            yield f'<div class="harness"><h3>{sender}</h3>{_text(message.content)}</div>'
    yield "</section>"
    if transcript.closing:
        yield '<section id="closing"><h2>Closing report: on a side branch, after the end</h2>'
        for message in transcript.closing:
            who = "Harness" if message.role == "user" else message.role.capitalize()
            yield f'<div class="harness"><h3>{who}</h3>{_text(body(message))}</div>'
        yield "</section>"


def _pressure(content: str) -> str:
    """A pressure message: its header as a list, its body as text."""
    header, _, body = content.removeprefix(FORWARDED).strip("\n").partition("\n\n")
    lines = [line.partition(": ")[::2] for line in header.split("\n")]
    rows = "".join(f"<div><dt>{html(name)}</dt><dd>{html(value)}</dd></div>" for name, value in lines)
    return f'<div class="pressure"><h3>Pressure message</h3><dl>{rows}</dl>{_text(body)}</div>'


def _turn(turn: Turn, message: Message, answers: Sequence[str], marks: Marks) -> Iterator[str]:
    misaligned = turn.event is Event.MISALIGNED_CALLED
    calls = message.tool_calls
    # With parallel_calls="any", the call that ended the episode need not be the first.
    counted = next((i for i, call in enumerate(calls) if call.name == turn.tool), 0) if misaligned else 0
    yield (
        f'<article class="{"misaligned" if misaligned else "turn"}" id="level-{turn.level}-turn-{turn.turn}">'
        f"<h3>Turn {turn.turn}: {turn.event.value}</h3>"
    )
    yield from _reply_text(message, misaligned, marks)
    # Answers are matched to calls by position, since models may reuse an id.
    for index, call in enumerate(calls):
        yield from _call(call, misaligned and index == counted, ignored=index != counted, marks=marks)
        if index < len(answers):
            yield _answer(answers[index])
    yield marks.notes()
    yield "</article>"


def _reply_text(message: Message, misaligned: bool, marks: Marks) -> Iterator[str]:
    parsed = None if message.tool_calls else find_message(message.content)
    if parsed is None:
        if message.content:
            yield _preformatted(marks.html(message.content))
    else:
        thoughts = marks.html(parsed.thoughts)
        is_open = " open" if misaligned or "<mark" in thoughts else ""
        yield f"<details{is_open}><summary>Thoughts</summary>{_preformatted(thoughts)}</details>"
        yield _preformatted(marks.html(parsed.message))
        if parsed.interaction_status == "terminate":
            yield '<p class="note">The agent ends the level.</p>'
        yield _folded("Raw reply", message.content)
    if message.provider_fields:
        yield _folded("Provider-specific fields", message.provider_fields)


def _call(call: ToolCall, misaligned: bool, *, ignored: bool, marks: Marks) -> Iterator[str]:
    if misaligned:
        yield '<p class="misaligned-call" id="misaligned-call"><strong>Calls the prohibited tool</strong></p>'
    elif ignored:
        yield '<p class="note">Not executed: another call in the same reply counted.</p>'
    name, arguments = marks.call(call.name, call.arguments)
    yield f'<p class="call"><code>{name}</code></p>{_preformatted(arguments, code=True)}'


def _answer(content: str) -> str:
    if len(content) <= PREVIEW:
        return f'<div class="answer"><h4>Answer</h4>{_text(content, code=True)}</div>'
    return _folded(f"Answer: {content[:PREVIEW]}...", content, code=True)


def _failed_attempts(transcript: Transcript, record: EpisodeRecord) -> Iterator[str]:
    """Errors of earlier attempts; that of the last is part of the outcome."""
    errors = transcript.errors
    earlier = errors[:-1] if record.error and errors and errors[-1] == record.error else errors
    for error in earlier:
        yield f'<p class="note">An earlier attempt failed: {html(error)}</p>'


def _outcome(record: EpisodeRecord) -> str:
    stats = record.stats
    error = f" {html(record.error)}" if record.error else ""
    return (
        f'<p class="outcome {stats.outcome.value}"><strong>Outcome: {stats.outcome.value}</strong> at level '
        f"{stats.level}. {OUTCOME_MEANINGS[stats.outcome]}{error}</p>"
    )


def _folded(summary: str, text: str, *, code: bool = False) -> str:
    return f"<details><summary>{html(summary)}</summary>{_text(text, code=code)}</details>"


def _text(text: str, *, code: bool = False) -> str:
    return _preformatted(html(text), code=code)


def _preformatted(content: str, *, code: bool = False) -> str:
    return f'<pre class="code">{content}</pre>' if code else f"<pre>{content}</pre>"
