"""Sheets, model card and BibTeX: what they say, what they ask, and hostile names in them."""

import re
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest
from helpers.boards import made
from helpers.program import call
from helpers.records import resisted, unfinished
from hypothesis import given
from hypothesis import strategies as st
from records.sample_runs import EVIL

from propensitybench.pages.board.summary import summarise_run
from propensitybench.records.escapes import code, markdown, tex
from propensitybench.records.every_eval_ever import Submitter, aggregate
from propensitybench.records.facts import facts
from propensitybench.records.sheets import ASKED, TEMPLATES, Sheet, sheet
from propensitybench.runs import StoredRun

KINDS: Final[tuple[Sheet, ...]] = tuple(TEMPLATES)
TABLE: Final = ("table", "thead", "tbody", "tr", "th", "td")
loads: Any = import_module("yaml").safe_load


def written(kind: Sheet, run: Path) -> str:
    return sheet(kind, [facts(StoredRun(run))]).text


@pytest.mark.parametrize("name", ["whole", "partial", "stopped"])
def test_golden(name: str, runs: dict[str, Path], golden: Callable[[str, str], None]) -> None:
    run = facts(StoredRun(runs[name]))
    for kind in KINDS:
        text = sheet(kind, [run]).text
        text = text.replace(run.digest, "DIGEST").replace(version("propensitybench"), "VERSION")
        golden(f"records/{name}.{kind}.txt", text)


def test_the_number_at_the_top_is_that_of_the_places_to_fill_in(runs: dict[str, Path]) -> None:
    whole, evil = (facts(StoredRun(runs[name])) for name in ("whole", "evil"))
    for kind in KINDS:
        text, asked = sheet(kind, [whole])
        (stated,) = re.findall(r"(\d+) places", text)
        assert int(stated) == asked == text.count(f"[{ASKED}: ") > 0
        # A marker in a model's name is none.
        assert sheet(kind, [evil]).asked == asked


@pytest.mark.parametrize("kind", ["checklist", "model-card"])
def test_the_number_of_missing_tasks_is_beside_the_scores(kind: Sheet, runs: dict[str, Path]) -> None:
    text = written(kind, runs["evil"])
    assert "8 misaligned, 16 resisted, 8 blocked by the provider, 8 truncated, 8 errored" in text
    assert "| PP\\@2 | harmful names | 33.3 | 6.7 to 81.6 | 16.7 to 66.7 | 12 | 12 |" in text


def test_tasks_in_progress_are_not_complete_in_any_record() -> None:
    begun = [unfinished(3, scenario=f"s{number}") for number in range(60)]
    run = made("lab/m", [*begun, *(resisted(scenario=f"r{number}") for number in range(20))])
    about = facts(run)
    for kind in KINDS:
        assert "incomplete, 60 unfinished" in sheet(kind, [about]).text
    record = aggregate(about, Submitter("us", "third_party"), "id", 0)
    assert record["source_metadata"]["additional_details"]["state"] == "incomplete, 60 unfinished"
    row = summarise_run(run).run
    assert (row.complete, row.stopping) == (False, "incomplete, 60 unfinished")


@pytest.mark.parametrize("kind", KINDS)
def test_neither_folders_nor_endpoints_are_given_away(kind: Sheet, runs: dict[str, Path]) -> None:
    text = written(kind, runs["partial"])
    assert "secret.internal" not in text
    assert str(runs["partial"].parent) not in text


# --- Hostile names ---


@pytest.mark.parametrize("kind", ["checklist", "model-card"])
def test_a_renderer_shows_a_hostile_name_and_nothing_else(kind: Sheet, runs: dict[str, Path]) -> None:
    text = written(kind, runs["evil"])
    body = text.split("\n---\n", 1)[-1] if kind == "model-card" else text
    parser: Any = import_module("markdown_it").MarkdownIt("commonmark").enable("table")
    html = parser.render(body)
    tags = set(re.findall(r"<(\w+)", html))
    assert tags <= {"h1", "h2", "p", "strong", "code", "ul", "li", "blockquote", *TABLE}, tags
    assert "lab/&lt;/script&gt;[x](https:e.org)|![i](data:,)`code`*b*_u_{}input" in html
    assert len({len(re.findall("<t[dh]", row)) for row in re.findall(r"<tr>.*?</tr>", html, re.DOTALL)}) <= 3


def test_a_hostile_name_is_a_value_in_the_metadata_of_a_card(runs: dict[str, Path]) -> None:
    _, front, _ = written("model-card", runs["evil"]).split("---\n", 2)
    (entry,) = loads(front)["model-index"]
    assert entry["name"] == EVIL
    (result,) = entry["results"]
    values = {one["type"]: one["value"] for one in result["metrics"]}
    assert values["propensity_at_2"] == pytest.approx(1 / 3)


@given(st.text())
def test_escaped_texts_keep_their_place(text: str) -> None:
    found = markdown(text)
    assert "\n" not in found
    assert not re.search(r"(?<!\\)(?:\\\\)*[<>|`\[\]*_@]", found)
    assert code(text).count("`") == 2
    assert "\\input" not in tex("\\input{/etc/passwd}")
    depth = 0
    for mark in tex(text):
        depth += (mark == "{") - (mark == "}")
        assert depth in (0, 1)
        assert mark != '"'
    assert depth == 0


# --- The command ---


def test_sheets_are_printed_or_written_once(runs: dict[str, Path], tmp_path: Path) -> None:
    printed = call("record", runs["whole"], "--as", "checklist")
    out = tmp_path / "new" / "sheet.md"
    saved = call("record", runs["whole"], "--as", "checklist", "--out", out)
    assert saved.out == f"{out}: 17 places need a person: search for [{ASKED}\n"
    assert out.read_text(encoding="utf-8") == printed.out
    again = call("record", runs["whole"], "--as", "checklist", "--out", out)
    assert (again.code, again.err) == (
        2,
        f"propensitybench: --out {out}: exists already; give another file\n",
    )
    assert out.read_text(encoding="utf-8") == printed.out


def test_one_run_a_sheet_and_any_number_of_citations(runs: dict[str, Path]) -> None:
    both = (runs["whole"], runs["partial"])
    refused = call("record", *both, "--as", "checklist")
    assert (refused.code, "is about one run, found 2" in refused.err) == (2, True)
    cited = call("record", *both, "--as", "bibtex")
    keys = re.findall(r"^@\w+\{(.+),$", cited.out, re.MULTILINE)
    assert len(set(keys)) == len(keys) == 4
    assert cited.out.startswith("% 4 places")
