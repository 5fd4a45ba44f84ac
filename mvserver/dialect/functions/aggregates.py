"""Result types of SUM and AVG as PostgreSQL has them.

DuckDB's SUM of integers is HUGEINT, and its AVG is always double. PostgreSQL: sum(int) is bigint, sum(bigint) numeric,
sum(real) real, avg of exact numbers numeric. The argument's type decides, so each SELECT with such calls is bound once
more with the arguments as its columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb
from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect.functions import periods
from mvserver.dialect.functions.quotients import quotient
from mvserver.dialect.probes import innermost, types_in

_DECIMAL = re.compile(r"^DECIMAL\((\d+),\s*(\d+)\)$")
_AVG_SCALE_MIN = 6  # digits after the point of AVG; as the views' own AVG has them
_AVG_SCALE_MORE = 4
_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UINTEGER"})
_TYPED = "typed aggregate"


def type_aggregates(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr) -> bool:
    """Wrap SUM and AVG calls in the cast that gives PostgreSQL's type, in place, inner ones first; those that have one
    stay as they are. True when there was one without."""
    found = False
    outer = tree.args.get("with_")
    for select in interrupts.asking(reversed(list(tree.find_all(exp.Select)))):
        seen: list[exp.Expr] = []
        while calls := _innermost(select, seen):
            seen += calls
            found = True
            types = _argument_types(cursor, select, calls, outer)
            counted = [call for call, kind in zip(calls, types, strict=True) if kind == "BIGINT"]
            days_counted = [_count_days(cursor, call, select, outer) for call in counted]
            if any(days_counted):
                types = _argument_types(cursor, select, calls, outer)
            for call, argument_type in zip(calls, types, strict=True):
                if periods.is_period(argument_type):
                    (periods.averaged if isinstance(call, exp.Avg) else periods.summed)(call, argument_type)
                    continue
                if isinstance(call, exp.Avg):
                    _average(call, argument_type)
                    continue
                target = _sum_type(argument_type)
                if target is not None:
                    call.meta[_TYPED] = True
                    whole = periods.whole_call(call)
                    whole.replace(exp.Cast(this=whole.copy(), to=exp.DataType.build(target, dialect="duckdb")))
    return found


def _count_days(cursor: duckdb.DuckDBPyConnection, call: exp.Expr, select: exp.Select, outer: exp.Expr | None) -> bool:
    """``date - date`` in the argument is an integer, in place; True when there was one."""
    changed = False
    for node in reversed(list(call.find_all(exp.Sub))):
        if _types(cursor, [node.left, node.right], select, outer) == ("DATE", "DATE"):
            node.replace(exp.cast(exp.Paren(this=node.copy()), "INT", dialect="duckdb"))
            changed = True
    return changed


def _innermost(select: exp.Select, seen: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The calls without a type that have no others within, which ``sum(sum(x)) OVER ()`` has."""
    known = {id(call) for call in seen}
    calls = {
        id(call): call
        for call in select.find_all(exp.Sum, exp.Avg)
        if id(call) not in known and not call.meta.get(_TYPED) and call.find_ancestor(exp.Select) is select
    }
    return [
        call
        for call in calls.values()
        if not any(inner is not call and id(inner) in calls for inner in call.find_all(exp.Sum, exp.Avg))
    ]


def _argument_types(
    cursor: duckdb.DuckDBPyConnection, select: exp.Select, calls: Sequence[exp.Expr], outer: exp.Expr | None
) -> list[str]:
    """Of all at once; one by one where one of them cannot be bound so, as that of ``sum(count(*)) OVER ()``."""
    types = _types(cursor, [_argument(call) for call in calls], select, outer)
    if types is not None:
        return list(types)
    found = [_types(cursor, [_argument(call)], select, outer) for call in calls]
    return ["" if types is None else types[0] for types in found]


def _types(
    cursor: duckdb.DuckDBPyConnection, arguments: Sequence[exp.Expr], select: exp.Select, outer: exp.Expr | None
) -> Sequence[str] | None:
    """None where they do not bind: the query itself will say what is wrong with it."""
    grouped = select.args.get("group") is not None and any(argument.find(exp.AggFunc) for argument in arguments)

    def adapt(probe: exp.Select) -> None:
        if grouped:
            innermost(probe).set("group", select.args["group"].copy())

    return types_in(cursor, arguments, select, outer, adapt=adapt)


def _argument(call: exp.Expr) -> exp.Expr:
    argument = call.this
    if isinstance(argument, exp.Distinct):
        argument = argument.expressions[0]
    return argument.copy()  # type: ignore[no-any-return]


def _sum_type(argument_type: str) -> str | None:
    if argument_type in ("TINYINT", "SMALLINT", "INTEGER"):
        return "BIGINT"
    if argument_type == "FLOAT":
        return "FLOAT"
    return "DECIMAL(38, 0)" if argument_type in ("BIGINT", "HUGEINT", "UINTEGER") else None


def _average(call: exp.Avg, argument_type: str) -> None:
    """Of exact numbers it is their sum by their count: DuckDB's own is that of doubles."""
    decimal = _DECIMAL.match(argument_type)
    if decimal is None and argument_type not in _INTEGERS:
        return
    digits = int(decimal[2]) if decimal is not None else 0
    scale = max(_AVG_SCALE_MIN, digits + _AVG_SCALE_MORE) if decimal is not None else _AVG_SCALE_MIN
    whole = periods.whole_call(call)
    parts: list[exp.Expr] = []
    for kind in (exp.Sum, exp.Count):
        made = kind(this=call.this.copy())
        made.meta[_TYPED] = True
        copied = exp.Paren(this=whole.copy())
        found = copied.find(exp.Avg)
        assert found is not None  # noqa: S101 - a copy of what has it
        found.replace(made)
        parts.append(copied.this)
    whole.replace(quotient(parts[0], parts[1], (f"DECIMAL(38, {digits})", "BIGINT"), scale))
