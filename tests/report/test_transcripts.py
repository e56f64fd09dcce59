"""Transcripts as pages: everything that was said is there as text, and nothing of it acts."""

import re
from html import unescape
from pathlib import Path

from helpers.html_page import HtmlPage, dead_links, read_page
from helpers.play import histories, played, right_call, scenario
from helpers.runs import finish, make
from hypothesis import given
from hypothesis import strategies as st

from propensitybench.chat import Reply, StopReason, ToolCall
from propensitybench.clients import calls, says
from propensitybench.episode import Episode, Outcome, State
from propensitybench.report.transcripts import A_PAGE, Wanted, write_transcripts
from propensitybench.report.transcripts_page import Shown, transcript_page
from propensitybench.report.transcripts_text import html, visible
from propensitybench.store import RunFile

# Every tag that a transcript's page is made of.
STRUCTURE = {"html", "head", "body", "title", "nav", "header", "main", "section", "aside", "article", "div"}
TEXT = {"a", "button", "p", "h1", "h2", "h3", "h4", "strong", "dl", "dt", "dd", "pre", "code"}
OURS = STRUCTURE | TEXT | {"details", "summary"}
HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31mred\u202egnp.exe\u2066\x00"


def shown(episode: Episode) -> HtmlPage:
    """The page of an episode, finished or not."""
    error = "" if episode.state is State.OVER else "no answer"
    return HtmlPage(transcript_page(Shown("a", episode, episode.record(error), "list-1.html", "", ""), ""))


@given(st.text())
def test_text_keeps_its_letters_and_loses_its_powers(text: str) -> None:
    safe = html(text)
    assert not re.search("[<>\"'\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", safe)
    assert unescape(safe) == visible(text)
    visible(text).encode("utf-8")  # can be written, whatever halves of characters were in it
    if text.isascii() and text.isprintable():
        assert visible(text) == text


def test_what_acts_or_hides_is_written_out() -> None:
    assert (
        visible("a\x1b[2J\u202eb\u200bc\ud800\ufeff\td\n") == "a\\x1b[2J\\u202eb\\u200bc\\ud800\\ufeff\td\n"
    )
    assert visible("עברית, русский, 中文") == "עברית, русский, 中文"


@given(histories(max_size=60))
def test_every_turn_and_level_has_its_place_whatever_is_said(history: list[Reply]) -> None:
    episode = played(history)
    page = shown(episode)
    assert {element.tag for element in page.elements} <= OURS
    assert len(page.all("article")) == len(episode.turns)
    anchors = [f"level-{turn.level}-turn-{turn.turn}" for turn in episode.turns]
    assert [identity for identity in page.ids if "-turn-" in identity] == anchors
    levels = [f"level-{level}" for level in range(episode.level + 1)]
    assert [section.attributes["id"] for section in page.all("section")] == levels
    assert len(page.all("aside", klass="pressure")) == episode.level
    text = page.all("main")[0].text
    for message in episode.messages:
        for call in message.tool_calls:
            assert visible(call.name) in text
            assert visible(call.arguments) in text
        if message.role == "tool":
            assert visible(message.content) in text


def test_a_turn_shows_what_was_said_and_folds_the_thoughts() -> None:
    episode = played([says("I report it.", thoughts="It is not allowed.", done=True)])
    turn = shown(episode).all("article")[0]
    assert "terminated" in turn.text
    assert "I report it." in turn.text
    folds = [fold.text for fold in shown(episode).all("details")]
    assert any(fold == "ThoughtsIt is not allowed." for fold in folds)
    assert not any("open" in fold.attributes for fold in shown(episode).all("details"))


def test_the_call_that_decides_is_marked_in_colour_and_in_words() -> None:
    misaligned = scenario().misaligned.harmful.name
    aligned = right_call(scenario().aligned.name)
    done = says("Not yet.", done=True)
    page = shown(played([aligned, done, calls(misaligned)]))
    assert "gave in at level 1, turn 1" in page.all("header")[0].text.replace("\n", " ")
    (turn,) = page.all("article", klass="misaligned")
    assert turn.attributes["id"] == "level-1-turn-1"
    assert "Calls the prohibited tool" in turn.text
    assert [p.text for p in page.all("p", id="gave-in")] == ["Calls the prohibited tool"]
    assert page.all("a", href="#gave-in")


def test_a_prohibited_call_that_did_not_count_is_said_to_be_ignored() -> None:
    misaligned = scenario().misaligned.harmful.name
    both = (ToolCall("same", scenario().aligned.name, "{}"), ToolCall("same", misaligned, "{}"))
    page = shown(played([Reply(tool_calls=both, stop=StopReason.TOOL_CALLS)]))
    (turn,) = page.all("article")
    assert "Not carried out: another call of the same reply counted." in turn.text
    # The answers go by the place of the call, since both have one id.
    aligned, _, other = turn.text.partition("Not carried out: another call")
    assert "ValueError" in aligned
    assert other.endswith("Not executed: only the first tool call in a turn is executed.")
    assert not page.all("article", klass="misaligned")


def test_under_the_other_rule_the_later_call_is_the_one_that_is_marked() -> None:
    misaligned = scenario().misaligned.harmful.name
    both = (ToolCall("1", scenario().aligned.name, "{}"), ToolCall("2", misaligned, '{"last": 1}'))
    episode = played([Reply(tool_calls=both, stop=StopReason.TOOL_CALLS)], parallel_calls="any")
    (turn,) = shown(episode).all("article", klass="misaligned")
    before, _, after = turn.text.partition("Calls the prohibited tool")
    assert scenario().aligned.name in before
    assert after == f'{misaligned}{{"last": 1}}'


def test_hostile_text_is_shown_as_text() -> None:
    said = Reply(content=HOSTILE)
    called = Reply(tool_calls=(ToolCall("1", HOSTILE, HOSTILE),), stop=StopReason.TOOL_CALLS)
    page = shown(played([said, called, says(HOSTILE, thoughts=HOSTILE, done=True)]))
    assert not page.all("script")
    assert not page.all("img")
    text = page.all("main")[0].text
    assert text.count("<script>alert(1)</script>") >= 5
    assert "\\x1b[31mred\\u202egnp.exe\\u2066\\x00" in text
    assert not re.search("[\x00\x1b\u202e\u2066]", page.source)


def write(tmp_path: Path, wanted: Wanted = "all") -> tuple[Path, Path]:
    """A run with both outcomes, and the folder of its transcripts."""
    path = make(tmp_path / "a.run", "simulated/claude-4-sonnet-like", limit=20)
    finish(path)
    folder = tmp_path / "report" / "transcripts" / "1"
    (tmp_path / "report").mkdir()
    write_transcripts(path, "a", folder, wanted)
    (tmp_path / "report" / "index.html").write_text('<p id="transcripts">', encoding="utf-8")
    return path, folder


def test_every_transcript_is_linked_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    path, folder = write(tmp_path)
    with RunFile.open(path) as run:
        numbers = [task.number for task in run.tasks()]
    listed = read_page(folder / "list-1.html")
    rows = [link for link in listed.links if re.fullmatch(r"\d+\.html", link)]
    assert rows == [f"{number}.html" for number in numbers]
    chain, at = [], rows[0]
    while at:
        chain.append(at)
        page = read_page(folder / at)
        assert dead_links(page, folder / at) == []
        at = next((link.attributes["href"] for link in page.all("a", rel="next")), "")
    assert chain == rows
    assert dead_links(listed, folder / "list-1.html") == []


def test_only_those_that_gave_in(tmp_path: Path) -> None:
    path, folder = write(tmp_path, "failed")
    with RunFile.open(path) as run:
        numbers = [
            task.number
            for task, record in zip(run.tasks(), run.records(), strict=True)
            if record.stats.outcome is Outcome.MISALIGNED
        ]
    assert 0 < len(numbers) < 40
    assert sorted(folder.glob("[0-9]*.html")) == sorted(folder / f"{number}.html" for number in numbers)


def test_none_writes_nothing(tmp_path: Path) -> None:
    _, folder = write(tmp_path, "none")
    assert not folder.exists()


def test_lists_are_paged(tmp_path: Path) -> None:
    path = make(tmp_path / "a.run", "simulated/always", limit=A_PAGE // 2 + 5)
    finish(path)
    found = write_transcripts(path, "a", tmp_path / "1", "all")
    assert found.lists == ["transcripts/1/list-1.html", "transcripts/1/list-2.html"]
    first, second = (read_page(tmp_path / "1" / f"list-{page}.html") for page in (1, 2))
    assert len(first.all("tr")) - 1 == A_PAGE
    assert len(second.all("tr")) - 1 == 10
    assert read_page(tmp_path / "1" / f"{len(found.rows) - 1}.html").all("a", href="list-2.html#task-259")
