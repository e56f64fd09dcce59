"""Public names, sizes of files and functions and retired terms."""

import ast
import re
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import propensitybench

SOURCE = Path(propensitybench.__file__).parent
ROOT = Path(__file__).parents[1]
FILE_LINES, FUNCTION_LINES = 400, 60


def test_public_names_are_sorted_and_all_there() -> None:
    assert propensitybench.__all__ == sorted(propensitybench.__all__)
    for name in propensitybench.__all__:
        assert getattr(propensitybench, name).__doc__
    assert dir(propensitybench) == propensitybench.__all__
    assert propensitybench.__version__ == version("propensitybench")


def test_a_class_name_exists_once() -> None:
    found = Counter(
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, times in found.items() if times > 1] == []


def test_files_and_functions_stay_readable() -> None:
    too_long = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if len(text.splitlines()) > FILE_LINES:
            too_long.append(path.name)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                # The signature of a command is its list of options.
                first = node.body[0].lineno if node.name == "command" else node.lineno
                length = (node.end_lineno or 0) - first + 1
                if length > FUNCTION_LINES:
                    too_long.append(f"{path.name}:{node.name} ({length})")
    assert too_long == []


def check_terms(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "docs" / "check_terms.py"), str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_retired_term_is_found_with_its_place_and_the_word_to_use(tmp_path: Path) -> None:
    (tmp_path / "src" / "vendor").mkdir(parents=True)
    old = " ".join(["go", "on", "with"])
    (tmp_path / "src" / "a.py").write_text(f"x = 1\n# {old} it\n")
    (tmp_path / "src" / "vendor" / "b.js").write_text(f"// {old} it\n")
    found = check_terms(tmp_path)
    assert (found.returncode, found.stdout) == (1, f"src/a.py:2: {old!r}; use: resume, continue\n")
    (tmp_path / "src" / "a.py").write_text("x = 1\n")
    clean = check_terms(tmp_path)
    assert (clean.returncode, clean.stdout) == (0, "no retired term is used\n")


def test_every_retired_term_is_a_pattern_with_its_replacement() -> None:
    lines = (ROOT / "docs" / "retired_terms.txt").read_text(encoding="utf-8").splitlines()
    terms = [line.split("\t") for line in lines if line and not line.startswith("#")]
    assert len(terms) > 40
    for pattern, instead, *_ in terms:
        assert instead
        assert not re.compile(pattern).search("The agent called the aligned tool at level 3."), pattern
