"""Nexmark's queries of several levels, over a server with Spark: the average of maxima (4), hot items (5), the highest
bids (7). Each is compared with what PostgreSQL computes of the same auctions and bids."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.server.program import Program, with_spark

pytestmark = [pytest.mark.spark, pytest.mark.postgres, pytest.mark.night]  # tests/nexmark runs in every change

SEED = int(os.environ.get("MVSERVER_TEST_SEED", "20261121"))
SETTLE_S = 200.0
START = dt.datetime(2024, 5, 17, 12)
CALM = "WITH ('watermark.delay.millis' = 86400000)"  # nothing is late

VIEWS = (
    f"""CREATE MATERIALIZED VIEW average_price AS
        SELECT category, avg(final) AS average, count(*) AS auctions FROM (
          SELECT a.id, a.category, max(b.price) AS final
          FROM auctions AS a {CALM} JOIN bids AS b {CALM} WITHIN 1 HOURS ON a.id = b.auction
          WHERE b.at >= a.at AND b.at <= a.expires GROUP BY a.id, a.category) AS q
        GROUP BY category""",
    f"""CREATE MATERIALIZED VIEW bids_of_window AS
        SELECT window_start, window_end, auction, count(*) AS num
        FROM HOP(bids, SIZE 10 SECONDS, ADVANCE BY 2 SECONDS) {CALM} GROUP BY window_start, window_end, auction""",
    """CREATE MATERIALIZED VIEW most_bids AS
        SELECT window_start, max(num) AS num, count(*) AS auctions FROM bids_of_window GROUP BY window_start""",
    """CREATE MATERIALIZED VIEW hot_items AS
        SELECT c.window_start, c.auction, c.num, m.auctions
        FROM (SELECT window_start, window_end, auction, num FROM bids_of_window) AS c
        JOIN (SELECT window_start, max(num) AS num, count(*) AS auctions FROM bids_of_window
              GROUP BY window_start) AS m
        ON c.window_start = m.window_start AND c.num = m.num""",
    f"""CREATE MATERIALIZED VIEW highest AS
        SELECT window_start, window_end, max(price) AS price
        FROM TUMBLE(bids, SIZE 10 SECONDS) {CALM} GROUP BY window_start, window_end""",
    "CREATE MATERIALIZED VIEW all_bids AS SELECT auction, bidder, price, at FROM bids",
)
HOT_ITEMS = """
    WITH counted AS (
      SELECT s AS w, auction, count(*) AS num FROM bids, generate_series(
        date_bin('2 seconds', at, 'epoch') - interval '8 seconds', date_bin('2 seconds', at, 'epoch'),
        interval '2 seconds') AS s GROUP BY s, auction),
    most AS (SELECT w, max(num) AS num, count(*) AS auctions FROM counted GROUP BY w)
    SELECT c.w, c.auction, c.num, m.auctions FROM counted AS c JOIN most AS m ON c.w = m.w AND c.num = m.num"""
QUERIES = {  # ours, and PostgreSQL's over the tables
    "SELECT category, round(average, 3), auctions FROM average_price": """
        SELECT category, round(avg(final), 3), count(*) FROM (
          SELECT a.id, a.category, max(b.price) AS final FROM auctions AS a JOIN bids AS b ON a.id = b.auction
          WHERE b.at >= a.at AND b.at <= a.expires GROUP BY a.id, a.category) AS q GROUP BY category""",
    "SELECT w.window_start, w.auction, w.num, m.auctions FROM bids_of_window AS w JOIN most_bids AS m "
    "ON w.window_start = m.window_start AND w.num = m.num": HOT_ITEMS,
    "SELECT window_start, auction, num, auctions FROM hot_items": HOT_ITEMS,
    "SELECT b.auction, b.bidder, b.price, h.window_start FROM all_bids AS b JOIN highest AS h ON b.price = h.price "
    "AND b.at >= h.window_start AND b.at < h.window_end": """
        SELECT auction, bidder, price, date_bin('10 seconds', at, 'epoch') FROM bids AS b
        WHERE price = (SELECT max(price) FROM bids AS o
                       WHERE date_bin('10 seconds', o.at, 'epoch') = date_bin('10 seconds', b.at, 'epoch'))""",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, Path]]:
    folder = tmp_path_factory.mktemp("nexmark")
    environment = with_spark()
    with Program(folder, "--spark-driver-memory", "1GB", environment=environment) as program:
        program.ready()
        yield program, folder / "data" / "files"


def generated(rng: random.Random) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    auctions: list[dict[str, Any]] = []
    bids: list[dict[str, Any]] = []
    at = START
    for number in range(60):
        at += dt.timedelta(milliseconds=rng.randint(0, 3000))
        length = dt.timedelta(seconds=rng.randint(1, 60))
        auctions.append({"id": number, "category": rng.randrange(5), "at": at, "expires": at + length})
        for _ in range(rng.randrange(8)):
            moment = at + dt.timedelta(milliseconds=rng.randint(0, 9000))
            auction = max(0, number - rng.choice((0, 0, 0, 1, 2, 9)))
            bids.append({"auction": auction, "bidder": rng.randrange(9), "price": rng.randint(1, 99), "at": moment})
    return auctions, bids


def feed(folder: Path, name: str, records: list[dict[str, Any]]) -> None:
    (folder / name).mkdir(parents=True, exist_ok=True)
    aside = folder.parent / "aside.json"
    aside.write_text("".join(json.dumps(record, default=lambda at: at.isoformat(sep=" ")) + "\n" for record in records))
    aside.rename(folder / name / f"{time.monotonic_ns():020}.json")


def expected(dsn: str, auctions: list[dict[str, Any]], bids: list[dict[str, Any]]) -> dict[str, list[str]]:
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TEMP TABLE auctions (id BIGINT, category INTEGER, at TIMESTAMP, expires TIMESTAMP)")
        connection.execute("CREATE TEMP TABLE bids (auction BIGINT, bidder BIGINT, price BIGINT, at TIMESTAMP)")
        cursor = connection.cursor()
        cursor.executemany("INSERT INTO auctions VALUES (%(id)s, %(category)s, %(at)s, %(expires)s)", auctions)
        cursor.executemany("INSERT INTO bids VALUES (%(auction)s, %(bidder)s, %(price)s, %(at)s)", bids)
        found = {ours: rows_of(connection, theirs) for ours, theirs in QUERIES.items()}
        connection.rollback()
    return found


def rows_of(connection: psycopg.Connection[Any], sql: str) -> list[str]:
    rows = connection.execute(sql.encode()).fetchall()
    return sorted(str([float(v) if isinstance(v, Decimal) else v for v in row]) for row in rows)


def test_queries_of_several_levels(server: tuple[Program, Path], postgres_server: Any) -> None:
    print("seed", SEED)
    program, folder = server
    rng = random.Random(SEED)
    auctions, bids = generated(rng)
    with program.connect() as connection:
        for statement in (
            "CREATE STORE s WITH ('type' = FILE, 'uris' = '.')",
            "CREATE STREAM auctions (id BIGINT, category INTEGER, at TIMESTAMP, expires TIMESTAMP) "
            "WITH ('store' = 's', 'value.format' = 'json', 'timestamp' = 'at')",
            "CREATE STREAM bids (auction BIGINT, bidder BIGINT, price BIGINT, at TIMESTAMP) "
            "WITH ('store' = 's', 'value.format' = 'json', 'timestamp' = 'at')",
            *VIEWS,
        ):
            connection.execute(statement)
        for part in range(3):
            feed(folder, "bids", bids[part::3])
            feed(folder, "auctions", auctions[part::3])
        wanted = expected(postgres_server.dsn, auctions, bids)
        deadline = time.monotonic() + SETTLE_S
        while (found := {sql: rows_of(connection, sql) for sql in QUERIES}) != wanted:
            assert time.monotonic() < deadline, (found, wanted)
            time.sleep(0.5)


def test_a_view_over_groups_goes_with_the_view_that_it_is_over(server: tuple[Program, Path]) -> None:
    program, _ = server
    with program.connect() as connection:
        with pytest.raises(psycopg.errors.DependentObjectsStillExist):
            connection.execute("DROP MATERIALIZED VIEW bids_of_window")
        plan = "EXPLAIN CREATE MATERIALIZED VIEW v AS SELECT max(num) AS m FROM bids_of_window"
        lines = [line.strip() for (line,) in connection.execute(plan).fetchall()]
        assert "Changes of its groups, by DuckDB, in the same transaction:" in lines
        dependencies = "SELECT count(*) FROM mv_catalog.dependencies WHERE depends_on LIKE '%bids_of_window%'"
        assert connection.execute(dependencies).fetchone() != (0,)
        connection.execute("REFRESH MATERIALIZED VIEW most_bids")
        connection.execute("DROP MATERIALIZED VIEW bids_of_window CASCADE")
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM most_bids")
        left = "SELECT view FROM mv_catalog.views ORDER BY view"
        names = [name.rsplit(".", 1)[-1] for (name,) in connection.execute(left).fetchall()]
        assert names == ["all_bids", "average_price", "highest"]
