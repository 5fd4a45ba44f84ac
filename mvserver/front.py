"""A session as a protocol front end sees it: Protocols and frozen values only.

Front ends know nothing of Spark, DuckDB or the catalog. Rows cross as Arrow record batches, one Arrow column per field;
``mvserver.types`` writes them by the field's type oid. Every method of a session is called from a worker thread, one at
a time per session, except ``cancel``, which may come from any thread at any moment. "The wire" below is the front end.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from mvserver.errors import SqlError
from mvserver.visible_rows import VisibleRows


@dataclass(frozen=True)
class Field:
    """A result column as RowDescription has it."""

    name: str
    type_oid: int
    type_size: int = -1
    typmod: int = -1
    table_oid: int = 0
    column_number: int = 0


@dataclass(frozen=True)
class Notice:
    severity: str  # NOTICE, WARNING, INFO
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None


@dataclass(frozen=True)
class CopyOut:
    """How the rows of a COPY ... TO STDOUT are written. ``force_quote`` has one entry for each field."""

    format: str = "text"  # "text", "csv", "binary"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[bool, ...] = ()


class CopyIn(Protocol):
    """Where the data of a COPY ... FROM STDIN goes. Its methods may block, and are called as a session's are; all but
    ``check`` and ``close``."""

    binary: bool
    columns: int
    on_wake: Callable[[], None]
    """Set by the wire: to be called, from any thread, when ``check`` would raise while the client is silent."""

    def check(self) -> None:
        """Raises when the statement is to stop."""

    def feed(self, data: bytes) -> None: ...

    def finish(self) -> int:
        """All data is there; how many rows it was."""

    def fail(self, message: str) -> None:
        """The client gives up: raises the error for that."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class PlainRows:
    """A few rows as Python values: booleans, integers, floats, texts and decimals, for which Arrow's arrays would cost
    more than the rows do. ``types`` are the Arrow types that they would have."""

    values: Sequence[tuple[Any, ...]]
    types: tuple[Any, ...]


class RowKeeper(Protocol):
    """Who keeps rows and the messages made of them."""

    def frames(self, framer: object, columns: tuple[int, ...]) -> Mapping[Any, tuple[tuple[Any, ...], bytes]]:
        """By key, a row and what this framer has made of these columns of it."""

    def keep_frame(self, frames: Any, key: Any, row: tuple[Any, ...], frame: bytes) -> None:
        """One more of ``frames``."""


@dataclass(frozen=True, slots=True)
class KeptRows:
    """A few rows that somebody keeps by their ``keys``, of which the result has some ``columns``."""

    keys: Sequence[Any]
    rows: Sequence[tuple[Any, ...]]
    columns: tuple[int, ...]
    types: tuple[Any, ...]
    keeper: RowKeeper

    def shown(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([row[at] for at in self.columns])

    @property
    def values(self) -> Sequence[tuple[Any, ...]]:
        return [self.shown(row) for row in self.rows]


@dataclass
class Result:
    """The outcome of one statement.

    ``fields`` is None where the statement returns no rows. ``batches`` is lazy; ``close`` must be safe to call at any
    time and more than once, and frees what the result holds. ``tag`` is the command tag; where it ends in a space, the
    number of rows sent is added (``"SELECT "`` → ``SELECT 3``). An empty statement has tag ``""`` and ``empty`` True.
    ``binary`` asks for binary rows where the client cannot say (the simple protocol). With ``copy`` the rows leave as
    COPY data: ``fields`` are their columns, which the client is not told. With ``copy_in`` the client sends rows, which
    are counted as rows sent are. ``live`` marks rows that come as they happen, and says whether the next ones are
    there: where they are not, the client gets those before them first, and a row limit is met by less. With ``part``
    these are the rows of one Execute, no more than it asked for: the next one asks the session again. ``whole``: all
    rows are at hand, and nothing is held for them.
    """

    tag: str
    fields: tuple[Field, ...] | None = None
    batches: Iterator[pa.RecordBatch] = field(default_factory=lambda: iter(()))
    empty: bool = False
    binary: bool = False
    copy: CopyOut | None = None
    copy_in: CopyIn | None = None
    live: Callable[[], bool] | None = None
    part: bool = False
    whole: bool = False
    rows: PlainRows | KeptRows | None = None  # those of ``batches`` once more, where they are a few

    def close(self) -> None:
        if self.copy_in is not None:
            self.copy_in.close()
        close = getattr(self.batches, "close", None)
        if close is not None:
            close()


@dataclass(frozen=True)
class StatementDescription:
    parameter_oids: tuple[int, ...]
    fields: tuple[Field, ...] | None


@dataclass(frozen=True)
class Startup:
    user: str
    database: str
    parameters: Mapping[str, str]  # application_name, client_encoding, options ...
    peer: str  # address, for messages
    local: bool  # loopback
    process: int = 0  # the number in BackendKeyData, which pg_backend_pid() shows; 0 where the wire does not say
    cipher: tuple[str, str, int] | None = None  # of TLS: its name, the protocol's version, the bits of its key


@dataclass(frozen=True, slots=True)
class Postponed:
    """In place of an answer: a call on the event loop would have to wait. Nothing has happened, and the call is to be
    made again on a worker. With ``together`` the call waits for others of its kind: it is to be made again on the event
    loop, after ``together`` was called, which is when all that can be read has been read."""

    together: Callable[[], None] | None = None


class ClientSession(Protocol):
    """One client's session. Errors are raised as ``mvserver.errors.SqlError``."""

    def parameter_status(self) -> Mapping[str, str]:
        """All reported parameters; the wire sends them at start and, after each statement, what changed."""

    def transaction_status(self) -> str:
        """``I``, ``T`` or ``E``."""

    def take_notices(self) -> Sequence[Notice]: ...

    def simple_query(self, text: str) -> Iterator[Result | Postponed]:
        """The statements of a text, one result each, run as they are pulled; an error ends the iteration."""

    def parse(self, name: str, text: str, parameter_oids: Sequence[int]) -> None: ...

    def describe_statement(self, name: str) -> StatementDescription: ...

    def bind(self, portal: str, statement: str, parameters: Sequence[Any]) -> None:
        """``parameters`` are Python values (None, bool, int, float, Decimal, str, bytes, date ...), decoded by the wire
        from the oids that describe_statement gave."""

    def describe_portal(self, portal: str) -> tuple[Field, ...] | None: ...

    def execute(self, portal: str, max_rows: int | None = None) -> Result | Postponed:
        """Runs the portal, None for all rows. The wire keeps the Result and what a row limit leaves of it, except where
        it is a part."""

    def close_statement(self, name: str) -> None: ...

    def close_portal(self, portal: str) -> None: ...

    def sync(self) -> None:
        """End of an extended-protocol sequence: commits the implicit transaction or ends a failed one."""

    def cancel(self) -> bool:
        """Ends the statement that is under way. False where none was: one that has only been received may come yet."""

    def close(self) -> None: ...


@runtime_checkable
class HearsOfFailures(Protocol):
    """What a session may offer besides: to hear of errors that the wire found (a parameter that cannot be read, a
    value that cannot be encoded, a malformed message), so that its open transaction fails as after its own errors."""

    def fail(self) -> None:
        """Called, on a worker thread, before each ErrorResponse, also for errors that the session itself raised."""


@runtime_checkable
class StopsReading(Protocol):
    """What a session may offer besides: a cancel and its statement_timeout end the reading of large parameters, too."""

    def reading(self, read: Callable[[Callable[[], None]], list[Any]]) -> list[Any] | Postponed:
        """What ``read`` makes; it calls what it is given now and then, which raises when it is to stop."""


@runtime_checkable
class EndsByItself(Protocol):
    """What a session may offer besides: to end its connection without being asked anything (an idle transaction)."""

    on_terminate: Callable[[SqlError], None] | None
    """Called from any thread with the FATAL error to send; what the session holds is free by then."""


@runtime_checkable
class AnswersAtOnce(Protocol):
    """What a session may offer besides: to answer short statements on the event loop, which costs no change of
    threads."""

    at_once: bool
    """Set by the wire around calls on the event loop: one that would wait answers Postponed."""

    def is_short(self, statement: str) -> bool:
        """Whether Bind and Execute of a prepared statement are worth trying at once."""

    def is_short_query(self, text: str) -> bool:
        """The same of a simple query."""

    def is_short_text(self, text: str, parameter_oids: Sequence[int]) -> bool:
        """The same of a text from Parse on."""


class KeptRead(Protocol):
    """A SELECT whose rows are kept: what is asked of it, and its rows."""

    wire: Any
    """What the wire has made for it, for as long as it lasts; None at first."""

    @property
    def parameter_oids(self) -> tuple[int, ...]: ...

    @property
    def fields(self) -> tuple[Field, ...]: ...

    @property
    def time_zone(self) -> str: ...

    def rows(self, parameters: Sequence[Any], text: str | None = None) -> KeptRows | None:
        """The rows, and the statement is over: the session is as after Sync, or after the simple query of this
        ``text``. None where it is to be asked by its other methods: then nothing has happened."""


class KeptReads(Protocol):
    def prepared(self, name: str, text: str | None = None, oids: Sequence[int] = ()) -> KeptRead | None:
        """What a prepared statement reads, where no transaction is open and its rows are likely to be there. With a
        ``text``, only where it is what this and the parameters' types would be parsed to."""

    def query(self, text: str) -> tuple[KeptRead, Sequence[Any]] | None:
        """The same of a simple query, with the values for its parameters."""


@runtime_checkable
class LooksUp(Protocol):
    """What a session may offer besides: to answer look-ups in one call instead of one for each message."""

    @property
    def look_ups(self) -> KeptReads: ...


@runtime_checkable
class Resets(Protocol):
    """What a session may offer besides: to become as it was at its start in one call, as poolers ask of it often."""

    def reset(self, text: str) -> str | None:
        """The tag of a simple query of this ``text``, and the statement is over. None where the session is to be asked
        by its other methods: then nothing has happened."""


class Backend(Protocol):
    def open_session(self, startup: Startup) -> ClientSession:
        """Checks role and database; 28000 and 3D000 here."""


class ViewChanges(Protocol):
    """What one commit did to the rows of a view. ``rows`` is an Arrow table: the kind of each change (``+I``, ``-U``,
    ``+U``, ``-D``) and the view's columns."""

    @property
    def epoch(self) -> int: ...
    @property
    def at(self) -> dt.datetime: ...
    @property
    def rows(self) -> Any: ...
    @property
    def complete(self) -> bool:
        """False where more rows of the same epoch follow in the next one."""

    @property
    def last_token(self) -> str: ...


class SnapshotPlace(Protocol):
    """``shown`` is what a client is told; it differs for those who may see some rows alone."""

    @property
    def latest_epoch(self) -> int: ...
    @property
    def shown_epoch(self) -> int: ...
    @property
    def shown_at(self) -> dt.datetime: ...


class ViewReader(Protocol):
    """One reader of a view's changes. One thread reads; ``interrupt`` may come from any. Nothing waits for a reader."""

    @property
    def token(self) -> str:
        """Behind all that was taken; with a snapshot, only once that is read to its end."""

    @property
    def place(self) -> SnapshotPlace | None:
        """The moment of the snapshot; None without one."""

    def snapshot(self) -> Iterator[pa.RecordBatch]:
        """The rows at the beginning; to be read once, first, and to the end. Empty without one."""

    def wait(self, seconds: float | None) -> bool:
        """Whether ``take`` need not wait: now, or within this time."""

    def take(self) -> Sequence[ViewChanges]:
        """The next epochs, in order and without a hole; waits for one. 72000 where they are gone or the view is."""

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


class ServedViews(Protocol):
    """Views by their names, for answers that may be kept. Short, from any thread."""

    def is_view(self, database: str, schema: str, name: str) -> bool:
        """Whether it is a materialized view or a view, and not a relation of another kind."""

    def hides_rows(self, database: str, schema: str, name: str, role: str) -> bool:
        """Whether policies may hide rows of the view from the role."""

    def version(self, database: str, schema: str, name: str) -> str | None:
        """Of the rows and of all definitions. Two that are equal mean the same rows; no two servers' are. None where it
        cannot be told now, or where the name is none of a materialized view."""

    def generation(self) -> int:
        """Another number whenever a definition or privilege has changed."""

    def key(self, database: str, schema: str, name: str) -> Sequence[str]:
        """The columns that tell the rows of a materialized view apart; none where nothing does."""

    def role_id(self, role: str) -> str | None:
        """What no other role has, nor a later one of the same name; None where there is no such role."""

    def visible_rows(
        self, database: str, schema: str, name: str, role: str, claims: Sequence[tuple[str, str]]
    ) -> VisibleRows | None:
        """Which rows of a materialized view its policies let the role see, with these claims as settings; None for all.
        May compute for some milliseconds."""

    def watch(
        self,
        database: str,
        schema: str,
        name: str,
        since: str | None,
        *,
        snapshot: bool,
        visible: VisibleRows | None = None,
    ) -> ViewReader:
        """A reader of a materialized view's changes behind a token, or from now on with or without the rows that are
        there; of the ``visible`` rows, where these are not all. 42809 for another relation, 22023 for what is no token,
        72000 where the changes are not kept. May block."""
