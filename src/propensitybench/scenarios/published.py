"""Reading and writing the published layout (``<workspace>/scenarios_messages.json``).

A file is nested by domain, workspace, role, ``scenarios`` and name. Most of it is fields that a run does not
need. msgspec skips them while decoding, so reading a file of 40 MB takes little more memory than its bytes.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from pydantic import ValidationError

from propensitybench.errors import BadData
from propensitybench.files import MIB, read_file
from propensitybench.scenarios.issues import Issue, Located
from propensitybench.scenarios.model import MESSAGES_PER_DIMENSION, PressureMessage, Scenario
from propensitybench.scenarios.rolefile import schema_findings
from propensitybench.taxonomy import taxonomy

FILE_NAMES: Final = ("scenarios_messages_single.json", "scenarios_messages.json")
# The largest file of the release has some 40 MB.
MAX_PUBLISHED_FILE: Final = 128 * MIB
LFS_HEADER: Final = b"version https://git-lfs"

# Translates the paths of our fields to the published layout; applied in order.
PUBLISHED_PATHS: Final = tuple(
    (re.compile(ours), theirs)
    for ours, theirs in (
        (r"^\.messages", ".sys_messages"),
        (r"^\.task", ".messages.task_message"),
        (r"^\.capability", ".attack_vector.name"),
        (r"^\.states\.(\w+)", r".states.\1_state.description"),
        (r"^\.policy\.(\w+)", r".policy.\1_description"),
        (r"^\.(known|unknown)", r".configurations.configuration_\1"),
        (r"^(\.getters\[\d+\]|\.aligned)\.arguments", r"\1.input_arguments"),
        (r"^(\.getters\[\d+\])\.outputs", r"\1.output_arguments"),
        (r"^\.getters", ".functions.getter_functions"),
        (r"^\.aligned", ".functions.target_function"),
        (r"^\.misaligned\.harmful\.", ".functions.trigger_function.harmful_"),
        (r"^\.misaligned\.benign\.", ".functions.trigger_function.neutral_"),
        (r"^\.misaligned\.arguments", ".functions.trigger_function.input_arguments"),
        (r"^\.misaligned\.acknowledgement", ".policy.immediate_outcome_acknowledgment"),
        (r"^\.misaligned\.consequences", ".policy.negative_consequences"),
    )
)


class _Named(msgspec.Struct):
    description: str


class _States(msgspec.Struct):
    initial_state: _Named
    target_state: _Named
    illegal_state: _Named


class _Prefixed(msgspec.Struct):
    text: str
    prefix_connector_sentence: str = ""


class _Policy(msgspec.Struct):
    role_description: str
    duties_description: str
    prohibitions_description: str
    immediate_outcome_acknowledgment: str
    negative_consequences: _Prefixed


class _Configurations(msgspec.Struct):
    configuration_known: str
    configuration_unknown: str


class _Getter(msgspec.Struct):
    name: str
    description: str
    input_arguments: list[str]
    output_arguments: list[str]


class _Target(msgspec.Struct):
    name: str
    description: str
    input_arguments: list[str]
    errors: list[str]


class _Trigger(msgspec.Struct):
    neutral_name: str
    neutral_description: str
    harmful_name: str
    harmful_description: str
    input_arguments: list[str] = msgspec.field(default_factory=list)


class _Functions(msgspec.Struct):
    getter_functions: list[_Getter]
    target_function: _Target
    trigger_function: _Trigger


class _Vector(msgspec.Struct):
    name: str


class _Task(msgspec.Struct):
    task_message: str


class _Sys(msgspec.Struct):
    msg_level_index: int
    subject: str
    body: str
    sender: str = msgspec.field(name="from")


class _Entry(msgspec.Struct):
    name: str
    description: str
    states: _States
    policy: _Policy
    configurations: _Configurations
    functions: _Functions
    messages: _Task
    attack_vector: _Vector
    sys_messages: dict[str, list[_Sys]] | None = None


class _Role(msgspec.Struct):
    scenarios: dict[str, msgspec.Raw]


_FILE: Final = msgspec.json.Decoder(dict[str, dict[str, dict[str, _Role]]])
_ENTRY: Final = msgspec.json.Decoder(_Entry)
_VALUES: Final = msgspec.json.Decoder(dict[str, Any])


def published_files(folder: Path) -> list[Path]:
    """The scenario files of the published layout below a folder, one per directory.

    If a directory has several stages of the same data, the final one, with the pressure messages, is used.
    """
    chosen: dict[Path, Path] = {}
    for name in reversed(FILE_NAMES):
        for path in folder.rglob(name):
            chosen[path.parent] = path
    return sorted(chosen.values())


def read_published_file(path: Path, name: str) -> tuple[list[Located], list[Issue]]:
    """The valid scenarios of a published file, and every issue of the others.

    Raises:
        BadData: the file as a whole cannot be read; the message says what to do.
    """
    domains = _decoded(read_file(path, name, MAX_PUBLISHED_FILE), name)
    located: list[Located] = []
    issues: list[Issue] = []
    for spot in _spots(domains):
        header = f"$.{spot.domain}", f"$.{spot.domain}.{spot.workspace}", f"$.{spot.place}"
        where = f"$.{spot.place}.scenarios.{spot.name}"
        try:
            scenario = _scenario(spot)
        except _Misread as error:
            issues.append(Issue(name, where + error.path, error.what))
        except RecursionError:
            issues.append(Issue(name, where, "is nested too deeply"))
        except ValidationError as error:
            issues += [
                Issue(name, where + published_path(path), what) for path, what in schema_findings(error)
            ]
        else:
            located.append(Located(scenario, name, where, header, published_path))
    return located, issues


def _decoded(raw: bytes, name: str) -> dict[str, dict[str, dict[str, _Role]]]:
    if raw.startswith(LFS_HEADER):
        raise BadData(name, "is a Git LFS pointer, not the data; run `git lfs pull` in that clone")
    try:
        return _FILE.decode(raw)
    except msgspec.ValidationError as error:
        raise BadData(name, f"is not in the published layout ({error})") from error
    except msgspec.DecodeError as error:
        advice = "the file is truncated or damaged; download it again"
        raise BadData(name, f"is not valid JSON ({error}); {advice}") from error
    except UnicodeDecodeError as error:
        raise BadData(name, f"is not UTF-8 text (byte {error.start}); download it again") from error
    except RecursionError as error:
        raise BadData(name, "is nested too deeply; download it again") from error


def published_path(path: str) -> str:
    """The path of one of our fields in the published layout."""
    for ours, theirs in PUBLISHED_PATHS:
        path = ours.sub(theirs, path)
    return path


class _Spot(NamedTuple):
    domain: str
    workspace: str
    role: str
    name: str
    raw: msgspec.Raw

    @property
    def place(self) -> str:
        return f"{self.domain}.{self.workspace}.{self.role}"


def _spots(domains: dict[str, dict[str, dict[str, _Role]]]) -> Iterator[_Spot]:
    for domain, workspaces in domains.items():
        for workspace, roles in workspaces.items():
            for role, entry in roles.items():
                for name, raw in entry.scenarios.items():
                    yield _Spot(domain, workspace, role, name, raw)


class _Misread(Exception):
    def __init__(self, path: str, what: str) -> None:
        self.path, self.what = path, what


def _scenario(spot: _Spot) -> Scenario:
    try:
        entry = _ENTRY.decode(spot.raw)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        raise _Misread(path.rstrip("`"), what) from error
    except UnicodeDecodeError as error:  # msgspec.Raw is not checked when the file is decoded
        raise _Misread("", "contains text that is not UTF-8; download the file again") from error
    capability, technique = _capability(spot.domain, entry.attack_vector.name)
    policy, functions = entry.policy, entry.functions
    trigger, harm = functions.trigger_function, policy.negative_consequences
    fields = {
        "domain": spot.domain,
        "workspace": spot.workspace,
        "role": spot.role,
        "name": spot.name,
        "capability": capability,
        "technique": technique,
        "description": entry.description,
        "states": {
            "initial": entry.states.initial_state.description,
            "target": entry.states.target_state.description,
            "illegal": entry.states.illegal_state.description,
        },
        "task": entry.messages.task_message,
        "policy": {
            "role": policy.role_description,
            "duties": policy.duties_description,
            "prohibitions": policy.prohibitions_description,
        },
        "known": _values(entry.configurations.configuration_known, "known"),
        "unknown": _values(entry.configurations.configuration_unknown, "unknown"),
        "getters": [
            {
                "name": getter.name,
                "description": getter.description,
                "arguments": getter.input_arguments,
                "outputs": getter.output_arguments,
            }
            for getter in functions.getter_functions
        ],
        "aligned": {
            "name": functions.target_function.name,
            "description": functions.target_function.description,
            "arguments": functions.target_function.input_arguments,
            "errors": functions.target_function.errors,
        },
        "misaligned": {
            "harmful": {"name": trigger.harmful_name, "description": trigger.harmful_description},
            "benign": {"name": trigger.neutral_name, "description": trigger.neutral_description},
            "arguments": trigger.input_arguments,
            "acknowledgement": policy.immediate_outcome_acknowledgment,
            "consequences": f"{harm.prefix_connector_sentence} {harm.text}".strip(),
        },
        "messages": _messages(entry.sys_messages),
    }
    return Scenario.from_json(msgspec.json.encode(fields))


def _capability(domain: str, vector: str) -> tuple[str | None, str | None]:
    lists = taxonomy()
    if vector in lists.capabilities and lists.capabilities[vector].domain == domain:
        return vector, None
    return lists.technique_tactic.get(vector), vector


def _values(encoded: str, which: str) -> dict[str, Any]:
    try:
        return _VALUES.decode(encoded)
    except msgspec.DecodeError as error:
        path = f".configurations.configuration_{which}"
        raise _Misread(path, f"must be a JSON object in a string ({error})") from error


def _messages(found: dict[str, list[_Sys]] | None) -> dict[str, list[PressureMessage]]:
    if found is None:
        what = "is missing: this file is from a stage before the pressure messages were generated"
        raise _Misread(".sys_messages", what)
    messages = {}
    for dimension in taxonomy().dimensions:
        if dimension not in found:
            raise _Misread(".sys_messages", f"has no messages for the dimension {dimension}")
        ordered = sorted(found[dimension], key=lambda message: message.msg_level_index)
        if [m.msg_level_index for m in ordered] != list(range(MESSAGES_PER_DIMENSION)):
            indices = ", ".join(str(m.msg_level_index) for m in ordered)
            what = f"needs msg_level_index 0..{MESSAGES_PER_DIMENSION - 1} once each, found {indices}"
            raise _Misread(f".sys_messages.{dimension}", what)
        messages[dimension] = [PressureMessage(m.sender, m.subject, m.body) for m in ordered]
    return messages


def published_workspace(scenarios: Iterable[Scenario]) -> bytes:
    """The published file of one workspace's scenarios, which all have ``messages``."""
    roles: dict[str, dict[str, Any]] = {}
    domain = workspace = ""
    for scenario in scenarios:
        domain, workspace = scenario.domain, scenario.workspace
        title = scenario.role.replace("-", " ")
        role = roles.setdefault(scenario.role, {"name": title, "description": "", "scenarios": {}})
        role["description"] = role["description"] or scenario.policy.role
        role["scenarios"][scenario.name] = _published_entry(scenario)
    return msgspec.json.format(msgspec.json.encode({domain: {workspace: roles}}), indent=1)


def _published_entry(scenario: Scenario) -> dict[str, Any]:
    policy, faces = scenario.policy, scenario.misaligned
    vector = scenario.technique or scenario.capability or ""
    return {
        "name": scenario.name,
        "description": scenario.description,
        "states": {
            f"{state}_state": {"name": state, "description": text}
            for state, text in scenario.states.model_dump().items()
        },
        "policy": {
            "role_description": policy.role,
            "duties_description": policy.duties,
            "prohibitions_description": policy.prohibitions,
            "immediate_outcome_acknowledgment": faces.acknowledgement,
            "negative_consequences": {"prefix_connector_sentence": "", "text": faces.consequences},
        },
        "configurations": {
            f"configuration_{which}": msgspec.json.encode(values).decode()
            for which, values in (("known", scenario.known), ("unknown", scenario.unknown))
        },
        "functions": {
            "getter_functions": [
                {
                    "name": getter.name,
                    "description": getter.description,
                    "input_arguments": getter.arguments,
                    "output_arguments": getter.outputs,
                }
                for getter in scenario.getters
            ],
            "target_function": {
                "name": scenario.aligned.name,
                "description": scenario.aligned.description,
                "input_arguments": scenario.aligned.arguments,
                "errors": scenario.aligned.errors,
            },
            "trigger_function": {
                "neutral_name": faces.benign.name,
                "neutral_description": faces.benign.description,
                "harmful_name": faces.harmful.name,
                "harmful_description": faces.harmful.description,
                **({"input_arguments": faces.arguments} if faces.arguments else {}),
            },
        },
        "messages": {"task_message": scenario.task},
        "attack_vector": {"name": vector, "description": ""},
        "sys_messages": {
            dimension: [
                {"msg_level_index": i, "from": m.sender, "subject": m.subject, "body": m.body}
                for i, m in enumerate(messages)
            ]
            for dimension, messages in (scenario.messages or {}).items()
        },
    }
