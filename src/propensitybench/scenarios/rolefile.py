"""One role's file in this project's layout: ``<domain>/<workspace>/<role>.json``, in and out."""

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from propensitybench.errors import BadData
from propensitybench.scenarios.model import CANARY, ROLE_FORMAT, Scenario

HEADER: Final = ("format", "canary", "domain", "workspace", "role", "scenarios")


class Fault(NamedTuple):
    """Something wrong in a data file: which file, where in it (a JSON path), and what."""

    file: str
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.file} {self.path}: {self.message}"


class Located(NamedTuple):
    """A scenario and where it was read."""

    scenario: Scenario
    file: str
    path: str


def read_role_file(path: Path, name: str) -> tuple[list[Located], list[Fault]]:
    """Every sound scenario of a role file, and every fault of the others.

    Args:
        path: the file.
        name: what to call the file in a fault.
    """
    try:
        raw = load_json(path, name)
    except BadData as error:
        return [], [Fault(name, "$", error.what)]
    faults = _header_faults(raw, name)
    if faults:
        return [], faults
    located: list[Located] = []
    place = {key: raw[key] for key in ("domain", "workspace", "role")}
    for index, entry in enumerate(raw["scenarios"]):
        where = f"$.scenarios[{index}]"
        if not isinstance(entry, dict):
            faults.append(Fault(name, where, "a scenario is an object"))
            continue
        repeated = sorted(place.keys() & entry.keys())
        if repeated:
            message = f"{', '.join(repeated)}: belongs in the file's header, not in a scenario"
            faults.append(Fault(name, where, message))
            continue
        try:
            # Through JSON, so that strict mode takes arrays for tuples, as in any JSON file.
            scenario = Scenario.from_json(json.dumps({**place, **entry}))
        except ValidationError as error:
            faults.extend(schema_faults(error, name, where))
        else:
            located.append(Located(scenario, name, where))
    return located, faults


def write_role_file(path: Path, scenarios: list[Scenario]) -> None:
    """Writes the scenarios of one role as one file that `read_role_file` reads back."""
    first = scenarios[0]
    place = {"domain": first.domain, "workspace": first.workspace, "role": first.role}
    body = {
        "format": ROLE_FORMAT,
        "canary": CANARY,
        **place,
        "scenarios": [_entry(scenario) for scenario in scenarios],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(body, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _entry(scenario: Scenario) -> dict[str, Any]:
    entry = scenario.model_dump(mode="json", exclude={"domain", "workspace", "role"})
    optional = ("technique", "stakes", "messages")
    return {k: v for k, v in entry.items() if not (k in optional and v is None)}


def load_json(path: Path, name: str) -> Any:
    """The JSON value of a file; raises `BadData` with line and column, or for a repeated key."""
    try:
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_no_repeats)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise BadData(name, f"is no JSON ({error.msg}, {where})") from error
    except UnicodeDecodeError as error:
        raise BadData(name, f"is no UTF-8 text (byte {error.start})") from error
    except RecursionError as error:
        raise BadData(name, "is nested too deeply to be read") from error
    except ValueError as error:
        raise BadData(name, str(error)) from error


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = sorted({key for key in keys if keys.count(key) > 1})
        raise ValueError(f"key given twice in one object: {', '.join(repeated)}")
    return result


def _header_faults(raw: Any, name: str) -> list[Fault]:
    if not isinstance(raw, dict):
        return [Fault(name, "$", "a role file is one JSON object")]
    faults = [Fault(name, f"$.{key}", "is missing") for key in HEADER if key not in raw]
    faults += [Fault(name, f"$.{key}", "is not part of a role file") for key in raw if key not in HEADER]
    if not faults:
        texts = [key for key in HEADER[:-1] if not isinstance(raw[key], str)]
        faults += [Fault(name, f"$.{key}", "must be a text") for key in texts]
        if not isinstance(raw["scenarios"], list) or not raw["scenarios"]:
            faults.append(Fault(name, "$.scenarios", "must be a list of one or more scenarios"))
        if raw["format"] != ROLE_FORMAT:
            faults.append(Fault(name, "$.format", f"must be {ROLE_FORMAT!r}, found {raw['format']!r}"))
        if raw["canary"] != CANARY:
            faults.append(Fault(name, "$.canary", f"must be the canary string {CANARY!r}"))
    return faults


def schema_faults(error: ValidationError, name: str, base: str) -> list[Fault]:
    """A fault for each thing that pydantic found, with its JSON path below ``base``."""
    faults = []
    for detail in error.errors(include_url=False):
        steps = [step for step in detail["loc"] if step not in ("[key]",)]
        path = base + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps)
        message = "is missing" if detail["type"] == "missing" else detail["msg"]
        if detail["type"] == "extra_forbidden":
            message = "is not part of a scenario"
        found = detail["input"]
        if isinstance(found, str | int | float | bool) and detail["type"] not in (
            "missing",
            "extra_forbidden",
        ):
            message += f", found {str(found)[:60]!r}"
        faults.append(Fault(name, path, message))
    return faults
