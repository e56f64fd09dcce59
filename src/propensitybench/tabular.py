"""What every result of the Python interface can do in a notebook and for a data frame."""

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from propensitybench.errors import BadInput

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl

# Characters of an object, and of a text in it, that a notebook shows in a line or a few.
MAX_REPR: Final = 400
MAX_TEXT: Final = 60
_MAX_ROW: Final = 4


class Brief:
    """Data with a short ``repr``: of what is neither a number nor a name, it says how much there is."""

    __slots__ = ()

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={_brief(getattr(self, name))}" for name in _names_of(self))
        cut = fields if len(fields) <= MAX_REPR else f"{fields[:MAX_REPR].rpartition(', ')[0]}, ..."
        return f"{type(self).__name__}({cut})"


def _names_of(value: object) -> Collection[str]:
    """The fields of a struct, a dataclass or a pydantic model."""
    kind = type(value)
    for names in ("__struct_fields__", "__dataclass_fields__", "model_fields"):
        if hasattr(kind, names):
            return tuple(getattr(kind, names))
    return ()


def _brief(value: object) -> str:
    if isinstance(value, str) and not isinstance(value, Enum):
        return repr(value if len(value) <= MAX_TEXT else f"{value[: MAX_TEXT - 3]}...")
    if isinstance(value, int | float | Enum) or value is None:
        return str(value)
    if isinstance(value, Collection):
        small = isinstance(value, tuple) and len(value) <= _MAX_ROW and all(map(_is_short, value))
        return repr(value) if small or not value else f"{len(value)} items"
    return f"{type(value).__name__}(...)"


def _is_short(value: object) -> bool:
    return isinstance(value, int | float | None) or (isinstance(value, str) and len(value) <= MAX_TEXT)


class Framed:
    """Rows that become a data frame."""

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The rows of the table, with the same columns in the same order."""
        raise NotImplementedError

    def to_polars(self) -> "pl.DataFrame":
        """The rows as a polars data frame."""
        import polars as pl  # takes longer than most commands that print no frame

        return pl.DataFrame(list(self.rows()), infer_schema_length=None)

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a pandas data frame; raises `BadInput` without pandas."""
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise BadInput(
                "to_pandas: pandas is not installed; type: pip install pandas, or use to_polars()"
            ) from error
        return pd.DataFrame(list(self.rows()))


class Tabular(Framed):
    """A result that is also a table: one row for each thing that it counts."""

    def to_dict(self) -> dict[str, Any]:
        """Everything that the command prints with ``--json``."""
        found: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        return found

    def _repr_html_(self) -> str:
        html: str = self.to_polars()._repr_html_()
        return html
