"""A backend without a database: enough statements to drive every path of the wire.

rows N [batch]     N rows of five simple columns, made as they are pulled
copy FORMAT N [batch]  the same as COPY TO STDOUT
live N [batch]     the same as rows that come as they happen
receive FORMAT N   COPY FROM STDIN of N columns
table NAME         a canned Arrow table
echo TYPE, ...     its parameters, one column each
sleep SECONDS      until it is over or cancelled (57014)
set NAME VALUE     a reported parameter; show NAME reads it
notice TEXT        a notice; error CODE TEXT: an error; boom: a bug; fatal: ends the connection
begin, commit, rollback
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from mvserver.copy_data.readers import CopyFormat, copy_reader
from mvserver.errors import SqlError
from mvserver.front import CopyOut, Field, Notice, Result, Startup, StatementDescription

TYPE_OIDS = {
    "bool": 16, "bytea": 17, "name": 19, "int8": 20, "int2": 21, "int4": 23, "text": 25, "oid": 26, "json": 114,
    "float4": 700, "float8": 701, "bpchar": 1042, "varchar": 1043, "date": 1082, "time": 1083, "timestamp": 1114,
    "timestamptz": 1184, "interval": 1186, "numeric": 1700, "uuid": 2950, "jsonb": 3802, "int4[]": 1007,
    "text[]": 1009, "float8[]": 1022, "numeric[]": 1231, "timestamptz[]": 1185, "bool[]": 1000, "date[]": 1182,
    "uuid[]": 2951,
}  # fmt: skip

ARROW = {
    16: pa.bool_(), 17: pa.binary(), 20: pa.int64(), 21: pa.int16(), 23: pa.int32(), 26: pa.uint32(),
    700: pa.float32(), 701: pa.float64(), 1082: pa.date32(), 1083: pa.time64("us"), 1114: pa.timestamp("us"),
    1184: pa.timestamp("us", "UTC"), 1700: pa.decimal128(38, 10), 1007: pa.list_(pa.int32()),
    1009: pa.list_(pa.string()), 1022: pa.list_(pa.float64()), 1231: pa.list_(pa.decimal128(38, 10)),
    1185: pa.list_(pa.timestamp("us", "UTC")), 1000: pa.list_(pa.bool_()), 1182: pa.list_(pa.date32()),
    2951: pa.list_(pa.string()),
}  # fmt: skip

SIMPLE_FIELDS = (
    Field("id", 20, 8), Field("name", 25), Field("value", 701, 8), Field("at", 1114, 8), Field("ok", 16, 1),
)  # fmt: skip


def simple_batch(start: int, count: int) -> pa.RecordBatch:
    ids = pa.array(range(start, start + count), pa.int64())
    return pa.record_batch(
        [
            ids,
            pa.array([f"name-{at}" for at in range(start, start + count)]),
            pa.array([at / 8 for at in range(start, start + count)]),
            pa.array([1_700_000_000_000_000 + at * 1_000 for at in range(start, start + count)], pa.timestamp("us")),
            pa.array([at % 2 == 0 for at in range(start, start + count)]),
        ],
        names=["id", "name", "value", "at", "ok"],
    )


@dataclass
class ToyBackend:
    tables: dict[str, tuple[tuple[Field, ...], list[pa.RecordBatch]]] = field(default_factory=dict)
    sessions: list[ToySession] = field(default_factory=list)
    pulled: int = 0  # rows made by "rows"
    open_results: int = 0
    received: list[list[bytes | None]] = field(default_factory=list)  # by "receive"
    hold: threading.Event = field(default_factory=threading.Event)

    def open_session(self, startup: Startup) -> ToySession:
        if startup.user == "nobody":
            raise SqlError("28000", f'role "{startup.user}" does not exist')
        if startup.database not in ("toy", startup.user):
            raise SqlError("3D000", f'database "{startup.database}" does not exist')
        session = ToySession(self, startup)
        self.sessions.append(session)
        return session


class ToySession:
    def __init__(self, backend: ToyBackend, startup: Startup) -> None:
        self.backend = backend
        self.startup = startup
        self.parameters = {
            "server_version": "15.8", "server_encoding": "UTF8", "client_encoding": "UTF8", "DateStyle": "ISO, MDY",
            "TimeZone": "UTC", "IntervalStyle": "postgres", "integer_datetimes": "on",
            "standard_conforming_strings": "on", "is_superuser": "on", "session_authorization": startup.user,
            "application_name": startup.parameters.get("application_name", ""),
        }  # fmt: skip
        self.status = "I"
        self.notices: list[Notice] = []
        self.statements: dict[str, tuple[str, tuple[int, ...]]] = {}
        self.portals: dict[str, tuple[str, Sequence[Any]]] = {}
        self.cancelled = threading.Event()
        self.running = False
        self.copying: ToyCopy | None = None
        self.closed = threading.Event()
        self.cancels = 0
        self.fails = 0
        self.syncs = 0
        self.on_terminate: Callable[[SqlError], None] | None = None

    # --- the contract -----------------------------------------------------------------------------------------------

    def parameter_status(self) -> Mapping[str, str]:
        return self.parameters

    def transaction_status(self) -> str:
        return self.status

    def take_notices(self) -> Sequence[Notice]:
        taken, self.notices = self.notices, []
        return taken

    def simple_query(self, text: str) -> Iterator[Result]:
        statements = [part.strip() for part in text.split(";")]
        if not any(statements):
            yield Result("", empty=True)
        for statement in filter(None, statements):
            yield self._run(statement, ())

    def parse(self, name: str, text: str, parameter_oids: Sequence[int]) -> None:
        if name and name in self.statements:
            raise SqlError("42P05", f'prepared statement "{name}" already exists')
        if text.startswith("syntax"):
            raise SqlError("42601", 'syntax error at or near "syntax"', position=1)
        oids = _echo_oids(text)
        wanted = len(set(re.findall(r"\$\d+", text)))
        given = [*parameter_oids, *[0] * (wanted - len(parameter_oids))][:wanted]
        named = [*oids, *[25] * (wanted - len(oids))]
        self.statements[name] = (text, tuple(oid or known for oid, known in zip(given, named, strict=True)))

    def describe_statement(self, name: str) -> StatementDescription:
        if name not in self.statements:
            raise SqlError("26000", f'prepared statement "{name}" does not exist')
        text, oids = self.statements[name]
        return StatementDescription(oids, self._fields(text))

    def bind(self, portal: str, statement: str, parameters: Sequence[Any]) -> None:
        if portal and portal in self.portals:
            raise SqlError("42P03", f'cursor "{portal}" already exists')
        self.portals[portal] = (self.statements[statement][0], parameters)

    def describe_portal(self, portal: str) -> tuple[Field, ...] | None:
        return self._fields(self._portal(portal)[0])

    def execute(self, portal: str, max_rows: int | None = None) -> Result:
        return self._run(*self._portal(portal))

    def close_statement(self, name: str) -> None:
        self.statements.pop(name, None)

    def close_portal(self, portal: str) -> None:
        self.portals.pop(portal, None)

    def sync(self) -> None:
        self.syncs += 1
        if self.status == "I":
            self.portals.clear()

    def cancel(self) -> bool:
        self.cancels += 1
        copying, running = self.copying, self.running
        if running or copying is not None:
            self.cancelled.set()
        if copying is not None:
            copying.on_wake()
        return running or copying is not None

    def fail(self) -> None:
        self.fails += 1
        if self.status == "T":
            self.status = "E"

    def close(self) -> None:
        self.closed.set()

    # --- what statements do -----------------------------------------------------------------------------------------

    def _portal(self, name: str) -> tuple[str, Sequence[Any]]:
        if name not in self.portals:
            raise SqlError("34000", f'portal "{name}" does not exist')
        return self.portals[name]

    def _fields(self, text: str) -> tuple[Field, ...] | None:
        word, _, rest = text.strip().partition(" ")
        if word in ("rows", "live"):
            return SIMPLE_FIELDS
        if word == "table":
            return self._table(rest.strip())[0]
        if word == "echo":
            return _echo_fields(text)
        if word == "show":
            return (Field(rest.strip(), 25),)
        return None

    def _run(self, text: str, parameters: Sequence[Any]) -> Result:
        word, _, rest = text.strip().partition(" ")
        word = word.lower()
        if not word:
            return Result("", empty=True)
        if self.status == "E" and word not in ("rollback", "commit"):
            raise SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        action: Callable[[str], Result] | None = getattr(self, f"_do_{word}", None)
        if word == "echo":
            return self._echo(text, parameters)
        if action is None:
            raise SqlError("42601", f'syntax error at or near "{word}"', position=1)
        return action(rest.strip())

    def _echo(self, text: str, parameters: Sequence[Any]) -> Result:
        fields = _echo_fields(text)
        try:
            columns = [_column(value, each.type_oid) for value, each in zip(parameters, fields, strict=True)]
        except (pa.ArrowException, ValueError, OverflowError) as error:
            raise SqlError("42804", "a parameter was declared as another type") from error
        batch = pa.RecordBatch.from_arrays(columns, names=[f.name for f in fields])
        return Result("SELECT ", fields, iter([batch]))

    def _do_rows(self, rest: str) -> Result:
        match = re.fullmatch(r"(\d{1,9})(?: (\d{1,7}))?", rest, re.ASCII)
        if match is None:
            raise SqlError("42601", "syntax error")
        total, size = int(match[1]), max(1, int(match[2] or 1000))
        return Result("SELECT ", SIMPLE_FIELDS, self._rows(total, size))

    def _do_copy(self, rest: str) -> Result:
        form, _, what = rest.partition(" ")
        defaults = {"text": ("\t", "\\N"), "csv": (",", ""), "binary": ("", "")}
        if form not in defaults:
            raise SqlError("22023", f'COPY format "{form}" not recognized')
        made = self._do_rows(what)
        return replace(made, tag="COPY ", copy=CopyOut(form, *defaults[form], header=form == "csv"))

    def _do_live(self, rest: str) -> Result:
        """The same, but no batch is there before it is asked for."""
        self.notices.append(Notice("NOTICE", "00000", "live"))
        return replace(self._do_rows(rest), live=lambda: False)

    def _do_receive(self, rest: str) -> Result:
        match = re.fullmatch(r"(text|csv|binary) (\d{1,2})", rest, re.ASCII)
        if match is None:
            raise SqlError("42601", "syntax error")
        defaults = {"text": ("\t", "\\N"), "csv": (",", ""), "binary": ("", "")}
        form = CopyFormat(match[1], *defaults[match[1]])
        return Result("COPY ", copy_in=ToyCopy(self, form, int(match[2])))

    def _rows(self, total: int, size: int) -> Iterator[pa.RecordBatch]:
        self.backend.open_results += 1
        try:
            for start in range(0, total, size):
                count = min(size, total - start)
                self.backend.pulled += count
                yield simple_batch(start, count)
        finally:
            self.backend.open_results -= 1

    def _do_table(self, rest: str) -> Result:
        fields, batches = self._table(rest)
        return Result("SELECT ", fields, iter(batches))

    def _table(self, name: str) -> tuple[tuple[Field, ...], list[pa.RecordBatch]]:
        if name not in self.backend.tables:
            raise SqlError("42P01", f'relation "{name}" does not exist')
        return self.backend.tables[name]

    def _do_sleep(self, rest: str) -> Result:
        self.cancelled.clear()
        self.running = True
        try:
            if self.cancelled.wait(float(rest)):
                raise SqlError("57014", "canceling statement due to user request")
        finally:
            self.running = False
        return Result("SLEEP")

    def _do_set(self, rest: str) -> Result:
        name, _, value = rest.partition(" ")
        self.parameters[name] = value
        return Result("SET")

    def _do_show(self, rest: str) -> Result:
        if rest not in self.parameters:
            raise SqlError("42704", f'unrecognized configuration parameter "{rest}"')
        batch = pa.record_batch([pa.array([self.parameters[rest]])], names=[rest])
        return Result("SHOW", (Field(rest, 25),), iter([batch]))

    def _do_notice(self, rest: str) -> Result:
        self.notices.append(Notice("NOTICE", "00000", rest, "A detail.", "A hint."))
        return Result("NOTICE")

    def _do_error(self, rest: str) -> Result:
        code, _, message = rest.partition(" ")
        raise SqlError(code, message, detail="What happened.", hint="What to do.", position=7)

    def _do_boom(self, rest: str) -> Result:
        raise ValueError("secret path /etc/passwd")

    def _do_fatal(self, rest: str) -> Result:
        raise SqlError("25P03", "terminating connection due to idle-in-transaction timeout", severity="FATAL")

    def _do_begin(self, rest: str) -> Result:
        self.status = "T"
        return Result("BEGIN")

    def _do_commit(self, rest: str) -> Result:
        tag = "ROLLBACK" if self.status == "E" else "COMMIT"
        self.status = "I"
        return Result(tag)

    def _do_rollback(self, rest: str) -> Result:
        self.status = "I"
        return Result("ROLLBACK")

    def _do_insert(self, rest: str) -> Result:
        return Result(f"INSERT 0 {rest}")


class ToyCopy:
    """Keeps the rows of a COPY FROM until its end."""

    def __init__(self, session: ToySession, form: CopyFormat, columns: int) -> None:
        self.binary, self.columns = form.format == "binary", columns
        self.on_wake: Callable[[], None] = lambda: None
        self._session = session
        self._reader = copy_reader(form, [f"c{at}" for at in range(columns)])
        self._rows: list[list[bytes | None]] = []
        self._open = True
        session.backend.open_results += 1
        session.cancelled.clear()
        session.copying = self

    def check(self) -> None:
        if self._session.cancelled.is_set():
            raise SqlError("57014", "canceling statement due to user request")

    def feed(self, data: bytes) -> None:
        self._take(lambda: self._rows.extend(self._reader.feed(data)))

    def finish(self) -> int:
        self._take(lambda: self._rows.extend(self._reader.finish()))
        self._session.backend.received += self._rows
        return len(self._rows)

    def _take(self, rows: Callable[[], None]) -> None:
        self.check()
        try:
            rows()
        except SqlError as error:
            shown = self._reader.shown
            error.context = f"COPY toy, {self._reader.place}" + ("" if shown is None else f': "{shown}"')
            raise

    def fail(self, message: str) -> None:
        raise SqlError("57014", f"COPY from stdin failed: {message}")

    def close(self) -> None:
        if self._open:
            self._open = False
            self._session.backend.open_results -= 1
            self._session.copying = None


def _echo_oids(text: str) -> list[int]:
    word, _, rest = text.partition(" ")
    if word != "echo":
        return []
    found = dict(re.findall(r"(\$\d+)(?:::([a-z0-9]+(?:\[\])?))?", rest))
    names = [name or "text" for name in found.values()]
    unknown = [name for name in names if name not in TYPE_OIDS]
    if unknown:
        raise SqlError("42704", f'type "{unknown[0]}" does not exist')
    return [TYPE_OIDS[name] for name in names]


def _echo_fields(text: str) -> tuple[Field, ...]:
    return tuple(Field(f"p{at + 1}", oid) for at, oid in enumerate(_echo_oids(text)))


def _column(value: Any, oid: int) -> pa.Array:
    arrow = ARROW.get(oid)
    if isinstance(value, str) and arrow is not None:
        return pa.array([value], pa.string())
    if oid == 2950 and value is not None:
        return pa.array([str(value)])
    if oid == 2951 and value is not None:
        return pa.array([[None if item is None else str(item) for item in value]], pa.list_(pa.string()))
    return pa.array([value], arrow or pa.string())
