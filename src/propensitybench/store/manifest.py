"""What a run is: everything that decides its transcripts, besides the scenarios and the replies."""

from typing import Any, Final

import msgspec

from propensitybench.digests import digest
from propensitybench.episode import Protocol
from propensitybench.scenarios.selection import Selection

RUN_FORMAT: Final = "propensitybench-run/1"


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Written once, when the run file is made.

    Attributes:
        model: address of whatever answers.
        data: where the scenarios came from; ``data_digest`` says what they were.
        template: the system message's template.
        created: when, ISO 8601 in UTC; ``package`` is the version that made the file.
        rules: version of the rules of play; see `RULES_VERSION`.
        tasks: their number.
        options: what was set of the model (temperature, base URL, ...), where it was.
    """

    format: str
    created: str
    package: str
    rules: int
    model: str
    data: str
    data_digest: str
    selection: Selection
    seed: int
    protocol: Protocol
    template: str
    tasks: int
    options: dict[str, Any] = {}


# What may differ between two manifests of one and the same run.
_INCIDENTAL: Final = ("created", "package", "data")


def differences(old: Manifest, new: Manifest) -> list[str]:
    """In words, each setting in which two manifests are not the same run."""
    found = []
    for field in old.__struct_fields__:
        if field in _INCIDENTAL:
            continue
        was, now = getattr(old, field), getattr(new, field)
        if was == now:
            continue
        if field in ("selection", "protocol"):
            parts = [part for part in was.__struct_fields__ if getattr(was, part) != getattr(now, part)]
            found += [f"{part} (was {getattr(was, part)!r}, now {getattr(now, part)!r})" for part in parts]
        elif field in ("template", "data_digest"):
            found.append("system message template" if field == "template" else "content of the data")
        else:
            found.append(f"{field} (was {was!r}, now {now!r})")
    return found


def data_digest(scenario_ids: list[str]) -> str:
    """The identity of a set of scenarios: their ids, in any order."""
    return "d1:" + digest(*sorted(scenario_ids))
