"""Joins of STREAMs and TABLEs, and windows of every kind, on a real Kafka with rows written down by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from psycopg import Connection

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer
from tests.lenses.broker import NOW_MS, Broker, as_json, integer

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

_RELATIONS = (
    "CREATE STREAM js_taps (at BIGINT, url VARCHAR, ms INTEGER) WITH ('topic' = 'js-taps', {}, 'key.type' = 'VARCHAR')",
    "CREATE STREAM js_buys (item VARCHAR) WITH ('topic' = 'js-buys', {}, 'key.type' = 'VARCHAR')",
    "CREATE CHANGELOG js_users (id VARCHAR, name VARCHAR, city VARCHAR, PRIMARY KEY (id)) "
    "WITH ('topic' = 'js-users', {}, 'value.columns.exclude' = 'id')",
    "CREATE CHANGELOG js_scores (id VARCHAR, score INTEGER, PRIMARY KEY (id)) "
    "WITH ('topic' = 'js-scores', {}, 'value.columns.exclude' = 'id')",
)
_COMMON = "'value.format' = 'json', 'key.format' = 'primitive', 'topic.partitions' = 1, 'topic.replicas' = 1"

PROGRAM = """
SET defaults.topic.autocreate = true;
WITH taps AS (SELECT STREAM * FROM js-taps);
WITH buys AS (SELECT STREAM * FROM js-buys);
WITH users AS (SELECT TABLE * FROM js-users);
WITH scores AS (SELECT TABLE * FROM js-scores);
WITH per-city AS (SELECT TABLE COUNT(*) AS users FROM users GROUP BY city);
INSERT INTO j-inner SELECT TABLE name, score FROM users JOIN scores;
INSERT INTO j-left SELECT TABLE name, score FROM users LEFT JOIN scores ON users._key = scores._key;
INSERT INTO j-full SELECT TABLE users._key AS user, UPPER(name) AS name, score, 1 AS one FROM users OUTER JOIN scores;
INSERT INTO j-sums SELECT TABLE COUNT(*) AS n, SUM(score) AS s FROM users AS u OUTER JOIN scores AS c ON c._key = u._key
WHERE city IS NOT NULL GROUP BY city;
INSERT INTO j-best SELECT TABLE MAX(score) AS best, COUNT(*) AS n FROM users JOIN scores GROUP BY city;
INSERT INTO j-outer SELECT STREAM url, item FROM taps OUTER JOIN buys WITHIN 10s;
INSERT INTO j-table SELECT STREAM url, name FROM users RIGHT JOIN taps;
INSERT INTO j-cities SELECT TABLE users * 10 AS tens FROM per-city WHERE users > 1;
INSERT INTO w-hop SELECT TABLE SUM(ms) AS ms FROM taps WINDOW BY HOP 20s BY 10s GROUP BY url;
INSERT INTO w-session SELECT TABLE url, COUNT(*) AS n FROM taps WINDOW BY SESSION 15s GROUP BY url;
INSERT INTO w-event SELECT STREAM COUNT(*) AS n, COLLECT(ms) AS all
FROM js-taps EVENTTIME BY at WINDOW BY TUMBLE 1m GRACE BY 1h GROUP BY url;
"""


@pytest.fixture(scope="module")
def session(server: LiveServer, kafka_broker: KafkaBroker) -> Iterator[Connection[tuple[Any, ...]]]:
    server.run(f"CREATE STORE k WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')")
    with server.connect() as connection:
        connection.execute("USE STORE k")
        for text in _RELATIONS:
            connection.execute(text.format(_COMMON).encode())
        yield connection


def clock(second: int) -> str:
    """A moment of the fixed time's minute, as keys of windows have it."""
    start = 20 + second  # the fixed moment is 22:13:20
    return f"2023-11-14 22:{13 + start // 60}:{start % 60:02}.000000"


def windowed(url: str, begin: int, end: int) -> bytes:
    fields = {"url": url, "window_start": clock(begin), "window_end": clock(end)}
    return json.dumps(fields, separators=(",", ":")).encode()


def test_joins_and_windows(session: Connection[tuple[Any, ...]], kafka_broker: KafkaBroker) -> None:
    broker = Broker(kafka_broker.bootstrap)
    tap = lambda url, ms, at: as_json({"url": url, "ms": ms, "at": NOW_MS + at * 1000})  # noqa: E731
    broker.put(
        "js-users",
        (b"u1", as_json({"name": "ann", "city": "Bonn"}), 0),
        (b"u2", as_json({"name": "ben", "city": "Bonn"}), 0),
        (b"u3", as_json({"name": "cid", "city": "Kiel"}), 0),
    )
    broker.put(
        "js-scores", *((key, as_json({"score": score}), 0) for key, score in ((b"u1", 5), (b"u3", 7), (b"u0", 1)))
    )
    broker.put(
        "js-taps",
        (b"u1", tap("/a", 1, 0), 0),
        (b"u1", tap("/a", 2, 5), 5),
        (b"u9", tap("/b", 4, 100), 30),
    )
    broker.put("js-buys", (b"u1", as_json({"item": "tea"}), 8), (b"u8", as_json({"item": "cup"}), 9))
    session.execute(f"LENSES $${PROGRAM}$$".encode())
    broker.rows("j-inner", {b"u1": {"name": "ann", "score": 5}, b"u3": {"name": "cid", "score": 7}})
    broker.rows(
        "j-left",
        {
            b"u1": {"name": "ann", "score": 5},
            b"u2": {"name": "ben", "score": None},
            b"u3": {"name": "cid", "score": 7},
        },
    )
    full = lambda name, score, user: {"user": user, "name": name, "score": score, "one": 1}  # noqa: E731
    there = {b"u0": full(None, 1, None), b"u1": full("ANN", 5, "u1")}
    broker.rows("j-full", {**there, b"u2": full("BEN", None, "u2"), b"u3": full("CID", 7, "u3")})
    broker.rows("j-sums", {b"Bonn": {"n": 2, "s": 5}, b"Kiel": {"n": 1, "s": 7}})
    broker.rows("j-best", {b"Bonn": {"best": 5, "n": 1}, b"Kiel": {"best": 7, "n": 1}})
    broker.rows("j-cities", {b"Bonn": {"tens": 20}})
    # an update and a deletion take back what they undo
    broker.put("js-scores", (b"u2", as_json({"score": 9}), 50), (b"u3", None, 50))
    broker.put("js-users", (b"u1", as_json({"name": "ann", "city": "Kiel"}), 51))
    broker.rows("j-inner", {b"u1": {"name": "ann", "score": 5}, b"u2": {"name": "ben", "score": 9}})
    broker.rows("j-full", {**there, b"u2": full("BEN", 9, "u2"), b"u3": full("CID", None, "u3")})
    broker.rows("j-sums", {b"Bonn": {"n": 1, "s": 9}, b"Kiel": {"n": 2, "s": 5}})
    broker.rows("j-best", {b"Bonn": {"best": 9, "n": 1}, b"Kiel": {"best": 5, "n": 1}})
    broker.rows("j-cities", {b"Kiel": {"tens": 20}})
    broker.put("js-users", (b"u3", None, 52), (b"u0", as_json({"name": "eve", "city": "Ulm"}), 52))
    broker.rows("j-full", {**there, b"u0": full("EVE", 1, "u0"), b"u2": full("BEN", 9, "u2")})
    # each tap meets the row of its time; those of nobody are there with NULL
    found = broker.records("j-table", 3)
    assert sorted(found, key=str) == [
        (b"u1", {"url": "/a", "name": "ann"}),
        (b"u1", {"url": "/a", "name": "ann"}),
        (b"u9", {"url": "/b", "name": None}),
    ]
    # what has met nothing comes when the other side is past it
    broker.put("js-taps", (b"u7", tap("/c", 8, 200), 200))
    broker.put("js-buys", (b"u7", as_json({"item": "pot"}), 201), (b"u6", as_json({"item": "end"}), 400))
    assert sorted(broker.records("j-outer", 5), key=str)[:5] == [
        (b"u1", {"url": "/a", "item": "tea"}),
        (b"u1", {"url": "/a", "item": "tea"}),
        (b"u7", {"url": "/c", "item": "pot"}),
        (b"u8", {"url": None, "item": "cup"}),
        (b"u9", {"url": "/b", "item": None}),
    ]
    broker.rows(
        "w-hop",
        {
            windowed("/a", -10, 10): {"ms": 3},
            windowed("/a", 0, 20): {"ms": 3},
            windowed("/b", 20, 40): {"ms": 4},
            windowed("/b", 30, 50): {"ms": 4},
            windowed("/c", 190, 210): {"ms": 8},
            windowed("/c", 200, 220): {"ms": 8},
        },
    )
    broker.rows(
        "w-session",
        {
            windowed("/a", 0, 20): {"url": "/a", "n": 2},
            windowed("/b", 30, 45): {"url": "/b", "n": 1},
            windowed("/c", 200, 215): {"url": "/c", "n": 1},
        },
    )
    broker.rows(
        "w-event",
        {
            windowed("/a", -20, 40): {"n": 2, "all": [1, 2]},
            windowed("/b", 100, 160): {"n": 1, "all": [4]},
            windowed("/c", 160, 220): {"n": 1, "all": [8]},
        },
    )


_BY_FIELDS = (
    "CREATE STREAM jf_orders (buyer VARCHAR, item VARCHAR) WITH ('topic' = 'jf-orders', {}, 'key.type' = 'VARCHAR')",
    "CREATE CHANGELOG jf_people (id VARCHAR, code VARCHAR, name VARCHAR, PRIMARY KEY (id)) "
    "WITH ('topic' = 'jf-people', {}, 'value.columns.exclude' = 'id')",
    "CREATE CHANGELOG jf_badges (no INTEGER, holder VARCHAR, grade INTEGER, PRIMARY KEY (no)) "
    "WITH ('topic' = 'jf-badges', {}, 'value.columns.exclude' = 'no')",
)
BY_FIELDS = """
SET defaults.topic.autocreate = true;
SET nullability = ignore;
WITH orders AS (SELECT STREAM * FROM jf-orders);
WITH people AS (SELECT TABLE * FROM jf-people);
WITH badges AS (SELECT TABLE * FROM jf-badges);
WITH held AS (SELECT TABLE name, grade FROM people JOIN badges ON badges.holder = people.code);
INSERT INTO f-inner SELECT STREAM item, name FROM orders JOIN people ON people.code = orders.buyer;
INSERT INTO f-left SELECT STREAM item, name FROM orders LEFT JOIN people ON people.code = orders.buyer;
INSERT INTO f-two SELECT STREAM item, name FROM orders
LEFT JOIN people ON people.code = orders.buyer AND people.name = orders.item;
INSERT INTO f-right SELECT STREAM item, name FROM people RIGHT JOIN orders ON people.code = orders.buyer;
INSERT INTO f-swapped SELECT STREAM item, name FROM people JOIN orders ON orders.buyer = people.code WHERE name != 'x';
INSERT INTO f-counted SELECT TABLE COUNT(*) AS n FROM orders JOIN people ON people.code = orders.buyer GROUP BY name;
INSERT INTO t-inner SELECT TABLE name, grade FROM people JOIN badges ON people.code = badges.holder;
INSERT INTO t-left SELECT TABLE name, grade FROM people LEFT JOIN badges ON people.code = badges.holder;
INSERT INTO t-right SELECT TABLE name, grade FROM people RIGHT JOIN badges ON people.code = badges.holder;
INSERT INTO t-outer SELECT TABLE name, grade FROM people OUTER JOIN badges ON people.code = badges.holder;
INSERT INTO t-held SELECT TABLE * FROM held WHERE grade > 1;
"""


def test_joins_by_fields_that_are_no_keys(
    session: Connection[tuple[Any, ...]], server: LiveServer, kafka_broker: KafkaBroker
) -> None:
    """A row of a stream meets each row of a TABLE that had its value at its time; TABLEs meet in all pairs."""
    broker = Broker(kafka_broker.bootstrap)
    for text in _BY_FIELDS:
        session.execute(text.format(_COMMON).encode())
    person = lambda key, code, name, at: (key, as_json({"code": code, "name": name}), at)  # noqa: E731
    badge = lambda no, holder, grade, at: (integer(no), as_json({"holder": holder, "grade": grade}), at)  # noqa: E731
    order = lambda buyer, item, at: (b"o", as_json({"buyer": buyer, "item": item}), at)  # noqa: E731
    broker.put(
        "jf-people",
        person(b"u1", "A", "ann", 0), person(b"u2", "A", "ben", 10), person(b"u3", "B", "cid", 20),
        person(b"u1", "B", "ann", 30), (b"u2", None, 40), person(b"u4", None, "dan", 50),
    )  # fmt: skip
    broker.put(
        "jf-orders",
        order("A", "at 5", 5), order("A", "at 15", 15), order("B", "at 15", 16), order("A", "at 35", 35),
        order("B", "at 35", 36), order("A", "at 45", 45), order(None, "nobody", 46), order("C", "other", 47),
        order(None, None, 48),
    )  # fmt: skip
    broker.put("jf-badges", badge(1, "B", 1, 0), badge(2, "B", 2, 0), badge(3, "Z", 3, 0), badge(4, None, 4, 0))
    server.run("USE STORE k", f"LENSES $${BY_FIELDS}$$")
    met = [(b"A", "at 5", "ann"), (b"A", "at 15", "ann"), (b"A", "at 15", "ben"), (b"A", "at 35", "ben"),
           (b"B", "at 35", "ann"), (b"B", "at 35", "cid")]  # fmt: skip
    alone = [(b"A", "at 45", None), (b"B", "at 15", None), (None, "nobody", None), (b"C", "other", None),
             (None, None, None)]  # fmt: skip
    for target, wanted in (("f-inner", met), ("f-swapped", met), ("f-left", met + alone), ("f-right", met + alone)):
        found = [(key, row["item"], row["name"]) for key, row in broker.records(target, len(wanted))]
        assert sorted(found, key=str) == sorted(wanted, key=str), target
    keys = Counter(key for key, _ in broker.records("f-two", 9))
    assert (keys[b'{"buyer":null,"item":"nobody"}'], keys[None]) == (1, 1), "a key of which all is NULL is none"
    broker.rows("f-counted", {b"ann": {"n": 3}, b"ben": {"n": 2}, b"cid": {"n": 1}})
    row = lambda name, grade: {"name": name, "grade": grade}  # noqa: E731
    pairs = {
        b'["u1","1"]': row("ann", 1), b'["u1","2"]': row("ann", 2),
        b'["u3","1"]': row("cid", 1), b'["u3","2"]': row("cid", 2),
    }  # fmt: skip
    left, right = {b'["u4",null]': row("dan", None)}, {b'[null,"3"]': row(None, 3), b'[null,"4"]': row(None, 4)}
    broker.rows("t-inner", pairs)
    broker.rows("t-left", {**pairs, **left})
    broker.rows("t-right", {**pairs, **right})
    broker.rows("t-outer", {**pairs, **left, **right})
    broker.rows("t-held", {key: value for key, value in pairs.items() if value["grade"] > 1})
    # a field changes, rows go, and the server is killed while that comes
    broker.put("jf-people", person(b"u3", "Z", "cid", 60), (b"u4", None, 61))
    server.kill()
    broker.put("jf-badges", (integer(1), None, 62), badge(4, "B", 5, 63))
    broker.put("jf-orders", order("Z", "at 70", 70), order("B", "at 71", 71))
    server.start()
    pairs = {b'["u1","2"]': row("ann", 2), b'["u1","4"]': row("ann", 5), b'["u3","3"]': row("cid", 3)}
    for target in ("t-inner", "t-left", "t-right", "t-outer", "t-held"):
        broker.rows(target, pairs)
    met += [(b"Z", "at 70", "cid"), (b"B", "at 71", "ann")]
    for target, wanted in (("f-inner", met), ("f-swapped", met), ("f-left", met + alone), ("f-right", met + alone)):
        found = [(key, row["item"], row["name"]) for key, row in broker.records(target, len(wanted))]
        assert sorted(found, key=str) == sorted(wanted, key=str), target
    broker.rows("f-counted", {b"ann": {"n": 4}, b"ben": {"n": 2}, b"cid": {"n": 2}})


_MADE = (
    "CREATE STREAM jm_orders (item VARCHAR, town VARCHAR) WITH ('topic' = 'jm-orders', {}, 'key.type' = 'VARCHAR')",
    "CREATE STREAM jm_pays (amount INTEGER) WITH ('topic' = 'jm-pays', {}, 'key.type' = 'VARCHAR')",
    "CREATE CHANGELOG jm_people (id VARCHAR, name VARCHAR, city VARCHAR, PRIMARY KEY (id)) "
    "WITH ('topic' = 'jm-people', {}, 'value.columns.exclude' = 'id')",
    "CREATE CHANGELOG jm_cities (city VARCHAR, land VARCHAR, PRIMARY KEY (city)) "
    "WITH ('topic' = 'jm-cities', {}, 'value.columns.exclude' = 'city')",
)
MADE = """
SET defaults.topic.autocreate = true;
SET nullability = ignore;
WITH orders AS (SELECT STREAM * FROM jm-orders);
WITH pays AS (SELECT STREAM * FROM jm-pays);
WITH people AS (SELECT TABLE * FROM jm-people);
WITH cities AS (SELECT TABLE * FROM jm-cities);
WITH paid AS (SELECT TABLE COUNT(*) AS n, SUM(amount) AS s, MAX(amount) AS most, LAST(amount) AS last
FROM pays GROUP BY _key);
WITH much AS (SELECT TABLE CONCAT('n', CAST(n AS STRING)) AS many FROM paid WHERE s > 10);
WITH living AS (SELECT TABLE COUNT(*) AS n FROM people GROUP BY city);
WITH homes AS (SELECT TABLE name, land FROM people JOIN cities ON people.city = cities._key);
INSERT INTO m-inner SELECT STREAM item, n, s, most FROM orders JOIN paid;
INSERT INTO m-left SELECT STREAM item, s FROM orders LEFT JOIN paid ON orders._key = paid._key;
INSERT INTO m-right SELECT STREAM item, last FROM paid RIGHT JOIN orders ON orders._key = paid._key;
INSERT INTO m-much SELECT STREAM item, many FROM orders JOIN much;
INSERT INTO m-many SELECT STREAM item, many FROM orders LEFT JOIN much;
INSERT INTO m-at-home SELECT STREAM item, land FROM orders LEFT JOIN homes;
INSERT INTO m-living SELECT STREAM item, n FROM orders LEFT JOIN living ON orders.town = living._key;
INSERT INTO m-homes SELECT STREAM item, name, land FROM orders JOIN homes;
INSERT INTO m-towns SELECT TABLE COUNT(*) AS n, SUM(s) AS s FROM orders JOIN paid GROUP BY town;
INSERT INTO m-cities SELECT TABLE COUNT(*) AS n FROM people GROUP BY city;
"""


@pytest.mark.usefixtures("session")  # which another test may have cut off
def test_streams_meet_tables_that_the_program_makes(server: LiveServer, kafka_broker: KafkaBroker) -> None:
    """A row of a stream meets what GROUP BY and JOIN had made by its time, whatever batches the records come in."""
    broker = Broker(kafka_broker.bootstrap)
    server.run("USE STORE k", *(text.format(_COMMON) for text in _MADE))
    pay = lambda who, amount, at: (who, as_json({"amount": amount}), at)  # noqa: E731
    order = lambda who, item, town, at: (who, as_json({"item": item, "town": town}), at)  # noqa: E731
    person = lambda who, name, city, at: (who, as_json({"name": name, "city": city}), at)  # noqa: E731
    city = lambda name, land, at: (name, as_json({"land": land}), at)  # noqa: E731
    # u2's 4 comes late: it counts from 30 on, where its partition had come to
    broker.put("jm-pays", pay(b"u1", 5, 0), pay(b"u1", 7, 10), pay(b"u2", 3, 20), pay(b"u1", 1, 30), pay(b"u2", 4, 5))
    broker.put(
        "jm-people",
        person(b"u1", "ann", "Bonn", 0), person(b"u2", "ben", "Bonn", 10), person(b"u1", "ann", "Kiel", 20),
        (b"u2", None, 30),
    )  # fmt: skip
    broker.put("jm-cities", city(b"Bonn", "NRW", 0), city(b"Kiel", "SH", 22), city(b"Bonn", "RP", 24))
    broker.put(
        "jm-orders",
        order(b"u1", "a", "Bonn", 0), order(b"u1", "b", "Bonn", 9), order(b"u1", "c", "Kiel", 10),
        order(b"u2", "d", "Bonn", 15), order(b"u2", "e", "Bonn", 19), order(b"u1", "f", "Kiel", 21),
        order(b"u1", "g", "Bonn", 25), order(b"u2", "h", "Kiel", 30), order(b"u1", "i", "Bonn", 31),
        order(b"u3", "j", "Ulm", 35),
    )  # fmt: skip
    server.run("USE STORE k", f"LENSES $${MADE}$$")
    wanted: dict[str, dict[str, tuple[Any, ...]]] = {
        "m-inner": {
            "a": (1, 5, 5), "b": (1, 5, 5), "c": (2, 12, 7), "f": (2, 12, 7), "g": (2, 12, 7), "h": (2, 7, 4),
            "i": (3, 13, 7),
        },
        "m-left": {
            "a": (5,), "b": (5,), "c": (12,), "d": (None,), "e": (None,), "f": (12,), "g": (12,), "h": (7,),
            "i": (13,), "j": (None,),
        },
        "m-right": {
            "a": (5,), "b": (5,), "c": (7,), "d": (None,), "e": (None,), "f": (7,), "g": (7,), "h": (3,),
            "i": (1,), "j": (None,),
        },
        "m-much": {"c": ("n2",), "f": ("n2",), "g": ("n2",), "i": ("n3",)},
        "m-living": {
            "a": (1,), "b": (1,), "c": (None,), "d": (2,), "e": (2,), "f": (1,), "g": (1,), "h": (1,),
            "i": (None,), "j": (None,),
        },
        "m-homes": {
            "a": ("ann", "NRW"), "b": ("ann", "NRW"), "c": ("ann", "NRW"), "d": ("ben", "NRW"), "e": ("ben", "NRW"),
            "g": ("ann", "SH"), "i": ("ann", "SH"),
        },
    }  # fmt: skip
    nothing = dict.fromkeys("abcdefghij", (None,))
    wanted["m-many"] = {**nothing, **wanted["m-much"]}
    wanted["m-at-home"] = {**nothing, **{item: row[1:] for item, row in wanted["m-homes"].items()}}
    check_made(broker, wanted)
    broker.rows("m-towns", {b"Bonn": {"n": 4, "s": 35}, b"Kiel": {"n": 3, "s": 31}})
    broker.rows("m-cities", {b"Kiel": {"n": 1}})
    # what comes while the server is killed
    broker.put("jm-pays", pay(b"u1", 10, 40))
    server.kill()
    broker.put("jm-pays", pay(b"u3", 2, 45))
    broker.put("jm-people", person(b"u3", "cid", "Ulm", 41))
    broker.put("jm-cities", city(b"Ulm", "BW", 41))
    broker.put("jm-orders", order(b"u1", "k", "Kiel", 42), order(b"u3", "l", "Ulm", 50))
    server.start()
    more = {
        "m-inner": {"k": (4, 23, 10), "l": (1, 2, 2)}, "m-left": {"k": (23,), "l": (2,)},
        "m-right": {"k": (10,), "l": (2,)}, "m-much": {"k": ("n4",)}, "m-many": {"k": ("n4",), "l": (None,)},
        "m-at-home": {"k": ("SH",), "l": ("BW",)}, "m-living": {"k": (1,), "l": (1,)},
        "m-homes": {"k": ("ann", "SH"), "l": ("cid", "BW")},
    }  # fmt: skip
    check_made(broker, {target: {**rows, **more[target]} for target, rows in wanted.items()})
    broker.rows("m-towns", {b"Bonn": {"n": 4, "s": 35}, b"Kiel": {"n": 4, "s": 54}, b"Ulm": {"n": 1, "s": 2}})


def check_made(broker: Broker, wanted: dict[str, dict[str, tuple[Any, ...]]]) -> None:
    """Each target has these rows, by item, and each of them once."""
    for target, rows in wanted.items():
        found = [(row.pop("item"), tuple(row.values())) for _, row in broker.records(target, len(rows))]
        assert sorted(found, key=str) == sorted(rows.items(), key=str), target
