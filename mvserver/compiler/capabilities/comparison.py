"""Comparisons. Text compares by its bytes, NaN equals itself and is greater than any number."""

from __future__ import annotations

from collections.abc import Callable

from mvserver.compiler.capabilities.build import COMPARED, SCALAR_ELEMENT, capability, example, on
from mvserver.compiler.capabilities.model import Capability, Nulls, Overload, Parameter
from mvserver.sql import types as t

_ANY = Parameter(variable="ELEMENT")


def _compare(sign: str, duckdb: str | None = None) -> list[Callable[[str], Overload]]:
    return [on((COMPARED, COMPARED), t.BOOLEAN, f"({{0}} {sign} {{1}})", f"({{0}} {duckdb or sign} {{1}})")]


CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "=", "equal", _compare("="),
        [
            example("1 = 1.0", "true"), example("'a' = 'A'", "false"), example("NULL = 1", None),
            example("CAST('NaN' AS double precision) = CAST('NaN' AS double precision)", "true"),
            example("DATE '2024-01-01' = TIMESTAMP '2024-01-01 00:00:00'", "true"),
            example("CAST('0.1' AS real) = 0.1", "false"), example("CAST('0.1' AS real) = '0.1'", "true"),
            example("CAST(16777217 AS real) = 16777217", "false"),
        ],
        operator=True,
    ),
    capability(
        "<>", "not equal", _compare("<>"),
        [example("1 <> 2", "true"), example("'a' <> 'a'", "false"), example("1 != 1", "false")],
        aliases=("!=",), operator=True,
    ),
    capability(
        "<", "less", _compare("<"),
        [
            example("1 < 2", "true"), example("2 < 1.5", "false"), example("true < false", "false"),
            example("CAST('NaN' AS double precision) < CAST('Infinity' AS double precision)", "false"),
        ],
        operator=True,
    ),
    capability(
        "<=", "less or equal", _compare("<="), [example("2 <= 2", "true"), example("3 <= 2", "false")], operator=True
    ),
    capability(
        ">", "greater", _compare(">"),
        [
            example("2 > 1", "true"), example("DATE '2024-02-01' > DATE '2024-01-31'", "true"),
            example("CAST('NaN' AS double precision) > 1", "true"),
        ],
        operator=True,
    ),
    capability(
        ">=", "greater or equal", _compare(">="), [example("2 >= 2", "true"), example("1 >= 2", "false")],
        operator=True,
    ),
    capability(
        "is not distinct from", "equal, where two NULLs are equal", _compare("<=>", "IS NOT DISTINCT FROM"),
        [example("NULL IS NOT DISTINCT FROM NULL", "true"), example("1 IS NOT DISTINCT FROM NULL", "false")],
        operator=True, nulls=Nulls.SPECIAL,
    ),
    capability(
        "is distinct from", "not equal, where two NULLs are equal",
        [on((COMPARED, COMPARED), t.BOOLEAN, "(NOT ({0} <=> {1}))", "({0} IS DISTINCT FROM {1})")],
        [example("NULL IS DISTINCT FROM NULL", "false"), example("1 IS DISTINCT FROM 2", "true")],
        operator=True, nulls=Nulls.SPECIAL,
    ),
    capability(
        "is null", "is the value NULL", [on((_ANY,), t.BOOLEAN, "({0} IS NULL)", "({0} IS NULL)")],
        [example("CAST(NULL AS integer) IS NULL", "true"), example("1 IS NULL", "false")],
        operator=True, nulls=Nulls.SPECIAL,
    ),
    capability(
        "is not null", "is the value not NULL", [on((_ANY,), t.BOOLEAN, "({0} IS NOT NULL)", "({0} IS NOT NULL)")],
        [example("CAST(NULL AS integer) IS NOT NULL", "false"), example("1 IS NOT NULL", "true")],
        operator=True, nulls=Nulls.SPECIAL,
    ),
    capability(
        "between", "at least the second and at most the third operand",
        [
            on(
                (COMPARED,) * 3, t.BOOLEAN, "({0} BETWEEN {1} AND {2})", "({0} BETWEEN {1} AND {2})",
            )
        ],
        [
            example("2 BETWEEN 1 AND 3", "true"), example("5 NOT BETWEEN 1 AND 3", "true"),
            example("0 BETWEEN 1 AND NULL", "false"), example("CAST('0.1' AS real) BETWEEN 0.1 AND 0.1", "false"),
            example("9007199254740993 BETWEEN 9007199254740994 AND CAST('Infinity' AS float8)", "false"),
        ],
        operator=True, nulls=Nulls.SPECIAL,
    ),
    capability(
        "in", "equal to one of a list; NULL when none is equal and one is NULL",
        [
            on(
                (SCALAR_ELEMENT, SCALAR_ELEMENT), t.BOOLEAN,
                lambda a, _: f"({a[0]} IN ({', '.join(map(str, a[1:]))}))",
                lambda a, _: f"({a[0]} IN ({', '.join(map(str, a[1:]))}))",
                variadic=True,
            )
        ],
        [
            example("2 IN (1, 2)", "true"), example("3 IN (1, NULL)", None), example("3 NOT IN (1, 2)", "true"),
            example("'b' IN ('a', 'b')", "true"), example("CAST('0.1' AS real) IN (0.1)", "false"),
            example("CAST('0.1' AS real) IN (0.1, 2)", "true"), example("CAST('0.1' AS real) IN (0.1 + 0, 5)", "true"),
        ],
        operator=True, nulls=Nulls.SPECIAL,
    ),
)  # fmt: skip
