"""The one place that touches sqlite3: who may write when, and what a failure of the file means.

One connection writes and one reads. In WAL mode a reader sees the last committed state while a statement's
transaction is open, so that a slow definition never holds up a pull query. A thread that has a transaction open reads
its own writes.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mvserver import limits, sqlstates
from mvserver.errors import SqlError

Row = tuple[Any, ...]
_HEADER_BYTES = 512  # no database is shorter


class CatalogConnection:
    """Thread-safe access to the catalog's file; another process on the same file is refused."""

    def __init__(
        self,
        path: Path,
        prepare: Callable[[sqlite3.Connection, str], None],
        is_whole: Callable[[Callable[[str], list[Row]]], bool] = lambda read: True,
    ) -> None:
        """``is_whole`` is asked at each opening, before ``prepare``, and may read by the function that it is given."""
        self._path = path
        self._write_lock = threading.RLock()
        self._read_lock = threading.RLock()
        self._writer_thread: int | None = None
        self._snapshot_thread: int | None = None
        self._depth = 0
        self._closed = False
        self._lock_file = _lock(path)
        try:
            self._refuse_stump()
            _make_private(path)
            self._writer = self._open(is_whole)
            with self._reported():
                prepare(self._writer, str(path))
            self._reader = self._open()
        except BaseException:
            os.close(self._lock_file)
            raise

    @property
    def path(self) -> Path:
        return self._path

    @property
    def in_transaction(self) -> bool:
        """Whether the calling thread has a transaction open."""
        return self._writer_thread == threading.get_ident()

    def _refuse_stump(self) -> None:
        """SQLite takes a file that is too short for an empty one, and then removes the log beside it."""
        size = self._path.stat().st_size if self._path.exists() else 0
        log = self._path.with_name(f"{self._path.name}-wal")
        if 0 < size < _HEADER_BYTES:
            raise self._damaged(f"file is too short: {size} bytes")
        if size == 0 and log.exists() and log.stat().st_size > 0:
            raise self._damaged(f"it is missing or empty, but {log.name} is there")

    def _open(self, is_whole: Callable[[Callable[[str], list[Row]]], bool] = lambda read: True) -> sqlite3.Connection:
        with self._reported():
            connection = sqlite3.connect(
                self._path, isolation_level=None, check_same_thread=False, timeout=limits.CATALOG_BUSY_TIMEOUT_S
            )
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")  # an acknowledged statement survives a power cut
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA secure_delete = ON")  # a password that is gone is not in a free page
                problems = connection.execute("PRAGMA integrity_check(1)").fetchall()
                if problems == [("ok",)] and not is_whole(lambda sql: connection.execute(sql).fetchall()):
                    problems = [("a row is not as it was written",)]
            except BaseException:
                connection.close()
                raise
        if problems != [("ok",)]:
            connection.close()
            raise self._damaged(str(problems[0][0]))
        return connection

    def read(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Rows as of the calling thread's own transaction, else of the last commit."""
        with self._reported():
            if self.in_transaction:
                return self._writer.execute(sql, parameters).fetchall()
            with self._read_lock:
                return self._reader.execute(sql, parameters).fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Several reads of one committed state; other readers wait, so it must be short."""
        if self.in_transaction or self._snapshot_thread == threading.get_ident():
            yield
            return
        with self._read_lock:
            with self._reported():
                self._reader.execute("BEGIN")
            self._snapshot_thread = threading.get_ident()
            try:
                yield
            finally:
                self._snapshot_thread = None
                if self._reader.in_transaction:
                    self._reader.execute("ROLLBACK")

    def write(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Runs a change inside the calling thread's transaction; returns the number of rows it touched."""
        if not self.in_transaction:
            raise RuntimeError("the catalog changes only inside a transaction")
        try:
            with self._reported():
                return self._writer.execute(sql, parameters).rowcount
        except sqlite3.IntegrityError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
                raise
            raise SqlError(
                sqlstates.SERIALIZATION_FAILURE,
                "could not complete the statement because of a concurrent change",
                detail="An object that the statement uses was dropped or taken into use by another session meanwhile.",
                hint="Try the statement again.",
            ) from error

    @contextmanager
    def transaction(self, before_commit: Callable[[], object]) -> Iterator[None]:
        """All or nothing. One inside another of the same thread is part of it, and takes back only its own on an error.

        ``before_commit`` runs last inside the outermost transaction when something has changed.
        """
        if self._snapshot_thread == threading.get_ident():
            raise RuntimeError("a transaction cannot begin inside a snapshot")
        with self._write_lock:
            if self._depth:
                with self._savepoint():
                    yield
                return
            with self._reported():
                self._writer.execute("BEGIN IMMEDIATE")
            self._depth = 1
            self._writer_thread = threading.get_ident()
            changes = self._writer.total_changes
            try:
                yield
                if self._writer.total_changes != changes:
                    before_commit()
                with self._reported():
                    self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            finally:
                self._depth = 0
                self._writer_thread = None

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        name = f"level_{self._depth}"
        self._depth += 1
        try:
            with self._reported():
                self._writer.execute(f"SAVEPOINT {name}")
            try:
                yield
            except BaseException:
                if self._writer.in_transaction:  # a full disk may have ended it
                    self._writer.execute(f"ROLLBACK TO {name}")
                    self._writer.execute(f"RELEASE {name}")
                raise
            with self._reported():
                self._writer.execute(f"RELEASE {name}")
        finally:
            self._depth -= 1

    def close(self) -> None:
        """Waits for an open transaction; safe to call twice."""
        with self._write_lock, self._read_lock:
            if self._closed:
                return
            self._closed = True
            self._reader.close()
            self._writer.close()  # the last one folds the WAL into the file
            os.close(self._lock_file)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Failures of the file as errors that a user can read; IntegrityError is the writer's to explain."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.ProgrammingError as error:  # a fault of the program, unless the server is ending
            if not self._closed:
                raise
            raise SqlError(sqlstates.ADMIN_SHUTDOWN, "the server is shutting down") from error
        except UnicodeDecodeError as error:  # a name in the file, which sqlite3 would quote
            raise self._damaged(str(error)) from error
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", None)
            primary = code & 0xFF if code is not None else None
            tables_differ = str(error).startswith(("no such table", "no such column", "malformed"))
            if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or tables_differ:
                raise self._damaged(str(error)) from error
            if code is None or primary == sqlite3.SQLITE_MISMATCH:  # a text that is none; a number where a text was
                raise self._damaged(str(error)) from error
            if primary == sqlite3.SQLITE_FULL:
                raise SqlError(
                    sqlstates.DISK_FULL, "the catalog cannot be written", detail=f"No space left for {self._path}."
                ) from error
            raise SqlError(
                sqlstates.IO_ERROR,
                "the catalog cannot be used",
                detail=f"{self._path}: {error}.",
                hint="Mend the cause, or put back catalog.db from a backup. Nothing has been changed or removed.",
            ) from error

    def _damaged(self, what: str) -> SqlError:
        return SqlError(
            sqlstates.DATA_CORRUPTED,
            "the catalog is damaged",
            detail=f"{self._path}: {what}.",
            hint="The catalog is the durable truth and cannot be rebuilt: put back catalog.db from a backup, with the "
            "files beside it as they are there. Nothing has been changed or removed.",
        )


def _make_private(path: Path) -> None:
    """A new file is its owner's alone, since stores' secrets and passwords' verifiers are in it; SQLite gives the files
    beside it the same permissions."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _lock(path: Path) -> int:
    """Two servers on one data directory would each take the other's work for damage."""
    handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise SqlError(
            sqlstates.OBJECT_IN_USE,
            f"catalog {path} is in use by another process",
            hint="Only one server can run on a data directory.",
        ) from error
    return handle
