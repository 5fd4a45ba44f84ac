"""Rows of a push query as a pull query would give them: the same oids, and the same text of what is nested.

Most batches pass as they are. Where a type has no counterpart on the wire, DuckDB casts it as it does in a pull query,
on a cursor of the push query's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from mvserver.dialect.errors.duck_errors import translate
from mvserver.dialect.typing import duck_types
from mvserver.front import Field
from mvserver.serving.engine.database import Database

_ROWS = "mv_push_rows"


class DuckShaper:
    """Implements ``serving.api.RowShaper``. One thread at a time."""

    def __init__(self, database: Database, columns: Sequence[tuple[str, str]]) -> None:
        outputs = [(name, duck, duck_types.output_type(duck)) for name, duck in columns]
        self.fields = tuple(Field(name, out.pg.oid, out.pg.size, out.pg.typmod) for name, _, out in outputs)
        self._cursor: duckdb.DuckDBPyConnection | None = None
        if any(out.cast for _, _, out in outputs):
            self._cursor = database.cursor()
            self._cursor.execute("SET TimeZone = 'UTC'")
        self._sql = "SELECT " + ", ".join(
            f"CAST(CAST(#{at} AS {duck}) AS {out.cast})" if out.cast else f"#{at}"
            for at, (_, duck, out) in enumerate(outputs, start=1)
        )

    def shape(self, batch: pa.RecordBatch) -> Any:
        if self._cursor is None:
            return batch
        numbered = pa.Table.from_arrays(batch.columns, names=[f"c{at}" for at in range(batch.num_columns)])
        try:
            self._cursor.register(_ROWS, numbered)
            try:
                shaped = self._cursor.sql(f"{self._sql} FROM {_ROWS}").to_arrow_table()
            finally:
                self._cursor.unregister(_ROWS)
        except duckdb.Error as error:
            raise translate(error) from error
        return shaped.combine_chunks().to_batches()[0]

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
