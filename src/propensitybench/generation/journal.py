"""Every model reply of a working folder, by the digest of its request, so that none is paid for twice."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from propensitybench.chat import Usage
from propensitybench.errors import BadData, BadInput
from propensitybench.store.filesystems import network_kind

_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS reply "
    "(digest TEXT PRIMARY KEY, model TEXT, request TEXT, reply TEXT, at TEXT)"
)
# Another command on the same folder may be writing.
_BUSY_S: Final = 60.0


class _Used(msgspec.Struct, frozen=True):
    usage: Usage = Usage()


_USED: Final = msgspec.json.Decoder(_Used)


class PanelJournal:
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
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute(_SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise BadData(str(path), f"cannot be used as the journal of replies ({error})") from error

    def get(self, digest: str) -> str | None:
        """The reply to the request of that digest, if there is one."""
        with closing(self._run("SELECT reply FROM reply WHERE digest = ?", digest)) as rows:
            row = rows.fetchone()
        return None if row is None else str(row[0])

    def put(self, digest: str, model: str, request: str, reply: str) -> None:
        """Stores a reply; it is committed when this returns. A digest's first reply stays."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        self._run("INSERT OR IGNORE INTO reply VALUES (?, ?, ?, ?, ?)", digest, model, request, reply, at)

    def usage(self, model: str) -> Usage:
        """The tokens of a model's replies, as far as they are stated."""
        total = Usage()
        with closing(self._run("SELECT reply FROM reply WHERE model = ?", model)) as rows:
            for (reply,) in rows:
                try:
                    used = _USED.decode(str(reply)).usage
                except msgspec.DecodeError:
                    continue  # of a command that keeps only the text
                total += used
        return total

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, statement: str, *values: str) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise BadData(str(self._path), f"cannot be used as the journal of replies ({error})") from error
