"""A run file from a stranger: nothing is written outside the folder asked for, and no page acts."""

import json
import re
import zipfile
from pathlib import Path

import pytest
from helpers.hostile_runs import ABSOLUTE, CHANGES, EVIL, hostile
from helpers.html_page import HtmlPage, read_page
from helpers.program import Done, call
from helpers.runs import finish, make

WHO = ("--organization", "A", "--relationship", "other")
SHORT_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# Elements and attributes with which a page could act or load something.
ACTIVE = {
    "iframe",
    "object",
    "embed",
    "link",
    "base",
    "form",
    "img",
    "svg",
    "math",
    "video",
    "audio",
    "template",
}


OUR_STYLE = {"rel": "stylesheet", "href": "../style.css"}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make(tmp_path_factory.mktemp("good") / "good.run", "simulated/always", limit=2)
    finish(path)
    return path


@pytest.fixture(scope="module")
def honest_pages(good: Path) -> dict[str, HtmlPage]:
    """The pages of a report on an honest run file, by name."""
    out = good.parent / "report"
    assert call("report", good, "--out", out, "--no-figures").code == 0
    return {path.relative_to(out).as_posix(): read_page(path) for path in out.rglob("*.html")}


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def assert_one_sentence_at_most(done: Done) -> None:
    assert done.code in (0, 1, 2), done.err
    if done.code == 2:
        assert len(done.err.splitlines()) == 1, done.err
    assert not SHORT_TEXT.search(done.out + done.err)


def assert_inert(page: HtmlPage, honest: HtmlPage | None) -> None:
    """No element or attribute acts, and the page's policy allows no script but ours."""
    (policy,) = [m for m in page.all("meta") if m.attributes.get("http-equiv") == "Content-Security-Policy"]
    assert policy.attributes["content"].startswith("default-src 'none'; script-src 'sha256-")
    for element in page.elements:
        assert element.tag not in ACTIVE or element.attributes == OUR_STYLE
        assert not [name for name in element.attributes if name.startswith("on") or name == "srcdoc"]
        assert element.attributes.get("src") is None
        assert not re.match(r"\s*(javascript|data|vbscript):", element.attributes.get("href", ""), re.I)
    ours = None if honest is None else [one.text for one in honest.all("script") if not one.attributes]
    theirs = [one.text for one in page.all("script") if not one.attributes]
    assert ours is None or theirs == ours
    for data in page.all("script", type="application/json"):
        json.loads(data.text)


@pytest.mark.slow
@pytest.mark.parametrize("text", [EVIL, ABSOLUTE])
@pytest.mark.parametrize("change", CHANGES)
def test_nothing_is_written_elsewhere_and_no_page_acts(
    change: str, text: str, good: Path, honest_pages: dict[str, HtmlPage], tmp_path: Path
) -> None:
    inner = tmp_path / "1" / "2" / "3" / "4"
    inner.mkdir(parents=True)
    path = hostile(good, inner / "a.run", change, text)
    report, rows, logs, records = (inner / name for name in ("report", "a.jsonl", "logs", "records"))
    for arguments in (
        ("report", path, "--out", report, "--no-figures"),
        ("export", path, "--transcripts", "--out", rows),
        ("export", path, "--format", "eval", "--out", logs),
        ("record", path, "--as", "every-eval-ever", *WHO, "--out", records),
        ("record", path, "--as", "checklist"),
        ("show", path),
        ("verify", path),
        ("resume", path),
    ):
        assert_one_sentence_at_most(call(*arguments, cwd=inner))
    allowed = {"1", "1/2", "1/2/3", "1/2/3/4"} | {
        f"1/2/3/4/{name}" for name in ("a.run", "report", "a.jsonl", "logs", "records")
    }
    outside = files_below(tmp_path) - allowed
    assert all(
        name.startswith(("1/2/3/4/report/", "1/2/3/4/logs/", "1/2/3/4/records/data")) for name in outside
    ), outside
    assert not Path("/tmp/propensitybench-evil").exists()
    names = files_below(report) if report.exists() else set()
    assert all(re.fullmatch(r"[\w./-]+", name) for name in names)
    for name in names:
        if name.endswith(".html"):
            assert_inert(read_page(report / name), honest_pages.get(name))
    for log in logs.glob("*") if logs.exists() else ():
        assert re.fullmatch(r"[\w+-]+\.eval", log.name)
        entries = zipfile.ZipFile(log).namelist()
        assert all(re.fullmatch(r"[\w./-]+", entry) and ".." not in entry for entry in entries), entries


@pytest.mark.slow
def test_a_creation_time_that_is_a_path_names_no_folder(good: Path, tmp_path: Path) -> None:
    path = hostile(good, tmp_path / "a.run", "manifest created", "2026-01-01/00:00:00+00:00")
    assert call("export", path, "--format", "eval", "--out", tmp_path / "logs").code == 0
    assert all(log.name.startswith("2026-01-01T00-00-00") for log in (tmp_path / "logs").iterdir())
