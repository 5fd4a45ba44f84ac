"""Connections to a store's server, whose commands all end, and its errors in words that a user can read."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import psycopg
import psycopg.conninfo
from psycopg import generators, waiting
from psycopg.abc import PQGen
from psycopg.pq.abc import PGconn

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.postgresql.limits import (
    ANSWER_GRACE_S,
    CANCEL_TIMEOUT_S,
    COPY_TIMEOUT_S,
    LOOK_S,
    UNACKNOWLEDGED_S,
)
from spark_sinks.postgresql.options import PostgresOptions

# Values are read as text: these settings make it the same on every server.
_SETTINGS = {
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "timezone": "UTC",
    "client_min_messages": "error",
    "search_path": "pg_catalog",  # else names of relations and types have no schema where it is in the path
}

_Result = TypeVar("_Result")


class NoAnswerError(psycopg.errors.ConnectionTimeout):
    """The server did not answer in time. The connection is closed: the answer may still come."""


class Connection(psycopg.Connection[Any]):
    """Each command ends with the server's answer, with :class:`NoAnswerError`, or with 57014 soon after ``given_up``
    answers true. ``cancels``: the server is told of a command that is not waited for, having no bound of its own. Used
    by one thread at a time."""

    def __init__(
        self, pgconn: PGconn, *, answer_s: float = COPY_TIMEOUT_S, cancels: bool, given_up: Callable[[], bool]
    ) -> None:
        super().__init__(pgconn)
        self._answer_s = answer_s
        self._cancels = cancels
        self._given_up = given_up

    def wait(self, gen: PQGen[_Result], interval: float = LOOK_S, timeout: float | None = None) -> _Result:
        try:
            watched: PQGen[_Result] = _within(gen, self._answer_s, self._given_up)
            return super().wait(watched, min(interval, LOOK_S), timeout)
        except (NoAnswerError, SqlError):
            if self._cancels:
                with suppress(psycopg.Error, OSError):
                    self.cancel_safe(timeout=CANCEL_TIMEOUT_S)
            self.close()
            raise

    @contextmanager
    def answering_within(self, answer_s: float) -> Iterator[None]:
        """Another bound for the commands in it."""
        before, self._answer_s = self._answer_s, answer_s
        try:
            yield
        finally:
            self._answer_s = before


def connect(
    store: str,
    options: PostgresOptions,
    *,
    timeout_s: float,
    statement_timeout_s: float,
    replication: bool = False,
    given_up: Callable[[], bool] = lambda: False,
) -> Connection:
    """In autocommit. 08006 where the server does not answer in time or refuses the user. ``statement_timeout_s`` of 0
    is none: a command may then take as long as a part of a snapshot."""
    settings = dict(_SETTINGS)
    if not replication:
        settings["statement_timeout"] = str(int(statement_timeout_s * 1000))
    given = {
        **options.conninfo(),
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": int(UNACKNOWLEDGED_S * 1000),
        "application_name": "mvserver",
        "client_encoding": "UTF8",
        "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
        **({"replication": "database"} if replication else {}),
    }
    # The server's own word comes first where it has a bound of its own.
    answer_s = statement_timeout_s + ANSWER_GRACE_S if statement_timeout_s else COPY_TIMEOUT_S
    made = partial(Connection, answer_s=answer_s, cancels=replication or not statement_timeout_s, given_up=given_up)
    with reported(store):
        connection = _connected(given, _addresses(options), made, timeout_s, given_up)
        connection.autocommit = True
        return connection


def _addresses(options: PostgresOptions) -> Sequence[str | None]:
    """Of the host. None where it has none: libpq has the words for that."""
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)
    except OSError:
        return [None]
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _connected(
    given: dict[str, Any],
    addresses: Sequence[str | None],
    made: Callable[[PGconn], Connection],
    timeout_s: float,
    given_up: Callable[[], bool],
) -> Connection:
    """By the first address that answers; they share the time."""
    failure: psycopg.Error | None = None
    for address in addresses:
        conninfo = psycopg.conninfo.make_conninfo(**given, hostaddr=address)
        try:
            gen = _within(generators.connect(conninfo), timeout_s / len(addresses), given_up)
            return made(waiting.wait_conn(gen, LOOK_S))
        except psycopg.OperationalError as error:
            failure = error
    assert failure is not None  # noqa: S101 - there is an address
    raise failure


def _within(gen: Any, answer_s: float, given_up: Callable[[], bool]) -> Any:
    """The generator of a command, which is resumed as often as something comes and at intervals."""
    deadline = time.monotonic() + answer_s
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if given_up():
                raise stopping()
            if not ready and time.monotonic() >= deadline:
                raise NoAnswerError(f"No answer came within {answer_s:g} s.")
            wanted = gen.send(ready)
    except StopIteration as ended:
        return ended.value
    finally:
        gen.close()  # a connection that was only begun goes with it


def stopping() -> SqlError:
    return SqlError(sqlstates.QUERY_CANCELED, "the query is being stopped")


@contextmanager
def reported(store: str) -> Iterator[None]:
    """Errors of the server and of the connection as errors of the store."""
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate is None and not isinstance(error, psycopg.OperationalError):
            raise  # a mistake of the caller's, which is no word of the store
        raise translated(store, error) from error


def translated(store: str, error: psycopg.Error) -> SqlError:
    state, words = error.sqlstate, _words(error)
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        return SqlError(sqlstates.CONNECTION_FAILURE, f'store "{store}" does not answer in time', detail=words)
    if state is None or state.startswith(("08", "28", "57P")) or state in ("3D000", "53300"):
        return SqlError(sqlstates.CONNECTION_FAILURE, f'could not connect to store "{store}"', detail=words)
    if state == "57014":
        return SqlError(sqlstates.CONNECTION_FAILURE, f'store "{store}" does not answer in time', detail=words)
    if state == sqlstates.OBJECT_IN_USE:
        return SqlError(sqlstates.OBJECT_IN_USE, f'store "{store}" is still busy', detail=words)
    if state == sqlstates.INSUFFICIENT_PRIVILEGE:
        return SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE,
            f'store "{store}" does not allow the request',
            detail=words,
            hint="The user needs the attribute REPLICATION, must own the tables that are read, and may CREATE in the "
            "database.",
        )
    if state in (sqlstates.UNDEFINED_OBJECT, sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE):
        return SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, f'store "{store}" reports an error', detail=words)
    return SqlError(sqlstates.SYSTEM_ERROR, f'store "{store}" reports an error', detail=words)


def _words(error: psycopg.Error) -> str:
    text = error.diag.message_primary or next((line for line in str(error).splitlines() if line.strip()), "no answer")
    text = text.strip().rpartition("FATAL:")[2].strip()
    return text if text.endswith((".", "?", "!")) else text + "."
