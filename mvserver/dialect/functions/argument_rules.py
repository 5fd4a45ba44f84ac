"""Functions of PostgreSQL's that DuckDB has for more types: there they do not exist."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from mvserver import sqlstates
from mvserver.dialect.errors.type_texts import pg_name
from mvserver.errors import SqlError
from mvserver.sql.pull_parser import CALLED

TypeOf = Callable[[exp.Expr], str]

_COMPARED = (exp.Max, exp.Min)
_CONDITIONS = (exp.LogicalAnd, exp.LogicalOr)
_OF_ITEMS = frozenset({"array_remove", "array_replace"})
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")


def concerns(node: exp.Expr) -> bool:
    return isinstance(node, (*_COMPARED, *_CONDITIONS, exp.Length, exp.GroupConcat, exp.Sum, exp.Avg)) or (
        isinstance(node, exp.Anonymous) and node.name.lower() in _OF_ITEMS
    )


def check(node: exp.Expr, type_of: TypeOf) -> None:
    """42883 where PostgreSQL has no function of this name for the argument's type."""
    if isinstance(node, exp.Anonymous):
        _check_items(node, type_of)
        return
    argument = node.this
    while isinstance(argument, exp.Distinct | exp.Order):
        argument = argument.this or argument.expressions[0]
    if isinstance(argument, exp.Star):
        return
    kind = type_of(argument)
    if kind and not _exists(node, kind):
        name = node.meta[CALLED][0] if CALLED in node.meta else node.key
        more = ", unknown" if isinstance(node, exp.GroupConcat) else ""
        shown = "record" if kind.startswith("STRUCT") else pg_name(kind)
        raise SqlError(
            sqlstates.UNDEFINED_FUNCTION,
            f"function {name}({shown}{more}) does not exist",
            hint="No function matches the given name and argument types. You might need to add explicit type casts.",
        )


def _exists(node: exp.Expr, kind: str) -> bool:
    if isinstance(node, _CONDITIONS):
        return kind in ("BOOLEAN", '"NULL"', "NULL")
    if isinstance(node, exp.Length):
        return not kind.endswith("]")
    if isinstance(node, exp.GroupConcat):
        return kind in ("VARCHAR", "BLOB", '"NULL"', "NULL") or kind.startswith("ENUM") or not kind.isupper()
    if isinstance(node, exp.Sum | exp.Avg):
        return kind != "BOOLEAN" and kind not in _TIMES
    return kind not in ("BOOLEAN", "UUID", "JSON") and not kind.startswith(("STRUCT", "MAP"))


def _check_items(node: exp.Anonymous, type_of: TypeOf) -> None:
    """An array of texts has no numbers, and the other way round; DuckDB casts one of them."""
    array, *items = (type_of(part) for part in node.expressions)
    if not array.endswith("]") or array.endswith("[][]"):
        return
    for kind in items:
        if kind and '"NULL"' not in (kind, array[:-2]) and (kind == "VARCHAR") != (array[:-2] == "VARCHAR"):
            literal = any(isinstance(part, exp.Literal) and part.is_string for part in node.expressions[1:])
            if not literal and not array.startswith("ENUM"):
                shown = ", ".join(pg_name(each) for each in (array, *items))
                raise SqlError(
                    sqlstates.UNDEFINED_FUNCTION,
                    f"function {node.name.lower()}({shown}) does not exist",
                    hint="No function matches the given name and argument types. You might need to add explicit type "
                    "casts.",
                )
