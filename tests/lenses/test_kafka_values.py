"""Objects as values, functions over aggregates, wider formats and ``_meta`` behind a WITH, on a real Kafka."""

from __future__ import annotations

import datetime as dt
import json
import struct
import time
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from psycopg import Connection

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer
from tests.java_functions import lenses_jar
from tests.java_functions.statements import FARM_SOURCE, farm
from tests.lenses.broker import NOW_MS, Broker, as_json
from tests.lenses.test_kafka import run
from tests.lenses.test_kafka_joins import clock

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

_COMMON = "'value.format' = 'json', 'topic.partitions' = 1, 'topic.replicas' = 1"
_RELATIONS = (
    f"CREATE STREAM v_orders (item VARCHAR, pieces INTEGER) WITH ('topic' = 'v-orders', 'key.format' = 'json', "
    f"'key.type' = 'STRUCT<shop INTEGER, no BIGINT>', {_COMMON})",
    f"CREATE CHANGELOG v_items (id VARCHAR, name VARCHAR, price INTEGER, PRIMARY KEY (id)) WITH ('topic' = 'v-items', "
    f"'value.columns.exclude' = 'id', {_COMMON})",
    f"CREATE CHANGELOG v_stock (id VARCHAR, left_over INTEGER, PRIMARY KEY (id)) WITH ('topic' = 'v-stock', "
    f"'value.columns.exclude' = 'id', {_COMMON})",
    f"CREATE STREAM v_heat (place VARCHAR, celsius DOUBLE, at BIGINT) WITH ('topic' = 'v-heat', {_COMMON})",
    f"CREATE CHANGELOG v_sold (id VARCHAR, shop VARCHAR, pieces BIGINT, PRIMARY KEY (id)) WITH ('topic' = 'v-sold', "
    f"'value.columns.exclude' = 'id', {_COMMON})",
    f"CREATE STREAM v_taps (url VARCHAR, ms INTEGER) WITH ('topic' = 'v-taps', 'key.format' = 'primitive', "
    f"'key.type' = 'INTEGER', {_COMMON})",
)


@pytest.fixture(scope="module")
def declared(server: LiveServer, kafka_broker: KafkaBroker) -> None:
    server.run(f"CREATE STORE k WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')")
    with server.connect() as connection:
        connection.execute("USE STORE k")
        for text in _RELATIONS:
            connection.execute(text.encode())


@pytest.fixture
def session(declared: None, server: LiveServer) -> Iterator[Connection[tuple[Any, ...]]]:
    """Of one test: another may kill the server."""
    with server.connect() as connection:
        connection.execute("USE STORE k")
        yield connection


def order(item: str | None, pieces: int | None) -> bytes:
    return as_json({"item": item, "pieces": pieces})


def key(shop: int, no: int) -> bytes:
    return json.dumps({"shop": shop, "no": no}, separators=(",", ":")).encode()


def windowed(url: str, begin: int, end: int) -> bytes:
    fields = {"url": url, "window_start": clock(begin), "window_end": clock(end)}
    return json.dumps(fields, separators=(",", ":")).encode()


OBJECTS = """
SET defaults.topic.autocreate = true;
WITH o AS (SELECT STREAM * FROM v-orders);
WITH i AS (SELECT TABLE * FROM v-items);
WITH s AS (SELECT TABLE * FROM v-stock);
INSERT INTO v-nested SELECT STREAM item AS what.item, pieces AS what.count.n, _key.shop AS _key.at.shop, 1 AS one
FROM o;
INSERT INTO v-facets SELECT STREAM _key AS k, _value AS v, _value.item FROM v-orders;
INSERT INTO v-xml STORE VALUE AS XML SELECT STREAM item AS what.item, pieces AS what.n FROM o;
INSERT INTO v-joined SELECT STREAM o._value AS o, i._value AS i FROM o LEFT JOIN i ON o.item = i._key;
INSERT INTO v-both SELECT TABLE name AS item.name, price AS item.price, left_over FROM i OUTER JOIN s;
WITH n AS (SELECT STREAM item AS what.item, pieces AS what.n FROM o);
INSERT INTO v-unwrapped SELECT STREAM what AS _value FROM n;
INSERT INTO v-object-keys SELECT STREAM what AS _key, what.n FROM n;
INSERT INTO v-left SELECT TABLE i._value AS i, s._value AS s FROM i LEFT JOIN s;
"""


def test_objects(session: Connection[tuple[Any, ...]], broker: Broker) -> None:
    broker.put("v-items", (b"tea", as_json({"name": "Tea", "price": 3}), 0), (b"pot", as_json({"name": "Pot"}), 0))
    broker.put("v-stock", (b"tea", as_json({"left_over": 7}), 0), (b"cup", as_json({"left_over": 9}), 0))
    broker.put("v-orders", (key(1, 11), order("tea", 2), 10), (key(2, 12), order(None, None), 11))
    run(session, OBJECTS)
    assert broker.records("v-nested", 2) == [
        (b'{"at":{"shop":1}}', {"what": {"item": "tea", "count": {"n": 2}}, "one": 1}),
        (b'{"at":{"shop":2}}', {"what": {"item": None, "count": {"n": None}}, "one": 1}),
    ]
    first, second = {"shop": 1, "no": 11}, {"shop": 2, "no": 12}
    assert broker.records("v-facets", 2) == [
        (key(1, 11), {"k": first, "v": {"item": "tea", "pieces": 2}, "item": "tea"}),
        (key(2, 12), {"k": second, "v": {"item": None, "pieces": None}, "item": None}),
    ]
    assert broker.records("v-unwrapped", 2) == [
        (key(1, 11), {"item": "tea", "n": 2}), (key(2, 12), {"item": None, "n": None})
    ]  # fmt: skip
    assert broker.records("v-object-keys", 2) == [(b'{"item":"tea","n":2}', {"n": 2}), (None, {"n": None})]
    assert broker.records("v-xml", 2) == [
        (key(1, 11), b"<record><what><item>tea</item><n>2</n></what></record>"),
        (key(2, 12), b"<record><what></what></record>"),
    ]
    assert sorted(broker.records("v-joined", 2), key=str) == [
        (None, {"o": {"item": None, "pieces": None}, "i": None}),
        (b"tea", {"o": {"item": "tea", "pieces": 2}, "i": {"name": "Tea", "price": 3}}),
    ]
    pot, tea = {"name": "Pot", "price": None}, {"name": "Tea", "price": 3}
    nothing = {"name": None, "price": None}
    broker.rows(
        "v-both",
        {
            b"tea": {"item": tea, "left_over": 7},
            b"pot": {"item": pot, "left_over": None},
            b"cup": {"item": nothing, "left_over": 9},
        },
    )
    broker.rows("v-left", {b"tea": {"i": tea, "s": {"left_over": 7}}, b"pot": {"i": pot, "s": None}})
    broker.put("v-stock", (b"tea", None, 20), (b"pot", as_json({"left_over": None}), 20))
    broker.put("v-items", (b"cup", as_json({"name": "Cup", "price": 1}), 21), (b"tea", as_json({"price": 4}), 21))
    tea, cup = {"name": None, "price": 4}, {"name": "Cup", "price": 1}
    broker.rows(
        "v-both",
        {
            b"tea": {"item": tea, "left_over": None},
            b"pot": {"item": pot, "left_over": None},
            b"cup": {"item": cup, "left_over": 9},
        },
    )
    broker.rows(
        "v-left",
        {
            b"tea": {"i": tea, "s": None},
            b"pot": {"i": pot, "s": {"left_over": None}},
            b"cup": {"i": cup, "s": {"left_over": 9}},
        },
    )


WINDOWS = """
SET defaults.topic.autocreate = true;
WITH taps AS (SELECT STREAM * FROM v-taps);
INSERT INTO v-tumble SELECT STREAM CONCAT(UPPER(url), CAST(COUNT(*) AS STRING)) AS text FROM taps
WINDOW BY TUMBLE 10s GROUP BY url;
INSERT INTO v-offsets SELECT STREAM MAXK(_meta.offset) AS last, COUNT(*) AS n FROM taps
WHERE _meta.headers.keep IS NOT NULL WINDOW BY TUMBLE 10s GROUP BY url;
INSERT INTO v-meta SELECT STREAM _meta.offset AS at, HEADERASSTRING('keep') AS keep, HEADERKEYS() AS names, ms
FROM taps;
INSERT INTO v-pairs SELECT STREAM a._meta.offset AS a, b._meta.offset AS b, b._meta.headers.keep FROM taps AS a
JOIN v-taps AS b ON a.url = b.url WITHIN 5s WHERE a._meta.offset < b._meta.offset;
INSERT INTO v-sessions SELECT STREAM MAXK(ms, 2) AS most, COLLECT(ms) AS all, COLLECT_UNIQUE(ms, 2) AS few,
TOPK(ms) AS often, CONCAT('n=', CAST(COUNT(*) AS STRING)) AS n FROM taps WINDOW BY SESSION 5s GRACE BY 1h GROUP BY url;
INSERT INTO v-numbers STORE KEY AS LONG VALUE AS STRING SELECT STREAM _key AS _key, ms AS _value FROM taps;
"""


def test_windows_and_what_records_have_beside_their_values(
    session: Connection[tuple[Any, ...]], broker: Broker
) -> None:
    tap = lambda url, ms: as_json({"url": url, "ms": ms})  # noqa: E731
    of = lambda number: struct.pack(">i", number)  # noqa: E731
    broker.put("v-taps", (of(1), tap("/a", 1), 0), (of(2), tap("/a", 2), 3), headers=[("keep", b"yes")])
    broker.put("v-taps", (of(3), tap("/b", 3), 4), (of(-4), tap("/a", 4), 40))
    broker.put("v-taps", (of(5), tap("/a", 5), 5), headers=[("keep", b"late")])  # its window is closed
    run(session, WINDOWS)
    assert broker.records("v-meta", 5) == [
        (of(1), {"at": 0, "keep": "yes", "names": ["keep"], "ms": 1}),
        (of(2), {"at": 1, "keep": "yes", "names": ["keep"], "ms": 2}),
        (of(3), {"at": 2, "keep": None, "names": None, "ms": 3}),
        (of(-4), {"at": 3, "keep": None, "names": None, "ms": 4}),
        (of(5), {"at": 4, "keep": "late", "names": ["keep"], "ms": 5}),
    ]
    assert broker.records("v-numbers", 5) == [
        (struct.pack(">q", number), ms) for number, ms in ((1, 1), (2, 2), (3, 3), (-4, 4), (5, 5))
    ]
    found = [value for _, value in broker.records("v-pairs", 1)]
    assert {"a": 0, "b": 1, "keep": "yes"} in found
    broker.rows(
        "v-tumble",
        {
            windowed("/a", 0, 10): {"text": "/A2"},
            windowed("/b", 0, 10): {"text": "/B1"},
            windowed("/a", 40, 50): {"text": "/A1"},
        },
    )
    broker.rows("v-offsets", {windowed("/a", 0, 10): {"last": [1], "n": 2}})
    session_of = lambda n, most, values, often: {  # noqa: E731
        "most": most, "all": values, "few": sorted(set(values))[:2], "often": [often], "n": f"n={n}"
    }  # fmt: skip
    apart = {
        windowed("/b", 4, 9): session_of(1, [3], [3], 3),
        windowed("/a", 40, 45): session_of(1, [4], [4], 4),
    }
    broker.rows("v-sessions", {**apart, windowed("/a", 0, 10): session_of(3, [5, 2], [1, 2, 5], 1)})
    broker.put("v-taps", (of(6), tap("/a", 2), 14))
    both = {
        windowed("/a", 0, 10): session_of(3, [5, 2], [1, 2, 5], 1),
        windowed("/a", 14, 19): session_of(1, [2], [2], 2),
    }
    broker.rows("v-sessions", {**apart, **both})
    broker.put("v-taps", (of(7), tap("/a", 9), 9))  # it joins the two
    broker.rows("v-sessions", {**apart, windowed("/a", 0, 19): session_of(5, [9, 5], [1, 2, 5, 9, 2], 2)})


CORNERS = """
SET defaults.topic.autocreate = true;
SET error.policy = continue;
WITH c AS (SELECT STREAM * FROM v-corners);
WITH per-kind AS (SELECT TABLE COUNT(*) AS n, AVG(x) AS mean, MAX(x) AS most FROM v-corners GROUP BY kind);
INSERT INTO v-alone SELECT STREAM x AS _value FROM c;
INSERT INTO v-most SELECT TABLE MAX(x) AS _value FROM v-corners GROUP BY kind;
INSERT INTO v-kinds SELECT STREAM CASE kind WHEN 'a' THEN 'first' WHEN 'b' THEN 'second' ELSE 'other' END AS what,
x / 2 AS half, x % 3 AS rest, x * 1.5 AS more, part.a.b + 1 AS deep, SIZEOF(xs) AS size, ISNULL(part) AS lost FROM c;
INSERT INTO v-items-of SELECT STREAM item.name, item.n + x AS n FROM v-corners LATERAL items AS item WHERE item.n > 1;
INSERT INTO v-of-two SELECT TABLE COUNT(*) AS n, SUM(item.n) AS sum FROM c LATERAL items AS item GROUP BY item.name;
INSERT INTO v-means SELECT TABLE n, COALESCE(ROUND(mean, 1), 0) AS mean, most = 7 AS seven FROM per-kind WHERE n > 1;
INSERT INTO v-keys SELECT STREAM CONCAT(kind, '-', CAST(x AS STRING)) AS _key, COALESCE(x, -1) AS x FROM c
WHERE kind != 'a';
"""


def test_corners(session: Connection[tuple[Any, ...]], broker: Broker) -> None:
    session.execute(
        f"CREATE STREAM v_corners (kind VARCHAR, x INTEGER, xs ARRAY<INTEGER>, part STRUCT<a STRUCT<b INTEGER>>, "
        f"items ARRAY<STRUCT<name VARCHAR, n INTEGER>>) WITH ('topic' = 'v-corners', 'key.format' = 'primitive', "
        f"'key.type' = 'VARCHAR', {_COMMON})".encode()
    )
    given: list[tuple[bytes | None, dict[str, Any] | None]] = [
        (b"1", {"kind": "a", "x": 7, "xs": [1, None], "part": {"a": {"b": 1}}, "items": [{"name": "p", "n": 1}]}),
        (b"2", {"kind": "b", "x": -7, "part": {"a": None}, "items": [{"name": "p", "n": 2}, {"name": "q", "n": 5}]}),
        (b"3", {"kind": None, "x": None, "xs": [], "items": []}),
        (b"1", {"kind": "b", "x": 4, "items": None}),
        (None, {"kind": "a", "x": 100, "items": [{"name": "q", "n": 9}]}),
        (b"2", None),
    ]
    for second, (key_, value) in enumerate(given):
        broker.put("v-corners", (key_, None if value is None else as_json(value), second))
    run(session, CORNERS)
    whole = lambda number: struct.pack(">i", number)  # noqa: E731
    assert broker.records("v-alone", 4) == [
        (b"1", whole(7)), (b"2", whole(-7)), (b"1", whole(4)), (None, whole(100))
    ]  # fmt: skip
    # as a TABLE: key 1 is of kind b with 4, key 3 of none, key 2 is deleted, and what has no key is none
    broker.rows("v-most", {b"b": whole(4)})
    kind = lambda what, half, rest, more, deep, size, *, lost: {  # noqa: E731
        "what": what, "half": half, "rest": rest, "more": more, "deep": deep, "size": size, "lost": lost
    }  # fmt: skip
    assert broker.records("v-kinds", 5) == [
        (b"1", kind("first", 3, 1, 10.5, 2, 2, lost=False)),
        (b"2", kind("second", -3, -1, -10.5, None, None, lost=False)),
        (b"3", kind("other", None, None, None, None, 0, lost=True)),
        (b"1", kind("second", 2, 1, 6.0, None, None, lost=True)),
        (None, kind("first", 50, 1, 150.0, None, None, lost=True)),
    ]
    assert broker.records("v-items-of", 3) == [
        (b"2", {"name": "p", "n": -5}), (b"2", {"name": "q", "n": -2}), (None, {"name": "q", "n": 109}),
    ]  # fmt: skip
    broker.rows("v-of-two", {b"p": {"n": 2, "sum": 3}, b"q": {"n": 2, "sum": 14}})
    assert broker.records("v-keys", 2) == [(b"b--7", {"x": -7}), (b"b-4", {"x": 4})]
    broker.put("v-corners", (b"4", as_json({"kind": "b", "x": 7}), 10))
    broker.rows("v-means", {b"b": {"n": 2, "mean": 5.5, "seven": True}})
    broker.rows("v-most", {b"b": whole(7)})
    broker.put("v-corners", (b"4", as_json({"kind": "a", "x": None}), 11), (b"1", None, 12))
    broker.rows("v-means", {})
    broker.rows("v-most", {})


OVER_AGGREGATES = """
SET defaults.topic.autocreate = true;
WITH per-name AS (SELECT TABLE COUNT(*) AS n, SUM(price) AS sum, COLLECT(price) AS prices FROM v-items GROUP BY name);
WITH long AS (SELECT TABLE UPPER(_key) AS name, CONCAT(CAST(n AS STRING), ' x ', _key) AS text, SIZEOF(prices) AS size
FROM per-name WHERE LENGTH(_key) > 2);
INSERT INTO v-counts SELECT TABLE CAST(COUNT(*) AS STRING) AS s, ELEMENT_OF(MAXK(price), 0) AS most,
UPPER(name) AS name, COUNT(price) AS sum.n, CAST(SUM(price) AS STRING) AS sum.text FROM v-items GROUP BY name;
INSERT INTO v-long SELECT TABLE * FROM long;
INSERT INTO v-sizes SELECT TABLE COUNT(*) AS names, COLLECT_UNIQUE(name) AS all FROM long GROUP BY size;
INSERT INTO v-first SELECT TABLE ELEMENT_OF(prices, 0) AS first FROM per-name WHERE n > 1;
INSERT INTO v-texts STORE KEY AS STRING VALUE AS STRING SELECT TABLE COUNT(*) AS _value FROM v-items GROUP BY price;
"""


def test_functions_over_aggregates(session: Connection[tuple[Any, ...]], broker: Broker, server: LiveServer) -> None:
    session.execute(
        f"CREATE CHANGELOG v_goods (id VARCHAR, name VARCHAR, price INTEGER, PRIMARY KEY (id)) WITH ('topic' = "
        f"'v-goods', 'value.columns.exclude' = 'id', {_COMMON})".encode()
    )
    good = lambda name, price: as_json({"name": name, "price": price})  # noqa: E731
    broker.put(
        "v-goods", (b"a", good("pot", 3), 0), (b"b", good("pot", 5), 1), (b"c", good("ax", 1), 2),
        (b"d", good("cup", None), 3),
    )  # fmt: skip
    program = OVER_AGGREGATES.replace("v-items", "v-goods")
    session.execute(f"CREATE PROCESSOR goods AS $${program}$$".encode())
    session.execute("START PROCESSOR goods")
    count = lambda s, most, name, n, text: {  # noqa: E731
        "s": s, "most": most, "name": name, "sum": {"n": n, "text": text}
    }  # fmt: skip
    broker.rows(
        "v-counts",
        {
            b"pot": count("2", 5, "POT", 2, "8"),
            b"ax": count("1", 1, "AX", 1, "1"),
            b"cup": count("1", None, "CUP", 0, None),
        },
    )
    long = lambda name, text, size: {"name": name, "text": text, "size": size}  # noqa: E731
    broker.rows("v-long", {b"pot": long("POT", "2 x pot", 2), b"cup": long("CUP", "1 x cup", 1)})
    of_size = lambda size: struct.pack(">i", size)  # noqa: E731
    broker.rows("v-sizes", {of_size(2): {"names": 1, "all": ["POT"]}, of_size(1): {"names": 1, "all": ["CUP"]}})
    broker.rows("v-first", {b"pot": {"first": 3}})
    broker.rows("v-texts", {b"3": 1, b"5": 1, b"1": 1})
    # what is replaced, deleted and moved to another group leaves each of them; also over a kill
    broker.put("v-goods", (b"a", good("cup", 7), 10), (b"c", None, 11))
    server.kill()
    server.start()
    broker.put("v-goods", (b"e", good("cup", 2), 12))
    broker.rows("v-counts", {b"pot": count("1", 5, "POT", 1, "5"), b"cup": count("3", 7, "CUP", 2, "9")})
    broker.rows("v-long", {b"pot": long("POT", "1 x pot", 1), b"cup": long("CUP", "3 x cup", 3)})
    broker.rows("v-sizes", {of_size(1): {"names": 1, "all": ["POT"]}, of_size(3): {"names": 1, "all": ["CUP"]}})
    broker.rows("v-first", {b"cup": {"first": None}})  # by event time: that of d
    broker.rows("v-texts", {b"5": 1, b"7": 1, b"2": 1})
    server.run("DROP PROCESSOR goods")


JARS = """
SET defaults.topic.autocreate = true;
WITH heat AS (SELECT STREAM * FROM v-heat);
WITH sold AS (SELECT TABLE * FROM v-sold);
INSERT INTO v-fahrenheit SELECT STREAM fahrenheit(celsius) AS f, below(place) AS place FROM heat
WHERE fahrenheit(celsius) > 0;
INSERT INTO v-in-order SELECT STREAM in_order(place) AS places, FIRST(place) AS one, LAST(place) AS other
FROM v-heat EVENTTIME BY at GROUP BY CASE WHEN celsius > 0 THEN TYPEOF(place) ELSE "cold" END;
INSERT INTO v-jar-means SELECT TABLE mean(pieces, 3) AS mean, mean_of_all(pieces) AS of_all FROM sold GROUP BY shop;
INSERT INTO v-dumps SELECT STREAM DUMP(place) AS place, DUMP(celsius) AS celsius, TYPEOF(celsius) AS kind FROM heat;
"""


def test_functions_of_the_originals_jars(
    session: Connection[tuple[Any, ...]], server: LiveServer, broker: Broker
) -> None:
    """A row of a TABLE that is replaced, or deleted, has never been in an aggregate."""
    (server.data / "store-config" / "farm.jar").write_bytes(lenses_jar.jar())
    server.run(
        FARM_SOURCE,
        farm("Fahrenheit", "c DOUBLE", "DOUBLE", "fahrenheit"),
        farm("Below", "w VARCHAR", "VARCHAR", "below", ""),
        farm("Mean", "n BIGINT, least INTEGER", "DOUBLE", "mean", what="AGGREGATE"),
        farm("Mean", "n BIGINT", "DOUBLE", "mean_of_all", what="AGGREGATE"),
        farm("Last", "w VARCHAR", "VARCHAR", "in_order", what="AGGREGATE"),
    )
    heat = [("oven", 200.0), (None, 37.0), ("ice", -40.0), ("", 0.0)]
    for i, (place, celsius) in enumerate(heat):
        broker.put("v-heat", (b"h", as_json({"place": place, "celsius": celsius, "at": NOW_MS - i}), i))
    sold = {b"1": ("a", 2), b"2": ("a", 4), b"3": ("b", 9), b"4": ("b", 1)}
    broker.put("v-sold", *((k, as_json({"shop": shop, "pieces": n}), 0) for k, (shop, n) in sold.items()))
    run(session, JARS)
    assert broker.records("v-fahrenheit", 3) == [
        (b"h", {"f": 392.0, "place": "oven!"}),
        (b"h", {"f": 37.0 * 1.8 + 32, "place": "nothing"}),
        (b"h", {"f": 32.0, "place": None}),
    ]
    row = lambda places, one, other: {"places": places, "one": one, "other": other}  # noqa: E731
    broker.rows("v-in-order", {b"STRING": row(",oven", "oven", "oven"), b"cold": row(",,ice", "", "ice")})
    broker.rows("v-jar-means", {b"a": {"mean": 4.0, "of_all": 3.0}, b"b": {"mean": 9.0, "of_all": 5.0}})
    broker.put("v-sold", (b"2", as_json({"shop": "b", "pieces": 5}), 1), (b"3", None, 1))
    broker.rows("v-jar-means", {b"a": {"mean": None, "of_all": 2.0}, b"b": {"mean": 5.0, "of_all": 3.0}})
    model = "io.lenses.sql.model."
    assert broker.records("v-dumps", 2) == [
        (b"h", {"place": f"{model}StringValue@StringValue(oven)",
                "celsius": f"{model}DoubleValue@DoubleValue(200)", "kind": "DOUBLE"}),
        (b"h", {"place": f"{model}NullValue$@NullValue",
                "celsius": f"{model}DoubleValue@DoubleValue(37)", "kind": "DOUBLE"}),
    ]  # fmt: skip


DRAWN = """
SET defaults.topic.autocreate = true;
WITH r AS (SELECT STREAM ms, RANDINT() AS dice, NOW() AS seen FROM v-drawn);
INSERT INTO v-drawn-out SELECT STREAM RANDINT() AS _key, ms, dice, MKSTRING(dice) AS same, RANDINT() AS other, seen,
  seen = DATETIME() AND seen = CURRENT_DATETIME() AND NOW() + 1d = TOMORROW() AND NOW() - 1d = YESTERDAY()
    AND DATE() = EXTRACT_DATE(seen) AND CURDATE() = DATE() AND CURTIME() = EXTRACT_TIME(seen) AS agree,
  TOMORROW() AS tomorrow, YESTERDAY() AS yesterday, DATE() AS today, CURTIME() AS clock, DATE(ms) AS day,
  TIMESTAMP(DATE(ms), TIME_MILLIS(ms), 'Europe/Berlin') AS berlin
FROM r WHERE NOW() > YESTERDAY() AND (dice < 0 OR dice >= 0);
"""


def instant(text: str) -> dt.datetime:
    """The time zone of the original's texts is UTC."""
    return dt.datetime.fromisoformat(text.replace(" ", "T"))


def test_the_present_time_and_chance(session: Connection[tuple[Any, ...]], server: LiveServer, broker: Broker) -> None:
    """Records come in batches of one running query: nothing of the first one is kept for the others. The last batch is
    read after a kill, and each record has been written once."""
    session.execute(f"CREATE STREAM v_drawn (ms INTEGER) WITH ('topic' = 'v-drawn', {_COMMON})".encode())
    run(session, DRAWN)
    day, found, bounds = dt.timedelta(days=1), [], []
    for batch in range(4):
        before = dt.datetime.now(dt.UTC)
        broker.put("v-drawn", *((None, as_json({"ms": batch}), batch) for _ in range(20)))
        found = broker.records("v-drawn-out", 20 * (batch + 1))
        bounds.append((before, dt.datetime.now(dt.UTC)))
        if batch < 2:
            time.sleep(1.5)  # what is frozen at the first batch would be too early by this
        elif batch == 2:
            server.kill()
            server.start()
    for number, (key, row) in enumerate(found):
        seen, (before, after) = instant(row["seen"]), bounds[number // 20]
        assert before - dt.timedelta(milliseconds=1) <= seen <= after
        assert instant(row["tomorrow"]) - day == instant(row["yesterday"]) + day == seen
        assert row["today"] == seen.date().isoformat()
        assert dt.time.fromisoformat(row["clock"]) == seen.time()
        assert row["agree"] is True
        assert row["same"] == str(row["dice"])
        assert row["dice"] != row["other"]  # but for one case in four milliards
        assert row["day"] == (dt.date(1970, 1, 1) + day * row["ms"]).isoformat()
        local = dt.datetime(1970, 1, 1) + day * row["ms"] + dt.timedelta(milliseconds=row["ms"])
        assert instant(row["berlin"]) == local.replace(tzinfo=ZoneInfo("Europe/Berlin")).astimezone(dt.UTC)
        assert key is not None
    drawn = [value for _, row in found for value in (row["dice"], row["other"])]
    assert len(set(drawn)) > 155  # of 160
    assert all(-(2**31) <= value < 2**31 for value in drawn)
    assert min(drawn) < 0 < max(drawn)
    assert len({key for key, _ in found}) > 75
    assert [row["ms"] for _, row in found] == [batch for batch in range(4) for _ in range(20)]


def test_the_present_time_in_the_first_dialect(session: Connection[tuple[Any, ...]], broker: Broker) -> None:
    session.execute(f"CREATE STREAM v_timed (n INTEGER) WITH ('topic' = 'v-timed', {_COMMON})".encode())
    session.execute(
        b"CREATE STREAM v_timed_out WITH ('topic' = 'v-timed-out') AS "
        b"SELECT n, current_timestamp AS at, r, gen_random_uuid() AS id "
        b"FROM (SELECT n, random() AS r FROM v_timed WITH ('starting.position' = 'earliest')) s WHERE r >= 0.5"
    )
    before = dt.datetime.now(dt.UTC)
    broker.put("v-timed", *((None, as_json({"n": n}), 0) for n in range(400)))
    found = [row for _, row in broker.records("v-timed-out", 120)]
    after = dt.datetime.now(dt.UTC)
    assert all(before - dt.timedelta(milliseconds=1) <= instant(row["at"]) <= after for row in found)
    assert all(0.5 <= row["r"] < 1 for row in found)
    assert len({row["r"] for row in found}) == len({row["id"] for row in found}) == len(found)
