"""Arrays in PostgreSQL's text form, ``'{a,b}'``, where a query's text means an array by them."""

from __future__ import annotations

import re

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError

_ARRAY_TEXT = re.compile(r"^\{.*\}$", re.S)


def array_literal(node: exp.Expr | None) -> exp.Expr | None:
    """``'{a,b}'`` as an array, where its place says that it is one."""
    if not (isinstance(node, exp.Literal) and node.is_string and _ARRAY_TEXT.match(node.name)):
        return None
    if node.name[1:].lstrip().startswith("{"):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "texts of arrays with several dimensions are not supported",
            hint="Write ARRAY[[1, 2], [3, 4]].",
        )
    items = [exp.null() if item is None else exp.Literal.string(item) for item in split_array(node.name)]
    return exp.Array(expressions=items)


def split_array(text: str) -> list[str | None]:
    """The elements of a one-dimensional array in PostgreSQL's text form."""
    inner = text[1:-1]
    if not inner.strip():
        return []
    items: list[str | None] = []
    for match in re.finditer(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,]*))\s*(?:,|$)', inner):
        if match.start() == len(inner) and inner[-1:] != ",":
            break
        if match[1] is not None:
            items.append(re.sub(r"\\(.)", r"\1", match[1]))
        else:
            plain = match[2].strip()
            items.append(None if plain.upper() == "NULL" else plain)
    return items


def compared_array(node: exp.Expr) -> exp.Expr | None:
    """``x`` of ``ANY (x)``, ``SOME (x)`` or ``ALL (x)``; the parser takes some of them for functions."""
    if isinstance(node, exp.Any | exp.All):
        return node.this.unnest()  # type: ignore[no-any-return]
    if isinstance(node, exp.Anonymous) and node.name.lower() in ("any", "some", "all") and len(node.expressions) == 1:
        return node.expressions[0].unnest()  # type: ignore[no-any-return]
    return None
