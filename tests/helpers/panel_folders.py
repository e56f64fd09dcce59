"""Working folders for the reading panel, with sound and bad scenarios, and judges who tell them apart."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from helpers.openai_server import Answer, Behaviour, says

from propensitybench.digests import seed_from
from propensitybench.generation.workfolder import PLAN_FORMAT, WorkFolder, WorkPlan
from propensitybench.pressure.export import write_published
from propensitybench.scenarios.dataset import Dataset, built_in_folder, read_dataset
from propensitybench.scenarios.rolefile import HEADER, load_json
from propensitybench.taxonomy import taxonomy

Json = Mapping[str, Any]
DOMAIN: Final = "self-proliferation"
CHOIR: Final = " Grandma's yak choir hums along in the lighthouse, bless their woolly socks."
PRINTS: Final = "Prints a badge for a visitor at the front desk and closes the change."
MISCOUNTED: Final = " The two tenants concerned are alder, birch and cedar."
PLANTED: Final = ("whimsical", "beside_the_point", "miscounted")


def source_file() -> dict[str, Any]:
    """The built-in role file from which the folders are made."""
    (path,) = sorted((built_in_folder() / DOMAIN).glob("Cloud*/Auto-scale*.json"))
    loaded: dict[str, Any] = load_json(path, path.name)
    return loaded


def _sound(entry: Json) -> Json:
    return entry


def _whimsical(entry: Json) -> Json:
    return {**entry, "task": entry["task"] + CHOIR}


def _beside_the_point(entry: Json) -> Json:
    tool = entry["misaligned"]
    return {**entry, "misaligned": {**tool, "benign": {**tool["benign"], "description": PRINTS}}}


def _miscounted(entry: Json) -> Json:
    return {**entry, "task": entry["task"] + MISCOUNTED}


CHANGES: Final[dict[str, Callable[[Json], Json]]] = {
    "whimsical": _whimsical,
    "beside_the_point": _beside_the_point,
    "miscounted": _miscounted,
}


def working_folder(folder: Path, sound: int = 6, planted: tuple[str, ...] = ()) -> Path:
    """A folder with that many sound scenarios in several workspaces, the planted bad ones and storylines."""
    WorkFolder.create(folder, WorkPlan(PLAN_FORMAT, DOMAIN, 0, {}, "", ""), [])
    role = source_file()
    entry = role["scenarios"][0]
    places = [w for w in taxonomy().workspaces.values() if w.domain == DOMAIN][:3]
    names = [f"sound_{number}" for number in range(sound)] + list(planted)
    for number, name in enumerate(names):
        place = places[number % len(places)]
        unit = folder / "units" / f"{place.name}--{place.roles[0]}"
        unit.mkdir(parents=True, exist_ok=True)
        scenario = CHANGES.get(name, _sound)(renumbered({**entry, "name": name}, number))
        write(unit / f"{name}.json", scenario)
        write(unit / "organisation.json", role["organisation"])
        write(unit / "sketches.json", [])
    for path in (built_in_folder() / "storylines").glob("*.json"):
        write(folder / "storylines" / path.name, load_json(path, path.name))
    return folder


def renumbered(entry: Json, number: int) -> Json:
    """The scenario with a change number of its own."""
    renamed: Json = json.loads(json.dumps(entry).replace("CAP-20418", f"CAP-{30000 + number}"))
    return renamed


def data_folder(folder: Path, sound: int = 4, layout: str = "own") -> Path:
    """A data set in either layout, whose scenarios are called ``known_0`` and so on."""
    role = source_file()
    entry = role["scenarios"][0]
    role["scenarios"] = [
        renumbered({**entry, "name": f"known_{number}"}, 50 + number) for number in range(sound)
    ]
    own = folder if layout == "own" else folder.with_name(f"{folder.name}-own")
    write(
        own / DOMAIN / role["workspace"] / f"{role['role']}.json",
        {key: role[key] for key in HEADER if key in role},
    )
    if layout == "published":
        read = read_dataset(own)
        write_published(Dataset(read.source, read.layout, read.scenarios, read.storylines), folder, seed=0)
    return folder


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")


def shown(request: Json) -> dict[str, str]:
    """The item in the first message of a request, by name."""
    text = request["messages"][0]["content"]
    return dict(re.findall(r'<file name="(\w+)\.txt">\n(.*?)\n</file>', text, re.DOTALL))


def honest_scores(text: str, reader: str) -> Json:
    """What a careful reader gives: 6 or 7, and low scores where a flaw was planted."""
    found: dict[str, Any] = {name: 6 + seed_from(text, reader, name) % 2 for name in "RCTDL"}
    found |= {"P": 5 if "LATER MESSAGE 1" in text else None, "E": 2 + seed_from(text, reader) % 2}
    quote = "Reserves the next free production window"
    comment = "reads like a change in an operations centre"
    if CHOIR.strip() in text:
        found |= {"R": 1, "L": 2, "E": 6}
        comment, quote = "nobody writes so at work", "yak choir hums along"
    if PRINTS in text:
        found |= {"C": 2, "T": 1}
        comment, quote = "a badge does not bring any node", PRINTS
    if match := re.search(r"The two tenants concerned are (.*?)\.", text):
        assert match[1].count(",") + 1 + match[1].count(" and ") == 3
        found |= {"C": 2}
        comment, quote = "says two and names three", match[0]
    return {**found, "comment": comment, "quote": quote}


def judge(change: Callable[[str, Json, int], Json] = lambda _item, entry, _turn: entry) -> Behaviour:
    """A scripted judge.

    Args:
        change: of a reply, given the item's name, the reply and the number of the turn from 1.
    """

    def answer(request: Json, _number: int) -> Answer:
        reader = request["messages"][0]["content"][:60]
        turn = (len(request["messages"]) + 1) // 2
        ((name, text),) = shown(request).items()
        return says(json.dumps(change(name, dict(honest_scores(text, reader)), turn)))

    return answer
