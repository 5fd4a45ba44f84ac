"""Typed expressions as short readable text, for EXPLAIN: what is computed, not how an engine is told."""

from __future__ import annotations

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
from mvserver.quoting import constant


def render(node: Expression) -> str:
    if isinstance(node, KeyReference):
        return f"key{node.index}"
    if isinstance(node, AggregateReference):
        return f"agg{node.index}"
    if isinstance(node, ColumnReference):
        return node.name
    if isinstance(node, Literal):
        return _literal(node)
    if isinstance(node, Cast):
        return f"{'TRY_CAST' if node.safe else 'CAST'}({render(node.operand)} AS {node.type})"
    if isinstance(node, FieldAccess):
        return f"{render(node.operand)}->{node.field}"
    if isinstance(node, Case):
        branches = " ".join(f"WHEN {render(test)} THEN {render(value)}" for test, value in node.branches)
        return f"CASE {branches}{f' ELSE {render(node.otherwise)}' if node.otherwise is not None else ''} END"
    if isinstance(node, Call):
        return _call(node.function.split("(", 1)[0], [render(each) for each in node.arguments])
    return type(node).__name__


def _literal(node: Literal) -> str:
    if node.value is None:
        return "NULL"
    if isinstance(node.value, bool):
        return str(node.value).upper()
    if isinstance(node.value, str):
        return constant(node.value)
    if isinstance(node.value, bytes):
        return f"X'{node.value.hex()}'"
    return str(node.value)


def _call(name: str, arguments: list[str]) -> str:
    if name == "[]":
        return f"{arguments[0]}[{arguments[1]}]"
    if name == "between":
        return f"({arguments[0]} BETWEEN {arguments[1]} AND {arguments[2]})"
    if name == "in":
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    if name.replace("_", "").isalnum() and name not in ("and", "or", "not", "like", "ilike"):
        return f"{name}({', '.join(arguments)})"
    if len(arguments) == 1:
        prefix = name.startswith("prefix ") or name in ("-", "not")
        sign = name.removeprefix("prefix ").upper()
        return f"({sign} {arguments[0]})" if prefix else f"({arguments[0]} {sign})"
    return f"({f' {name.upper()} '.join(arguments)})"
