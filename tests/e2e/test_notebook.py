"""The notebook of the documentation: its cells run as they stand, and show what is stored in it.

``pytest --update-golden`` writes what they show into the notebook.
"""

import ast
import json
from pathlib import Path
from typing import Any, Final

import pytest

NOTEBOOK: Final = Path(__file__).parents[2] / "docs" / "notebook.ipynb"
MAX_LINES: Final = 40


def shown(code: str, names: dict[str, object]) -> list[dict[str, Any]]:
    """The outputs of a cell: what a notebook shows of its last expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return []
    assert isinstance(last, ast.Expr)
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    data = {"text/plain": repr(value)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_()
    lines = {kind: text.splitlines(keepends=True) for kind, text in data.items()}
    return [{"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": lines}]


@pytest.mark.slow
def test_the_notebook_shows_what_its_cells_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    stored = [cell["outputs"] for cell in cells]
    found = [shown("".join(cell["source"]), names) for cell in cells]
    if request.config.getoption("--update-golden"):
        for cell, outputs in zip(cells, found, strict=True):
            cell["outputs"] = outputs
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        NOTEBOOK.write_text(f"{text}\n", encoding="utf-8")
    else:
        assert found == stored
    assert sum(len(cell["source"]) for cell in cells) < MAX_LINES
