from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from live_server import LiveServer

from catalog.model import Column

TYPED_COLUMNS = (
    Column("id", "INTEGER", not_null=True),
    Column("flag", "BOOLEAN"),
    Column("small", "SMALLINT"),
    Column("big", "BIGINT"),
    Column("real4", "FLOAT"),
    Column("real8", "DOUBLE"),
    Column("amount", "DECIMAL(12, 2)"),
    Column("name", "VARCHAR"),
    Column("bytes", "VARBINARY"),
    Column("day", "DATE"),
    Column("clock", "TIME"),
    Column("moment", "TIMESTAMP"),
    Column("instant", "TIMESTAMP_LTZ"),
)

TYPED_ROWS = """
SELECT 1::INTEGER AS id, true AS flag, 2::SMALLINT AS small, 9007199254740993::BIGINT AS big, 1.5::FLOAT AS real4,
       0.1::DOUBLE AS real8, 12.30::DECIMAL(12, 2) AS amount, 'näme ''x''' AS name, '\\x00\\xFF'::BLOB AS bytes,
       DATE '2024-02-29' AS day, TIME '23:59:59.123456' AS clock, TIMESTAMP '2024-01-02 03:04:05.678901' AS moment,
       TIMESTAMPTZ '2024-01-02 03:04:05+00' AS instant
UNION ALL
SELECT 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
"""


def with_views(server: LiveServer) -> LiveServer:
    server.add_view(
        "visits",
        (Column("url", "VARCHAR"), Column("visits", "BIGINT")),
        ("url",),
        "SELECT * FROM (VALUES ('./home', 30::BIGINT), ('./shop', 20::BIGINT), ('./cart', 10::BIGINT)) t(url, visits)",
    )
    server.add_view("typed", TYPED_COLUMNS, ("id",), TYPED_ROWS)
    server.add_view("numbers", (Column("n", "BIGINT"),), ("n",), "SELECT range::BIGINT AS n FROM range(100000)")
    return server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Shared by all client tests: they leave its views as they found them."""
    made = with_views(LiveServer(tmp_path_factory.mktemp("live")))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[LiveServer]:
    """For tests that change definitions or rows."""
    made = with_views(LiveServer(tmp_path))
    made.start()
    yield made
    made.stop()
