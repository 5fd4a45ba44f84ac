"""The aggregate functions: what they take and the type of what they finish as.

SUM of integers below BIGINT is BIGINT, of BIGINT DECIMAL(38, 0), of DECIMAL(p, s) DECIMAL(38, s), of FLOAT FLOAT and of
DOUBLE DOUBLE. AVG of exact numbers is DECIMAL(38, max(6, s + 4)) rounded half away from zero, of the others DOUBLE.
Variances and standard deviations are DOUBLE for every argument (PostgreSQL answers numeric for exact ones). MIN, MAX,
FIRST_VALUE, LAST_VALUE, PERCENTILE_DISC and MODE keep the type; PERCENTILE_CONT and APPROX_PERCENTILE are DOUBLE.
FIRST_VALUE and LAST_VALUE are Flink's, by event time and without NULLs, as is LISTAGG; APPROX_COUNT_DISTINCT and
APPROX_PERCENTILE are named as Spark's, TOPK and TOPKDISTINCT as ksqlDB's; BOTTOMK, MOST_FREQUENT, LEAST_FREQUENT and
the limit of ARRAY_AGG are the server's own; the others are PostgreSQL's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from mvserver import limits, sqlstates
from mvserver.compiler.capabilities.keys import normalized_key
from mvserver.compiler.capabilities.lookup import call_operator
from mvserver.compiler.coercion import coerce
from mvserver.compiler.expressions import Expression, Literal
from mvserver.compiler.literals import is_unknown, typed_literal
from mvserver.compiler.plans import TIMED, Aggregate, AggregateCall
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.calls import FUNCTIONS_HINT
from mvserver.sql.types import Kind, SqlType

AGGREGATES: Mapping[str, Aggregate] = {
    "count": Aggregate.COUNT,
    "sum": Aggregate.SUM,
    "min": Aggregate.MIN,
    "max": Aggregate.MAX,
    "avg": Aggregate.AVG,
    "stddev": Aggregate.STDDEV_SAMP,
    "stddev_pop": Aggregate.STDDEV_POP,
    "stddev_samp": Aggregate.STDDEV_SAMP,
    "variance": Aggregate.VAR_SAMP,
    "var_pop": Aggregate.VAR_POP,
    "var_samp": Aggregate.VAR_SAMP,
    "bool_and": Aggregate.BOOL_AND,
    "bool_or": Aggregate.BOOL_OR,
    "every": Aggregate.BOOL_AND,
    "first_value": Aggregate.FIRST_VALUE,
    "last_value": Aggregate.LAST_VALUE,
    "percentile_cont": Aggregate.PERCENTILE_CONT,
    "percentile_disc": Aggregate.PERCENTILE_DISC,
    "mode": Aggregate.MODE,
    "string_agg": Aggregate.STRING_AGG,
    "listagg": Aggregate.STRING_AGG,
    "array_agg": Aggregate.ARRAY_AGG,
    "topk": Aggregate.TOP,
    "topkdistinct": Aggregate.TOP,
    "bottomk": Aggregate.BOTTOM,
    "bottomkdistinct": Aggregate.BOTTOM,
    "most_frequent": Aggregate.FREQUENT,
    "least_frequent": Aggregate.RARE,
    "approx_count_distinct": Aggregate.CARDINALITY,
    "approx_percentile": Aggregate.PERCENTILE_DISC,
    "percentile_approx": Aggregate.PERCENTILE_DISC,
}
_APPROXIMATE_PERCENTILES = frozenset({"approx_percentile", "percentile_approx"})

_ORDERED = frozenset(
    {Kind.VARCHAR, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE}
) | frozenset(t.INTEGER_KINDS)
_SCALARS = _ORDERED | {Kind.BOOLEAN, Kind.VARBINARY}
_DEVIATIONS = frozenset({Aggregate.VAR_POP, Aggregate.VAR_SAMP, Aggregate.STDDEV_POP, Aggregate.STDDEV_SAMP})
_LOGICAL = frozenset({Aggregate.BOOL_AND, Aggregate.BOOL_OR})
_PERCENTILES = frozenset({Aggregate.PERCENTILE_CONT, Aggregate.PERCENTILE_DISC})
WITHIN_GROUP = _PERCENTILES | {Aggregate.MODE}
_CHOSEN = frozenset({Aggregate.TOP, Aggregate.BOTTOM, Aggregate.FREQUENT, Aggregate.RARE})  # so many of their values
_KEEPS_TYPE = TIMED | {Aggregate.PERCENTILE_DISC, Aggregate.MODE}
_SAME_WITHOUT_DISTINCT = _LOGICAL | {Aggregate.MIN, Aggregate.MAX}
_TAKES_UNKNOWN = _KEEPS_TYPE | _CHOSEN | {
    Aggregate.COUNT, Aggregate.MIN, Aggregate.MAX, Aggregate.ARRAY_AGG, Aggregate.CARDINALITY,
}  # fmt: skip
_NO_CHANGE = "DISTINCT does not change which value is the first or the last: leave it out."
_NEEDLESS_DISTINCT: Mapping[Aggregate | str, str] = {
    Aggregate.FIRST_VALUE: _NO_CHANGE,
    Aggregate.LAST_VALUE: _NO_CHANGE,
    Aggregate.CARDINALITY: "It counts distinct values: leave DISTINCT out.",
    Aggregate.TOP: "TOPKDISTINCT takes each value once.",
    Aggregate.BOTTOM: "BOTTOMKDISTINCT takes each value once.",
    Aggregate.FREQUENT: "It has each value once: leave DISTINCT out.",
    Aggregate.RARE: "It has each value once: leave DISTINCT out.",
    "approx_percentile": "Use PERCENTILE_DISC over a SELECT DISTINCT.",
}


@dataclass(frozen=True)
class AggregateText:
    """An aggregate call as it is written; ``arguments`` is None for ``*``, ``order`` what WITHIN GROUP orders by.
    ``path`` is the name of a user's own aggregate, with what is said before it."""

    name: str
    arguments: tuple[Expression, ...] | None
    where: Expression | None = None
    distinct: bool = False
    order: tuple[Expression, ...] | None = None
    descending: bool = False
    position: int | None = None
    path: tuple[str, ...] = ()


def aggregate_call(written: AggregateText) -> AggregateCall:
    """The typed call. 42883 for what the aggregate does not take, 42809 for a form that is not its own."""
    function = AGGREGATES[written.name]
    _check_form(function, written)
    if written.arguments is None:
        return AggregateCall(Aggregate.COUNT_ROWS, None, t.BIGINT, written.where)
    if written.order is not None:
        return _ordered_call(function, written, written.order)
    if function is Aggregate.STRING_AGG:
        return _joined_call(written, written.arguments)
    if function in _CHOSEN:
        return _chosen_call(function, written, written.arguments)
    if written.name in _APPROXIMATE_PERCENTILES:
        return _approximate_percentile(written, written.arguments)
    if function is Aggregate.CARDINALITY:
        return _cardinality_call(written, written.arguments)
    argument = _known(function, written.arguments[0], written)
    result = _result(function, argument.type)
    if result is None:
        raise _undefined(written, written.arguments)
    limit = _greatest_number(written, written.arguments) if len(written.arguments) > 1 else None
    if not written.distinct or function in _SAME_WITHOUT_DISTINCT:
        if function in _DEVIATIONS:
            argument = coerce(argument, t.DOUBLE)
        return AggregateCall(function, argument, result, written.where, limit=limit)
    if argument.type.kind not in _SCALARS:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{written.name.upper()}(DISTINCT ...) of type {postgres_name(argument.type)} is not supported",
            hint="Take its parts.",
            position=written.position,
        )
    # What is kept value by value must have one form for equal values.
    return AggregateCall(function, normalized_key(argument), result, written.where, distinct=True, limit=limit)


def _check_form(function: Aggregate, written: AggregateText) -> None:
    name, position = written.name, written.position
    if written.order is None and function in WITHIN_GROUP and name not in _APPROXIMATE_PERCENTILES:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f"WITHIN GROUP is required for ordered-set aggregate {name}",
            hint=f"Write {name}(...) WITHIN GROUP (ORDER BY expression).",
            position=position,
        )
    if written.order is not None and function is Aggregate.STRING_AGG:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{name} with WITHIN GROUP is not supported in a continuous query",
            hint="Its values are in the order of their event times; those of DISTINCT are in their own order.",
            position=position,
        )
    if written.order is not None and (function not in WITHIN_GROUP or name in _APPROXIMATE_PERCENTILES):
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f"{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP",
            position=position,
        )
    arguments = written.arguments
    if arguments is None:
        if function is not Aggregate.COUNT:
            raise SqlError(sqlstates.UNDEFINED_FUNCTION, f"function {name}() does not exist", position=position)
        return
    if written.order is not None:
        if written.distinct:
            raise SqlError(sqlstates.SYNTAX_ERROR, "cannot use DISTINCT with WITHIN GROUP", position=position)
        if len(arguments) != (1 if function in _PERCENTILES else 0) or len(written.order) != 1:
            raise _undefined(written, (*arguments, *written.order))
        return
    if not arguments and function is Aggregate.COUNT:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            "count(*) must be used to call a parameterless aggregate function",
            position=position,
        )
    two = name in _APPROXIMATE_PERCENTILES or function in _CHOSEN or name == "string_agg"
    allowed = (1, 2) if name in ("listagg", "array_agg") else (2,) if two else (1,)
    if len(arguments) not in allowed:
        raise _undefined(written, arguments)
    needless = _NEEDLESS_DISTINCT.get("approx_percentile" if name in _APPROXIMATE_PERCENTILES else function)
    if written.distinct and needless is not None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"{name.upper()}(DISTINCT ...) is not supported in a continuous query",
            hint=needless,
            position=position,
        )


def _ordered_call(function: Aggregate, written: AggregateText, order: tuple[Expression, ...]) -> AggregateCall:
    (argument,) = order
    argument = _known(function, argument, written)
    result = _result(function, argument.type)
    if result is None:
        raise _undefined(written, (*(written.arguments or ()), argument))
    if function is Aggregate.PERCENTILE_CONT:
        argument = coerce(argument, t.DOUBLE)
    fraction = _fraction(written) if function in _PERCENTILES else None
    return AggregateCall(
        function,
        normalized_key(argument),
        result,
        written.where,
        fraction=fraction,
        descending=written.descending,
    )


def _joined_call(written: AggregateText, arguments: tuple[Expression, ...]) -> AggregateCall:
    texts = tuple(coerce(each, t.VARCHAR) if is_unknown(each) else each for each in arguments)
    if any(each.type.kind is not Kind.VARCHAR for each in texts):
        raise _undefined(written, arguments)
    separator = texts[1] if len(texts) > 1 else Literal(t.VARCHAR, ",")
    if not isinstance(separator, Literal):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"argument 2 of {written.name} must be a constant",
            hint="Join each value with its separator first.",
            position=written.position,
        )
    return AggregateCall(
        Aggregate.STRING_AGG,
        texts[0],
        t.VARCHAR,
        written.where,
        distinct=written.distinct,
        separator="" if separator.value is None else str(separator.value),
    )


def _chosen_call(function: Aggregate, written: AggregateText, arguments: tuple[Expression, ...]) -> AggregateCall:
    argument = _known(function, arguments[0], written)
    if argument.type.kind not in (_ORDERED if function in (Aggregate.TOP, Aggregate.BOTTOM) else _SCALARS):
        raise _undefined(written, arguments)
    element = t.VARCHAR if argument.type.kind is Kind.VARCHAR else argument.type
    return AggregateCall(
        function,
        normalized_key(argument),
        t.array(element),
        written.where,
        distinct=written.name in ("topkdistinct", "bottomkdistinct"),
        limit=_greatest_number(written, arguments),
    )


def _greatest_number(written: AggregateText, arguments: tuple[Expression, ...]) -> int:
    """How many values the result has at most."""
    limit = arguments[1].value if isinstance(arguments[1], Literal) else None
    if isinstance(limit, bool):
        raise _undefined(written, arguments)
    if not isinstance(limit, int) or not 1 <= limit <= limits.TOP_VALUES_MAX:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f"argument 2 of {written.name} must be a constant from 1 to {limits.TOP_VALUES_MAX}",
            position=written.position,
        )
    return limit


def _approximate_percentile(written: AggregateText, arguments: tuple[Expression, ...]) -> AggregateCall:
    argument = arguments[0]
    if not (is_unknown(argument) or argument.type.is_numeric):
        raise _undefined(written, arguments)
    bucket = call_operator("relative bucket", (coerce(argument, t.DOUBLE, written.position),))
    return AggregateCall(
        Aggregate.PERCENTILE_DISC,
        normalized_key(bucket),
        t.DOUBLE,
        written.where,
        fraction=_fraction(written, 1),
    )


def _cardinality_call(written: AggregateText, arguments: tuple[Expression, ...]) -> AggregateCall:
    argument = _known(Aggregate.CARDINALITY, arguments[0], written)
    if argument.type.kind not in _SCALARS:
        raise _undefined(written, arguments)
    sketched = call_operator("sketch value", (normalized_key(argument),))
    return AggregateCall(Aggregate.CARDINALITY, sketched, t.BIGINT, written.where)


def _fraction(written: AggregateText, index: int = 0) -> float:
    given = written.arguments[index] if written.arguments else None
    if isinstance(given, Literal) and is_unknown(given) and given.value is not None:
        given = typed_literal(given, t.DOUBLE, written.position)
    value = given.value if isinstance(given, Literal) else None
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"argument {index + 1} of {written.name} must be a constant number",
            hint="Write one call for each percentile.",
            position=written.position,
        )
    if not 0 <= value <= 1:
        raise SqlError(
            sqlstates.NUMERIC_VALUE_OUT_OF_RANGE,
            f"percentile value {value} is not between 0 and 1",
            position=written.position,
        )
    return float(value)


def _known(function: Aggregate, argument: Expression, written: AggregateText) -> Expression:
    """The argument with a type, where its text has none."""
    if not is_unknown(argument):
        return argument
    if function in _LOGICAL:
        return coerce(argument, t.BOOLEAN, written.position)
    if function is Aggregate.PERCENTILE_CONT:
        return coerce(argument, t.DOUBLE, written.position)
    if function in _TAKES_UNKNOWN:
        return coerce(argument, t.VARCHAR)
    raise SqlError(
        sqlstates.AMBIGUOUS_FUNCTION,
        f"function {written.name}(unknown) is not unique",
        hint="Could not choose a best candidate function. You might need to add explicit type casts.",
        position=written.position,
    )


def _undefined(written: AggregateText, arguments: tuple[Expression, ...]) -> SqlError:
    spelled = ", ".join(postgres_name(each.type) for each in arguments)
    return SqlError(
        sqlstates.UNDEFINED_FUNCTION,
        f"function {written.name}({spelled}) does not exist",
        hint="No function matches the given name and argument types. You might need to add explicit type casts. "
        + FUNCTIONS_HINT,
        position=written.position,
    )


def _result(function: Aggregate, type_: SqlType) -> SqlType | None:
    if function is Aggregate.COUNT:
        return t.BIGINT
    if function in (Aggregate.MIN, Aggregate.MAX):
        if type_.kind is Kind.VARCHAR:
            return t.VARCHAR
        return type_ if type_.kind in _ORDERED else None
    if function in _KEEPS_TYPE or function is Aggregate.ARRAY_AGG:
        if type_.kind not in _SCALARS:
            return None
        kept = t.VARCHAR if type_.kind is Kind.VARCHAR else type_
        return t.array(kept) if function is Aggregate.ARRAY_AGG else kept
    if function in _LOGICAL:
        return type_ if type_.kind is Kind.BOOLEAN else None
    if not type_.is_numeric:
        return None
    if function in _DEVIATIONS or function is Aggregate.PERCENTILE_CONT:
        return t.DOUBLE
    if function is Aggregate.SUM:
        return _sum(type_)
    scale = type_.scale or 0
    return t.decimal(38, min(max(6, scale + 4), 38)) if type_.is_exact else t.DOUBLE


def _sum(type_: SqlType) -> SqlType:
    if type_.kind is Kind.BIGINT:
        return t.decimal(38, 0)
    if type_.is_integer:
        return t.BIGINT
    if type_.kind is Kind.DECIMAL:
        return t.decimal(38, type_.scale or 0)
    return type_
