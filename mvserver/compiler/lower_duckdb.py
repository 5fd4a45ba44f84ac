"""Finishing expressions as DuckDB SQL text, over group keys and merged aggregates.

Only functions whose capability entry has a DuckDB lowering are here, each proved equal to Spark's by test.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from mvserver import limits, sqlstates
from mvserver.compiler.capabilities import overload
from mvserver.compiler.capabilities.model import Lowered
from mvserver.compiler.duckdb_casts import can_cast, cast_text
from mvserver.compiler.duckdb_types import duckdb_type
from mvserver.compiler.expressions import (
    AggregateReference,
    Call,
    Case,
    Cast,
    ColumnReference,
    Expression,
    FieldAccess,
    KeyReference,
    Literal,
)
from mvserver.errors import SqlError
from mvserver.quoting import constant
from mvserver.sql.types import Kind

Reference = Callable[[int], str]

HINT = (
    "Arithmetic, comparisons, CASE, COALESCE, NULLIF, GREATEST, LEAST, casts between numbers, ABS, CEIL, FLOOR, ROUND "
    "and SQRT may be used over aggregates; anything else in the SELECT that reads the view."
)

OWN_HINT = "Aggregate in a sub-query: SELECT f(x) FROM (SELECT ..., array_agg(a) AS x FROM ... GROUP BY ...) AS t."


def lower(expression: Expression, key: Reference, aggregate: Reference) -> str:
    """DuckDB text; ``key`` and ``aggregate`` say how the i-th group key and aggregate are written."""
    return _lower(expression, key, aggregate)


def can_finish_node(node: Expression) -> bool:
    """Whether this one node (not its children) can be computed by DuckDB."""
    if isinstance(node, Call):
        return node.definition is None and overload(node.function).duckdb is not None
    if isinstance(node, Cast):
        return can_cast(node.operand.type, node.type, safe=node.safe)
    if isinstance(node, Literal):
        return node.type.kind not in (Kind.INTERVAL, Kind.VARBINARY)
    return not isinstance(node, (ColumnReference, FieldAccess))


def refuse(node: Expression) -> SqlError:
    if isinstance(node, Call):
        name = node.function.split("(", 1)[0]
        what = f"function {name}" if name.replace("_", "").isalnum() else f"operator {name}"
    elif isinstance(node, Cast):
        what = f"a cast from {node.operand.type} to {node.type}"
    else:
        what = "this expression"
    hint = OWN_HINT if isinstance(node, Call) and node.definition is not None else HINT
    return SqlError(sqlstates.FEATURE_NOT_SUPPORTED, f"{what} is not supported over aggregates", hint=hint)


def _lower(node: Expression, key: Reference, aggregate: Reference) -> str:
    """54001 for the first part that is too long: lowerings that repeat an operand double it at each level."""
    text = _text(node, key, aggregate)
    if len(text) > limits.LOWERED_EXPRESSION_CHARS_MAX:
        raise SqlError(sqlstates.STATEMENT_TOO_COMPLEX, "expression is too complex")
    return text


def _text(node: Expression, key: Reference, aggregate: Reference) -> str:
    if isinstance(node, KeyReference):
        return key(node.index)
    if isinstance(node, AggregateReference):
        return aggregate(node.index)
    if isinstance(node, Literal):
        return literal(node)
    if isinstance(node, Case):
        branches = " ".join(
            f"WHEN {_lower(test, key, aggregate)} THEN {_lower(value, key, aggregate)}" for test, value in node.branches
        )
        otherwise = f" ELSE {_lower(node.otherwise, key, aggregate)}" if node.otherwise is not None else ""
        return f"(CASE {branches}{otherwise} END)"
    if isinstance(node, Cast) and can_cast(node.operand.type, node.type, safe=node.safe):
        return cast_text(_lower(node.operand, key, aggregate), node.operand.type, node.type, safe=node.safe)
    if isinstance(node, Call) and node.definition is None:
        template = overload(node.function).duckdb
        if template is not None:
            arguments = [
                Lowered(_lower(each, key, aggregate), each.type, each if isinstance(each, Literal) else None)
                for each in node.arguments
            ]
            return template.format(*arguments) if isinstance(template, str) else template(arguments, node.type)
    raise refuse(node)


def literal(node: Literal) -> str:
    """A constant with its type spelled out."""
    value = node.value
    type_ = duckdb_type(node.type)
    if value is None:
        return f"CAST(NULL AS {type_})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS {type_})"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS {type_})"
    if isinstance(value, bytes):
        raise refuse(node)
    return f"CAST({constant(str(value))} AS {type_})"


__all__ = ["HINT", "can_finish_node", "duckdb_type", "literal", "lower", "refuse"]
