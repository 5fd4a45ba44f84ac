"""The SQL cursors that a session has open: where each stands, and how it may move."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.front import Field
from mvserver.session.cursors.cursor_rows import CursorRows, FetchedRows, cursor_memory
from mvserver.session.held_memory import HeldShare


@dataclass
class Cursor:
    name: str
    text: str  # of its DECLARE
    fields: tuple[Field, ...]
    rows: CursorRows
    scroll: bool
    hold: bool
    binary: bool
    kept: bool = False  # a COMMIT has let it live on
    number: int = 0  # counts the session's cursors
    created: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    _reading: FetchedRows | None = None

    def settle(self) -> None:
        """The cursor stands where the last FETCH has left it, also where its rows are still being read."""
        if self.rows.failed:
            raise SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, f'portal "{self.name}" cannot be run')
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.settle()

    def fetch(self, direction: str, count: int | None) -> FetchedRows:
        with self._used():
            self._reading = FetchedRows(self._towards(direction, count, move=False))
        return self._reading

    def move(self, direction: str, count: int | None) -> int:
        """As FETCH, without the rows; how many they would have been."""
        with self._used():
            if count == 0 and direction != "absolute":
                return int(self.rows.on_row)
            return sum(batch.num_rows for batch in self._towards(direction, count, move=True))

    @contextmanager
    def _used(self) -> Iterator[None]:
        """An error leaves the cursor unusable, as in PostgreSQL, also behind ROLLBACK TO SAVEPOINT."""
        self.settle()
        try:
            yield
        except BaseException:
            self.rows.failed = True
            raise

    # --- PostgreSQL's rules of movement -----------------------------------------------------------------------------
    def _towards(self, direction: str, count: int | None, *, move: bool) -> Iterator[pa.RecordBatch]:
        if direction == "absolute" and count is not None:
            return self._absolute(count)
        if direction == "relative" and count:
            return self._relative(count)
        forward = direction != "backward"
        if count is not None and count < 0:
            forward, count = not forward, -count
        if count == 0:
            return self._again(forward=forward)
        if forward:
            return self.rows.forward(count)
        if not (move and count is None and self.rows.at == 0):  # MOVE BACKWARD ALL is a rewind: nothing to do
            self._must_scroll()
        return self.rows.backward(count)

    def _absolute(self, number: int) -> Iterator[pa.RecordBatch]:
        """Row ``number``, from the end where it is negative; 0 is before the first."""
        rows = self.rows
        if number > 0:
            if number > rows.at:
                rows.pass_over(number - 1 - rows.at)
            else:
                self._must_scroll()
                rows.at = number - 1
            return rows.forward(1)
        if number < 0:
            self._must_scroll()
            rows.pass_over(None)
            rows.at = max(rows.at + number + 1, 0)
            return rows.backward(1)
        if rows.at != 0:
            self._must_scroll()
            rows.at = 0
        return iter(())

    def _relative(self, count: int) -> Iterator[pa.RecordBatch]:
        if count > 0:
            self.rows.pass_over(count - 1)
            return self.rows.forward(1)
        self._must_scroll()
        self.rows.at = max(self.rows.at + count + 1, 0)
        return self.rows.backward(1)

    def _again(self, *, forward: bool) -> Iterator[pa.RecordBatch]:
        """FETCH 0: the row on which the cursor stands."""
        if not forward or self.rows.on_row:
            self._must_scroll()
        if not self.rows.on_row:
            return iter(())
        self.rows.at -= 1
        return self.rows.forward(1)

    def _must_scroll(self) -> None:
        if not self.scroll:
            raise SqlError(
                sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cursor can only scan forward",
                hint="Declare it with SCROLL option to enable backward scan.",
            )


class Cursors:
    """By name; in one name space with the protocol's portals, as in PostgreSQL."""

    def __init__(self, share: HeldShare | None = None) -> None:
        self.budget = share if share is not None else cursor_memory().share("")
        self._cursors: dict[str, Cursor] = {}
        self._declared = 0

    @property
    def mark(self) -> int:
        """For ``discard_since``: a moment in the order of declarations."""
        return self._declared

    def all(self) -> Sequence[Cursor]:
        return tuple(self._cursors.values())

    def find(self, name: str) -> Cursor | None:
        return self._cursors.get(name)

    def get(self, name: str) -> Cursor:
        cursor = self._cursors.get(name)
        if cursor is None:
            raise SqlError(sqlstates.INVALID_CURSOR_NAME, f'cursor "{name}" does not exist')
        return cursor

    def check_free(self, name: str) -> None:
        if name in self._cursors:
            raise SqlError(sqlstates.DUPLICATE_CURSOR, f'cursor "{name}" already exists')

    def add(self, cursor: Cursor) -> None:
        self.check_free(cursor.name)
        self._declared += 1
        cursor.number = self._declared
        self._cursors[cursor.name] = cursor

    def check_room(self) -> None:
        if len(self._cursors) >= limits.CURSORS_MAX:
            raise SqlError(
                sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
                f"a session may have at most {limits.CURSORS_MAX} open cursors",
                hint="Use CLOSE for those that are not needed any more.",
            )

    def discard(self, name: str) -> None:
        """The protocol's Close: no error where there is none."""
        cursor = self._cursors.pop(name, None)
        if cursor is not None:
            cursor.rows.close()

    def discard_since(self, mark: int) -> None:
        """ROLLBACK, to a savepoint or of all: what was declared since is gone."""
        self._discard(cursor for cursor in self.all() if cursor.number > mark)

    def end_transaction(self) -> None:
        """COMMIT: those that are not held end; of those that are, one that has failed before its first COMMIT too."""
        self._discard(c for c in self.all() if not c.hold or (c.rows.failed and not c.kept))
        for cursor in self.all():
            cursor.kept = True

    def clear(self) -> None:
        self._discard(self.all())

    def _discard(self, cursors: Iterable[Cursor]) -> None:
        for cursor in tuple(cursors):
            self.discard(cursor.name)


_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("statement", pa.string()),
        ("is_holdable", pa.bool_()),
        ("is_binary", pa.bool_()),
        ("is_scrollable", pa.bool_()),
        ("creation_time", pa.timestamp("us", "UTC")),
    ]
)


class Listed(Protocol):
    """What pg_cursors shows: of a cursor, and of a portal of the protocol."""

    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def hold(self) -> bool: ...
    @property
    def binary(self) -> bool: ...
    @property
    def scroll(self) -> bool: ...
    @property
    def created(self) -> dt.datetime: ...


def cursors_table(cursors: Iterable[Listed] = ()) -> pa.Table:
    """As pg_cursors has them."""
    rows = [
        {
            "name": cursor.name,
            "statement": cursor.text,
            "is_holdable": cursor.hold,
            "is_binary": cursor.binary,
            "is_scrollable": cursor.scroll,
            "creation_time": cursor.created,
        }
        for cursor in cursors
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
