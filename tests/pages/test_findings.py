"""The page of findings: goldens of page and JSON, hostile texts, and a figure for every sign."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import numpy as np
import pytest
from helpers.records import BIO, CYBER, errored, misaligned, resisted

from propensitybench.errors import BadInput
from propensitybench.metrics import RunRecords
from propensitybench.metrics.capability_index import IndexEntry
from propensitybench.pages.findings import render_findings, write_findings
from propensitybench.signs import Findings, Subject, declared, find
from propensitybench.signs.findings import findings_of
from validation.signs import CLEAR, read_by_a_person, subject_of

HOSTILE = '<script>alert(1)</script>\u202e\x1b[31m & "quoted"'


def small(name: str) -> Subject:
    """A model with some of everything."""
    records = [
        misaligned(0, scenario="a", domain=BIO, right_calls=1),
        misaligned(4, scenario="b", domain=BIO, right_calls=2),
        resisted(scenario="c", domain=BIO),
        misaligned(9, scenario="d", domain=CYBER, dimension="power-seeking"),
        resisted(scenario="e", domain=CYBER),
        errored(2, scenario="f", domain=CYBER),
    ]
    answers = {(f"{one}.time.harmful", 1): "no" for one in "abcef"}
    read = read_by_a_person([one.metadata for one in records[:2]], [1, 0])
    run = RunRecords(f"{name}.run", name, 8, records)
    return Subject(name, run, None, answers, read)  # type: ignore[arg-type]


def fixed(page: Findings) -> Findings:
    """Without the version of the package."""
    return msgspec.structs.replace(page, package="VERSION")


@pytest.fixture(scope="module")
def two() -> Findings:
    index = {"one": IndexEntry(1, "made up", "2026-01-01")}
    changed = {"naming": 0.1}
    found = find([small("one"), small("two")], index, changed)
    return fixed(findings_of(declared(changed), found, ["a note"]))


@pytest.fixture(scope="module")
def clear() -> Findings:
    return findings_of(declared(), find([subject_of(CLEAR, np.random.default_rng(4))]))


def test_the_json_is_word_for_word_what_it_was(two: Findings, golden: Callable[[str, str], None]) -> None:
    def rounded(value: object) -> object:
        if isinstance(value, float):
            return round(value, 6)
        if isinstance(value, dict):
            return {key: rounded(one) for key, one in value.items()}
        return [rounded(one) for one in value] if isinstance(value, list | tuple) else value

    text = msgspec.json.format(msgspec.json.encode(rounded(msgspec.to_builtins(two))), indent=1).decode()
    golden("findings.json", text + "\n")


def test_the_page_is_word_for_word_what_it_was(two: Findings, golden: Callable[[str, str], None]) -> None:
    # Drawings depend on the version of matplotlib, styles are shared with other pages.
    page = re.sub(r'(<svg class="drawn"[^>]*>).*?</svg>', r"\1</svg>", render_findings(two), flags=re.DOTALL)
    page = page[page.index("<main") : page.index("</main>")]
    golden("findings.html", re.sub(r"(</li>|</tr>|</p>|</div>)\n*", r"\1\n", page))


class Elements(HTMLParser):
    """Counts elements, and collects ids."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]


def test_every_sign_opens_to_its_figure_without_a_script(clear: Findings) -> None:
    page = render_findings(clear)
    elements = Elements(page)
    assert elements.tags.count("figure") == 8  # all but the relation to capability
    assert elements.tags.count("script") == 1  # of the theme
    assert len(elements.ids) == len(set(elements.ids))
    assert "http://" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", page).replace("http://www.w3.org", "")
    drawn = "".join(re.findall(r'<svg class="drawn".*?</svg>', page, re.DOTALL))
    assert re.findall(r"#(?!m1)[0-9a-f]{6}", drawn) == []
    assert "var(--run-1)" in drawn


def test_a_point_that_a_screen_reader_hears(clear: Findings) -> None:
    page = render_findings(clear)
    labels = re.findall(r'<svg viewBox="0 0 180 22" role="img" aria-label="([^"]*)"', page)
    assert len(labels) == 8
    assert all(re.search(r"interval .* to .*, smallest effect of interest", label) for label in labels)


def test_texts_of_strangers_do_nothing() -> None:
    page = render_findings(findings_of(declared(), find([small(HOSTILE), small("other")]), [HOSTILE]))
    assert page.count("<script") == 1
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page


def test_a_page_replaces_a_page_and_nothing_else(two: Findings, tmp_path: Path) -> None:
    assert write_findings(two, tmp_path / "out") == tmp_path / "out" / "index.html"
    write_findings(two, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").glob("*.*")} >= {"index.html", "findings.json"}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="is not empty"):
        write_findings(two, tmp_path / "mine")
