"""What the stores have in common whose tables queries write to, and nothing else: the rows in them are not records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import EntityRecord, Position
from spark_sinks.table_rows import text_of


class WrittenTables:
    """Of a client of such a store, the statements that it refuses (0A000)."""

    kind: str

    def check_create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        raise self._not_here("CREATE ENTITY", "CREATE TABLE name WITH ('store' = ...) AS SELECT ... makes a table.")

    def create_entity(self, name: str, properties: Mapping[str, Any]) -> None:
        self.check_create_entity(name, properties)

    def write_records(self, writes: Sequence[tuple[str, Iterable[bytes]]]) -> None:
        raise self._not_here("COPY", "INSERT INTO table SELECT ... writes a query's rows.")

    def position(self, name: str, starting: str) -> Position:
        raise self._not_here("reading", "Queries write to its tables.")

    def _not_here(self, what: str, hint: str) -> SqlError:
        return SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED, f"{what} in a store of type {self.kind} is not supported", hint=hint
        )


def printed(
    batches: Iterable[pa.RecordBatch], limit: int | None, stopped: Callable[[], bool]
) -> Iterator[EntityRecord]:
    """Rows as JSON, numbered: a table has no order in which they came."""
    number = 0
    for batch in batches:
        for row in batch.to_pylist(maps_as_pydicts="lossy"):
            if stopped() or number == limit:
                return
            yield EntityRecord(None, text_of(row).encode(), f"row:{number}", None)
            number += 1


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with all columns of the table, in its types."""
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.chunked_array([pa.nulls(rows.num_rows, field.type)])
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
