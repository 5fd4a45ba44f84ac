"""Long arrays among the parameters go to DuckDB as texts, and mean what the lists do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mvserver import limits
from mvserver.serving.engine.long_arrays import as_texts
from tests.serving.server import Client, PullServer

MANY = limits.ARRAY_ITEMS_READ_MAX + 1
CAST = "SELECT CARDINALITY(CAST($1 AS INT[]))"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with PullServer(Path(tmp_path_factory.mktemp("arrays"))) as server, server.connect() as made:
        yield made


def test_a_long_array_becomes_a_text_where_it_is_cast() -> None:
    assert as_texts(CAST, [[1, None] * MANY]) == [f"[{', '.join(['1, NULL'] * MANY)}]"]
    assert as_texts("SELECT CAST($1 AS DECIMAL(9, 2)[])", [[Decimal("1.50")] * MANY])[0][:12] == "[1.50, 1.50,"
    assert as_texts("SELECT CAST($1 AS TEXT[])", [["it's", "\\"] * MANY])[0][:16] == r"['it\'s', '\\', "


@pytest.mark.parametrize(
    ("sql", "items"),
    [
        (CAST, [1, 2]),
        ("SELECT CARDINALITY($1)", [1] * MANY),
        ("SELECT CAST($1 AS INT[]), $1", [1] * MANY),
        ("SELECT CAST($1 AS INT[])[$10], '$1'", [1] * MANY),
        ("SELECT CAST($1 AS INT[][])", [[1]] * MANY),
        ("SELECT CAST($1 AS UUID[])", ["x"] * MANY),
        ("SELECT CAST($1 AS TEXT[])", [1] * MANY),
        ("SELECT CAST($1 AS BOOLEAN[])", [True] * MANY),
    ],
)
def test_any_other_stays_a_list(sql: str, items: list[Any]) -> None:
    values = as_texts(sql, [items, "x"])
    assert values[0] is items
    assert values[1] == "x"


@pytest.mark.parametrize(
    ("kind", "items"),
    [
        ("bigint", [1, -(2**63), 2**63 - 1, None]),
        ("numeric", [Decimal("1.5"), Decimal("-0.001"), None]),
        ("float8", [1.5, -0.0, 1e-300, 1e300, 0.1, math.inf, -math.inf, None]),
        (
            "text",
            ["a", "", " b ", "NULL", "null", "it's", 'say "x"', "\\", "\\n", "a\nb", "[1]", "{2}", ",", "'", "ü", None],
        ),
    ],
)
def test_its_items_come_back_as_they_were(client: Client, kind: str, items: list[Any]) -> None:
    many = items * (MANY // len(items) + 1)
    (found,) = client.execute(f"SELECT %s::{kind}[]", (many,)).fetchone() or ((),)  # type: ignore[arg-type]
    assert found == many


def test_a_row_is_found_by_one_of_many_keys(client: Client) -> None:
    names = [f"n{number}" for number in range(MANY)]
    rows = client.execute("SELECT url FROM visits ORDER BY url").fetchall()
    wanted = [*names, rows[0][0]]
    assert client.execute("SELECT url FROM visits WHERE url = ANY(%s)", (wanted,)).fetchall() == rows[:1]
