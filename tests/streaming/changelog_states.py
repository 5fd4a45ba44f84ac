"""Views over a changelog fed without Spark: expressions that mean the same in DuckDB, a crash between two batches."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from spark_sinks.duckdb.record_columns import PLACE, RANK
from spark_sinks.duckdb.writer import Writer

COLUMNS = {
    "id": ("BIGINT", pa.int64()),
    "k": ("VARCHAR", pa.string()),
    "i": ("INTEGER", pa.int32()),
    "l": ("BIGINT", pa.int64()),
    "n": ("DECIMAL(10, 2)", pa.decimal128(10, 2)),
    "x": ("DOUBLE", pa.float64()),
    "t": ("TIMESTAMP", pa.timestamp("us")),
}


def changelog(*primary_key: str) -> RelationShape:
    columns = tuple(ScanColumn(name, parse_type(kind), name in primary_key) for name, (kind, _) in COLUMNS.items())
    return RelationShape(
        "r1", "db.public.rows", "changelog", columns, timestamp="t", primary_key=primary_key, key_format="json"
    )


def target(sql: str, number: int = 0, *, key: tuple[str, ...] = ("id",)) -> Target:
    relation = changelog(*key)
    plan = compile_select(parse_select(sql), lambda parts, position: relation, default_starting="earliest")
    return build_target(f"q{number}", f"00000000-0000-0000-0000-{number:012}", 1, plan)


class Changes:
    """``records`` are dicts of the columns, in the order of their source; ``gone`` deletes."""

    def __init__(self, folder: Path, *targets: Target) -> None:
        self._folder, self._targets = folder, targets
        self._batch = self._place = 0
        self._open()
        with self.writer.transaction() as ledger:
            ledger.begin_generation("p", {"at": 0})
            for each in targets:
                self.writer.create_state(each.state, layout_of(each), each.outbox)

    def _open(self) -> None:
        self._database = Database.open(self._folder / "views.duckdb")
        self.writer = Writer(self._database.cursor, translate)

    def crash(self) -> None:
        """What is not committed is gone."""
        self.close()
        self._open()

    def close(self) -> None:
        self.writer.close()
        self._database.close()

    def feed(self, records: Sequence[dict[str, Any]]) -> None:
        """One batch; its rows come in an order that says nothing, as Spark's do."""
        table = self._decoded(list(records))
        merges = tuple(self._merge(table, each) for each in self._targets)
        number, self._batch = self._batch, self._batch + 1
        entry = LedgerEntry("p", 1, number, {"at": number}, {"at": number + 1}, len(records))
        assert self.writer.commit(BatchCommit(entry, merges))

    def merge(self, records: Sequence[dict[str, Any]], number: int = 0) -> TableMerge:
        """What a batch of them is for one of the views."""
        return self._merge(self._decoded(list(records)), self._targets[number])

    def _decoded(self, records: list[dict[str, Any]]) -> pa.Table:
        places = list(range(self._place, self._place + len(records)))
        self._place += len(records)
        columns = {name: pa.array([r.get(name) for r in records], kind) for name, (_, kind) in COLUMNS.items()}
        columns["gone"] = pa.array([bool(r.get("gone")) for r in records], pa.bool_())
        columns[RANK] = pa.array([0] * len(records), pa.int64())
        columns[PLACE] = pa.array(places, pa.int64())
        return pa.table(columns).take(list(reversed(range(len(records)))))

    def _merge(self, table: pa.Table, each: Target) -> TableMerge:
        program = build_program([each])
        (view,) = program.views
        assert view.changes is not None
        key = each.plan.scan.primary_key
        value = ", ".join(f"c{i} := {name}" for i, name in enumerate(COLUMNS))
        keyed = ", ".join(f"c{i} := {name}" for i, name in enumerate(key))
        decoded = (
            f"SELECT struct_pack({value}) AS r0_r, struct_pack({keyed}) AS r0_kr, "
            "CASE WHEN gone THEN 'null' END AS r0_w, NULL AS r0_kw, "
            f"CASE WHEN NOT gone THEN '' END AS value, {RANK}, {PLACE} FROM batch"
        )
        flags = [text for text in program.stages[-1] if re.search(r" AS f\d+$", text)]
        columns = [text for text in program.columns if not text.endswith(" AS x0")]
        with self._database.cursor() as cursor:
            cursor.register("batch", table)
            for macro in _SPARK:
                cursor.execute(f"CREATE TEMP MACRO IF NOT EXISTS {macro}")
            flagged = f"SELECT *, {', '.join(map(_duck, flags))} FROM ({decoded})"
            rows = cursor.sql(f"SELECT *, {', '.join(map(_duck, columns))} FROM ({flagged})").to_arrow_table()
        changes = view.changes.statement("mv_batch")
        return TableMerge(rows, (ViewMerge(each.query_id, each.state, changes=changes, keeper=each.outbox),))

    def rows(self, number: int = 0) -> list[tuple[Any, ...]]:
        return self.select(f'SELECT * FROM "_views"."{self._targets[number].view_id}"')

    def select(self, sql: str) -> list[tuple[Any, ...]]:
        with self._database.cursor() as cursor:
            return cursor.execute(f"SELECT * FROM ({sql}) ORDER BY ALL NULLS FIRST").fetchall()

    def oracle(self, sql: str, current: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """The same over the rows that are there at the end, as DuckDB computes it in one go."""
        table = pa.table({name: pa.array([r.get(name) for r in current], kind) for name, (_, kind) in COLUMNS.items()})
        with self._database.cursor() as cursor:
            cursor.register("rows_now", table)
            return cursor.execute(f"SELECT * FROM ({sql}) ORDER BY ALL NULLS FIRST").fetchall()


# Functions of Spark that DuckDB has under another name; any hash will do for a sketch.
_SPARK = ("xxhash64(x) AS hash(x)", "shiftrightunsigned(x, n) AS x >> n", "signum(x) AS sign(x)")


def _duck(text: str) -> str:
    text = re.sub(r"named_struct\('t', (.*?), 'v', ", r"struct_pack(t := \1, v := ", text.replace("`", '"'))
    text = re.sub(r"\barray\(", "list_value(", text)
    text = re.sub(r"\b(\d+(?:E\d+)?)[LD]\b", r"\1", text)  # Spark's marks of a number's type
    return text.replace("unix_micros", "epoch_us")
