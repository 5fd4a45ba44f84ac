"""The place of an error in the query's text, as PostgreSQL tells it.

DuckDB's positions are of the text that was made for it. Its messages name what they are about, and the tree of the
query remembers where each name, call and literal was written; where several could be meant, no position is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from mvserver import sqlstates
from mvserver.dialect.errors.duck_errors import TOO_WIDE
from mvserver.dialect.guard import function_name
from mvserver.dialect.typing import operators
from mvserver.errors import SqlError
from mvserver.sql.pull_parser import CALLED

_LITERAL_ERRORS = (
    sqlstates.INVALID_TEXT_REPRESENTATION,
    sqlstates.INVALID_DATETIME_FORMAT,
    sqlstates.DATETIME_FIELD_OVERFLOW,
    sqlstates.NUMERIC_VALUE_OUT_OF_RANGE,
)
_CALL = re.compile(r"function (?P<name>[^\s(]+)(?P<signature>\(.*\))? does not exist", re.S)
_TYPE = re.compile(r'type "(?P<name>.*?)(?:\[\])*" does not exist')
_POSITION = re.compile(r"position (\d+) is")
_MISSING = re.compile(r'missing FROM-clause entry for table "(?P<name>.*)"')
_HINTED = re.compile(r'column "([^".]+)"')
_UNGROUPED = re.compile(r'column "(.*?)" must appear')


def locate(error: SqlError, tree: exp.Expr, text: str | None) -> None:
    """Gives the error its position; ``tree`` is the query as parsed, ``text`` its statement's where that is known."""
    if error.position is not None:
        return
    at: int | None = None
    if error.sqlstate in (sqlstates.UNDEFINED_COLUMN, sqlstates.AMBIGUOUS_COLUMN):
        at = _named(error, tree)
    elif error.sqlstate == sqlstates.UNDEFINED_TABLE:
        at = _source(error, tree)
    elif error.sqlstate == sqlstates.INVALID_COLUMN_REFERENCE:
        at = _number(error, tree)
    elif error.sqlstate in (sqlstates.GROUPING_ERROR, sqlstates.WINDOWING_ERROR):
        at = _misplaced(error, tree) if "function" in error.message[:30] else _ungrouped(error, tree)
    elif error.sqlstate == sqlstates.UNDEFINED_FUNCTION:
        at = _call(error, tree)
    elif error.sqlstate == sqlstates.UNDEFINED_OBJECT:
        at = _collation(tree, text) if error.message.startswith("collation") else _type(error.message, tree)
    elif error.sqlstate == sqlstates.SYNTAX_ERROR and error.message == TOO_WIDE:
        at = _sub_query(error, tree, text)
    elif error.sqlstate in _LITERAL_ERRORS:
        at = _literal(error.message, tree)
    if at is not None:
        error.position = at + 1


# --- columns --------------------------------------------------------------------------------------------------------
def _named(error: SqlError, tree: exp.Expr) -> int | None:
    found = _mentioned(error.message, tree)
    if found is None:
        return None
    table = _only_source(found)
    if error.hint is not None and table and not found.table:
        error.hint = _HINTED.sub(rf'column "{table}.\1"', error.hint)
    return _first(found)


def _mentioned(message: str, tree: exp.Expr) -> exp.Column | None:
    """The column that the message names, and that is in a text."""
    for column in tree.find_all(exp.Column):
        written = any("start" in part.meta for part in column.find_all(exp.Identifier))
        if written and isinstance(column.this, exp.Identifier) and _mentions(message, column.this):
            return column
    return None


def _first(node: exp.Expr) -> int:
    return min(int(part.meta["start"]) for part in node.walk() if "start" in part.meta)


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
    calls = [node for node in tree.walk() if "start" in node.meta and name in (_written(node), _known_as(node))]
    if not calls or (match["signature"] is not None and len(calls) > 1):
        return None
    call = min(calls, key=_start)
    written, types = _qualified(call), _argument_types(call)
    if match["signature"] is None and types is not None:
        error.message = f"function {written[1]}({', '.join(types)}) does not exist"
    return written[0]


def _written(node: exp.Expr) -> str | None:
    called = node.meta.get(CALLED)
    return None if called is None else str(called[0])


def _known_as(node: exp.Expr) -> str | None:
    return function_name(node) if isinstance(node, exp.Func) else None


def _qualified(call: exp.Expr) -> tuple[int, str]:
    """Where the call begins, and its name as PostgreSQL shows it, both with its schema."""
    name, start = _written(call) or _known_as(call) or "", _start(call)
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


# --- clauses --------------------------------------------------------------------------------------------------------
def _misplaced(error: SqlError, tree: exp.Expr) -> int | None:
    """Of an aggregate or a window function where none may be, or of an aggregate in another one."""
    calls: Iterator[exp.Expr]
    if "nested" in error.message:
        calls = (call for call in tree.find_all(exp.AggFunc) if call.find_ancestor(exp.AggFunc) is not None)
    else:
        kind = exp.Where if error.message.endswith("WHERE") else exp.Group
        wanted = exp.Window if error.message.startswith("window") else exp.AggFunc
        calls = (call for clause in tree.find_all(kind) for call in clause.find_all(wanted))
    starts = [_start(part) for call in calls for part in call.walk() if "start" in part.meta]
    return min(starts, default=None)


def _number(error: SqlError, tree: exp.Expr) -> int | None:
    """Of ``ORDER BY 9``; DuckDB does not say which number it was, but it must have been the greatest."""
    clause = exp.Order if error.message.startswith("ORDER") else exp.Group
    numbers = [
        node
        for found in tree.find_all(clause)
        for key in found.expressions
        if (node := key.this if isinstance(key, exp.Ordered) else key).is_int and "start" in node.meta
    ]
    named = _POSITION.search(error.message)
    if named is not None:
        numbers = [node for node in numbers if node.name == named[1]]
    if not numbers:
        return None
    found = max(numbers, key=lambda node: int(node.name))
    error.message = f"{error.message.split()[0]} BY position {found.name} is not in select list"
    return _start(found)


def _source(error: SqlError, tree: exp.Expr) -> int | None:
    """Of the column whose table is none of FROM; a table that has an alias is known by it alone."""
    match = _MISSING.fullmatch(error.message)
    if match is None:
        return None
    name = match["name"]
    columns = [column for column in tree.find_all(exp.Column) if column.table.lower() == name.lower()]
    hidden = next((table.alias for table in tree.find_all(exp.Table) if table.name == name and table.alias), None)
    if hidden:
        error.message = f'invalid reference to FROM-clause entry for table "{name}"'
        error.hint = f'Perhaps you meant to reference the table alias "{hidden}".'
    return min(map(_first, columns), default=None)


def _collation(tree: exp.Expr, text: str | None) -> int | None:
    found = list(tree.find_all(exp.Collate))
    if len(found) != 1 or text is None or not operators.is_of(tree, text):
        return None
    return operators.place(found[0], text)


def _sub_query(error: SqlError, tree: exp.Expr, text: str | None) -> int | None:
    """Of one that gives more columns than its place has."""
    wide = [
        query for query in tree.find_all(exp.Select) if query is not tree and len(query.expressions) > 1
        and isinstance(query.parent, exp.Subquery | exp.In)
    ]  # fmt: skip
    compared = [query.find_ancestor(exp.In) for query in wide]
    if len(wide) != 1 or text is None or not operators.is_of(tree, text):
        return None
    inside = compared[0]
    if inside is not None and inside.args.get("query") is not None:
        error.message = "subquery has too many columns"
        return operators.place(inside, text)
    return text.rfind("(", 0, _first(wide[0]))


# --- columns of GROUP BY --------------------------------------------------------------------------------------------
def _ungrouped(error: SqlError, tree: exp.Expr) -> int | None:
    """PostgreSQL names the column with its table; one that is in no text came from a star."""
    match = _UNGROUPED.match(error.message)
    if match is None:
        return None
    named = [
        column
        for column in tree.find_all(exp.Column)
        if isinstance(column.this, exp.Identifier)
        and _mentions(error.message, column.this)
        and column.find_ancestor(exp.Group) is None
    ]
    column = next((each for each in named if each.find_ancestor(exp.AggFunc) is None), named[0] if named else None)
    if column is not None:
        at, table = _first(column), column.table or _only_source(column)
    else:
        star = next((node for node in tree.find_all(exp.Star) if isinstance(node.parent, exp.Select)), None)
        if star is None:
            return None
        at, table = _start(star), _only_source(star)
    if table:
        error.message = error.message.replace(f'"{match[1]}"', f'"{table}.{match[1]}"', 1)
    return at


def _only_source(node: exp.Expr) -> str | None:
    select = node.find_ancestor(exp.Select)
    if select is None or select.args.get("from_") is None or select.args.get("joins"):
        return None
    return str(select.args["from_"].this.alias_or_name)


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
