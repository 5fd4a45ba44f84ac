"""Counted values of sessions that grow: they get the bounds of the session that they are in, and are counted once."""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
import pytest

from spark_sinks.duckdb.state.value_tables import ValueTable, create_statement, moving

_KEYS = ("VARCHAR", "TIMESTAMP", "TIMESTAMP")
_TABLE = '"_state"."s_values0"'


def at(second: int) -> dt.datetime:
    return dt.datetime(2020, 1, 1) + dt.timedelta(seconds=second)


@pytest.mark.parametrize("values", [ValueTable("INTEGER", counted=True), ValueTable("INTEGER", True, True, True)])
def test_values_move_with_their_session(values: ValueTable) -> None:
    cursor = duckdb.connect()
    cursor.execute('CREATE SCHEMA "_state"')
    cursor.execute(create_statement("s", 0, _KEYS, values))
    names = [name for name, _ in values.columns]

    def put(mark: str, key: str, start: int, end: int, value: int, count: int) -> None:
        of_value = {"t": 1, "u": 0, "v": value}
        row = [mark, key, at(start), at(end), *(of_value[name] for name in names), count]
        cursor.execute(f"INSERT INTO {_TABLE} VALUES ({', '.join('?' * len(row))})", row)

    def grow(*sessions: tuple[str | None, int, int]) -> None:
        cursor.execute("CREATE OR REPLACE TABLE grown (k0 VARCHAR, k1 TIMESTAMP, k2 TIMESTAMP)")
        for key, start, end in sessions:
            cursor.execute("INSERT INTO grown VALUES (?, ?, ?)", [key, at(start), at(end)])
        steps = moving("s", 0, _KEYS, values, bounds=(1, 2), sessions="grown", relation="moved")
        cursor.register("moved", cursor.sql(steps.selected).to_arrow_table())
        cursor.execute("BEGIN")
        cursor.execute(steps.deleted)
        cursor.execute(steps.put)
        cursor.execute("COMMIT")

    def rows() -> list[tuple[Any, ...]]:
        return cursor.sql(
            f"SELECT z, k0, epoch(k1)::BIGINT % 60, epoch(k2)::BIGINT % 60, v, n FROM {_TABLE}"
        ).fetchall()

    put("000", "a", 0, 5, 7, 1)
    put("000", "a", 4, 9, 7, 2)
    put("000", "a", 4, 9, 8, 1)
    put("000", "a", 20, 25, 9, 1)  # another session
    put("000", "b", 0, 5, 7, 1)  # of another key, whose session has not grown
    put("100", "0", 0, 5, 7, 4)  # of NULL, which is told from the text in its place
    put("000", "0", 0, 5, 3, 1)
    grow(("a", 0, 9), (None, 0, 6), ("b", 0, 5))
    others = [("000", "a", 20, 25, 9, 1), ("000", "b", 0, 5, 7, 1), ("100", "0", 0, 6, 7, 4), ("000", "0", 0, 5, 3, 1)]
    assert sorted(rows()) == sorted([*others, ("000", "a", 0, 9, 7, 3), ("000", "a", 0, 9, 8, 1)])
    put("000", "a", 8, 13, 7, 1)
    grow(("a", 0, 13))
    assert sorted(rows()) == sorted([*others, ("000", "a", 0, 13, 7, 4), ("000", "a", 0, 13, 8, 1)])
    put("000", "a", 13, 18, 9, 2)
    grow(("a", 0, 25))  # what was two sessions
    found = [("000", "a", 0, 25, 7, 4), ("000", "a", 0, 25, 8, 1), ("000", "a", 0, 25, 9, 3)]
    assert sorted(rows()) == sorted([*others[1:], *found])
