"""A Croissant description of a data set in our own layout: its files with their digests, and its records.

It is meant to lie in the folder of the data, whose files it names by their paths there.
"""

import hashlib
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec

from propensitybench.errors import BadInput
from propensitybench.scenarios import read_dataset
from propensitybench.scenarios.dataset import data_files, find_layout, root_of
from propensitybench.scenarios.storyline import STORYLINES

_EACH: Final = "$.scenarios[*]."


def croissant(folder: Path | None) -> str:
    """The description of a data set, as JSON-LD.

    Args:
        folder: the data set's folder; None is the built-in one.

    Raises:
        BadInput: it holds no data, invalid data, or data in the published layout.
    """
    read_dataset(folder)  # describes only what can be played
    root, _ = root_of(folder)
    if find_layout(root) != "own":
        raise BadInput(
            f"{folder}: is in the published layout; rewrite it with: propensitybench data export --layout own"
        )
    roles = data_files(root, "own")
    storylines = sorted((root / STORYLINES).glob("*.json"))
    described = _data("croissant.json")
    about = _data("built-in.json") if folder is None else {"name": root.resolve().name}
    if not storylines:
        _remove(described, {"storyline-files", STORYLINES})
    described["distribution"] += list(_files(root, [*roles, *storylines]))
    _keep_what_all_have(described, [msgspec.json.decode(path.read_bytes()) for path in roles])
    head = {key: described.pop(key) for key in ("@context", "@type", "conformsTo")}
    return msgspec.json.format(msgspec.json.encode({**head, **about, **described}), indent=2).decode() + "\n"


def _data(name: str) -> dict[str, Any]:
    raw = resources.files("propensitybench.records").joinpath("data", name).read_bytes()
    found: dict[str, Any] = msgspec.json.decode(raw)
    return found


def _remove(described: dict[str, Any], ids: set[str]) -> None:
    for part in ("distribution", "recordSet"):
        described[part] = [one for one in described[part] if one["@id"] not in ids]


def _files(root: Path, paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    for path in paths:
        name = path.relative_to(root).as_posix()
        raw = path.read_bytes()
        yield {
            "@type": "cr:FileObject",
            "@id": name,
            "name": path.name,
            "contentUrl": name,
            "contentSize": f"{len(raw)} B",
            "encodingFormat": "application/json",
            "sha256": hashlib.sha256(raw).hexdigest(),
        }


def _keep_what_all_have(described: dict[str, Any], files: Sequence[dict[str, Any]]) -> None:
    """Leaves out fields that a file or scenario lacks: readers could not tell whose value is whose."""
    scenarios = [one for file in files for one in file["scenarios"]]
    for records in described["recordSet"]:
        if records["@id"] == STORYLINES:
            continue
        kept = []
        for field in records["field"]:
            path = field["source"]["extract"].get("jsonPath", "")
            among, keys = (
                (scenarios, path.removeprefix(_EACH)) if path.startswith(_EACH) else (files, path[2:])
            )
            if all(_has(one, keys) for one in among):
                kept.append(field)
        records["field"] = kept


def _has(value: Any, keys: str) -> bool:
    for key in filter(None, keys.split(".")):
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True
