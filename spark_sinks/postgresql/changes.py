"""From the messages of one table's stream to the records of a pipeline: which change makes which records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks import oversize
from spark_sinks.postgresql.pgoutput import Begin, Change, Commit, Message, Table, Truncate, Values
from spark_sinks.postgresql.positions import lsn_text
from spark_sinks.postgresql.records import Envelope, RowColumn, RowShape, enveloped, filled
from spark_sinks.postgresql.spool import Barrier, Spool
from spark_sinks.postgresql.tables import SourceTable


@dataclass(frozen=True)
class KnownTable:
    """A table as its pipeline knows it. ``types``: the oids of all columns that it has had; ``bases``: of domains, what
    they are made of; ``key``: what its rows are told apart by."""

    database: str
    entity: str
    oid: int
    key: tuple[str, ...]
    types: Mapping[str, int]
    bases: Mapping[int, int]
    shape: int = 0

    def followed_by(self, now: KnownTable) -> KnownTable:
        """What is known when a view begins with rows as the table has them now: a column that has another type, or
        another key, is a new shape; columns that came and went are not."""
        changed = self.key != now.key or any(
            self.types.get(name, type_oid) != type_oid for name, type_oid in now.types.items()
        )
        types, bases = {**self.types, **now.types}, {**self.bases, **now.bases}
        return replace(now, types=types, bases=bases, shape=self.shape + changed)


def known_now(database: str, table: SourceTable) -> KnownTable:
    """All that its catalog says of it."""
    types = {column.name: column.type_oid for column in table.published}
    bases = {column.type_oid: column.base_type_oid for column in table.columns}
    return KnownTable(database, table.entity, table.oid, table.key, types, bases)


class ChangeRecords:
    """Puts the records of each transaction into the spool. ``keyed``: they are rows of a changelog.

    A changelog stands still before a transaction after which its rows cannot be told from the changes: a truncation, a
    column whose type was changed, a key that is another one. What it reads is right or it is not read.
    """

    def __init__(self, known: KnownTable, spool: Spool, *, keyed: bool, record_bytes_max: int) -> None:
        self._known = known
        self._spool = spool
        self._keyed = keyed
        self._record_bytes_max = record_bytes_max
        self._shape: RowShape | None = None
        self._key_columns: tuple[int, ...] = ()  # places of the replica identity, of a row that has nothing else
        self._stopped: SqlError | None = None  # why the transaction under way is not read
        self._unreadable: SqlError | None = None  # why none is, until the table changes again
        self._next: KnownTable | None = None
        self._last: Table | None = None  # the table's own words
        self._begin: Begin | None = None
        self._lsn = ""
        self._number = 0
        self._tail = b""

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
        self._spool.roll_back()
        self._begin = self._stopped = self._shape = self._last = self._unreadable = None

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
        schema, table = self._known.entity.split(".", 1)
        self._tail = Envelope(self._known.database, schema, table, self._lsn, begin.xid, begin.time_us // 1000).tail()

    def _committed(self, commit: Commit) -> None:
        if self._stopped is not None:
            self._spool.roll_back()
            self._spool.stop_before(Barrier(commit.lsn, commit.end_lsn, self._stopped))
        else:
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
        bases = self._known.bases
        columns = [RowColumn(column.name, bases.get(column.type_oid, column.type_oid)) for column in table.columns]
        self._shape = RowShape(columns, self._known.key, gone)
        self._key_columns = tuple(at for at, column in enumerate(table.columns) if column.key)
        self._unreadable = self._refused(table, identity) if self._keyed else None

    def _refused(self, table: Table, identity: Sequence[str]) -> SqlError | None:
        key = self._known.key
        if (table.identity != "f" and set(identity) != set(key)) or not set(key) <= {c.name for c in table.columns}:
            return self._error("the key of {} was changed", f"It was ({', '.join(key)}).")
        for column in table.columns:
            known = self._known.types.get(column.name)
            if known is not None and known != column.type_oid:
                types = {each.name: each.type_oid for each in table.columns}
                self._known = replace(self._known, types={**self._known.types, **types})
                return self._error("a column of {} has another type now", f'It is column "{column.name}".')
        return None

    def _truncated(self, truncate: Truncate) -> None:
        if self._known.oid not in truncate.oids:
            return
        if self._keyed:
            self._stopped = self._error("{} was truncated", "The changes do not say which rows went away.")
        else:
            self._add(None, enveloped(b"t", None, None, self._tail))

    def _error(self, words: str, detail: str) -> SqlError:
        return SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            words.format(f"table {self._known.entity}"),
            detail=f"{detail} It happened in transaction {self._begin.xid if self._begin else 0} at {self._lsn}.",
            hint="REFRESH MATERIALIZED VIEW builds a view anew from the present rows.",
        )

    # --- rows -----------------------------------------------------------------------------------------------------
    def _change(self, change: Change) -> None:
        if change.oid != self._known.oid or self._stopped is not None:
            return
        if self._unreadable is not None:
            # Whoever stands behind this transaction began with the rows as they are since then.
            self._stopped, self._unreadable = self._unreadable, None
            return
        shape = self._shape
        if shape is None:
            raise SqlError(sqlstates.DATA_CORRUPTED, "a change came before the columns of its table")
        new = change.new
        if new is not None and change.old is not None and not change.old_is_key:
            new = filled(new, change.old)
        if self._keyed:
            self._keyed_records(shape, change.old, new)
        else:
            self._stream_record(shape, change, new)

    def _keyed_records(self, shape: RowShape, old: Values | None, new: Values | None) -> None:
        """A row whose key changes goes away under the one key and comes under the other."""
        key = None if new is None else shape.key(new)
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
        begin, most = self._begin, self._record_bytes_max
        assert begin is not None  # noqa: S101 - changes stand between Begin and Commit
        if value is not None and len(value) > most:
            value = oversize.mark(value[: oversize.KEPT_BYTES], len(value), most)
        self._spool.add(key, value, f"{self._lsn}:{self._number}", begin.time_us, self._lsn, begin.xid)
        self._number += 1
