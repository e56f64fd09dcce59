"""Transcript pages: every message of the conversation is on them as text, and nothing in it takes effect."""

import re
from html import unescape
from pathlib import Path

import pytest
from helpers.clients import TaskScript
from helpers.html_page import HtmlPage, dead_links, read_page
from helpers.play import histories, played, right_call, scenario
from helpers.program import call
from helpers.runs import finish, make
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.chat import Reply, StopReason, ToolCall
from propensitybench.clients import calls, says
from propensitybench.episode import Episode, Outcome, State
from propensitybench.episode.events import find_message
from propensitybench.escaping import html, visible
from propensitybench.pages.transcripts import STYLE, render_transcript, write_transcripts
from propensitybench.pages.transcripts_page import TranscriptPage
from propensitybench.runs import StoredRun, Transcript
from propensitybench.runs.transcript import body
from propensitybench.scenarios import TaskMetadata

# Every tag that a transcript page may contain.
HEAD = {"html", "head", "meta", "title", "link", "script", "body"}
STRUCTURE = {"nav", "header", "main", "section", "article", "div"}
TEXT = {"a", "button", "p", "h1", "h2", "h3", "h4", "strong", "dl", "dt", "dd", "pre", "code"}
OURS = HEAD | STRUCTURE | TEXT | {"details", "summary"}
HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31mred\u202egnp.exe\u2066\x00"

MISALIGNED_CALL = calls(scenario().misaligned.harmful.name)
UNUSABLE = {
    "empty": Reply(),
    "blocked": Reply(stop=StopReason.CONTENT_FILTER),
    "truncated": Reply('{"thoughts": "I', stop=StopReason.LENGTH),
}


def transcript_of(episode: Episode) -> Transcript:
    """The transcript of an episode, finished or not."""
    return Transcript("task", episode, episode.record("" if episode.state is State.OVER else "no answer"))


def page_of(transcript: Transcript) -> HtmlPage:
    """The page of a transcript."""
    assert transcript.record is not None
    return HtmlPage(render_transcript(TranscriptPage("a", transcript, transcript.record, "", "")))


def words(text: str) -> str:
    """A text with single spaces."""
    return " ".join(text.split())


@given(st.text())
def test_escaped_text_keeps_its_letters_and_cannot_act(text: str) -> None:
    safe = html(text)
    assert not re.search("[<>\"'\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", safe)
    assert unescape(safe) == visible(text)
    visible(text).encode("utf-8")  # lone surrogates could not be written to a file
    if text.isascii() and text.isprintable():
        assert visible(text) == text


def test_control_and_invisible_characters_become_escape_sequences() -> None:
    assert (
        visible("a\x1b[2J\u202eb\u200bc\ud800\ufeff\td\n") == "a\\x1b[2J\\u202eb\\u200bc\\ud800\\ufeff\td\n"
    )
    assert visible("עברית, русский, 中文") == "עברית, русский, 中文"


@pytest.mark.slow
@given(histories(max_size=60))
def test_page_and_transcript_number_the_same_turns_and_levels(history: list[Reply]) -> None:
    transcript = transcript_of(played(history))
    page = page_of(transcript)
    assert {element.tag for element in page.elements} <= OURS
    entries = list(transcript)
    turns = [(entry.level, entry.turn) for entry in entries if entry.turn is not None]
    for (level, turn), article in zip(turns, page.all("article"), strict=True):
        assert article.attributes["id"] == f"level-{level}-turn-{turn.turn}"
        assert article.text.startswith(f"Turn {turn.turn}: {turn.event.value}")
    levels = [f"level-{level}" for level in range(entries[-1].level + 1 if entries else 1)]
    assert [section.attributes["id"] for section in page.all("section")] == levels
    assert len(page.all("div", klass="pressure")) == len(levels) - 1
    text = page.all("main")[0].text
    for message in transcript.messages:
        for one in message.tool_calls:
            assert visible(one.name) in text
            assert visible(one.arguments) in text
        if message.role == "tool":
            assert visible(message.content) in text


@pytest.mark.parametrize("kind", UNUSABLE)
def test_unusable_reply_does_not_shift_the_turns_after_it(kind: str) -> None:
    history = [
        says("One.", done=True),
        UNUSABLE[kind],
        says("Two."),
        says("Three.", done=True),
        MISALIGNED_CALL,
    ]
    page = page_of(transcript_of(played(history)))
    turns = {article.attributes["id"]: article.text for article in page.all("article")}
    assert list(turns) == [
        "level-0-turn-1", "level-1-turn-1", "level-2-turn-1", "level-2-turn-2", "level-3-turn-1",
    ]  # fmt: skip
    assert "One." in turns["level-0-turn-1"]
    assert words(turns["level-1-turn-1"]) == f"Turn 1: {kind} reply (no reply)"
    assert "Two." in turns["level-2-turn-1"]
    assert "Three." in turns["level-2-turn-2"]
    assert "Calls the misaligned tool" in turns["level-3-turn-1"]


def test_reply_shows_its_message_and_folds_its_thoughts() -> None:
    page = page_of(transcript_of(played([says("I report it.", thoughts="It is not allowed.", done=True)])))
    turn = page.all("article")[0]
    assert "terminated" in turn.text
    assert "I report it." in turn.text
    folds = [fold.text for fold in page.all("details")]
    assert any(fold == "ThoughtsIt is not allowed." for fold in folds)
    assert not any("open" in fold.attributes for fold in page.all("details"))


def test_misaligned_call_is_marked_in_colour_and_in_words() -> None:
    aligned = right_call(scenario().aligned.name)
    page = page_of(transcript_of(played([aligned, says("Not yet.", done=True), MISALIGNED_CALL])))
    assert "misaligned at level 1, turn 1" in words(page.all("header")[1].text)
    (turn,) = page.all("article", klass="misaligned")
    assert turn.attributes["id"] == "level-1-turn-1"
    assert [p.text for p in page.all("p", id="misaligned-call")] == ["Calls the misaligned tool"]
    assert page.all("a", href="#misaligned-call")


def test_prohibited_call_that_did_not_count_is_marked_as_not_executed() -> None:
    misaligned = scenario().misaligned.harmful.name
    both = (ToolCall("same", scenario().aligned.name, "{}"), ToolCall("same", misaligned, "{}"))
    page = page_of(transcript_of(played([Reply(tool_calls=both, stop=StopReason.TOOL_CALLS)])))
    (turn,) = page.all("article")
    # Both calls have the same id, so answers can only be matched by position.
    aligned, _, other = words(turn.text).partition("Not executed: another call in the same reply counted.")
    assert "ValueError" in aligned
    assert other.endswith("Not executed: only the first tool call in a turn is executed.")
    assert not page.all("article", klass="misaligned")


def test_earlier_errors_are_shown_as_text() -> None:
    episode = played([says("No.", done=True)])
    transcript = Transcript("task", episode, episode.record("second"), (HOSTILE, "second"))
    text = page_of(transcript).all("main")[0].text
    assert f"An earlier attempt failed: {visible(HOSTILE)}" in text
    assert "failed: second" not in text


def test_hostile_text_is_shown_as_text() -> None:
    message = Reply(content=HOSTILE)
    tool_call = Reply(tool_calls=(ToolCall("1", HOSTILE, HOSTILE),), stop=StopReason.TOOL_CALLS)
    history = [message, tool_call, says(HOSTILE, thoughts=HOSTILE, done=True)]
    page = page_of(transcript_of(played(history)))
    assert not [script for script in page.all("script") if "alert" in script.text]
    assert not page.all("img")
    text = page.all("main")[0].text
    assert text.count("<script>alert(1)</script>") >= 5
    assert "\\x1b[31mred\\u202egnp.exe\\u2066\\x00" in text
    assert not re.search("[\x00\x1b\u202e\u2066]", page.source)


def mixed_script(metadata: TaskMetadata) -> list[Reply]:
    """By dimension: unusable replies before the end, and never an end of its own."""
    kinds = dict(zip(("time", "financials", "power-seeking"), UNUSABLE.values(), strict=True))
    unusable = kinds.get(metadata.dimension, Reply())
    return [says("One.", done=True), unusable, unusable, says("Two.", done=True)]


@pytest.fixture(scope="module")
def scripted_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make(tmp_path_factory.mktemp("runs") / "mixed.run", "scripted/mixed", limit=3)
    finish(path, TaskScript(mixed_script, "scripted/mixed"))
    return path


def test_show_and_the_report_print_the_same_turns(scripted_run: Path, tmp_path: Path) -> None:
    run = StoredRun(scripted_run)
    rows = write_transcripts(run, "a", tmp_path / "1", "all")
    assert {row.record.stats.outcome for row in rows} >= {Outcome.RESISTED, Outcome.TRUNCATED}
    for row in rows:
        transcript = run.transcript(row.record.metadata.task)
        page = read_page(tmp_path / "1" / row.file)
        articles = {article.attributes["id"]: article.text for article in page.all("article")}
        entries = [entry for entry in transcript if entry.turn is not None]
        assert list(articles) == [
            f"level-{entry.level}-turn-{entry.turn.turn}" for entry in entries if entry.turn
        ]
        for entry, text in zip(entries, articles.values(), strict=True):
            message = find_message(entry.message.content)
            assert words(visible(message.message if message else body(entry.message))) in words(text)
    key = rows[0].record.metadata.task
    printed = call("show", scripted_run, key).out
    titles = [line.removeprefix("=== ") for line in printed.splitlines() if line.startswith("=== assistant")]
    assert titles == [entry.title for entry in run.transcript(key) if entry.turn is not None]


@pytest.fixture(scope="module")
def simulated_run(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    """A run with both scored outcomes."""
    path = make(tmp_path_factory.mktemp("runs") / "a.run", "simulated/claude-4-sonnet-like", limit=20)
    finish(path)
    return StoredRun(path)


def test_every_transcript_leads_to_its_neighbours_and_back(simulated_run: StoredRun, tmp_path: Path) -> None:
    folder = tmp_path / "transcripts" / "1"
    rows = write_transcripts(simulated_run, "a", folder, "all")
    (tmp_path / "index.html").write_text('<p id="transcripts">', encoding="utf-8")
    assert [row.file for row in rows] == [f"{number}.html" for number in range(40)]
    assert {path.name for path in folder.parent.iterdir()} == {STYLE, "1"}
    chain, at = [], rows[0].file
    while at:
        chain.append(at)
        page = read_page(folder / at)
        assert dead_links(page, folder / at) == []
        at = next((link.attributes["href"] for link in page.all("a", rel="next")), "")
    assert chain == [row.file for row in rows]


def test_a_reply_is_given_raw_only_where_its_parts_leave_something_out() -> None:
    plain = says("I report it.", thoughts="No.", done=True)
    wrapped = Reply(f"As asked:\n{plain.content}")
    page = page_of(transcript_of(played([plain, wrapped])))
    folds = [fold.text for fold in page.all("details")]
    assert [fold for fold in folds if fold.startswith("Raw")] == [f"Raw reply{wrapped.content}"]
