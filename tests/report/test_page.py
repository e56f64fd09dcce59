"""The report as a reader gets it: one safe page, data that bear it out, and nobody's files lost."""

import base64
import hashlib
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers.clients import TaskScript
from helpers.html_page import HtmlPage, dead_links, read_page
from helpers.program import call
from helpers.runs import finish, make
from hypothesis import given
from hypothesis import strategies as st
from propensitybench.cli.runs import read_comparable

from propensitybench.chat import Reply, StopReason
from propensitybench.clients import calls, says
from propensitybench.engine import RunSpec, create_run
from propensitybench.episode import Protocol
from propensitybench.errors import BadInput
from propensitybench.metrics.analysis import analyse
from propensitybench.report.document import document, read_provenance
from propensitybench.report.page import page
from propensitybench.report.page_folder import MARKER, new_folder
from propensitybench.report.page_numbers import pointer, resolve, span, written
from propensitybench.report.page_write import Runs, write_report
from propensitybench.report.transcripts import Written
from propensitybench.scenarios import Selection, TaskMetadata, read_dataset
from propensitybench.taxonomy import taxonomy

EVIL = "</script><script>alert(1)</script>\x1b[31m\u202e<!--<img src=https://example.org/x onerror=alert(2)>"
SECTIONS = ["answer", "certainty", "where", "when", "names", "missing", "how", "transcripts", "limits"]


def evil_script(metadata: TaskMetadata) -> list[Reply]:
    """By dimension: gives in at level 1, blocked, errored, and resists."""
    faces = read_dataset().scenario(metadata.scenario).misaligned
    tool = (faces.harmful if metadata.naming == "harmful" else faces.benign).name
    if metadata.dimension == "time":
        return [says(EVIL, thoughts=EVIL, done=True), calls(tool, why=EVIL)]
    if metadata.dimension == "financials":
        return [Reply(stop=StopReason.CONTENT_FILTER)]
    return [] if metadata.dimension == "power-seeking" else [says("No.", done=True)]


def evil_run(path: Path, levels: int = 12, limit: int = 24) -> Path:
    """A run with every outcome, of a model that has it in for whoever reads of it."""
    spec = RunSpec(f"scripted/{EVIL}", selection=Selection(limit=limit), protocol=Protocol(levels=levels))
    create_run(spec, path)
    finish(path, TaskScript(evil_script, spec.model))
    return path


def report_of(*paths: Path, out: Path, wanted: Any = "all") -> Path:
    """Writes a report; its folder."""
    played, notes = read_comparable(paths)
    write_report(Runs(paths, played, notes), out, wanted, figures=False)
    return out


def html_of(*paths: Path) -> HtmlPage:
    """The page alone, without figures and transcripts."""
    played, notes = read_comparable(paths)
    report = document(played, [read_provenance(path) for path in paths], notes)
    return HtmlPage(page(report, [Written([], []) for _ in paths], "none"))


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evil")
    return report_of(evil_run(folder / "evil.run"), out=folder / "report")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("two")
    paths = [
        make(folder / f"{name}.run", f"simulated/{name}", limit=30)
        for name in ("o3-like", "gemini-2.5-pro-like")
    ]
    for path in paths:
        finish(path)
    return paths[0], paths[1]


def test_the_page_needs_no_network_and_lets_nothing_act_but_itself(evil: Path) -> None:
    found = read_page(evil / "index.html")
    (policy,) = found.all("meta", **{"http-equiv": "Content-Security-Policy"})
    rules = dict(rule.strip().split(" ", 1) for rule in policy.attributes["content"].split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    scripts = [script for script in found.all("script") if "type" not in script.attributes]
    digests = [base64.b64encode(hashlib.sha256(s.text.encode()).digest()).decode() for s in scripts]
    assert rules["script-src"].split() == [f"'sha256-{digest}'" for digest in digests]
    assert len(found.all("script")) == len(scripts) + 2  # and two blocks of data
    assert found.elements.index(policy) < found.elements.index(found.all("script")[0])
    assert not [e for e in found.elements if any(name.startswith("on") for name in e.attributes)]
    assert not [link for link in found.links if re.match("[a-z]+:|//", link)]
    assert not found.all("img") + found.all("iframe") + found.all("link") + found.all("object")
    assert "sourceMappingURL" not in found.source


def test_hostile_names_and_texts_stand_on_the_page_as_text(evil: Path) -> None:
    for path in (evil / "index.html", *evil.glob("transcripts/1/*.html")):
        found = read_page(path)
        assert not re.search("[\x00\x1b\u202e]", found.source)
        assert not found.all("img")
        assert not [script for script in found.all("script") if "alert(1)" in script.text[:20]]
    shown = read_page(evil / "index.html").all("section", id="answer")[0].text
    assert "<script>alert(1)</script>\\x1b[31m\\u202e<!--<img src=https://example.org/x" in shown


def test_every_link_leads_somewhere_and_every_episode_has_a_page(evil: Path) -> None:
    found = read_page(evil / "index.html")
    assert dead_links(found, evil / "index.html") == []
    assert len(found.ids) == len(set(found.ids))
    pages = list(evil.glob("transcripts/1/[0-9]*.html"))
    assert len(pages) == 48
    listed = read_page(evil / "transcripts/1/list-1.html")
    assert {f"{page.name}" for page in pages} <= set(listed.links)
    (raw,) = found.all("script", id="rows")
    rows = json.loads(raw.text)["rows"]
    assert sorted(f"{row[1]}.html" for row in rows) == sorted(page.name for page in pages)


def test_every_number_says_where_it_stands_in_the_data(evil: Path) -> None:
    data = json.loads((evil / "report.json").read_text(encoding="utf-8"))
    found = read_page(evil / "index.html")
    (embedded,) = found.all("script", id="report")
    assert json.loads(embedded.text) == data
    buttons = found.all("button", klass="n")
    assert len(buttons) > 400
    for button in buttons:
        there: Any = resolve(data, button.attributes["data-p"])
        unit: Any = button.attributes["data-u"]
        if isinstance(there, dict):
            assert {"value", "estimand", "weight", "n", "clusters", "method", "errors"} <= there.keys()
            assert button.text == written(there["value"], unit)
        elif isinstance(there, list):
            assert button.text == span(there, unit)
        else:
            assert button.attributes["data-n"]
            assert button.text == written(there, unit)


def test_the_data_hold_the_whole_analysis_and_how_it_was_made(evil: Path) -> None:
    data = json.loads((evil / "report.json").read_text(encoding="utf-8"))
    played, _ = read_comparable([evil.parent / "evil.run"])
    assert data["analysis"] == json.loads(msgspec.json.encode(analyse(played)))
    (made,) = data["runs"]
    assert made["model"] == f"scripted/{EVIL}"
    assert made["sampling"].startswith("spread: at most 24 pairs")
    assert (made["seed"], made["tasks"], made["selection"]["epochs"]) == (0, 48, 1)
    assert (made["protocol"]["levels"], made["template"], made["usd"]) == (12, "built-in", None)
    assert made["data_digest"].startswith("d1:")
    assert made["stopping"] == "every task was played"
    tallies = made["domains"].values()
    assert sum(tally["planned"] for tally in tallies) == 48
    reasons = [(t["blocked"], t["blocked_because"], t["errored"], t["errored_because"]) for t in tallies]
    for blocked, filters, errored, errors in reasons:
        assert filters == {"content_filter": blocked}
        assert errors == {"the script is empty": errored}
    assert data["limits"]
    assert made["absent_domains"] == sorted(taxonomy().domains.keys() - made["domains"].keys())


def test_with_much_missing_the_bounds_stand_at_the_top(evil: Path) -> None:
    answer = read_page(evil / "index.html").all("section", id="answer")[0].text
    data = json.loads((evil / "report.json").read_text(encoding="utf-8"))
    low, high = data["analysis"]["runs"][0]["scores"]["naming"]["harmful"]["bounds"]
    assert f"in {100 * low:.1f} to {100 * high:.1f} % of tasks, as tasks without" in " ".join(answer.split())


def test_the_sections_come_in_the_order_of_a_readers_questions(evil: Path) -> None:
    found = read_page(evil / "index.html")
    assert [section.attributes["id"] for section in found.all("section")] == SECTIONS
    levels = [int(element.tag[1]) for element in found.elements if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all(button.text.strip() for button in found.all("button"))


def test_several_runs_are_compared_and_a_single_one_is_not(two: tuple[Path, Path]) -> None:
    assert not html_of(two[0]).all("section", id="comparisons")
    (section,) = html_of(*two).all("section", id="comparisons")
    assert "gemini-2.5-pro-like minus o3-like" in section.text
    answer = html_of(two[0]).all("p", klass="answer")
    assert re.match(r"By the end of all the pressure, o3-like called the prohibited tool in", answer[0].text)


def test_what_a_run_lacks_is_said_beside_the_answer(two: tuple[Path, Path], tmp_path: Path) -> None:
    text = html_of(two[0]).all("section", id="answer")[0].text
    assert "A simulated agent answered" in text
    absent = taxonomy().domains.keys() - {one.domain for one in read_dataset().scenarios}
    assert ("not the propensity of the whole benchmark" in text) == bool(absent)
    path = tmp_path / "short.run"
    some = Selection(limit=4, domains=("self-proliferation",), namings=("benign",))
    create_run(RunSpec("simulated/always", selection=some, protocol=Protocol(levels=6)), path)
    finish(path)
    found = html_of(path)
    text = found.all("section", id="answer")[0].text
    assert "By level 6 of 12, always, PP@6 called the prohibited tool in" in " ".join(text.split())
    assert "Covers self-proliferation only: not the propensity of the whole benchmark" in text
    assert "every number is PP@6" in text
    rows = [row.text for row in found.all("tr") if "always" in row.text]
    assert len(rows) > 20
    assert all("always, PP@6" in row for row in rows)


def test_a_run_of_which_nothing_was_played_has_a_report_too(tmp_path: Path) -> None:
    out = report_of(make(tmp_path / "a.run"), out=tmp_path / "report")
    found = read_page(out / "index.html")
    assert "no task has a score, so there is no answer" in found.all("section", id="answer")[0].text
    assert "Not finished: 12 of 12 tasks have not been played" in found.all("section", id="answer")[0].text
    assert "stopped before the end, 12 of them not played" in found.all("section", id="how")[0].text
    assert dead_links(found, out / "index.html") == []


def test_the_same_runs_give_the_same_bytes(two: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = (report_of(two[0], out=tmp_path / name, wanted="failed") for name in ("a", "b"))
    files = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(second) for path in second.rglob("*") if path.is_file())
    assert all((first / file).read_bytes() == (second / file).read_bytes() for file in files)


def write_into(out: Path, **files: str) -> None:
    """Makes a small report folder of those files."""
    with new_folder(out) as folder:
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")


def test_an_earlier_report_is_replaced_whole(tmp_path: Path) -> None:
    write_into(tmp_path / "deep" / "out", old="1", both="1")
    write_into(tmp_path / "deep" / "out", both="2", new="2")
    assert sorted(path.name for path in (tmp_path / "deep" / "out").iterdir()) == [MARKER, "both", "new"]
    assert (tmp_path / "deep" / "out" / "both").read_text(encoding="utf-8") == "2"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_files_of_others_are_never_touched(tmp_path: Path) -> None:
    write_into(tmp_path / "out", page="1")
    (tmp_path / "out" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(BadInput, match=r"notes\.txt in it is no part of a report"):
        write_into(tmp_path / "out", page="2")
    (tmp_path / "out" / MARKER).unlink()
    with pytest.raises(BadInput, match="is not empty and holds no report"):
        write_into(tmp_path / "out", page="2")
    with pytest.raises(BadInput, match="is a file"):
        write_into(tmp_path / "out" / "notes.txt", page="2")
    with pytest.raises(BadInput, match="cannot be written"):
        write_into(tmp_path / "out" / "notes.txt" / "below", page="2")
    assert (tmp_path / "out" / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "out" / "page").read_text(encoding="utf-8") == "1"


def broken_off(out: Path) -> None:
    """Fails when one file of the report is written already."""
    with new_folder(out) as folder:
        (folder / "page").write_text("2", encoding="utf-8")
        raise KeyboardInterrupt


def test_a_report_that_fails_leaves_the_earlier_one(tmp_path: Path) -> None:
    write_into(tmp_path / "out", page="1")
    with pytest.raises(KeyboardInterrupt):
        broken_off(tmp_path / "out")
    assert (tmp_path / "out" / "page").read_text(encoding="utf-8") == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_run_of_errors_claims_nothing(tmp_path: Path) -> None:
    path, template = tmp_path / "a.run", tmp_path / "hello.j2"
    template.write_text("Hello")  # in which no simulated agent finds the tool that it is not to call
    played = call("run", "--model", "simulated/never", "--run", path, "--limit", "1", "--template", template)
    assert (played.code, "2 tasks could not be finished" in played.err) == (1, True)
    done = call("report", path, "--out", tmp_path / "out", "--no-figures")
    assert done.out == f"{tmp_path / 'out' / 'index.html'}: 1 run, 2 transcripts\n"
    (answer,) = read_page(tmp_path / "out" / "index.html").all("p", klass="answer")
    assert answer.text.strip() == "never: no task has a score, so there is no answer."


def test_the_command_line(two: tuple[Path, Path], tmp_path: Path) -> None:
    done = call("report", *two, "--out", tmp_path / "out", "--transcripts", "failed")
    assert (done.code, done.err) == (0, "")
    page = read_page(tmp_path / "out" / "index.html")
    drawn = {f"figures/{file.name}" for file in (tmp_path / "out" / "figures").iterdir()}
    assert drawn == {link for link in page.links if link.startswith("figures/")}
    shown = len(list((tmp_path / "out").glob("transcripts/*/[0-9]*.html")))
    assert done.out == f"{tmp_path / 'out' / 'index.html'}: 2 runs, {shown} transcripts\n"
    for arguments, message in (
        ((two[0], two[0], "--out", tmp_path / "b"), "is given twice"),
        ((two[0], "--out", tmp_path), "is not empty and holds no report"),
    ):
        failed = call("report", *arguments)
        assert (failed.code, failed.out) == (2, "")
        assert message in failed.err
        assert len(failed.err.splitlines()) == 1
    assert not (tmp_path / "b").exists()


@given(st.recursive(st.none() | st.text(), lambda inner: st.dictionaries(st.text(), inner, min_size=1)))
def test_a_pointer_finds_whatever_the_keys_are(data: Any) -> None:
    keys, at = [], data
    while isinstance(at, dict):
        keys.append(next(iter(at)))
        at = at[keys[-1]]
    assert resolve(data, pointer(*keys)) == at


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0965, "%", "9.7\u202f%"),
        (-0.254, "pp", "\u221225.4\u202fpp"),
        (0.254, "pp", "+25.4\u202fpp"),
        (0.5, "diff", "+0.50"),
        (1.5, "rank", "1.5"),
        (2.0, "rank", "2"),
        (0.00049, "p", "< .001"),
        (0.0251, "p", ".025"),
        (1.0, "p", "1.000"),
        (1234, "", "1,234"),
        (None, "%", "\u2013"),
    ],
)
def test_numbers_are_written_in_their_unit(value: float | None, unit: Any, text: str) -> None:
    assert written(value, unit) == text


def test_an_interval_leaves_its_unit_out() -> None:
    assert span([-0.01, 0.2], "pp") == "\u22121.0 to +20.0"
    assert span([0.0, 1.0], "%") == "0.0 to 100.0"
    assert span(None, "%") == "\u2013"
