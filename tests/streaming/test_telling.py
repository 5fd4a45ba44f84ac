"""A merge that finds rows by one of several keys gives what a merge by all of them gives."""

from __future__ import annotations

import datetime as dt
import random
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from spark_sinks.duckdb.state import telling
from spark_sinks.duckdb.state.roll_ups import RollUp
from spark_sinks.duckdb.state.state import UpsertState
from spark_sinks.duckdb.state.telling import Telling
from tests.streaming.states import COLUMNS, Fed, target, writer_in

Record = dict[str, Any]
KEYS = [("l", "k"), ("k", "l", "i"), ("t", "n"), ("i", "w", "k"), ("x", "l"), ("k",)]
EXTREMES: dict[str, list[Any]] = {
    "k": ["", "a", "A", "ä", "a\0", "~" * 40, "'", "NaN"],
    "l": [-(2**63), 2**63 - 1, 0],
    "i": [-(2**31), 2**31 - 1, 0],
    "n": [Decimal("-99999999.99"), Decimal("0.00"), Decimal("99999999.99")],
    "w": [Decimal("-1e-10"), Decimal("0"), Decimal("1e-10")],
    "x": [float("nan"), float("inf"), float("-inf"), 1e-300],
    "t": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)],
}


def _record(rng: random.Random, spread: int) -> Record:
    plain = _plain(rng.randrange(spread))
    for name, others in EXTREMES.items():
        chance = rng.random()
        if chance < 0.1:
            plain[name] = rng.choice(others)
        elif chance < 0.15:
            plain[name] = None
        elif chance < 0.5:
            plain[name] = _plain(rng.randrange(spread))[name]
    return plain


def _plain(number: int) -> Record:
    return {
        "k": f"key {number}",
        "l": number * 10**12,
        "i": number,
        "n": Decimal(number) / 4,
        "w": Decimal(number) / 8,
        "x": number / 3,
        "t": dt.datetime(2026, 1, 1) + dt.timedelta(microseconds=number),
    }


def test_views_of_several_keys_are_what_one_query_over_all_records_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = time.time_ns()
    print("seed", seed)
    rng = random.Random(seed)
    chosen: list[str | None] = []
    key = Telling.key

    def noted(self: Telling, roll_up: RollUp) -> str | None:
        chosen.append(key(self, roll_up))
        return chosen[-1]

    monkeypatch.setattr(Telling, "key", noted)
    selects = [f"SELECT {', '.join(keys)}, count(*) AS c, sum(i) AS s FROM events" for keys in KEYS]
    targets = [target(f"{selects[at]} GROUP BY {', '.join(keys)}", at) for at, keys in enumerate(KEYS)]
    records: list[Record] = []
    with writer_in(tmp_path) as (database, writer):
        fed = Fed(database, writer, *targets)
        for _ in range(25):
            batch = [_record(rng, rng.choice((3, 40, 5_000))) for _ in range(rng.randrange(1, 60))]
            fed.feed(batch, partial=rng.random() < 0.3)
            records += batch
        with duckdb.connect() as oracle:
            columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
            oracle.execute(f"CREATE TABLE events ({columns})")
            oracle.executemany(
                f"INSERT INTO events VALUES ({', '.join('?' * len(COLUMNS))})",
                [[record.get(name) for name in COLUMNS] for record in records],
            )
            for at, (text, keys) in enumerate(zip(selects, KEYS, strict=True)):
                expected = oracle.execute(f"{text} GROUP BY {', '.join(keys)} ORDER BY ALL NULLS FIRST").fetchall()
                assert list(map(repr, fed.rows(at))) == list(map(repr, expected)), keys
    assert {None, "k0", "k1"} <= set(chosen)


def _roll_up(*kinds: str, nulls: bool | None = False) -> RollUp:
    return RollUp(UpsertState("q_1", kinds, ()), "mv_batch", tuple("abc"[: len(kinds)]), (), nulls=nulls)


def _rows(**columns: list[Any]) -> Telling:
    return Telling(pa.table(columns))


def test_the_column_is_the_one_whose_values_are_the_most_different() -> None:
    rows = _rows(a=[1, 1, 2, 2], b=["x", "y", "z", "u"], c=[1, 2, 3, 3])
    assert rows.key(_roll_up("BIGINT", "VARCHAR", "BIGINT")) == "k1"
    assert rows.key(_roll_up("BIGINT", "VARCHAR")) == "k1"


@pytest.mark.parametrize(
    ("rows", "roll_up"),
    [
        (_rows(a=[1, 1, 2, 2], b=["x", "x", "y", "y"]), _roll_up("BIGINT", "VARCHAR")),  # each meets two
        (_rows(a=[1, 2], b=["x", "y"]), _roll_up("BIGINT", "VARCHAR", nulls=True)),
        (_rows(a=[1, 2]), _roll_up("BIGINT")),
        (_rows(a=[1, 2], b=[[1], [2]]), _roll_up("BIGINT", "BIGINT[]")),
        (_rows(a=[1, 2], b=[[1], [2]]), _roll_up("BIGINT", "DECIMAL(10,2)[]")),
        (_rows(a=[1, 2], b=[0.5, 1.5]), _roll_up("BIGINT", "DOUBLE")),
        (_rows(a=[1, 2], k1=["x", "y"]), _roll_up("BIGINT", "VARCHAR")),  # a key that is no column of the batch
    ],
)
def test_all_keys_are_hashed(rows: Telling, roll_up: RollUp) -> None:
    assert rows.key(roll_up) is None


def test_a_large_batch_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "ROWS_MAX", 3)
    assert _rows(a=[1, 2, 3], b=["x", "y", "z"]).key(_roll_up("BIGINT", "VARCHAR")) == "k0"
    assert _rows(a=[1, 2, 3, 4], b=["x", "y", "z", "u"]).key(_roll_up("BIGINT", "VARCHAR")) is None
