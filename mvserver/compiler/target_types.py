"""The type that a cast in the text asks for.

A bare ``numeric`` or ``decimal`` has no bounds in PostgreSQL. A cast to it keeps every digit that the operand's type
can have; from text and floating point, whose digits no type tells, it gives DECIMAL(38, 18).
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from mvserver.compiler.coercion import decimal_of_integer
from mvserver.compiler.expressions import Expression, Literal
from mvserver.compiler.literals import decimal_type_of, typed_literal
from mvserver.sql import types as t
from mvserver.sql.nodes import sql_type_of
from mvserver.sql.types import Kind, SqlType


def cast_target(node: exp.Expression, operand: Expression) -> SqlType:
    target = sql_type_of(node)
    if target.kind is Kind.DECIMAL and node.args["to"].meta.get("unbounded"):
        return _unbounded(operand)
    return target


def _unbounded(operand: Expression) -> SqlType:
    if operand.type.kind is Kind.DECIMAL:
        return operand.type
    if operand.type.is_integer:
        return decimal_of_integer(operand.type)
    if isinstance(operand, Literal) and isinstance(operand.value, str):
        wide = typed_literal(operand, t.decimal(38, 18))  # also refuses what is not a number
        if isinstance(wide, Literal) and isinstance(wide.value, Decimal):
            return decimal_type_of(Decimal(operand.value.strip()))
    return t.decimal(38, 18)
