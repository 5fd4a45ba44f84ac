"""Both sides of a join in DuckDB, fed batch by batch through a file that outlives its writer."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from mvserver.dialect.errors.duck_errors import translate
from mvserver.serving.engine.database import Database
from spark_sinks.duckdb.batch_plans import BatchCommit, Move, Presence, TableMerge, ViewMerge
from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.joins import silence
from spark_sinks.duckdb.joins.join_sides import Batch, FeedState, FeedTables, JoinTables
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from spark_sinks.duckdb.record_columns import PARTITION, PLACE, RANK, SEGMENT
from spark_sinks.duckdb.writer import Writer

KEYS = ("a", "é", "😀", "")
BEGIN = -60  # the first event time: some are before 1970
END = 1_000_000  # an event time behind all others


@dataclass(frozen=True)
class Row:
    """``t`` is None for a record without an event time. ``primary`` is the primary key of one of a changelog that is
    joined by something else."""

    number: int
    key: str | None
    t: int | None
    partition: str
    deleted: bool = False
    primary: str | None = None


@dataclass
class World:
    """Both sides' pipelines and a reader of the log, over a file that outlives its writer."""

    folder: Path
    join: FeedTables
    read: list[tuple[Any, Any]] = field(default_factory=list)
    batches: Counter[int] = field(default_factory=Counter)
    bare: tuple[int, ...] = ()  # sides that give no column
    partitions: tuple[str, ...] = ()  # that each source has beside those that have shown rows
    shown: dict[int, set[str]] = field(default_factory=lambda: {0: set(), 1: set()})

    def __post_init__(self) -> None:
        self.open()
        with self.writer.transaction() as ledger:
            for statement in self.join.create_statements():
                self.writer.execute(statement)
            for side in (0, 1):
                ledger.begin_generation(f"p{side}", {"n": 0})
                ledger.add_subscriber(f"q/{side}", 1, f"p{side}", {"n": 0})
            ledger.begin_generation("log", {"seq": 0})
            ledger.add_subscriber("q", 1, "log", {"seq": 0})

    def open(self) -> None:
        self.database = Database.open(self.folder / "views.duckdb")
        self.writer = Writer(self.database.cursor, translate)

    def restart(self) -> None:
        self.writer.close()
        self.database.close()
        self.open()

    def commit(self, side: int, rows: Sequence[Row]) -> None:
        number = self.batches[side]
        feed = FeedState(self.join, side)
        primary_key = ("pk",) if self.join.sides[side].primary_key else ()
        columns = ("k", "t", "r") if side in self.bare else ("k", "n", "t", "r")
        batch = Batch("mv_batch", "f", "p", columns, "q", primary_key)
        statements = self.join.feed_statements(side, batch)
        merge = ViewMerge(f"q/{side}", feed, statements=tuple(statements))
        entry = LedgerEntry(f"p{side}", 1, number, {"n": number}, {"n": number + 1}, len(rows))
        committed = BatchCommit(
            entry,
            (TableMerge(table_of(rows), (merge,)),),
            moves=(Move((f"q/{side}",), {"n": number + 1}),),
            presences=self.presences(side, rows),
        )
        assert self.writer.commit(committed)
        assert not self.writer.commit(committed), "the same batch again is skipped"
        self.batches[side] += 1

    def presences(self, side: int, rows: Sequence[Row]) -> tuple[Presence, ...]:
        """As the pipeline of the side's source tells them."""
        self.shown[side] |= {row.partition for row in rows}
        if not isinstance(self.join, JoinTables):
            return ()
        partitions = tuple(sorted({*self.partitions, *self.shown[side]}))
        return (Presence(f"q/{side}", self.join, side, partitions),)

    def look(self, side: int, confirmed_at: float) -> bool:
        """What time decides, whether it is anything; all that the source had at that moment is read."""
        assert isinstance(self.join, JoinTables)
        if not self.writer.answers(silence.is_due(self.join, side, confirmed_at)):
            return False
        statements = (*silence.statements(self.join, side, confirmed_at), *self.join.close_statements())
        self.writer.execute_for("q", statements)
        return True

    def take(self) -> None:
        """The reader reads all there is, and its position lets the next batch trim the log."""
        with self.database.cursor() as cursor:
            cursor.execute("SET TimeZone = 'UTC'")
            first, end = cursor.execute(logs.bounds_query(self.join.log)).fetchall()[0]
            done = self.position
            assert first <= done
            rows = cursor.execute(logs.read_query(self.join.log, ("l", "r", "t")), [done, end]).fetchall()
        assert [int(row[0]) for row in rows] == list(range(done, end)), "numbers have no gaps"
        self.read += [(row[2], row[3]) for row in rows]
        with self.writer.transaction() as ledger:
            ledger.move_subscribers(["q"], {"seq": end})

    @property
    def position(self) -> int:
        return next(int(row.position["seq"]) for row in self.writer.ledger_subscribers() if row.query_id == "q")

    def count(self, table: str) -> int:
        with self.database.cursor() as cursor:
            return int(cursor.execute(f'SELECT count(*) FROM "_state"."{table}"').fetchall()[0][0])


def table_of(rows: Sequence[Row]) -> pa.Table:
    return pa.table(
        {
            "f": [True] * len(rows),
            "p": [not row.deleted for row in rows],
            "pk": pa.array([row.primary for row in rows], pa.string()),
            "k": pa.array([row.key for row in rows], pa.string()),
            "n": pa.array([row.number for row in rows], pa.int64()),
            "t": pa.array([row.t for row in rows], pa.int64()),
            "r": pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)] * len(rows), pa.timestamp("us", "UTC")),
            PARTITION: [row.partition for row in rows],
            SEGMENT: [row.partition for row in rows],
            RANK: pa.array([int(row.partition) for row in rows], pa.int64()),
            PLACE: pa.array([row.number for row in rows], pa.int64()),
        }
    )


def stream(chance: random.Random, count: int, partitions: int, start: int) -> list[Row]:
    """Random records that are up to some intervals late, and a last one of each partition. Some partitions have their
    first one late."""
    rows, now = [], BEGIN
    opens = [chance.choice((0, 0, count // 3)) for _ in range(partitions - 1)]
    for number in range(count):
        now += chance.choice((0, 0, 1, 2, 5))
        t = None if chance.random() < 0.03 else max(BEGIN, now - chance.choice((0, 0, 0, 1, 3, 9, 15, 40)))
        key = None if chance.random() < 0.05 else chance.choice(KEYS)
        partition = chance.choice([p for p in range(partitions) if p == 0 or opens[p - 1] <= number])
        rows.append(Row(start + number, key, t, str(partition)))
    return rows + [Row(start + count + p, None, END, str(p)) for p in range(partitions)]


def partition_of(key: str, partitions: int) -> str:
    """The same for all rows of a key, as in a topic."""
    return str(KEYS.index(key) % partitions)


def marks(rows: Sequence[Row], delay: int) -> list[float]:
    greatest: dict[str, int] = {}
    found: list[float] = []
    for row in rows:
        found.append(greatest.get(row.partition, float("-inf")) - delay)
        if row.t is not None:
            greatest[row.partition] = max(greatest.get(row.partition, row.t), row.t)
    return found


def cut(chance: random.Random, rows: Sequence[Row]) -> list[list[Row]]:
    batches, at = [], 0
    while at < len(rows):
        size = chance.choice((1, 2, 5, 30))
        batches.append(list(rows[at : at + size]))
        at += size
    return batches


def in_turn(chance: random.Random, sides: Sequence[Sequence[Row]], ahead: float) -> Iterator[tuple[int, list[Row]]]:
    """The batches of both sides, with the number of each one's side; ``ahead`` is how likely the first side runs far
    ahead."""
    queues = [cut(chance, side) for side in sides]
    order = [number for number, queue in enumerate(queues) for _ in queue]
    if chance.random() >= ahead:
        chance.shuffle(order)
    for number in order:
        yield number, queues[number].pop(0)
