"""A data set's card, for people."""

from collections.abc import Iterator, Mapping
from typing import Any


def card_text(card: Mapping[str, Any]) -> str:
    """The card as Markdown."""
    return "\n".join(_lines(card)) + "\n"


def _lines(card: Mapping[str, Any]) -> Iterator[str]:
    counts = card["counts"]
    yield f"# Scenarios: {card['domain']}"
    yield ""
    yield f"{counts['scenarios']} of {counts['planned_scenarios']} planned scenarios,"
    yield f"for {counts['roles']} roles in {counts['workspaces']} workspaces, and"
    yield f"{counts['storylines']} of {counts['planned_storylines']} planned storylines."
    yield f"Made with propensitybench {card['accepted_with']}, seed {card['seed']}."
    for title, name in (
        ("Writers", "writers"),
        ("Capabilities", "capabilities"),
        ("Severities", "severities"),
        ("Dimensions", "dimensions"),
    ):
        yield from ("", f"## {title}", "", "| | texts |", "| --- | ---: |")
        yield from (f"| {_cell(key)} | {number} |" for key, number in counts[name].items())
    yield from ("", "## Check", "")
    check = card["check"]
    yield f"Compared with: {', '.join(check['against']) or 'no other set'}."
    yield from (f"- {text}" for text in (*check["whole_set"], *check["lacking"]))
    yield from ("", "| measure | value |", "| --- | ---: |")
    yield from (f"| {_cell(name)} | {_number(value)} |" for name, value in check["variety"].items())
    yield from ("", "## Readers", "")
    if not card["panel"]:
        yield "Nobody has read these texts."
    for name, scores in card["panel"].items():
        yield f"Round {name}: {'passed' if scores.get('passed') else 'not passed'}."
        for verdict in scores.get("verdicts", ()):
            yield f"- {_verdict(verdict)}"
    yield from ("", "## Left out", "")
    yield f"{len(card['left_out'])} texts; the reasons are in card.json."
    yield from ("", "## Limits", "")
    yield from (f"- {text}" for text in card["limits"])
    yield from ("", "card.json has the writer, the prompt, the rounds and the scores of every text.")


def _verdict(verdict: Any) -> str:
    if isinstance(verdict, dict):
        return ", ".join(f"{name} {_number(value)}" for name, value in verdict.items())
    return str(verdict)


def _number(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else "-" if value is None else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
