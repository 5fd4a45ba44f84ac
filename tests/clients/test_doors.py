"""DuckDB's own doors are shut: files, other databases, extensions and settings, by whatever way a text gets there.

The oracle is a file with a mark beside the database: the mark is never in an answer, no file is written, and what
the engine is attached to and set to is the same afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.clients.live_server import LiveServer, with_views

MARK = "mark-that-nobody-may-read"
Ask = Callable[[str], object]


@pytest.fixture(scope="module")
def shut(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveServer, Path]]:
    folder = tmp_path_factory.mktemp("doors")
    for name, content in (("m.csv", f"{MARK},1\n"), ("m.json", f'{{"a": "{MARK}"}}\n'), ("m.txt", MARK)):
        (folder / name).write_text(content)
    server = with_views(LiveServer(folder))
    server.start()
    yield server, folder
    server.stop()


def engine_state(server: LiveServer) -> object:
    with server.database.cursor() as cursor:
        settings = cursor.execute("SELECT name, value FROM duckdb_settings() ORDER BY name").fetchall()
        attached = cursor.execute("SELECT database_name, path FROM duckdb_databases() ORDER BY 1").fetchall()
        functions = cursor.execute("SELECT count(*) FROM duckdb_functions() WHERE database_name = 'system'").fetchall()
    return settings, attached, functions


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if not path.name.startswith(("views.", "catalog."))}


def asked(connection: psycopg.Connection[Any], text: str, *, prepare: bool = False) -> object:
    """The answer, or SQLSTATE and message."""
    try:
        found = connection.execute(text, prepare=prepare)
        return found.fetchall() if found.description is not None else found.statusmessage
    except psycopg.Error as error:
        return error.sqlstate, str(error)


def ways(connection: psycopg.Connection[Any]) -> Mapping[str, Ask]:
    """The ways that a query takes to DuckDB."""

    def as_cursor(text: str) -> object:
        with connection.transaction():
            declared = asked(connection, f"DECLARE c CURSOR FOR {text}")
            return asked(connection, "FETCH ALL FROM c") if declared == "DECLARE CURSOR" else declared

    def as_copy(text: str) -> object:
        try:
            with connection.cursor() as cursor, cursor.copy(f"COPY ({text}) TO STDOUT") as copy:
                return b"".join(copy).decode()
        except psycopg.Error as error:
            return error.sqlstate, str(error)

    def as_prepared(text: str) -> object:
        prepared = asked(connection, f"PREPARE d AS {text}")
        if prepared != "PREPARE":
            return prepared
        found = asked(connection, "EXECUTE d")
        connection.execute("DEALLOCATE d")
        return found

    return {
        "simple": lambda text: asked(connection, text),
        "extended": lambda text: asked(connection, text, prepare=True),
        "sub-query": lambda text: asked(connection, f"SELECT * FROM ({text}) AS q"),
        "WITH": lambda text: asked(connection, f"WITH q AS ({text}) SELECT * FROM q"),
        "UNION": lambda text: asked(connection, f"SELECT 'x' UNION ALL ({text})"),
        "EXISTS": lambda text: asked(connection, f"SELECT url FROM visits WHERE EXISTS ({text})"),
        "PREPARE": as_prepared,
        "cursor": as_cursor,
        "COPY": as_copy,
        "EXPLAIN": lambda text: asked(connection, f"EXPLAIN {text}"),
        "EXPLAIN ANALYZE": lambda text: asked(connection, f"EXPLAIN ANALYZE {text}"),
        "view": lambda text: asked(connection, f"CREATE MATERIALIZED VIEW stolen AS {text}"),
    }


QUERIES = [
    "SELECT * FROM '{0}/m.csv'",
    'SELECT * FROM "{0}/m.csv"',
    "SELECT * FROM read_csv('{0}/m.csv')",
    "SELECT * FROM read_csv_auto('{0}/m.csv')",
    "SELECT * FROM read_text('{0}/m.txt')",
    "SELECT * FROM read_blob('{0}/m.txt')",
    "SELECT * FROM read_json('{0}/m.json')",
    "SELECT * FROM sniff_csv('{0}/m.csv')",
    "SELECT * FROM glob('{0}/*')",
    "SELECT content FROM main.read_text('{0}/m.txt')",
    "SELECT content FROM pg_catalog.read_text('{0}/m.txt')",
    "SELECT content FROM system.main.read_text('{0}/m.txt')",
    "SELECT content FROM \"ReAd_TeXt\"('{0}/m.txt')",
    "SELECT * FROM ROWS FROM (read_text('{0}/m.txt')) AS t",
    "SELECT * FROM visits, LATERAL read_text('{0}/m.txt') AS t",
    "SELECT * FROM query('SELECT * FROM read_text(''{0}/m.txt'')')",
    "SELECT * FROM query_table('{0}/m.csv')",
    "SELECT json_serialize_plan('SELECT * FROM read_text(''{0}/m.txt'')')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''{0}/m.txt'')'))",
    "SELECT getenv('PATH')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_tables()",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM pragma_version()",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM _state.\"x\"",
    "SELECT * FROM _ledger.pipelines",
    "SELECT * FROM server",
    "SELECT * FROM postgres_scan('host=127.0.0.1', 'public', 't')",
    "SELECT pg_read_file('{0}/m.txt')",
    "SELECT * FROM pg_ls_dir('{0}')",
    "SELECT lo_import('{0}/m.txt')",
    "SELECT enable_logging()",
    "SELECT * FROM enable_profiling()",
    "SELECT write_log('x')",
    "SELECT nextval('x')",
    "FROM '{0}/m.csv'",
    "FROM read_text('{0}/m.txt') SELECT content",
    "TABLE \"{0}/m.csv\"",
    "PIVOT '{0}/m.csv' ON a",
    "DESCRIBE '{0}/m.csv'",
    "SUMMARIZE '{0}/m.csv'",
]  # fmt: skip

STATEMENTS = [
    "COPY visits TO '{0}/out.csv'",
    "COPY (SELECT 1) TO PROGRAM 'cat'",
    "COPY visits FROM '{0}/m.csv'",
    "ATTACH '{0}/other.duckdb' AS other",
    "ATTACH DATABASE '{0}/other.duckdb'",
    "DETACH views",
    "USE other",
    "EXPORT DATABASE '{0}/export'",
    "IMPORT DATABASE '{0}/export'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL httpfs FROM 'http://127.0.0.1:1'",
    "CREATE SECRET s (TYPE s3)",
    "CREATE TABLE t AS SELECT * FROM '{0}/m.csv'",
    "CREATE MACRO m() AS TABLE SELECT * FROM read_text('{0}/m.txt')",
    "CREATE VIEW v AS SELECT * FROM '{0}/m.csv'",
    "SELECT * INTO t FROM visits",
    "INSERT INTO visits VALUES ('x', 1)",
    "DELETE FROM visits",
    "UPDATE visits SET visits = 0",
    "DROP TABLE visits",
    "PRAGMA enable_external_access",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "CHECKPOINT",
    "VACUUM",
    "SET enable_external_access = true",
    "SET GLOBAL enable_external_access = true",
    "SET memory_limit = '1TB'",
    "SET threads = 100",
    "SET home_directory = '{0}'",
    "SET python_enable_replacements = true",
    "SET VARIABLE x = 1",
    "RESET enable_external_access",
    "SELECT set_config('enable_external_access', 'true', false)",
    "SELECT set_config('memory_limit', '1TB', false)",
    "DO $$ BEGIN END $$",
    "LOAD '{0}/m.txt'",
    "SECURITY LABEL ON TABLE visits IS 'x'",
]  # fmt: skip

REFUSALS = {
    "0A000", "25006", "42501", "42601", "42602", "42703", "42704", "42809", "42883", "42P01", "3F000", "3D000", "26000",
}  # fmt: skip


@pytest.fixture
def connection(shut: tuple[LiveServer, Path]) -> Iterator[psycopg.Connection[Any]]:
    """Afterwards nothing may have changed."""
    server, folder = shut
    before, there = engine_state(server), files(folder)
    with psycopg.connect(server.conninfo, autocommit=True) as opened:
        yield opened
        assert asked(opened, "SELECT count(*), sum(visits) FROM visits") == [(3, 60)]
    assert engine_state(server) == before
    assert files(folder) == there


def test_queries(shut: tuple[LiveServer, Path], connection: psycopg.Connection[Any]) -> None:
    _, folder = shut
    for way, ask in ways(connection).items():
        for query in QUERIES:
            answer = ask(query.format(folder))
            assert MARK not in str(answer), (way, query)
            assert isinstance(answer, tuple), (way, query, answer)
            assert answer[0] in REFUSALS, (way, query, answer)


def test_statements(shut: tuple[LiveServer, Path], connection: psycopg.Connection[Any]) -> None:
    _, folder = shut
    for statement in STATEMENTS:
        for prepare in (False, True):
            answer = asked(connection, statement.format(folder), prepare=prepare)
            assert isinstance(answer, tuple), (statement, answer)
            assert answer[0] in REFUSALS, (statement, answer)


HARMLESS = {
    "generate_series", "generate_subscripts", "histogram", "json_each", "jsonb_each", "pg_timezone_names", "range",
    "unnest", "repeat", "version",
}  # fmt: skip
"""What answers in FROM although DuckDB has a table function of the name: ours, or a scalar one."""


def test_no_table_function_of_duckdb_is_a_way_in(
    shut: tuple[LiveServer, Path], connection: psycopg.Connection[Any]
) -> None:
    """All of them, also those that a new version of DuckDB brings."""
    server, folder = shut
    kinds = "('table', 'table_macro', 'pragma') AND database_name = 'system'"
    with server.database.cursor() as cursor:
        found = cursor.execute(
            f"SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN {kinds} ORDER BY 1"
        ).fetchall()
    names = [name for (name,) in found]
    assert len(names) > 100
    for name in names:
        for arguments in ("", f"'{folder}/m.csv'", "1", f"'SELECT * FROM ''{folder}/m.csv'''"):
            answer = asked(connection, f'SELECT * FROM "{name}"({arguments})')
            assert MARK not in str(answer), (name, arguments)
            if isinstance(answer, list):
                assert name in HARMLESS, (name, arguments, answer[:3])
            else:
                assert isinstance(answer, tuple), answer
                assert answer[0] != "XX000", (name, arguments, answer)


def test_no_scalar_function_fails_as_a_bug_or_reads_a_file(
    shut: tuple[LiveServer, Path], connection: psycopg.Connection[Any]
) -> None:
    server, folder = shut
    with server.database.cursor() as cursor:
        found = cursor.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN ('scalar', 'macro') "
            "AND regexp_full_match(function_name, '[a-z_0-9]+') AND NOT contains(function_name, 'collate_') ORDER BY 1"
        ).fetchall()
    for (name,) in found:
        for arguments in ("", f"'{folder}/m.txt'"):
            answer = asked(connection, f'SELECT "{name}"({arguments})')
            assert MARK not in str(answer), (name, arguments)
            assert not (isinstance(answer, tuple) and answer[0] == "XX000"), (name, arguments, answer)


class Hostile:
    """A rewriter of buenavista's that lets queries out."""

    def __init__(self, text: str) -> None:
        self.text = text

    def rewrite(self, sql: str) -> str:
        return self.text


def test_what_a_rewriter_returns_is_held_to_the_same(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(MARK)
    rewriter = Hostile("")
    server = with_views(LiveServer(tmp_path, rewriter=rewriter))
    server.start()
    try:
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            for query in QUERIES:
                rewriter.text = query.format(tmp_path)
                for prepare in (False, True):
                    answer = asked(connection, "SELECT 1", prepare=prepare)
                    assert isinstance(answer, tuple), (query, answer)
                    assert answer[0] in REFUSALS, (query, answer)
                    assert MARK not in str(answer)
    finally:
        server.stop()
