"""Every SQL example of the documents, run against one real server; see docs_examples for how they are written."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.docs.examples import BROKER, KINESIS, PAGES, POSTGRES, REGISTRY, ROOT, SERVICES, PageSession, blocks
from tests.faults.live import LiveServer, temporary_server
from tests.java_functions.compiled import compiled
from tests.java_functions.lenses_jar import interfaces

pytestmark = pytest.mark.spark

RUN = [page for page in PAGES if blocks(page)]


@pytest.fixture(scope="module")
def docs_server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        shutil.copytree(Path(__file__).with_name("store-config"), live.data / "store-config")
        page = (ROOT / "docs/sql/own-functions.md").read_text(encoding="utf-8")
        shop, farm = (block.partition("```")[0] for block in page.split("```java\n")[1:])
        (live.data / "store-config" / "shop.jar").write_bytes(compiled(shop))
        (live.data / "store-config" / "farm.jar").write_bytes(compiled(farm, (interfaces(),)))
        yield live.start()


@pytest.fixture
def empty_server(docs_server: LiveServer) -> Iterator[LiveServer]:
    """Nothing of a page is left for the next one."""
    yield docs_server
    with docs_server.connect() as connection:
        _drop_all(connection)
    for folder in (docs_server.data / "files").iterdir():
        shutil.rmtree(folder)


def _drop_all(connection: psycopg.Connection[Any]) -> None:
    """Streams with all that hangs on them, then databases, then topics and stores."""

    def names(listing: str, column: int = 0) -> list[Any]:
        return [row[column] for row in connection.execute(listing).fetchall()]

    for database in names("LIST DATABASES"):
        if database != "postgres":
            connection.execute(f'DROP DATABASE "{database}" CASCADE')
    for schema in names("LIST SCHEMAS", 1):
        for stream in names(f'LIST RELATIONS IN SCHEMA "{schema}"', 2):
            connection.execute(f'DROP RELATION IF EXISTS "{schema}"."{stream}" CASCADE')
        if schema != "public":
            connection.execute(f'DROP SCHEMA "{schema}" CASCADE')
    for name, kind, *_ in connection.execute("LIST STORES").fetchall():
        if kind in ("KAFKA", "KINESIS", "ICEBERG"):
            for topic in names(f'LIST ENTITIES IN STORE "{name}"'):
                connection.execute(f'DROP ENTITY IF EXISTS "{topic}" IN STORE "{name}"')
        connection.execute(f'DROP STORE "{name}"')
    for name in names("LIST DESCRIPTOR_SOURCES"):
        connection.execute(f'DROP DESCRIPTOR_SOURCE "{name}"')
    for name in names("LIST SCHEMA_REGISTRIES"):
        connection.execute(f'DROP SCHEMA_REGISTRY "{name}"')


def _page(page: Path) -> Any:
    marks = [getattr(pytest.mark, name) for name in SERVICES if _needs(page, name)]
    return pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks)


def _needs(page: Path, service: str) -> bool:
    return any(service in block.services for block in blocks(page))


@pytest.mark.parametrize("page", [_page(page) for page in RUN])
def test_examples_of_a_page(page: Path, empty_server: LiveServer, request: pytest.FixtureRequest) -> None:
    found = blocks(page)
    addresses = {}
    with ExitStack() as stack:
        connection, source = stack.enter_context(empty_server.connect()), None
        if _needs(page, "kafka"):
            addresses[BROKER] = request.getfixturevalue("kafka_broker").bootstrap
        if _needs(page, "kinesis"):
            addresses[KINESIS] = request.getfixturevalue("kinesis").endpoint.removeprefix("http://")
        if _needs(page, "postgres"):
            postgres = request.getfixturevalue("own_postgres")
            addresses[POSTGRES] = f"127.0.0.1:{postgres.port}"
            source = stack.enter_context(postgres.connect())
        if _needs(page, "registry"):
            addresses[REGISTRY] = request.getfixturevalue("schema_registry").address.removeprefix("http://")
        session = PageSession(connection, page, addresses, source)
        for block in found:
            session.run(block)
