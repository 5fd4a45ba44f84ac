"""The life of queries on one server: formats, late views, starting positions, policies, stop and go, nothing left."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.faults.live import LiveServer

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", autouse=True)
def _store(shared_server: LiveServer) -> None:
    shared_server.run("CREATE STORE f WITH ('type' = FILE, 'uris' = '.')")


def _folder(server: LiveServer, entity: str) -> Path:
    folder = server.data / "files" / entity
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _lines(folder: Path, name: str, lines: list[str]) -> None:
    hidden = folder / f".{name}"
    hidden.write_text("".join(line + "\n" for line in lines))
    hidden.rename(folder / name)


def test_csv_lines_become_typed_rows(shared_server: LiveServer) -> None:
    folder = _folder(shared_server, "orders")
    _lines(folder, "a.csv", ['1,"a, b",2.50,2024-05-01', "2,c,,2024-05-02", "x,c,1,2024-05-02", "3,c,1"])
    shared_server.run(
        "CREATE STREAM orders (id INT, item VARCHAR, price DECIMAL(10, 2), day DATE) "
        "WITH ('store' = 'f', 'topic' = 'orders', 'value.format' = 'csv')",
        "CREATE MATERIALIZED VIEW order_rows AS SELECT id, item, price, day FROM orders",
    )
    assert sorted(shared_server.query("SELECT * FROM order_rows")) == [
        (1, "a, b", Decimal("2.50"), dt.date(2024, 5, 1)),
        (2, "c", None, dt.date(2024, 5, 2)),
    ]
    rejected = shared_server.query("SELECT position, reason FROM mv_catalog.rejected_rows ORDER BY position")
    assert rejected == [
        ("a.csv:3", 'column "id" is not of type INTEGER: x'),
        ("a.csv:4", "the value is not a CSV line of 4 fields"),
    ]
    shared_server.run("DROP MATERIALIZED VIEW order_rows", "DROP STREAM orders")


def test_parquet_files_are_read_by_their_columns(shared_server: LiveServer) -> None:
    folder = _folder(shared_server, "metrics")
    table = pa.table({"name": ["a", "b", "a"], "value": [1.5, 2.0, None], "at": pa.array([1, 2, 3], pa.int64())})
    pq.write_table(table, folder / ".m.parquet")
    (folder / ".m.parquet").rename(folder / "m.parquet")
    shared_server.run(
        "CREATE STREAM metrics (name VARCHAR, value DOUBLE, at BIGINT) "
        "WITH ('store' = 'f', 'topic' = 'metrics', 'value.format' = 'parquet')",
        "CREATE MATERIALIZED VIEW metric_sums AS SELECT name, sum(value) AS s, count(value) AS n, max(at) AS last "
        "FROM metrics GROUP BY name",
    )
    assert sorted(shared_server.query("SELECT * FROM metric_sums")) == [("a", 1.5, 1, 3), ("b", 2.0, 1, 2)]
    wrong = pa.table({"name": ["a"], "value": ["not a number"], "at": pa.array([1], pa.int64())})
    pq.write_table(wrong, folder / ".w.parquet")
    (folder / ".w.parquet").rename(folder / "w.parquet")
    shared_server.wait_for(lambda: shared_server.states()["metric_sums"][0] == "FAILED", 30, "it did not fail")
    assert "does not have the declared types" in (shared_server.states()["metric_sums"][1] or "")
    assert sorted(shared_server.query("SELECT name, n FROM metric_sums")) == [("a", 1), ("b", 1)]
    shared_server.run("DROP MATERIALIZED VIEW metric_sums", "DROP STREAM metrics")


def test_a_late_view_is_filled_from_history_and_one_from_latest_is_not(shared_server: LiveServer) -> None:
    folder = _folder(shared_server, "events")
    truth: Counter[tuple[str]] = Counter()

    def feed(name: str, count: int) -> None:
        rows = [f"u{(i * 7) % 5}" for i in range(count)]
        for row in rows:
            truth[(row,)] += 1
        _lines(folder, name, [json.dumps({"u": row}) for row in rows])

    for index in range(10):
        feed(f"h{index}.json", 50)
    shared_server.run(
        "CREATE STREAM events (u VARCHAR) WITH ('store' = 'f', 'topic' = 'events', 'value.format' = 'json')",
        "CREATE MATERIALIZED VIEW first AS SELECT u, count(*) AS c FROM events GROUP BY u",
    )
    shared_server.wait_equal("SELECT u, c FROM first", truth)
    before = Counter(truth)
    shared_server.run(
        "CREATE MATERIALIZED VIEW fresh AS SELECT u, count(*) AS c "
        "FROM events WITH ('starting.position' = 'latest') GROUP BY u",
        "CREATE MATERIALIZED VIEW late AS SELECT u, count(*) AS c FROM events GROUP BY u",
    )
    feed("n1.json", 30)
    shared_server.wait_equal("SELECT u, c FROM first", truth)
    shared_server.wait_equal("SELECT u, c FROM late", truth)
    shared_server.wait_equal("SELECT u, c FROM fresh", truth - before)

    # Stop and go: nothing is lost while a query is terminated.
    query_id = shared_server.query("SELECT id FROM mv_catalog.queries WHERE sink LIKE '%.late'")[0][0]
    shared_server.run(f"TERMINATE QUERY {query_id}")
    assert shared_server.states()["late"][0] == "TERMINATED"
    stopped = Counter(truth)
    feed("n2.json", 40)
    shared_server.wait_equal("SELECT u, c FROM first", truth)
    shared_server.wait_equal("SELECT u, c FROM late", stopped)
    shared_server.run(f"RESTART QUERY {query_id}")
    shared_server.wait_equal("SELECT u, c FROM late", truth)
    shared_server.wait_for(lambda: shared_server.states()["late"][0] == "RUNNING", 30, "not RUNNING again")
    feed("n3.json", 10)
    for view in ("first", "late"):
        shared_server.wait_equal(f"SELECT u, c FROM {view}", truth)
    shared_server.wait_equal("SELECT u, c FROM fresh", truth - before)
    shared_server.run(*(f"DROP MATERIALIZED VIEW {view}" for view in ("first", "late", "fresh")), "DROP STREAM events")


def test_terminate_on_a_rejected_record_and_going_past_it(shared_server: LiveServer) -> None:
    folder = _folder(shared_server, "strict")
    _lines(folder, "a.json", ['{"n": 1}', '{"n": 2}'])
    shared_server.run(
        "CREATE STREAM strict (n INT) WITH ('store' = 'f', 'topic' = 'strict', 'value.format' = 'json')",
        "CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS c, sum(n) AS s "
        "FROM strict WITH ('source.deserialization.error.handling' = 'TERMINATE')",
    )
    assert shared_server.query("SELECT c, s FROM totals") == [(2, 3)]
    _lines(folder, "b.json", ['{"n": 3}', '{"n": "three"}'])
    shared_server.wait_for(lambda: shared_server.states()["totals"][0] == "FAILED", 30, "it did not stop")
    assert "record b.json:2 cannot be decoded" in (shared_server.states()["totals"][1] or "")
    assert shared_server.query("SELECT c, s FROM totals") == [(2, 3)]
    query_id = shared_server.query("SELECT id FROM mv_catalog.queries WHERE sink LIKE '%.totals'")[0][0]
    shared_server.run(f"RESTART QUERY {query_id} SKIP REJECTED")
    shared_server.wait_for(lambda: shared_server.query("SELECT c, s FROM totals") == [(3, 6)], 60, "not past it")
    assert shared_server.query("SELECT position FROM mv_catalog.rejected_rows") == [("b.json:2",)]
    shared_server.run("DROP MATERIALIZED VIEW totals", "DROP STREAM strict")


def test_an_empty_aggregate_has_one_row_and_having_filters(shared_server: LiveServer) -> None:
    folder = _folder(shared_server, "few")
    shared_server.run(
        "CREATE STREAM few (k VARCHAR, x DOUBLE) WITH ('store' = 'f', 'topic' = 'few', 'value.format' = 'json')",
        "CREATE MATERIALIZED VIEW everything AS SELECT count(*) AS c, sum(x) AS s, avg(x) AS a FROM few",
        "CREATE MATERIALIZED VIEW busy AS SELECT k, count(*) AS c, stddev(x) AS d "
        "FROM few GROUP BY k HAVING count(*) >= 2",
    )
    assert shared_server.query("SELECT * FROM everything") == [(0, None, None)]
    _lines(folder, "a.json", ['{"k": "a", "x": 1}', '{"k": "a", "x": 2}', '{"k": null, "x": 4}', '{"k": "b"}'])
    shared_server.wait_for(lambda: shared_server.query("SELECT c, s FROM everything") == [(4, 7.0)], 60, "not counted")
    assert shared_server.query("SELECT k, c, round(d::numeric, 3) FROM busy") == [("a", 2, Decimal("0.707"))]
    _lines(folder, "b.json", ['{"k": null, "x": 8}'])
    shared_server.wait_equal("SELECT k, c FROM busy", {("a",): 2, (None,): 2})
    shared_server.run("DROP MATERIALIZED VIEW everything", "DROP MATERIALIZED VIEW busy", "DROP STREAM few")


def test_kept_values_are_rebuilt_by_a_refresh(shared_server: LiveServer) -> None:
    folder = _folder(shared_server, "visits")
    shared_server.run(
        "CREATE STREAM visits (k VARCHAR, who VARCHAR, ms INT, seen BIGINT) "
        "WITH ('store' = 'f', 'topic' = 'visits', 'value.format' = 'json', 'timestamp' = 'seen')",
        "CREATE MATERIALIZED VIEW visitors AS SELECT k, count(DISTINCT who) AS people, last_value(who) AS newest, "
        "percentile_disc(0.5) WITHIN GROUP (ORDER BY ms) AS median FROM visits GROUP BY k",
    )

    def shows(expected: list[tuple[str | None, int, str, int]]) -> None:
        asked = "SELECT k, people, newest, median FROM visitors ORDER BY k"
        shared_server.wait_for(lambda: shared_server.query(asked) == expected, 60, f"not {expected}")

    def visit(k: str | None, who: str, ms: int, seen: int) -> str:
        return json.dumps({"k": k, "who": who, "ms": ms, "seen": seen})

    _lines(folder, "a.json", [visit("a", "ann", 5, 20), visit("a", "bob", 7, 10), visit(None, "ann", 1, 5)])
    shows([("a", 2, "ann", 5), (None, 1, "ann", 1)])
    _lines(folder, "b.json", [visit("a", "ann", 9, 15), visit("a", "cid", 8, 12), visit(None, "bob", 1, 6)])
    shows([("a", 3, "ann", 7), (None, 2, "bob", 1)])
    shared_server.run("REFRESH MATERIALIZED VIEW visitors")
    shows([("a", 3, "ann", 7), (None, 2, "bob", 1)])
    shared_server.run("DROP MATERIALIZED VIEW visitors", "DROP STREAM visits")


def test_what_is_dropped_leaves_nothing_behind_and_ddl_in_a_transaction_is_one(shared_server: LiveServer) -> None:
    _lines(_folder(shared_server, "gone"), "a.json", ['{"n": 1}', "bad"])
    with psycopg.connect(
        host="127.0.0.1", port=shared_server.port, user="postgres", dbname="postgres"
    ) as connection:  # a transaction, as drivers open it by default
        connection.execute("CREATE STREAM gone (n INT) WITH ('store' = 'f', 'topic' = 'gone', 'value.format' = 'json')")
        connection.execute("CREATE MATERIALIZED VIEW counted AS SELECT n, count(*) AS c FROM gone GROUP BY n")
    shared_server.wait_equal("SELECT n, c FROM counted", {(1,): 1})
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        shared_server.run("DROP STREAM gone")
    shared_server.run("DROP STREAM gone CASCADE", "DROP STORE f")
    assert shared_server.query("SELECT count(*) FROM mv_catalog.queries") == [(0,)]
    assert shared_server.query("SELECT count(*) FROM mv_catalog.rejected_rows") == [(0,)]
    assert list((shared_server.data / "sources").glob("*")) == []
    assert shared_server.stop() == 0
    with duckdb.connect(str(shared_server.data / "views.duckdb"), read_only=True) as database:
        left = database.execute(
            "SELECT table_schema || '.' || table_name FROM information_schema.tables "
            "WHERE table_schema IN ('_state', '_views')"
        ).fetchall()
        ledger = [database.execute(f'SELECT count(*) FROM "_ledger".{t}').fetchall()[0][0]
                  for t in ("pipelines", "batches", "subscribers", "rejected_rows")]  # fmt: skip
    assert left == []
    assert ledger == [0, 0, 0, 0]
