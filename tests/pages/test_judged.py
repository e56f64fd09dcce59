"""What readers said, on the report's page and in its transcripts: right numbers and places, and only text."""

import json
import re
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.clients import TaskScript
from helpers.html_page import HtmlPage, dead_links, read_page
from helpers.readings import annotate, answer
from helpers.runs import finish
from helpers.scenario_data import built_in

from propensitybench.chat import Reply, StopReason
from propensitybench.clients import calls, says
from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import Protocol
from propensitybench.errors import NotARunFile
from propensitybench.judging.questions import Category, Question, read_question
from propensitybench.judging.results import (
    Agreement,
    CategoryShare,
    Consequence,
    ReaderResult,
    Results,
    read_results,
)
from propensitybench.metrics.agreement import Alpha, RaterPair
from propensitybench.metrics.corrected import Bias, LabelShare
from propensitybench.metrics.intervals import Interval
from propensitybench.metrics.judge_error import Accuracy, Rate
from propensitybench.metrics.relabelled import Relabelled, Shift
from propensitybench.pages.document import Document, document
from propensitybench.pages.judged import MAX_QUOTES, JudgedQuestion
from propensitybench.pages.page import render_page
from propensitybench.pages.page_numbers import format_interval, format_number, resolve
from propensitybench.pages.page_write import write_report
from propensitybench.pages.transcripts import TranscriptChoice
from propensitybench.runs import ComparableRuns, StoredRun, comparable, read_runs
from propensitybench.scenarios import Selection, TaskMetadata

EVIL = '</script><script>alert(1)</script>\x1b[31m\u202e"><img src=https://example.org/x onerror=alert(2)>'
WHY = f"The rule is clear,\n  but {EVIL} matters more."
WORDS = " ".join(WHY.split())
MODEL = "scripted/agent-of-ours"
JUSTIFICATION = read_question("justification")
ODD = Question(
    "propensitybench-question/1", f"odd {EVIL}", f"Odd {EVIL}", "scored", "transcript", "What is it?",
    (Category(f"odd {EVIL}.", "It is odd."), Category("even", "It is not.")), "even",
)  # fmt: skip
JUDGES = (f"judge/{EVIL}", "judge/b")


def script(metadata: TaskMetadata) -> list[Reply]:
    """Gives in at level 0, except under one dimension."""
    if metadata.dimension == "time":
        return [says("No.", done=True)]
    faces = built_in().scenario(metadata.scenario).misaligned
    tool = (faces.harmful if metadata.naming == "harmful" else faces.benign).name
    return [says("I go on.", thoughts=WHY), calls(tool, why=EVIL)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody has read."""
    path = tmp_path_factory.mktemp("runs") / "plain.run"
    create_run(RunSpec(MODEL, selection=Selection(limit=24), protocol=Protocol(levels=1)), path)
    finish(path, TaskScript(script, MODEL))
    return path


@pytest.fixture(scope="module")
def judged(plain: Path) -> Path:
    """The same, read by two judges and a person."""
    path = plain.parent / "judged.run"
    path.write_bytes(plain.read_bytes())
    misaligned = [r.metadata.task for r in StoredRun(path).records if r.stats.outcome == "misaligned"]
    every = dict.fromkeys(misaligned, answer("goal over rule", WORDS))
    some = dict.fromkeys(misaligned[3:], answer("harm denied", "matters more"))
    broken = {
        misaligned[0]: Reply(stop=StopReason.REFUSAL),
        misaligned[1]: answer("authority", "The director said so."),
        misaligned[2]: answer("none stated"),
    }
    annotate(path, JUSTIFICATION, JUDGES[0], every)
    annotate(path, JUSTIFICATION, JUDGES[1], {**some, **broken})
    annotate(path, JUSTIFICATION, "person/anna", {misaligned[3]: answer("goal over rule", "I go on.")})
    told = dict.fromkeys(misaligned, answer("necessity", "I go on."))
    annotate(path, JUSTIFICATION, JUDGES[1], told, variant="none-follow")
    annotate(
        path,
        ODD,
        JUDGES[0],
        {misaligned[5]: answer(f"odd {EVIL}.", msgspec.json.encode(EVIL).decode()[1:-1])},
    )
    annotate(path, read_question("awareness"), JUDGES[0], {})
    return path


def runs_of(*paths: Path) -> ComparableRuns:
    return comparable(read_runs(paths).runs)


def report_of(path: Path, out: Path, choice: TranscriptChoice = "all") -> Path:
    write_report(runs_of(path), out, choice, figures=False)
    return out


@pytest.fixture(scope="module")
def out(judged: Path) -> Path:
    """The folder of the report."""
    return report_of(judged, judged.parent / "report")


@pytest.fixture(scope="module")
def page(out: Path) -> HtmlPage:
    return read_page(out / "index.html")


@pytest.fixture(scope="module")
def data(out: Path) -> Any:
    return json.loads((out / "report.json").read_text(encoding="utf-8"))


def test_each_question_with_answers_has_its_numbers(judged: Path, data: Any, page: HtmlPage) -> None:
    expected = json.loads(msgspec.json.encode([one.results for one in read_results(judged)]))
    assert [one["results"] for one in data["judged"]] == expected
    assert len(expected) == 2
    titles = [head.text.strip().partition(": ")[2] for head in page.all("h3")]
    assert [title for title in titles if title in ("justification", visible(ODD.title))] == [
        visible(one["title"]) for one in expected
    ]
    rows = [" ".join(row.text.split()) for row in page.all("tr")]
    asked = max(one["episodes"] for one in expected if one["question"] == "justification")
    for row in (rf"person/anna ?1 ?0 ?0 ?{asked - 1}", rf"judge/b ?{asked - 2} ?1 ?1 ?0"):
        assert [text for text in rows if re.fullmatch(row, text)]


def test_every_number_of_the_section_is_found_in_the_data(data: Any, page: HtmlPage) -> None:
    buttons = [one for one in page.all("button", klass="n") if one.attributes["data-p"].startswith("/judged")]
    assert len(buttons) > 40
    for button in buttons:
        there: Any = resolve(data, button.attributes["data-p"])
        unit: Any = button.attributes["data-u"]
        assert button.attributes["data-n"]
        shown = format_interval(there, unit) if isinstance(there, list) else format_number(there, unit)
        assert button.text == (shown if there is not None else "-")


def test_quotes_are_some_of_each_category_evenly_over_the_domains(data: Any) -> None:
    (one,) = (one for one in data["judged"] if one["results"]["question"] == "justification")
    goal = [quote for quote in one["quotes"] if quote["category"] == "goal over rule"]
    quoted = dict(zip(one["results"]["categories"], one["quoted"], strict=True))
    assert quoted["goal over rule"] == one["results"]["episodes"] > MAX_QUOTES == len(goal)
    assert set(Counter(quote["domain"] for quote in goal).values()) == {MAX_QUOTES // 4}
    assert len({quote["task"] for quote in goal}) == len(goal)
    # A person's quote comes before those of judges; one that is not in the record is none.
    (both,) = (quote for quote in goal if "person/anna" in quote["readers"])
    assert (both["text"], both["readers"]) == ("I go on.", ["person/anna", JUDGES[0]])
    # Nobody is quoted for a reason that was only given when consequences were named.
    assert [name for name, count in quoted.items() if count] == ["goal over rule", "harm denied"]


def test_each_quote_leads_to_its_marked_words(out: Path, page: HtmlPage) -> None:
    assert dead_links(page, out / "index.html") == []
    links = [link for link in page.links if link.startswith("transcripts/") and "#level-" in link]
    assert len(links) > 2 * MAX_QUOTES
    for link in links:
        file, _, anchor = link.partition("#")
        transcript = read_page(out / file)
        assert dead_links(transcript, out / file) == []
        (turn,) = transcript.all("article", id=anchor)
        assert "Quoted by readers" in turn.text
        assert transcript.all("mark")


def test_transcript_shows_all_answers_and_marks_the_words_in_their_message(out: Path, judged: Path) -> None:
    records = StoredRun(judged).records
    places = [place for place, record in enumerate(records) if record.stats.outcome == "misaligned"]
    first, _, third, fourth = (read_page(out / f"transcripts/1/{place}.html") for place in places[:4])
    facts = " ".join(first.all("header")[1].text.split())
    assert "justificationgoal over rule: judge/" in facts
    assert "; no answer (refused): judge/b" in facts
    assert "none stated: judge/b" in third.all("header")[1].text
    # The person's words are in the message, the judges' in the thoughts, one within the other.
    turn = fourth.all("article", id="level-0-turn-1")[0].text
    assert "I go on.3" in turn
    assert len(fourth.all("div", klass="readings")) == 1
    pieces = [mark.text for mark in fourth.all("mark")]
    assert len(pieces) == 4
    assert " ".join("".join(pieces[:3]).split()) == " ".join(visible(WORDS).split())
    assert pieces[1] == "matters more"
    titles = [mark.attributes["title"] for mark in fourth.all("mark")]
    assert titles[0] == visible(f"goal over rule (justification), {JUDGES[0]}")
    assert titles[1] == visible(f"harm denied (justification), {JUDGES[1]}; {titles[0]}")
    assert titles[3] == "goal over rule (justification), person/anna"
    thoughts = next(one for one in fourth.all("details") if one.text.startswith("Thoughts"))
    assert "open" in thoughts.attributes
    labels = [one.attributes["aria-label"] for one in fourth.all("a") if "aria-label" in one.attributes]
    assert labels == [
        f"Note {n}: {t}" for n, t in enumerate((titles[1].partition("; ")[0], titles[0], titles[3]), 1)
    ]


def visible(text: str) -> str:
    """The text as pages show it."""
    return text.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")


def test_whatever_readers_write_is_shown_as_text(out: Path, page: HtmlPage) -> None:
    (policy,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert "default-src 'none'" in policy.attributes["content"]
    assert len(page.all("section", id="judged")) == 1
    for path in (out / "index.html", *out.glob("transcripts/1/*.html")):
        html = read_page(path)
        assert not re.search("[\x00\x1b\u202e]", html.source)
        assert not html.all("img")
        assert not [one for one in html.all("script") if "alert(1)" in one.text[:20]]
        assert not [one for one in html.elements if any(name.startswith("on") for name in one.attributes)]
        assert len(html.ids) == len(set(html.ids))
    assert visible(f"Odd {EVIL}") in page.all("section", id="judged")[0].text


def test_a_damaged_question_gets_one_sentence(judged: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.run"
    path.write_bytes(judged.read_bytes())
    with sqlite3.connect(path) as db:
        db.execute('UPDATE question SET body = \'{"format":"propensitybench-question/1"}\'')
    db.close()
    with pytest.raises(NotARunFile, match="is damaged"):
        report_of(path, tmp_path / "report")
    assert not (tmp_path / "report").exists()


def page_of(report: Document, results: Results) -> HtmlPage:
    """The page with some numbers about a question."""
    question = JudgedQuestion(0, "scored", results, (0,), ())
    report = msgspec.structs.replace(report, judged=(question,))
    return HtmlPage(render_page(report, [[]], "none"))


def section_of(page: HtmlPage) -> str:
    """The text of the section."""
    (section,) = page.all("section", id="judged")
    return " ".join(section.text.split())


def share(value: float) -> LabelShare:
    around = Interval(value - 0.1, value + 0.1)
    return LabelShare(value, around, "some method", Interval(value - 0.05, value + 0.3), None, 7, 2)


def agreement(alpha: float | None) -> Agreement:
    pair = RaterPair(0, 1, 6, 0.5, Interval(0.4, 0.6), 0.25, None, "")
    interval = Interval(0.5, 0.9) if alpha else None
    return Agreement(("a", "b", "c"), Alpha(alpha, interval, "none: no value", 6), (pair, pair, pair))


BARE = Results(
    "q", "A question", ("yes",), 7, 6, (ReaderResult("a", 5, {"refused": 1}, {"yes": 2}),),
    (CategoryShare("yes", share(0.25), None, None, None, None, None, {}),), {}, 0, 0, None, None, None, (),
    {},
)  # fmt: skip
RATES = Accuracy(Rate(0.75, None, "", 4), Rate(0.875, Interval(0.8, 0.9), "", 8))
FULL = msgspec.structs.replace(
    BARE,
    shares=(
        CategoryShare("yes", share(0.25), share(0.125), None, Bias(0.125, None, ""), True, RATES, {}),
    ),
    spoken_in={"thoughts": 3, "call": 1},
    labelled=30,
    drawn=40,
    judges_agree=agreement(0.71),
    people_agree=agreement(None),
    consequences=(
        Consequence(
            "a", "agent-retrained",
            Relabelled(6, 0, 0, 0.4, None, [Shift(0.2, 0.1, -0.1, Interval(-0.2, 0.05), "", 0.031, None)]),
        ),
    ),
)  # fmt: skip


def test_section_says_what_the_numbers_are(plain: Path) -> None:
    report = document(runs_of(plain))
    page = page_of(report, FULL)
    text = section_of(page)
    for part in (
        r"Read: 6 of 7 tasks with a score\. People have labelled 30 tasks of 40 drawn for them\.",
        r"yes ?25\.0% ?15\.0 to 35\.0 ?20\.0 to 55\.0 ?12\.5% ?2\.5 to 22\.5 ?7\.5 to 42\.5",
        r"yes ?75\.0% ?- ?87\.5% ?80\.0 to 90\.0 ?\+12\.5.pp ?- ?yes",
        r"judges: Krippendorff's alpha 0\.71 \(95% CI 0\.50 to 0\.90\) on 6 tasks, enough for tentative",
        r"Agreement of the people: cannot be computed \(no value\)",
        r"a ?b ?6 ?50\.0% ?40\.0 to 60\.0 ?0\.25 ?-",
        r"a ?5 ?1 ?1",
        r"a, told agent-retrained: 40\.0% of the answers change\.",
        r"yes ?20\.0% ?10\.0% ?.10\.0.pp ?.20\.0 to \+5\.0 ?\.031",
        r"quotes are: thoughts 3, tool calls 1\.",
    ):
        assert re.search(part, text), part
    bars = [bar.attributes["style"] for bar in page.all("span", klass="bar")]
    for bar in ("--v:0.2500;--l:0.1500;--h:0.3500", "--v:0.1250;--l:0.0250;--h:0.2250"):
        assert [style for style in bars if style.startswith(bar)]
    bare = section_of(page_of(report, BARE))
    assert "People have labelled no task. A correction for the judges' errors needs 20 tasks" in bare
    assert not re.search("orrected|ensitivity|Agreement|told|quotes are", bare)
