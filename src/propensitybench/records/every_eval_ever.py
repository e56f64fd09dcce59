"""Records of runs in the schema of Every Eval Ever (arXiv 2606.14516), version 0.3.0.

One aggregate record for each run, with one result for each measure, and one instance record for each scored
task. What is not known is left out.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import UnionType
from typing import IO, Any, Final, Literal, NamedTuple

import msgspec

from propensitybench.episode import SCORED
from propensitybench.errors import BadInput
from propensitybench.escaping import json_visible
from propensitybench.metrics.intervals import Interval
from propensitybench.presentation.formats import capitalised
from propensitybench.presentation.words import MEAN_OVER_DOMAINS, MISALIGNED, PROPENSITY
from propensitybench.records.facts import RunFacts
from propensitybench.records.instances import instance, texts
from propensitybench.records.measures import MeasuredValue
from propensitybench.store.atomic import new_entries

SCHEMA: Final = "0.3.0"
COLLECTION: Final = "propensitybench"
Relationship = Literal["first_party", "third_party", "collaborative", "other"]

# Options that the schema has a place for, with the types of their values there.
_NAMED: Final[Mapping[str, type | UnionType]] = {
    "temperature": int | float,
    "top_p": int | float,
    "max_tokens": int,
}
# Names of folders in the datastore, which has to work on every system.
_NOT_IN_A_PATH: Final = re.compile(r'[<>:"\\|?*\x00-\x1f]')
_RESERVED: Final = {
    "CON",
    "PRN",
    "AUX",
    "NUL",
    *(f"{name}{i}" for name in ("COM", "LPT") for i in range(1, 10)),
}


class Submitter(NamedTuple):
    """What only a person knows of a run.

    Attributes:
        organization: who ran the evaluation.
        relationship: of that organization to the model.
        model_id: the model as ``developer/name``, as on the Hugging Face Hub; empty takes the run's address.
    """

    organization: str
    relationship: Relationship
    model_id: str = ""


class WrittenRecord(NamedTuple):
    """What was written.

    Attributes:
        path: the aggregate record.
        results: number of measures with a value.
        instances: number of instance records; None without a file of them.
        unscored: number of tasks that have begun and have no score; no instance record can state them.
    """

    path: Path
    results: int
    instances: int | None
    unscored: int


def write_record(
    facts: RunFacts, by: Submitter, out: Path, created: int, *, instances: bool
) -> WrittenRecord:
    """Writes the records of a run below ``out``, at the place that the datastore wants.

    Args:
        facts: the run.
        by: what a person knows of it.
        out: the folder that contains, or will contain, the folder ``data`` of the datastore.
        created: time of the record, in seconds of Unix time.
        instances: whether to write instance records; the run must have transcripts.

    Raises:
        BadInput: the model's name does not name a folder, the run has no score, or it has been recorded.
    """
    model, name = by.model_id or facts.run.model, str(facts.uuid)
    place = PurePosixPath("data", COLLECTION, *datastore_folders(model))
    folder = out.joinpath(*place.parts)
    path, samples = folder / f"{name}.json", f"{name}_samples.jsonl"
    if path.exists():
        raise BadInput(f"{path}: exists already; this run is recorded")
    identity = f"{COLLECTION}/{model}/{created}"
    record = aggregate(facts, by, identity, created)
    if not record["evaluation_results"]:
        raise BadInput(f"{facts.run.file}: has no number yet; play more tasks first: propensitybench resume")
    count = None
    try:
        with new_entries(folder) as new:
            if instances:
                with (new / samples).open("wb") as file:
                    count, checksum = _write_instances(facts, identity, model, file)
                record["detailed_evaluation_results"] = {
                    "format": "jsonl",
                    "file_path": str(place / samples),
                    "hash_algorithm": "sha256",
                    "checksum": checksum,
                    "total_rows": count,
                    "additional_details": {"tasks_without_a_score": str(facts.scores.tasks.unscored)},
                }
            text = json_visible(msgspec.json.format(msgspec.json.encode(record), indent=2))
            (new / path.name).write_text(text + "\n", encoding="utf-8")
    except FileExistsError as error:
        raise BadInput(f"{path}: exists already; this run is recorded") from error
    except OSError as error:
        raise BadInput(f"--out {out}: cannot be written ({error.strerror or error})") from error
    written = len(record["evaluation_results"])
    return WrittenRecord(path, written, count, facts.scores.tasks.unscored)


def datastore_folders(model: str) -> tuple[str, str]:
    """The folders of a model in the datastore; raises `BadInput` if its name cannot be that of folders."""
    developer, *rest = (part.replace(":", "_") for part in model.split("/"))
    for part in (developer, *rest):
        if (
            not part.strip(". ")
            or part != part.strip()
            or _NOT_IN_A_PATH.search(part)
            or part.endswith(".")
            or part.split(".", 1)[0].upper() in _RESERVED
            or part.lower() in ("unknown", "data")
            or not part.isprintable()
        ):
            break
    else:
        if rest:
            return developer, "_".join(rest)
    raise BadInput(
        f"model {model!r}: does not name a developer and a model, which Every Eval Ever needs; say which "
        "model it is with --model-id DEVELOPER/NAME"
    )


def aggregate(facts: RunFacts, by: Submitter, identity: str, created: int) -> dict[str, Any]:
    """The aggregate record of a run.

    Args:
        facts: the run.
        by: what a person knows of it.
        identity: the record's ``evaluation_id``.
        created: time of the record, in seconds of Unix time.
    """
    made = facts.made
    tasks = {name: str(count) for name, count in msgspec.structs.asdict(facts.scores.tasks).items() if count}
    without = [f"{one.where}.{one.measure.name}" for one in facts.numbers if one.estimate.value is None]
    return {
        "schema_version": SCHEMA,
        "evaluation_id": identity,
        "evaluation_timestamp": made.created,
        "retrieved_timestamp": str(created),
        "source_metadata": {
            "source_name": "PropensityBench",
            "source_type": "evaluation_run",
            "source_organization_name": by.organization,
            "evaluator_relationship": by.relationship,
            "additional_details": texts(
                run_digest=facts.digest,
                state=made.stopping,
                not_computable=", ".join(without),
                caveats=" ".join(made.caveats),
                **{f"tasks_{name}": count for name, count in tasks.items()},
            ),
        },
        "eval_library": {
            "name": "propensitybench",
            "version": made.package,
            "additional_details": texts(rules=made.rules, scored_with=facts.scored_with),
        },
        "model_info": {
            "name": facts.run.model,
            "id": by.model_id or facts.run.model,
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                **texts(
                    answered_by=_json(made.answered_by),
                    simulated="a simulated agent, not a model" if made.simulated else "",
                ),
            },
        },
        "evaluation_results": [
            _result(facts, one, identity) for one in facts.numbers if one.estimate.value is not None
        ],
    }


def _result(facts: RunFacts, one: MeasuredValue, identity: str) -> dict[str, Any]:
    made, estimate, measure = facts.made, one.estimate, one.measure
    low, high = measure.range(facts.scores.levels)
    return {
        "evaluation_result_id": _result_id(identity, one),
        "evaluation_name": f"{COLLECTION}.{one.where}",
        "evaluation_timestamp": made.created,
        "source_data": {
            "dataset_name": f"PropensityBench scenarios ({facts.data})",
            "source_type": "other",
            "additional_details": texts(
                data_digest=made.data_digest,
                scenarios=made.scenarios,
                tasks=made.tasks,
                sampling=made.sampling,
                seed=made.seed,
            ),
        },
        "metric_config": {
            "evaluation_description": f"{capitalised(measure.definition)}. {MEAN_OVER_DOMAINS} {MISALIGNED}",
            "metric_id": f"{COLLECTION}.{one.identifier}",
            "metric_name": one.title,
            "metric_kind": measure.name,
            "metric_unit": measure.unit,
            "metric_parameters": {
                "naming": one.naming or "benign minus harmful",
                "domain": one.domain or "all in the run",
                "levels": facts.scores.levels,
                "arm": facts.scores.arm,
                "ladder": facts.scores.ladder,
            },
            "lower_is_better": measure.lower_is_better,
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
        },
        "score_details": {
            "score": estimate.value,
            "details": texts(
                estimand=estimate.estimand,
                weight=estimate.weight,
                units=estimate.n,
                scenarios=estimate.clusters,
                domains=estimate.domains,
                standard_error_same_tasks=estimate.errors.benchmark,
                standard_error_new_workspaces=estimate.errors.workspace,
                lowest_that_missing_tasks_allow=_end(estimate.bounds, "low"),
                highest_that_missing_tasks_allow=_end(estimate.bounds, "high"),
                source=f"{one.pointer} in `propensitybench score RUN --json --all`",
            ),
            **_uncertainty(one),
        },
        "generation_config": _generation(facts),
    }


def _result_id(identity: str, one: MeasuredValue) -> str:
    return f"{identity}#{one.where}.{one.measure.name}"


def _end(bounds: Interval | None, end: Literal["low", "high"]) -> float | None:
    return None if bounds is None else float(getattr(bounds, end))


def _uncertainty(one: MeasuredValue) -> dict[str, Any]:
    """Standard error and interval for new scenarios, as far as the data can tell."""
    estimate = one.estimate
    found: dict[str, Any] = {"num_samples": estimate.n}
    if estimate.errors.scenario is not None:
        method = "analytic, clustered by scenario and stratified by domain; for new scenarios"
        found["standard_error"] = {"value": estimate.errors.scenario, "method": method}
    if estimate.ci95 is not None:
        found["confidence_interval"] = {
            "lower": estimate.ci95.low,
            "upper": estimate.ci95.high,
            "confidence_level": 0.95,
            "method": estimate.method,
        }
    return {"uncertainty": found}


def _generation(facts: RunFacts) -> dict[str, Any]:
    options, rules = facts.options, msgspec.structs.asdict(facts.made.protocol)
    # A run file of a stranger may have anything as an option.
    named = {name: options[name] for name, kinds in _NAMED.items() if isinstance(options.get(name), kinds)}
    effort = options.get("reasoning_effort")
    others = {f"option {name}": _json(value) for name, value in options.items() if name not in named}
    return {
        "generation_args": {
            **named,
            **({} if effort is None else {"reasoning": effort != "none"}),
            "prompt_template": facts.run.manifest.template,
            "agentic_eval_config": {
                "additional_details": {name: str(value) for name, value in rules.items()}
            },
        },
        "additional_details": {
            **texts(not_set="the provider's default", template=facts.made.template),
            **others,
        },
    }


def _json(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _write_instances(facts: RunFacts, identity: str, model: str, file: IO[bytes]) -> tuple[int, str]:
    """Writes a row for each scored task; the number of rows and the SHA-256 of the file."""
    by_naming = {
        one.naming: _result_id(identity, one)
        for one in facts.numbers
        if one.measure is PROPENSITY and one.domain is None and one.estimate.value is not None
    }
    count, sha256 = 0, hashlib.sha256()
    for record in facts.run.records:
        result = by_naming.get(record.metadata.naming)
        if record.stats.outcome not in SCORED or result is None:
            continue
        transcript = facts.run.transcript(record.metadata.task)
        row = {
            "schema_version": SCHEMA,
            "evaluation_id": identity,
            "model_id": model,
            "evaluation_name": f"{COLLECTION}.{record.metadata.naming}",
            "evaluation_result_id": result,
            **instance(record, transcript, facts.run.contents.get(record.metadata.scenario, "")),
        }
        line = msgspec.json.encode(row) + b"\n"
        file.write(line)
        sha256.update(line)
        count += 1
    return count, sha256.hexdigest()
