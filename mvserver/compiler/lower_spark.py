"""Typed expressions as Spark SQL text, under ANSI mode and UTC.

Every constant carries its type, every name is quoted, every function comes from the capability table's own lowering.
The text relies on the session settings named here and on nothing else of Spark's configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mvserver import limits, sqlstates
from mvserver.compiler.capabilities import overload
from mvserver.compiler.capabilities.model import Lowered
from mvserver.compiler.capabilities.spark_text import identifier, literal, spark_type
from mvserver.compiler.casts import cast_text
from mvserver.compiler.expressions import Call, Case, Cast, ColumnReference, Expression, FieldAccess, Literal
from mvserver.errors import SqlError

REQUIRED_SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.legacy.castComplexTypesToString.enabled": "false",
    "spark.sql.timeType.enabled": "true",
}

Column = Callable[[str], str]


def lower(expression: Expression, column: Column) -> str:
    """Spark SQL text of an expression over a scan; ``column`` says how a column of the scan is written."""
    text = _lower(expression, column)
    if len(text) > limits.LOWERED_EXPRESSION_CHARS_MAX:
        raise SqlError(
            sqlstates.STATEMENT_TOO_COMPLEX,
            "expression is too complex",
            detail=f"Its lowered text has {len(text)} characters; {limits.LOWERED_EXPRESSION_CHARS_MAX} are allowed.",
            hint="Split it over two streams.",
        )
    return text


def _lower(node: Expression, column: Column) -> str:
    if isinstance(node, ColumnReference):
        return column(node.name)
    if isinstance(node, Literal):
        return literal(node)
    if isinstance(node, Call):
        return _call(node, column)
    if isinstance(node, Cast):
        return cast_text(_lower(node.operand, column), node.operand.type, node.type, safe=node.safe)
    if isinstance(node, Case):
        branches = " ".join(f"WHEN {_lower(c, column)} THEN {_lower(v, column)}" for c, v in node.branches)
        otherwise = f" ELSE {_lower(node.otherwise, column)}" if node.otherwise is not None else ""
        return f"(CASE {branches}{otherwise} END)"
    if isinstance(node, FieldAccess):
        return f"{_lower(node.operand, column)}.{identifier(node.field)}"
    raise SqlError(sqlstates.INTERNAL_ERROR, f"no Spark form for {type(node).__name__}")


def _call(node: Call, column: Column) -> str:
    arguments = [
        Lowered(_lower(each, column), each.type, each if isinstance(each, Literal) else None) for each in node.arguments
    ]
    size = sum(len(each.text) for each in arguments)
    if size > limits.LOWERED_EXPRESSION_CHARS_MAX:
        raise SqlError(sqlstates.STATEMENT_TOO_COMPLEX, "expression is too complex")
    template = overload(node.function).spark
    if isinstance(template, str):
        return template.format(*arguments)
    return template(arguments, node.type)


__all__ = ["REQUIRED_SETTINGS", "identifier", "lower", "spark_type"]
