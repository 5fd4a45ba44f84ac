"""Arrays made of other arrays: flattened, repeated, put side by side; and STRUCTs. The dialect lenses needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mvserver import sqlstates
from mvserver.compiler.capabilities.build import (
    ARRAY,
    EACH,
    ELEMENT,
    INTEGER,
    TEXT_CONSTANT,
    capability,
    example,
    fails,
    on,
)
from mvserver.compiler.capabilities.model import Capability, Lowered, Nulls, Overload, Parameter
from mvserver.compiler.capabilities.spark_text import guard, spark_type, string
from mvserver.compiler.expressions import Expression, Literal
from mvserver.errors import SqlError
from mvserver.limits import REPEATED_ELEMENTS_MAX
from mvserver.sql import types as t
from mvserver.sql.types import Kind, SqlType

_ANY_ARRAY = Parameter(Kind.ARRAY)
_ZIPPED_MAX = 8  # arrays


def _inner(arguments: Sequence[Expression]) -> SqlType:
    inner = arguments[0].type.element
    if inner is None or inner.kind is not Kind.ARRAY:
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH,
            f"flatten takes an array of arrays, and is given {arguments[0].type}",
        )
    return inner


def _repeated(a: Sequence[Lowered], result: SqlType) -> str:
    count = a[1]
    made = f"array_repeat({a[0]}, {count})"
    message = f"an array is repeated to at most {REPEATED_ELEMENTS_MAX} elements"
    checked = guard(f"{count} > {REPEATED_ELEMENTS_MAX}", sqlstates.PROGRAM_LIMIT_EXCEEDED, message, made)
    return f"IF({count} IS NULL, NULL, {checked})"


def _fields(arguments: Sequence[Expression]) -> SqlType:
    """An array of STRUCTs, with a field for each array."""
    names = _different([str(each.value) for each in arguments[1::2] if isinstance(each, Literal)], "an array")
    elements = [each.type.element or t.NULL for each in arguments[::2]]
    return t.array(t.struct(*zip(names, elements, strict=True)))


def _different(names: Sequence[str], what: str) -> Sequence[str]:
    if len({name.lower() for name in names}) < len(names) or "" in names:
        raise SqlError(
            sqlstates.DUPLICATE_COLUMN, f"the names of the fields of {what} are different, and none of them is empty"
        )
    return names


def _struct(arguments: Sequence[Expression]) -> SqlType:
    """A STRUCT of pairs of a name and a value."""
    names = [each.value for each in arguments[::2] if isinstance(each, Literal) and isinstance(each.value, str)]
    if len(names) < len(arguments) / 2 or len(arguments) % 2:
        raise SqlError(sqlstates.SYNTAX_ERROR, "named_struct takes pairs of a name, which is a constant, and a value")
    types = [each.type for each in arguments[1::2]]
    for name, type_ in zip(names, types, strict=True):
        if type_.kind in (Kind.INTERVAL, Kind.NULL):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED, f'field "{name}" has type {type_}, which a STRUCT cannot have',
                hint="Cast it.",
            )  # fmt: skip
    return t.struct(*zip(_different(names, "a STRUCT"), types, strict=True))


def _named(a: Sequence[Lowered], result: SqlType) -> str:
    parts = (f"{string(str(name.constant()))}, {value}" for name, value in zip(a[::2], a[1::2], strict=True))
    return f"named_struct({', '.join(parts)})"


def _zipped(size: str) -> Callable[[Sequence[Lowered], SqlType], str]:
    """``size`` makes the number of elements of those of the arrays."""

    def lowered(a: Sequence[Lowered], result: SqlType) -> str:
        arrays = [str(each) for each in a[::2]]
        names = [string(str(each.constant())) for each in a[1::2]]
        count = f"{size}({', '.join(f'size({each})' for each in arrays)})"
        parts = ", ".join(f"{name}, get({each}, i)" for name, each in zip(names, arrays, strict=True))
        made = f"transform(sequence(0, {count} - 1), i -> named_struct({parts}))"
        is_null = " OR ".join(f"{each} IS NULL" for each in arrays)
        return f"IF({is_null}, NULL, IF({count} = 0, CAST(array() AS {spark_type(result)}), {made}))"

    return lowered


def _pairs(size: str) -> Sequence[Callable[[str], Overload]]:
    lowering = _zipped(size)
    return [on((_ANY_ARRAY, TEXT_CONSTANT) * count, _fields, lowering) for count in range(2, _ZIPPED_MAX + 1)]


CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "flatten", "the elements of an array's arrays, one after the other; an array that is NULL has none",
        [on((ARRAY,), _inner, "flatten(filter({0}, e -> e IS NOT NULL))")],
        [
            example("array_to_string(flatten(ARRAY[ARRAY[1, 2], ARRAY[3]]), ',')", "1,2,3", postgres=False),
            example("cardinality(flatten(ARRAY[ARRAY[1, NULL], NULL]))", "2", postgres=False),
            fails("flatten(ARRAY[1])", "42804", postgres=False),
        ],
    ),
    capability(
        "array_repeat", "an array of a value, so many times",
        [on((ELEMENT, INTEGER), lambda a: t.array(a[0].type), _repeated)],
        [
            example("array_to_string(array_repeat('ab', 2), ',')", "ab,ab", postgres=False),
            example("cardinality(array_repeat(1, -1))", "0", postgres=False),
            fails("array_repeat(1, 2000000)", "54000", postgres=False),
        ],
        nulls=Nulls.SPECIAL,
    ),
    capability(
        "array_zip", "an array of STRUCTs of the elements that arrays have at one index, in the named fields",
        _pairs("least"),
        [
            example("((array_zip(ARRAY[1, 2], 'x', ARRAY['a'], 'y'))[1]).y", "a", postgres=False),
            example("cardinality(array_zip(ARRAY[1, 2], 'x', ARRAY['a'], 'y'))", "1", postgres=False),
        ],
        note="the names are constants",
    ),
    capability(
        "array_zip_all", "the same up to the last element of the longest array; what others lack is NULL",
        _pairs("greatest"),
        [
            example("((array_zip_all(ARRAY[1, 2], 'x', ARRAY['a'], 'y'))[2]).y", None, postgres=False),
            example("((array_zip_all(ARRAY[1, 2], 'x', ARRAY['a'], 'y'))[2]).x", "2", postgres=False),
        ],
        note="the names are constants",
    ),
    capability(
        "named_struct", "a STRUCT of pairs of a name and a value; it is never NULL",
        [on((TEXT_CONSTANT, EACH), _struct, _named, variadic=True)],
        [
            example("(named_struct('x', 1, 'y', 'a')).y", "a", postgres=False),
            example("(named_struct('x', NULL::int)).x", None, postgres=False),
            example("(named_struct('s', named_struct('x', 2))).s.x", "2", postgres=False),
            fails("named_struct('x', 1, 'X', 2)", "42701", postgres=False),
            fails("named_struct('x', 1, 'y')", "42601", postgres=False),
        ],
        nulls=Nulls.SPECIAL, note="the names are constants",
    ),
)  # fmt: skip
