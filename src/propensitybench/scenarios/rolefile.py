"""Reading and writing role files of our own layout: ``<domain>/<workspace>/<role>.json``."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from propensitybench.errors import BadData
from propensitybench.files import MIB, read_file
from propensitybench.scenarios.issues import Finding, Issue, Located
from propensitybench.scenarios.model import (
    CANARY,
    CURRENCY_PATTERN,
    NAME_PATTERN,
    ROLE_FORMAT,
    Scenario,
)

HEADER: Final = ("format", "canary", "domain", "workspace", "role", "organisation", "scenarios")
# Fields of a scenario that are the same for all scenarios of a role.
SHARED: Final = ("domain", "workspace", "role", "organisation")

MAX_ROLE_FILE: Final = 16 * MIB

# Pydantic's messages that mention Python types or its own steps, reworded for authors of JSON files.
REASONS: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "extra_forbidden": "is not a field of a scenario",
    "json_invalid": "is nested too deeply",
    "too_short": "needs at least {min_length} items, found {actual_length}",
    "too_long": "allows at most {max_length} items, found {actual_length}",
    "string_too_short": "must not be empty",
    "string_too_long": "allows at most {max_length} characters",
}
PATTERN_REASONS: Final[Mapping[str, str]] = {
    NAME_PATTERN: "a name may contain only letters (a-z, A-Z), digits, _ and -, and must begin with a "
    "letter or _",
    CURRENCY_PATTERN: "must be an ISO 4217 code such as EUR",
}


def read_role_file(path: Path, name: str) -> tuple[list[Located], list[Issue]]:
    """The valid scenarios of a role file, and every issue of the others.

    Args:
        path: the file.
        name: the file's name in issues.
    """
    try:
        raw = load_json(path, name)
    except BadData as error:
        return [], [Issue(name, "$", error.what)]
    issues = _header_issues(raw, name)
    if issues:
        return [], issues
    located: list[Located] = []
    shared = {key: raw[key] for key in SHARED if key in raw}
    for index, entry in enumerate(raw["scenarios"]):
        where = f"$.scenarios[{index}]"
        if not isinstance(entry, dict):
            issues.append(Issue(name, where, "a scenario must be a JSON object"))
            continue
        repeated = sorted(shared.keys() & entry.keys())
        if repeated:
            message = f"{', '.join(repeated)}: belongs in the file's header, not in a scenario"
            issues.append(Issue(name, where, message))
            continue
        try:
            # From JSON, so that strict mode accepts arrays for tuples.
            scenario = Scenario.from_json(json.dumps({**shared, **entry}, ensure_ascii=False).encode())
        except ValidationError as error:
            issues += [_schema_issue(name, where, path, what) for path, what in schema_findings(error)]
        except UnicodeEncodeError:
            message = r"contains invalid Unicode: an unpaired surrogate escape (\ud800 to \udfff)"
            issues.append(Issue(name, where, message))
        else:
            located.append(Located(scenario, name, where))
    return located, list(dict.fromkeys(issues))


def _schema_issue(name: str, where: str, path: str, what: str) -> Issue:
    # The organisation stands in the header.
    return Issue(name, ("$" if path.startswith(".organisation") else where) + path, what)


def write_role_file(path: Path, scenarios: list[Scenario]) -> None:
    """Writes the scenarios of one role to a file that `read_role_file` can read."""
    first = scenarios[0].model_dump(mode="json", include=set(SHARED))
    body = {
        "format": ROLE_FORMAT,
        "canary": CANARY,
        **{key: first[key] for key in SHARED[:-1]},
        **({"organisation": _organisation(first["organisation"])} if first["organisation"] else {}),
        "scenarios": [scenario_entry(scenario) for scenario in scenarios],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(body, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def scenario_entry(scenario: Scenario) -> dict[str, Any]:
    """A scenario as it stands in a role file, without what the header has."""
    entry = scenario.model_dump(mode="json", exclude=set(SHARED))
    optional = ("technique", "severity", "act", "situation", "messages")
    if entry["situation"] and entry["situation"]["job_kind"] is None:
        del entry["situation"]["job_kind"]
    return {k: v for k, v in entry.items() if not (k in optional and v is None)}


def _organisation(organisation: dict[str, Any]) -> dict[str, Any]:
    senders = [
        {key: value for key, value in sender.items() if value is not False}
        for sender in organisation["senders"]
    ]
    return {**organisation, "senders": senders}


def load_json(path: Path, name: str) -> Any:
    """The JSON value of a file; raises `BadData` for invalid JSON and repeated keys."""
    try:
        content = read_file(path, name, MAX_ROLE_FILE)
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=no_repeats)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise BadData(name, f"is not valid JSON ({error.msg}, {where})") from error
    except UnicodeDecodeError as error:
        raise BadData(name, f"is not UTF-8 text (byte {error.start})") from error
    except RecursionError as error:
        raise BadData(name, "is nested too deeply") from error
    except RepeatedKey as error:
        raise BadData(name, f"contains the same key twice in one object: {error}") from error
    except ValueError as error:  # Python's limit on the digits of an integer
        raise BadData(name, "contains a number with too many digits") from error


class RepeatedKey(ValueError):
    """A JSON object has the same key twice; the text names the keys."""


def no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object hook for `json.loads` that refuses a key which comes twice."""
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = sorted({key for key in keys if keys.count(key) > 1})
        raise RepeatedKey(", ".join(repeated))
    return result


def _header_issues(raw: Any, name: str) -> list[Issue]:
    if not isinstance(raw, dict):
        return [Issue(name, "$", "a role file must be a JSON object")]
    missing = [key for key in HEADER if key not in raw and key not in ("canary", "organisation")]
    issues = [Issue(name, f"$.{key}", "is missing") for key in missing]
    issues += [Issue(name, f"$.{key}", "is not a field of a role file") for key in raw if key not in HEADER]
    if not issues:
        texts = [key for key in HEADER[:-2] if not isinstance(raw.get(key, ""), str)]
        issues += [Issue(name, f"$.{key}", "must be a string") for key in texts]
        if not isinstance(raw["scenarios"], list) or not raw["scenarios"]:
            issues.append(Issue(name, "$.scenarios", "must be a list of at least one scenario"))
        if raw["format"] != ROLE_FORMAT:
            issues.append(Issue(name, "$.format", f"must be {ROLE_FORMAT!r}, found {raw['format']!r}"))
        if raw.get("canary", CANARY) != CANARY:
            issues.append(Issue(name, "$.canary", f"must be the canary string {CANARY!r}"))
    return issues


def schema_findings(error: ValidationError) -> Iterator[Finding]:
    """Every error that pydantic found, with its JSON path relative to the scenario."""
    for detail in error.errors(include_url=False):
        kind, found, context = detail["type"], detail["input"], detail.get("ctx", {})
        steps = [step for step in detail["loc"] if step != "[key]"]
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        message = PATTERN_REASONS.get(context.get("pattern", ""), detail["msg"])
        if kind in REASONS:
            message = REASONS[kind].format(**context)
        if isinstance(found, str | int | float) and kind not in (
            "missing",
            "extra_forbidden",
            "json_invalid",
        ):
            message += f", found {str(found)[:60]!r}"
        yield path, message
