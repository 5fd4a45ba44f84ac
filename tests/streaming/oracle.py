"""PostgreSQL as the oracle of views: random rows for it and for them, and what is equal."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

import psycopg

from tests.streaming.states import COLUMNS

D = Decimal
NOON = dt.datetime(2024, 5, 17, 12)
_PG_TYPES = {"VARCHAR": 'text COLLATE "C"', "DOUBLE": "double precision", "FLOAT": "real"}


def at(minutes: int) -> dt.datetime:
    return NOON + dt.timedelta(minutes=minutes)


def random_row(rng: random.Random) -> dict[str, Any]:
    row: dict[str, Any] = {
        "k": rng.choice("abc"),
        "i": rng.randint(-3, 8),
        "l": rng.choice((2**62, rng.randint(-5, 5))),
        "n": D(rng.randint(-400, 400)).scaleb(-2),
        "x": rng.choice((0.0, 0.5, -1.25, 3.0, rng.uniform(-9, 9))),
        "t": at(rng.randint(0, 12)),
    }
    return {name: None if rng.random() < 0.1 else value for name, value in row.items()}


def postgresql(server: Any, rows: list[dict[str, Any]], sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.dsn) as connection:
        columns = ", ".join(f"{name} {_PG_TYPES.get(kind, kind)}" for name, kind in COLUMNS.items())
        connection.execute(f"CREATE TEMP TABLE events ({columns})".encode())
        cursor = connection.cursor()
        cursor.executemany(
            "INSERT INTO events (k, i, l, n, x, t) VALUES (%(k)s, %(i)s, %(l)s, %(n)s, %(x)s, %(t)s)", rows
        )
        found = connection.execute(sql.encode()).fetchall()
        connection.rollback()
    return found


def equal(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and theirs is not None:
        return math.isclose(ours, float(theirs), rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(ours, Decimal) and theirs is not None:
        return abs(ours - theirs) <= D("0.000001")  # averages have six digits here, and more there
    return bool(ours == theirs)
