"""Rows on their way: a file for each so many bytes, in a stage of the session, copied to a table of the session.

Both are temporary. They end with the session, and nobody else sees them, so what two servers write for one query never
mixes. All of this comes before the transaction, in which there is no DDL.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.snowflake.columns import texts
from spark_sinks.snowflake.session import Session

ROWS = "MVSERVER_ROWS"
GONE = "GONE"


def column(at: int) -> str:
    return f"C{at}"


class Staging:
    """Of a session whose schema is chosen."""

    def __init__(self, session: Session, store: str, columns: int, file_bytes_max: int) -> None:
        self._session = session
        self._store = store
        self._names = [*map(column, range(columns)), GONE]
        self._file_bytes_max = file_bytes_max
        self._stage = f"MVSERVER_STAGE_{uuid.uuid4().hex}"
        session.run(f"CREATE TEMPORARY STAGE {self._stage}")

    def fill(self, rows: pa.Table, gone: pa.Table) -> None:
        """The table has these rows then, and no other; of those that are gone the columns that ``gone`` has."""
        staged = pa.concat_tables([self._texts(rows, rows.schema, "false"), self._texts(gone, rows.schema, "true")])
        place = f"{self._stage}/{uuid.uuid4().hex}/"  # a file that was copied once is passed over
        for number, file in enumerate(self._files(staged)):
            self._session.upload(f"{number}.parquet", file, place)
        self._session.run(
            f"CREATE OR REPLACE TEMPORARY TABLE {ROWS} ({', '.join(f'{name} VARCHAR' for name in self._names)})"
        )
        copied = self._session.named(
            f"COPY INTO {ROWS} FROM (SELECT {', '.join(f'$1:{name}::VARCHAR' for name in self._names)} FROM @{place}) "
            "FILE_FORMAT = (TYPE = PARQUET) ON_ERROR = ABORT_STATEMENT PURGE = TRUE"
        )
        there = sum(int(file.get("rows_loaded") or 0) for file in copied)
        if there != staged.num_rows:
            raise SqlError(
                sqlstates.IO_ERROR,
                f'store "{self._store}" has copied {there} of {staged.num_rows} rows from a stage',
            )

    def _texts(self, rows: pa.Table, schema: pa.Schema, gone: str) -> pa.Table:
        nulls = pa.nulls(rows.num_rows, pa.string())
        columns = [texts(rows.column(f.name)) if f.name in rows.column_names else nulls for f in schema]
        return pa.Table.from_arrays([*columns, pa.array([gone] * rows.num_rows, pa.string())], names=self._names)

    def _files(self, staged: pa.Table) -> Iterator[bytes]:
        files = -(-staged.nbytes // self._file_bytes_max)
        rows = -(-staged.num_rows // files)
        for first in range(0, staged.num_rows, rows):
            written = io.BytesIO()
            pq.write_table(staged.slice(first, rows), written)
            yield written.getvalue()
