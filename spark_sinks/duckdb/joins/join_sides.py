"""The common part of all joins: two sides with tables of their own, how far each has come, and the log of joined rows.

A batch's rows are timed: each gets the mark of its source just before it, the greatest event time of its partition
until then, so that what a row may meet depends on the order of the records in each source alone. The marks are kept
with the rows, in the transaction of the batch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from spark_sinks.duckdb.changes import logs
from spark_sinks.duckdb.changes.logs import NEVER, Log
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.record_columns import PARTITION, PLACE, RANK
from spark_sinks.duckdb.state import windows

INCOMING = "mv_incoming"  # a temporary table: the timed rows of the batch
EVER = -NEVER


@dataclass(frozen=True)
class Side:
    """``types`` are of the columns that it gives to the joined rows, ``primary_types`` of the primary key by which it
    keeps its current rows, where it does. ``watched`` is under what id the ledger has the watermark of its source,
    where the rows of its log are told by that how late they are. ``low`` is the table of the low watermark of the log
    that a side reads; each of its rows brings a mark of its own, since the order of a log says nothing about time."""

    table: str
    key_types: tuple[str, ...]
    types: tuple[str, ...]
    preserved: bool  # its rows without a partner are given, too
    delay_us: int = 0  # how far its mark stays behind the greatest event time
    idle_us: int | None = None  # without records for so long, its partitions do not hold back the other side
    primary_types: tuple[str, ...] = ()
    watched: str | None = None
    low: str | None = None

    @property
    def qualified(self) -> str:
        return qualified(self.table)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(f"k{i}" for i in range(len(self.key_types)))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"v{i}" for i in range(len(self.types)))

    @property
    def primary_key(self) -> tuple[str, ...]:
        return tuple(f"p{i}" for i in range(len(self.primary_types)))

    @property
    def typed(self) -> list[str]:
        """Primary key, keys and columns for CREATE TABLE."""
        names = (*self.primary_key, *self.keys, *self.columns)
        types = (*self.primary_types, *self.key_types, *self.types)
        return [f"{name} {kind}" for name, kind in zip(names, types, strict=True)]

    @property
    def can_match(self) -> str:
        """What a row needs to meet another one: a whole key and an event time."""
        return " AND ".join(f"{column} IS NOT NULL" for column in (*self.keys, "t"))


class FeedTables(Protocol):
    """What several sides feed: a log at least."""

    @property
    def sides(self) -> tuple[Side, ...]:
        """The left one first."""

    @property
    def log(self) -> Log: ...

    @property
    def tables(self) -> tuple[str, ...]: ...

    def create_statements(self) -> list[str]: ...

    def feed_statements(self, index: int, batch: Batch) -> list[str]:
        """Takes in a batch of one side: 0 is the left one."""

    def low_statements(self) -> list[str]:
        """Keeps how far the log has come, where it has a low watermark: after all that moves it."""


@runtime_checkable
class JoinTables(FeedTables, Protocol):
    """All that a join keeps: rows of one side that wait for the other, and how far each side has come."""

    @property
    def marks(self) -> str: ...

    def awaited(self, index: int) -> str:
        """Where the silent partitions of a side will stand if they stay so; NULL for where they do."""

    def close_statements(self) -> list[str]:
        """Gives what need wait no longer, and forgets what nobody can meet any more."""

    def upgrade_statements(self, known: Collection[str]) -> list[str]:
        """What a file of before lacks, which has the tables ``known``."""


@dataclass(frozen=True)
class MarkedSides:
    """The tables of two sides that wait for each other, how far each has come, and the log of the joined rows."""

    left: Side
    right: Side
    marks: str
    log: Log

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.left, self.right

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.left.table, self.right.table, self.marks, *self.log.tables)

    def upgrade_statements(self, known: Collection[str]) -> list[str]:
        return []

    def awaited(self, index: int) -> str:
        return f"(SELECT min(mark) FROM {qualified(self.marks)} WHERE side = {index} AND stands IS NULL)"


@dataclass(frozen=True)
class Batch:
    """Rows for a state that takes them as they are, in ``relation``. ``columns`` are those of the state; of a side
    those of keys, values, event time in microseconds and record time. Those of the record order are there too.
    ``taken`` tells the rows that count, ``passing`` those of them that are not deletions, which only a changelog has,
    as it has a ``primary_key``. ``query_id`` is that of the whole query."""

    relation: str
    taken: str
    passing: str
    columns: tuple[str, ...]
    query_id: str
    primary_key: tuple[str, ...] = ()
    event: str | None = None  # the event time of each record, where a watermark is kept
    mark: str | None = None  # of a side that reads a log: the mark that each row brings


@dataclass(frozen=True)
class FeedState:
    """One side of a join or a union as the target of a batch."""

    join: FeedTables
    index: int

    @property
    def side(self) -> Side:
        return self.join.sides[self.index]

    @property
    def table(self) -> str:
        return self.side.table

    @property
    def tables(self) -> tuple[str, ...]:
        return self.join.tables

    def create_statements(self) -> list[str]:
        return self.join.create_statements()

    def take_statements(self, batch: Batch) -> list[str]:
        return self.join.feed_statements(self.index, batch)


def with_marks(side: Side, batch: Batch) -> Batch:
    """The same for a side whose watermark is kept: its rows have a column ``windows.MARK``."""
    if side.watched is None or batch.event is None:
        return batch
    return replace(batch, relation=f"({windows.marked(side.watched, batch.event, side.delay_us, batch.relation)})")


def carry_statements(side: Side, batch: Batch) -> list[str]:
    """Keeps how far each partition of such a side is; ``batch`` is as it came."""
    if side.watched is None or batch.event is None:
        return []
    return [windows.carry_statement(side.watched, batch.event, batch.relation)]


def side_of(join: FeedTables, index: int) -> Side:
    return join.sides[index]


def left_and_right(index: int, own: str, other: str) -> tuple[str, str]:
    """What the left and the right row are called where one of side ``index`` meets one of the other side."""
    return (own, other) if index == 0 else (other, own)


def and_residual(residual: str | None, left: str, right: str) -> str:
    """What two rows must meet beside the equality of their keys: DuckDB text over {l}.v0 ... and {r}.v0 ..."""
    return "" if residual is None else f" AND ({residual.format(l=left, r=right)})"


def create_statements(join: JoinTables, left: Sequence[str], right: Sequence[str]) -> list[str]:
    """Creates the tables of the sides, each with the columns that stand beside its own, the marks and the log."""
    marks = qualified_marks(join)
    beside = zip(join.sides, (left, right), strict=True)
    return [
        *(f"CREATE TABLE {side.qualified} ({', '.join([*side.typed, *columns])})" for side, columns in beside),
        f"CREATE TABLE {marks} (side UTINYINT, part VARCHAR, mark BIGINT NOT NULL, seen_at TIMESTAMPTZ NOT NULL, "
        "idle BOOLEAN NOT NULL, stands BIGINT, awaited BIGINT, PRIMARY KEY (side, part))",
        # A side of which nothing is known yet holds the other one back, until it counts as idle.
        f"INSERT INTO {marks} SELECT side, '', {NEVER}, now(), false, NULL, NULL FROM range(2) AS sides(side)",
        *logs.create_statements(join.log),
    ]


def qualified_marks(join: JoinTables) -> str:
    return qualified(join.marks)


# --- time -----------------------------------------------------------------------------------------------------------
def timed(join: JoinTables, index: int, batch: Batch, *extra: str) -> str:
    """The rows of a batch with their partition and the mark ``w`` before them; ``mark`` is the one before the batch.
    ``extra`` are further columns."""
    side = side_of(join, index)
    names = (*side.keys, *side.columns, "t", "r", "part")
    named = [f"{column} AS {name}" for column, name in zip((*batch.columns, PARTITION), names, strict=True)]
    if side.low is not None:
        named.append(f"{batch.mark} AS brought")
    rows = f"SELECT {', '.join([*named, *extra, RANK, PLACE])} FROM {batch.relation} WHERE {batch.taken}"
    if side.low is not None:
        # Not behind what this side counted as passed: a source that was idle may come back.
        return (
            f"SELECT b.*, m.mark, coalesce(greatest(b.brought, m.mark), {NEVER}) AS w FROM ({rows}) b "
            f"LEFT JOIN {qualified_marks(join)} m ON m.side = {index}"
        )
    # Groups, since a record may give several rows: none of them is before another.
    earlier = f"PARTITION BY part ORDER BY {RANK}, {PLACE} GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    before = f"greatest(mark, max(t) OVER ({earlier}))"
    return (
        f"SELECT *, coalesce({before} - {side.delay_us}, {NEVER}) AS w "
        f"FROM (SELECT b.*, nullif(m.mark, {NEVER}) AS mark FROM ({rows}) b "
        f"LEFT JOIN {qualified_marks(join)} m ON m.side = {index} AND m.part = b.part) q"
    )


def mark_statements(join: JoinTables, index: int) -> list[str]:
    """How far the side has come with the batch."""
    marks = qualified_marks(join)
    if side_of(join, index).low is not None:
        return [passing_statement(join, index, f"(SELECT max({PLACE}) + 1 FROM {INCOMING})")]
    return [
        f"INSERT OR REPLACE INTO {marks} SELECT {index}, part, max(greatest(mark, t)), now(), false, NULL, NULL "
        f"FROM {INCOMING} WHERE greatest(mark, t) IS NOT NULL GROUP BY part",
        f"UPDATE {marks} SET idle = false WHERE side = {index} AND idle "
        f"AND EXISTS (SELECT 1 FROM {marks} WHERE side = {index} AND NOT idle)",
        await_statement(join, index),
    ]


def await_statement(join: JoinTables, index: int) -> str:
    """Keeps where the silent partitions of a side (``silence``) are to stand. What is awaited already goes first."""
    awaited = join.awaited(index)
    return (
        f"UPDATE {qualified_marks(join)} SET awaited = {awaited}, seen_at = now() "
        f"WHERE side = {index} AND awaited <= stands AND stands < {awaited}"
    )


def passes(join: JoinTables, index: int, seq: int) -> str:
    """Whether a side that has read its log up to ``seq`` is further than it knows: nothing may have come from there."""
    return f"SELECT count(*) > 0 FROM {qualified_marks(join)} WHERE {_passed(join, index, str(seq))}"


def passing_statement(join: JoinTables, index: int, seq: str) -> str:
    """The side is as far as the low watermark of the log that it has read up to ``seq``."""
    low = side_of(join, index).low
    assert low is not None  # noqa: S101 - asked of sides that read a log
    return f"UPDATE {qualified_marks(join)} SET mark = ({logs.low_query(low, seq)}) WHERE {_passed(join, index, seq)}"


def _passed(join: JoinTables, index: int, seq: str) -> str:
    low = side_of(join, index).low
    assert low is not None  # noqa: S101
    return f"side = {index} AND mark < ({logs.low_query(low, seq)})"


def mark(join: JoinTables, index: int, *, idle: str) -> str:
    """How far a side has come, as :func:`reached`; ``idle`` is for a side that is idle."""
    return f"coalesce(({_least(join, index)} AND NOT idle), {idle})"


def reached(join: JoinTables, index: int) -> str:
    """How far a side has come: the least of its partitions."""
    return f"({_least(join, index)})"


def _least(join: JoinTables, index: int) -> str:
    delay_us = side_of(join, index).delay_us
    return f"SELECT min(coalesce(stands, mark)) - {delay_us} FROM {qualified_marks(join)} WHERE side = {index}"


def least_mark(join: JoinTables, index: int) -> str:
    """By what all partitions have shown, also silent ones, which may come back."""
    shown = f"CASE WHEN mark = {NEVER} THEN coalesce(stands, mark) ELSE mark END"
    return f"(SELECT min({shown}) - {side_of(join, index).delay_us} FROM {qualified_marks(join)} WHERE side = {index})"


def greatest_mark(join: JoinTables, index: int) -> str:
    return f"(SELECT max(mark) - {side_of(join, index).delay_us} FROM {qualified_marks(join)} WHERE side = {index})"


def wake_statements(join: JoinTables) -> list[str]:
    """When the server starts: the time when it did not run is no time without records. A table may be older than the
    columns of silent partitions."""
    marks = qualified_marks(join)
    return [
        *(f"ALTER TABLE {marks} ADD COLUMN IF NOT EXISTS {column} BIGINT" for column in ("stands", "awaited")),
        silence_begins_statement(join),
    ]


def silence_begins_statement(join: JoinTables) -> str:
    """Whatever is silent begins to be so now."""
    return f"UPDATE {qualified_marks(join)} SET seen_at = now(), idle = false"


# --- rows -----------------------------------------------------------------------------------------------------------
def alone(join: JoinTables, index: int, name: str) -> str:
    """A row of one side as a joined row: for SELECT from ``name``."""
    own = [f"{name}.{column}" for column in side_of(join, index).columns]
    nulls = ["NULL"] * len(side_of(join, 1 - index).columns)
    values: Sequence[str] = [*own, *nulls] if index == 0 else [*nulls, *own]
    return ", ".join([f"{name}.r", *values, f"make_timestamptz({name}.t)"])
