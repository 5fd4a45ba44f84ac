"""Boolean logic in three values, and the functions that choose among their arguments."""

from __future__ import annotations

from collections.abc import Sequence

from mvserver.compiler.capabilities.build import BOOLEAN, SCALAR_ELEMENT, capability, example, fails, on, same
from mvserver.compiler.capabilities.model import Capability, Lowered, Nulls, Parameter
from mvserver.compiler.capabilities.spark_text import guard, string
from mvserver.compiler.type_names import postgres_name
from mvserver.sql import types as t

_ANY = Parameter(variable="ELEMENT")


def _type_of(arguments: Sequence[Lowered], _: t.SqlType) -> str:
    return string(postgres_name(arguments[0].type))


def _test(name: str, meaning: str, spark: str, yes: str, no: str) -> Capability:
    return capability(
        name, meaning, [on((BOOLEAN,), t.BOOLEAN, spark, spark)],
        [example(f"{yes} {name.upper()}", "true"), example(f"{no} {name.upper()}", "false")],
        operator=True, nulls=Nulls.SPECIAL,
    )  # fmt: skip


CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "and", "both true; false when one is false", [on((BOOLEAN,) * 2, t.BOOLEAN, "({0} AND {1})", "({0} AND {1})")],
        [
            example("true AND false", "false"), example("false AND NULL", "false"), example("true AND NULL", None),
        ],
        operator=True, nulls=Nulls.SPECIAL,
    ),
    capability(
        "or", "one true; false when both are false", [on((BOOLEAN,) * 2, t.BOOLEAN, "({0} OR {1})", "({0} OR {1})")],
        [example("true OR NULL", "true"), example("false OR NULL", None), example("false OR false", "false")],
        operator=True, nulls=Nulls.SPECIAL,
    ),
    capability(
        "not", "the opposite", [on((BOOLEAN,), t.BOOLEAN, "(NOT {0})", "(NOT {0})")],
        [example("NOT true", "false"), example("NOT CAST(NULL AS boolean)", None)], operator=True,
    ),
    _test("is true", "is it true (not false, not NULL)", "({0} IS TRUE)", "true", "CAST(NULL AS boolean)"),
    _test("is not true", "is it false or NULL", "({0} IS NOT TRUE)", "CAST(NULL AS boolean)", "true"),
    _test("is false", "is it false (not true, not NULL)", "({0} IS FALSE)", "false", "CAST(NULL AS boolean)"),
    _test("is not false", "is it true or NULL", "({0} IS NOT FALSE)", "true", "false"),
    capability(
        "coalesce", "the first argument that is not NULL",
        [
            on(
                (_ANY,), same(),
                lambda a, _: f"coalesce({', '.join(map(str, a))})",
                lambda a, _: f"coalesce({', '.join(map(str, a))})",
                variadic=True,
            )
        ],
        [example("coalesce(NULL, 2, 3)", "2"), example("coalesce(NULL, 1.5, 2)", "1.5")],
        nulls=Nulls.SPECIAL,
    ),
    capability(
        "required", "the argument; NULL is an error",
        [on((_ANY,), same(), guard("{0} IS NULL", "22004", "a value is required, and is NULL", "{0}"))],
        [
            example("required(5)", "5", postgres=False), example("required('a')", "a", postgres=False),
            fails("required(CAST(NULL AS integer))", "22004", postgres=False),
        ],
        nulls=Nulls.SPECIAL,
    ),
    capability(
        "pg_typeof", "the name of the argument's type",
        [on((_ANY,), t.VARCHAR, _type_of, _type_of)],
        [
            example("pg_typeof('a'::text)", "text"), example("pg_typeof(CAST(NULL AS integer))", "integer"),
            example("pg_typeof(1.5::double precision)", "double precision"),
            example("pg_typeof(CAST('2024-01-01 00:00:00' AS timestamp))", "timestamp without time zone"),
        ],
        nulls=Nulls.SPECIAL,
    ),
    capability(
        "ifnull", "the second argument where the first is NULL",
        [on((_ANY, _ANY), same(), "coalesce({0}, {1})", "coalesce({0}, {1})")],
        [example("ifnull(NULL, 5)", "5", postgres=False), example("ifnull(1, 5)", "1", postgres=False)],
        aliases=("nvl",), nulls=Nulls.SPECIAL,
    ),
    capability(
        "nullif", "NULL where both are equal, else the first",
        [on((SCALAR_ELEMENT, SCALAR_ELEMENT), same(), "nullif({0}, {1})", "nullif({0}, {1})")],
        [example("nullif(1, 1)", None), example("nullif(1, 2)", "1"), example("nullif('a', 'b')", "a")],
        nulls=Nulls.SPECIAL,
    ),
    capability(
        "greatest", "the greatest of the arguments that are not NULL",
        [
            on(
                (SCALAR_ELEMENT,), same(),
                lambda a, _: f"greatest({', '.join(map(str, a))})" if len(a) > 1 else str(a[0]),
                lambda a, _: f"greatest({', '.join(map(str, a))})" if len(a) > 1 else str(a[0]),
                variadic=True,
            )
        ],
        [example("greatest(1, NULL, 3)", "3"), example("greatest('b', 'a')", "b"), example("greatest(1, 2.5)", "2.5")],
        nulls=Nulls.SKIPS, note="a numeric result is written with the scale of the arguments' common type",
    ),
    capability(
        "least", "the least of the arguments that are not NULL",
        [
            on(
                (SCALAR_ELEMENT,), same(),
                lambda a, _: f"least({', '.join(map(str, a))})" if len(a) > 1 else str(a[0]),
                lambda a, _: f"least({', '.join(map(str, a))})" if len(a) > 1 else str(a[0]),
                variadic=True,
            )
        ],
        [example("least(1, NULL, 3)", "1"), example("least(NULL, NULL, 'x')", "x")],
        nulls=Nulls.SKIPS,
    ),
    capability(
        "if", "the second argument where the first is true, else the third",
        [on((BOOLEAN, _ANY, _ANY), same(1), "IF({0}, {1}, {2})", "(CASE WHEN {0} THEN {1} ELSE {2} END)")],
        [example("if(1 < 2, 'yes', 'no')", "yes", postgres=False), example("if(NULL, 1, 2)", "2", postgres=False)],
        nulls=Nulls.SPECIAL,
    ),
)  # fmt: skip
