"""A data directory with a view of each kind of state, as the server of a certain day wrote it.

``python -m tests.server.kept_directory`` writes it, with what its views gave, to ``kept_directory.tar.xz``. The file is
made once and kept: it stands for the directories that people have.
"""

from __future__ import annotations

import json
import os
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mvserver import config
from mvserver.server import Rooms
from tests.server.program import Program, without_java

ARCHIVE = Path(__file__).with_name("kept_directory.tar.xz")
ANSWERS = "answers.json"
_KEPT = ("catalog.db", "views.duckdb", "files", ANSWERS)
_SHARING = 13  # views of one key: more than enough to share a state table
_SETTLE_S = 180.0

_RELATIONS = (
    "CREATE STORE local WITH ('type' = FILE, 'uris' = '.')",
    "USE STORE local",
    "CREATE STREAM clicks (at TIMESTAMP, url VARCHAR, ms INTEGER, price DECIMAL(10, 2), x DOUBLE, tags ARRAY<VARCHAR>) "
    "WITH ('value.format' = 'json', 'timestamp' = 'at')",
    "CREATE STREAM payments (url VARCHAR, at TIMESTAMP, method VARCHAR) "
    "WITH ('value.format' = 'json', 'timestamp' = 'at')",
    "CREATE CHANGELOG users (userid VARCHAR, region VARCHAR, age INTEGER, PRIMARY KEY (userid)) "
    "WITH ('value.format' = 'json')",
)
VIEWS = {
    "appended": "SELECT url, ms, price FROM clicks WHERE ms > 5",
    "computed": "SELECT url AS page, at, ms * 2 AS twice FROM clicks",
    "keyed": "SELECT url, count(*) AS visits, sum(price) AS total, max(ms) AS slowest FROM clicks GROUP BY url",
    "two_keys": "SELECT url, ms, count(*) AS visits, sum(x) AS x FROM clicks GROUP BY url, ms",
    "arithmetic": "SELECT url, count(*) + 1 AS more, CASE WHEN count(ms) > 1 THEN max(ms) - min(ms) END AS span, "
    "coalesce(sum(price), 0) AS total FROM clicks GROUP BY url",
    "instants": "SELECT url, to_timestamp(ms) AS moment, min(at) AS first FROM clicks GROUP BY url, to_timestamp(ms)",
    "averages": "SELECT url, avg(ms) AS mean, stddev(x) AS deviation FROM clicks GROUP BY url",
    "passing": "SELECT url, count(*) AS visits FROM clicks GROUP BY url HAVING count(*) > 1",
    "counted": "SELECT url, count(DISTINCT ms) AS kinds FROM clicks GROUP BY url",
    "valued": "SELECT url, percentile_cont(0.5) WITHIN GROUP (ORDER BY x) AS median, string_agg(tags[1], ',') AS tags "
    "FROM clicks GROUP BY url",
    "whole": "SELECT count(*) AS visits, sum(ms) AS ms FROM clicks",
    "rolled": "SELECT url, ms, grouping(ms) AS level, count(*) AS visits FROM clicks GROUP BY ROLLUP (url, ms)",
    "unnested": "SELECT tag, count(*) AS n FROM clicks, UNNEST(tags) AS tag GROUP BY tag",
    "minutes": "SELECT window_start, url, count(*) AS visits FROM TUMBLE(clicks, SIZE 1 MINUTE) "
    "GROUP BY window_start, window_end, url",
    "final": "SELECT window_start, count(*) AS visits FROM TUMBLE(clicks, SIZE 1 MINUTE) "
    "GROUP BY window_start, window_end EMIT FINAL",
    "sessions": "SELECT url, window_start, window_end, count(*) AS clicks "
    "FROM SESSION(clicks PARTITION BY url, GAP 45 SECONDS) GROUP BY url, window_start, window_end",
    "changed": "SELECT userid, region, age + 1 AS next FROM users WHERE age > 10",
    "regions": "SELECT region, count(*) AS users, sum(age) AS ages FROM users GROUP BY region",
    "oldest": "SELECT region, max(age) AS oldest, count(DISTINCT age) AS ages FROM users GROUP BY region",
    "joined": "SELECT c.url, c.ms, p.method FROM clicks AS c LEFT JOIN payments AS p WITHIN 5 MINUTES ON c.url = p.url",
    "methods": "SELECT p.method, count(*) AS clicks FROM clicks AS c JOIN payments AS p WITHIN 5 MINUTES "
    "ON c.url = p.url GROUP BY p.method",
    "united": "SELECT url, count(*) AS n FROM (SELECT url FROM clicks UNION ALL SELECT url FROM payments) AS u "
    "GROUP BY url",
    "nested": "SELECT visits, count(*) AS urls FROM (SELECT url, count(*) AS visits FROM clicks GROUP BY url) AS c "
    "GROUP BY visits",
    **{
        f"shared{i}": f"SELECT price, count(*) AS n, sum(ms) + {i} AS ms FROM clicks GROUP BY price"
        for i in range(_SHARING)
    },
}
_RECORDS = (
    ("clicks", '{"at": "2024-05-01 12:00:10", "url": "./a", "ms": 30, "price": 1.5, "x": 1.5, "tags": ["new","gift"]}'),
    ("clicks", '{"at": "2024-05-01 12:00:50", "url": "./a", "ms": 10, "price": 2.25, "x": 2.5, "tags": ["old"]}'),
    ("clicks", '{"at": "2024-05-01 12:01:05", "url": "./b", "ms": 20, "price": 1.5, "x": 3.5, "tags": []}'),
    ("clicks", '{"at": "2024-05-01 12:02:05", "url": null, "ms": 7, "price": null, "x": null, "tags": ["new"]}'),
    ("clicks", '{"at": "2024-05-01 12:09:05", "url": "./b", "ms": 20, "price": 4, "x": 0.5, "tags": ["gift"]}'),
    ("payments", '{"url": "./a", "at": "2024-05-01 12:00:40", "method": "card"}'),
    ("payments", '{"url": "./b", "at": "2024-05-01 12:09:00", "method": "cash"}'),
    ("users", '{"userid": "u1", "region": "north", "age": 20}'),
    ("users", '{"userid": "u2", "region": "south", "age": 31}'),
    ("users", '{"userid": "u1", "region": "south", "age": 21}'),
    ("users", '{"userid": "u3", "region": null, "age": 8}'),
)  # fmt: skip
_LATER = (
    ("clicks", '{"at": "2024-05-01 12:09:50", "url": "./a", "ms": 40, "price": 1.5, "x": 9, "tags": ["late"]}'),
    ("users", '{"userid": "u2", "region": "south", "age": 32}'),
)


def make(archive: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="kept-") as temporary:
        folder = Path(temporary)
        with Program(folder, environment=dict(os.environ)) as program, program.ready().connect() as connection:
            for statement in _RELATIONS[:2]:
                connection.execute(statement.encode())
            (folder / "data" / "files").mkdir(exist_ok=True)
            for statement in _RELATIONS[2:]:
                connection.execute(statement.encode())
            for entity, record in _RECORDS:
                connection.execute(f"INSERT INTO ENTITY {entity} VALUE ('{record}')".encode())
            for name, select in VIEWS.items():
                connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {select}".encode())
            for name in VIEWS:
                connection.execute(f"SELECT * FROM {name}".encode())
            for entity, record in _LATER:
                connection.execute(f"INSERT INTO ENTITY {entity} VALUE ('{record}')".encode())
            found = _settled(connection)
            (folder / "data" / ANSWERS).write_text(json.dumps(found, indent=1, sort_keys=True))
            program.terminate()
            assert program.ended(60) == 0, program.stderr
        with tarfile.open(archive, "w:xz", preset=9) as written:
            for name in _KEPT:
                written.add(folder / "data" / name, name)


def _settled(connection: Any) -> dict[str, list[str]]:
    """The views when all have taken the last records in."""
    ends = time.monotonic() + _SETTLE_S
    while True:
        (lagging,) = connection.execute("SELECT count(*) FROM mv_catalog.views WHERE NOT caught_up").fetchone()
        found = answers(connection)
        if lagging == 0 and found["whole"] == ["(6, 127)"]:
            return found
        assert time.monotonic() < ends, found
        time.sleep(0.5)


def answers(connection: Any) -> dict[str, list[str]]:
    """The rows of each view as text, in their order."""
    return {
        name: sorted(str(row) for row in connection.execute(f"SELECT * FROM {name}".encode()).fetchall())
        for name in VIEWS
    }


def unpack(folder: Path) -> None:
    """The directory as ``data`` in a folder."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder / "data", filter="data")


@contextmanager
def opened_rooms(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Rooms]:
    """All rooms of a server over the directory, in this process. No Java is found, so no Spark is started."""
    patch.setattr("os.environ", without_java())
    with Rooms(config.load({"data_dir": str(folder / "data"), "port": "0"})) as rooms:
        yield rooms
        rooms.engine.stop()


if __name__ == "__main__":
    make(ARCHIVE)
