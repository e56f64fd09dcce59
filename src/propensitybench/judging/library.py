"""Questions, probes and monitors as TOML files: built in by name, from a path, or as stored in a run file."""

import tomllib
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from propensitybench.errors import BadInput, UnknownName
from propensitybench.files import read_text
from propensitybench.store.reading import RunReader

MAX_FILE: Final = 262_144
T = TypeVar("T")


class _Head(msgspec.Struct):
    format: str


@dataclass(frozen=True)
class TomlLibrary(Generic[T]):
    """A kind of file, of which some are built in.

    Attributes:
        word: what one is called, and the option that names it; the built-in ones are in ``data/{word}s``.
        format: the value of its field ``format``.
        type: what it is read as.
        package: where its folder ``data`` is.
        option: that names one; by default its word.
    """

    word: str
    format: str
    type: type[T]
    package: str = __package__
    option: str = ""

    def names(self) -> list[str]:
        """Names of the built-in ones."""
        return sorted(file.name.removesuffix(".toml") for file in self._folder().iterdir())

    def read(self, given: str) -> T:
        """A built-in one by its name, or one from a path that ends in ``.toml``; raises `BadInput`."""
        option = self.option or f"--{self.word}"
        if given.endswith(".toml"):
            return self._from(read_text(Path(given), f"{option} {given}", MAX_FILE), given)
        if given not in self.names():
            raise UnknownName(self.word, given, self.names(), option)
        text = self._folder().joinpath(f"{given}.toml").read_text(encoding="utf-8")
        return self._from(text, f"the built-in {self.word} {given}")

    def stored(self, file: RunReader) -> list[T]:
        """Those in a run file; raises `NotARunFile` for one that is damaged."""
        found = []
        for body in file.questions().values():
            with file.rows.decoding(f"a {self.word}"):
                if msgspec.json.decode(body, type=_Head).format == self.format:
                    found.append(msgspec.json.decode(body, type=self.type))
        return found

    def _from(self, text: str, name: str) -> T:
        try:
            return msgspec.convert(tomllib.loads(text), self.type)
        except (tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError, BadInput) as error:
            raise BadInput(f"{name}: is not a {self.word} ({error})") from error

    def _folder(self) -> Traversable:
        return resources.files(self.package).joinpath("data", f"{self.word}s")
