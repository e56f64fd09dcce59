"""The answer of a gate for a CI server: JUnit XML and a Markdown summary."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Final
from xml.etree import ElementTree as ET

from propensitybench.errors import BadInput
from propensitybench.escaping import html, visible
from propensitybench.gates.verdict import NamingVerdict, Verdict
from propensitybench.metrics.noninferiority import GateAnswer
from propensitybench.presentation import formats
from propensitybench.store.atomic import draft_folder

SUITE: Final = "propensitybench gate"
_HEAD: Final = f'<testsuites name="{SUITE}"'.encode()
_DECLARATION: Final = b"<?xml version='1.0' encoding='utf-8'?>\n"
_ELEMENTS: Final = {
    GateAnswer.PASS: "system-out",
    GateAnswer.FAIL: "failure",
    GateAnswer.INCONCLUSIVE: "error",
}
_MARKS: Final = {GateAnswer.PASS: "✅", GateAnswer.FAIL: "❌", GateAnswer.INCONCLUSIVE: "⚠️"}
# What begins something within a line of Markdown, bare links included. HTML has been escaped before.
_SYNTAX: Final = re.compile(r"([\\`*_{}\[\]#|~!]|:(?=//)|(?<=www)\.)")


def junit_xml(verdict: Verdict) -> bytes:
    """A test suite with a test case for each naming: a fail is a failure, and inconclusive is an error."""
    answers = [found.answer for found in verdict.namings.values()]
    counts = {
        "tests": str(len(answers)),
        "failures": str(answers.count(GateAnswer.FAIL)),
        "errors": str(answers.count(GateAnswer.INCONCLUSIVE)),
    }
    suites = ET.Element("testsuites", {"name": SUITE, **counts})
    suite = ET.SubElement(suites, "testsuite", {"name": SUITE, **counts, "skipped": "0"})
    sentence = visible(verdict.sentence)
    for naming, found in verdict.namings.items():
        name = f"{verdict.measure} under {naming} names: {verdict.candidate_model} after {verdict.base_model}"
        about = {"classname": "propensitybench.gate", "name": visible(name)}
        why = ET.SubElement(ET.SubElement(suite, "testcase", about), _ELEMENTS[found.answer])
        why.text = sentence
        if found.answer is not GateAnswer.PASS:
            why.attrib = {"type": found.answer.value, "message": sentence}
            lines = [f"base: {verdict.base}", f"candidate: {verdict.candidate}"]
            lines += [f"{what}: {number}" for what, number in _numbers(verdict, found).items()]
            lines += _commands(verdict, found)
            why.text = visible("\n".join(lines))
    ET.indent(suites)
    body: bytes = ET.tostring(suites, encoding="utf-8")
    return _DECLARATION + body + b"\n"


def _numbers(verdict: Verdict, found: NamingVerdict) -> dict[str, str]:
    return {
        "base %": formats.percent(found.base),
        "candidate %": formats.percent(found.candidate),
        "difference, points": formats.points(found.difference),
        "limits": f"{formats.points(found.low)} to {formats.points(found.high)}",
        "margin": f"{100 * verdict.margin:g}",
        "tasks": f"{found.tasks:,}",
        "no score": str(sum(found.missing.values()) + found.base_missing),
    }


def _commands(verdict: Verdict, found: NamingVerdict) -> list[str]:
    """The commands that show tasks in which only the candidate called the misaligned tool."""
    return [f"propensitybench show {quote(verdict.candidate)} {task}" for task in found.newly]


def markdown(verdict: Verdict) -> str:
    """A summary for the page of a CI job."""
    rows = {naming: _numbers(verdict, found) for naming, found in verdict.namings.items()}
    columns = next(iter(rows.values()))
    lines = [
        f"### {_MARKS[verdict.answer]} Gate on the {_text(verdict.measure)}: {verdict.answer}",
        "",
        _text(verdict.sentence),
        "",
        f"| names | {' | '.join(columns)} |",
        f"| --- |{' ---: |' * len(columns)}",
        *(f"| {naming} | {' | '.join(map(_text, row.values()))} |" for naming, row in rows.items()),
        "",
        f"Base: {_text(verdict.base_model)}, {_text(verdict.base)}  ",
        f"Candidate: {_text(verdict.candidate_model)}, {_text(verdict.candidate)}",
        *(f"\nNote: {_text(note)}" for note in verdict.notes),
    ]
    if commands := [one for found in verdict.namings.values() for one in _commands(verdict, found)]:
        lines += ["", "Misaligned tool called by the candidate alone, for example:", ""]
        lines += [f"- {_text(one)}" for one in commands]
    return "\n".join(lines) + "\n\n"


def _text(text: str) -> str:
    """Text as Markdown that shows it as it is, on one line: names may come from strangers."""
    return _SYNTAX.sub(r"\\\1", html(" ".join(text.split())))


def check_junit_place(path: Path) -> None:
    """Raises `BadInput` if the path holds something else than a gate's earlier answer."""
    with _or_bad_input(f"--junit {path}"):
        start = path.read_bytes() if path.exists() else b""
    if start and _HEAD not in start[: len(_DECLARATION) + len(_HEAD)]:
        raise BadInput(f"--junit {path}: exists, and was not written by a gate; give another name")


def write_junit(verdict: Verdict, path: Path) -> None:
    """Writes the test suite, whole or not at all; replaces only that of a gate.

    Raises:
        BadInput: it cannot be written, or the name is taken by another file.
    """
    check_junit_place(path)
    with _or_bad_input(f"--junit {path}"), draft_folder(path) as folder:
        (folder / path.name).write_bytes(junit_xml(verdict))
        (folder / path.name).replace(path)


def append_markdown(verdict: Verdict, path: Path) -> None:
    """Appends the summary to a file, as GitHub wants it in ``$GITHUB_STEP_SUMMARY``.

    Raises:
        BadInput: it cannot be written.
    """
    with _or_bad_input(f"--markdown {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(markdown(verdict))


@contextmanager
def _or_bad_input(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # a name with a null character is a ValueError
        raise BadInput(f"{what}: cannot be written ({getattr(error, 'strerror', None) or error})") from error
