"""Where in the query's text an error stands, as PostgreSQL tells it.

DuckDB's positions are of the text that was made for it. Its messages name what they are about, and the tree of the
query remembers where each name, call and literal was written; where several could be meant, no position is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.serving.guard import function_name

_COLUMN_ERRORS = (sqlstates.UNDEFINED_COLUMN, sqlstates.AMBIGUOUS_COLUMN, sqlstates.GROUPING_ERROR)
_LITERAL_ERRORS = (
    sqlstates.INVALID_TEXT_REPRESENTATION,
    sqlstates.INVALID_DATETIME_FORMAT,
    sqlstates.DATETIME_FIELD_OVERFLOW,
    sqlstates.NUMERIC_VALUE_OUT_OF_RANGE,
)
_CALL = re.compile(r"function (?P<name>[^\s(]+)(?P<signature>\(.*\))? does not exist", re.S)
_OPERATOR = re.compile(r"operator does not exist: .*?(?P<symbol>(?<= )[-+*/%<>=!~@#&|^?]+(?= )|^-(?= )).*", re.S)
_TYPE = re.compile(r'type "(?P<name>.*?)(?:\[\])*" does not exist')
_SYMBOLS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Add: ("+",), exp.Sub: ("-",), exp.Mul: ("*",), exp.Div: ("/",), exp.Mod: ("%",), exp.DPipe: ("||",),
    exp.EQ: ("=",), exp.NEQ: ("<>", "!="), exp.LT: ("<",), exp.LTE: ("<=",), exp.GT: (">",), exp.GTE: (">=",),
}  # fmt: skip


def locate(error: SqlError, tree: exp.Expr, text: str | None) -> None:
    """Gives the error its position; ``tree`` is the query as parsed, ``text`` its statement's where that is known."""
    if error.position is not None:
        return
    at: int | None = None
    if error.sqlstate in _COLUMN_ERRORS:
        at = _column(error.message, tree)
    elif error.sqlstate == sqlstates.UNDEFINED_FUNCTION:
        at = _call(error, tree) if error.message.startswith("function ") else _operator(error.message, tree, text)
    elif error.sqlstate == sqlstates.UNDEFINED_OBJECT:
        at = _type(error.message, tree)
    elif error.sqlstate in _LITERAL_ERRORS:
        at = _literal(error.message, tree)
    if at is not None:
        error.position = at + 1


# --- columns --------------------------------------------------------------------------------------------------------
def _column(message: str, tree: exp.Expr) -> int | None:
    for column in tree.find_all(exp.Column):
        starts = [part.meta["start"] for part in column.find_all(exp.Identifier) if "start" in part.meta]
        if starts and isinstance(column.this, exp.Identifier) and _mentions(message, column.this):
            return int(min(starts))
    return None


def _mentions(message: str, name: exp.Identifier) -> bool:
    shown = str(name.this) if name.quoted else str(name.this).lower()
    return f'"{shown}"' in message or f".{shown} does not exist" in message


# --- functions ------------------------------------------------------------------------------------------------------
def _call(error: SqlError, tree: exp.Expr) -> int | None:
    """Of a function of this name; where it is the types that do not fit, of the only call."""
    match = _CALL.fullmatch(error.message)
    if match is None:
        return None
    name = match["name"].rpartition(".")[2]
    calls = [node for node in tree.find_all(exp.Func) if "start" in node.meta and function_name(node) == name]
    if not calls or (match["signature"] is not None and len(calls) > 1):
        return None
    call = min(calls, key=_start)
    written, types = _qualified(call), _argument_types(call)
    if match["signature"] is None and types is not None:
        error.message = f"function {written[1]}({', '.join(types)}) does not exist"
    return written[0]


def _qualified(call: exp.Func) -> tuple[int, str]:
    """Where the call begins, and its name as PostgreSQL shows it, both with its schema."""
    name, start = function_name(call), _start(call)
    above = call.parent
    if isinstance(above, exp.Dot) and above.expression is call and isinstance(above.this, exp.Identifier):
        return int(above.this.meta.get("start", start)), f"{above.this.name.lower()}.{name}"
    return start, name


def _argument_types(call: exp.Expr) -> list[str] | None:
    """PostgreSQL's names of the arguments' types, where all are constants."""
    arguments = call.expressions if isinstance(call, exp.Anonymous) else list(call.iter_expressions())
    types = [_constant_type(argument) for argument in arguments]
    return [kind for kind in types if kind is not None] if None not in types else None


def _constant_type(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Null) or (isinstance(node, exp.Literal) and node.is_string):
        return "unknown"
    if isinstance(node, exp.Boolean):
        return "boolean"
    if isinstance(node, exp.CurrentTimestamp):
        return "timestamp with time zone"
    if not isinstance(node, exp.Literal):
        return None
    if not node.name.isdigit():
        return "numeric"
    value = int(node.name)
    return "integer" if value < 2**31 else "bigint" if value < 2**63 else "numeric"


# --- operators ------------------------------------------------------------------------------------------------------
def _operator(message: str, tree: exp.Expr, text: str | None) -> int | None:
    """Between the operands of the only such operation; the tree does not keep where operators are written."""
    match = _OPERATOR.fullmatch(message)
    if match is None or text is None:
        return None
    symbol = match["symbol"]
    found = [(node, _SYMBOLS[type(node)]) for node in tree.find_all(*_SYMBOLS) if symbol in _SYMBOLS[type(node)]]
    if len(found) != 1:
        return None
    node, symbols = found[0]
    left = max((int(part.meta["end"]) for part in node.this.walk() if "end" in part.meta), default=None)
    right = min((int(part.meta["start"]) for part in node.expression.walk() if "start" in part.meta), default=len(text))
    if left is None or not _is_of(tree, text):
        return None
    places = [left + 1 + at for symbol in symbols for at in _places(symbol, text[left + 1 : right])]
    return places[0] if len(places) == 1 else None


def _places(symbol: str, text: str) -> Iterator[int]:
    return (found.start() for found in re.finditer(rf"(?<![<>=!|]){re.escape(symbol)}(?![<>=|])", text))


def _is_of(tree: exp.Expr, text: str) -> bool:
    """False in a text of several statements, whose places are counted from its beginning."""
    return all(
        node.name.lower() in text[node.meta["start"] : node.meta["end"] + 1].lower()
        for node in tree.find_all(exp.Literal, exp.Identifier)
        if "start" in node.meta
    )


# --- types and literals ---------------------------------------------------------------------------------------------
def _type(message: str, tree: exp.Expr) -> int | None:
    match = _TYPE.fullmatch(message)
    if match is None:
        return None
    names = [
        name
        for target in tree.find_all(exp.DataType)
        for name in target.find_all(exp.Identifier)
        if "start" in name.meta and name.name.lower() == match["name"].lower()
    ]
    return min(map(_start, names), default=None)


def _literal(message: str, tree: exp.Expr) -> int | None:
    """A constant that is cast; else the only one of this text."""
    same = [
        node for node in tree.find_all(exp.Literal)
        if node.is_string and "start" in node.meta and f'"{node.name}"' in message
    ]  # fmt: skip
    cast = [node for node in same if isinstance(node.parent, exp.Cast)]
    if cast:
        return min(map(_start, cast))
    return _start(same[0]) if len(same) == 1 else None


def _start(node: exp.Expr) -> int:
    return int(node.meta["start"])
