"""Two servers that a client is run against: ours, and a real PostgreSQL with the same rows."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

POSTGRES_ROWS = """
CREATE TABLE visits (url text, visits bigint);
INSERT INTO visits VALUES ('./home', 30), ('./shop', 20), ('./cart', 10);
CREATE TABLE numbers AS SELECT n::bigint AS n FROM generate_series(0, 99999) AS n;
CREATE TABLE typed (
    id integer NOT NULL, flag boolean, small smallint, big bigint, real4 real, real8 double precision,
    amount numeric(12, 2), name text, bytes bytea, day date, clock time, moment timestamp, instant timestamptz
);
INSERT INTO typed VALUES (
    1, true, 2, 9007199254740993, 1.5, 0.1, 12.30, 'näme ''x''', '\\x00ff', '2024-02-29', '23:59:59.123456',
    '2024-01-02 03:04:05.678901', '2024-01-02 03:04:05+00'
);
INSERT INTO typed (id) VALUES (2);
"""
"""The views of ``live_server.with_views``."""


@dataclass(frozen=True)
class Address:
    """``host`` is a folder where the server listens on a socket in it."""

    host: str
    port: int
    database: str = "postgres"
    user: str = "postgres"

    @property
    def conninfo(self) -> str:
        return f"host={self.host} port={self.port} user={self.user} dbname={self.database}"


def postgres_world(dsn: str, database: str) -> Address:
    """A new database of a real PostgreSQL, with the rows of our views."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}")
        connection.execute(f"ALTER DATABASE {database} SET TimeZone = 'UTC'")
        info = connection.info
        address = Address(info.host, info.port, database)
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute(POSTGRES_ROWS)
    return address
