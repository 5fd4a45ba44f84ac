"""The rows that a table had at one place of the log: read once, and kept in files until all who need them have them.

A temporary slot says the place and exports the snapshot of all that committed before. The rows are copied before the
first of them is used, since the server's snapshot ends with the connection: a position in it holds over restarts.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks import oversize
from spark_sinks.base import Position
from spark_sinks.postgresql.connections import Connection, reported
from spark_sinks.postgresql.limits import CHUNK_BYTES, CHUNK_RECORDS, COPY_ROWS
from spark_sinks.postgresql.positions import lsn_text
from spark_sinks.postgresql.records import Envelope, RowColumn, RowShape, enveloped
from spark_sinks.postgresql.spool import RecordColumns, read_chunk, write_chunk
from spark_sinks.postgresql.tables import SourceTable, find_table, literal, no_entity, quoted

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Snapshot:
    """``chunks`` are the numbers of records of its files, in order."""

    id: str
    lsn: int
    chunks: tuple[int, ...]

    @property
    def rows(self) -> int:
        return sum(self.chunks)


class SnapshotFiles:
    """The snapshots of a pipeline, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for unfinished in folder.glob(".*"):  # a process that was killed leaves it
            shutil.rmtree(unfinished, ignore_errors=True)

    def all(self) -> Sequence[str]:
        if not self._folder.is_dir():
            return []
        return [path.name for path in self._folder.iterdir() if not path.name.startswith(".")]

    def remove(self, snapshot_id: str) -> None:
        shutil.rmtree(self._folder / snapshot_id, ignore_errors=True)

    def batches(self, snapshot_id: str, first: int, last: int) -> Sequence[pa.RecordBatch]:
        """55000 where it is not there any more."""
        folder, found, at = self._folder / snapshot_id, [], 0
        for number, records in enumerate(self._manifest(snapshot_id)["chunks"]):
            low, high = max(first, at), min(last, at + records)
            if low < high:
                found.append(read_chunk(folder / _name(number)).slice(low - at, high - low))
            at += records
        return found

    def _manifest(self, snapshot_id: str) -> dict[str, list[int]]:
        try:
            text = (self._folder / snapshot_id / _MANIFEST).read_text("utf-8")
        except FileNotFoundError:
            raise SqlError(
                sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
                f"snapshot {snapshot_id} is gone from the server's data directory",
                hint="REFRESH MATERIALIZED VIEW builds a view anew from the present rows.",
            ) from None
        found: dict[str, list[int]] = json.loads(text)
        return found

    def write(
        self,
        store: str,
        connection: Connection,
        entity: str,
        exported: tuple[int, str],
        snapshot_id: str,
        *,
        keyed: bool,
        key_of: Callable[[SourceTable], Sequence[str]],
        record_bytes_max: int,
        stopped: Callable[[], bool],
    ) -> tuple[Snapshot, SourceTable]:
        """``exported``: the LSN and the name of the server's snapshot. The connection is used by nobody else."""
        lsn, name = exported
        aside = self._folder / f".{snapshot_id}"
        aside.mkdir(parents=True)
        try:
            with reported(store):
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                connection.execute(f"SET TRANSACTION SNAPSHOT {literal(name)}")
                connection.execute("SET LOCAL row_security = off")  # rows that are left out would be an error
                table = find_table(connection, entity)
                if table is None:
                    raise no_entity(store, entity)
                copying = _Copying(connection, table, lsn, aside, keyed, tuple(key_of(table)), record_bytes_max)
                chunks = copying.run(stopped)
                connection.execute("COMMIT")
            made = Snapshot(snapshot_id, lsn, tuple(chunks))
            (aside / _MANIFEST).write_text(json.dumps({"chunks": chunks}), "utf-8")
            _sync(aside)
            aside.rename(self._folder / snapshot_id)
            _sync(self._folder, files=False)
            return made, table
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise


def position_in(snapshot: Snapshot, at: Position) -> Position:
    """Its beginning; ``at`` is its place in the log. A snapshot without rows is nothing but that."""
    return {**at, "snapshot": snapshot.id, "row": 0, "rows": snapshot.rows} if snapshot.rows else at


class _Copying:
    def __init__(
        self,
        connection: Connection,
        table: SourceTable,
        lsn: int,
        folder: Path,
        keyed: bool,
        key: tuple[str, ...],
        record_bytes_max: int,
    ) -> None:
        self._connection = connection
        self._table = table
        self._lsn = lsn_text(lsn)
        self._folder = folder
        self._keyed = keyed
        self._most = record_bytes_max
        self._columns = [RowColumn(c.name, c.base_type_oid, c.modifier) for c in table.published]
        self._shape = RowShape(self._columns, key)
        self._open = RecordColumns()
        self._chunks: list[int] = []
        self._number = 0

    def run(self, stopped: Callable[[], bool]) -> list[int]:
        found = self._connection.execute(
            "SELECT current_database(), (extract(epoch FROM now()) * 1000000)::bigint"
        ).fetchone()
        assert found is not None  # noqa: S101 - one row
        database, time_us = str(found[0]), int(found[1])
        envelope = Envelope(database, self._table.schema, self._table.name, snapshot=True)
        tail = envelope.tail(self._lsn, None, time_us // 1000)
        selected = ", ".join(quoted(c.name) for c in self._columns) or "NULL"
        self._connection.execute(
            f"DECLARE mvserver_rows NO SCROLL CURSOR FOR SELECT {selected} FROM {self._table.rows_of}"
        )
        fetch, width = f"FETCH {COPY_ROWS} FROM mvserver_rows", len(self._columns)
        while True:
            if stopped():
                raise SqlError(sqlstates.QUERY_CANCELED, "the query is being stopped")
            result = self._connection.execute(fetch, prepare=False).pgresult
            if result is None or result.ntuples == 0:
                break
            for at in range(result.ntuples):
                self._add([result.get_value(at, column) for column in range(width)], tail, time_us)
        self._seal()
        return self._chunks

    def _add(self, values: list[bytes | None], tail: bytes, time_us: int) -> None:
        row = self._shape.row(list(values))
        key = self._shape.key(list(values)) if self._keyed else None
        value = row if self._keyed else enveloped(b"r", None, row, tail)
        if len(value) > self._most:
            value = oversize.mark(value[: oversize.KEPT_BYTES], len(value), self._most)
        self._open.add([key], [value], [f"{self._lsn}:snapshot:{self._number}"], time_us, self._lsn, None)
        self._number += 1
        if len(self._open) >= CHUNK_RECORDS or self._open.size >= CHUNK_BYTES:
            self._seal()

    def _seal(self) -> None:
        if len(self._open):
            write_chunk(self._folder / _name(len(self._chunks)), self._open.batch())
            self._chunks.append(len(self._open))
            self._open = RecordColumns()


def _name(number: int) -> str:
    return f"{number:08d}.arrow"


def _sync(folder: Path, *, files: bool = True) -> None:
    """What is in it is on the disk."""
    for path in (*(folder.iterdir() if files else ()), folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
