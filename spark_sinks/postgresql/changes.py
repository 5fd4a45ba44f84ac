"""From the messages of one table's stream to the records of a pipeline: which change makes which records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks import oversize
from spark_sinks.postgresql.pgoutput import (
    OPS_OF_NEW_ROWS,
    Begin,
    Change,
    Commit,
    Message,
    Table,
    Truncate,
    Values,
    parse,
)
from spark_sinks.postgresql.positions import lsn_text
from spark_sinks.postgresql.records import Envelope, RowColumn, RowShape, UnknownKeyError, enveloped, filled
from spark_sinks.postgresql.spool import Barrier, Spool
from spark_sinks.postgresql.tables import SourceTable


@dataclass(frozen=True)
class Break:
    """``words`` have a place for the table."""

    words: str
    detail: str


@dataclass(frozen=True)
class KnownTable:
    """A table as its pipeline knows it. ``types``: the oids of all columns that it has had; ``numbers``: which of the
    columns of that name it was; ``bases``: of domains, what they are made of, with its ``modifiers``; ``key``: what its
    rows are told apart by."""

    database: str
    entity: str
    oid: int
    key: tuple[str, ...]
    types: Mapping[str, int]
    bases: Mapping[int, int]
    numbers: Mapping[str, int]
    shape: int = 0
    modifiers: Mapping[int, int] = field(default_factory=dict)

    def followed_by(self, now: KnownTable) -> KnownTable:
        """What is known when a view begins with the rows of now. Rows that became others without a change are a new
        shape; columns that came and went are not."""
        return replace(
            now,
            types={**self.types, **now.types},
            bases={**self.bases, **now.bases},
            modifiers={**self.modifiers, **now.modifiers},
            numbers={**self.numbers, **now.numbers},
            shape=self.shape + (self.broken_by(now) is not None),
        )

    def broken_by(self, now: KnownTable) -> Break | None:
        """Why the rows that were read are not those that the table has now, though no change says so."""
        if self.key != now.key:
            return Break("the key of {} was changed", f"It was ({', '.join(self.key)}).")
        return self.retyped(now.types) or self.made_anew(now.numbers)

    def retyped(self, types: Mapping[str, int]) -> Break | None:
        name = _differing(self.types, types)
        return None if name is None else Break("a column of {} has another type now", f'It is column "{name}".')

    def made_anew(self, numbers: Mapping[str, int]) -> Break | None:
        name = _differing(self.numbers, numbers)
        return None if name is None else Break("a column of {} was dropped and added again", f'It is column "{name}".')


def _differing(before: Mapping[str, int], now: Mapping[str, int]) -> str | None:
    return next((name for name, value in now.items() if before.get(name, value) != value), None)


_HANDED_RECORDS = 512
_HANDED_BYTES = 1024 * 1024
_TRUNCATED = Break("{} was truncated", "The changes do not say which rows went away.")
_LARGE_KEY = Break("the log does not have the key of a row of {}", "The value is large and was not changed.")


def known_now(database: str, table: SourceTable) -> KnownTable:
    """All that its catalog says of it."""
    types = {column.name: column.type_oid for column in table.published}
    bases = {column.type_oid: column.base_type_oid for column in table.columns}
    numbers = {column.name: column.number for column in table.published}
    modifiers = {c.type_oid: c.modifier for c in table.columns if c.type_oid != c.base_type_oid}
    return KnownTable(database, table.entity, table.oid, table.key, types, bases, numbers, modifiers=modifiers)


class ChangeRecords:
    """Puts the records of each transaction into the spool. ``keyed``: they are rows of a changelog.

    A changelog stands still before a transaction after which its rows cannot be told from the changes: a truncation, a
    column whose type was changed or that was made anew, a key that is another one. It stands there until what is known
    of the table is told anew. What it reads is right or it is not read.
    """

    def __init__(
        self,
        known: KnownTable,
        spool: Spool,
        *,
        keyed: bool,
        record_bytes_max: int,
        numbers: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        """``numbers``: those that the table's columns have now, as its server says, which is asked."""
        self._known = known
        self._envelope = Envelope(known.database, *known.entity.split(".", 1))  # which a pipeline's table keeps
        self._spool = spool
        self._keyed = keyed
        self._record_bytes_max = record_bytes_max
        self._numbers = numbers
        self._shape: RowShape | None = None
        self._key_columns: tuple[int, ...] = ()  # places of the replica identity, of a row that has nothing else
        self._stopped: SqlError | None = None  # why the transaction under way is not read
        self._unreadable: SqlError | None = None  # why none is, until the table is known anew
        self._readable = b""  # the oid of the table in messages, while its rows are read
        self._next: KnownTable | None = None
        self._last: Table | None = None  # the table's own words
        self._begin: Begin | None = None
        self._lsn = ""
        self._number = 0
        self._tail = b""
        self._keys: list[bytes | None] = []  # of the transaction under way, not in the spool yet
        self._values: list[bytes | None] = []
        self._bytes = 0  # of these values

    def take_message(self, data: bytes) -> None:
        """As it came."""
        op = OPS_OF_NEW_ROWS.get(data[0])
        if op is None or not self._takes_new_row(data, op):
            self.take(parse(data))

    def _takes_new_row(self, data: bytes, op: bytes) -> bool:
        """A change that has nothing but its new row is taken without being read as a message before: most are so."""
        shape = self._shape
        if shape is None or data[1:5] != self._readable or self._stopped is not None:
            return False
        parts = shape.new_row(data)
        if parts is None:
            return False
        row = shape.joined(parts)
        if self._keyed:
            self._add(shape.joined_key(parts), row)
        else:
            self._add(None, enveloped(op, None, row, self._tail))
        return True

    def take(self, message: Message) -> None:
        if isinstance(message, Change):
            self._change(message)
        elif isinstance(message, Begin):
            self._begun(message)
        elif isinstance(message, Commit):
            self._committed(message)
        elif isinstance(message, Table):
            self._table(message)
        elif isinstance(message, Truncate):
            self._truncated(message)

    def know(self, known: KnownTable) -> None:
        """From the next transaction on. May be called by any thread."""
        self._next = known

    def cut_off(self) -> None:
        """The connection has ended; the transaction under way comes again."""
        self._drop_records()
        self._begin = self._stopped = self._shape = self._last = self._unreadable = None
        self._readable = b""

    @property
    def in_transaction(self) -> bool:
        return self._begin is not None

    def _begun(self, begin: Begin) -> None:
        self._begin, self._stopped, self._number = begin, None, 0
        known, self._next = self._next, None
        if known is not None:
            self._known = known
            if self._last is not None:
                self._table(self._last)
        self._lsn = lsn_text(begin.final_lsn)
        if not self._keyed:
            self._tail = self._envelope.tail(self._lsn, begin.xid, begin.time_us // 1000)

    def _committed(self, commit: Commit) -> None:
        if self._stopped is not None:
            self._drop_records()
            self._spool.stop_before(Barrier(commit.lsn, commit.end_lsn, self._stopped))
        else:
            self._hand_over()
            self._spool.commit(commit.end_lsn)
        self._begin = None

    # --- the table ------------------------------------------------------------------------------------------------
    def _table(self, table: Table) -> None:
        if table.oid != self._known.oid:
            return
        self._last = table
        names = [column.name for column in table.columns]
        gone = [name for name in self._known.types if name not in names]
        identity = tuple(column.name for column in table.columns if column.key)
        bases, modifiers = self._known.bases, self._known.modifiers
        columns = [
            RowColumn(c.name, bases.get(c.type_oid, c.type_oid), modifiers.get(c.type_oid, c.type_modifier))
            for c in table.columns
        ]
        self._shape = RowShape(columns, self._known.key, gone)
        self._key_columns = tuple(at for at, column in enumerate(table.columns) if column.key)
        self._unreadable = self._refused(table, identity) if self._keyed else None
        self._readable = table.oid.to_bytes(4, "big") if self._unreadable is None else b""

    def _refused(self, table: Table, identity: Sequence[str]) -> SqlError | None:
        known = self._known
        names = {column.name for column in table.columns}
        if (table.identity != "f" and set(identity) != set(known.key)) or not set(known.key) <= names:
            return self._broken(Break("the key of {} was changed", f"It was ({', '.join(known.key)})."))
        # A column that was made anew is not told from the former one by the message. What the server says of it may not
        # have happened yet when that was sent; but it will come.
        found = known.retyped({column.name: column.type_oid for column in table.columns}) or known.made_anew(
            self._numbers()
        )
        return None if found is None else self._broken(found)

    def _truncated(self, truncate: Truncate) -> None:
        if self._known.oid not in truncate.oids:
            return
        if self._keyed:
            self._stopped = self._broken(_TRUNCATED)
        else:
            self._add(None, enveloped(b"t", None, None, self._tail))

    def _broken(self, broken: Break) -> SqlError:
        xid = self._begin.xid if self._begin else 0
        return SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            broken.words.format(f"table {self._known.entity}"),
            detail=f"{broken.detail} It happened in transaction {xid} at {self._lsn}.",
            hint="REFRESH MATERIALIZED VIEW builds a view anew from the present rows.",
        )

    # --- rows -----------------------------------------------------------------------------------------------------
    def _change(self, change: Change) -> None:
        if change.oid != self._known.oid or self._stopped is not None:
            return
        if self._unreadable is not None:
            self._stopped = self._unreadable
            return
        shape = self._shape
        if shape is None:
            raise SqlError(sqlstates.DATA_CORRUPTED, "a change came before the columns of its table")
        new = change.new
        if new is not None and change.old is not None:
            new = filled(new, change.old)
        if self._keyed:
            self._keyed_records(shape, change.old, new)
        else:
            self._stream_record(shape, change, new)

    def _keyed_records(self, shape: RowShape, old: Values | None, new: Values | None) -> None:
        """A row whose key changes goes away under the one key and comes under the other."""
        try:
            key = None if new is None else shape.key(new)
        except UnknownKeyError:
            self._stopped = self._broken(_LARGE_KEY)
            return
        if old is not None and (former := shape.key(old)) != key:
            self._add(former, None)
        if new is not None:
            self._add(key, shape.row(new))

    def _stream_record(self, shape: RowShape, change: Change, new: Values | None) -> None:
        before = None
        if change.old is not None:
            before = shape.part(change.old, self._key_columns) if change.old_is_key else shape.row(change.old)
        after = None if new is None else shape.row(new)
        self._add(None, enveloped(change.op.encode(), before, after, self._tail))

    def _add(self, key: bytes | None, value: bytes | None) -> None:
        if value is not None:
            if len(value) > self._record_bytes_max:
                value = oversize.mark(value[: oversize.KEPT_BYTES], len(value), self._record_bytes_max)
            self._bytes += len(value)
        self._keys.append(key)
        self._values.append(value)
        if len(self._values) >= _HANDED_RECORDS or self._bytes >= _HANDED_BYTES:
            self._hand_over()

    def _hand_over(self) -> None:
        """To the spool: many at a time, which costs little."""
        begin, first = self._begin, self._number
        if begin is None or not self._values:
            return
        self._number += len(self._values)
        places = [f"{self._lsn}:{number}" for number in range(first, self._number)]
        keys, values = self._keys, self._values
        self._keys, self._values, self._bytes = [], [], 0
        self._spool.extend(keys, values, places, begin.time_us, self._lsn, begin.xid)

    def _drop_records(self) -> None:
        """Of the transaction under way."""
        self._keys, self._values, self._bytes = [], [], 0
        self._spool.roll_back()
