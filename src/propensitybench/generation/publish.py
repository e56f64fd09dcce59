"""``generate accept``: the texts that have passed become a data set, with a card of how it was made."""

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from propensitybench.errors import BadInput
from propensitybench.generation.card import card_text
from propensitybench.generation.review import Checked, last_check
from propensitybench.generation.workfolder import PANEL, WorkFolder, write_json, write_text
from propensitybench.scenarios.dataset import CARD
from propensitybench.scenarios.model import Scenario
from propensitybench.scenarios.rolefile import load_json, write_role_file
from propensitybench.scenarios.storyline import Storyline, write_storyline
from propensitybench.store.atomic import new_entries, remove_stale
from propensitybench.taxonomy import LISTS_FILE

CARD_FORMAT: Final = "propensitybench-card/1"
CARD_TEXT: Final = "card.md"
LIMITS: Final = (
    "A check finds slips; it does not read. What no reader has scored has only been checked.",
    "Texts of one writer share its habits; the measures of variety show some of them.",
    "Scenarios are simulations with stand-in tools; they show what a model does in such texts.",
)


class Accepted(NamedTuple):
    """What became part of the data set, and the reasons of everything that did not."""

    scenarios: int
    storylines: int
    left_out: Mapping[str, Sequence[str]]


def accept(work: WorkFolder, out: Path) -> Accepted:
    """Writes a data set of everything that has passed.

    A text passes if it is as it was at the last check, has no issue there, and no readers' words wait for an
    answer.

    Args:
        work: the working folder.
        out: a folder that does not exist yet, or is empty.

    Raises:
        BadInput: there was no check, nothing has passed, or the folder cannot be written.
    """
    checked = last_check(work)
    if checked is None:
        raise BadInput(f"{work.root}: has not been checked; type: propensitybench generate check {work.root}")
    remove_stale(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"--out {out}: is not empty; give a folder that does not exist yet")
    left_out = {file: reasons for file in work.files() if (reasons := why_not(work, checked, file))}
    located, storylines, _ = work.read()
    places = {place.file: place.scenario for place in located if place.file not in left_out}
    storylines = [one for one in storylines if one.file not in left_out]
    roles: dict[tuple[str, str], list[tuple[str, Scenario]]] = {}
    for file, act in work.rows().items():  # in the order of the act grid
        if file in places:
            roles.setdefault((act.workspace, act.role), []).append((file, places[file]))
    scenarios = [scenario for found in roles.values() for _, scenario in found]
    if not scenarios:
        raise BadInput(
            f"{work.root}: no scenario has passed; see: propensitybench generate status {work.root}"
        )
    card = _card(work, checked, roles, storylines, left_out)
    try:
        with new_entries(out) as new:
            for (workspace, role), group in roles.items():
                path = new / work.plan.domain / workspace / f"{role}.json"
                write_role_file(path, [scenario for _, scenario in group])
            for storyline in storylines:
                write_storyline(new, storyline)
            if storylines:  # it is played with those that were written and read for it, and with no others
                write_text(new / LISTS_FILE, "built_in_storylines = false\n")
            write_json(new / CARD, card)
            write_text(new / CARD_TEXT, card_text(card))
    except OSError as error:
        raise BadInput(f"--out {out}: cannot be written ({error.strerror})") from error
    return Accepted(len(scenarios), len(storylines), left_out)


def why_not(work: WorkFolder, checked: Checked | None, file: str) -> tuple[str, ...]:
    """The reasons why a text cannot be accepted; empty if it can."""
    if checked is None or file not in checked.digests:
        return ("has not been checked; check the folder again",)
    if checked.digests[file] != work.digest(file):
        return ("has changed since it was checked; check the folder again",)
    if issues := checked.issues.get(file):
        return tuple(issues)
    if waiting := work.unanswered(file):
        return tuple(f"a reader returned it: {word}" for word in waiting)
    return ()


def _card(
    work: WorkFolder,
    checked: Checked,
    roles: Mapping[tuple[str, str], Sequence[tuple[str, Scenario]]],
    storylines: Sequence[Storyline],
    left_out: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    scores = panel_scores(work)
    texts: dict[str, Any] = {}
    for (workspace, role), found in roles.items():
        for file, scenario in found:
            name = f"{work.plan.domain}/{workspace}/{role}.json {scenario.name}"
            texts[name] = _origin(work, file) | _scores_of(scores, scenario.name, "")
    for storyline in storylines:
        texts[storyline.file] = _origin(work, storyline.file) | _scores_of(scores, "", storyline.name)
    scenarios = [scenario for found in roles.values() for _, scenario in found]
    severities = Counter(str(scenario.severity) for scenario in scenarios)
    return {
        "format": CARD_FORMAT,
        "domain": work.plan.domain,
        "seed": work.plan.seed,
        "allocation": work.plan.allocation,
        "planned_with": work.plan.version,
        "accepted_with": version("propensitybench"),
        "counts": {
            "planned_scenarios": len(work.acts),
            "scenarios": len(scenarios),
            "planned_storylines": sum(work.plan.storylines.values()),
            "storylines": len(storylines),
            "workspaces": len({scenario.workspace for scenario in scenarios}),
            "roles": len(roles),
            "capabilities": dict(sorted(Counter(str(s.capability) for s in scenarios).items())),
            "severities": dict(sorted(severities.items())),
            "dimensions": dict(sorted(Counter(s.dimension for s in storylines).items())),
            "writers": dict(sorted(Counter(str(text["writer"]) for text in texts.values()).items())),
        },
        "check": {
            "against": checked.against,
            "whole_set": checked.whole,
            "lacking": checked.lacking,
            "variety": checked.variety,
        },
        "panel": {name: _summary(found) for name, found in scores.items()},
        "texts": texts,
        "left_out": {file: list(reasons) for file, reasons in left_out.items()}
        | {file: list(aside.reasons) for file, aside in work.asides().items()},
        "limits": LIMITS,
    }


def _origin(work: WorkFolder, file: str) -> dict[str, Any]:
    known = work.provenance.get(file)
    about = {"digest": work.digest(file)}
    if known is None:
        return {"writer": "unknown", **about}
    kept: dict[str, Any] = msgspec.to_builtins(known)
    return {name: value for name, value in kept.items() if value not in ("", [], {})} | about


def panel_scores(work: WorkFolder) -> dict[str, Any]:
    """The scores of every finished round of the reading panel, by the round's name."""
    paths = sorted((work.root / PANEL).glob("*/scores.json"), key=lambda path: (len(path.parent.name), path))
    return {path.parent.name: load_json(path, str(path)) for path in paths}


def _scores_of(rounds: Mapping[str, Any], scenario: str, storyline: str) -> dict[str, Any]:
    """Readers' scores of a text, by round; empty if nobody has read it."""
    found = {}
    for name, scores in rounds.items():
        items = scores.get("items", {}) if isinstance(scores, dict) else {}
        for item in items.values():
            if (scenario and item.get("scenario") == scenario) or (
                storyline and item.get("storyline") == storyline
            ):
                found[name] = item
    return {"scores": found} if found else {}


def _summary(scores: Any) -> Any:
    """What the card says of a round: everything but the single items."""
    return {name: value for name, value in scores.items() if name != "items"}
