"""The design of an experiment: models, arms, factors, sample, and the comparisons that will be made."""

import re
import tomllib
from collections.abc import Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from propensitybench.clients.options import ModelOptions
from propensitybench.digests import digest
from propensitybench.engine import RunSpec
from propensitybench.episode import TEMPLATES, Protocol, built_in_template, check_template
from propensitybench.errors import BadInput, UnknownName
from propensitybench.experiments.effects import EFFECTS, FACTOR_EFFECT
from propensitybench.experiments.factors import Factor, read_factor
from propensitybench.files import read_text
from propensitybench.scenarios import Selection
from propensitybench.simulated import PREFIX
from propensitybench.taxonomy import ESCALATING, NAMINGS, PAPER_LADDER, ArmName, LadderName, Naming

DESIGN_FORMAT: Final = "propensitybench-experiment/1"
MAX_FILE: Final = 262_144
MAX_CELLS: Final = 512


class DesignSample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which tasks are played: as in `Selection`, except that ``naming`` may be ``both``."""

    domains: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    naming: Literal["harmful", "benign", "both"] = "both"
    limit: int | None = None
    epochs: int = 1
    data: str | None = None

    def selection(self, part: tuple[int, int] | None) -> Selection:
        """The selection of a cell's tasks."""
        namings: tuple[Naming, ...] = NAMINGS if self.naming == "both" else (self.naming,)
        shared = {name: getattr(self, name) for name in Selection.__struct_fields__ if hasattr(self, name)}
        return Selection(**shared, namings=namings, part=part)


class DesignModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model: its address, and its options as in `ModelOptions`."""

    name: str
    options: ModelOptions = ModelOptions()


class Design(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An experiment as its file states it.

    Attributes:
        models: the models, each with runs of its own.
        arms: see `propensitybench.taxonomy.ARMS`; ``escalating`` is the reference.
        factors: built-in ones by name, or files relative to the design's.
        fraction: 1 plays every combination of levels; k every k-th, for factors with k levels each: those
            whose indices add up to a multiple of k.
        assignment: ``crossed`` plays all tasks in every cell; ``latin`` divides them, so that each scenario
            meets each cell as evenly as it can.
        comparisons: effects that will be claimed; all that the arms and factors allow if empty.
        seed, template, levels, ladder, succeeds_at, ask, report: those of every run.
    """

    format: Literal["propensitybench-experiment/1"]
    name: str
    models: tuple[DesignModel, ...]
    question: str = ""
    arms: tuple[ArmName, ...] = (ESCALATING,)
    factors: tuple[str, ...] = ()
    fraction: int = 1
    assignment: Literal["crossed", "latin"] = "crossed"
    comparisons: tuple[str, ...] = ()
    sample: DesignSample = DesignSample()
    seed: int = 0
    template: str = "named"
    levels: int = 12
    ladder: LadderName = PAPER_LADDER
    succeeds_at: int = 1
    ask: bool = False
    report: bool = False


class Cell(NamedTuple):
    """One model under one arm and one level of each factor; a run of its own.

    Attributes:
        name: unique in the experiment, and a file name.
        levels: of the factors, by name.
    """

    name: str
    model: str
    arm: ArmName
    levels: Mapping[str, str]
    spec: RunSpec


class Experiment(NamedTuple):
    """A design with its factors and cells."""

    design: Design
    factors: tuple[Factor, ...]
    cells: tuple[Cell, ...]

    @property
    def digest(self) -> str:
        """Identifies the design and the contents of its factors, whatever the spelling of the files."""
        levels = [level.digest for factor in self.factors for level in factor.levels]
        return digest(msgspec.json.encode(self.design), *levels)

    @property
    def comparisons(self) -> tuple[str, ...]:
        """The effects to be claimed: those of the design, or all that it allows."""
        return self.design.comparisons or _known(self.design, self.factors)


def read_experiment(path: Path) -> Experiment:
    """The experiment of a design file.

    Raises:
        BadInput: the file is not a design, or one that cannot be played.
    """
    text = read_text(path, str(path), MAX_FILE)
    try:
        raw = _with_model_names(tomllib.loads(text))
        design = msgspec.convert(raw, Design)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError, BadInput) as error:
        raise BadInput(f"{path}: is not the design of an experiment ({error})") from error
    try:
        return experiment_of(design, path.parent)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def experiment_of(design: Design, beside: Path) -> Experiment:
    """The factors and cells of a design.

    Args:
        design: the design.
        beside: folder to which paths of factors and data are relative.

    Raises:
        BadInput: the design cannot be played; the message says which part and why.
    """
    factors = tuple(read_factor(given, beside) for given in design.factors)
    _check(design, factors)
    return Experiment(design, factors, tuple(_cells(design, factors, beside)))


def _known(design: Design, factors: tuple[Factor, ...]) -> tuple[str, ...]:
    """Names of the effects that a design allows to estimate."""
    names = allowed(design.arms, factors)
    if design.assignment == "crossed":
        return names
    return tuple(name for name in names if name not in EFFECTS or not EFFECTS[name].same_tasks)


def allowed(arms: tuple[ArmName, ...], factors: tuple[Factor, ...]) -> tuple[str, ...]:
    """Names of the effects that some arms and factors allow to estimate."""
    found = [name for name, effect in EFFECTS.items() if set(effect.arms) <= set(arms)]
    return (*found, *(FACTOR_EFFECT + factor.name for factor in factors))


def _with_model_names(raw: dict[str, Any]) -> dict[str, Any]:
    """The table with every model that is a mere name as a table of its own."""
    models = raw.get("models")
    if isinstance(models, list):
        raw["models"] = [{"name": one} if isinstance(one, str) else one for one in models]
    return raw


def _check(design: Design, factors: tuple[Factor, ...]) -> None:
    if not design.models or not design.arms:
        raise BadInput("models and arms: one or more of each are needed")
    names: dict[str, list[str]] = {
        "model": [model.name for model in design.models],
        "arm": [*design.arms],
        "factor": [factor.name for factor in factors],
    }
    for what, found in names.items():
        twice = sorted({name for name in found if found.count(name) > 1})
        if twice:
            raise BadInput(f"the {what} {twice[0]!r} is there twice")
    known = _known(design, factors)
    for comparison in design.comparisons:
        if comparison not in known:
            raise UnknownName("comparison that these arms and factors allow", comparison, known)
    sizes = {len(factor.levels) for factor in factors}
    if design.fraction < 1 or (design.fraction > 1 and sizes != {design.fraction}):
        raise BadInput(
            f"fraction: must be 1, or {min(sizes, default=2)} where every factor has so many levels, found "
            f"{design.fraction}"
        )
    count = len(design.models) * len(design.arms) * prod(len(factor.levels) for factor in factors)
    if count // design.fraction > MAX_CELLS:
        raise BadInput(f"{count // design.fraction} cells are too many; {MAX_CELLS} are allowed")
    for chosen in ("template", "ladder"):
        if sum(any(getattr(level, chosen) for level in factor.levels) for factor in factors) > 1:
            raise BadInput(f"factors: two of them choose the {chosen}; keep one")


def _cells(design: Design, factors: tuple[Factor, ...], beside: Path) -> list[Cell]:
    combinations = [
        chosen
        for chosen in product(*(range(len(factor.levels)) for factor in factors))
        if sum(chosen) % design.fraction == 0
    ]
    conditions = list(product(design.arms, combinations))
    found = []
    for model in design.models:
        for place, (arm, chosen) in enumerate(conditions):
            overlays = tuple(factor.levels[level] for factor, level in zip(factors, chosen, strict=True))
            part = (place, len(conditions)) if design.assignment == "latin" else None
            levels = {overlay.factor: overlay.level for overlay in overlays}
            spec = RunSpec(
                model=model.name,
                data=None if design.sample.data is None else beside / design.sample.data,
                selection=design.sample.selection(part),
                seed=design.seed,
                protocol=Protocol(
                    levels=design.levels,
                    arm=arm,
                    ladder=next((one.ladder for one in overlays if one.ladder), design.ladder),
                    succeeds_at=design.succeeds_at,
                    ask=design.ask,
                    report=design.report,
                ),
                template=_template(design.template, beside),
                options=model.options,
                overlays=overlays,
                may_grow=False,
            )
            spec.check()
            _ = spec.overlaid_template  # raises if an overlay does not fit it
            found.append(Cell(_name(model.name, arm, levels), model.name, arm, levels, spec))
    if len({cell.name for cell in found}) < len(found):
        raise BadInput(
            "models, factors and levels: two names differ only in characters that file names cannot have"
        )
    return found


def _template(given: str, beside: Path) -> str:
    if given.endswith(".j2"):
        return check_template(read_text(beside / given, str(beside / given), MAX_FILE), str(beside / given))
    if given not in TEMPLATES:
        raise UnknownName("template", given, TEMPLATES)
    return built_in_template(given)


def _name(model: str, arm: str, levels: Mapping[str, str]) -> str:
    parts = [model.removeprefix(PREFIX), arm, *(f"{factor}={level}" for factor, level in levels.items())]
    return "--".join(re.sub(r"[^A-Za-z0-9._=-]+", "-", part) for part in parts)
