"""buenavista's public interfaces over our sessions, so that what others wrote for it (0.5.0) runs here unmodified.

``BuenavistaConnection`` is what a buenavista program holds; ``BuenavistaSession`` is what an Extension is given;
``BuenavistaQueryResult`` is what both return. Results of extensions go the other way through ``result_of``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from buenavista.core import BVType, Connection, QueryResult
from buenavista.core import Session as CoreSession

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.front import Backend, ClientSession, Field, Postponed, Result, Startup
from mvserver.session.plugins.buenavista_types import arrow_type_of, bv_type_of, convert, oid_of


class BuenavistaQueryResult(QueryResult):  # type: ignore[misc]
    """A finished result of ours as buenavista reads it; rows are lists of Python values."""

    def __init__(self, fields: Sequence[Field] | None, batches: Sequence[pa.RecordBatch], tag: str) -> None:
        super().__init__()
        self._fields = fields
        self._batches = batches
        self._tag = tag

    def has_results(self) -> bool:
        return self._fields is not None

    def column_count(self) -> int:
        return len(self._fields or ())

    def column(self, index: int) -> tuple[str, BVType]:
        if self._fields is None:
            raise IndexError(f"no column at index {index}")
        field = self._fields[index]
        return field.name, bv_type_of(field.type_oid)

    def rows(self) -> Iterator[list[Any]]:
        for batch in self._batches:
            columns = [column.to_pylist() for column in batch.columns]
            yield from (list(row) for row in zip(*columns, strict=True))

    def status(self) -> str:
        return self._tag

    def table(self) -> pa.Table:
        """The rows as Arrow."""
        names = [field.name for field in self._fields or ()]
        if not self._batches:
            return pa.table({name: pa.array([]) for name in names})
        return pa.Table.from_batches(self._batches).rename_columns(names)


class BuenavistaSession(CoreSession):  # type: ignore[misc]
    def __init__(self, session: ClientSession, *, owned: bool = True) -> None:
        """``owned`` is False where the wire, not buenavista, ends the session."""
        super().__init__()
        self._session = session
        self._owned = owned
        self._names = itertools.count(1)

    def cursor(self) -> BuenavistaCursor:
        return BuenavistaCursor(self)

    def close(self) -> None:
        if self._owned:
            self._session.close()

    def in_transaction(self) -> bool:
        return self._session.transaction_status() != "I"

    def execute_sql(self, sql: str, params: Sequence[Any] | None = None) -> BuenavistaQueryResult:
        """The last statement's result, read to its end."""
        if params:
            return self._execute_with(sql, params)
        last = BuenavistaQueryResult(None, (), "")
        for result in self._session.simple_query(sql):
            last = _collect(result)
        return last

    def _execute_with(self, sql: str, params: Sequence[Any]) -> BuenavistaQueryResult:
        name = f"buenavista_{next(self._names)}"
        try:
            self._session.parse(name, sql, ())
            self._session.bind(name, name, list(params))
            return _collect(self._session.execute(name))
        finally:
            self._session.close_portal(name)
            self._session.close_statement(name)
            self._session.sync()

    def load_df_function(self, table: str) -> pa.Table:
        """All rows of a relation, as Arrow."""
        return self.execute_sql(f"SELECT * FROM {table}").table()


class BuenavistaCursor:
    """The few calls of a database cursor that extensions make of ``session.cursor()``."""

    def __init__(self, session: BuenavistaSession) -> None:
        self._session = session
        self._result: BuenavistaQueryResult | None = None
        self._rows: Iterator[list[Any]] = iter(())

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        result = self._result
        if result is None or not result.has_results():
            return None
        columns = [result.column(index) for index in range(result.column_count())]
        return [(name, kind.name, None, None, None, None, None) for name, kind in columns]

    def execute(self, sql: str, params: Sequence[Any] | None = None) -> BuenavistaCursor:
        self._result = self._session.execute_sql(sql, params)
        self._rows = self._result.rows()
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        row = next(self._rows, None)
        return None if row is None else tuple(row)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._rows]

    def close(self) -> None:
        self._result = None
        self._rows = iter(())


class BuenavistaConnection(Connection):  # type: ignore[misc]
    """Sessions of a backend for programs that hold a buenavista Connection."""

    def __init__(self, backend: Backend, *, user: str = "postgres", database: str = "postgres") -> None:
        super().__init__()
        self._backend = backend
        self._startup = Startup(user, database, {"application_name": "buenavista"}, peer="local", local=True)
        self._parameters: dict[str, str] = {}

    def new_session(self) -> BuenavistaSession:
        session = self._backend.open_session(self._startup)
        self._parameters = dict(session.parameter_status())
        return BuenavistaSession(session)

    def parameters(self) -> dict[str, str]:
        if not self._parameters:
            self.close_session(self.create_session())
        return dict(self._parameters)


def _collect(result: Result | Postponed) -> BuenavistaQueryResult:
    """buenavista's results have no end of their own, so they are read whole, within a bound."""
    assert not isinstance(result, Postponed)  # noqa: S101 - nobody here asks for an answer at once
    batches: list[pa.RecordBatch] = []
    size = 0
    rows = 0
    try:
        for batch in result.batches:
            batches.append(batch)
            size += batch.nbytes
            rows += batch.num_rows
            if size > limits.SPOOLED_RESULT_BYTES_MAX:
                raise SqlError(
                    sqlstates.CONFIGURATION_LIMIT_EXCEEDED, "the result is too large for buenavista's interface"
                )
    finally:
        result.close()
    return BuenavistaQueryResult(
        result.fields, batches, f"{result.tag}{rows}" if result.tag[-1:] == " " else result.tag
    )


def result_of(answer: QueryResult) -> Result:
    """A buenavista result (an extension's, of whatever class) as the wire sends it."""
    if not answer.has_results():
        return Result(answer.status() or "SELECT 0")
    columns = [answer.column(index) for index in range(answer.column_count())]
    fields = tuple(Field(name, oid_of(kind)) for name, kind in columns)
    return Result("SELECT ", fields, _batches(answer, columns))


def _batches(answer: QueryResult, columns: Sequence[tuple[str, BVType]]) -> Iterator[pa.RecordBatch]:
    rows = iter(answer.rows())
    while chunk := list(itertools.islice(rows, limits.RESULT_CHUNK_ROWS)):
        arrays = [
            pa.array([convert(row[at], kind) for row in chunk], type=arrow_type_of(kind))
            for at, (_, kind) in enumerate(columns)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in columns])
