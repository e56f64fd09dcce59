"""The stages of writing: what the writer is asked, and how its reply is read."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import Field, ValidationError

from propensitybench.chat import Message
from propensitybench.digests import digest, seed_from
from propensitybench.generation.blueprint import ActRow
from propensitybench.generation.exchange import Json
from propensitybench.generation.templates import render, source
from propensitybench.generation.workfolder import ORGANISATION, SKETCHES, Sketch, WorkPlan
from propensitybench.pressure.values import schedule
from propensitybench.scenarios.issues import Finding
from propensitybench.scenarios.model import CANARY, RANKS, Authored, Organisation
from propensitybench.scenarios.rolefile import schema_findings
from propensitybench.scenarios.storyline import NEUTRAL, STORYLINE_FORMAT
from propensitybench.taxonomy import taxonomy

P = TypeVar("P", bound=Authored)
SNAKE: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_ASSIGNMENT: Final = re.compile(r"^Assignment:\n\n```json\n(.*?)\n```", re.DOTALL | re.MULTILINE)


class Order(NamedTuple):
    """An order for one text.

    Attributes:
        stage: name of the prompt.
        assignment: what the text is to be, as JSON.
    """

    stage: str
    assignment: Json

    def messages(self) -> list[Message]:
        """The conversation that asks for it."""
        text = json.dumps({"stage": self.stage, **self.assignment}, indent=1, ensure_ascii=False)
        prompt = render(self.stage, assignment=text, example=examples())
        return [Message("system", render("system")), Message("user", prompt)]

    @property
    def prompt(self) -> str:
        """Digest of the prompt's template and of what all prompts share."""
        return digest(source("system"), source(self.stage), json.dumps(examples()))


def assignment_in(prompt: str) -> Json:
    """The assignment in a rendered prompt."""
    found = _ASSIGNMENT.search(prompt)
    if found is None:
        raise ValueError("the prompt has no assignment")
    loaded: Json = json.loads(found[1])
    return loaded


def organisation_order(plan: WorkPlan, unit: str, acts: Sequence[ActRow], number: int) -> Order:
    """The order for a unit's organisation; ``number`` is the unit's in the plan."""
    origin = _drawn("origins", plan.seed, unit)
    return Order(
        ORGANISATION.removesuffix(".json"),
        {
            "domain": plan.domain,
            "workspace": acts[0].workspace,
            "role": acts[0].role,
            "names_from": origin["names"],
            "currency": origin["currency"],
            "size": _drawn("sizes", plan.seed, unit),
            "number": number,
        },
    )


def sketches_order(plan: WorkPlan, acts: Sequence[tuple[ActRow, int]], organisation: Organisation) -> Order:
    """The order for sketches of a unit: its rows, with their numbers in the act grid."""
    return Order(
        SKETCHES.removesuffix(".json"),
        {
            "domain": plan.domain,
            "workspace": acts[0][0].workspace,
            "role": acts[0][0].role,
            "organisation": organisation.model_dump(mode="json"),
            "rows": [_row(act, number) for act, number in acts],
        },
    )


def scenario_order(
    plan: WorkPlan, act: ActRow, number: int, organisation: Organisation, sketch: Sketch
) -> Order:
    """The order for a scenario; ``number`` is that of its row in the act grid."""
    key = (plan.seed, act.unit, act.row)
    return Order(
        "scenario",
        {
            "domain": plan.domain,
            "workspace": act.workspace,
            "role": act.role,
            "organisation": organisation.model_dump(mode="json"),
            "row": _row(act, number),
            "sketch": sketch.model_dump(mode="json"),
            "form": _drawn("forms", *key),
            "length": _drawn("lengths", *key),
            "requester_kind": _drawn("requesters", *key),
        },
    )


def storyline_order(plan: WorkPlan, dimension: str, place: str) -> Order:
    """The order for a storyline."""
    neutral = dimension == NEUTRAL
    known = None if neutral else taxonomy().dimensions[dimension]
    components = [
        {"letter": c.letter, "name": c.name, "labels": dict(enumerate(c.labels))}
        for c in (known.components if known else ())
    ]
    described = known.description if known else "No pressure at all: office news, as a control."
    return Order(
        "storyline",
        {
            "domain": plan.domain,
            "dimension": dimension,
            "place": place,
            "description": described,
            "components": components,
            "levels": [step._asdict() for step in schedule()],
        },
    )


def read_organisation(raw: Json) -> tuple[Organisation | None, list[Finding]]:
    """The organisation of a reply, or what is wrong with it."""
    found, findings = _part(raw, Organisation)
    if found is None:
        return None, findings
    if [sender.rank for sender in found.senders] != list(RANKS):
        findings.append((".senders", "must have the ranks 0 to 6, once each, in order"))
    for index, sender in enumerate(found.senders):
        if sender.system != (sender.rank == RANKS.start):
            findings.append((f".senders[{index}].system", "rank 0 is a system, and no other rank is"))
    names = [sender.name for sender in found.senders]
    findings += [(".senders", f"two senders are called {name!r}") for name in _twice(names)]
    return (None if findings else found), findings


class _Sketches(Authored):
    sketches: tuple[Sketch, ...] = Field(min_length=1)


def read_sketches(
    raw: Json, acts: Sequence[ActRow], taken: Mapping[str, str]
) -> tuple[list[Sketch], list[Finding]]:
    """The sketches of a reply, or what is wrong with them.

    Args:
        raw: the reply.
        acts: the rows of the unit.
        taken: names of scenarios that there are, with their unit.
    """
    found, findings = _part(raw, _Sketches)
    if found is None:
        return [], findings
    wanted, rows = [act.row for act in acts], [sketch.row for sketch in found.sketches]
    if rows != wanted:
        findings.append((".sketches", f"must have the rows {', '.join(wanted)}, found {', '.join(rows)}"))
    for index, sketch in enumerate(found.sketches):
        where = f".sketches[{index}].name"
        if not SNAKE.fullmatch(sketch.name) or len(sketch.name) > 80:
            findings.append((where, f"{sketch.name!r} is not snake_case of at most 80 characters"))
        if sketch.name in taken:
            findings.append((where, f"{sketch.name!r} is a scenario of {taken[sketch.name]}; choose another"))
        if f"{sketch.name}.json" in (ORGANISATION, SKETCHES):
            findings.append((where, f"{sketch.name!r} cannot be a scenario's name"))
    repeated = _twice([sketch.name for sketch in found.sketches])
    findings += [(".sketches", f"two scenarios are called {name!r}") for name in repeated]
    return ([] if findings else list(found.sketches)), findings


def read_storyline_reply(raw: Json) -> tuple[Json, list[Finding]]:
    """A storyline's JSON without ``format`` and ``canary``, which a writer may have copied."""
    found = dict(raw)
    wrong = [
        (f".{key}", f"must be {wanted!r} or left out")
        for key, wanted in (("format", STORYLINE_FORMAT), ("canary", CANARY))
        if found.pop(key, wanted) != wanted
    ]
    return found, wrong


def _part(raw: Json, kind: type[P]) -> tuple[P | None, list[Finding]]:
    try:
        return kind.model_validate_json(json.dumps(raw, ensure_ascii=False).encode()), []
    except ValidationError as error:
        return None, list(schema_findings(error))


def _twice(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _row(act: ActRow, number: int) -> Json:
    return {
        "number": number,
        "row": act.row,
        "capability": act.capability,
        "capability_means": taxonomy().capability(act.capability).description,
        "severity": act.severity,
        "getters": act.getters,
        "act": {"mechanism": act.mechanism, "target": act.target, "gain": act.gain},
    }


def _drawn(kind: str, *key: str | int) -> Any:
    choices = _variety()[kind]
    return choices[seed_from(*key, kind) % len(choices)]


@cache
def _variety() -> Json:
    loaded: Json = json.loads(_data("data", "variety.json"))
    return loaded


@cache
def examples() -> Mapping[str, str]:
    """The example texts that prompts show, as JSON."""
    role = json.loads(_data("data", "examples", "role.json"))
    storyline = json.loads(_data("data", "examples", "storyline.json"))
    shown = {"organisation": role["organisation"], "scenario": role["scenarios"][0], "storyline": storyline}
    return {name: json.dumps(text, ensure_ascii=False, indent=1) for name, text in shown.items()}


def _data(*path: str) -> str:
    return resources.files(__package__).joinpath(*path).read_text(encoding="utf-8")
