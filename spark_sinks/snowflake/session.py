"""One session of an account: logging in, statements, files for a stage, and errors in PostgreSQL's terms."""

from __future__ import annotations

import io
import json
import logging
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any
from urllib.request import getproxies, proxy_bypass

import snowflake.connector
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from snowflake.connector import errors
from snowflake.connector.cursor import SnowflakeCursor
from snowflake.connector.vendored.requests.exceptions import RequestException

from mvserver import sqlstates
from mvserver.errors import SqlError, words_of
from spark_sinks.snowflake.limits import SNOWFLAKE_LOCK_WAIT_MAX_S, SNOWFLAKE_STATEMENT_MAX_S
from spark_sinks.snowflake.names import TableName, literal, spelled
from spark_sinks.snowflake.options import KEY, KEY_FILE, PASSPHRASE, SnowflakeOptions

logging.getLogger("snowflake.connector").setLevel(logging.CRITICAL)  # its errors are raised, and are told then

_POLL_S = 60  # the service answers a statement that runs for longer by then, and is asked again
_PARAMETERS: dict[str, Any] = {
    "CLIENT_TELEMETRY_ENABLED": False,
    "TIMEZONE": "UTC",  # texts are read by these, whatever the account or the user says
    "DATE_INPUT_FORMAT": "AUTO",
    "TIME_INPUT_FORMAT": "AUTO",
    "TIMESTAMP_INPUT_FORMAT": "AUTO",
    "QUOTED_IDENTIFIERS_IGNORE_CASE": False,
    "ABORT_DETACHED_QUERY": True,  # what a killed server has left running holds its locks no longer than needed
    "LOCK_TIMEOUT": SNOWFLAKE_LOCK_WAIT_MAX_S,
}
_NOT_THERE = ("02000", "42S02")
_LOGIN = range(390100, 390400)
_SESSION_ENDED = (390111, 390112, 390114, 390115, 390195)
_LOCKED = (625, 40001)
_NO_WAREHOUSE = 606
_NESTED = (5, 9, 10)  # the codes of the types VARIANT, OBJECT and ARRAY
_CANCELED = (604, 630)
_DETAIL_MAX = 500


class _GuardedCursor(SnowflakeCursor):
    """A server says where a file goes. It may not name a place of this machine."""

    def _create_file_transfer_agent(self, command: str, ret: dict[str, Any], /, **options: Any) -> Any:
        data = ret.get("data") or {}
        place = str((data.get("stageInfo") or {}).get("locationType", "")).upper()
        if str(data.get("command", "")).upper() != "UPLOAD" or place not in ("S3", "AZURE", "GCS"):
            raise errors.InterfaceError(f"a stage of the kind {place or 'unknown'} is not written to")
        return super()._create_file_transfer_agent(command, ret, **options)


class Session:
    """For one thread at a time."""

    def __init__(self, store: str, options: SnowflakeOptions, *, timeout_s: float, tag: str = "mvserver") -> None:
        self._store = store
        key = _key(options)  # first: what is wrong with it is no matter of the connection
        _reach(store, options, timeout_s)
        seconds = max(1, round(timeout_s))
        with self._reported():
            self._connection: Any = snowflake.connector.connect(
                user=options.user,
                **({"password": options.password} if key is None else {"private_key": key}),
                account=options.account,
                protocol=options.protocol,
                host=options.host,
                port=options.port,
                role=None if options.role is None else spelled(options.role),
                warehouse=None if options.warehouse is None else spelled(options.warehouse),
                login_timeout=seconds,
                network_timeout=seconds,
                socket_timeout=seconds,
                platform_detection_timeout_seconds=0.0,  # whose machine this is, is nobody's matter
                paramstyle="qmark",
                application="mvserver",
                session_parameters={**_PARAMETERS, "QUERY_TAG": tag},
            )
        # A login is answered soon or not at all; a statement may be without an answer for longer.
        connection: Any = self._connection
        connection._socket_timeout = max(_POLL_S, seconds)

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._executed(sql, values) as cursor:
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found

    def named(self, sql: str) -> list[dict[str, Any]]:
        """Rows by their columns' names, in lower case."""
        with self._executed(sql, ()) as cursor:
            names = [column.name.lower() for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def changed(self, sql: str, *values: Any) -> int:
        """How many rows an INSERT, UPDATE or DELETE has changed."""
        with self._executed(sql, values) as cursor:
            return int(cursor.fetchall()[0][0])

    def pages(self, sql: str, rows: int) -> Iterator[list[dict[str, Any]]]:
        """Values of VARIANT, OBJECT and ARRAY as what they are in JSON."""
        with self._executed(sql, ()) as cursor:
            names = [column.name for column in cursor.description]
            nested = [column.type_code in _NESTED for column in cursor.description]
            while page := cursor.fetchmany(rows):
                yield [
                    {
                        name: _read(each) if is_json else each
                        for name, each, is_json in zip(names, row, nested, strict=True)
                    }
                    for row in page
                ]

    def upload(self, name: str, content: bytes, place: str) -> None:
        """``name`` and ``place``, which begins with the stage, have no characters that need quotes."""
        sql = f"PUT file://{name} @{place} AUTO_COMPRESS = FALSE OVERWRITE = TRUE"
        with self._executed(sql, (), file_stream=io.BytesIO(content)) as cursor:
            ((status, message),) = [(row[6], row[7]) for row in cursor.fetchall()]
        if status != "UPLOADED":
            raise SqlError(
                sqlstates.IO_ERROR, f'a file for store "{self._store}" could not be written', detail=f"{message}."
            )

    def close(self) -> None:
        """The service rolls back what is not committed."""
        with suppress(errors.Error, RequestException, OSError):
            self._connection.close(retry=False)

    @contextmanager
    def _executed(self, sql: str, values: Sequence[Any], **options: Any) -> Iterator[Any]:
        with self._reported(), self._connection.cursor(_GuardedCursor) as cursor:
            cursor.execute(
                sql,
                values or None,
                timeout=SNOWFLAKE_STATEMENT_MAX_S,  # else the client cancels what takes longer than an answer may
                _no_retry=True,  # a statement that had no answer is not sent again: a server may do it twice
                **options,
            )
            yield cursor

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """What the client raises, as errors of the store."""
        try:
            yield
        except errors.Error as error:
            raise _told(self._store, error) from error
        except (RequestException, OSError) as error:
            raise _away(self._store, words_of(error)) from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:  # of the client, for an odd answer
            raise SqlError(
                sqlstates.SYSTEM_ERROR,
                f'store "{self._store}" gave an answer that is not understood',
                detail=_sentence(words_of(error)),
            ) from error


def _read(text: Any) -> Any:
    """What is no JSON, as the service has it for ``undefined``, stays a text."""
    try:
        return text if text is None else json.loads(text, parse_float=Decimal)
    except ValueError:
        return text


def no_entity(store: str, entity: str) -> SqlError:
    return SqlError(
        sqlstates.UNDEFINED_OBJECT,
        f'entity "{entity}" does not exist in store "{store}"',
        hint='A table is named as LIST ENTITIES has it, in double quotes: "DATABASE.SCHEMA.TABLE".',
    )


def found_table(session: Session, name: TableName) -> dict[str, Any] | None:
    """What SHOW TABLES says of it; None where there is no such table."""
    try:
        rows = session.named(f"SHOW TABLES LIKE {literal(name.table)} IN SCHEMA {name.schema_sql}")
    except SqlError as error:
        if error.sqlstate == sqlstates.UNDEFINED_OBJECT:  # the schema
            return None
        raise
    wanted = (name.table, name.schema, name.database)
    return next((row for row in rows if (row["name"], row["schema_name"], row["database_name"]) == wanted), None)


def described_table(session: Session, name: TableName) -> list[dict[str, Any]]:
    """What DESCRIBE TABLE says. The table's schema is the session's then."""
    session.run(f"USE SCHEMA {name.schema_sql}")
    return session.named(f"DESCRIBE TABLE {name.sql}")


def _key(options: SnowflakeOptions) -> bytes | None:
    """As the client takes it; 22023 for what is none."""
    if options.key is None and options.key_file is None:
        return None
    name = KEY if options.key is not None else KEY_FILE
    try:
        text = options.key.encode() if options.key is not None else options.key_file.read_bytes()  # type: ignore[union-attr]
        passphrase = None if options.passphrase is None else options.passphrase.encode()
        found = serialization.load_pem_private_key(text, passphrase)
    except (ValueError, TypeError, OSError) as error:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "{name}" is not a private key that can be read',
            hint=f"It is an RSA key in PEM; one that is encrypted needs '{PASSPHRASE}'.",
        ) from error
    if not isinstance(found, RSAPrivateKey):
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'property "{name}" is not an RSA key')
    return found.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _reach(store: str, options: SnowflakeOptions, timeout_s: float) -> None:
    """An address that does not answer is known at once: the client would go on trying. Not where a proxy is between."""
    if options.protocol in getproxies() and not proxy_bypass(options.host):
        return
    try:
        socket.create_connection((options.host, options.port), timeout=timeout_s).close()
    except OSError as error:
        raise _away(store, words_of(error)) from error


def _told(store: str, error: errors.Error) -> SqlError:
    number, state = int(error.errno or 0), str(error.sqlstate or "")
    detail = _sentence(str(error.msg or ""))

    def told(sqlstate: str, message: str) -> SqlError:
        return SqlError(sqlstate, message, detail=detail)

    if number in _SESSION_ENDED:
        return _away(store, "the session has ended")
    if number in _LOGIN or isinstance(error, errors.ForbiddenError):
        return told(sqlstates.INSUFFICIENT_PRIVILEGE, f'store "{store}" refuses the login')
    if number in _LOCKED:
        return told(sqlstates.SERIALIZATION_FAILURE, f'a table of store "{store}" is locked by another transaction')
    if number in _CANCELED:
        return told(sqlstates.CANNOT_CONNECT_NOW, f'store "{store}" has canceled a statement')
    if number == _NO_WAREHOUSE:
        return told(sqlstates.CANNOT_CONNECT_NOW, f'store "{store}" has no warehouse that runs')
    if not isinstance(error, (errors.ProgrammingError, errors.IntegrityError, errors.DataError)):
        return _away(store, str(error.msg or error))
    if state in _NOT_THERE:
        return told(sqlstates.UNDEFINED_OBJECT, f'store "{store}" does not have what is named, or it is not allowed')
    if state == sqlstates.INSUFFICIENT_PRIVILEGE:
        return told(sqlstates.INSUFFICIENT_PRIVILEGE, f'store "{store}" refuses the statement')
    if state == sqlstates.DUPLICATE_OBJECT:
        return told(sqlstates.DUPLICATE_OBJECT, f'store "{store}" has such a table already')
    if state[:2] in ("22", "23"):
        return told(sqlstates.DATA_EXCEPTION, f'a value does not fit its column in store "{store}"')
    if state[:2] == "08":
        return _away(store, str(error.msg))
    return told(sqlstates.SYSTEM_ERROR, f'store "{store}" has failed a statement')


def _away(store: str, words: str) -> SqlError:
    return SqlError(sqlstates.CONNECTION_FAILURE, f'could not connect to store "{store}"', detail=_sentence(words))


def _sentence(words: str) -> str | None:
    """The first line of what is said."""
    first = next((line.strip() for line in words.splitlines() if line.strip()), "")
    return f"{first[:_DETAIL_MAX].rstrip('.')}." if first else None
