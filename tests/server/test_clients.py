"""Passwords by clients that have SCRAM of their own, and not libpq's: with TLS and without, right and wrong."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import pg8000.native
import psycopg2
import pytest

from mvserver import first_password
from tests.server.program import Program, without_java
from tests.wire import certificates as wire_certificates

PASSWORD = "correct horse"
QUERY = "SELECT current_user || ' ' || current_setting('ssl')"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("server")
    certificate = wire_certificates.make(folder)
    arguments = (
        "--authentication", "scram-sha-256", "--tls", "on", "--tls-certificate", str(certificate.file),
        "--tls-key", str(certificate.key),
    )  # fmt: skip
    environment = {**without_java(), first_password.VARIABLE: PASSWORD}
    with Program(folder, *arguments, environment=environment) as program:
        yield program.ready()


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def by_asyncpg(port: int, password: str, tls: bool) -> Any:
    async def ask() -> Any:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=port, user="postgres", password=password, database="postgres", timeout=20,
            ssl=unverified() if tls else False,
        )  # fmt: skip
        try:
            return await connection.fetchval(QUERY)
        finally:
            await connection.close()

    return asyncio.run(ask())


def by_pg8000(port: int, password: str, tls: bool) -> Any:
    with pg8000.native.Connection(
        "postgres", host="127.0.0.1", port=port, password=password, database="postgres", timeout=20,
        ssl_context=unverified() if tls else None,
    ) as connection:  # fmt: skip
        return connection.run(QUERY)[0][0]


def by_psycopg2(port: int, password: str, tls: bool) -> Any:
    connection = psycopg2.connect(
        host="127.0.0.1", port=port, user="postgres", password=password, dbname="postgres",
        sslmode="require" if tls else "disable", connect_timeout=20,
    )  # fmt: skip
    try:
        with connection.cursor() as cursor:
            cursor.execute(QUERY)
            return cursor.fetchone()[0]
    finally:
        connection.close()


CLIENTS = [by_asyncpg, by_pg8000, by_psycopg2]


@pytest.mark.parametrize("tls", [True, False], ids=["TLS", "clear"])
@pytest.mark.parametrize("client", CLIENTS)
def test_the_right_password(server: Program, client: Callable[[int, str, bool], Any], tls: bool) -> None:
    assert client(server.port, PASSWORD, tls) == "postgres on"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_wrong_password(server: Program, client: Callable[[int, str, bool], Any]) -> None:
    with pytest.raises(Exception, match="password authentication failed for user"):
        client(server.port, "wrong", True)
