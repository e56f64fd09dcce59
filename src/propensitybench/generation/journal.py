"""Every model reply of a working folder, by the digest of its request."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import msgspec

from propensitybench.chat import Reply, Usage
from propensitybench.errors import BadData, BadInput
from propensitybench.store.filesystems import network_kind

_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS reply "
    "(digest TEXT PRIMARY KEY, model TEXT, request TEXT, reply TEXT, at TEXT)"
)
# Another command on the same folder may be writing.
_BUSY_S: Final = 60.0
_DECODE: Final = msgspec.json.Decoder(Reply).decode


class JournalKey(NamedTuple):
    """A request in the journal: its digest, the model's address, and the request as JSON."""

    digest: str
    model: str
    request: str


class ReplyJournal:
    """The replies in a file, which is created if it does not exist.

    Args:
        path: the file.

    Raises:
        BadData: the file cannot be used, or is no journal.
        BadInput: it is on a network file system.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if kind := network_kind(path):
            raise BadInput(
                f"{path}: is on a network file system ({kind}), where SQLite is not safe; give a folder on a "
                "local disk, and copy it when the command has ended"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error
        try:
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute(_SCHEMA)
        except sqlite3.Error as error:
            self._database.close()
            raise self._unusable(error) from error

    def known(self, key: JournalKey) -> Reply | None:
        """The reply to a request, if there is one."""
        found = self._run("SELECT reply FROM reply WHERE digest = ?", key.digest)
        return _DECODE(found[0]) if found else None

    def keep(self, key: JournalKey, reply: Reply) -> None:
        """Stores a reply; it is committed when this returns. A request's first reply stays."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        self._run(
            "INSERT OR IGNORE INTO reply VALUES (?, ?, ?, ?, ?)",
            *key,
            msgspec.json.encode(reply).decode(),
            at,
        )

    def usage(self, model: str) -> Usage:
        """The tokens of a model's replies, as far as they are stated."""
        replies = self._run("SELECT reply FROM reply WHERE model = ?", model)
        return sum((_DECODE(reply).usage for reply in replies), Usage())

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, statement: str, *values: str) -> list[str]:
        """The first column of the rows of a statement."""
        try:
            with closing(self._database.execute(statement, values)) as rows:
                return [str(row[0]) for row in rows]
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> BadData:
        return BadData(str(self._path), f"cannot be used as the journal of replies ({error})")
