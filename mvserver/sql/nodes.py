"""Small helpers around sqlglot's nodes: where a node stands, what type a cast names, how a column is called.

They are what both sides of the continuous tree share: the parser that makes it and the binder that reads it.
"""

from __future__ import annotations

from typing import TypeVar

from sqlglot import exp

from mvserver.sql.lexer import Token
from mvserver.sql.types import SqlType

Node = TypeVar("Node", bound=exp.Expr)


def at(node: Node, token: Token) -> Node:
    """Marks the node with the position of a token."""
    node.meta["position"] = token.start + 1
    return node


def position_of(node: exp.Expr | None) -> int | None:
    """The 1-based offset of a node into the whole text, or that of its first descendant that has one."""
    if node is None:
        return None
    for candidate in node.walk(bfs=False):
        position = candidate.meta.get("position")
        if isinstance(position, int):
            return position
        start = candidate.meta.get("start")
        if isinstance(start, int):  # set by sqlglot's own parser
            return start + 1
    return None


def data_type(sql_type: SqlType) -> exp.DataType:
    """A DataType node that carries our type and prints as its canonical spelling."""
    node = exp.DataType(this=exp.DType.USERDEFINED, kind=str(sql_type))
    node.meta["sql_type"] = sql_type
    return node


def sql_type_of(cast: exp.Expr) -> SqlType:
    """The type that a Cast or TryCast of the continuous tree names."""
    found: SqlType = cast.args["to"].meta["sql_type"]
    return found


def default_name(node: exp.Expr) -> str:
    """The name of an output column without AS, as PostgreSQL chooses it."""
    return _figure(node) or "?column?"


def _figure(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Alias):
        return str(node.alias)
    if isinstance(node, exp.Column):
        return str(node.name)
    if isinstance(node, exp.Dot):
        return str(node.expression.name)
    if isinstance(node, (exp.Bracket, exp.Paren, exp.Filter, exp.WithinGroup)):
        return _figure(node.this)
    if isinstance(node, exp.Anonymous):
        return str(node.name)
    if isinstance(node, exp.Case):
        otherwise = node.args.get("default")
        found = _figure(otherwise) if otherwise is not None else None
        return found or "case"
    if isinstance(node, exp.Cast):
        return _figure(node.this) or _type_label(sql_type_of(node))
    if isinstance(node, exp.Interval):
        return "interval"
    if isinstance(node, exp.AtTimeZone):
        return "timezone"
    if isinstance(node, exp.Array):
        return "array"
    if isinstance(node, exp.Boolean):
        return "bool"
    return None


def _type_label(sql_type: SqlType) -> str:
    name = str(sql_type).partition("(")[0].partition("<")[0].lower()
    return _POSTGRES_NAMES.get(name, name)


_POSTGRES_NAMES = {
    "boolean": "bool",
    "smallint": "int2",
    "integer": "int4",
    "bigint": "int8",
    "float": "float4",
    "double": "float8",
    "decimal": "numeric",
    "varbinary": "bytea",
    "timestamp_ltz": "timestamptz",
}
