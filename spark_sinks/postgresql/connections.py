"""Connections to a store's server, and its errors in words that a user can read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import psycopg.conninfo

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.postgresql.options import PostgresOptions

# Values are read as text: these settings make it the same on every server.
_SETTINGS = {
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "timezone": "UTC",
    "client_min_messages": "error",
}

Connection = psycopg.Connection[Any]


def connect(
    store: str, options: PostgresOptions, *, timeout_s: float, statement_timeout_s: float, replication: bool = False
) -> Connection:
    """In autocommit. 08006 where the server does not answer in time or refuses the user. ``statement_timeout_s`` of 0
    is none."""
    settings = dict(_SETTINGS)
    if not replication:
        settings["statement_timeout"] = str(int(statement_timeout_s * 1000))
        settings["search_path"] = "pg_catalog"
    with reported(store):
        given = psycopg.conninfo.make_conninfo(
            **options.conninfo(),
            connect_timeout=max(2, int(timeout_s)),
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            application_name="mvserver",
            client_encoding="UTF8",
            options=" ".join(f"-c {name}={value}" for name, value in settings.items()),
            **({"replication": "database"} if replication else {}),
        )
        return psycopg.connect(given, autocommit=True)


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
