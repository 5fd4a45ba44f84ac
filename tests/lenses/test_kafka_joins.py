"""Joins of STREAMs and TABLEs, and windows of every kind, on a real Kafka with rows written down by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from psycopg import Connection

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer
from tests.lenses.broker import NOW_MS, Broker, as_json

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
