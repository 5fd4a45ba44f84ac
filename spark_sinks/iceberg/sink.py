"""Rows written to a table, each once: a commit of the table has the rows and how far its query has come.

The query and its position are properties of the snapshot, and of the table in the same commit. The snapshot's count: if
a table is set back to an older snapshot, its queries write again what was in the later ones. Where the snapshot has
been expired, the table's own property says the same.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Snapshot

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position
from spark_sinks.iceberg.catalog import load_table, open_catalog, reported
from spark_sinks.iceberg.columns import check_columns
from spark_sinks.iceberg.options import IcebergOptions
from spark_sinks.iceberg.upserts import may_have, without
from spark_sinks.store_kind import TableTarget
from spark_sinks.table_writes import another_writer, same_position
from spark_sinks.written_tables import fitted

QUERY, POSITION = "mvserver.query", "mvserver.position"


class _OneAttempt(Transaction):
    """The client would put the same rows on top of what another writer has committed, for the same query perhaps."""

    def _rebuild_snapshot_updates(self) -> None:
        raise CommitFailedException("the table has another snapshot now")


class IcebergSink:
    """For one thread at a time."""

    def __init__(self, target: TableTarget[IcebergOptions], *, timeout_s: float) -> None:
        self._target = target
        with reported(target.store):
            self._catalog = open_catalog(target.options, timeout_s)
            check_columns(self._load(), target.shape, target.entity)
        self._written: Position | None = None

    def committed_position(self, *, expected: bool = False) -> Position | None:
        with reported(self._target.store):
            self._written = written_by(self._load(), self._target.query_id)
        if self._written is None and expected:
            raise SqlError(
                sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
                f'entity "{self._target.entity}" in store "{self._target.store}" no longer says what was written to it',
                detail="The table was made anew, or what the query has written was taken out of it.",
                hint="TERMINATE and RESTART the query, and it writes from its beginning.",
            )
        return self._written

    def renew(self, position: Position) -> None:
        """A table forgets nothing."""

    def write(self, rows: pa.Table, gone: pa.Table, position: Position) -> None:
        with reported(self._target.store):
            table = self._load()
            if not same_position(written_by(table, self._target.query_id), self._written):
                raise another_writer()
            self._commit(table, rows, gone, json.dumps(position, sort_keys=True))
        self._written = position

    def close(self) -> None:
        self._catalog.close()

    def _load(self) -> Table:
        target = self._target
        return load_table(self._catalog, target.options, target.store, target.entity)

    def _commit(self, table: Table, rows: pa.Table, gone: pa.Table, position: str) -> None:
        query_id, key = self._target.query_id, list(self._target.shape.key)
        marks = {QUERY: query_id, POSITION: position}
        transaction = _OneAttempt(table)
        keys = pa.concat_tables([rows.select(key), gone]) if key else None
        rows = fitted(rows, table.schema().as_arrow())
        if keys is None or keys.num_rows == 0 or table.current_snapshot() is None:
            transaction.append(rows, snapshot_properties=marks)
        else:
            self._replace(transaction, table, rows, keys, marks)
        transaction.set_properties({_property(query_id): position})
        transaction.commit_transaction()

    def _replace(
        self, transaction: Transaction, table: Table, rows: pa.Table, keys: pa.Table, marks: Mapping[str, str]
    ) -> None:
        schema = rows.schema
        keys = pa.Table.from_arrays(
            [keys.column(name).cast(schema.field(name).type) for name in keys.column_names], names=keys.column_names
        )
        touched = may_have(keys)
        existing = table.scan(row_filter=touched).to_arrow_batch_reader()

        def others() -> Iterator[pa.RecordBatch]:
            for batch in without(existing, keys):
                yield batch.cast(schema)
            yield from rows.to_batches()

        written: Any = pa.RecordBatchReader.from_batches(schema, others())
        if not table.spec().is_unpartitioned():
            written = written.read_all()
        with warnings.catch_warnings():  # where no file has such rows, that is as it should be
            warnings.filterwarnings("ignore", message="Delete operation did not match any records")
            transaction.overwrite(written, overwrite_filter=touched, snapshot_properties=dict(marks))


def written_by(table: Table, query_id: str) -> Position | None:
    """How far the query has written into the table as it is now. 55000 where the table was set back to what it was
    before that, and can no longer be told."""
    snapshots = {each.snapshot_id: each for each in table.metadata.snapshots}
    current = table.current_snapshot()
    while current is not None:
        position = _position_in(current, query_id)
        if position is not None:
            return position
        current = snapshots.get(current.parent_snapshot_id or -1)
    kept = table.properties.get(_property(query_id))
    if kept is None or any(_position_in(each, query_id) is not None for each in snapshots.values()):
        return None  # nothing was written, or the table was set back to before
    found: Position = json.loads(kept)
    return found


def _position_in(snapshot: Snapshot, query_id: str) -> Position | None:
    summary = snapshot.summary
    if summary is None or summary[QUERY] != query_id:
        return None
    found: Position = json.loads(str(summary[POSITION]))
    return found


def _property(query_id: str) -> str:
    return f"{POSITION}.{query_id}"
