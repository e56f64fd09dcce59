"""Lists every use of a retired term in source, tests and documents; exit code 1 if there is one.

The terms are in retired_terms.txt. Data files and vendored files are not searched.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
FOLDERS: Final = ("src", "tests", "perf", "docs", "release")
SUFFIXES: Final = (".py", ".pyi", ".md", ".j2", ".js", ".yaml")
SKIPPED: Final = ("vendor", "data", "golden")


class Term(NamedTuple):
    """A retired term: what to search for, what to write instead, and the paths where it is allowed."""

    pattern: re.Pattern[str]
    instead: str
    allowed: tuple[str, ...]


def read_terms(path: Path) -> list[Term]:
    """The retired terms of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    fields = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return [
        Term(re.compile(pattern), instead, tuple(" ".join(allowed).split()))
        for pattern, instead, *allowed in fields
    ]


def searched(root: Path) -> Iterator[Path]:
    """The files that are searched, below a repository's root."""
    yield from sorted(root.glob("*.md"))
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and not set(path.relative_to(root).parts) & set(SKIPPED):
                yield path


def uses(root: Path, terms: Sequence[Term]) -> Iterator[str]:
    """Every use of a term: place, line, and what to write instead."""
    for path in searched(root):
        name = path.relative_to(root).as_posix()
        terms_here = [term for term in terms if not name.startswith(term.allowed)]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for term in terms_here:
                if found := term.pattern.search(line):
                    yield f"{name}:{number}: {found.group(0).strip()!r}; use: {term.instead}"


def main() -> None:
    """Prints the uses; a repository's root may be given, else it is this one."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent
    found = list(uses(root, read_terms(HERE / "retired_terms.txt")))
    print("\n".join(found) or "no retired term is used")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
