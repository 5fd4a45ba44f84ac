"""Prepared statements of a session: one name space for the protocol's Parse and SQL's PREPARE, as in PostgreSQL."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.front import Field
from mvserver.pgcatalog.static_data import type_spellings
from mvserver.session.held_memory import Bounds, HeldMemory, HeldShare
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.cursors import DeclareCursor
from mvserver.sql.statements.queries import NO_TREE, Pull

_STATEMENT_BYTES = 1_000  # beside its text
_FIELD_BYTES = 200
_TREE_BYTES = 200  # of a character of the text


def prepared_memory() -> HeldMemory:
    """Of all sessions' prepared statements."""
    bounds = Bounds(limits.PREPARED_BYTES_OF_SESSION_MAX, limits.PREPARED_BYTES_OF_ROLE_MAX, limits.PREPARED_BYTES_MAX)
    return HeldMemory("prepared statements", bounds, "Use DEALLOCATE for those that are not needed any more.")


@dataclass(frozen=True)
class PreparedStatement:
    """``statement`` is None for an empty text. ``declared_oids`` are the client's, ``parameter_oids`` what they became.

    No plan is kept here: serving remembers plans by text, scope and the catalog's generation, so that a prepared
    statement always means what its text means now.
    """

    name: str
    text: str
    statement: Statement | None
    declared_oids: tuple[int, ...] = ()
    parameter_oids: tuple[int, ...] = ()
    fields: tuple[Field, ...] | None = None
    prepare_text: str | None = None  # of the PREPARE in SQL that made it
    prepared_at: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))

    @property
    def size(self) -> int:
        """Bytes, about."""
        query = _query(self.statement)
        kept = [self.text, self.prepare_text or "", "" if query is None else query.text]
        texts = sum(map(sys.getsizeof, {id(text): text for text in kept}.values()))  # the same one is there once
        tree = len(self.text) if query is not None and query.has_tree else 0
        return _STATEMENT_BYTES + texts + _TREE_BYTES * tree + _FIELD_BYTES * len(self.fields or ())


class PreparedStatements:
    def __init__(self, share: HeldShare | None = None) -> None:
        """``share`` is what the session may hold, all that there is where it is left out."""
        self._statements: dict[str, PreparedStatement] = {}
        self._sizes: dict[str, int] = {}  # as they were taken: Python's texts grow when they are encoded
        self._share = share if share is not None else prepared_memory().share("")
        self._gone: Callable[[str], None] = lambda name: None

    def __len__(self) -> int:
        return len(self._statements)

    def on_gone(self, listener: Callable[[str], None]) -> None:
        """``listener`` is told the name of each that is given up or replaced; there is one."""
        self._gone = listener

    def named(self) -> Sequence[PreparedStatement]:
        return [prepared for name, prepared in self._statements.items() if name]

    def check_free(self, name: str) -> None:
        """42P05 when a named statement exists; the unnamed one is replaced."""
        if name and name in self._statements:
            raise SqlError(sqlstates.DUPLICATE_PREPARED_STATEMENT, f'prepared statement "{name}" already exists')
        if name and len(self._statements) >= limits.PREPARED_STATEMENTS_MAX:
            raise SqlError(
                sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
                f"a session may have at most {limits.PREPARED_STATEMENTS_MAX} prepared statements",
                hint="Use DEALLOCATE for those that are not needed any more.",
            )

    def add(self, prepared: PreparedStatement) -> None:
        """53200 where the session, its role or all sessions hold too much."""
        self.check_free(prepared.name)
        self.discard(prepared.name)
        size = prepared.size
        self._share.take(size)
        self._statements[prepared.name] = prepared
        self._sizes[prepared.name] = size

    def get(self, name: str) -> PreparedStatement:
        prepared = self._statements.get(name)
        if prepared is None:
            message = (
                f'prepared statement "{name}" does not exist' if name else "unnamed prepared statement does not exist"
            )
            raise SqlError(sqlstates.INVALID_SQL_STATEMENT_NAME, message)
        return prepared

    def find(self, name: str) -> PreparedStatement | None:
        return self._statements.get(name)

    def discard(self, name: str) -> None:
        """The protocol's Close: no error where there is none."""
        prepared = self._statements.pop(name, None)
        if prepared is not None:
            self._share.give_back(self._sizes.pop(name))
            self._gone(name)

    def deallocate(self, name: str) -> None:
        self.get(name)
        self.discard(name)

    def clear(self) -> None:
        for name in tuple(self._statements):
            self.discard(name)


def without_tree(statement: Statement) -> Statement:
    """What is kept of a statement: of a longer text than ``limits.PREPARED_TREE_CHARACTERS_MAX`` not the tree, which
    takes a hundred times as much memory and is needed only where no plan is known."""
    query = _query(statement)
    if query is None or not query.has_tree or len(query.text) <= limits.PREPARED_TREE_CHARACTERS_MAX:
        return statement
    bare = replace(query, select=NO_TREE)
    return replace(statement, query=bare) if isinstance(statement, DeclareCursor) else bare


def _query(statement: Statement | None) -> Pull | None:
    query = statement.query if isinstance(statement, DeclareCursor) else statement
    return query if isinstance(query, Pull) else None


_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("statement", pa.string()),
        ("prepare_time", pa.timestamp("us", "UTC")),
        ("parameter_types", pa.list_(pa.string())),
        ("from_sql", pa.bool_()),
        ("generic_plans", pa.int64()),
        ("custom_plans", pa.int64()),
    ]
)


def prepared_table(statements: Iterable[PreparedStatement] = ()) -> pa.Table:
    """As pg_prepared_statements has them; how often a plan was used is not counted."""
    spellings = type_spellings()
    rows = [
        {
            "name": prepared.name,
            "statement": prepared.prepare_text or prepared.text,
            "prepare_time": prepared.prepared_at,
            "parameter_types": [spellings.get(oid, str(oid)) for oid in prepared.parameter_oids],
            "from_sql": prepared.prepare_text is not None,
        }
        for prepared in statements
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
