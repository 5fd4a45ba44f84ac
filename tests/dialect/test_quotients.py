"""Quotients of exact numbers have all their digits: compared with Python's decimals."""

from __future__ import annotations

import random
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext

import duckdb
import pytest
from sqlglot import exp

from mvserver.dialect.functions.quotients import quotient
from mvserver.pgcatalog.edge_macros import EDGE_MACROS
from tests.serving.world import World

SEED = 20_261_121
KINDS = [
    (("DECIMAL(20,2)", "BIGINT"), 10),
    (("DECIMAL(38,2)", "DECIMAL(12,4)"), 10),
    (("HUGEINT", "BIGINT"), 6),
    (("DECIMAL(38,10)", "BIGINT"), 14),
    (("BIGINT", "DECIMAL(18,6)"), 10),
    (("DECIMAL(38,0)", "INTEGER"), 10),
]
_DIGITS = {"BIGINT": 18, "INTEGER": 9, "HUGEINT": 20, "DECIMAL(20,2)": 20, "DECIMAL(12,4)": 12, "DECIMAL(18,6)": 18}


def value(chance: random.Random, kind: str) -> Decimal:
    scale = int(kind.rpartition(",")[2].rstrip(")")) if "," in kind else 0
    digits = chance.randint(1, _DIGITS.get(kind, 20))
    return Decimal(chance.choice((-1, 1)) * chance.randint(1, 10**digits - 1)).scaleb(-scale)


def connected() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for text in EDGE_MACROS:
        if "_quotient_" in text and "lambda" in text:
            connection.execute(text.replace("{system}.fn.", ""))
    return connection


@pytest.mark.parametrize(("kinds", "scale"), KINDS)
def test_all_digits(kinds: tuple[str, str], scale: int) -> None:
    print("seed", SEED)
    chance = random.Random(f"{SEED} {kinds}")
    text = quotient(exp.column("x"), exp.column("y"), kinds, scale).sql(dialect="duckdb")
    pairs = [(value(chance, kinds[0]), value(chance, kinds[1])) for _ in range(300)]
    rows = ", ".join(f"('{x:f}'::{kinds[0]}, '{y:f}'::{kinds[1]})" for x, y in pairs)
    with connected() as connection, localcontext() as context:
        context.prec = 80
        connection.execute("SET integer_division = true")
        found = connection.execute(f"SELECT {text} FROM (VALUES {rows}) AS t (x, y)").fetchall()
        unit = Decimal(1).scaleb(-scale)
        for (x, y), (got,) in zip(pairs, found, strict=True):
            exact = x / y
            # one of a double's is within half a unit of the last digit, which a tie may fall on either side of
            assert abs(got - exact) <= unit * Decimal("0.51"), f"{x} / {y}"
            if abs(exact) >= 10 ** (14 - scale) and exact != exact.quantize(unit, rounding=ROUND_HALF_UP):
                assert abs(got - exact) <= unit * Decimal("0.500001"), f"{x} / {y}"


def test_null_and_zero() -> None:
    text = quotient(exp.column("x"), exp.column("y"), ("DECIMAL(4,1)", "INTEGER"), 10).sql(dialect="duckdb")
    with connected() as connection:
        rows = "(VALUES (1.5::DECIMAL(4, 1), NULL::INTEGER), (NULL, 2), (NULL, 0), (3, 2)) AS t (x, y)"
        found = connection.execute(f"SELECT {text} FROM {rows}").fetchall()
    assert found == [(None,), (None,), (None,), (Decimal("1.5"),)]


@pytest.mark.parametrize("kinds", [kinds for kinds, _ in KINDS])
def test_div_is_the_whole_part(world: World, kinds: tuple[str, str]) -> None:
    """PostgreSQL truncates the exact quotient towards zero."""
    print("seed", SEED)
    chance = random.Random(f"{SEED} div {kinds}")
    types = [kind.replace("HUGEINT", "numeric(38,0)") for kind in kinds]
    pairs = [(value(chance, kinds[0]), value(chance, kinds[1])) for _ in range(100)]
    # One cast for all: a hundred are planned in seconds.
    given = (", ".join(f"'{pair[i]:f}'" for pair in pairs) for i in (0, 1))
    rows = ", ".join(
        f"unnest(ARRAY[{texts}])::{type_} AS {n}" for texts, type_, n in zip(given, types, "xy", strict=True)
    )
    found = [whole for (whole,) in world.rows(f"SELECT div(x, y) FROM (SELECT {rows}) AS t")]
    with localcontext() as context:
        context.prec = 80
        assert found == [(x / y).to_integral_value(ROUND_DOWN) for x, y in pairs]
