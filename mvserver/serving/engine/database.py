"""The one owner of the DuckDB file: opens it, hands out cursors, sets a damaged file aside.

DuckDB allows one writing process and one open per file, so nobody else in the server may call ``duckdb.connect`` on it.
What the file holds is derived from the sources and the catalog; a file that does not open is kept under another name
for whoever wants to look at it, and an empty one takes its place.
"""

from __future__ import annotations

import shutil
import threading
import time
import weakref
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from spark_sinks.duckdb.ledger import damage

FILE_NAME = "views.duckdb"
VIEW_SCHEMA = "_views"
STATE_SCHEMA = "_state"
LEDGER_SCHEMA = "_ledger"
SYSTEM_CATALOG = "_system"  # an attached in-memory database: macros and the system catalog, never in the file

_LOOK_EVERY_S = 0.01

_STARTUP_OPTIONS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "disabled_optimizers": "join_elimination",
}
"""DuckDB 2.0's elimination of joins ends with an internal error where a DISTINCT of an aggregate, of which no column is
used, is joined by a LATERAL."""


class Database:
    """An open DuckDB file. One cursor per user of it: a cursor used by two threads at once raises ResourceInUse."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path, set_aside: Path | None) -> None:
        self._connection = connection
        self.damage = self.watch_of(path)
        self._lock = threading.Lock()
        self._closed = False
        self._cursors: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()
        self.name = path.stem
        self.set_aside = set_aside

    @classmethod
    def open(
        cls, path: Path, *, memory_limit: str = limits.DUCKDB_MEMORY_DEFAULT, threads: int = limits.DUCKDB_THREADS
    ) -> Database:
        """Open ``path`` (made with its folder if it is not there).

        ``set_aside`` of the result names what a damaged file was renamed to; the schemas are then empty and the views
        have to be rebuilt. So it is with a file whose damage was noted when it was last open. A file that another
        process holds, or that cannot be opened for want of memory, disk or rights, is not damaged: 58030 says why.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        spill = path.parent / "spill"
        shutil.rmtree(spill, ignore_errors=True)  # what a killed process left
        options = {
            **_STARTUP_OPTIONS,
            "memory_limit": memory_limit,
            "threads": threads,
            "checkpoint_threshold": limits.DUCKDB_CHECKPOINT,
            "temp_directory": str(spill),
            "max_temp_directory_size": limits.DUCKDB_SPILL_MAX,
        }
        set_aside: Path | None = None
        if damage.is_marked(path, _marker(path)):
            set_aside = _set_aside(path)
        _marker(path).unlink(missing_ok=True)
        try:
            connection = _connect(path, options)
        except duckdb.Error as error:
            if not path.exists() or not _is_damage(error):
                raise _cannot_open(path, error) from error
            set_aside = _set_aside(path)
            connection = _connect(path, options)
        return cls(connection, path, set_aside)

    @staticmethod
    def watch_of(path: Path) -> damage.DamageWatch:
        """For damage that shows while no Database is at hand."""
        return damage.DamageWatch.of_file(path, _marker(path))

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A new cursor on the same database, with DuckDB's default settings. Close it when done."""
        with self._lock:
            if self._closed:
                raise duckdb.ConnectionException("the database is closed")
            cursor = self._connection.cursor()
            self._cursors.add(cursor)
            return cursor

    def close(self) -> None:
        """Checkpoint and close; cursors that are still open stop working. Safe to call more than once.

        Statements at work are interrupted and waited for; ``duckdb.ResourceInUseException`` where one does not end.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            ends = time.monotonic() + limits.DATABASE_CLOSE_S
            while not self._close_at_rest(at_the_latest=time.monotonic() > ends):
                for cursor in list(self._cursors):
                    cursor.interrupt()
                time.sleep(_LOOK_EVERY_S)

    def _close_at_rest(self, *, at_the_latest: bool) -> bool:
        try:
            self._connection.close()
        except duckdb.ResourceInUseException:
            if at_the_latest:
                raise
            return False
        except duckdb.Error as error:
            if not self.damage.notice(error):  # what is committed is in the write-ahead log
                raise
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _connect(path: Path, options: dict[str, str | bool | int | float | list[str]]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(str(path), config=options)
    try:
        for statement in _preparation():
            connection.execute(statement)
    except duckdb.Error:
        connection.close()
        raise
    return connection


def _preparation() -> Iterable[str]:
    yield f"ATTACH ':memory:' AS {SYSTEM_CATALOG}"
    yield "SET GLOBAL enable_external_access = false"  # only after opening and attaching; cannot be turned on again
    for schema in (VIEW_SCHEMA, STATE_SCHEMA, LEDGER_SCHEMA):
        yield f"CREATE SCHEMA IF NOT EXISTS {schema}"


_CIRCUMSTANCES = (
    "Could not set lock", "Conflicting lock", "already open", "different configuration", "Permission denied",
    "No space left", "quota", "Too many open files", "Read-only file system", "Input/output error",
    "Cannot allocate memory", "ailed to allocate", "ould not allocate", "Out of Memory",
)  # fmt: skip
_AT_OPENING = ("Serialization Error", "INTERNAL Error", "FATAL Error")
"""Kinds of errors that only the file's content can cause while it is opened."""


def _is_damage(error: duckdb.Error) -> bool:
    """False where the file may well be whole: another process holds it, or memory, disk or rights are missing."""
    text = str(error)
    if isinstance(error, duckdb.OutOfMemoryException | duckdb.PermissionException):
        return False
    if any(circumstance in text for circumstance in _CIRCUMSTANCES):
        return False
    # Whatever is wrong with an entry of the log, or a log whose header names another state of the file.
    wrong_log = "Failure while replaying WAL file" in text or "This WAL was created for" in text
    return wrong_log or damage.sign_in(text) is not None or text.startswith(_AT_OPENING)


def _cannot_open(path: Path, error: duckdb.Error) -> SqlError:
    first = str(error).strip().split("\n", 1)[0].rstrip(". ")
    return SqlError(
        sqlstates.IO_ERROR,
        f"the file of the views {path} cannot be opened",
        detail=f"{first}.",
        hint="The file is left as it is. Mend the cause and start the server again; if the file itself is at fault, "
        "move it and its .wal away, and the views are rebuilt from their sources.",
    )


def _marker(path: Path) -> Path:
    """A note beside the file that it is damaged, with the reason."""
    return path.with_name(f"{path.name}.is-damaged")


def _refuse_endless_damage(path: Path) -> None:
    """A disk that damages each new file would be filled with what is set aside."""
    recent = [
        found
        for found in path.parent.glob(f"{path.name}.damaged-*")
        if found.suffix != ".wal" and time.time() - found.stat().st_ctime < limits.DAMAGE_WITHIN_S
    ]
    if len(recent) >= limits.DAMAGED_FILES_MAX:
        raise SqlError(
            sqlstates.DATA_CORRUPTED,
            f"the file of the views was damaged {len(recent) + 1} times within {limits.DAMAGE_WITHIN_S // 60} minutes",
            detail=f"The damaged files are {path}.damaged-*.",
            hint="Check the machine's disk and memory. Move the damaged files away, and start the server again.",
        )


def _set_aside(path: Path) -> Path:
    """Rename the file and its write-ahead log; a second one in the same second gets a number."""
    _refuse_endless_damage(path)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    target = path.with_name(f"{path.name}.damaged-{stamp}")
    number = 1
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    path.rename(target)
    log = path.with_name(f"{path.name}.wal")
    if log.exists():
        log.rename(target.with_name(f"{target.name}.wal"))
    return target
