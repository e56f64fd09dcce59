"""What is wrong in a data file, and where."""

from collections.abc import Callable
from typing import NamedTuple

from propensitybench.scenarios.model import Scenario

Finding = tuple[str, str]
"""A JSON path relative to the scenario (``.aligned.errors``) and what is wrong there."""


class Issue(NamedTuple):
    """A problem in a data file: the file, the JSON path, and what is wrong."""

    file: str
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.file} {self.path}: {self.message}"


class Located(NamedTuple):
    """A scenario and where it was read.

    Attributes:
        header: the JSON paths of the domain, the workspace and the role in the file.
        translate: translates one of our paths, relative to the scenario, to the file's layout.
    """

    scenario: Scenario
    file: str
    path: str
    header: tuple[str, str, str] = ("$.domain", "$.workspace", "$.role")
    translate: Callable[[str], str] = str

    def issue(self, path: str, message: str) -> Issue:
        """An issue at a path relative to the scenario, or to the header if it is of the organisation."""
        start = "$" if path.startswith(".organisation") else self.path
        return Issue(self.file, start + self.translate(path), message)
