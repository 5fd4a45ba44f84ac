"""Typed expressions as Spark SQL text, under ANSI mode and UTC.

Every constant carries its type, every name is quoted, every function comes from the capability table's own lowering.
The text relies on the session settings named here and on nothing else of Spark's configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mvserver import limits, sqlstates
from mvserver.compiler import own_functions
from mvserver.compiler.capabilities import overload
from mvserver.compiler.capabilities.model import Lowered
from mvserver.compiler.capabilities.spark_text import identifier, literal, spark_type
from mvserver.compiler.casts import cast_text
from mvserver.compiler.expressions import (
    Call,
    Case,
    Cast,
    ColumnReference,
    Expression,
    FieldAccess,
    Literal,
    children,
)
from mvserver.compiler.lengths import length_of
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
    lowered = _lower(expression, column)
    if not lowered.length.may_be_made:
        raise SqlError(
            sqlstates.STATEMENT_TOO_COMPLEX,
            "expression is too complex",
            detail="A value may come to more copies of a column, or to more text, than a record may make.",
            hint="Split it over two streams.",
        )
    return lowered.text


def _lower(node: Expression, column: Column) -> Lowered:
    """54001 for the first part that is too long: lowerings that repeat an operand double it at each level."""
    lowered = _call(node, column) if isinstance(node, Call) else _node(node, column)
    if len(lowered.text) > limits.LOWERED_EXPRESSION_CHARS_MAX:
        raise SqlError(
            sqlstates.STATEMENT_TOO_COMPLEX,
            "expression is too complex",
            detail=f"Its lowered text has more than {limits.LOWERED_EXPRESSION_CHARS_MAX} characters.",
            hint="Split it over two streams.",
        )
    return lowered


def _node(node: Expression, column: Column) -> Lowered:
    parts = [_lower(each, column) for each in children(node)]
    literal_ = node if isinstance(node, Literal) else None
    text = _text(node, [part.text for part in parts], column)
    return Lowered(text, node.type, literal_, length_of(node, [part.length for part in parts]))


def _text(node: Expression, parts: Sequence[str], column: Column) -> str:
    if isinstance(node, ColumnReference):
        return column(node.name)
    if isinstance(node, Literal):
        return literal(node)
    if isinstance(node, Cast):
        return cast_text(parts[0], node.operand.type, node.type, safe=node.safe)
    if isinstance(node, Case):
        pairs = zip(parts[0::2], parts[1::2], strict=False)
        branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
        otherwise = f" ELSE {parts[-1]}" if node.otherwise is not None else ""
        return f"(CASE {branches}{otherwise} END)"
    if isinstance(node, FieldAccess):
        return f"{parts[0]}.{identifier(node.field)}"
    raise SqlError(sqlstates.INTERNAL_ERROR, f"no Spark form for {type(node).__name__}")


def _call(node: Call, column: Column) -> Lowered:
    arguments = [_lower(each, column) for each in node.arguments]
    if node.definition is not None:
        text = own_functions.spark_text(node.definition, arguments)
        return Lowered(text, node.type, None, length_of(node, [each.length for each in arguments]))
    template = overload(node.function).spark
    text = template.format(*arguments) if isinstance(template, str) else template(arguments, node.type)
    return Lowered(text, node.type, None, length_of(node, [each.length for each in arguments]))


__all__ = ["REQUIRED_SETTINGS", "identifier", "lower", "spark_type"]
