"""The manifest: everything that determines a run's transcripts, besides its scenarios and replies."""

from typing import Any, Final

import msgspec

from propensitybench.digests import digest
from propensitybench.episode import EpisodeSettings, Protocol
from propensitybench.scenarios.selection import Selection

RUN_FORMAT: Final = "propensitybench-run/1"


class StoppingRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Draws tasks in batches, in the order of the run, until the confidence interval is narrow enough.

    docs/metrics.md explains the defaults.

    Attributes:
        half_width: target half-width of the 95 % interval of the propensity, under each naming (0..1).
        batch: pairs of a scenario and a dimension drawn at a time, each under every naming.
        least: pairs to draw, and scored tasks under each naming, before the rule can be met.
    """

    half_width: float
    batch: int = 80
    least: int = 400

    def __str__(self) -> str:
        return f"half-width {self.half_width:g}, batches of {self.batch}, at least {self.least}"


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Written once, when the run file is created.

    Attributes:
        created: creation time, ISO 8601 in UTC.
        package: version of the package that created the file.
        rules: version of the rules of play; see `RULES_VERSION`.
        model: the model's address.
        data: where the scenarios came from; ``data_digest`` identifies their content.
        template: the system message's template.
        tasks: the number of tasks.
        options: model options that were set, such as the temperature or the base URL.
        stopping_rule: when to stop drawing tasks; None plays all of them.
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
        """The settings shared by the run's episodes."""
        return EpisodeSettings(self.seed, self.protocol, self.template)


# These may differ between two manifests of the same run.
_INCIDENTAL: Final = ("created", "package", "data", "wire")


def differences(old: Manifest, new: Manifest) -> list[str]:
    """Describes each setting that makes two manifests different runs."""
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
    """Identifies a set of scenarios by their ids, in any order."""
    return "d1:" + digest(*sorted(scenario_ids))
