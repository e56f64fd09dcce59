"""What a run is: everything that decides its transcripts, besides the scenarios and the replies."""

from typing import Any, Final

import msgspec

from propensitybench.digests import digest
from propensitybench.episode import EpisodeSettings, Protocol
from propensitybench.scenarios.selection import Selection

RUN_FORMAT: Final = "propensitybench-run/1"


class StoppingRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks are drawn in batches, in the order of the run, until the interval is narrow enough.

    The defaults are those of METHODS as told in docs/metrics.md.

    Attributes:
        half_width: wished for the 95 % interval of the propensity, under every naming; a share.
        batch: pairs of a scenario and a dimension drawn at a time, each under every naming.
        least: pairs drawn, and tasks with a score under every naming, before the rule may hold.
    """

    half_width: float
    batch: int = 80
    least: int = 400

    def __str__(self) -> str:
        return f"half-width {self.half_width:g}, batches of {self.batch}, at least {self.least}"


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
        stopping_rule: when to draw no more of the tasks; None plays all of them.
        wire: how requests are written for the endpoint, and what the preflight adapted; empty where
            requests do not go to an OpenAI-compatible endpoint. It changes nothing that the model is told.
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
    stopping_rule: StoppingRule | None = None
    wire: dict[str, Any] = {}

    @property
    def settings(self) -> EpisodeSettings:
        """What the run's episodes share."""
        return EpisodeSettings(self.seed, self.protocol, self.template)


# What may differ between two manifests of one and the same run.
_INCIDENTAL: Final = ("created", "package", "data", "wire")


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
        elif field == "stopping_rule":
            found.append(f"stopping rule (was {was or 'none'}, now {now or 'none'})")
        else:
            found.append(f"{field} (was {was!r}, now {now!r})")
    return found


def data_digest(scenario_ids: list[str]) -> str:
    """The identity of a set of scenarios: their ids, in any order."""
    return "d1:" + digest(*sorted(scenario_ids))
