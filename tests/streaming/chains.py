"""A chain of joins in DuckDB, without Spark: batches of its sources' records, and the logs between its joins."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from mvserver.compiler.compile import compile_select
from mvserver.compiler.plans import JoinSide, ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.sql.dialect import parse_select
from mvserver.sql.types import parse_type
from mvserver.streaming.batch.evaluate import Evaluated
from mvserver.streaming.batch.program import ViewInput
from mvserver.streaming.pipeline.evaluated_batch import Share
from mvserver.streaming.pipeline.log_batches import LogBatches
from mvserver.streaming.spark.types import spark_schema
from mvserver.views import log_values
from mvserver.views.feeds import Node, nodes
from mvserver.views.finishing import layout_of
from mvserver.views.targets import Target, build_target
from spark_sinks.duckdb.batch_plans import Advance, BatchCommit, Move, Presence, TableMerge, ViewMerge
from spark_sinks.duckdb.changes.log_reader import LogReader
from spark_sinks.duckdb.joins import join_sides
from spark_sinks.duckdb.joins.changelog_joins import ChangelogTables
from spark_sinks.duckdb.joins.join_sides import FeedState, JoinTables
from spark_sinks.duckdb.record_columns import PARTITION, PLACE, RANK, SEGMENT
from spark_sinks.duckdb.state.state import watermark_rule
from spark_sinks.duckdb.state.windows import Standing
from spark_sinks.duckdb.writer import Writer

_TYPES = {"id": "BIGINT", "k": "VARCHAR", "g": "INTEGER", "at": "BIGINT"}
_COLUMNS = tuple(ScanColumn(name, parse_type(kind)) for name, kind in _TYPES.items())
_ARROW = {"id": pa.int64(), "k": pa.string(), "g": pa.int32(), "at": pa.int64()}


def _stream(name: str) -> RelationShape:
    return RelationShape(name, f"db.public.{name}", "stream", _COLUMNS, timestamp="at")


def _changelog(name: str, key: str) -> RelationShape:
    return RelationShape(
        name, f"db.public.{name}", "changelog", _COLUMNS, timestamp="at", primary_key=(key,), key_format="json"
    )


RELATIONS = {
    **{name: _stream(name) for name in ("a", "b", "c", "d")},
    "p": _changelog("p", "k"),
    "q": _changelog("q", "g"),
}


@dataclass(frozen=True)
class Record:
    """``at`` is its event time in milliseconds; ``deleted``: of a changelog, with nothing but its key."""

    id: int
    k: str | None
    g: int | None
    at: int | None
    partition: int = 0
    deleted: bool = False


@dataclass
class _Side:
    node: Node
    index: int
    target: Target
    read: int = 0  # records of its source, or rows of the log that it reads


class Chain:
    """``run`` takes the rows of all logs on, the innermost first, as their pipelines do."""

    def __init__(self, writer: Writer, sql: str, partitions: int = 1) -> None:
        self._partitions = tuple(str(partition) for partition in range(partitions))
        self._query, self._view = str(uuid.uuid4()), str(uuid.uuid4())
        plan = compile_select(parse_select(sql), lambda parts, _: RELATIONS[parts[-1]], default_starting="earliest")
        self.writer, self.target = writer, build_target(self._query, self._view, 1, plan)
        self._nodes = list(nodes(self.target, f"{self._view}_1", self._query))
        self._readers = {
            node.path: LogReader(node.tables.log, spark_schema(node.scan.columns), writer.read_cursor)
            for node in self._nodes
        }
        self._batches = {path: LogBatches(reader, reader) for path, reader in self._readers.items()}
        self._leaves: dict[str, list[_Side]] = {}
        self._inner: list[tuple[str, _Side]] = []
        with writer.transaction() as ledger:
            writer.create_state(self.target.state, layout_of(self.target))
            ledger.add_subscriber(self._query, 1, self._nodes[0].tables.log.reader, {"seq": 0})
            for node in self._nodes:
                for statement in node.tables.create_statements():
                    writer.execute(statement)
                for index in range(len(node.sides)):
                    side = _Side(node, index, node.side_target(self._query, self._view, index))
                    path, scan = node.side_path(index), side.target.plan.scan
                    if scan.derived is None:
                        self._leaves.setdefault(scan.relation_id, []).append(side)
                        ledger.add_subscriber(side.target.query_id, 1, scan.relation_id, {"n": 0})
                    else:
                        self._inner.append((path, side))
                        ledger.add_subscriber(side.target.query_id, 1, self._readers[path].log.reader, {"seq": 0})
        self._inner.sort(key=lambda each: -len(each[0]))
        self._main = _Side(self._nodes[0], 0, self.target)

    def feed(self, source: str, records: Sequence[Record]) -> None:
        """A batch of a source, for all sides that read it, in one transaction."""
        sides = self._leaves[source]
        table = _table(records, sides[0].read)
        merges, moves, advances, presences = [], [], [], []
        for side in sides:
            state = side.target.state
            if isinstance(state, FeedState) and isinstance(state.join, JoinTables):
                presences.append(Presence(side.target.query_id, state.join, state.index, self._partitions))
            side.read += len(records)
            merges.append(self._leaf_merge(side, table))
            moves.append(Move((side.target.query_id,), {"n": side.read}))
            if watermark_rule(side.target.state) is not None:
                advances.append(Advance(Standing(side.target.query_id, self._partitions), side.target.state))
        commit = BatchCommit(
            None, tuple(merges), moves=tuple(moves), advances=tuple(advances), presences=tuple(presences)
        )
        assert self.writer.commit(commit)

    def run(self, rows_max: int = 1_000_000) -> None:
        for path, side in (*self._inner, ("", self._main)):
            self._read(path, side, rows_max)

    def settle(self) -> None:
        """Until nothing moves any more."""
        self.run()
        while self.look():
            self.run()

    def look(self) -> bool:
        """What is done where no rows come: whether a low watermark has moved."""
        moved = False
        for _, side in self._inner:
            join = side.node.join
            if join is None or not self.writer.answers(join_sides.passes(join, side.index, side.read)):
                continue
            statements = (join_sides.passing_statement(join, side.index, str(side.read)), *join.close_statements())
            self.writer.execute_for(self._query, statements)
            moved = True
        return moved

    @property
    def sources(self) -> list[str]:
        return list(self._leaves)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        with self.writer.read_cursor() as cursor:
            found = cursor.execute(f'SELECT * FROM "_views"."{self._view}"').fetchall()
        return sorted(found, key=lambda row: [(value is None, value) for value in row])

    def count(self, table: str) -> int:
        with self.writer.read_cursor() as cursor:
            ((rows,),) = cursor.execute(f'SELECT count(*) FROM "_state"."{self._view}_1_{table}"').fetchall()
        return int(rows)

    def _read(self, path: str, side: _Side, rows_max: int) -> None:
        reader = self._readers[path]
        while side.read < (end := reader.positions.limit({"seq": side.read}, reader.end(), rows_max)["seq"]):
            subscriber: Any = SimpleNamespace(target=side.target)
            share = Share(subscriber, {"seq": side.read}, {"seq": end}, end - side.read)
            parts = self._batches[path].evaluate([share])
            assert parts is not None, "DuckDB is trusted with it"
            evaluated: Evaluated = parts[0][0]
            moves = (Move((side.target.query_id,), {"seq": end}),)
            assert self.writer.commit(BatchCommit(None, evaluated.merges, moves=moves))
            side.read = end

    def _leaf_merge(self, side: _Side, records: pa.Table) -> TableMerge:
        """As a program of Spark's would give it."""
        target, join_side, state = side.target, side.node.sides[side.index], side.target.state
        assert isinstance(join_side, JoinSide)
        assert isinstance(state, FeedState)
        scan = target.plan.scan
        taken = f"coalesce({log_values.condition(join_side.where, scan)}, false)"
        values = [log_values.value(output.expression, scan) for output in join_side.plan.outputs]
        places = {column.name: f"c{i}" for i, column in enumerate(scan.columns)}
        primary = [places[name] for name in scan.primary_key] if isinstance(state.join, ChangelogTables) else []
        selected = [*values, "event_ms * 1000", "record_time", *primary]
        names = [f"x{i}" for i in range(len(selected))]
        listed = ", ".join(f"{text} AS {name}" for text, name in zip(selected, names, strict=True))
        with self.writer.read_cursor() as cursor:
            cursor.register("records", records)
            table = cursor.sql(
                f"SELECT NOT deleted AND {taken} AS f, true AS known, {listed}, "
                f"{PARTITION}, {SEGMENT}, {RANK}, {PLACE} FROM records"
            ).to_arrow_table()
        outputs, keys = tuple(names[: len(values) + 2]), tuple(names[len(values) + 2 :])
        known = "known" if scan.kind == "changelog" else ""
        event = outputs[-2] if state.side.watched is not None else None
        view = ViewInput(target, "f", outputs=outputs, known=known, primary_key=keys, event=event)
        return TableMerge(table, (ViewMerge(target.query_id, state, statements=view.take_statements("mv_batch")),))


def _table(records: Sequence[Record], first: int) -> pa.Table:
    columns: Mapping[str, list[Any]] = {
        name: [getattr(record, name) for record in records] for name in ("id", "k", "g", "at")
    }
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    return pa.table(
        {
            **{f"c{i}": pa.array(columns[name], _ARROW[name]) for i, name in enumerate(_TYPES)},
            "event_ms": pa.array([None if record.deleted else record.at for record in records], pa.int64()),
            "deleted": [record.deleted for record in records],
            "record_time": pa.array([moment] * len(records), pa.timestamp("us", "UTC")),
            PARTITION: [str(record.partition) for record in records],
            SEGMENT: [str(record.partition) for record in records],
            RANK: pa.array([record.partition for record in records], pa.int64()),
            PLACE: pa.array(range(first, first + len(records)), pa.int64()),
        }
    )
