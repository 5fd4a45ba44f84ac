"""Identifiers and qualified names, and which words cannot be one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.lexer import IDENTIFIER, WORD
from mvserver.sql.statements.base import ObjectName

_Item = TypeVar("_Item")

# PostgreSQL 15's reserved words (appendix C), without those that may name a function or type.
RESERVED = frozenset(
    {
        "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "both", "case", "cast", "check",
        "collate", "column", "constraint", "create", "current_catalog", "current_date", "current_role", "current_time",
        "current_timestamp", "current_user", "default", "deferrable", "desc", "distinct", "do", "else", "end", "except",
        "false", "fetch", "for", "foreign", "from", "grant", "group", "having", "in", "initially", "intersect", "into",
        "lateral", "leading", "limit", "localtime", "localtimestamp", "not", "null", "offset", "on", "only", "or",
        "order", "placing", "primary", "references", "returning", "select", "session_user", "some", "symmetric",
        "table", "then", "to", "trailing", "true", "union", "unique", "user", "using", "variadic", "when", "where",
        "window", "with",
    }
)  # fmt: skip
# Reserved, but may name a function or type: not a table, column or alias without AS.
TYPE_OR_FUNCTION = frozenset(
    {
        "authorization", "binary", "collation", "concurrently", "cross", "current_schema", "freeze", "full", "ilike",
        "inner", "is", "isnull", "join", "left", "like", "natural", "notnull", "outer", "overlaps", "right", "similar",
        "tablesample", "verbose",
    }
)  # fmt: skip
OWN_FUNCTION = "mv_own"
"""In the place of a schema: the function is a user's, looked up along the search path."""
DRAWN_INTEGER = "mv_random_integer"
"""A random integer of the dialect lenses; its argument is where the call is written there."""
NOT_A_NAME = RESERVED | TYPE_OR_FUNCTION


def identifier(cursor: Cursor) -> str:
    """A name as the next token; reserved words need quotes."""
    token = cursor.current
    if token.kind is IDENTIFIER or (token.kind is WORD and token.text not in NOT_A_NAME):
        cursor.advance()
        return token.text
    raise cursor.syntax_error()


def label(cursor: Cursor) -> str:
    """A name where no keyword can stand (after AS, after a dot): any word is one."""
    if cursor.at_name():
        return cursor.advance().text
    raise cursor.syntax_error()


def object_name(cursor: Cursor, *, parts_max: int = 3) -> ObjectName:
    """``a``, ``s.a`` or ``d.s.a``."""
    first = cursor.current
    parts = [identifier(cursor)]
    while cursor.accept_operator("."):
        parts.append(label(cursor))
    if len(parts) > parts_max:
        text = ".".join(parts)
        raise SqlError("42601", f"improper qualified name (too many dotted names): {text}", position=first.position)
    return ObjectName(tuple(parts), first.position)


def listed(cursor: Cursor, one: Callable[[Cursor], _Item]) -> tuple[_Item, ...]:
    """``a, b, c``."""
    found = [one(cursor)]
    while cursor.accept_operator(","):
        found.append(one(cursor))
    return tuple(found)


def if_exists(cursor: Cursor) -> bool:
    return cursor.accept_word("if", "exists")


def if_not_exists(cursor: Cursor, *, or_replace: bool = False) -> bool:
    position = cursor.current.position
    guarded = cursor.accept_word("if", "not", "exists")
    if guarded and or_replace:
        raise SqlError(
            sqlstates.SYNTAX_ERROR,
            "OR REPLACE and IF NOT EXISTS cannot be given together",
            hint="One changes what is there already, the other leaves it as it is.",
            position=position,
        )
    return guarded


def cascade(cursor: Cursor) -> bool:
    """``CASCADE`` or ``RESTRICT`` or neither."""
    if cursor.accept_word("cascade"):
        return True
    cursor.accept_word("restrict")
    return False
