"""The moments at which the write-ahead log is folded into the file.

DuckDB would do it by itself, but it guesses what a commit adds to the log by the memory of its undo entries, of which
each changed row takes one for 2,048. Ten rows in each of a hundred tables come to more than its threshold, and every
commit would rewrite the blocks that it touched. So its own threshold is out of reach (``limits.DUCKDB_CHECKPOINT``),
and the length of the log decides, which is also what a start after a kill has to read again.

A disk that is full while the log is folded ends all work of DuckDB, and the server would start anew again and again. A
disk that is full while the log is written fails one commit, which is tried again. So a log that finds no room stays.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import duckdb

from mvserver import limits
from spark_sinks.duckdb.ledger.damage import DamageWatch

_log = logging.getLogger(__name__)

_LONG = 4  # so many times the longest log: its own length of room is enough then
_ROOM = 8  # so many times the longest log may change in a large file, of which each touched block is written anew


class WriteAheadLog:
    """That of the database of a cursor; in memory there is none."""

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        damage: DamageWatch | None = None,
        *,
        bytes_max: int = limits.WRITE_AHEAD_LOG_BYTES_MAX,
    ) -> None:
        self._cursor = cursor
        self._damage = damage or DamageWatch()
        self._bytes_max = bytes_max
        (file,) = cursor.execute(
            "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"
        ).fetchall()[0]
        self._path = None if file is None else Path(f"{file}.wal")
        self._cramped = False

    def bound(self) -> None:
        """To be called between two transactions of the one writer. What is committed stays so whatever happens here: a
        failure is no failure of the batch, and the next commit tries again."""
        try:
            if self._path is None or not self._path.exists():
                return
            length = self._path.stat().st_size
            if length >= self._bytes_max and self._has_room(self._path, length):
                self._cursor.execute("CHECKPOINT")
        except duckdb.TransactionException as error:  # another transaction is in the way
            self._damage.notice(error)
            _log.debug("the write-ahead log stays as long as it is: %s", error)
        except (duckdb.Error, OSError) as error:
            self._damage.notice(error)
            _log.warning("the write-ahead log could not be folded into the file: %s", error)

    def _has_room(self, path: Path, length: int) -> bool:
        """Blocks that changed are written anew, into those that are free in the file and then on the disk."""
        ((block, used, free),) = self._cursor.execute(
            "SELECT block_size, used_blocks, free_blocks FROM pragma_database_size() "
            "WHERE database_name = current_database()"
        ).fetchall()
        wanted = min(used * block + length, _ROOM * self._bytes_max)
        if length >= _LONG * self._bytes_max:  # else the log itself would fill the disk
            wanted = min(wanted, length)
        left = shutil.disk_usage(path.parent).free
        cramped = left + free * block < wanted
        if cramped and not self._cramped:
            _log.warning("the write-ahead log stays as long as it is: the disk has only %d MB left", left >> 20)
        self._cramped = cramped
        return not cramped
