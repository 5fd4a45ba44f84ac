"""Random records for programs of the dialect lenses: keys that are missing, keys that come again, and deletions.

Times never go back, so that no record is late. A last record in each partition moves the watermarks past all others.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PARTITIONS = 2
EPOCH = dt.datetime(2024, 5, 17, 12, tzinfo=dt.UTC)
LAST = EPOCH + dt.timedelta(days=1)
KEYS = ("k1", "k2", "k3", "k4", "k5", "k6", "k7")
FIELDS = "g VARCHAR, v INTEGER, t VARCHAR, b BOOLEAN, r VARCHAR, j VARCHAR NOT NULL"
_POSTGRES = (
    'n integer, _key text COLLATE "C", g text COLLATE "C", v integer, t text COLLATE "C", b boolean, '
    'r text COLLATE "C", '
)
_TEXTS = ("ab c1", "Xy-22", "  in ", "", "a@b.org", "Aa Bb Cc 7", "zz9")


@dataclass(frozen=True)
class Record:
    """``value`` None deletes ``key``."""

    partition: int
    key: str | None
    value: dict[str, Any] | None
    time: dt.datetime

    @property
    def payload(self) -> bytes | None:
        return None if self.value is None else json.dumps(self.value).encode()


def records(rng: random.Random, count: int, begin: dt.datetime = EPOCH) -> list[Record]:
    made, at = [], begin
    for _ in range(count):
        at += dt.timedelta(seconds=rng.choice((0, 1, 2, 5, 20, 40)))
        key = None if rng.random() < 0.1 else rng.choice(KEYS)
        partition = rng.randrange(PARTITIONS) if key is None else KEYS.index(key) % PARTITIONS
        gone = key is not None and rng.random() < 0.15
        made.append(Record(partition, key, None if gone else _value(rng), at))
    return made


def ends() -> list[Record]:
    """They pass each WHERE, and find each other in each join."""
    return [
        Record(
            partition, key := f"end {partition}", {"g": "red", "v": 4, "t": key, "b": True, "r": key, "j": "{}"}, LAST
        )
        for partition in range(PARTITIONS)
    ]


def _value(rng: random.Random) -> dict[str, Any]:
    """``r`` refers to a key."""

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.12 else value

    inner = {"a": rng.randint(-3, 9), "b": rng.choice(("x", "y"))}
    return {
        "g": maybe(rng.choice(("red", "blue", "green"))),
        "v": maybe(rng.randint(-9, 30)),
        "t": maybe(rng.choice(_TEXTS)),
        "b": maybe(rng.random() < 0.5),
        "r": maybe(rng.choice(KEYS)),
        "j": json.dumps(inner if rng.random() < 0.8 else {"a": inner["a"]}),
    }


def load(connection: Any, name: str, given: Sequence[Record]) -> None:
    """``<name>_stream`` has the records with a value, ``<name>_table`` the last value of each key."""
    connection.execute(f"CREATE TEMP TABLE {name}_all ({_POSTGRES} j text, ts timestamp)".encode())
    rows = [
        (number, each.key, *((each.value or {}).get(field) for field in "gvtbrj"), each.time.replace(tzinfo=None))
        for number, each in enumerate(given)
    ]
    connection.cursor().executemany(
        f"INSERT INTO {name}_all VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)".encode(), rows
    )
    connection.execute(f"CREATE TEMP VIEW {name}_stream AS SELECT * FROM {name}_all WHERE j IS NOT NULL".encode())
    connection.execute(
        f"CREATE TEMP VIEW {name}_table AS SELECT * FROM (SELECT DISTINCT ON (_key) * FROM {name}_all "
        "WHERE _key IS NOT NULL ORDER BY _key, n DESC) AS last WHERE j IS NOT NULL".encode()
    )
