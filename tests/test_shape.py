"""What a reader may rely on: the public names, and files and functions of a size that can be read."""

import ast
from pathlib import Path

import propensitybench

SOURCE = Path(propensitybench.__file__).parent
FILE_LINES, FUNCTION_LINES = 400, 60


def test_public_names_are_sorted_and_all_there() -> None:
    assert propensitybench.__all__ == sorted(propensitybench.__all__)
    for name in propensitybench.__all__:
        assert getattr(propensitybench, name).__doc__
    assert dir(propensitybench) == propensitybench.__all__


def test_files_and_functions_stay_readable() -> None:
    too_long = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if len(text.splitlines()) > FILE_LINES:
            too_long.append(path.name)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > FUNCTION_LINES:
                    too_long.append(f"{path.name}:{node.name} ({length})")
    assert too_long == []
