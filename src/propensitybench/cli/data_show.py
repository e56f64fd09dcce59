"""``propensitybench data show``: a scenario and its pressure messages as readable text."""

import json
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Annotated, Final

import typer

from propensitybench.cli import options
from propensitybench.cli.text import print_json
from propensitybench.pressure import Chain, pressure_chain
from propensitybench.runs.settings import Settings
from propensitybench.scenarios import Scenario, read_dataset, scenario_id
from propensitybench.scenarios.storyline import NEUTRAL
from propensitybench.taxonomy import PAPER_LADDER

WIDTH: Final = 88
INDENT: Final = "  "


@options.takes("ladder")
def command(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A scenario's name.", show_default=False)
    ],
    dimension: Annotated[
        str, typer.Option("--dimension", metavar="DIMENSION", help="Pressure dimension.")
    ] = "time",
    data: options.Data = None,
    seed: options.Seed = 0,
    *,
    settings: Settings,
    as_json: options.AsJson = False,
) -> None:
    """Print a scenario and its 12 pressure messages."""
    dataset = read_dataset(data)
    if dimension != NEUTRAL:
        dataset.lists.dimension(dimension)
    found = dataset.scenario(scenario)
    chain = pressure_chain(
        found, dimension, dataset.storylines, seed, ladder=settings.get("ladder") or PAPER_LADDER
    )
    if as_json:
        rows = [message._asdict() for message in chain.messages]
        about = {"dimension": dimension, "storyline": chain.storyline, "messages": rows}
        print_json({"scenario": found.model_dump(), **about})
        return
    for line in (*_scenario(found), *_messages(dimension, chain, dataset.dimensions)):
        print(line)


def _scenario(scenario: Scenario) -> Iterator[str]:
    policy, faces = scenario.policy, scenario.misaligned
    yield scenario.name
    yield "=" * len(scenario.name)
    yield scenario.place
    severity = f"   severity {scenario.severity}" if scenario.severity else ""
    yield f"{scenario.capability or 'no capability'}   {scenario_id(scenario)}{severity}"
    if scenario.organisation:
        yield f"{scenario.organisation.name}, {scenario.organisation.what}"
    if scenario.act:
        yield _wrapped(f"{scenario.act.mechanism}; {scenario.act.target}; {scenario.act.gain}", "Act: ", "")
    yield from _section("Description", scenario.description)
    yield from (_entry(name, text) for name, text in scenario.states.model_dump().items())
    yield from _section("Task", scenario.task)
    yield from _section("Policy")
    yield from (_entry(name, text) for name, text in policy.model_dump().items())
    yield _entry("consequences", faces.consequences)
    yield from _section("Known arguments")
    yield from _values(scenario.known)
    yield from _section("Unknown arguments")
    yield from _values(scenario.unknown)
    yield from _section("Getters")
    for getter in scenario.getters:
        yield _entry(getter.name, getter.description)
        yield f"{INDENT * 2}{', '.join(getter.arguments) or '(nothing)'} -> {', '.join(getter.outputs)}"
    yield from _section("Aligned tool and its errors")
    yield _entry(scenario.aligned.name, scenario.aligned.description)
    yield f"{INDENT * 2}{', '.join(scenario.aligned.arguments)}"
    yield from (_wrapped(error, "- ", INDENT * 2) for error in scenario.aligned.errors)
    yield from _section("Misaligned tool under its harmful and benign names")
    yield _entry(faces.harmful.name, faces.harmful.description)
    yield _entry(faces.benign.name, faces.benign.description)
    yield f"{INDENT * 2}{', '.join(faces.arguments) or '(nothing)'}"
    yield _entry("acknowledgement", faces.acknowledgement)


def _messages(dimension: str, chain: Chain, dimensions: Sequence[str]) -> Iterator[str]:
    yield from _section(f"Pressure messages: {dimension}", chain.storyline and f"Storyline {chain.storyline}")
    for level, message in enumerate(chain.messages, start=1):
        yield f"{INDENT}Level {level}"
        yield f"{INDENT}From: {message.sender}"
        yield f"{INDENT}Subject: {message.subject}"
        for paragraph in message.body.split("\n\n"):
            yield ""
            yield _wrapped(paragraph)
        if message.answered:
            opening = message.answered.split("\n\n")[0]
            yield ""
            yield _wrapped(f"After a message from the agent it begins: {opening}")
        yield ""
    others = ", ".join(name for name in dimensions if name != dimension)
    yield _wrapped(f"Other dimensions (--dimension): {others}.", indent="")


def _section(title: str, text: str = "") -> Iterator[str]:
    yield ""
    yield title
    yield "-" * len(title)
    if text:
        yield _wrapped(text)


def _entry(name: str, text: str) -> str:
    return f"{INDENT}{name}\n{_wrapped(text, indent=INDENT * 2)}"


def _values(values: Mapping[str, object]) -> Iterator[str]:
    widest = max(map(len, values), default=0)
    for name, value in values.items():
        yield _wrapped(json.dumps(value, ensure_ascii=False), f"{name:{widest}}  ")


def _wrapped(text: str, mark: str = "", indent: str = INDENT) -> str:
    hanging = " " * len(mark)
    lines = wrap(text, WIDTH - len(indent) - len(mark), break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"{indent}{hanging if place else mark}{line}" for place, line in enumerate(lines))
