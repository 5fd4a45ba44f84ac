"""Runs queries as views, batch by batch, and as batch queries over the typed rows; compares what comes out."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as spark_types

from mvserver.compiler.capabilities import all_capabilities
from mvserver.compiler.compile import compile_select
from mvserver.compiler.expressions import Call, Expression, walk
from mvserver.compiler.plans import ContinuousPlan, Projection
from mvserver.compiler.shape import RelationShape
from mvserver.dialect.errors.duck_errors import translate
from mvserver.serving.engine.database import Database
from mvserver.sql.dialect import parse_select
from mvserver.streaming.batch.evaluate import Evaluated, WholeProgramNeeded, evaluate_partials, evaluate_rows
from mvserver.streaming.batch.program import build_program
from mvserver.streaming.spark.types import spark_type
from mvserver.views.finishing import layout_of
from mvserver.views.targets import Target, build_target
from spark_sinks.duckdb.batch_plans import BatchCommit
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from spark_sinks.duckdb.writer import MergeError, Writer
from tests.differential.data import COLUMNS, NARROW_COLUMNS, Batches, Record
from tests.differential.oracle_functions import register_all
from tests.differential.queries import OutputColumn, Query

RELATIVE_TOLERANCE = 1e-9  # of sums, averages, deviations and transcendental functions of doubles
ABSOLUTE_TOLERANCE = 1e-6  # where such values nearly cancel; the summed doubles are within a thousand
_SHAPES = {
    "everything": RelationShape("11111111-0000-0000-0000-000000000001", "db.public.everything", "stream", COLUMNS),
    "narrow": RelationShape("11111111-0000-0000-0000-000000000002", "db.public.narrow", "stream", NARROW_COLUMNS),
    "lines": RelationShape("11111111-0000-0000-0000-000000000003", "db.public.lines", "stream", COLUMNS, "csv"),
}
_WIDE = Context(prec=60)
_RAW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("position", pa.string()),
        ("record_time", pa.timestamp("us", "UTC")),
    ]
)


class PositionReader:
    """The part of a source that evaluation asks: the frames' positions are records' own already."""

    def rejected_positions(self, records: Sequence[tuple[str, bytes | None]]) -> Sequence[str]:
        return [position for position, _ in records]


@dataclass
class View:
    query: Query
    target: Target
    failure: str | None = None


@dataclass
class World:
    """One topic's views in a database of their own, and the typed rows beside them."""

    spark: Any
    oracle: Any  # a session of :func:`oracle_session`
    folder: Path
    batches: Batches
    views: list[View] = field(default_factory=list)
    trials: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.database = Database.open(self.folder / "views.duckdb")
        self.writer = Writer(self.database.cursor, translate)
        with self.writer.transaction() as ledger:
            ledger.begin_generation("p", {"n": 0})

    def close(self) -> None:
        for relation in _SHAPES:
            self.oracle.catalog.dropTempView(f"rows_{relation}")
        self.writer.close()
        self.database.close()

    def add(self, query: Query, plan: ContinuousPlan) -> View:
        number = len(self.views)
        target = build_target(f"q{number}", f"00000000-0000-0000-0000-{number:012}", 1, plan)
        with self.writer.transaction():
            self.writer.create_state(target.state, layout_of(target))
        view = View(query, target)
        self.views.append(view)
        return view

    # --- batches
    def run(self, *, partials: Sequence[bool]) -> None:
        """Feeds every batch; ``partials`` says for each whether its aggregates come in partial mode."""
        for number, (records, partial) in enumerate(zip(self.batches.batches, partials, strict=True)):
            frame = self._frame(records)
            live = [view for view in self.views if view.failure is None]
            projections = [v.target for v in live if isinstance(v.target.plan, Projection)]
            aggregations = [v.target for v in live if not isinstance(v.target.plan, Projection)]
            groups = [(projections, False), (aggregations, True)] if partial else [(projections + aggregations, False)]
            parts = [part for group, mode in groups if group for part in self._evaluated(frame, group, mode)]
            self._commit(number, len(records), parts)

    def _evaluated(self, frame: Any, targets: list[Target], partial: bool) -> list[Evaluated]:
        """Where a program fails, each of its views by itself, as a pipeline does."""
        try:
            return [self._evaluate(frame, targets, partial)]
        except PySparkException as error:
            if len(targets) == 1:
                self._fail(targets[0].query_id, str(error)[:500])
                return []
            return [part for target in targets for part in self._evaluated(frame, [target], partial)]

    def _fail(self, query_id: str, failure: str) -> None:
        next(view for view in self.views if view.target.query_id == query_id).failure = failure

    def _frame(self, records: Sequence[Record]) -> Any:
        moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
        columns = [
            [None] * len(records),
            [r.value for r in records],
            [r.position for r in records],
            [moment] * len(records),
        ]
        return self.spark.createDataFrame(pa.table(columns, schema=_RAW))

    def _evaluate(self, frame: Any, targets: list[Target], partial: bool) -> Evaluated:
        evaluate = evaluate_partials if partial else evaluate_rows
        reader: Any = PositionReader()
        try:
            found = evaluate(frame, build_program(targets, trial=True), reader)
        except WholeProgramNeeded:
            self.trials["whole"] += 1
            return evaluate(frame, build_program(targets), reader)
        self.trials["trial"] += 1
        return found

    def _commit(self, number: int, records: int, parts: Sequence[Evaluated]) -> None:
        failed: set[str] = set()
        while True:
            kept = [part.without(frozenset(failed)) for part in parts]
            entry = LedgerEntry("p", 1, number, {"n": number}, {"n": number + 1}, records)
            merges = tuple(merge for part in kept for merge in part.merges)
            rejected = tuple(row for part in kept for row in part.rejected)
            try:
                assert self.writer.commit(BatchCommit(entry, merges, rejected))
                return
            except MergeError as error:
                failed.add(error.query_id)
                self._fail(error.query_id, str(error.error))

    # --- answers
    def answer(self, view: View) -> pa.Table:
        with self.database.cursor() as cursor:
            cursor.execute("SET TimeZone = 'UTC'")
            return cursor.execute(f'SELECT * FROM "_views"."{view.target.view_id}"').to_arrow_table()

    def truths(self) -> list[pa.Table | PySparkException]:
        """What each view must show, two queries at a time."""
        for relation in {view.query.relation for view in self.views}:
            self._give_rows(relation)
        with ThreadPoolExecutor(2) as threads:
            return list(threads.map(self._truth, [view.query for view in self.views]))

    def _truth(self, query: Query) -> pa.Table | PySparkException:
        try:
            batch = self.oracle.sql(query.oracle.replace("FROM rows", f"FROM rows_{query.relation}"))
            return _microseconds(batch.toArrow())
        except PySparkException as error:
            return error

    def _give_rows(self, relation: str) -> None:
        narrow = relation == "narrow"
        rows, columns = (self.batches.narrow, NARROW_COLUMNS) if narrow else (self.batches.rows, COLUMNS)
        schema = spark_types.StructType([spark_types.StructField(c.name, _plain(spark_type(c.type))) for c in columns])
        frame = self.oracle.createDataFrame([tuple(row[c.name] for c in columns) for row in rows], schema)
        # A second time from Arrow: a local relation needs no job of its own.
        self.oracle.createDataFrame(_microseconds(frame.toArrow()), schema).createOrReplaceTempView(f"rows_{relation}")

    def rejected(self, relation: str) -> dict[str, str]:
        """Position and reason."""
        shape = _SHAPES[relation]
        return {str(row[1]): f"{row[2]} {row[3]!r}" for row in self.writer.rejected_rows() if row[0] == shape.id}


def oracle_session(spark: Any) -> Any:
    """A session of its own: many small queries, each run once, are faster interpreted than compiled."""
    session = spark.newSession()
    for key, value in {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.timeType.enabled": "true",
        "spark.sql.adaptive.enabled": "false",
    }.items():
        session.conf.set(key, value)
    register_all(session)
    return session


def compiled(query: Query) -> ContinuousPlan:
    return compile_select(
        parse_select(query.sql), lambda parts, position: _SHAPES[parts[-1]], default_starting="earliest"
    )


def functions_used(plan: ContinuousPlan) -> set[str]:
    """The capabilities that a plan computes with."""
    names = {o.id: entry.name for entry in all_capabilities() for o in entry.overloads}
    return {names[node.function] for root in _roots(plan) for node in walk(root) if isinstance(node, Call)}


def _roots(plan: ContinuousPlan) -> Iterator[Expression]:
    yield from (output.expression for output in plan.outputs)
    if plan.where is not None:
        yield plan.where
    if isinstance(plan, Projection):
        return
    yield from plan.keys
    for call in plan.aggregates:
        yield from (part for part in (call.argument, call.filter) if part is not None)
    if plan.having is not None:
        yield plan.having


def type_differences(query: Query, plan: ContinuousPlan) -> list[str]:
    return [
        f"{column.name} is {found.type}, not {column.type}"
        for column, found in zip(query.columns, plan.outputs, strict=True)
        if column.type is not None and str(dataclasses.replace(found.type, length=None)) != column.type
    ]


# --- comparison -----------------------------------------------------------------------------------------------------
def differences(columns: Sequence[OutputColumn], ours: pa.Table, theirs: pa.Table) -> list[str]:
    """Nothing where both have the same rows, in any order."""
    left, right = (_rows(table, columns) for table in (ours, theirs))
    if len(left) != len(right):
        return [f"{len(left)} rows, not {len(right)}; {_odd(columns, left, right)}"]
    for mine, other in zip(left, right, strict=True):
        for column, a, b in zip(columns, mine, other, strict=True):
            if not _equal(a, b, column.approximate):
                return [f"{column.name}: {a!r}, not {b!r}; rows {mine!r} and {other!r}"]
    return []


def _odd(columns: Sequence[OutputColumn], left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> str:
    exact = [i for i, column in enumerate(columns) if not column.approximate]
    a, b = (Counter(repr([row[i] for i in exact]) for row in rows) for rows in (left, right))
    return f"only ours: {list((a - b).items())[:2]}; only the oracle's: {list((b - a).items())[:2]}"


def _rows(table: pa.Table, columns: Sequence[OutputColumn]) -> list[tuple[Any, ...]]:
    values = [
        [_normal(sorted(value, key=repr) if shown.unordered and value else value) for value in column.to_pylist()]
        for shown, column in zip(columns, table.columns, strict=True)
    ]
    exact = [i for i, column in enumerate(columns) if not column.approximate]
    others = [i for i, column in enumerate(columns) if column.approximate]
    rows = list(zip(*values, strict=True))

    def order(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*(repr(row[i]) for i in exact), *(_rough(row[i]) for i in others))

    return sorted(rows, key=order)


def _rough(value: float | None) -> tuple[int, float]:
    """Approximate values order rows that are equal in all else."""
    if value is None:
        return (0, 0.0)
    return (2, 0.0) if math.isnan(value) else (1, value)


def _normal(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value.normalize(_WIDE) if value else Decimal(0)
    if isinstance(value, float):
        return 0.0 if value == 0 else value
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).isoformat()
    if isinstance(value, list):
        items = [_normal(item) for item in value]
        return dict(sorted(items)) if items and all(isinstance(item, tuple) for item in items) else items
    if isinstance(value, dict):
        return {key: _normal(item) for key, item in value.items()}
    return value


def _equal(a: Any, b: Any, approximate: bool) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or (approximate and math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE))
    return bool(a == b) and type(a) is type(b)


# --- typed rows -----------------------------------------------------------------------------------------------------
def _plain(kind: spark_types.DataType) -> spark_types.DataType:
    """A length is no concern of the oracle."""
    return spark_types.StringType() if isinstance(kind, spark_types.VarcharType) else kind


def _microseconds(table: pa.Table) -> pa.Table:
    for index, column in enumerate(table.schema):
        if pa.types.is_time64(column.type) and column.type.unit == "ns":
            table = table.set_column(index, column.name, table.column(index).cast(pa.time64("us")))
    return table
