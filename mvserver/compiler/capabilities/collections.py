"""Arrays (the first element is 1) and maps."""

from __future__ import annotations

from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.compiler.capabilities.build import (
    ARRAY,
    ELEMENT,
    INTEGER,
    INTEGER_CONSTANT,
    MAP,
    TEXT,
    TEXT_CONSTANT,
    capability,
    example,
    on,
    same,
)
from mvserver.compiler.capabilities.model import Capability, Lowered, Nulls, Parameter, as_expression
from mvserver.compiler.capabilities.spark_text import guard, spark_type, string
from mvserver.compiler.casts import to_text
from mvserver.compiler.expressions import Expression
from mvserver.compiler.lengths import grown_length
from mvserver.errors import SqlError
from mvserver.limits import GROWN_TEXT_CHARACTERS_MAX
from mvserver.sql import types as t
from mvserver.sql.types import Kind, SqlType

_ANY = Parameter(variable="KEY")


def _element(arguments: Sequence[Expression]) -> SqlType:
    return arguments[0].type.element or t.NULL


def _key_array(arguments: Sequence[Expression]) -> SqlType:
    return t.array(arguments[0].type.key or t.NULL)


def _value_array(arguments: Sequence[Expression]) -> SqlType:
    return t.array(arguments[0].type.element or t.NULL)


def _array_of(arguments: Sequence[Expression]) -> SqlType:
    return t.array(arguments[0].type)


def _map_of(arguments: Sequence[Expression]) -> SqlType:
    if len(arguments) % 2:
        raise SqlError(sqlstates.SYNTAX_ERROR, "MAP needs a value for every key")
    return t.map_of(arguments[0].type, arguments[1].type)


def _joined(a: Sequence[Lowered], result: SqlType) -> str:
    element = a[0].type.element or t.VARCHAR
    texts = str(a[0]) if element.kind is Kind.VARCHAR else f"transform({a[0]}, e -> {to_text('e', element)})"
    joined = f"array_join({texts}, {', '.join(map(str, a[1:]))})"
    if len(a) == 3 and a[2].constant() is None:
        joined = f"IF({a[2]} IS NULL, array_join({texts}, {a[1]}), {joined})"
    arguments = [as_expression(each) for each in a]
    grown = grown_length("array_to_string", arguments, [each.length for each in a])
    if grown is not None and grown.is_short:
        return joined
    put = " + ".join(f"coalesce(char_length({each}), 0)" for each in a[1:])
    items = f"aggregate({texts}, 0L, (sum, e) -> sum + coalesce(char_length(e), 0))"
    size = f"({items} + CAST(size({a[0]}) AS BIGINT) * ({put}))"
    return guard(f"{size} > {GROWN_TEXT_CHARACTERS_MAX}", "54000", "requested length too large", joined)


def _split(a: Sequence[Lowered], result: SqlType) -> str:
    delimiter = str(a[1].constant() or "")
    if not delimiter:
        return f"IF({a[0]} = '', CAST(array() AS ARRAY<STRING>), array({a[0]}))"
    pattern = string("\\Q" + delimiter.replace("\\E", "\\E\\\\E\\Q") + "\\E")
    return f"IF({a[0]} = '', CAST(array() AS ARRAY<STRING>), split({a[0]}, {pattern}))"


def _or_empty(array: Lowered, result: SqlType) -> str:
    """In PostgreSQL a value put to a NULL array gives an array of one."""
    return f"coalesce({array}, CAST(array() AS {spark_type(result)}))"


_LENGTH = "IF({0} IS NULL OR {1} <> 1 OR size({0}) = 0, NULL, size({0}))"
# Spark's array_contains answers NULL where it finds only NULLs besides other values.
_CONTAINS = "IF({1} IS NULL, NULL, exists({0}, e -> e <=> {1}))"
_SIZE = "IF({0} IS NULL, NULL, size({0}))"

CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "array", "an array of the arguments",
        [on((ELEMENT,), _array_of, lambda a, _: f"array({', '.join(map(str, a))})", variadic=True)],
        [example("(ARRAY[10, 20, 30])[2]", "20"), example("cardinality(ARRAY[1, NULL])", "2")],
        nulls=Nulls.SPECIAL, note="written ARRAY[...]",
    ),
    capability(
        "[]", "an array's element (1 is the first) or the value of a map's key; NULL when there is none",
        [
            on((ARRAY, INTEGER), _element, "get({0}, {1} - 1)"),
            on((MAP, _ANY), _element, "{0}[{1}]"),
        ],
        [
            example("(ARRAY['a', 'b'])[1]", "a"), example("(ARRAY['a', 'b'])[3]", None),
            example("(ARRAY['a', 'b'])[0]", None), example("MAP['k', 5]['k']", "5", postgres=False),
            example("MAP['k', 5]['z']", None, postgres=False),
        ],
        operator=True,
    ),
    capability(
        "cardinality", "how many elements an array, or entries a map has",
        [on((ARRAY,), t.INTEGER, _SIZE), on((MAP,), t.INTEGER, _SIZE)],
        [
            example("cardinality(ARRAY[1, 2, 3])", "3"), example("cardinality(MAP['a', 1])", "1", postgres=False),
        ],
    ),
    capability(
        "array_length", "the length of an array's first dimension; NULL when it is empty",
        [on((ARRAY, INTEGER_CONSTANT), t.INTEGER, _LENGTH)],
        [example("array_length(ARRAY[1, 2, 3], 1)", "3"), example("array_length(ARRAY[1], 2)", None)],
        note="arrays have one dimension",
    ),
    capability(
        "array_upper", "the last index of an array's first dimension; NULL when it is empty",
        [on((ARRAY, INTEGER_CONSTANT), t.INTEGER, _LENGTH)],
        [example("array_upper(ARRAY[1, 2], 1)", "2"), example("array_upper(ARRAY[1, 2], 2)", None)],
        note="arrays have one dimension",
    ),
    capability(
        "array_contains",
        "is the value among the elements", [on((ARRAY, ELEMENT), t.BOOLEAN, _CONTAINS)],
        [
            example("array_contains(ARRAY[1, 2], 2)", "true", postgres=False),
            example("array_contains(ARRAY['a'], 'b')", "false", postgres=False),
        ],
    ),
    capability(
        "array_position", "the index of the first element that is equal, NULL when none is",
        [on((ARRAY, ELEMENT), t.INTEGER, "CAST(nullif(array_position({0}, {1}), 0L) AS INT)")],
        [example("array_position(ARRAY['a', 'b'], 'b')", "2"), example("array_position(ARRAY[1, 2], 9)", None)],
        note="NULL is never found",
    ),
    capability(
        "array_to_string", "the elements as text with a separator; NULLs left out, or written as the third argument",
        [on((ARRAY, TEXT), t.VARCHAR, _joined), on((ARRAY, TEXT, TEXT), t.VARCHAR, _joined)],
        [
            example("array_to_string(ARRAY[1, NULL, 3], ',')", "1,3"),
            example("array_to_string(ARRAY['a', NULL], ',', '*')", "a,*"),
            example("array_to_string(ARRAY['a', NULL, 'b'], ',', NULL)", "a,b"),
            example("array_to_string(ARRAY['a', NULL, 'b'], ',', nullif(lower('X'), 'x'))", "a,b"),
            example("array_to_string(ARRAY[1.5, 2], '/')", "1.5/2.0", postgres=False),
        ],
        aliases=("array_join",), nulls=Nulls.SPECIAL,
    ),
    capability(
        "string_to_array", "the parts between separators", [on((TEXT, TEXT_CONSTANT), t.array(t.VARCHAR), _split)],
        [
            example("(string_to_array('a.b.c', '.'))[2]", "b"), example("cardinality(string_to_array('', ','))", "0"),
            example("(string_to_array('abc', ''))[1]", "abc"),
        ],
        note="the separator must be a constant",
    ),
    capability(
        "array_append", "with a value after the last element",
        [on((ARRAY, ELEMENT), same(), lambda a, result: f"array_append({_or_empty(a[0], result)}, {a[1]})")],
        [
            example("array_to_string(array_append(ARRAY[1, 2], 3), ',')", "1,2,3"),
            example("cardinality(array_append(ARRAY[1], NULL))", "2"),
        ],
        nulls=Nulls.SPECIAL,
    ),
    capability(
        "array_prepend", "with a value before the first element",
        [on((ELEMENT, ARRAY), same(1), lambda a, result: f"array_prepend({_or_empty(a[1], result)}, {a[0]})")],
        [
            example("array_to_string(array_prepend(0, ARRAY[1, 2]), ',')", "0,1,2"),
            example("cardinality(array_prepend(NULL, ARRAY[1]))", "2"),
        ],
        nulls=Nulls.SPECIAL,
    ),
    capability(
        "array_cat", "both arrays, one after the other; a NULL counts as none",
        [on((ARRAY, ARRAY), same(), "coalesce(concat({0}, {1}), {0}, {1})")],
        [
            example("array_to_string(array_cat(ARRAY[1], ARRAY[2, 3]), ',')", "1,2,3"),
            example("cardinality(array_cat(ARRAY[1], ARRAY[1]))", "2"),
        ],
        aliases=("array_concat",), nulls=Nulls.SPECIAL,
    ),
    capability(
        "array_remove", "without the elements that are equal", [on((ARRAY, ELEMENT), same(), "array_remove({0}, {1})")],
        [
            example("array_to_string(array_remove(ARRAY[1, 2, 1], 1), ',')", "2"),
            example("cardinality(array_remove(ARRAY['a'], 'b'))", "1"),
        ],
        note="NULL elements cannot be removed",
    ),
    capability(
        "array_distinct", "each element once", [on((ARRAY,), same(), "array_distinct({0})")],
        [
            example("array_to_string(array_distinct(ARRAY[1, 2, 1]), ',')", "1,2", postgres=False),
            example("cardinality(array_distinct(ARRAY['a', 'a']))", "1", postgres=False),
        ],
    ),
    capability(
        "map", "a map of keys and values, written MAP[k, v, ...]",
        [
            on(
                (Parameter(variable="PAIR"),), _map_of,
                lambda a, _: f"map({', '.join(map(str, a))})", variadic=True,
            )
        ],
        [example("MAP['a', 1]['a']", "1", postgres=False), example("cardinality(MAP['a', 1, 'b', 2])",
        "2", postgres=False)],
        nulls=Nulls.SPECIAL,
    ),
    capability(
        "map_keys", "a map's keys", [on((MAP,), _key_array, "map_keys({0})")],
        [
            example("array_to_string(map_keys(MAP['a', 1]), ',')", "a", postgres=False),
            example("cardinality(map_keys(MAP['a', 1, 'b', 2]))", "2", postgres=False),
        ],
    ),
    capability(
        "map_values", "a map's values", [on((MAP,), _value_array, "map_values({0})")],
        [
            example("array_to_string(map_values(MAP['a', 1]), ',')", "1", postgres=False),
            example("cardinality(map_values(MAP['a', 1, 'b', 2]))", "2", postgres=False),
        ],
    ),
)  # fmt: skip
