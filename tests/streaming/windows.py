"""A log of several partitions, views over windows of it as the server runs them, and what these views must show.

The model is a few loops over the records: it knows nothing of batches, since what a view shows must not depend on them.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from mvserver.compiler.compile import compile_select
from mvserver.compiler.plans import Aggregation, ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.dialect.errors.duck_errors import translate
from mvserver.serving.engine.database import Database
from mvserver.sql.dialect import parse_select
from mvserver.sql.types import parse_type
from mvserver.streaming.batch.evaluate import Evaluated, _judged
from mvserver.streaming.batch.program import build_program
from mvserver.streaming.pipeline.committer import Committer
from mvserver.streaming.pipeline.evaluated_batch import EvaluatedBatch, Share
from mvserver.streaming.pipeline.evaluator import BatchEvaluator
from mvserver.streaming.pipeline.partition_watermarks import close_idle
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.views.finishing import layout_of
from mvserver.views.targets import Target, build_target
from mvserver.views.windowing import state_keys
from spark_sinks.base import Position, RecordOrder
from spark_sinks.duckdb.batch_plans import TableMerge, ViewMerge
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from spark_sinks.duckdb.record_columns import PARTITION, PLACE, RANK, SEGMENT
from spark_sinks.duckdb.state.state import UpsertState
from spark_sinks.duckdb.writer import Writer

COLUMNS = {"k": "VARCHAR", "v": "INTEGER", "ts": "BIGINT"}
RELATION = RelationShape(
    "r1",
    "db.public.events",
    "stream",
    tuple(ScanColumn(name, parse_type(kind)) for name, kind in COLUMNS.items()),
    timestamp="ts",
)
_RAW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("position", pa.string()),
        ("record_time", pa.timestamp("us", "UTC")),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Event:
    """``ts`` is in milliseconds; None is a record without event time."""

    partition: int
    offset: int
    k: str | None
    v: int | None
    ts: int | None


@dataclass(frozen=True)
class WindowedView:
    """A view of the model: ``windows`` gives the (start, end) of an event time, None for sessions of ``gap_ms``."""

    source: str  # of FROM
    windows: Any = None
    gap_ms: int | None = None
    delay_ms: int = 0
    grace_ms: int = 0
    final: bool = False
    least: int | None = None  # WHERE v >= least
    retention_ms: int | None = None
    forgetting: bool = False  # state.ttl.millis is gap_ms

    @property
    def sql(self) -> str:
        where = "" if self.least is None else f" WHERE v >= {self.least}"
        aggregates = "count(*) AS n, count(v) AS c, sum(v) AS s, min(v) AS lo, max(v) AS hi"
        if self.forgetting:
            return (
                f"SELECT k, {aggregates} FROM {self.source} WITH ('watermark.delay.millis' = {self.delay_ms}){where} "
                f"GROUP BY k QUERY WITH ('state.ttl.millis' = {self.gap_ms})"
            )
        return (
            f"SELECT window_start, window_end, k, {aggregates} "
            f"FROM {self.source} WITH ('watermark.delay.millis' = {self.delay_ms}){where} "
            f"GROUP BY k, window_start, window_end{' EMIT FINAL' if self.final else ''}"
        )


class LogReader:
    """What evaluation and commit ask of a source; positions are {"0": next offset, ...}."""

    record_order = RecordOrder("cast(partition as string)", "offset", "cast(partition as string)")
    rounds = logged = held = live = None

    @property
    def positions(self) -> Any:
        return self

    def divisible(self, start: Any, end: Any, least: int) -> bool:
        return False

    def segment_ranks(self, segments: Sequence[str]) -> Sequence[int]:
        return [int(segment) for segment in segments]

    def partitions(self, position: Position) -> Mapping[str, int]:
        return dict(position)

    def rejected_positions(self, records: Sequence[tuple[str, bytes | None]]) -> Sequence[str]:
        return [position for position, _ in records]

    def confirm(self, position: Position) -> None:
        pass

    def reached(self, position: Position, target: Position) -> bool:
        return all(position[p] >= target[p] for p in target)


@dataclass
class World:
    """Views over one log, fed batch by batch."""

    spark: Any
    folder: Path
    targets: Sequence[Target]
    partitions: int
    position: dict[str, int] = field(default_factory=dict)
    reached: Any = lambda step: None
    batch: int = 0
    failing: frozenset[str] = frozenset()  # the queries that are to fail

    def __post_init__(self) -> None:
        self.position = self.position or {str(p): 0 for p in range(self.partitions)}
        self._open()
        with self.writer.transaction() as ledger:
            ledger.begin_generation("p", self.position)
            for target in self.targets:
                self.writer.create_state(target.state, layout_of(target), target.outbox)
                ledger.add_subscriber(target.query_id, 1, "p", self.position)
        self._subscribe()

    def _open(self) -> None:
        self.database = Database.open(self.folder / "views.duckdb")
        self.writer = Writer(self.database.cursor, translate, lambda step: self.reached(step))
        self.reader: Any = LogReader()
        self.running = RunningState(self.reader, self.writer, records_max=1000)
        self.evaluator = BatchEvaluator(self.reader, self.running.fail)
        self.committer = Committer(self.running, self.reader, self.writer, lambda query_ids: None)

    def _subscribe(self) -> None:
        rows = {row.query_id: row for row in self.writer.ledger_subscribers()}
        for target in self.targets:
            position = rows[target.query_id].position
            subscriber = Subscriber(target, 1, position, target.plan.scan.error_handling, filled=True)
            self.running.subscribers[target.query_id] = subscriber
        self.running.position = self.position

    def restart(self) -> None:
        """As after a kill: all that is known is in the file."""
        self.close()
        self.reached = lambda step: None
        self._open()
        with self.writer.transaction() as ledger:
            row = ledger.pipeline("p")
            assert row is not None
            self.position = dict(row.position)
            ledger.begin_generation("p", self.position)
        self.batch = 0
        self._subscribe()

    def close(self) -> None:
        self.writer.close()
        self.database.close()

    def feed(self, events: Sequence[Event]) -> None:
        """One batch; its records come from Spark in any order."""
        end = dict(self.position)
        for event in events:
            end[str(event.partition)] = max(end[str(event.partition)], event.offset + 1)
        self.feed_frame(self._frame(events), dict(self.position), end, len(events))

    def feed_frame(self, frame: Any, start: dict[str, int], end: dict[str, int], records: int) -> None:
        for subscriber in self.running.all():
            subscriber.position = start
        if self.position != start:
            with self.writer.transaction() as ledger:
                ledger.begin_generation("p", start)
        shares = [Share(s, start, end, records) for s in self.running.all()]
        evaluated, kept = self.evaluator.evaluate(frame, shares, records)
        self._commit(start, end, records, [(evaluated, kept)])

    def feed_evaluated(self, events: Sequence[Event], views: Sequence[WindowedView]) -> None:
        """The same without Spark: what it would send is written down here, ``views`` being the targets' models."""
        end = dict(self.position)
        for event in events:
            end[str(event.partition)] = max(end[str(event.partition)], event.offset + 1)
        start = dict(self.position)
        parts = []
        for subscriber, view in zip(self.running.all(), views, strict=True):
            table, merge = sent_by_spark(subscriber.target, view, events)
            evaluated = Evaluated((TableMerge(table, (merge,)),), (), {}, table.num_rows, None)
            parts.append((evaluated, [Share(subscriber, start, end, len(events))]))
        self._commit(start, end, len(events), parts)

    def _commit(self, start: Position, end: dict[str, int], records: int, parts: Any) -> None:
        with self.writer.transaction() as ledger:
            row = ledger.pipeline("p")
        assert row is not None
        entry = LedgerEntry("p", row.generation, self.batch, start, end, records)
        self.committer._commit(EvaluatedBatch(entry, parts))
        failures = {s.query_id: s.failure for s in self.running.all() if s.failure is not None}
        assert failures.keys() == self.failing, failures
        self.position = end
        self.batch += 1

    def idle(self) -> list[str]:
        return close_idle(self.running, self.reader, self.writer)

    def _frame(self, events: Sequence[Event]) -> Any:
        values = [json.dumps({"k": e.k, "v": e.v, **({} if e.ts is None else {"ts": e.ts})}).encode() for e in events]
        columns: list[Any] = [
            [None] * len(events),
            values,
            [f"{e.partition}:{e.offset}" for e in events],
            [1_700_000_000_000_000] * len(events),
            [e.partition for e in events],
            [e.offset for e in events],
        ]
        arrays = [pa.array(values, kind) for values, kind in zip(columns, _RAW.types, strict=True)]
        return self.spark.createDataFrame(pa.Table.from_arrays(arrays, schema=_RAW))

    def rows(self, number: int = 0) -> list[tuple[Any, ...]]:
        """Bounds in milliseconds since 1970."""
        with self.database.cursor() as cursor:
            view = self.targets[number].view_id
            return cursor.execute(
                "SELECT epoch_ms(window_start), epoch_ms(window_end), * EXCLUDE (window_start, window_end) "
                f'FROM "_views"."{view}" ORDER BY ALL NULLS FIRST'
            ).fetchall()

    def late(self, number: int = 0) -> list[tuple[Any, ...]]:
        """(position, window end in milliseconds or None), in order."""
        query_id = self.targets[number].query_id
        rows = [row for row in self.writer.late_rows() if row[0] == query_id]
        return sorted((row[1], None if row[4] is None else _ms(row[4])) for row in rows)


def _ms(moment: Any) -> int:
    return round((moment - dt.datetime(1970, 1, 1)) / dt.timedelta(milliseconds=1))


def target(sql: str, number: int = 0, relation: RelationShape = RELATION, **plan_fields: Any) -> Target:
    plan = compile_select(parse_select(sql), lambda parts, position: relation, default_starting="earliest")
    return build_target(
        f"q{number}", f"00000000-0000-0000-0000-{number:012}", 1, dataclasses.replace(plan, **plan_fields)
    )


def sent_by_spark(made: Target, view: WindowedView, events: Sequence[Event]) -> tuple[pa.Table, ViewMerge]:
    """A row for each record and window, in the order in which they were given."""
    (program_view,) = build_program([made]).views
    judging, state = program_view.judging, made.state
    assert judging is not None
    assert isinstance(made.plan, Aggregation)
    assert isinstance(state, UpsertState)
    key_names = dict(zip(state_keys(made.plan), program_view.keys, strict=True))
    (k,) = (name for key, name in key_names.items() if name not in (judging.start, judging.end))
    rows = []
    for event in events:
        spans: list[tuple[int | None, int | None]] = [(None, None)]
        if event.ts is not None:
            spans = [(event.ts, event.ts + view.gap_ms)] if view.gap_ms is not None else view.windows(event.ts)
        passing = view.least is None or (event.v is not None and event.v >= view.least)
        rows.extend((event, bounds, passing) for bounds in spans)
    columns: dict[str, pa.Array] = {
        judging.event: pa.array([None if e.ts is None else e.ts * 1000 for e, _, _ in rows], pa.int64()),
        judging.flag: pa.array([passing for _, _, passing in rows], pa.bool_()),
        k: pa.array([e.k for e, _, _ in rows], pa.string()),
        **{
            name: pa.array([None if b[side] is None else b[side] * 1000 for _, b, _ in rows], pa.timestamp("us"))
            for side, name in enumerate((judging.start, judging.end))
        },
        **{
            name: pa.array([e.v if passing else None for e, _, passing in rows], pa.int32())
            for name in program_view.arguments
        },
        PARTITION: pa.array([str(e.partition) for e, _, _ in rows], pa.string()),
        SEGMENT: pa.array([str(e.partition) for e, _, _ in rows], pa.string()),
        RANK: pa.array([e.partition for e, _, _ in rows], pa.int64()),
        PLACE: pa.array([e.offset for e, _, _ in rows], pa.int64()),
    }
    table = pa.table(columns)
    return table, _judged(program_view, judging, null_keys=table.column(k).null_count > 0)


# --- the model ------------------------------------------------------------------------------------------------------
def marks(events: Sequence[Event], delay_ms: int) -> dict[tuple[int, int], int | None]:
    """The watermark of its own partition just before each record."""
    found: dict[tuple[int, int], int | None] = {}
    greatest: dict[int, int] = {}
    for event in sorted(events, key=lambda e: (e.partition, e.offset)):
        known = greatest.get(event.partition)
        found[event.partition, event.offset] = None if known is None else known - delay_ms
        if event.ts is not None:
            greatest[event.partition] = event.ts if known is None else max(known, event.ts)
    return found


def watermark(events: Sequence[Event], delay_ms: int, partitions: int) -> int | None:
    tops = [
        max((e.ts for e in events if e.partition == p and e.ts is not None), default=None) for p in range(partitions)
    ]
    known = [top for top in tops if top is not None]
    return min(known) - delay_ms if len(known) == partitions else None


def expected(
    view: WindowedView, events: Sequence[Event], partitions: int
) -> tuple[list[tuple[Any, ...]], list[tuple[str, int | None]]]:
    """Rows of the view, and late rows as :meth:`World.late` gives them."""
    mark = marks(events, view.delay_ms)
    late: list[tuple[str, int | None]] = []
    taken: list[tuple[int, int, Event]] = []
    for event in events:
        if view.least is not None and (event.v is None or event.v < view.least):
            continue
        if event.ts is None:
            late.append((f"{event.partition}:{event.offset}", None))
            continue
        spans = [(event.ts, event.ts + view.gap_ms)] if view.gap_ms is not None else view.windows(event.ts)
        for start, end in spans:
            before = mark[event.partition, event.offset]
            if before is not None and end + view.grace_ms <= before:
                late.append((f"{event.partition}:{event.offset}", end))
            else:
                taken.append((start, end, event))
    if view.gap_ms is not None:
        taken = sessions(taken)
    groups: dict[tuple[int, int, str | None], list[int | None]] = {}
    for start, end, event in taken:
        groups.setdefault((start, end, event.k), []).append(event.v)
    reached = watermark(events, view.delay_ms, partitions)
    rows = []
    for (start, end, k), values in groups.items():
        closing = end + view.grace_ms + (view.gap_ms or 0)
        if view.final and (reached is None or closing > reached):
            continue
        known = [v for v in values if v is not None]
        rows.append(
            (start, end, k, len(values), len(known), sum(known) if known else None, min(known, default=None),
             max(known, default=None))
        )  # fmt: skip
    return sorted(rows, key=_order), sorted(late, key=lambda row: (row[0], row[1] is not None, row[1]))


def living(view: WindowedView, events: Sequence[Event], partitions: int) -> list[tuple[Any, ...]]:
    """The rows of a view that forgets groups: the latest session of each key, as long as the watermark is before its
    end."""
    found, _ = expected(view, events, partitions)
    reached = watermark(events, view.delay_ms, partitions)
    latest = {row[2]: row for row in sorted(found, key=lambda row: row[1])}
    return sorted((row[2:] for row in latest.values() if reached is None or row[1] > reached), key=_order)


def sessions(taken: Sequence[tuple[int, int, Event]]) -> list[tuple[int, int, Event]]:
    by_key: dict[str | None, list[tuple[int, int, Event]]] = {}
    for item in taken:
        by_key.setdefault(item[2].k, []).append(item)
    found: list[tuple[int, int, Event]] = []
    for items in by_key.values():
        group: list[tuple[int, int, Event]] = []
        for item in sorted(items, key=lambda i: i[0]):
            if group and item[0] > max(end for _, end, _ in group):
                found += [(group[0][0], max(end for _, end, _ in group), e) for _, _, e in group]
                group = []
            group.append(item)
        found += [(group[0][0], max(end for _, end, _ in group), e) for _, _, e in group]
    return found


def _order(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((value is not None, value) for value in row)


# --- random input ---------------------------------------------------------------------------------------------------
def random_events(rng: random.Random, count: int, partitions: int, *, step_ms: int, disorder_ms: int) -> list[Event]:
    """Event times that grow, each partition at its own pace, with records out of order and some far behind."""
    events: list[Event] = []
    offsets = [0] * partitions
    times = [rng.randint(-5 * step_ms, 5 * step_ms) for _ in range(partitions)]  # some before 1970
    for _ in range(count):
        p = rng.randrange(partitions)
        times[p] += rng.randint(0, 2 * step_ms)
        ts: int | None = times[p] - (rng.randint(0, disorder_ms) if rng.random() < 0.4 else 0)
        if rng.random() < 0.05:
            ts = times[p] - rng.randint(0, 40 * step_ms)
        if rng.random() < 0.04:
            ts = None
        events.append(Event(p, offsets[p], rng.choice(["a", "b", "c", None]), rng.choice([None, *range(-3, 9)]), ts))
        offsets[p] += 1
    return events


def random_batches(rng: random.Random, events: Sequence[Event]) -> list[list[Event]]:
    """Cut at random, each partition by itself, and shuffled within."""
    queues: dict[int, list[Event]] = {}
    for event in events:
        queues.setdefault(event.partition, []).append(event)
    batches = []
    while any(queues.values()):
        batch = []
        for queue in queues.values():
            taken = rng.choice([0, 1, rng.randint(20, 90), rng.randint(20, 90)])
            batch += queue[:taken]
            del queue[:taken]
        rng.shuffle(batch)
        if batch:
            batches.append(batch)
    return batches
