"""One transcript as an HTML page."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from propensitybench.chat import Message, ToolCall
from propensitybench.episode import Episode, EpisodeRecord, Event, Outcome, Turn
from propensitybench.episode.events import find_message
from propensitybench.episode.prompt import FORWARDED
from propensitybench.report.transcripts_text import html

# A shorter answer is shown as it is; a longer one is folded behind its beginning.
SHORT: Final = 160
WITHOUT_MESSAGE: Final = (Event.REPLY_EMPTY, Event.REPLY_BLOCKED)
ENDINGS: Final = {
    Outcome.MISALIGNED: "gave in",
    Outcome.RESISTED: "resisted",
    Outcome.BLOCKED: "blocked",
    Outcome.TRUNCATED: "truncated",
    Outcome.ERRORED: "errored",
}
EXPLAINED: Final = {
    Outcome.MISALIGNED: "The agent called the prohibited tool.",
    Outcome.RESISTED: "All levels are over and the prohibited tool was not called.",
    Outcome.BLOCKED: "The provider would not answer; the task has no score.",
    Outcome.TRUNCATED: "The length limit cut the agent off before it could give in; the task has no score.",
    Outcome.ERRORED: "The task could not be finished and has no score.",
}


class Shown(NamedTuple):
    """A transcript and where it stands.

    Attributes:
        run: what the run is called.
        episode: replayed.
        record: how it ended.
        listed: address of the list that it is in.
        previous, next: addresses of its neighbours, empty at the ends.
    """

    run: str
    episode: Episode
    record: EpisodeRecord
    listed: str
    previous: str
    next: str


def transcript_page(shown: Shown, head: str) -> str:
    """The page.

    Args:
        shown: the transcript.
        head: of every page: policy, style and script.
    """
    metadata = shown.record.metadata
    title = f"{metadata.scenario}, {metadata.dimension}, {metadata.naming}"
    parts = [
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}<title>{html(title)}</title></head><body>',
        _links(shown),
        f"<header><p>{html(shown.run)}</p><h1>{html(metadata.scenario)}</h1>",
        *_facts(shown.record),
        "</header>",
        *_levels_met(shown.episode),
        "<main>",
        *_conversation(shown.episode),
        _end(shown.record),
        "</main>",
        _links(shown),
        "</body></html>\n",
    ]
    return "".join(parts)


def _links(shown: Shown) -> str:
    before = f'<a rel="prev" href="{shown.previous}">previous</a>' if shown.previous else ""
    after = f'<a rel="next" href="{shown.next}">next</a>' if shown.next else ""
    return (
        '<nav class="ways" aria-label="Transcripts"><a href="../../index.html#transcripts">report</a>'
        f'<a href="{shown.listed}">list</a>{before}{after}'
        '<button type="button" data-fold hidden>open all</button></nav>'
    )


def _facts(record: EpisodeRecord) -> Iterator[str]:
    metadata, stats = record.metadata, record.stats
    yield f'<p class="ending {stats.outcome.value}"><strong>{ENDINGS[stats.outcome]}</strong> '
    if stats.outcome is Outcome.MISALIGNED:
        yield f'at level {stats.level}, turn {stats.turn}. <a href="#gave-in">to the call</a>'
    else:
        yield EXPLAINED[stats.outcome]
    yield "</p><dl>"
    facts = {
        "domain": metadata.domain,
        "workspace": metadata.workspace,
        "role": metadata.role,
        "capability": metadata.capability or "none of the list",
        "pressure": metadata.dimension,
        "naming": metadata.naming,
        "epoch": str(metadata.epoch),
        "turns": str(stats.turns),
        "calls of the safe tool": f"{stats.aligned_calls}, {stats.aligned_calls_right} of them right",
        "error": record.error,
    }
    for name, value in facts.items():
        if value:
            yield f"<div><dt>{name}</dt><dd>{html(value)}</dd></div>"
    yield "</dl>"


def _levels_met(episode: Episode) -> Iterator[str]:
    gave_in = any(turn.event is Event.MISALIGNED_CALLED for turn in episode.turns)
    yield '<nav class="levels" aria-label="Levels">level'
    for level in range(episode.level + 1):
        mark = ' class="last"' if gave_in and level == episode.level else ""
        yield f' <a href="#level-{level}"{mark}>{level}</a>'
    yield "</nav>"


def _conversation(episode: Episode) -> Iterator[str]:
    """Every message and turn in order, in one section a level."""
    turns = iter([*episode.turns, None])
    turn = next(turns)
    level = 0
    yield '<section id="level-0"><h2>Level 0: the task alone</h2>'
    for index, message in enumerate(episode.messages):
        while turn and turn.event in WITHOUT_MESSAGE and (turn.first, turn.level) == (index, level):
            yield _silent(turn)
            turn = next(turns)
        if index == 0:
            yield f"<details><summary>System message</summary>{_text(message.content)}</details>"
        elif message.role == "user" and message.content.startswith(FORWARDED):
            level += 1
            yield f'</section><section id="level-{level}"><h2>Level {level}</h2>{_pressure(message.content)}'
        elif message.role == "assistant" and turn:
            following = episode.messages[index + 1 : index + 1 + len(message.tool_calls)]
            yield from _turn(turn, message, following)
            turn = next(turns)
        elif message.role == "user":
            who = "Task" if index == 1 else "Harness"
            yield f'<div class="told"><h3>{who}</h3>{_text(message.content)}</div>'
    while turn:
        yield _silent(turn)
        turn = next(turns)
    yield "</section>"


def _silent(turn: Turn) -> str:
    return f"<article {_anchor(turn)}><h3>Turn {turn.turn}: {turn.event.value}</h3></article>"


def _anchor(turn: Turn) -> str:
    return f'id="level-{turn.level}-turn-{turn.turn}"'


def _pressure(content: str) -> str:
    """A pressure message: its head as a list, its body as text."""
    head, _, body = content.removeprefix(FORWARDED).strip("\n").partition("\n\n")
    lines = [line.partition(": ")[::2] for line in head.split("\n")]
    rows = "".join(f"<div><dt>{html(name)}</dt><dd>{html(value)}</dd></div>" for name, value in lines)
    return f'<aside class="pressure"><h3>Pressure message</h3><dl>{rows}</dl>{_text(body)}</aside>'


def _turn(turn: Turn, message: Message, following: Sequence[Message]) -> Iterator[str]:
    gave_in = turn.event is Event.MISALIGNED_CALLED
    calls = message.tool_calls
    # Under the rule that counts any call, the one that ended the episode need not be the first.
    counted = next((i for i, call in enumerate(calls) if call.name == turn.tool), 0) if gave_in else 0
    kind = "misaligned" if gave_in else "turn"
    yield f'<article class="{kind}" {_anchor(turn)}><h3>Turn {turn.turn}: {turn.event.value}</h3>'
    yield from _said(message, gave_in)
    # By place, since nothing keeps a model from giving two calls one id.
    answers = [answer.content for answer in following if answer.role == "tool"]
    for index, call in enumerate(calls):
        yield from _call(call, gave_in and index == counted, ignored=index != counted)
        if index < len(answers):
            yield _answer(answers[index])
    yield "</article>"


def _said(message: Message, gave_in: bool) -> Iterator[str]:
    said = None if message.tool_calls else find_message(message.content)
    if said is None:
        if message.content:
            yield _text(message.content)
    else:
        yield _folded("Thoughts", said.thoughts, opened=gave_in)
        yield _text(said.message)
        if said.interaction_status == "terminate":
            yield '<p class="note">The agent ends the level.</p>'
        yield _folded("As written", message.content)
    if message.provider_fields:
        yield _folded("Parts of the provider's own", message.provider_fields)


def _call(call: ToolCall, gave_in: bool, ignored: bool) -> Iterator[str]:
    if gave_in:
        yield '<p class="gave-in" id="gave-in"><strong>Calls the prohibited tool</strong></p>'
    elif ignored:
        yield '<p class="note">Not carried out: another call of the same reply counted.</p>'
    yield f'<p class="call"><code>{html(call.name)}</code></p>{_text(call.arguments, code=True)}'


def _answer(content: str) -> str:
    if len(content) <= SHORT:
        return f'<div class="answer"><h4>Answer</h4>{_text(content, code=True)}</div>'
    return _folded(f"Answer: {content[:SHORT]}...", content, code=True)


def _end(record: EpisodeRecord) -> str:
    stats = record.stats
    error = f" {html(record.error)}" if record.error else ""
    return (
        f'<p class="ending {stats.outcome.value}"><strong>End: {ENDINGS[stats.outcome]}</strong> at level '
        f"{stats.level}. {EXPLAINED[stats.outcome]}{error}</p>"
    )


def _folded(summary: str, text: str, *, opened: bool = False, code: bool = False) -> str:
    is_open = " open" if opened else ""
    return f"<details{is_open}><summary>{html(summary)}</summary>{_text(text, code=code)}</details>"


def _text(text: str, *, code: bool = False) -> str:
    return f'<pre class="code">{html(text)}</pre>' if code else f"<pre>{html(text)}</pre>"
