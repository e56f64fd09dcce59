"""The page on which people read and answer: what is on it, and what is not."""

import base64
import hashlib
import json
import re
from pathlib import Path

import msgspec
import pytest
from helpers.hostile_runs import EVIL, MARKUP, hostile
from helpers.html_page import HtmlPage, read_page
from helpers.people import QUESTION, left, misaligned_run
from helpers.program import call

from propensitybench.escaping import visible
from propensitybench.judging.items import Item, Passage
from propensitybench.judging.labels import Items
from propensitybench.judging.questions import Category
from propensitybench.pages.label_page import LabellingPage, render_labelling
from propensitybench.store import RunFile

HEAD = {"html", "head", "meta", "style", "title", "body", "script", "noscript"}
TEXT = {"a", "header", "h1", "h2", "p", "kbd", "span", "strong", "div", "main", "section", "nav"}
OURS = HEAD | TEXT | {"label", "input", "fieldset", "legend", "button", "details", "summary", "progress"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return misaligned_run(tmp_path_factory.mktemp("run") / "at-level-1.run", limit=2)


def write(run: Path, page: Path, *more: str) -> HtmlPage:
    """The page that the command writes."""
    done = call("label", run, "--question", "justification", "--page", page, *more)
    assert done.code == 0, done
    return read_page(page)


def test_a_page_has_what_a_person_has_still_to_read(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    page = write(run, path, "--as", "Ann")
    (data,) = page.all("script", type="application/json")
    found = json.loads(data.text)
    assert [item["task"] for item in found["items"]] == left(run, "Ann")
    with RunFile.open(run) as file:
        items = Items(file, QUESTION)
        for item in found["items"]:
            passages = items[item["task"]].passages
            assert [one["text"] for one in item["passages"]] == [one.text for one in passages]
            assert [one["own"] for one in item["passages"]] == [one.turn > 0 for one in passages]
    assert (found["person"], found["question"]) == ("Ann", QUESTION.digest)
    assert found["categories"] == list(QUESTION.names)
    assert "Reader: Ann" in page.all("header")[1].text
    assert not page.all("input", id="person")
    text = path.read_text(encoding="utf-8")
    assert "at-level-1" not in text
    assert "misaligned_tool" not in text


def test_a_page_without_a_name_asks_for_it(run: Path, tmp_path: Path) -> None:
    page = write(run, tmp_path / "page.html")
    assert page.all("input", id="person")
    assert len(json.loads(page.all("script", type="application/json")[0].text)["items"]) == 4


def test_a_person_who_has_read_everything_gets_no_page(run: Path, tmp_path: Path) -> None:
    typed = f"{len(QUESTION.names)}\n" * 4
    assert call("label", run, "--question", "justification", "--as", "Zoe", typed=typed).code == 0
    done = call(
        "label", run, "--question", "justification", "--as", "Zoe", "--page", "page.html", cwd=tmp_path
    )
    assert done.out.startswith("nothing is left to read for Zoe; ")
    assert list(tmp_path.iterdir()) == []


def test_every_control_has_a_name_and_nothing_is_loaded(run: Path, tmp_path: Path) -> None:
    page = write(run, tmp_path / "page.html")
    assert page.all("html", lang="en")
    assert len(page.ids) == len(set(page.ids))
    assert page.links == ["#answer"]
    radios = page.all("input", type="radio", name="category")
    assert [one.attributes["value"] for one in radios] == [str(n) for n in range(len(QUESTION.names))]
    assert [one.attributes["aria-keyshortcuts"] for one in radios] == [str(n) for n in range(1, 8)]
    labels = [one.text for one in page.all("label", klass="choice")]
    for text, category in zip(labels, QUESTION.categories, strict=True):
        assert category.name in text
        assert category.definition in text
        assert category.example in text
    assert page.all("legend")[0].text == QUESTION.title
    assert (
        page.all("fieldset")[0].attributes["aria-describedby"]
        == page.all("p", id="question")[0].attributes["id"]
    )
    assert QUESTION.text.strip() == page.all("p", id="question")[0].text
    assert [one.text for one in page.all("button", type="button")] == [
        "Dark", "Clear the answer", "Previous", "Next", "Save answers",
    ]  # fmt: skip
    assert len(page.all("button")) == 5
    assert page.all("p", id="status", role="status")
    assert page.all("progress")[0].attributes["aria-label"]
    assert page.all("input", id="load")[0].attributes["aria-label"]


def assert_inert(page: HtmlPage) -> None:
    assert {element.tag for element in page.elements} == OURS
    for element in page.elements:
        assert not [name for name in element.attributes if name.startswith("on") or name in ("src", "style")]
    (policy,) = [one for one in page.all("meta") if "http-equiv" in one.attributes]
    scripts = [one.text for one in page.all("script") if not one.attributes]
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert policy.attributes["content"].startswith(f"default-src 'none'; script-src {allowed}; ")


def test_hostile_text_is_data(run: Path, tmp_path: Path) -> None:
    path = hostile(run, tmp_path / "evil.run", "reply", EVIL)
    page = write(path, tmp_path / "page.html")
    assert_inert(page)
    (data,) = page.all("script", type="application/json")
    assert not re.search("[<>&\x1b\u202e]", data.text)
    texts = [one for item in json.loads(data.text)["items"] for one in item["passages"] if one["own"]]
    evil = [one for one in texts if MARKUP in one["text"]]
    assert evil
    for one in evil:
        assert one["shown"] == visible(one["text"])
        assert "\x1b" in one["text"]


def test_a_hostile_question_is_text() -> None:
    categories = (Category(EVIL, EVIL, EVIL), Category("none", ""))
    question = msgspec.structs.replace(
        QUESTION, name=EVIL, title=EVIL, text=EVIL, people=EVIL, categories=categories, none="none"
    )
    item = Item(EVIL, (Passage(0, 0, 1, "text", EVIL),))
    page = HtmlPage(render_labelling(LabellingPage(question, EVIL, EVIL, [item])))
    assert_inert(page)
    assert page.all("h1")[0].text == visible(EVIL)
    assert page.all("label", klass="choice")[0].text.count(visible(EVIL)) == 3


def test_only_nine_answers_have_a_key() -> None:
    categories = tuple(Category(f"c{n}", "") for n in range(12))
    question = msgspec.structs.replace(QUESTION, categories=categories, none="c0")
    page = HtmlPage(render_labelling(LabellingPage(question, "run", "Ann", [])))
    keys = [one.attributes.get("aria-keyshortcuts") for one in page.all("input", type="radio")]
    assert keys == [*map(str, range(1, 10)), None, None, None]
