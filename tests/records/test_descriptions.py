"""CITATION.cff, codemeta.json and the Croissant description agree with what they describe."""

import hashlib
import json
import shutil
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
from helpers.program import call
from helpers.scenario_data import SOUND, published_copy

from propensitybench.errors import BadInput
from propensitybench.records.croissant import croissant
from propensitybench.scenarios import read_dataset
from propensitybench.scenarios.dataset import CROISSANT, built_in_folder, data_files

ROOT: Final = Path(__file__).parents[2]
load_yaml: Any = import_module("yaml").safe_load


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def test_citation_and_codemeta_agree_with_the_package() -> None:
    cff = load_yaml((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    meta = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
    ours = project()
    authors = [one["name"] for one in ours["authors"]]
    assert [one["name"] for one in cff["authors"]] == [one["name"] for one in meta["author"]] == authors
    assert (cff["title"], cff["abstract"]) == (ours["name"], ours["description"])
    assert (meta["name"], meta["description"]) == (ours["name"], ours["description"])
    assert cff["keywords"] == meta["keywords"] == ours["keywords"]
    assert cff["license"] == ours["license"]
    assert meta["license"] == f"https://spdx.org/licenses/{ours['license']}"
    assert meta["runtimePlatform"] == f"Python {ours['requires-python']}"


def test_nothing_is_claimed_that_no_release_has() -> None:
    cff = load_yaml((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    meta = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
    assert not cff.keys() & {"doi", "identifiers", "repository-code", "url", "date-released", "version"}
    assert not meta.keys() & {"codeRepository", "identifier", "datePublished", "downloadUrl", "version"}


def test_the_description_of_the_built_in_data_is_current() -> None:
    """If not: ``make docs``."""
    assert (built_in_folder() / CROISSANT).read_text(encoding="utf-8") == croissant(None)


def test_it_lists_every_file_with_its_digest() -> None:
    described = json.loads(croissant(None))
    files = {one["contentUrl"]: one for one in described["distribution"] if one["@type"] == "cr:FileObject"}
    root = built_in_folder()
    there = {path.relative_to(root).as_posix() for path in root.rglob("*.json")} - {CROISSANT}
    assert files.keys() == there
    assert len(files) == 161 + 336
    for name, one in files.items():
        assert one["sha256"] == hashlib.sha256((root / name).read_bytes()).hexdigest()


def test_the_description_is_no_scenario_file() -> None:
    assert CROISSANT not in {path.name for path in data_files(built_in_folder(), "own")}


def test_a_data_set_of_ones_own(tmp_path: Path) -> None:
    data = tmp_path / "my data"
    shutil.copytree(SOUND, data)
    printed = call("data", "croissant", "--data", data)
    described = json.loads(printed.out)
    assert described["name"] == "my data"
    # What only its authors know is not made up.
    assert not described.keys() & {"license", "creator", "version", "citeAs"}
    written = call("data", "croissant", "--data", data, "--out", data / CROISSANT)
    assert (written.code, (data / CROISSANT).read_text(encoding="utf-8")) == (0, printed.out)
    assert read_dataset(data).scenarios == read_dataset(SOUND).scenarios
    again = call("data", "croissant", "--data", data, "--out", data / CROISSANT)
    assert (again.code, "exists already" in again.err) == (2, True)
    has_storylines = (data / "storylines").is_dir()
    assert ("storylines" in {one["@id"] for one in described["recordSet"]}) is has_storylines


def test_published_data_are_described_once_they_are_in_our_layout(tmp_path: Path) -> None:
    """They have no severity and no organisation; a field that a scenario lacks is left out."""
    published = published_copy(tmp_path / "published").parents[2]
    with pytest.raises(BadInput, match="published layout"):
        croissant(published)
    ours = tmp_path / "ours"
    assert call("data", "export", "--layout", "own", "--data", published, "--out", ours).code == 0
    described = json.loads(croissant(ours))
    fields = {one["@id"] for records in described["recordSet"] for one in records["field"]}
    assert {"scenarios/task", "scenarios/domain", "scenarios/capability", "roles/role"} <= fields
    assert not fields & {"scenarios/severity", "roles/organisation"}
