"""Roles, passwords and TLS of the real program, asked by psycopg and psql. No Java is found, so no Spark."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.pq import DiagnosticField

from catalog.store import Catalog
from mvserver import cli, first_password
from mvserver.auth import passwords
from mvserver.errors import SqlError
from tests.server.program import Program, refusal, without_java
from tests.services.postgres import PostgresServer
from tests.wire import certificates as wire_certificates

PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("server")
    certificate = wire_certificates.make(folder)
    arguments = (
        "--authentication", "scram-sha-256", "--tls", "required", "--tls-certificate", str(certificate.file),
        "--tls-key", str(certificate.key), "--log-level", "debug", "--superuser-reserved-connections", "196",
    )  # fmt: skip
    environment = {**without_java(), first_password.VARIABLE: PASSWORD}
    with Program(folder, *arguments, environment=environment) as program:
        yield program.ready()


def as_superuser(server: Program) -> psycopg.Connection[tuple[Any, ...]]:
    return server.connect(password=PASSWORD, sslmode="require")


def state_of(raised: pytest.ExceptionInfo[psycopg.Error]) -> str | None:
    return raised.value.sqlstate


def test_the_first_superuser_has_the_password_of_the_variable(server: Program) -> None:
    with as_superuser(server) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("postgres",)
        assert connection.execute("SHOW ssl").fetchone() == ("on",)
        assert connection.pgconn.ssl_in_use
        assert connection.pgconn.parameter_status(b"is_superuser") == b"on"


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"password": "wrong"}, 'password authentication failed for user "postgres"'),
        ({"user": "nosuch", "password": PASSWORD}, 'password authentication failed for user "nosuch"'),
        ({}, "no password supplied"),
        ({"password": PASSWORD, "sslmode": "disable"}, "connections without TLS are not allowed"),
        ({"password": PASSWORD, "dbname": "nosuch"}, 'database "nosuch" does not exist'),
    ],
)
def test_who_is_not_let_in(server: Program, parameters: dict[str, str], words: str) -> None:
    with pytest.raises(psycopg.OperationalError, match=words):
        server.connect(**parameters)


def test_the_life_of_a_role(server: Program) -> None:
    with as_superuser(server) as root:
        root.execute("CREATE USER anna PASSWORD 'her first secret'")
        with server.connect(user="anna", password="her first secret") as anna:
            assert anna.execute("SELECT current_user, 1").fetchone() == ("anna", 1)
            assert anna.pgconn.parameter_status(b"is_superuser") == b"off"
            for statement in ("CREATE ROLE x", "ALTER ROLE postgres PASSWORD 'x'", "DROP ROLE postgres"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    anna.execute(statement)
            # what psql's \password does: the server is not told the password
            verifier = anna.pgconn.encrypt_password(b"her second secret", b"anna", b"scram-sha-256").decode()
            anna.execute(f"ALTER USER anna PASSWORD '{verifier}'")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            server.connect(user="anna", password="her first secret")
        with server.connect(user="anna", password="her second secret"):
            pass
        root.execute("ALTER ROLE anna NOLOGIN")
        with pytest.raises(psycopg.OperationalError, match='role "anna" is not permitted to log in'):
            server.connect(user="anna", password="her second secret")
        root.execute("ALTER ROLE anna LOGIN PASSWORD NULL")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            server.connect(user="anna", password="x")
        root.execute("ALTER ROLE anna PASSWORD 'x' VALID UNTIL '2000-01-01'")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            server.connect(user="anna", password="x")
        root.execute("ALTER ROLE anna VALID UNTIL 'infinity'")
        with server.connect(user="anna", password="x"):
            pass
        root.execute("DROP ROLE anna")
        with pytest.raises(psycopg.errors.UndefinedObject):
            root.execute("DROP ROLE anna")


def test_some_connections_are_kept_for_superusers(server: Program) -> None:
    """196 of the 200: the fifth session is a superuser's."""
    with as_superuser(server) as root:
        assert root.execute("SHOW superuser_reserved_connections").fetchone() == ("196",)
        root.execute("CREATE USER cleo PASSWORD 'x'")
        others = [as_superuser(server) for _ in range(3)]
        with pytest.raises(psycopg.OperationalError, match="remaining connection slots are reserved"):
            server.connect(user="cleo", password="x")
        others.append(as_superuser(server))
        for other in others:
            other.close()
        deadline = time.monotonic() + 20
        while root.execute("SELECT count(*) FROM pg_stat_activity").fetchone() != (1,):
            assert time.monotonic() < deadline
        with server.connect(user="cleo", password="x") as cleo:
            shown = cleo.execute("SELECT usename, query, state FROM pg_stat_activity ORDER BY 1").fetchall()
            assert shown[1] == ("postgres", "<insufficient privilege>", None)
            assert shown[0][0] == "cleo"
            assert str(shown[0][1]).startswith("SELECT usename")
            for name in ("queries", "views", "pipelines", "ledger", "dependencies", "rejected_rows", "backfills"):
                assert cleo.execute(f"SELECT count(*) FROM mv_catalog.{name}").fetchone() == (0,)
        root.execute("DROP ROLE cleo")


def test_in_a_transaction_a_role_is_there_after_commit(server: Program) -> None:
    with as_superuser(server) as root:
        root.execute("BEGIN")
        root.execute("CREATE ROLE ben PASSWORD 'not to be told'")
        root.execute("ALTER ROLE ben LOGIN")
        root.execute("ROLLBACK")
        assert root.execute("SELECT count(*) FROM pg_roles WHERE rolname = 'ben'").fetchone() == (0,)
        with root.transaction():
            root.execute("CREATE ROLE ben PASSWORD 'not to be told'")
            root.execute("ALTER ROLE ben LOGIN")
        with server.connect(user="ben", password="not to be told"):
            pass
        root.execute("DROP ROLE ben")


def test_pg_roles_and_psql_show_them(server: Program) -> None:
    with as_superuser(server) as root:
        root.execute("CREATE ROLE team")
        root.execute("CREATE USER boss SUPERUSER PASSWORD 'x'")
        rows = root.execute(
            "SELECT rolname, rolsuper, rolcreatedb, rolcanlogin, rolpassword FROM pg_roles WHERE oid > 10 ORDER BY 1"
        ).fetchall()
        assert rows == [("boss", True, True, True, "********"), ("team", False, False, False, "********")]
        assert root.execute("SELECT usename FROM pg_user ORDER BY 1").fetchall() == [("boss",), ("postgres",)]
        told = subprocess.run(
            ["psql", "-XAt", "-h", "127.0.0.1", "-p", str(server.port), "-U", "boss", "-c", "\\du", "postgres"],
            capture_output=True, text=True, timeout=20, check=False, env={**os.environ, "PGPASSWORD": "x"},
        )  # fmt: skip
        assert told.returncode == 0, told.stderr
        everything = "Superuser, Create role, Create DB, Replication, Bypass RLS"
        assert [line.split("|")[:2] for line in told.stdout.splitlines()] == [
            ["boss", everything],
            ["postgres", everything],
            ["team", "Cannot login"],
        ]
        root.execute("DROP ROLE team, boss")


def test_no_password_is_in_the_log_or_in_what_others_see(server: Program) -> None:
    with as_superuser(server) as root, as_superuser(server) as other:
        root.execute("CREATE ROLE hidden PASSWORD 'most secret'")
        seen = other.execute("SELECT query FROM pg_stat_activity WHERE query LIKE 'CREATE ROLE hidden%'").fetchall()
        assert seen == [("CREATE ROLE hidden PASSWORD '***'",)]
        root.execute("DROP ROLE hidden")
    with pytest.raises(psycopg.OperationalError):
        server.connect(password="a secret guess")
    log = server.stderr
    assert "CREATE ROLE hidden PASSWORD '***'" in log
    assert "authentication failed for role 'postgres' from 127.0.0.1: the password is wrong" in log
    for secret in ("most secret", "a secret guess", PASSWORD, "SCRAM-SHA-256$"):
        assert secret not in log


COMPARED = (
    "CREATE ROLE r_one PASSWORD 'x'",
    "CREATE USER r_two WITH NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT LOGIN NOREPLICATION NOBYPASSRLS",
    "CREATE ROLE r_one",
    "CREATE ROLE public",
    'CREATE ROLE "none"',
    "CREATE ROLE pg_mine",
    "CREATE ROLE current_user",
    "CREATE ROLE r_three LOGIN NOLOGIN",
    "CREATE ROLE r_three UNENCRYPTED PASSWORD 'x'",
    "CREATE ROLE r_three quick",
    "CREATE ROLE r_three PASSWORD x",
    "ALTER ROLE r_one SUPERUSER LOGIN",
    "ALTER ROLE r_two PASSWORD NULL",
    "ALTER ROLE r_one PASSWORD 'x' PASSWORD 'y'",
    "ALTER ROLE r_nosuch LOGIN",
    "DROP ROLE r_one, r_nosuch",
    "DROP ROLE current_user",
    "DROP ROLE IF EXISTS r_one, r_nosuch",
    "DROP USER r_two",
    "DROP ROLE postgres",
)


@pytest.mark.postgres
def test_statements_end_as_postgresqls_do(server: Program, postgres_server: PostgresServer) -> None:
    def outcomes(connection: psycopg.Connection[tuple[Any, ...]]) -> list[tuple[str, str]]:
        found = []
        for statement in COMPARED:
            result = connection.pgconn.exec_(statement.encode())
            code = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
            message = (result.error_field(DiagnosticField.MESSAGE_PRIMARY) or result.command_status or b"").decode()
            found.append((code, message))
        return found

    with as_superuser(server) as ours, psycopg.connect(postgres_server.dsn, autocommit=True) as theirs:
        assert list(zip(COMPARED, outcomes(ours), strict=True)) == list(zip(COMPARED, outcomes(theirs), strict=True))


# --- the first password, and what stops the start -------------------------------------------------------------------


def test_init_sets_and_mends_the_first_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    for password in ("first", "second"):
        monkeypatch.setenv(first_password.VARIABLE, password)
        assert cli.main(["init", "--data-dir", str(data)]) == 0
        assert first_password.VARIABLE not in os.environ
        assert capsys.readouterr().out == f'the password of role "postgres" is set in {data}\n'
        catalog = Catalog.open(data / "catalog.db")
        kept = passwords.parse(catalog.roles.get("postgres").password or "")
        catalog.close()
        assert isinstance(kept, passwords.ScramVerifier)
        assert kept == passwords.ScramVerifier.of(password, kept.salt, kept.iterations)
    assert (data / "catalog.db").stat().st_mode & 0o077 == 0


def test_init_refuses_an_empty_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "empty").open("w+") as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert cli.main(["init", "--data-dir", str(tmp_path / "data")]) == 2
    assert capsys.readouterr().err == "mvserver: empty string is not a valid password\n"


def test_the_variable_sets_the_first_password_only(tmp_path: Path) -> None:
    catalog = Catalog.open(tmp_path / "catalog.db")
    with pytest.raises(SqlError) as raised:
        first_password.require(catalog)
    assert (raised.value.sqlstate, raised.value.message) == (
        "F0000",
        "no role has a password, so that nobody could log in",
    )
    first_password.provide(catalog, None, "md5")
    assert catalog.roles.get("postgres").password is None
    first_password.provide(catalog, "first", "md5")
    kept = catalog.roles.get("postgres").password
    assert kept == passwords.Md5Verifier.of("first", "postgres").text()
    first_password.provide(catalog, "second", "md5")
    assert catalog.roles.get("postgres").password == kept
    first_password.require(catalog)
    catalog.close()


def test_a_broken_certificate_stops_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = wire_certificates.make(tmp_path)
    certificate.file.write_text("not a certificate")
    arguments = ("--tls", "on", "--tls-certificate", str(certificate.file), "--tls-key", str(certificate.key))
    told = refusal(monkeypatch, tmp_path, *arguments)
    assert told.startswith(f"mvserver: the TLS certificate {certificate.file} cannot be used\nDETAIL:  ")
    assert not (tmp_path / "data").exists()
