"""The entry for the register of Inspect Evals: its fields, and that it points at a task that there is."""

import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from inspect_ai import Task, task_with

ROOT = Path(__file__).parents[2]
ENTRY = ROOT / "docs" / "register" / "propensitybench" / "eval.yaml"


@pytest.fixture
def entry() -> Mapping[str, Any]:
    read: Mapping[str, Any] = yaml.safe_load(ENTRY.read_text(encoding="utf-8"))
    return read


def test_it_has_what_the_register_asks_for_and_nothing_that_it_refuses(entry: Mapping[str, Any]) -> None:
    needed = {"full_title", "common_title", "description", "contributors", "tasks", "source"}
    allowed = {"paper_title", "arxiv", "tags", "metadata", "evaluation_report"}
    assert needed <= entry.keys() <= needed | allowed
    assert all(isinstance(entry[name], str) for name in ("full_title", "common_title", "description"))
    assert "\n" not in entry["description"]
    assert entry["arxiv"] == "https://arxiv.org/abs/2511.20703"
    assert re.fullmatch("[a-z][a-z0-9_]*", ENTRY.parent.name)


def test_its_source_is_a_repository_at_a_whole_commit(entry: Mapping[str, Any]) -> None:
    source = entry["source"]
    assert source.keys() <= {"repository_url", "repository_commit", "maintainers", "comment"}
    assert re.fullmatch(r"https://github\.com/[\w-]+/propensitybench", source["repository_url"])
    assert re.fullmatch("[0-9a-f]{40}", source["repository_commit"])


def test_its_task_is_ours(entry: Mapping[str, Any]) -> None:
    (declared,) = entry["tasks"]
    assert declared.keys() == {"name", "task_path"}
    path = ROOT / declared["task_path"]
    module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    found = importlib.util.find_spec(module)
    assert found is not None
    make = getattr(importlib.import_module(module), declared["name"])
    made = make(limit=1)
    assert isinstance(made, Task)
    assert made.scorer
    assert task_with(made).name == f"propensitybench/{declared['name']}"
