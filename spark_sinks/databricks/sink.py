"""Rows written to a Delta table, each once: a commit has the rows, and how far its query has come.

A commit has a transaction identifier: the query's id, and as version that of the table which the commit makes. So the
identifier, which a table keeps for ever, says in which commit the position stands, and that commit is the last one of
the query. A commit is never put on top of another writer's: the version it was made for is taken then, and it fails.
"""

from __future__ import annotations

import json

import pyarrow as pa
from deltalake import CommitProperties, Transaction, WriterProperties, write_deltalake

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position
from spark_sinks.databricks.columns import check_columns
from spark_sinks.databricks.delta import Storage, registered, written_location
from spark_sinks.databricks.features import check_features
from spark_sinks.databricks.options import DatabricksOptions
from spark_sinks.databricks.unity import UnityCatalog
from spark_sinks.store_kind import TableTarget
from spark_sinks.table_writes import another_writer
from spark_sinks.written_tables import fitted

QUERY, POSITION = "mvserver.query", "mvserver.position"
_GONE = "mvserver gone"  # no column's name: it has a blank
_WRITER = WriterProperties(compression="SNAPPY")


class DeltaSink:
    """For one thread at a time."""

    def __init__(self, target: TableTarget[DatabricksOptions], catalog: UnityCatalog, storage: Storage) -> None:
        self._target = target
        self._storage = storage
        self._location = written_location(registered(catalog, target.store, target.entity))
        self._table = storage.table(self._location)
        with storage.reported():
            check_columns(self._table, target.shape, target.entity)
            check_features(self._table, is_keyed=bool(target.shape.key), entity=target.entity)
        self._version: int | None = None  # which the query's last commit has made

    def committed_position(self, *, expected: bool = False) -> Position | None:
        self._table = self._storage.table(self._location)
        with self._storage.reported():
            self._version = self._table.transaction_version(self._target.query_id)
        if self._version is not None:
            return self._position_in(self._version)
        if expected:
            raise self._lost()
        return None

    def renew(self, position: Position) -> None:
        """The log of a table forgets commits after some weeks: the position stands in a new one."""
        schema = self._target.shape.schema
        self.write(schema.empty_table(), schema.empty_table().select(list(self._target.shape.key)), position)

    def write(self, rows: pa.Table, gone: pa.Table, position: Position) -> None:
        with self._storage.reported():
            self._table.update_incremental()
            if self._table.transaction_version(self._target.query_id) != self._version:
                raise another_writer()
            made = self._table.version() + 1
            properties = CommitProperties(
                custom_metadata={QUERY: self._target.query_id, POSITION: json.dumps(position, sort_keys=True)},
                max_commit_retries=0,
                app_transactions=[Transaction(self._target.query_id, made)],
            )
            rows = fitted(rows, pa.schema(self._table.schema()))
            if self._target.shape.key and (rows.num_rows or gone.num_rows):
                self._merge(rows, gone, properties)
                rows = rows.slice(0, 0)
            if self._table.version() != made:  # a merge that changes nothing makes no commit
                self._append(rows, properties)
        self._version = made

    def close(self) -> None:
        """Nothing is open between calls."""

    def _position_in(self, version: int) -> Position:
        """What the query's commit says. It is read from its file: the client's own history of a table keeps every
        thread of the process waiting for storage."""
        files, folder = self._storage.files(self._location)
        try:
            with files.open_input_file(f"{folder}/_delta_log/{version:020}.json") as file:
                lines = file.read().decode().splitlines()
        except FileNotFoundError:
            lines = []
        except OSError as error:
            raise self._storage.unreadable(error) from error
        for line in lines:
            info = json.loads(line).get("commitInfo", {})
            if info.get(QUERY) == self._target.query_id:
                found: Position = json.loads(info[POSITION])
                return found
        raise self._lost()

    def _lost(self) -> SqlError:
        return SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            f'entity "{self._target.entity}" in store "{self._target.store}" no longer says what was written to it',
            detail="The table was made anew, or its log has forgotten the query's last commit.",
            hint="Drop the query, and create it anew over an empty table.",
        )

    def _append(self, rows: pa.Table, properties: CommitProperties) -> None:
        write_deltalake(
            self._table,
            rows,
            mode="append",
            commit_properties=properties,
            writer_properties=_WRITER,
            target_file_size=self._target.table.file_bytes_max,
        )

    def _merge(self, rows: pa.Table, gone: pa.Table, properties: CommitProperties) -> None:
        key = self._target.shape.key
        gone = pa.Table.from_arrays(
            [gone.column(name).cast(rows.schema.field(name).type) for name in key], names=list(key)
        )
        changed = pa.concat_tables(
            [_marked(rows, is_gone=False), _marked(gone, is_gone=True)], promote_options="default"
        )
        values = {_quoted(name): f"s.{_quoted(name)}" for name in rows.column_names}
        is_gone = f"s.{_quoted(_GONE)}"
        merging = self._table.merge(
            changed,
            " AND ".join(f"t.{_quoted(name)} = s.{_quoted(name)}" for name in key),
            source_alias="s",
            target_alias="t",
            writer_properties=_WRITER,
            commit_properties=properties,
        )
        merging = merging.when_matched_delete(predicate=is_gone)
        merging = merging.when_matched_update(updates=values, predicate=f"NOT {is_gone}")
        merging.when_not_matched_insert(updates=values, predicate=f"NOT {is_gone}").execute()


def _marked(rows: pa.Table, *, is_gone: bool) -> pa.Table:
    return rows.append_column(_GONE, pa.array([is_gone] * rows.num_rows, pa.bool_()))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
