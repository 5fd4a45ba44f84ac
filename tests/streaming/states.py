"""Shared by the streaming tests: a DuckDB file with the ledger in it, targets by SQL, batches as Arrow tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from mvserver.compiler.compile import compile_select
from mvserver.compiler.plans import ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.dialect.errors.duck_errors import translate
from mvserver.serving.engine.database import Database
from mvserver.sql.dialect import parse_select
from mvserver.sql.types import parse_type
from mvserver.streaming.batch.program import build_program
from mvserver.views.finishing import layout_of
from mvserver.views.targets import Target, build_target
from spark_sinks.duckdb.batch_plans import BatchCommit, TableMerge, ViewMerge
from spark_sinks.duckdb.ledger.ledger import LedgerEntry, RejectedRow
from spark_sinks.duckdb.writer import Writer

COLUMNS = {
    "k": "VARCHAR",
    "i": "INTEGER",
    "l": "BIGINT",
    "n": "DECIMAL(10, 2)",
    "w": "DECIMAL(38, 10)",
    "x": "DOUBLE",
    "r": "FLOAT",
    "t": "TIMESTAMP",
}
RELATION = RelationShape(
    "r1", "db.public.events", "stream", tuple(ScanColumn(name, parse_type(kind)) for name, kind in COLUMNS.items())
)
_ARROW = {
    "k": pa.string(),
    "i": pa.int32(),
    "l": pa.int64(),
    "n": pa.decimal128(10, 2),
    "w": pa.decimal128(38, 10),
    "x": pa.float64(),
    "r": pa.float32(),
    "t": pa.timestamp("us"),
}


def target(sql: str, number: int = 0) -> Target:
    plan = compile_select(parse_select(sql), lambda parts, position: RELATION, default_starting="earliest")
    return build_target(f"q{number}", f"00000000-0000-0000-0000-{number:012}", 1, plan)


@contextmanager
def writer_in(folder: Path) -> Iterator[tuple[Database, Writer]]:
    database = Database.open(folder / "views.duckdb")
    writer = Writer(database.cursor, translate)
    with writer.transaction() as ledger:
        ledger.begin_generation("p", {"at": 0})
    yield database, writer
    writer.close()
    database.close()


class Fed:
    """Views fed with rows of plain columns, in either shape of a batch, without Spark: key and argument expressions
    must be columns."""

    def __init__(self, database: Database, writer: Writer, *targets: Target) -> None:
        self._database, self._writer, self._targets = database, writer, targets
        self._batch = 0
        with writer.transaction():
            for each in targets:
                writer.create_state(each.state, layout_of(each), each.outbox)

    def feed(self, rows: Sequence[dict[str, Any]], *, partial: bool = False) -> None:
        self.prepare(rows, partial=partial)
        self.commit()

    def prepare(self, rows: Sequence[dict[str, Any]], *, partial: bool = False) -> None:
        """The next batch as it comes from Spark."""
        table = _table(rows)
        self._prepared = tuple(self._merge(table, each, partial) for each in self._targets), len(rows)

    def commit(self) -> None:
        merges, records = self._prepared
        assert self._writer.commit(BatchCommit(self._entry(records), merges))

    def _entry(self, records: int) -> LedgerEntry:
        number, self._batch = self._batch, self._batch + 1
        return LedgerEntry("p", 1, number, {"at": number}, {"at": number + 1}, records)

    def _merge(self, table: pa.Table, each: Target, partial: bool) -> TableMerge:
        program = build_program([each])
        (view,) = program.views
        rows = _evaluated(self._database, table, program)
        if not partial:
            statements = view.row_roll_ups("mv_batch", null_keys=_null_keys(rows, view.keys))
        else:
            rows = _grouped(self._database, rows, program)
            statements = view.partial_roll_ups("mv_batch", null_keys=_null_keys(rows, view.keys))
        values = view.value_statements("mv_batch", partial=partial)
        keys = view.changed_groups("mv_batch", partial=partial)
        merge = ViewMerge(
            each.query_id, each.state, roll_ups=tuple(statements), values=values, keeper=each.keeper, keys=keys
        )
        return TableMerge(rows, (merge,))

    def rows(self, number: int = 0) -> list[tuple[Any, ...]]:
        with self._database.cursor() as cursor:
            view = self._targets[number].view_id
            return cursor.execute(f'SELECT * FROM "_views"."{view}" ORDER BY ALL NULLS FIRST').fetchall()


def _table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in _ARROW.items()})


def _null_keys(rows: pa.Table, keys: Sequence[str]) -> bool:
    return any(rows.column(key).null_count > 0 for key in keys)


def _evaluated(database: Database, table: pa.Table, program: Any) -> pa.Table:
    """What Spark would send in row mode; these programs' expressions mean the same in DuckDB."""
    columns = [text.replace("`", '"') for text in program.columns if "'position'" not in text]
    columns = [_without_decoding(text) for text in columns]
    flags = [f"true AS {name}" for name in program.flags]
    with database.cursor() as cursor:
        cursor.register("batch", table)
        return cursor.sql(f"SELECT {', '.join([*flags, *columns])} FROM batch").to_arrow_table()


def _without_decoding(text: str) -> str:
    for index, name in enumerate(COLUMNS):
        text = text.replace(f"r0_r.c{index}", name)
    text = re.sub(r"named_struct\('t', (.*?), 'v', ", r"struct_pack(t := \1, v := ", text)
    text = re.sub(r"\barray\(", "list_value(", text)
    text = re.sub(r"\b(\d+)[LD]\b", r"\1", text)  # Spark's marks of a number's type
    return text.replace("unix_micros", "epoch_us")


def _grouped(database: Database, rows: pa.Table, program: Any) -> pa.Table:
    """Every second row by itself: partial aggregates of a key that meet in one batch."""
    keys = [name for name in program.group_columns if not name.startswith("x")]
    partials = [f"{_duck(p.expression)} AS {p.name}" for p in program.partial_columns]
    group = ", ".join([*keys, "half"])
    with database.cursor() as cursor:
        cursor.register("batch", rows)
        return cursor.sql(
            f"SELECT {', '.join([*keys, *partials])} FROM (SELECT *, row_number() OVER () % 2 AS half FROM batch) "
            f"GROUP BY {group}"
        ).to_arrow_table()


def _duck(expression: str) -> str:
    return expression.replace("avg(cast(", "avg(cast(")


def rejected(position: str, reason: str = "it is wrong") -> RejectedRow:
    return RejectedRow("r1", position, b"raw", 3, reason)
