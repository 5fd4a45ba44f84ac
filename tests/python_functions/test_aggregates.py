"""Aggregates of one's own on a real server: values by hand, bounds that fail a view alone, kills and a restart."""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from tests.faults.live import LiveServer, temporary_server
from tests.python_functions.test_live import _processes, feed

pytestmark = pytest.mark.spark

MEDIAN = (
    "CREATE AGGREGATE med(n BIGINT) RETURNS DOUBLE LANGUAGE PYTHON STRICT AS $$\n"
    "import statistics\nreturn float(statistics.median(n))\n$$"
)


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        live.start(MVSERVER_FUNCTION_TIMEOUT="3s")
        live.run("CREATE STORE f WITH ('type' = FILE, 'uris' = '.')", MEDIAN)
        yield live


def stream(server: LiveServer, name: str, columns: str) -> None:
    server.run(
        f"CREATE STREAM {name} ({columns}, at BIGINT) "
        f"WITH ('store' = f, 'topic' = '{name}', 'value.format' = 'json', 'timestamp' = 'at')"
    )


def expect(server: LiveServer, view: str, rows: Sequence[tuple[Any, ...]]) -> None:
    wanted = sorted(rows, key=str)
    server.wait_for(
        lambda: sorted(server.query(f"SELECT * FROM {view}"), key=str) == wanted, 150,
        f"{view}: {wanted}",
    )  # fmt: skip


def test_clauses_around_an_aggregate(server: LiveServer) -> None:
    stream(server, "clauses", "k VARCHAR, n BIGINT")
    server.run(
        "CREATE FUNCTION halved(d DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON STRICT AS $$return d / 2$$",
        "CREATE AGGREGATE many(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$return len(n)$$",
        "CREATE MATERIALIZED VIEW a AS SELECT k, count(*) AS c, med(n) AS m, med(n) + sum(n) AS s, "
        "med(n) FILTER (WHERE n > 2) AS f, med(DISTINCT n) AS d, many(n) AS l, many(n) FILTER (WHERE n > 2) AS lf, "
        "halved(max(n)) AS h FROM clauses GROUP BY k",
        "CREATE MATERIALIZED VIEW b AS SELECT k, med(n) AS m FROM clauses GROUP BY k "
        "HAVING med(n) < 5 AND count(*) > 1",
        "CREATE MATERIALIZED VIEW c AS SELECT public.med(n) FILTER (WHERE n < 9) AS m, count(*) AS c FROM clauses",
        "CREATE MATERIALIZED VIEW d AS SELECT k, grouping(k) AS g, med(n) AS m FROM clauses GROUP BY ROLLUP (k)",
        "CREATE MATERIALIZED VIEW e AS SELECT DISTINCT many(n) AS l FROM clauses GROUP BY k",
        "CREATE MATERIALIZED VIEW f AS SELECT max(m) AS m, count(*) AS c FROM a",
        "CREATE MATERIALIZED VIEW g AS SELECT k, window_start::VARCHAR AS w, med(n) AS m "
        "FROM TUMBLE(clauses, SIZE 10 SECONDS) GROUP BY k, window_start, window_end",
        "CREATE MATERIALIZED VIEW h AS SELECT k, m FROM (SELECT k, med(n) AS m FROM clauses GROUP BY k) AS t "
        "WHERE m > 2",
    )
    rows = [("x", 1, 1000), ("x", 4, 2000), ("x", 4, 2500), ("x", None, 3000), ("y", None, 1000), ("y", 9, 12_000)]
    feed(server, "clauses", "a.json", [{"k": k, "n": n, "at": at} for k, n, at in rows])
    expect(server, "a", [("x", 4, 4.0, 13.0, 4.0, 2.5, 4, 2, 2.0), ("y", 2, 9.0, 18.0, 9.0, 9.0, 2, 1, 4.5)])
    expect(server, "b", [("x", 4.0)])
    expect(server, "c", [(4.0, 6)])
    expect(server, "d", [("x", 0, 4.0), ("y", 0, 9.0), (None, 1, 4.0)])
    expect(server, "e", [(4,), (2,)])
    expect(server, "f", [(9.0, 2)])
    first, second = "1970-01-01 00:00:00", "1970-01-01 00:00:10"
    expect(server, "g", [("x", first, 4.0), ("y", first, None), ("y", second, 9.0)])
    expect(server, "h", [("x", 4.0), ("y", 9.0)])
    more = [("x", 10, 500), ("x", 10, 400), ("x", 10, 300), ("y", None, 100), ("z", None, 200)]
    feed(server, "clauses", "b.json", [{"k": k, "n": n, "at": at} for k, n, at in more])
    expect(
        server, "a",
        [("x", 7, 7.0, 46.0, 10.0, 4.0, 7, 5, 5.0), ("y", 3, 9.0, 18.0, 9.0, 9.0, 3, 1, 4.5),
         ("z", 1, None, None, None, None, 1, 0, None)],
    )  # fmt: skip
    expect(server, "b", [])
    expect(server, "e", [(7,), (3,), (1,)])
    expect(server, "f", [(9.0, 3)])
    assert server.query("SELECT proname, prokind FROM pg_proc WHERE proname IN ('med', 'halved') ORDER BY 1") == [
        ("halved", "f"), ("med", "a"),
    ]  # fmt: skip


def test_values_come_in_the_order_of_their_times_and_records_stay_together(server: LiveServer) -> None:
    stream(server, "ordered", "n BIGINT, d DOUBLE, p DECIMAL(10, 2), w VARCHAR, b BOOLEAN, t TIMESTAMP_LTZ")
    server.run(
        "CREATE AGGREGATE listed(n BIGINT) RETURNS VARCHAR LANGUAGE PYTHON AS $$return repr(n)$$",
        "CREATE AGGREGATE told(n BIGINT, d DOUBLE, p DECIMAL(10, 2), w VARCHAR, b BOOLEAN, t TIMESTAMP_LTZ) "
        "RETURNS VARCHAR LANGUAGE PYTHON AS $$\n"
        "return repr([(n, d, p, w, b, t and t.timestamp()) for n, d, p, w, b, t in zip(n, d, p, w, b, t)])\n$$",
        "CREATE AGGREGATE vwap(price DECIMAL(10, 2), quantity BIGINT) RETURNS DECIMAL(20, 4) "
        "LANGUAGE PYTHON STRICT AS $$\n"
        "return sum(p * q for p, q in zip(price, quantity)) / sum(quantity)\n$$",
        "CREATE MATERIALIZED VIEW o AS SELECT listed(n) AS l, listed(DISTINCT n) AS u, told(n, d, p, w, b, t) AS t, "
        "vwap(p, n) AS v FROM ordered",
    )
    tenth, euro = 0.1, 'ü "€" \\ \n'
    first = {"n": 2, "d": tenth, "p": "1.50", "w": euro, "b": True, "t": "2023-11-14 22:13:20.123Z", "at": 2000}
    second = {"n": 7, "d": -1e300, "p": None, "w": None, "b": None, "t": None, "at": 1000}
    feed(server, "ordered", "a.json", [first, second])
    feed(server, "ordered", "b.json", [{"n": 1, "p": "4", "at": 2000}, {"n": None, "p": "3.10", "at": 2000}])
    told = [
        (7, -1e300, None, None, None, None), (1, None, Decimal("4.00"), None, None, None),
        (2, 0.1, Decimal("1.50"), euro, True, 1700000000.123), (None, None, Decimal("3.10"), None, None, None),
    ]  # fmt: skip
    server.wait_for(lambda: server.query("SELECT l FROM o") == [("[7, 1, 2, None]",)], 120, "no order")
    ((_, unique, records, average),) = server.query("SELECT * FROM o")
    assert unique == "[1, 2, 7, None]"
    found = eval(records, {"Decimal": Decimal})
    assert sorted(found, key=str) == sorted(told, key=str)
    assert found[0] == told[0]  # of the records at one time the order is that of their texts: the same for all batches
    assert average == Decimal("2.3333")


BAD = {
    "raising": ("return len(n) // (len(n) - 3)", "38000: function raising: ZeroDivisionError"),
    "endless": ("while len(n) == 3: pass\nreturn 1", "57014: function endless took longer than 3 s for a call"),
    "greedy": ("return len(bytes(10 ** 10)) if len(n) == 3 else 1", "53200: function greedy needs more than"),
    "wrong": ("return 'text' if len(n) == 3 else 1", "22000: function wrong: it answered with str where int"),
}


def test_what_goes_over_a_bound_fails_its_view_alone(server: LiveServer) -> None:
    stream(server, "bounds", "n BIGINT")
    for name, (body, _) in BAD.items():
        server.run(
            f"CREATE AGGREGATE {name}(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$\n{body}\n$$",
            f"CREATE MATERIALIZED VIEW v_{name} AS SELECT {name}(n) AS n FROM bounds",
        )
    server.run("CREATE MATERIALIZED VIEW v_good AS SELECT med(n) AS m, count(*) AS c FROM bounds")
    feed(server, "bounds", "a.json", [{"n": 1, "at": 1}, {"n": 2, "at": 2}])
    expect(server, "v_good", [(1.5, 2)])
    feed(server, "bounds", "b.json", [{"n": 6, "at": 3}])
    for name, (_, words) in BAD.items():
        server.wait_for(lambda name=name: server.states()[f"v_{name}"][0] == "FAILED", 150, name)
        assert words in (server.states()[f"v_{name}"][1] or "")
    expect(server, "v_good", [(2.0, 3)])
    feed(server, "bounds", "c.json", [{"n": 7, "at": 4}])
    expect(server, "v_good", [(4.0, 4)])


def test_kills_and_a_restart_lose_and_double_nothing(server: LiveServer) -> None:
    seed = int(os.environ.get("MVSERVER_TEST_SEED", random.randrange(10**6)))
    print(f"seed {seed} (MVSERVER_TEST_SEED)")
    chance = random.Random(seed)
    stream(server, "killed", "k BIGINT, n BIGINT")
    server.run("CREATE MATERIALIZED VIEW mk AS SELECT k, med(n) AS m, count(*) AS c FROM killed GROUP BY k")
    groups: dict[int, list[int]] = defaultdict(list)

    def more(number: int) -> None:
        rows = []
        for _ in range(300):
            k, n = chance.randrange(5), chance.randrange(1000)
            groups[k].append(n)
            rows.append({"k": k, "n": n, "at": chance.randrange(10**6)})
        feed(server, "killed", f"{number}.json", rows)

    def right() -> None:
        expect(server, "mk", [(k, float(statistics.median(each)), len(each)) for k, each in groups.items()])

    more(1)
    right()
    for pid in _processes(server, b"python_functions.child"):
        os.kill(pid, signal.SIGKILL)
    more(2)
    right()
    more(3)
    server.kill()
    server.start(MVSERVER_FUNCTION_TIMEOUT="3s")
    more(4)
    right()
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        server.run("DROP AGGREGATE med(BIGINT)")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        server.query("SELECT med(c) FROM mk")
    server.run("DROP AGGREGATE med(BIGINT) CASCADE")
    assert "mk" not in server.states()
    assert json.dumps(server.query("LIST AGGREGATES"), default=str).count('"med"') == 0
