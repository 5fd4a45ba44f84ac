"""A stream of changes at libpq's level: psycopg has no call for it. Messages come in, confirmed LSNs go out."""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
from psycopg import generators, pq

from mvserver.errors import SqlError
from spark_sinks.postgresql.connections import Connection, connect, reported, translated
from spark_sinks.postgresql.limits import POSTGRES_TIMEOUT_S
from spark_sinks.postgresql.options import PostgresOptions
from spark_sinks.postgresql.positions import lsn_text
from spark_sinks.postgresql.tables import literal, quoted

_EPOCH_S = 946_684_800
_STATUS = struct.Struct(">cQQQqB")
_KEEPALIVE = struct.Struct(">QqB")
_DATA, _SENT = b"wk"


@dataclass(frozen=True)
class Sent:
    """All that committed before ``lsn`` was sent. ``wanted``: the server wants an answer."""

    lsn: int
    wanted: bool


class ReplicationStream:
    """One connection in the state COPY BOTH. Used by one thread."""

    def __init__(
        self,
        store: str,
        options: PostgresOptions,
        *,
        timeout_s: float = POSTGRES_TIMEOUT_S,
        given_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._timeout_s = timeout_s
        self._connection: Connection = connect(
            store, options, timeout_s=timeout_s, statement_timeout_s=0, replication=True, given_up=given_up
        )
        self._pg = self._connection.pgconn

    @property
    def connection(self) -> Connection:
        """For the commands before :meth:`start`."""
        return self._connection

    def start(self, slot: str, publication: str, lsn: int) -> None:
        """From ``lsn`` on, or from where the slot was confirmed if that is later: the server says no word of it."""
        options = f"proto_version '1', publication_names {literal(quoted(publication))}"
        command = f"START_REPLICATION SLOT {quoted(slot)} LOGICAL {lsn_text(lsn)} ({options})"
        with reported(self._store), self._connection.answering_within(self._timeout_s):
            self._pg.send_query(command.encode())
            result = self._connection.wait(generators.execute(self._pg))[0]
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise self._failure(result)

    def messages(self) -> Iterator[bytes | Sent]:
        """Those that are there, without waiting: the plug-in's as they came. Raises the store's error where the stream
        has ended."""
        pg = self._pg
        try:
            pg.consume_input()
            while True:
                size, content = pg.get_copy_data(1)
                if size == 0:
                    return
                if size < 0:
                    raise self._failure(pg.get_result())
                kind = content[0]
                if kind == _DATA:
                    yield bytes(content[25:])
                elif kind == _SENT:
                    lsn, _, wanted = _KEEPALIVE.unpack_from(content, 1)
                    yield Sent(lsn, bool(wanted))
        except psycopg.Error as error:
            raise translated(self._store, error) from error

    def wait(self, timeout_s: float, also: int | None = None) -> None:
        """Until something comes, here or at the descriptor ``also``."""
        waiting = select.poll()  # descriptors of a busy server may be beyond what select() takes
        for descriptor in (self._pg.socket, *(() if also is None else (also,))):
            waiting.register(descriptor, select.POLLIN)
        waiting.poll(timeout_s * 1000)

    def confirm(self, received: int, confirmed: int, *, answer: bool = False) -> None:
        """The server may forget what is before ``confirmed``. ``answer``: it says where it stands, at once."""
        now_us = int((time.time() - _EPOCH_S) * 1_000_000)
        message = _STATUS.pack(b"r", received, confirmed, confirmed, now_us, answer)
        try:
            self._pg.put_copy_data(message)
            self._pg.flush()
        except psycopg.Error as error:
            raise translated(self._store, error) from error

    def close(self) -> None:
        self._connection.close()

    def _failure(self, result: pq.abc.PGresult | None) -> SqlError:
        if result is None:
            return translated(self._store, psycopg.OperationalError("the connection was closed"))
        encoding = "utf-8"
        if result.status == pq.ExecStatus.FATAL_ERROR:
            return translated(self._store, psycopg.errors.error_from_result(result, encoding=encoding))
        return translated(self._store, psycopg.OperationalError("the server has ended the stream"))
