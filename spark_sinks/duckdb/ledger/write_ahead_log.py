"""The moments at which the write-ahead log is folded into the file.

DuckDB would do it by itself, but it guesses what a commit adds to the log by the memory of its undo entries, of which
each changed row takes one for 2,048. Ten rows in each of a hundred tables come to more than its threshold, and every
commit would rewrite the blocks that it touched. So its own threshold is out of reach (``limits.DUCKDB_CHECKPOINT``),
and the length of the log decides, which is also what a start after a kill has to read again.
"""

from __future__ import annotations

import logging
from pathlib import Path

import duckdb

from mvserver import limits
from spark_sinks.duckdb.ledger.damage import DamageWatch

_log = logging.getLogger(__name__)


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

    def bound(self) -> None:
        """To be called between two transactions of the one writer. What is committed stays so whatever happens here: a
        failure is no failure of the batch, and the next commit tries again."""
        try:
            if self._path is not None and self._path.exists() and self._path.stat().st_size >= self._bytes_max:
                self._cursor.execute("CHECKPOINT")
        except duckdb.TransactionException as error:  # another transaction is in the way
            self._damage.notice(error)
            _log.debug("the write-ahead log stays as long as it is: %s", error)
        except (duckdb.Error, OSError) as error:
            self._damage.notice(error)
            _log.warning("the write-ahead log could not be folded into the file: %s", error)
