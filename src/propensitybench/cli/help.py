"""Help and usage errors in plain words, instead of the names of Python types."""

import re
from collections.abc import Callable
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

# Longer lines are hard to read.
MAX_WIDTH: Final = 120
MAX_SUMMARY: Final = 1000
# What stands for a value whose option has no word of its own.
WORDS: Final = {
    "int": "N",
    "int range": "N",
    "float": "NUMBER",
    "str": "TEXT",
    "path": "FILE",
    "list[str]": "TEXT",
    "list[Path]": "FILE",
}
MISTAKES: Final = {"int_parsing": "is not a whole number", "float_parsing": "is not a number"}


def settings() -> dict[str, Any]:
    """Makes help as wide as the terminal."""
    return {"max_content_width": min(MAX_WIDTH, get_terminal_size().columns)}


if TYPE_CHECKING:
    _Base = TyperCommand
else:
    _Base = object


class _Plain(_Base):
    """What `Command` and `Group` share."""

    def get_short_help_str(self, limit: int = MAX_SUMMARY) -> str:
        """The first sentence of the help, which a list of commands does not cut."""
        return super().get_short_help_str(max(limit, MAX_SUMMARY))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Pieces of the usage line, without braces and doubled brackets."""
        pieces: list[str] = super().collect_usage_pieces(ctx)
        return [re.sub(r"\{(.*)\}", r"\1", piece) for piece in pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes arguments and options."""
        arguments: list[tuple[str, str]] = []
        rows: list[tuple[str, str]] = []
        for one in self.get_params(ctx):
            name, text = one.get_help_record(ctx) or ("", "")
            if one.param_type_name == "argument":
                arguments.append((name.partition(" <")[0], _bounded(text)))
            elif name:
                rows.append((re.sub(r"<(.*)>", _word, name), _bounded(text)))
        for title, found in (("Arguments", arguments), ("Options", rows)):
            if found:
                with formatter.section(title):
                    formatter.write_dl(found)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads what was typed; an error says what is wrong with the value, not with its type in Python."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = _mistake(error)
            raise


def _word(kind: re.Match[str]) -> str:
    return WORDS.get(kind[1], kind[1])


def _bounded(text: str) -> str:
    return re.sub(r"x>=(\d+)", r"\1 or more", text)


def _mistake(error: typer.BadParameter) -> str:
    details: Callable[[], list[dict[str, Any]]] | None = getattr(error.__cause__, "errors", None)
    if details is None:
        return error.message
    first = details()[0]
    given, kind = first.get("input"), first.get("type")
    if kind in MISTAKES:
        return f"{given!r} {MISTAKES[kind]}."
    if kind == "greater_than_equal":
        return f"{given} is too small; give {first['ctx']['ge']} or more."
    return error.message.removeprefix("Value error, ")


class Command(_Plain, TyperCommand):
    """A command with help and errors in plain words."""


class Group(_Plain, TyperGroup):
    """A command with commands of its own, likewise."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes options and commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


class App(typer.Typer):
    """A program or a group of commands, all with help in plain words."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(cls=Group, **arguments)

    def command(self, name: str | None = None, **arguments: Any) -> Callable[[Any], Any]:
        """Adds a command, as `typer.Typer.command` does."""
        return super().command(name, cls=Command, **arguments)
