"""The manifest: everything that determines a run's transcripts, besides its scenarios and replies."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from propensitybench.chat import is_deeper_than
from propensitybench.digests import digest
from propensitybench.episode import PAPER, EpisodeSettings, Protocol
from propensitybench.errors import BadInput
from propensitybench.pressure import Chain
from propensitybench.scenarios.selection import Selection
from propensitybench.tabular import Brief
from propensitybench.taxonomy import ARMS, NAMINGS, DeclaredLists, Naming, lists_with

RUN_FORMAT: Final = "propensitybench-run/1"
# The integers that every JSON reader, SQLite and Parquet can hold.
MIN_SEED: Final = -(2**63)
MAX_SEED: Final = 2**63 - 1
# Far above any use: the paper has 12 turns a level.
MAX_TURNS: Final = 10_000
# Far above any use: a look costs milliseconds, and a file may come from a stranger.
MAX_LOOKS: Final = 200
MAX_EXPONENT: Final = 10
# Far above any use: a run keeps one for each time that it was asked for something else.
MAX_SELECTIONS: Final = 1_000
# Of a text that is written again for every task, such as the model's address.
MAX_NAME: Final = 4_096
# Options and the dialect are a few levels deep.
MAX_NESTED: Final = 100


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

    def __post_init__(self) -> None:
        """Raises `BadInput` for a number out of its range."""
        if not isinstance(self.half_width, int | float) or not 0 < self.half_width < 1:
            raise BadInput(f"precision: must be between 0 and 1, for example 0.02, found {self.half_width!r}")
        for name, number, least in (("batch", self.batch, 1), ("least", self.least, 0)):
            if not isinstance(number, int) or not least <= number <= MAX_SEED:
                raise BadInput(f"stopping rule: {name}: must be {least} or more, found {number}")

    def __str__(self) -> str:
        return f"half-width {self.half_width:g}, batches of {self.batch}, at least {self.least}"


class GateRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Draws a candidate's tasks, in the order of the run, until it is clear whether it is worse than a base.

    docs/gate.md explains it. Everything that decides what a look may spend is here, so that a run that is
    interrupted and resumed has the same looks as one that is not.

    Attributes:
        margin: the increase in the share of misaligned tasks that is too much (0..1).
        on: the share that is compared: ``propensity``, ``propensity@6`` or ``propensity_zero``.
        level: probability of a wrong pass, and of a wrong fail, over all looks.
        looks: numbers of tasks after which the runs are compared.
        exponent: by each look, so much of the level is spent as the share of the tasks to this power.
        base: digest of the base's manifest.
    """

    margin: float
    on: str
    level: float
    looks: tuple[int, ...]
    exponent: float
    base: str

    def __post_init__(self) -> None:
        """Raises `BadInput` for a number out of its range."""
        for name, number, most in (("margin", self.margin, 1.0), ("level", self.level, 0.5)):
            if not isinstance(number, int | float) or not 0 < number < most:
                raise BadInput(f"{name}: must be between 0 and {most:g}, for example 0.03, found {number!r}")
        if not isinstance(self.exponent, int | float) or not 1 <= self.exponent <= MAX_EXPONENT:
            raise BadInput(f"gate: exponent: must be from 1 to {MAX_EXPONENT}, found {self.exponent!r}")
        rising = all(one < other for one, other in zip((0, *self.looks), self.looks, strict=False))
        if not 1 <= len(self.looks) <= MAX_LOOKS or not rising:
            raise BadInput(f"gate: needs 1 to {MAX_LOOKS} looks at rising numbers of tasks")

    def __str__(self) -> str:
        return f"gate on {self.on}, margin {self.margin:g}, level {self.level:g}, {len(self.looks)} looks"


class Manifest(Brief, msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Written when the run file is created, and again when the run grows.

    Attributes:
        created: creation time, ISO 8601 in UTC.
        package: version of the package that created the file.
        rules: version of the rules of play; see `RULES_VERSION`.
        model: the model's address.
        data: where the scenarios came from; ``data_digest`` identifies their content.
        selections: what was asked for, in order, without what a later one covers.
        template: the system message's template.
        tasks: the number of tasks.
        options: model options that were set, such as the temperature. The base URL is where the run was made;
            it may go on elsewhere.
        stopping_rule: when to stop drawing tasks; None plays all of them.
        overlays: factor, level and digest of each declared change to the texts; scenarios and template have
            them already.
        dialect: how requests are written for the endpoint, and what the preflight adapted; empty where
            requests do not go to an OpenAI-compatible endpoint. It changes nothing that the model is told.
        gate: the comparison that decides how many tasks are drawn; None if none does.
        grown_from: the data digest at creation, if the run has grown since; else empty.
        lists: the names that the data declares beside the built-in ones.
        client: the Python code that answered in the model's place, by name; empty for a model that the
            address names.
    """

    format: str
    created: str
    package: str
    rules: int
    model: str
    data: str
    data_digest: str
    selections: tuple[Selection, ...]
    seed: int
    protocol: Protocol
    template: str
    tasks: int
    options: dict[str, Any] = {}
    stopping_rule: StoppingRule | None = None
    overlays: list[dict[str, str]] = []
    dialect: dict[str, Any] = {}
    gate: GateRule | None = None
    grown_from: str = ""
    lists: DeclaredLists = DeclaredLists()
    client: str = ""

    @property
    def namings(self) -> tuple[Naming, ...]:
        """The namings that were asked for."""
        return tuple(name for name in NAMINGS if any(name in one.namings for one in self.selections))

    @property
    def epochs(self) -> int:
        """The most repetitions of a task that were asked for."""
        return max(one.epochs for one in self.selections)

    @property
    def first_digest(self) -> str:
        """The data digest at creation, which identifies the run also when it has grown."""
        return self.grown_from or self.data_digest

    @property
    def settings(self) -> EpisodeSettings:
        """The settings shared by the run's episodes."""
        return EpisodeSettings(self.seed, self.protocol, self.template)


def check_seed(seed: int) -> None:
    """Raises `BadInput` unless a seed is an integer of at most 64 bits."""
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise BadInput(f"seed: must be an integer, found {seed!r}")
    if not MIN_SEED <= seed <= MAX_SEED:
        raise BadInput(f"seed: must be from -2^63 to 2^63 - 1, found {seed}")


def check_protocol(protocol: Protocol) -> None:
    """Raises `BadInput` for a protocol under which no episode can be played."""
    if not 0 <= protocol.levels <= PAPER.levels:
        raise BadInput(f"levels: must be from 0 to {PAPER.levels}, found {protocol.levels}")
    if protocol.messages_played_alone == 0 and ARMS[protocol.arm].alone:
        raise BadInput(f"levels: the arm {protocol.arm} plays each message alone, so it needs 1 or more")
    for name in ("turns_per_level", "messages_in_a_row", "calls_per_tool", "succeeds_at"):
        number = getattr(protocol, name)
        if not 1 <= number <= MAX_TURNS:
            raise BadInput(f"{name}: must be from 1 to {MAX_TURNS}, found {number}")


def check_manifest(manifest: Manifest) -> None:
    """Checks what the types of a manifest do not say.

    Raises:
        BadInput: a value cannot be that of a run.
    """
    if manifest.format != RUN_FORMAT:
        raise BadInput(f"format {manifest.format!r}; this version reads {RUN_FORMAT!r}")
    check_seed(manifest.seed)
    check_protocol(manifest.protocol)
    _check_selections(manifest)
    for name in ("created", "package", "model", "data", "client"):
        if len(getattr(manifest, name)) > MAX_NAME:
            raise BadInput(f"{name}: has more than {MAX_NAME} characters")
    if not 0 <= manifest.tasks <= MAX_SEED:
        raise BadInput(f"tasks: must be 0 or more, found {manifest.tasks}")
    if manifest.gate is not None and manifest.gate.looks[-1] > manifest.tasks:
        raise BadInput("gate: has a look at more tasks than the run has")
    for name in ("options", "dialect"):
        if is_deeper_than(MAX_NESTED, getattr(manifest, name)):
            raise BadInput(f"{name}: are nested more than {MAX_NESTED} levels deep")


def _check_selections(manifest: Manifest) -> None:
    selections, lists = manifest.selections, lists_with(manifest.lists)
    if not 1 <= len(selections) <= MAX_SELECTIONS:
        raise BadInput(f"selections: must be 1 to {MAX_SELECTIONS}, found {len(selections)}")
    for selection in selections:
        selection.check(lists)
        if not selection.namings:
            raise BadInput("a selection has no naming")


# These may differ between two manifests of the same run.
_INCIDENTAL: Final = ("created", "package", "data", "dialect", "grown_from", "lists", "client")


# What determines which texts are taken from the data.
_CHOOSING: Final = ("selections", "seed", "protocol", "overlays")


def differences(old: Manifest, new: Manifest) -> list[str]:
    """Describes each setting that makes two manifests different runs."""
    found = []
    for field in old.__struct_fields__:
        if field in _INCIDENTAL:
            continue
        was, now = getattr(old, field), getattr(new, field)
        if was == now or (field == "options" and _without_address(was) == _without_address(now)):
            continue
        if field == "data_digest" and any(getattr(old, one) != getattr(new, one) for one in _CHOOSING):
            continue  # other texts were taken from the data, which says nothing about the data
        if field == "selections" and not len(was) == len(now) == 1:
            found.append("selection of tasks")
        elif field in ("selections", "protocol"):
            one, other = (was[0], now[0]) if field == "selections" else (was, now)
            parts = [part for part in one.__struct_fields__ if getattr(one, part) != getattr(other, part)]
            found += [f"{part} (was {getattr(one, part)!r}, now {getattr(other, part)!r})" for part in parts]
        elif field in ("template", "data_digest"):
            found.append("system message template" if field == "template" else "content of the data")
        elif field in ("stopping_rule", "gate"):
            name = field.replace("_", " ")
            found.append(f"{name} (was {was or 'none'}, now {now or 'none'})")
        else:
            found.append(f"{field} (was {was!r}, now {now!r})")
    return found


def _without_address(options: dict[str, Any]) -> dict[str, Any]:
    """Model options without the address of the endpoint, which may move; but whether there is one counts."""
    return {**options, "base_url": options.get("base_url") is not None}


def data_digest(scenario_ids: Iterable[str], chains: Iterable[Chain]) -> str:
    """Identifies a set of scenarios, by their ids, with its pressure messages; both in any order."""
    messages = (digest(msgspec.json.encode(chain)) for chain in chains)
    return "d2:" + digest(*sorted(scenario_ids), *sorted(messages))
