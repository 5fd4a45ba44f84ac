"""The rows of one view as Python's values, found by their keys: what a look-up costs is then a dictionary's access.

Rows are told apart by the values of the key columns, by the value itself where there is one column, else by their
tuple. Only integers and texts can be keys: Python compares them exactly as DuckDB does (texts by code point, which is
the order of their UTF-8). An order of a key column is a sorted list of its values beside one of the keys. An index of
some key columns has the keys by their values; a commit changes it at once, where an order is made anew for a new key.

Readers take no lock. Nothing that they have begun to read changes under them but the rows themselves, one by one, and
who keeps the view tells them by its ``token`` whether these were of one state.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from sys import getsizeof
from typing import Any

from mvserver import limits

Row = tuple[Any, ...]
Frames = dict[Any, tuple[Row, bytes]]
"""By key: the row that a message was made of, and the message."""
Order = tuple[list[Any], list[Any]]
"""The values of a key column, and the keys."""
Index = dict[Any, Any]
"""By the value of a key column, or the tuple of several: the key, or the set of the keys where there are more."""

_SLOT_BYTES = 64  # of a dictionary that is as empty as they get
_TUPLE_BYTES = 64  # and 8 for each value
_PLACE_BYTES = 16  # in the two lists of an order
_SET_BYTES = 216  # of a set of up to four keys
_MEMBER_BYTES = 48  # of a key in a larger set
_SHORT_BITS = 60  # integers of so many bits have one size
_PIECE_KEYS = 10_000  # entered into a new index between two looks at the memory


class Budget:
    """Bytes that all views together may take."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        with self._lock:
            if self.taken + size > self.most:
                return False
            self.taken += size
            return True

    def give_back(self, size: int) -> None:
        with self._lock:
            self.taken -= size


class FinishedView:
    """``names``, ``types`` (Arrow's) and rows begin with the key columns, whose Python types are ``key_types``."""

    def __init__(self, names: Sequence[str], types: Sequence[Any], key_types: Sequence[type], budget: Budget) -> None:
        self.names = tuple(names)
        self.types = tuple(types)
        self.key_types = tuple(key_types)
        self.rows: dict[Any, Row] = {}
        self.token: object | None = None  # another one each time that it has come up to date; None while it is not
        self.size = 0  # all that it takes of the memory, in bytes
        self._budget = budget
        self._lock = threading.RLock()  # of frames and size; readers take it only to keep a new frame
        self._wanted: set[int] = set()  # key columns whose order somebody has asked for
        self._orders: dict[int, Order] = {}
        self._wanted_indexes: set[tuple[int, ...]] = set()
        self._indexes: dict[tuple[int, ...], Index | None] = {}  # None where there is no room for it
        self._frames: dict[tuple[object, tuple[int, ...]], Frames] = {}
        keys = len(self.key_types)
        self._entry_bytes = _SLOT_BYTES + _TUPLE_BYTES + (_TUPLE_BYTES + 8 * keys if keys > 1 else 0)
        self._key_of: Callable[[Row], Any] = itemgetter(*range(keys))

    # --- who keeps it: one thread at a time, while there is no token --------------------------------------------------
    def add(self, rows: Sequence[Row]) -> bool:
        """False where there is no room for them, or two rows have one key: then it cannot be used."""
        if not self._grow(sum([self.weight(row) for row in rows])):
            return False
        before, key_of = len(self.rows), self._key_of
        self.rows.update([(key_of(row), row) for row in rows])
        return len(self.rows) == before + len(rows)

    def replace(self, keys: Iterable[Any], rows: Sequence[Row]) -> bool:
        """The rows of these keys are now ``rows``. False as above."""
        gone: set[Any] = set()
        size, weight, kept = 0, self.weight, self.rows
        for key in keys:
            row = kept.pop(key, None)
            if row is not None:
                gone.add(key)
                size += weight(row)
        self._shrink(size)
        self._forget_frames(gone)
        if not self.add(rows):
            return False
        there = set(map(self._key_of, rows))
        came, gone = there - gone, gone - there
        if not (came or gone):
            return True
        for columns, index in self._indexes.items():
            if index is not None:
                self._shrink(_take_out(index, columns, gone))
                if not self._grow(_enter(index, columns, came)):
                    return False
        return all(
            self._put_in_order(column, [key for key in order if key not in gone] + list(came))
            for column, (_, order) in list(self._orders.items())
        )

    def takes_at_once(self, rows: Sequence[Row]) -> bool:
        """Whether ``replace`` by these rows is quick: no order has to be made anew."""
        return not self._orders or all(self._key_of(row) in self.rows for row in rows)

    def take(self, rows: Sequence[Row]) -> bool:
        """The rows of their keys are now these. False as above. Nothing is moved for those whose keys are there."""
        key_of, kept, weight, first = self._key_of, self.rows, self.weight, len(self.key_types)
        taken: dict[Any, Row] = {}
        changed: list[Any] = []
        growth = 0
        for row in rows:
            key = key_of(row)
            taken[key] = row
            before = kept.get(key)
            if before is not None:
                changed.append(key)
                taken[key] = before[:first] + row[first:]  # the rows, indexes and orders have one object for a key
                for new, old in zip(row[first:], before[first:], strict=True):
                    if not (type(new) is type(old) is int and (new | old) >> _SHORT_BITS == 0):
                        growth += _value_weight(new) - _value_weight(old)
        if len(taken) < len(rows):
            return False
        came: Collection[Any] = taken.keys() - changed if len(changed) < len(rows) else ()
        growth += sum([weight(taken[key]) for key in came])
        kept.update(taken)
        self._forget_frames(changed)  # behind that, when no more are kept of the rows of before
        if growth < 0:
            self._shrink(-growth)
        elif not self._grow(growth):
            return False
        return not came or self._have_come(came)

    def _have_come(self, came: Collection[Any]) -> bool:
        """Into the indexes and orders. False where there is no room."""
        return all(
            self._grow(_enter(index, columns, came)) for columns, index in self._indexes.items() if index is not None
        ) and all(self._put_in_order(column, [*order, *came]) for column, (_, order) in list(self._orders.items()))

    def arrange(self) -> bool:
        """By the columns that were asked for. False where there is no room for an order."""
        for columns in self._wanted_indexes - self._indexes.keys():
            self._indexes[columns] = self._make_index(columns)
        return all(self._put_in_order(column, list(self.rows)) for column in self._wanted - self._orders.keys())

    @property
    def is_ordered(self) -> bool:
        """By a column at least: a key that comes or goes has its order made anew."""
        return bool(self._orders)

    @property
    def lacks_arrangement(self) -> bool:
        return len(self._wanted) > len(self._orders) or len(self._wanted_indexes) > len(self._indexes)

    def give_up(self) -> None:
        """Gives its memory back."""
        self.token = None
        with self._lock:
            self.rows, self._orders, self._indexes, self._frames = {}, {}, {}, {}
        self._shrink(self.size)

    def _put_in_order(self, column: int, keys: list[Any]) -> bool:
        """A NULL is in no range."""
        if len(self.key_types) == 1:
            keys = sorted(key for key in keys if key is not None)
            order = keys, keys
        else:
            keys = [key for key in keys if key[column] is not None]
            keys.sort(key=itemgetter(column))  # what is in order already costs a comparison each
            order = [key[column] for key in keys], keys
        before = self._orders.get(column, ((), ()))
        self._shrink(_PLACE_BYTES * len(before[0]))
        if not self._grow(_PLACE_BYTES * len(keys)):
            return False
        self._orders[column] = order
        return True

    def _make_index(self, columns: tuple[int, ...]) -> Index | None:
        """None where there is no room for it: then look-ups by these columns are not answered."""
        index: Index = {}
        keys, taken = list(self.rows), 0
        for at in range(0, len(keys), _PIECE_KEYS):
            size = _enter(index, columns, keys[at : at + _PIECE_KEYS])
            if not self._grow(size):
                self._shrink(taken)
                return None
            taken += size
        return index

    def weight(self, row: Row) -> int:
        """Bytes of a row, its key and its place among the others."""
        size = self._entry_bytes + 8 * len(row)
        for value in row:
            if value is not None:
                size += (getsizeof(value) + 15) & ~15  # as _rounded has it: a call would cost as much again
        return size

    def _grow(self, size: int) -> bool:
        with self._lock:
            if not self._budget.take(size):
                return False
            self.size += size
            return True

    def _shrink(self, size: int) -> None:
        with self._lock:
            self._budget.give_back(size)
            self.size -= size

    # --- who reads ----------------------------------------------------------------------------------------------------
    def order(self, column: int) -> Order | None:
        """None until it is made."""
        found = self._orders.get(column)
        if found is None:
            self._wanted.add(column)
        return found

    def index(self, columns: tuple[int, ...]) -> Index | None:
        """Of some columns of the key, not all of them. None until it is made, or where there is no room for it."""
        found = self._indexes.get(columns)
        if found is None:
            self._wanted_indexes.add(columns)
        return found

    def frames(self, framer: object, columns: tuple[int, ...]) -> Frames:
        found = self._frames.get((framer, columns))
        if found is None:
            with self._lock:
                if len(self._frames) >= limits.FINISHED_ROWS_FORMS_MAX:
                    self._shrink(sum(_frame_weight(f) for frames in self._frames.values() for _, f in frames.values()))
                    self._frames = {}
                found = self._frames[framer, columns] = {}
        return found

    def keep_frame(self, frames: Frames, key: Any, row: Row, frame: bytes) -> None:
        """For the next one who asks for the row in this form, as long as there is room."""
        with self._lock:
            kept = self.rows.get(key) is row and key not in frames  # not one of a state that has passed
            if kept and self._grow(_frame_weight(frame)):
                frames[key] = (row, frame)

    def _forget_frames(self, keys: Collection[Any]) -> None:
        with self._lock:
            for frames in self._frames.values():
                for key in keys:
                    kept = frames.pop(key, None)
                    if kept is not None:
                        self._shrink(_frame_weight(kept[1]))


def _enter(index: Index, columns: tuple[int, ...], keys: Iterable[Any]) -> int:
    """The bytes that it takes more. A NULL is equal to nothing, and so in no index."""
    value_of, size = itemgetter(*columns), 0
    for key in keys:
        value = value_of(key)
        if _has_null(value):
            continue
        kept = index.get(value)
        if kept is None:
            index[value] = key
        else:
            size -= _index_weight(value, kept)
            if type(kept) is set:
                kept.add(key)
            else:
                index[value] = {kept, key}
        size += _index_weight(value, index[value])
    return size


def _take_out(index: Index, columns: tuple[int, ...], keys: Iterable[Any]) -> int:
    """The bytes that it takes less."""
    value_of, size = itemgetter(*columns), 0
    for key in keys:
        value = value_of(key)
        if _has_null(value):
            continue
        kept = index[value]
        size += _index_weight(value, kept)
        if type(kept) is set and len(kept) > 1:
            kept.discard(key)
            size -= _index_weight(value, kept)
        else:
            del index[value]
    return size


def _has_null(value: Any) -> bool:
    return None in value if type(value) is tuple else value is None


def _index_weight(value: Any, kept: Any) -> int:
    """Bytes of an entry; values and keys themselves are those of the rows."""
    tuples = _TUPLE_BYTES + 8 * len(value) if type(value) is tuple else 0
    members = 0 if type(kept) is not set else _SET_BYTES + (_MEMBER_BYTES * len(kept) if len(kept) > 4 else 0)
    return _SLOT_BYTES + tuples + members


def _frame_weight(frame: bytes) -> int:
    return _SLOT_BYTES + _TUPLE_BYTES + _rounded(getsizeof(frame))


def _value_weight(value: Any) -> int:
    return 0 if value is None else _rounded(getsizeof(value))


def _rounded(size: int) -> int:
    """As the allocator gives it."""
    return (size + 15) & ~15
