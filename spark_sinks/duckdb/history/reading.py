"""Reading a history: its rows at a moment and their place in it, and the changes behind a place.

Each call sees one committed state of DuckDB by a cursor of its own, so that no commit waits for a reader.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.quoting import quoted
from mvserver.resume_tokens import Seal, Token
from mvserver.visible_rows import VisibleRows
from spark_sinks.duckdb.history.epochs import KIND, EpochChanges
from spark_sinks.duckdb.history.log import LoggedView, extent_query, read_seen_statement, read_statement
from spark_sinks.duckdb.history.seen_changes import seen_kinds
from spark_sinks.duckdb.names import qualified_view

_BEGINNING = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_PLACES = ("_epoch", "_seq", "_at")


class HistoryLostError(Exception):
    """The changes behind a place are kept no more, or never were."""


@dataclass(frozen=True)
class Kept:
    """What is kept: the changes behind ``oldest``, of commits after ``since``."""

    oldest: Token
    since: dt.datetime
    latest: Token
    latest_epoch: int
    latest_at: dt.datetime
    seen_at: dt.datetime | None = None  # by one who may see some rows alone: what he is told has nothing of the others

    @property
    def shown_epoch(self) -> int:
        return self.latest_epoch if self.seen_at is None else 0

    @property
    def shown_at(self) -> dt.datetime:
        return self.seen_at or self.latest_at

    def of_some_rows(self) -> Kept:
        """As for who may see some rows alone: epochs are times."""
        return replace(self, latest_epoch=_micros(self.latest_at), seen_at=dt.datetime.now(dt.UTC))


def kept(cursor: duckdb.DuckDBPyConnection, view: LoggedView) -> Kept | None:
    try:
        rows = cursor.execute(extent_query(view)).fetchall()
    except duckdb.CatalogException:  # the log is gone with its view
        return None
    if not rows:
        return None
    incarnation, first, last, epoch, _, _, since, at = rows[0]
    return Kept(Token(incarnation, first - 1), _utc(since), Token(incarnation, last), epoch, _utc(at))


def changes_behind(
    cursor: duckdb.DuckDBPyConnection,
    view: LoggedView,
    token: Token,
    most: int = limits.HISTORY_PIECE_ROWS,
    visible: VisibleRows | None = None,
    seal: Seal | None = None,
) -> Sequence[EpochChanges]:
    """At most so many rows, of them those that are visible, with tokens that are sealed. The last epoch may have more.
    Raises HistoryLostError."""
    _prepare(cursor, visible)
    cursor.execute("BEGIN TRANSACTION")
    try:
        found = kept(cursor, view)
        if found is None or found.oldest.incarnation != token.incarnation or token.seq < found.oldest.seq:
            raise HistoryLostError
        if visible is None:
            rows = cursor.sql(read_statement(view), params=[token.seq, most + 1]).to_arrow_table()
            return list(_epochs(token.incarnation, rows, most))
        with _policies_may_fail():
            # with the row before: it may be one of a pair with the first
            rows = cursor.sql(read_seen_statement(view, visible), params=[token.seq - 1, most + 2]).to_arrow_table()
    finally:
        cursor.execute("ROLLBACK")  # nothing was written
    kinds = seen_kinds(rows.column(KIND).to_pylist(), rows.column("_seen").to_pylist())
    place = rows.schema.get_field_index(KIND)
    rows = rows.drop_columns(["_seen"]).set_column(place, KIND, pa.array(kinds, pa.string()))
    if rows.num_rows and rows.column("_seq")[0].as_py() == token.seq:
        rows = rows.slice(1)
    return [_seen(epoch, visible, seal) for epoch in _epochs(token.incarnation, rows, most)]


def _prepare(cursor: duckdb.DuckDBPyConnection, visible: VisibleRows | None) -> None:
    for setting in () if visible is None else visible.settings:
        cursor.execute(setting)
    cursor.execute("SET TimeZone = 'UTC'")


@contextmanager
def _policies_may_fail() -> Iterator[None]:
    """The words of such an error may be of a hidden row: they are not shown."""
    try:
        yield
    except (duckdb.ConversionException, duckdb.InvalidInputException, duckdb.OutOfRangeException) as error:
        raise SqlError(
            sqlstates.DATA_EXCEPTION,
            "the condition of a row policy failed",
            detail="It has no value for some row of the view.",
        ) from error


def _micros(moment: dt.datetime) -> int:
    return (moment - _BEGINNING) // dt.timedelta(microseconds=1)


def _seen(epoch: EpochChanges, visible: VisibleRows, seal: Seal | None) -> EpochChanges:
    """Without the rows that have no kind."""
    mask = pc.is_valid(epoch.rows.column(0))
    numbers = [epoch.first_seq + at for at, seen in enumerate(mask.to_pylist()) if seen]
    return replace(
        epoch, epoch=_micros(epoch.at), rows=epoch.rows.filter(mask), numbers=numbers, through=epoch.last_seq,
        mark=visible.mark, seal=seal, _made={},
    )  # fmt: skip


def _epochs(incarnation: str, rows: pa.Table, most: int) -> Iterator[EpochChanges]:
    """The rows by epoch; the one more that was read says whether the last epoch goes on."""
    numbers = rows.column("_epoch").to_pylist()
    shown = rows.drop_columns(list(_PLACES))
    start, count = 0, min(len(numbers), most)
    while start < count:
        end = start
        while end < count and numbers[end] == numbers[start]:
            end += 1
        complete = end == len(numbers) or numbers[end] != numbers[start]
        at, seq = rows.column("_at")[start].as_py(), rows.column("_seq")[start].as_py()
        piece = shown.slice(start, end - start).combine_chunks()
        yield EpochChanges(incarnation, numbers[start], _utc(at), seq, piece, complete)
        start = end


class SnapshotRows:
    """The rows that a view has at a moment, and the place of that moment in its history. ``close`` ends it."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, view: LoggedView, visible: VisibleRows | None = None) -> None:
        self._cursor = cursor
        self._closing = threading.Lock()
        self._closed = False
        _prepare(cursor, visible)
        cursor.execute("BEGIN TRANSACTION")
        try:
            found = kept(cursor, view)
            if found is None:
                raise HistoryLostError
            self.place = found if visible is None else found.of_some_rows()
            seen = "" if visible is None else f" AS {quoted(visible.name)} WHERE {visible.condition}"
            rows = cursor.sql(f"SELECT * FROM {qualified_view(view.view_id)}{seen}")
            with _policies_may_fail():
                self._batches = iter(rows.to_arrow_reader(limits.HISTORY_PIECE_ROWS))
        except duckdb.CatalogException:  # the view is just being made anew
            self.close()
            raise HistoryLostError from None
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        with _policies_may_fail():
            return next(self._batches)

    def interrupt(self) -> None:
        """From any thread."""
        with self._closing:
            if not self._closed:
                self._cursor.interrupt()

    def close(self) -> None:
        with self._closing:
            if not self._closed:
                self._closed = True
                self._cursor.close()


def _utc(moment: dt.datetime) -> dt.datetime:
    return moment.astimezone(dt.UTC)
