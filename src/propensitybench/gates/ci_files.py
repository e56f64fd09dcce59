"""The answer of a gate for a CI server: JUnit XML and a Markdown summary."""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from propensitybench.errors import BadInput
from propensitybench.escaping import html, visible
from propensitybench.gates.verdict import NamingVerdict, Verdict
from propensitybench.metrics import display
from propensitybench.metrics.noninferiority import Answer
from propensitybench.store.atomic import draft_folder

SUITE: Final = "propensitybench gate"
_HEAD: Final = f'<testsuites name="{SUITE}"'.encode()
_DECLARATION: Final = b"<?xml version='1.0' encoding='utf-8'?>\n"
_MARKS: Final = {Answer.PASS: "✅", Answer.FAIL: "❌", Answer.INCONCLUSIVE: "⚠️"}
# What begins something within a line of Markdown, bare links included. HTML has been escaped before.
_SYNTAX: Final = re.compile(r"([\\`*_{}\[\]#|~!]|:(?=//)|(?<=www)\.)")


def junit_xml(verdict: Verdict) -> bytes:
    """A test suite with a test case for each naming: a fail is a failure, and inconclusive is an error."""
    kinds = {Answer.FAIL: "failure", Answer.INCONCLUSIVE: "error"}
    answers = [found.answer for found in verdict.namings.values()]
    counts = {
        "tests": str(len(answers)),
        "failures": str(answers.count(Answer.FAIL)),
        "errors": str(answers.count(Answer.INCONCLUSIVE)),
    }
    suites = ET.Element("testsuites", {"name": SUITE, **counts})
    suite = ET.SubElement(suites, "testsuite", {"name": SUITE, **counts, "skipped": "0"})
    for naming, found in verdict.namings.items():
        name = f"{verdict.measure} under {naming} names: {verdict.candidate_model} after {verdict.base_model}"
        about = {"classname": "propensitybench.gate", "name": visible(name)}
        case = ET.SubElement(suite, "testcase", about)
        if found.answer in kinds:
            why = ET.SubElement(
                case, kinds[found.answer], {"type": found.answer.value, "message": visible(verdict.sentence)}
            )
            why.text = _numbers(verdict, found)
        else:
            ET.SubElement(case, "system-out").text = visible(verdict.sentence)
    ET.indent(suites)
    body: bytes = ET.tostring(suites, encoding="utf-8")
    return _DECLARATION + body + b"\n"


def _numbers(verdict: Verdict, found: NamingVerdict) -> str:
    lines = [
        f"base: {verdict.base} {display.percent(found.base)} %",
        f"candidate: {verdict.candidate} {display.percent(found.candidate)} %",
        f"difference in points: {display.points(found.difference)}",
        f"limits: {display.points(found.low)} to {display.points(found.high)}",
        f"margin: {100 * verdict.margin:g}",
        f"tasks: {found.tasks}",
    ]
    return visible("\n".join(lines))


def markdown(verdict: Verdict) -> str:
    """A summary for the page of a CI job."""
    lines = [
        f"### {_MARKS[verdict.answer]} Gate on the {_text(verdict.measure)}: {verdict.answer}",
        "",
        _text(verdict.sentence),
        "",
        "| names | base % | candidate % | difference, points | limits | margin | tasks | no score |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for naming, found in verdict.namings.items():
        cells = [
            naming,
            display.percent(found.base),
            display.percent(found.candidate),
            display.points(found.difference),
            f"{display.points(found.low)} to {display.points(found.high)}",
            f"{100 * verdict.margin:g}",
            f"{found.tasks:,}",
            str(sum(found.missing.values()) + found.base_missing),
        ]
        lines.append(f"| {' | '.join(map(_text, cells))} |")
    lines += ["", f"Base: {_text(verdict.base_model)}, {_text(verdict.base)}  "]
    lines += [f"Candidate: {_text(verdict.candidate_model)}, {_text(verdict.candidate)}"]
    lines += [f"\nNote: {_text(note)}" for note in verdict.notes]
    return "\n".join(lines) + "\n\n"


def _text(text: str) -> str:
    """Text as Markdown that shows it as it is, on one line: names may come from strangers."""
    return _SYNTAX.sub(r"\\\1", html(" ".join(text.split())))


def check_junit_place(path: Path) -> None:
    """Raises `BadInput` if the path holds something else than a gate's earlier answer."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_DECLARATION) + len(_HEAD))
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # a name with a null character is a ValueError
        raise BadInput(f"--junit {path}: cannot be written ({_reason(error)})") from error
    if start and _HEAD not in start:
        raise BadInput(f"--junit {path}: exists, and was not written by a gate; give another name")


def write_junit(verdict: Verdict, path: Path) -> None:
    """Writes the test suite, whole or not at all; replaces only that of a gate.

    Raises:
        BadInput: it cannot be written, or the name is taken by another file.
    """
    check_junit_place(path)
    try:
        with draft_folder(path) as folder:
            draft = folder / "junit.xml"
            with draft.open("wb") as file:
                file.write(junit_xml(verdict))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
    except (OSError, ValueError) as error:  # a name with a null character is a ValueError
        raise BadInput(f"--junit {path}: cannot be written ({_reason(error)})") from error


def append_markdown(verdict: Verdict, path: Path) -> None:
    """Appends the summary to a file, whole or not at all, as GitHub wants it in ``$GITHUB_STEP_SUMMARY``.

    Raises:
        BadInput: it cannot be written.
    """
    content = markdown(verdict).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file:
            before = file.tell()
            try:
                if file.write(content) < len(content):
                    raise OSError("the disk is full")
            except OSError:
                with suppress(OSError):
                    file.truncate(before)
                raise
    except (OSError, ValueError) as error:
        raise BadInput(f"--markdown {path}: cannot be written ({_reason(error)})") from error


def _reason(error: OSError | ValueError) -> str:
    return str(getattr(error, "strerror", None) or error)
