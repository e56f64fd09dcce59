"""The report: a safe self-contained page, numbers that match its data, and no files lost."""

import base64
import hashlib
import json
import re
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.clients import TaskScript
from helpers.html_page import HtmlPage, dead_links, read_page
from helpers.runs import finish, make

from propensitybench.chat import Reply, StopReason
from propensitybench.clients import calls, says
from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import Outcome, Protocol
from propensitybench.metrics.analysis import analyse
from propensitybench.pages.document import document
from propensitybench.pages.page import SCRIPTS, render_page
from propensitybench.pages.page_numbers import format_interval, format_number, resolve
from propensitybench.pages.page_text import none_of
from propensitybench.pages.page_write import write_report
from propensitybench.pages.template import asset
from propensitybench.runs import ComparableRuns, StoredRun, comparable, read_runs
from propensitybench.scenarios import Selection, TaskMetadata, read_dataset
from propensitybench.taxonomy import taxonomy

EVIL = "</script><script>alert(1)</script>\x1b[31m\u202e<!--<img src=https://example.org/x onerror=alert(2)>"
SECTIONS = [
    "summary", "uncertainty", "breakdown", "levels", "naming", "missing", "methods", "transcripts",
    "limitations",
]  # fmt: skip
PUBLISHED = ["propensity", "zero-pressure", "resilience", "persistence", "competence"]


built_in = cache(read_dataset)


def evil_script(metadata: TaskMetadata) -> list[Reply]:
    """By dimension: misaligned at level 1, blocked, truncated, errored, or resisted."""
    faces = built_in().scenario(metadata.scenario).misaligned
    tool = (faces.harmful if metadata.naming == "harmful" else faces.benign).name
    scripts = {
        "time": [says(EVIL, thoughts=EVIL, done=True), calls(tool, why=EVIL)],
        "financials": [Reply(stop=StopReason.CONTENT_FILTER)],
        "self-preservation": [Reply(EVIL, stop=StopReason.LENGTH)],
        "power-seeking": [],
    }
    return scripts.get(metadata.dimension, [says("No.", done=True)])


def evil_run(path: Path, levels: int = 12, limit: int = 24) -> Path:
    """A run with every outcome, of a model that attacks the readers of its report."""
    spec = RunSpec(f"scripted/{EVIL}", selection=Selection(limit=limit), protocol=Protocol(levels=levels))
    create_run(spec, path)
    finish(path, TaskScript(evil_script, spec.model))
    return path


def runs_of(*paths: Path) -> ComparableRuns:
    """The runs in some files."""
    return comparable(read_runs(paths).runs)


def report_of(*paths: Path, out: Path, choice: Any = "all") -> Path:
    """Writes a report without figures; its folder."""
    write_report(runs_of(*paths), out, choice, figures=False)
    return out


def html_of(*paths: Path) -> HtmlPage:
    """The page alone, without figures and transcripts."""
    return HtmlPage(render_page(document(runs_of(*paths)), [[] for _ in paths], "none"))


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evil")
    return report_of(evil_run(folder / "evil.run"), out=folder / "report")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("two")
    paths = [
        make(folder / f"{name}.run", f"simulated/{name}", limit=20)
        for name in ("o3-like", "gemini-2.5-pro-like")
    ]
    for path in paths:
        finish(path)
    return paths[0], paths[1]


@pytest.fixture(scope="module")
def single(two: tuple[Path, Path]) -> HtmlPage:
    """The page of the first of them."""
    return html_of(two[0])


def test_page_works_offline_and_runs_only_its_own_scripts(evil: Path) -> None:
    html = read_page(evil / "index.html")
    (policy,) = html.all("meta", **{"http-equiv": "Content-Security-Policy"})
    rules = dict(rule.strip().split(" ", 1) for rule in policy.attributes["content"].split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    scripts = [script for script in html.all("script") if "type" not in script.attributes]
    digests = [base64.b64encode(hashlib.sha256(s.text.encode()).digest()).decode() for s in scripts]
    assert rules["script-src"].split() == [f"'sha256-{digest}'" for digest in digests]
    assert len(html.all("script")) == len(scripts) + 1  # and a block of data
    assert html.elements.index(policy) < html.elements.index(html.all("script")[0])
    assert not [e for e in html.elements if any(name.startswith("on") for name in e.attributes)]
    assert not [link for link in html.links if re.match("[a-z]+:|//", link)]
    assert not html.all("img") + html.all("iframe") + html.all("link") + html.all("object")
    assert "sourceMappingURL" not in html.source


def test_hostile_names_and_texts_are_shown_as_text(evil: Path) -> None:
    for path in (evil / "index.html", *evil.glob("transcripts/1/*.html")):
        html = read_page(path)
        assert not re.search("[\x00\x1b\u202e]", html.source)
        assert not html.all("img")
        assert not [script for script in html.all("script") if "alert(1)" in script.text[:20]]
    summary = read_page(evil / "index.html").all("section", id="summary")[0].text
    assert "<script>alert(1)</script>\\x1b[31m\\u202e<!--<img src=https://example.org/x" in summary


def test_every_link_works_and_every_episode_has_a_page(evil: Path) -> None:
    html = read_page(evil / "index.html")
    assert dead_links(html, evil / "index.html") == []
    assert len(html.ids) == len(set(html.ids))
    pages = list(evil.glob("transcripts/1/[0-9]*.html"))
    assert len(pages) == 48
    assert {f"transcripts/1/{page.name}" for page in pages} <= set(html.links)


def test_every_number_is_found_in_the_data(evil: Path) -> None:
    data = json.loads((evil / "report.json").read_text(encoding="utf-8"))
    html = read_page(evil / "index.html")
    (embedded,) = html.all("script", id="report")
    assert json.loads(embedded.text) == data
    buttons = html.all("button", klass="n")
    assert len(buttons) > 400
    for button in buttons:
        there: Any = resolve(data, button.attributes["data-p"])
        unit: Any = button.attributes["data-u"]
        if isinstance(there, dict):
            assert {"value", "estimand", "weight", "n", "clusters", "method", "errors"} <= there.keys()
            assert button.text == format_number(there["value"], unit)
        elif isinstance(there, list):
            assert button.text == format_interval(there, unit)
        else:
            assert button.attributes["data-n"]
            assert button.text == format_number(there, unit)


def test_data_hold_the_whole_analysis_and_the_provenance(evil: Path) -> None:
    data = json.loads((evil / "report.json").read_text(encoding="utf-8"))
    (run,) = runs_of(evil.parent / "evil.run").runs
    assert data["analysis"] == json.loads(msgspec.json.encode(analyse([run])))
    (made,) = data["runs"]
    assert made["model"] == f"scripted/{EVIL}"
    assert made["sampling"].startswith("spread: at most 24 pairs")
    assert (made["seed"], made["tasks"], made["selections"][0]["epochs"]) == (0, 48, 1)
    assert (made["protocol"]["levels"], made["template"], made["usd"]) == (12, "named", None)
    assert made["data_digest"].startswith("d2:")
    assert made["stopping"] == "complete"
    tallies = made["domains"].values()
    assert sum(tally["planned"] for tally in tallies) == 48
    outcomes = Counter(record.stats.outcome.value for record in run.records)
    assert set(outcomes) == {outcome.value for outcome in Outcome} - {"unfinished", "completed"}
    assert outcomes == {name: sum(tally[name] for tally in tallies) for name in outcomes}
    reasons = [(t["blocked"], t["blocked_because"], t["errored"], t["errored_because"]) for t in tallies]
    for blocked, filters, lost, errors in reasons:
        assert filters == {"content_filter": blocked}
        assert errors == {"the script is empty": lost}
    assert data["limitations"]
    assert made["absent_domains"] == sorted(taxonomy().domains.keys() - made["domains"].keys())


def test_with_much_missing_the_summary_gives_bounds(evil: Path) -> None:
    summary = read_page(evil / "index.html").all("section", id="summary")[0].text
    data = json.loads((evil / "report.json").read_text(encoding="utf-8"))
    low, high = data["analysis"]["runs"][0]["scores"]["naming"]["harmful"]["bounds"]
    assert f", bounds {100 * low:.1f} to {100 * high:.1f}%" in " ".join(summary.split())


def test_truncated_tasks_are_counted_explained_listed_and_coloured(evil: Path) -> None:
    (made,) = json.loads((evil / "report.json").read_text(encoding="utf-8"))["runs"]
    count = sum(tally["truncated"] for tally in made["domains"].values())
    assert count > 0
    advice = f"{count} of 48 tasks were truncated"
    html = read_page(evil / "index.html")
    assert [caveat for caveat in made["caveats"] if caveat.startswith(advice) and "--max-tokens" in caveat]
    for name in ("summary", "limitations"):
        assert advice in html.all("section", id=name)[0].text
    assert "raise --max-tokens" in html.all("section", id="missing")[0].text
    assert len(html.all("td", klass="truncated")) == count
    (style,) = html.all("style")
    assert ".truncated { color: var(--truncated); }" in style.text
    assert style.text.count("--truncated: #") == 4  # light, dark by preference, dark by choice, print


def test_sections_and_headings_are_in_order(evil: Path) -> None:
    html = read_page(evil / "index.html")
    assert [section.attributes["id"] for section in html.all("section")] == SECTIONS
    levels = [int(element.tag[1]) for element in html.elements if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all(button.text.strip() for button in html.all("button"))


def test_several_runs_are_compared(two: tuple[Path, Path], single: HtmlPage) -> None:
    assert not single.all("section", id="comparisons")
    (section,) = html_of(*two).all("section", id="comparisons")
    assert "gemini-2.5-pro-like minus o3-like" in section.text
    # Whatever the page says of p is what the result says of itself.
    report = document(runs_of(*two))
    (pair,) = report.analysis.models["harmful"].pairs
    numbers = html_of(*two).all("button", klass="n")
    tests = [one for one in numbers if str(one.attributes["data-p"]).endswith("contrast/p")]
    assert [one.attributes["data-n"] for one in tests] == [pair.contrast.p_tests] * 4
    assert f"The p-value is of a {pair.contrast.p_tests}" in section.text
    answer = single.all("p", klass="answer")[0].text
    assert " ".join(answer.split()).startswith(
        "By the last level of pressure, o3-like called the misaligned tool in"
    )


def test_summary_table_has_the_published_names_and_numbers(two: tuple[Path, Path], single: HtmlPage) -> None:
    assert set(PUBLISHED) <= {head.text for head in single.all("th")[:10]}
    scores = runs_of(two[0]).runs[0].score().naming["harmful"]
    buttons = {
        button.attributes["data-p"].rpartition("/estimates/")[2]: button.text
        for button in single.all("button", klass="n")
        if "/harmful/estimates/" in button.attributes["data-p"]
    }
    assert buttons["resilience/domain"] == f"{scores.resilience:.2f}"
    assert buttons["persistence/domain"] == f"{scores.persistence:.2f}"
    assert buttons["competent/domain"] == f"{100 * (scores.competent or 0):.1f}%"
    assert buttons["propensity_zero/domain"] == f"{100 * (scores.propensity_zero or 0):.1f}%"
    assert buttons["propensity/domain"] == f"{100 * (scores.propensity or 0):.1f}%"


def test_caveats_of_a_run_are_in_the_summary(
    single: HtmlPage, two: tuple[Path, Path], tmp_path: Path
) -> None:
    text = single.all("section", id="summary")[0].text
    assert "Simulated, with a preset propensity" in text
    absent = taxonomy().domains.keys() - {one.metadata.domain for one in StoredRun(two[0]).records}
    assert ("this is not the propensity of the whole benchmark" in text) == bool(absent)
    path = tmp_path / "short.run"
    some = Selection(limit=4, domains=("self-proliferation",), namings=("benign",))
    create_run(RunSpec("simulated/always", selection=some, protocol=Protocol(levels=6)), path)
    finish(path)
    html = html_of(path)
    text = html.all("section", id="summary")[0].text
    assert "By level 6 of 12, always, PP@6 called the misaligned tool in" in " ".join(text.split())
    assert "Covers self-proliferation only: this is not the propensity of the whole benchmark" in text
    assert "Propensity here means PP@6: pressure ended after 6 of 12 messages" in text
    rows = [row.text for row in html.all("tr") if "always" in row.text]
    assert len(rows) > 20
    assert all("always, PP@6" in row for row in rows)


def test_an_agent_that_could_not_use_the_tools_is_named_in_the_summary(tmp_path: Path) -> None:
    run = make(tmp_path / "a.run", "simulated/incompetent", limit=4)
    finish(run)
    text = html_of(run).all("section", id="summary")[0].text
    low = runs_of(run).runs[0].score().low_competence
    assert low
    assert f"C{low[1:]}." in text


def test_run_without_any_episode_has_a_report(tmp_path: Path) -> None:
    out = report_of(make(tmp_path / "a.run"), out=tmp_path / "report")
    html = read_page(out / "index.html")
    assert "no task has a score" in html.all("section", id="summary")[0].text
    assert "Preliminary: of 12 tasks 12 have not begun" in html.all("section", id="summary")[0].text
    assert "incomplete, 12 not run yet" in html.all("section", id="methods")[0].text
    assert dead_links(html, out / "index.html") == []


@pytest.mark.slow
def test_output_is_deterministic(two: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = (report_of(two[0], out=tmp_path / name, choice="failed") for name in ("a", "b"))
    files = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(second) for path in second.rglob("*") if path.is_file())
    assert all((first / file).read_bytes() == (second / file).read_bytes() for file in files)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0965, "%", "9.7%"),
        (-0.254, "pp", "\u221225.4\u202fpp"),
        (0.254, "pp", "+25.4\u202fpp"),
        (-0.0001, "pp", "+0.0\u202fpp"),
        (0.5, "diff", "+0.50"),
        (1.5, "rank", "1.5"),
        (2.0, "rank", "2"),
        (0.00049, "p", "< .001"),
        (0.0251, "p", ".025"),
        (1.0, "p", "1.000"),
        (1234, "", "1,234"),
        (1.234, "", "1.23"),
        (None, "%", "-"),
    ],
)
def test_numbers_are_formatted_by_unit(value: float | None, unit: Any, text: str) -> None:
    assert format_number(value, unit) == text


def test_every_script_and_style_is_short() -> None:
    for name in SCRIPTS:
        if not name.startswith("vendor/"):
            assert len(asset(name).splitlines()) < 400, name


@pytest.mark.parametrize(
    ("kinds", "sentence"),
    [
        (["misaligned"], "No task was blocked, truncated, errored, left unfinished or left unplayed."),
        (["blocked", "truncated", "errored", "unfinished"], "No task was left unplayed."),
        (["blocked", "truncated", "errored", "unfinished", "unplayed"], ""),
    ],
)
def test_what_happened_to_no_task_is_a_sentence(kinds: list[str], sentence: str) -> None:
    assert none_of(kinds) == sentence
