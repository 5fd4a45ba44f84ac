"""Windowed views: which records of a batch come too late, and how far the watermark is.

A partition's watermark is the greatest event time before a record, in record order, minus a delay. A record is late
where its window ended before the watermark of its own partition: that depends on the records alone, not on how the
source was cut into batches. The view's watermark, the least of its partitions', says which windows are closed: those
are shown where a view shows closed windows only, and removed when they are older than the view keeps them.

All of it is changed in the transaction of the rows. Times are microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from mvserver.limits import LATE_ROWS_KEPT_MAX
from spark_sinks.duckdb.changes.logs import Log, low_query
from spark_sinks.duckdb.names import qualified
from spark_sinks.duckdb.record_columns import PARTITION, PLACE, RANK, SEGMENT

JUDGED = "mv_judged"
ON_TIME = "mv_on_time"
MARK = "mv_mark"  # the watermark at a record

SCHEMA = """
CREATE TABLE IF NOT EXISTS "_ledger".watermarks (
    query_id VARCHAR NOT NULL, partition VARCHAR NOT NULL, event_us BIGINT NOT NULL, PRIMARY KEY (query_id, partition));
CREATE TABLE IF NOT EXISTS "_ledger".windows (
    query_id VARCHAR PRIMARY KEY, watermark_us BIGINT, late BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS "_ledger".late_rows (
    query_id VARCHAR NOT NULL, number BIGINT NOT NULL, position VARCHAR NOT NULL, event_us BIGINT,
    window_start TIMESTAMP, window_end TIMESTAMP, watermark_us BIGINT, late_at TIMESTAMPTZ NOT NULL);
"""


@dataclass(frozen=True)
class Windowing:
    """Of a view's state. ``start_key`` and ``end_key`` are the keys that are the window's bounds; ``gap_us`` is that
    of sessions, None for windows that do not grow. Of ``latest`` sessions the last one of each of the other keys is
    shown, until the watermark passes its end."""

    start_key: int
    end_key: int
    delay_us: int = 0
    grace_us: int = 0
    gap_us: int | None = None
    final: bool = False
    retention_us: int | None = None
    latest: bool = False

    @property
    def closes(self) -> bool:
        """Its closed windows take no more records, not even one whose own partition is behind."""
        return self.final or self.retention_us is not None

    def others(self, keys: Sequence[str]) -> tuple[str, ...]:
        """The keys beside the bounds."""
        return tuple(key for i, key in enumerate(keys) if i not in (self.start_key, self.end_key))

    @property
    def closing_us(self) -> int:
        """How far behind its end a window is closed. A record that is not late may lie one gap before the watermark,
        and must not find the session closed that it belongs to."""
        return self.grace_us + (self.gap_us or 0)


@dataclass(frozen=True)
class Aging:
    """Of the state of a view without groups: each row goes when its event time is so far behind the watermark."""

    delay_us: int
    retention_us: int


@dataclass(frozen=True)
class Removal:
    """What a watermark removes: rows of these tables whose time, an SQL expression, is so far behind it."""

    tables: tuple[str, ...]
    time_us: str
    retention_us: int

    def condition(self, mark: int) -> str:
        """Of what a watermark removes."""
        return f"{self.time_us} <= {mark - self.retention_us}"


@dataclass(frozen=True)
class WatermarkRule:
    """What the watermark of a state is, what it removes, and what is done when it has moved."""

    delay_us: int
    removal: Removal | None = None
    moved: tuple[str, ...] = ()


@dataclass(frozen=True)
class Passage:
    """Where a watermark is and where its partitions say that it should be; ``before`` is None for the first."""

    before: int | None
    after: int

    @property
    def moves(self) -> bool:
        return self.after != self.before


@dataclass(frozen=True)
class Judging:
    """The columns of a batch that lateness is judged by: the event time, and the bounds of the record's window. Rows of
    a log bring the watermark that they are judged by, ``mark``."""

    event: str
    flag: str
    start: str
    end: str
    mark: str | None = None


@dataclass(frozen=True)
class LateRows:
    """The rows of a relation that came too late, as text: their partition and event time, the bounds of the time that
    they came too late for, and the watermark that had passed it."""

    relation: str
    condition: str
    partition: str
    event: str
    start: str
    end: str
    mark: str


@dataclass(frozen=True)
class Standing:
    """The partitions that a view reads, and those that are idle: they do not hold its watermark back. A view over the
    rows of a ``log`` with a low watermark has that, once it has read the rows before number ``seq``."""

    query_id: str
    partitions: tuple[str, ...]
    idle: frozenset[str] = frozenset()
    log: Log | None = None
    seq: int = 0


def forget(cursor: duckdb.DuckDBPyConnection, query_id: str) -> None:
    for table in ("watermarks", "windows", "late_rows"):
        cursor.execute(f'DELETE FROM "_ledger".{table} WHERE query_id = $1', [query_id])


def watermark(cursor: duckdb.DuckDBPyConnection, query_id: str) -> int | None:
    rows = cursor.execute('SELECT watermark_us FROM "_ledger".windows WHERE query_id = $1', [query_id]).fetchall()
    return None if not rows else rows[0][0]


def judge(
    cursor: duckdb.DuckDBPyConnection, query_id: str, windowing: Windowing, judging: Judging, batch: str
) -> pa.Table:
    """The batch with the watermark at each record, and whether it counts: it passes and is not late."""
    closed = watermark(cursor, query_id) if windowing.closes else None
    mark = MARK if closed is None else f"greatest({MARK}, {closed})"
    late = f"coalesce(epoch_us({judging.end}) + {windowing.grace_us} <= {mark}, false)"
    if judging.mark is None:
        rows = marked(query_id, judging.event, windowing.delay_us, batch)
    else:
        rows = f"SELECT *, {judging.mark} AS {MARK} FROM {batch}"
    return cursor.sql(
        f"SELECT *, {judging.flag} AND {judging.event} IS NOT NULL AND NOT {late} AS {ON_TIME} FROM ({rows})"
    ).to_arrow_table()


def marked(query_id: str, event: str, delay_us: int, batch: str) -> str:
    """Query of a batch with the watermark at each record: that of its partition."""
    # The record itself may be among those before it: its window ends after its event time.
    before = f"max({event}) OVER (PARTITION BY {PARTITION} ORDER BY {RANK}, {PLACE} ROWS UNBOUNDED PRECEDING)"
    return (
        f"SELECT b.*, greatest({before}, c.event_us) - {delay_us} AS {MARK} FROM {batch} AS b "
        f"LEFT JOIN (SELECT partition, event_us FROM \"_ledger\".watermarks WHERE query_id = '{query_id}') AS c "
        f"ON b.{PARTITION} = c.partition"
    )


def take_judged(cursor: duckdb.DuckDBPyConnection, query_id: str, judging: Judging, judged: pa.Table) -> None:
    """Keeps what is late, and how far each partition is."""
    late = judged.filter(pc.and_not(judged.column(judging.flag), judged.column(ON_TIME))).num_rows
    if late:
        rows = LateRows(
            JUDGED, f"{judging.flag} AND NOT {ON_TIME}", PARTITION, judging.event, judging.start, judging.end, MARK
        )
        for statement in late_statements(query_id, rows):
            cursor.execute(statement)
    if judging.mark is None:
        carry(cursor, query_id, judging.event, JUDGED)


def carry(cursor: duckdb.DuckDBPyConnection, query_id: str, event: str, relation: str) -> None:
    """Keeps how far each partition is after a batch."""
    cursor.execute(carry_statement(query_id, event, relation))


def carry_statement(query_id: str, event: str, relation: str) -> str:
    return (
        f"INSERT INTO \"_ledger\".watermarks AS w SELECT '{query_id}', {PARTITION}, max({event}) FROM {relation} "
        f"WHERE {event} IS NOT NULL GROUP BY {PARTITION} "
        "ON CONFLICT (query_id, partition) DO UPDATE SET event_us = greatest(w.event_us, excluded.event_us)"
    )


def source_mark(query_ids: Sequence[str | None]) -> str:
    """Query of the least watermark of several sources; NULL as long as one has none."""
    listed = ", ".join(f"'{query_id}'" for query_id in query_ids)
    return (
        f"SELECT CASE WHEN count(watermark_us) = {len(query_ids)} THEN min(watermark_us) END AS mark "
        f'FROM "_ledger".windows WHERE query_id IN ({listed})'
    )


def late_statements(query_id: str, late: LateRows) -> list[str]:
    """Counts late rows, and keeps the last of them. A record is late once for the same time, whatever number of rows it
    gives."""
    rows = (
        f"(SELECT DISTINCT {late.partition} AS part, {SEGMENT}, {RANK}, {PLACE}, {late.event} AS event, "
        f"{late.start} AS first, {late.end} AS last, {late.mark} AS mark FROM {late.relation} WHERE {late.condition})"
    )
    counted = f"(SELECT late FROM \"_ledger\".windows WHERE query_id = '{query_id}')"
    return [
        f"INSERT INTO \"_ledger\".windows AS w SELECT '{query_id}', NULL, count(*) FROM {rows} HAVING count(*) > 0 "
        "ON CONFLICT (query_id) DO UPDATE SET late = w.late + excluded.late",
        f"INSERT INTO \"_ledger\".late_rows SELECT '{query_id}', "
        f"{counted} - count(*) OVER () + row_number() OVER (ORDER BY part, {RANK}, {PLACE}, first, last), "
        f"{SEGMENT} || CASE WHEN {SEGMENT} = part THEN ':' || {PLACE} ELSE '' END, "
        f"event, first, last, mark, now() FROM {rows}",
        f"DELETE FROM \"_ledger\".late_rows WHERE query_id = '{query_id}' "
        f"AND number <= {counted} - {LATE_ROWS_KEPT_MAX}",
    ]


def passage(cursor: duckdb.DuckDBPyConnection, standing: Standing, rule: WatermarkRule) -> Passage | None:
    """None as long as the view has no watermark."""
    known: Mapping[str, int] = dict(
        cursor.execute(
            'SELECT partition, event_us FROM "_ledger".watermarks WHERE query_id = $1', [standing.query_id]
        ).fetchall()
    )
    reached = _least(known, standing) if standing.log is None else _low(cursor, standing.log, standing.seq)
    before = watermark(cursor, standing.query_id)
    marks = [mark for mark in (before, None if reached is None else reached - rule.delay_us) if mark is not None]
    return Passage(before, max(marks)) if marks else None


def move(cursor: duckdb.DuckDBPyConnection, query_id: str, mark: int) -> None:
    """Sets the view's watermark."""
    cursor.execute(
        'INSERT INTO "_ledger".windows VALUES ($1, $2, 0) '
        "ON CONFLICT (query_id) DO UPDATE SET watermark_us = excluded.watermark_us",
        [query_id, mark],
    )


def remove(cursor: duckdb.DuckDBPyConnection, removal: Removal, mark: int) -> None:
    """What is older than the view keeps it."""
    for table in removal.tables:
        cursor.execute(f"DELETE FROM {qualified(table)} WHERE {removal.condition(mark)}")


def _low(cursor: duckdb.DuckDBPyConnection, log: Log, seq: int) -> int | None:
    ((mark,),) = cursor.execute(low_query(log.low), [seq]).fetchall()
    return None if mark is None else int(mark)


def _least(known: Mapping[str, int], standing: Standing) -> int | None:
    """None as long as a partition that is not idle has shown no event time. Where all are idle, the furthest counts:
    there is nobody to wait for."""
    live = [partition for partition in standing.partitions if partition not in standing.idle]
    if not live:
        return max(known.values(), default=None)
    if any(partition not in known for partition in live):
        return None
    return min(known[partition] for partition in live)


def shown(query_id: str, windowing: Windowing, others: Sequence[str]) -> str:
    """What leaves the rows of the state that are seen: all, those of closed windows, or the latest session of each of
    the ``others``, the keys beside the bounds."""
    end = f"k{windowing.end_key}"
    mark = f"FROM \"_ledger\".windows WHERE query_id = '{query_id}')"
    if windowing.final:
        return f" WHERE {end} <= (SELECT make_timestamp(watermark_us - {windowing.closing_us}) {mark}"
    if windowing.latest:
        live = f"coalesce({end} > (SELECT make_timestamp(watermark_us) {mark}, true)"
        return f" WHERE {live} QUALIFY row_number() OVER (PARTITION BY {', '.join(others)} ORDER BY {end} DESC) = 1"
    return ""


def turning(windowing: Windowing, passage: Passage) -> str:
    """The condition on a row of the state that the watermark closes its window now, or passes the end of its session:
    it comes to be seen, or goes."""
    end = f"epoch_us(k{windowing.end_key}) + {0 if windowing.latest else windowing.closing_us}"
    return f"{end} <= {passage.after}" + ("" if passage.before is None else f" AND {end} > {passage.before}")


def progress(cursor: duckdb.DuckDBPyConnection) -> Mapping[str, tuple[int | None, int]]:
    """(watermark, late rows) by query id."""
    rows = cursor.execute('SELECT query_id, watermark_us, late FROM "_ledger".windows').fetchall()
    return {query_id: (mark, late) for query_id, mark, late in rows}


def late_rows(cursor: duckdb.DuckDBPyConnection, limit: int) -> list[tuple[Any, ...]]:
    """(query id, position, event time, window start, window end, watermark, late at), the newest first."""
    return cursor.execute(
        "SELECT query_id, position, event_us, window_start, window_end, watermark_us, late_at "
        'FROM "_ledger".late_rows ORDER BY late_at DESC, number DESC LIMIT $1',
        [limit],
    ).fetchall()
