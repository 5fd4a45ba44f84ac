"""The aggregate functions: what they take and the type of what they finish as.

SUM of integers below BIGINT is BIGINT, of BIGINT DECIMAL(38, 0), of DECIMAL(p, s) DECIMAL(38, s), of FLOAT FLOAT and of
DOUBLE DOUBLE. AVG of exact numbers is DECIMAL(38, max(6, s + 4)) rounded half away from zero, of the others DOUBLE.
Variances and standard deviations are DOUBLE for every argument (PostgreSQL answers numeric for exact ones). MIN and MAX
keep the type.
"""

from __future__ import annotations

from collections.abc import Mapping

from mvserver import sqlstates
from mvserver.compiler.capabilities.lookup import FUNCTIONS_HINT
from mvserver.compiler.coercion import coerce
from mvserver.compiler.expressions import Expression
from mvserver.compiler.literals import is_unknown
from mvserver.compiler.plans import Aggregate, AggregateCall
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.sql import types as t
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
}

_ORDERED = frozenset(
    {Kind.VARCHAR, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE}
) | frozenset(t.INTEGER_KINDS)
_DEVIATIONS = frozenset({Aggregate.VAR_POP, Aggregate.VAR_SAMP, Aggregate.STDDEV_POP, Aggregate.STDDEV_SAMP})


def aggregate_call(
    name: str, argument: Expression | None, where: Expression | None, position: int | None
) -> AggregateCall:
    """The typed call; ``argument`` is None for COUNT(*). 42883 for what the aggregate does not take."""
    function = AGGREGATES[name]
    if argument is None:
        return AggregateCall(Aggregate.COUNT_ROWS, None, t.BIGINT, where)
    if is_unknown(argument):
        if function in (Aggregate.COUNT, Aggregate.MIN, Aggregate.MAX):
            argument = coerce(argument, t.VARCHAR)
        else:
            raise SqlError(
                sqlstates.AMBIGUOUS_FUNCTION,
                f"function {name}(unknown) is not unique",
                hint="Could not choose a best candidate function. You might need to add explicit type casts.",
                position=position,
            )
    result = _result(function, argument.type)
    if result is None:
        raise SqlError(
            sqlstates.UNDEFINED_FUNCTION,
            f"function {name}({postgres_name(argument.type)}) does not exist",
            hint="No function matches the given name and argument types. You might need to add explicit type casts. "
            + FUNCTIONS_HINT,
            position=position,
        )
    if function in _DEVIATIONS:
        argument = coerce(argument, t.DOUBLE)
    return AggregateCall(function, argument, result, where)


def _result(function: Aggregate, type_: SqlType) -> SqlType | None:
    if function is Aggregate.COUNT:
        return t.BIGINT
    if function in (Aggregate.MIN, Aggregate.MAX):
        if type_.kind is Kind.VARCHAR:
            return t.VARCHAR
        return type_ if type_.kind in _ORDERED else None
    if not type_.is_numeric:
        return None
    if function in _DEVIATIONS:
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
