"""What every result of the Python interface can do in a notebook and for a data frame."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl


class Tabular:
    """A result that is also a table: one row for each thing that it counts."""

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The rows of the table, with the same columns in the same order."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Everything that the command prints with ``--json``."""
        found: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        return found

    def to_polars(self) -> "pl.DataFrame":
        """The table as a polars data frame."""
        import polars as pl  # takes longer than most commands that print no frame

        return pl.DataFrame(list(self.rows()), infer_schema_length=None)

    def to_pandas(self) -> "pd.DataFrame":
        """The table as a pandas data frame; raises `ModuleNotFoundError` without pandas."""
        import pandas as pd

        return pd.DataFrame(list(self.rows()))

    def _repr_html_(self) -> str:
        html: str = self.to_polars()._repr_html_()
        return html
