"""COPY TO STDOUT by real clients, byte for byte as a real PostgreSQL writes it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.clients.live_server import LiveServer


@pytest.fixture
def connection(server: LiveServer) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.conninfo, autocommit=True, connect_timeout=10) as made:
        yield made


def messages(connection: psycopg.Connection[Any], sql: str) -> list[bytes]:
    with connection.cursor() as cursor, cursor.copy(sql) as copy:
        return [bytes(data) for data in copy]


# Texts with everything that some format escapes, quotes or takes for something else; the last two rows are NULL and ''.
TEXTS = r"""
SELECT n, CASE n
    WHEN 1 THEN 'plain' WHEN 2 THEN E'tab\there' WHEN 3 THEN E'line\nfeed\rreturn' WHEN 4 THEN E'back\\slash \\N \\.'
    WHEN 5 THEN E'\b\f\x0b\x01\x7f' WHEN 6 THEN 'comma, "quoted" ''single''' WHEN 7 THEN '\.' WHEN 8 THEN '\N'
    WHEN 9 THEN 'nil' WHEN 10 THEN 'näme € 漢字 🦆' WHEN 11 THEN '$;|~!' WHEN 12 THEN ' blank ' WHEN 13 THEN '""'
    WHEN 14 THEN NULL WHEN 15 THEN '' END AS "odd, name",
    CASE WHEN n % 3 = 0 THEN NULL ELSE n * 1.5 END AS x
FROM generate_series(1, 15) AS t(n) ORDER BY n
"""
VALUES = """
SELECT 1::smallint AS i2, (-2147483648)::int AS i4, 9007199254740993::bigint AS i8, 1.5::real AS f4, 0.1::float8 AS f8,
    12.30::numeric(12, 2) AS d, true AS yes, false AS no, DATE '2024-02-29' AS day, TIME '23:59:59.123456' AS clock,
    TIMESTAMP '2024-01-02 03:04:05.678901' AS ts, TIMESTAMPTZ '2024-01-02 03:04:05+00' AS tz,
    INTERVAL '1 mon 2 days 03:04:05' AS iv, 'näme'::text AS t, '\\x00ff5c'::bytea AS b,
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u, ARRAY[1, 2, NULL] AS a, ARRAY['x,y', 'q"'] AS texts,
    NULL::int AS nothing
"""
OPTIONS = [
    "",
    "(HEADER)",
    "(DELIMITER '|', NULL 'nil')",
    "(DELIMITER ';', NULL '')",
    "(DELIMITER E'\\x01')",
    "(FORMAT csv)",
    "(FORMAT csv, HEADER)",
    "(FORMAT csv, DELIMITER ';', NULL 'nil')",
    "(FORMAT csv, QUOTE '$')",
    "(FORMAT csv, ESCAPE '!')",
    "(FORMAT csv, QUOTE '''', ESCAPE '\\', DELIMITER E'\\t', NULL '\\N')",
    "(FORMAT csv, FORCE_QUOTE *)",
    '(FORMAT csv, FORCE_QUOTE ("odd, name"), HEADER)',
    "CSV HEADER QUOTE AS '~'",
    "(FORMAT binary)",
]


@pytest.mark.postgres
@pytest.mark.parametrize("options", OPTIONS)
def test_bytes_are_postgresqls(connection: psycopg.Connection[Any], postgres_server: Any, options: str) -> None:
    one = TEXTS.replace("SELECT n, CASE", "SELECT CASE").replace(
        ",\n    CASE WHEN n % 3 = 0 THEN NULL ELSE n * 1.5 END AS x", ""
    )
    queries = [
        f'SELECT n::int AS n, "odd, name"::text AS "odd, name", x::numeric(12, 1) AS x FROM ({TEXTS}) AS t ORDER BY n',
        one if "FORCE_QUOTE (" in options else one.replace('"odd, name"', "t"),
    ]
    with psycopg.connect(postgres_server.dsn, autocommit=True) as theirs:
        for query in queries:
            copy = f"COPY ({query}) TO STDOUT {options}"
            assert messages(connection, copy) == messages(theirs, copy)


@pytest.mark.postgres
@pytest.mark.parametrize("options", ["", "(FORMAT csv)", "(FORMAT binary)"])
def test_types_are_postgresqls(connection: psycopg.Connection[Any], postgres_server: Any, options: str) -> None:
    copy = f"COPY ({VALUES}) TO STDOUT {options}"
    with psycopg.connect(postgres_server.dsn, autocommit=True) as theirs:
        for each in (connection, theirs):
            each.execute("SET TimeZone = 'Asia/Tokyo'")
        assert messages(connection, copy) == messages(theirs, copy)


@pytest.mark.postgres
@pytest.mark.parametrize("options", ["", "(FORMAT csv, HEADER)", "(FORMAT binary)"])
def test_no_rows(connection: psycopg.Connection[Any], postgres_server: Any, options: str) -> None:
    copy = f"COPY (SELECT 1 AS a, 'x'::text AS b WHERE false) TO STDOUT {options}"
    with psycopg.connect(postgres_server.dsn, autocommit=True) as theirs:
        assert messages(connection, copy) == messages(theirs, copy)


def test_a_view_and_some_of_its_columns(connection: psycopg.Connection[Any]) -> None:
    assert sorted(messages(connection, "COPY visits TO STDOUT")) == [b"./cart\t10\n", b"./home\t30\n", b"./shop\t20\n"]
    assert sorted(messages(connection, "COPY public.visits (visits) TO STDOUT CSV")) == [b"10\n", b"20\n", b"30\n"]
    with pytest.raises(errors.UndefinedColumn):
        messages(connection, "COPY visits (nothing) TO STDOUT")


@pytest.mark.parametrize("form", ["text", "binary"])
def test_rows_by_psycopg(connection: psycopg.Connection[Any], form: str) -> None:
    cursor = connection.cursor()
    with cursor.copy(f"COPY (SELECT n, n::text AS word FROM numbers ORDER BY n) TO STDOUT (FORMAT {form})") as copy:
        copy.set_types(["int8", "text"])
        found = list(copy.rows())
    assert found == [(n, str(n)) for n in range(100_000)]
    assert cursor.rowcount == 100_000  # of the tag


def test_parameters_are_the_clients(connection: psycopg.Connection[Any]) -> None:
    with connection.cursor().copy("COPY (SELECT visits FROM visits WHERE url = %s) TO STDOUT", ["./home"]) as copy:
        assert list(copy.rows()) == [("30",)]


def test_an_error_on_the_way(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(errors.DivisionByZero):
        messages(connection, "COPY (SELECT 1 / (n - 50000) FROM numbers) TO STDOUT")
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_what_is_refused(connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    for copy, sqlstate in [
        (f"COPY visits TO '{tmp_path / 'out'}'", "42501"),
        (f"COPY visits FROM '{tmp_path / 'in'}'", "42501"),
        ("COPY (SELECT 1) TO PROGRAM 'cat'", "42501"),
        ("COPY visits FROM STDIN", "42809"),
        ("COPY (SELECT * FROM read_csv('/etc/passwd')) TO STDOUT", "42883"),
    ]:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(copy)
        assert caught.value.diag.sqlstate == sqlstate
    assert list(tmp_path.iterdir()) == []


def test_cancelling_a_copy(server: LiveServer) -> None:
    """Its rows are made as they are taken: most of these never are."""
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        with connection.cursor().copy(
            "COPY (SELECT a.n, b.n, 'some text to fill the buffers' FROM numbers a, numbers b) TO STDOUT"
        ) as copy:
            assert bytes(copy.read()).endswith(b"\tsome text to fill the buffers\n")
            connection.cancel_safe()
            with pytest.raises(errors.QueryCanceled):
                list(copy)
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_copies_to_a_file_of_its_own(server: LiveServer, tmp_path: Path) -> None:
    target = tmp_path / "visits.csv"
    done = subprocess.run(
        ["psql", "-X", "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres", "-d", "postgres",
         "-c", f"\\copy (SELECT * FROM visits ORDER BY url) TO '{target}' CSV HEADER"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "COPY 3\n", "")
    assert target.read_text() == "url,visits\n./cart,10\n./home,30\n./shop,20\n"
