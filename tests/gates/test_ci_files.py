"""What a gate writes for a CI server: well-formed, and harmless whatever the names are."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from propensitybench.errors import BadInput
from propensitybench.gates import NamingVerdict, Verdict
from propensitybench.gates.ci_files import append_markdown, junit_xml, markdown, write_junit
from propensitybench.metrics.noninferiority import GateAnswer

ODD = "a|b`c`\n<img src=x onerror=1>[l](http://x)\x1b[31m\u202e & *d* # \ufffe"
FOUND = NamingVerdict(
    answer=GateAnswer.PASS, difference=0.01, low=-0.02, high=0.04, base=0.1, candidate=0.11, tasks=1234,
    scenarios=200, domains=4, missing={"errored": 2}, base_missing=1, competent=(1.0, 0.9),
    competence_lost=False, competence_low=False, clear_without_missing=False, looks=[], needed=None,
)  # fmt: skip


def verdict(answer: GateAnswer, name: str = "model", found: NamingVerdict = FOUND) -> Verdict:
    return Verdict(
        answer=answer, base="base.run", candidate=f"{name}.run", base_model="base", candidate_model=name,
        on="propensity", measure="propensity", margin=0.03, level=0.05, until_decided=False, played=1234,
        there_are=1234, namings={"harmful": msgspec.structs.replace(found, answer=answer)},
        notes=(f"about {name}",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "element", "counts"),
    [
        (GateAnswer.PASS, "system-out", ("0", "0")),
        (GateAnswer.FAIL, "failure", ("1", "0")),
        (GateAnswer.INCONCLUSIVE, "error", ("0", "1")),
    ],
)
def test_each_answer_is_what_a_ci_server_takes_it_for(
    answer: GateAnswer, element: str, counts: tuple[str, str]
) -> None:
    suite = ET.fromstring(junit_xml(verdict(answer)))
    (case,) = suite.iter("testcase")
    assert [child.tag for child in case] == [element]
    assert (suite.get("failures"), suite.get("errors")) == counts


def test_odd_names_are_text_in_xml_and_in_markdown() -> None:
    (case,) = ET.fromstring(junit_xml(verdict(GateAnswer.FAIL, ODD))).iter("testcase")
    assert "\\x1b[31m\\u202e" in str(case.get("name"))
    assert "<img src=x" in str(case.get("name"))
    text = markdown(verdict(GateAnswer.FAIL, ODD))
    assert not any(part in text for part in ("<img", "\x1b", "\u202e"))
    assert "\\[l\\](http\\://x)" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert [line.replace("\\|", "").count("|") for line in rows] == [9, 9, 9]


def test_the_summary_has_the_numbers() -> None:
    row = "| harmful | 10.0 | 11.0 | +1.0 | -2.0 to +4.0 | 3 | 1,234 | 3 |"
    assert row in markdown(verdict(GateAnswer.PASS))
    unknown = msgspec.structs.replace(FOUND, base=None, candidate=None, low=None, high=None)
    assert "| harmful | - | - |" in markdown(verdict(GateAnswer.PASS, found=unknown))


def test_a_suite_replaces_a_suite_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "gate.xml"
    for answer in (GateAnswer.PASS, GateAnswer.FAIL):
        write_junit(verdict(answer), path)
        assert path.read_bytes() == junit_xml(verdict(answer))
    path.write_text("notes")
    with pytest.raises(BadInput, match="was not written by a gate"):
        write_junit(verdict(GateAnswer.PASS), path)
    assert path.read_text() == "notes"
    assert [entry.name for entry in tmp_path.iterdir()] == ["gate.xml"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--markdown /dev/full: cannot be written"):
        append_markdown(verdict(GateAnswer.PASS), Path("/dev/full"))
    (tmp_path / "file").touch()
    for odd in ("file/a.xml", "null\0.xml"):
        with pytest.raises(BadInput, match=r"--junit .*cannot be written"):
            write_junit(verdict(GateAnswer.PASS), tmp_path / odd)
