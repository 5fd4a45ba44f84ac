"""Statements on functions of one's own, in PostgreSQL's spelling."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.absent import argument_types
from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.lexer import IDENTIFIER, OPERATOR, WORD
from mvserver.sql.names import cascade, identifier, if_exists, listed, object_name
from mvserver.sql.properties import at_properties, property_list
from mvserver.sql.statements.absent import ArgumentType
from mvserver.sql.statements.base import NO_PROPERTIES, ObjectName, Properties, Statement
from mvserver.sql.statements.functions import (
    CreateAggregate,
    CreateFunction,
    DescribeFunction,
    DropAggregate,
    DropFunction,
    FunctionName,
    FunctionParameter,
    ListFunctions,
)
from mvserver.sql.typenames import type_name
from mvserver.sql.types import SqlType

_MODES = frozenset({"out", "inout", "variadic"})
_PYTHON = frozenset({"python", "plpython3u"})
_LANGUAGES = "Say LANGUAGE PYTHON, or LANGUAGE JAVA."
_SCALARS = "A function takes values of a record and answers with one value."
_FOLD = (
    "Write the aggregate as one body in Python: CREATE AGGREGATE name(argument type) RETURNS type LANGUAGE PYTHON "
    "AS $$ body $$. Its arguments are the lists of the group's values."
)


class _Options:
    """What follows RETURNS, in any order, each once."""

    def __init__(self) -> None:
        self.language: str | None = None
        self.strict: bool | None = None
        self.volatility: str | None = None
        self.properties: Properties = NO_PROPERTIES
        self.body: tuple[str, int | None] | None = None


def _create(cursor: Cursor, *, or_replace: bool = False, made: type[CreateFunction] = CreateFunction) -> Statement:
    name = object_name(cursor)
    if made is CreateAggregate:
        _refuse_fold(cursor)
    parameters = _parameters(cursor)
    cursor.expect_word("returns")
    position = cursor.current.position
    if cursor.at_word("setof") or cursor.at_word("table") or cursor.at_word("trigger"):
        raise cursor.not_supported(f"RETURNS {cursor.current.text.upper()} is not supported", hint=_SCALARS)
    result = type_name(cursor)
    options = _Options()
    while not cursor.at_end:
        _option(cursor, options)
    if options.language is None:
        raise SqlError(
            sqlstates.INVALID_FUNCTION_DEFINITION, "no language specified", hint=_LANGUAGES,
            position=cursor.current.position,
        )  # fmt: skip
    if options.language == "java":
        _refuse_body(options)
        options.body = ("", None)
    if options.body is None:
        raise SqlError(
            sqlstates.INVALID_FUNCTION_DEFINITION, "no function body specified", hint="Say AS $$ body $$.",
            position=cursor.current.position,
        )  # fmt: skip
    body, start = options.body
    return made(
        name, parameters, result, body, bool(options.strict), or_replace, options.properties, options.language,
        body_start=start, result_position=position,
    )  # fmt: skip


def _refuse_fold(cursor: Cursor) -> None:
    """PostgreSQL's own form: arguments without names, then SFUNC, STYPE and others in brackets."""
    mark, first = cursor.mark, cursor.current
    depth = 0
    while not cursor.at_end:
        word = cursor.advance()
        if word.kind is OPERATOR and word.text in "()":
            depth += 1 if word.text == "(" else -1
            if depth == 0:
                break
    folded = cursor.at_operator("(")
    cursor.reset(mark)
    if folded or cursor.peek().text == "*":
        raise cursor.not_supported("CREATE AGGREGATE with SFUNC and STYPE is not supported", hint=_FOLD, token=first)


def _replace(cursor: Cursor) -> Statement:
    return _create(cursor, or_replace=True)


def _create_aggregate(cursor: Cursor) -> Statement:
    return _create(cursor, made=CreateAggregate)


def _replace_aggregate(cursor: Cursor) -> Statement:
    return _create(cursor, or_replace=True, made=CreateAggregate)


def _option(cursor: Cursor, options: _Options) -> None:
    token = cursor.current
    if cursor.accept_word("language"):
        _once(cursor, options.language is None)
        options.language = _language(cursor)
    elif cursor.at_word("immutable") or cursor.at_word("stable") or cursor.at_word("volatile"):
        _once(cursor, options.volatility is None)
        options.volatility = cursor.advance().text
        if options.volatility != "immutable":
            raise cursor.not_supported(
                f"{options.volatility.upper()} functions are not supported",
                hint="A continuous query may evaluate a record again: the same arguments must give the same answer. "
                "Say IMMUTABLE, or nothing.",
                token=token,
            )
    elif cursor.accept_word("strict") or cursor.accept_word("returns", "null", "on", "null", "input"):
        _once(cursor, options.strict is None)
        options.strict = True
    elif cursor.accept_word("called", "on", "null", "input"):
        _once(cursor, options.strict is None)
        options.strict = False
    elif at_properties(cursor):
        _once(cursor, options.properties is NO_PROPERTIES)
        cursor.advance()
        options.properties = property_list(cursor)
    elif cursor.accept_word("as"):
        _once(cursor, options.body is None)
        options.body = _body(cursor)
    else:
        raise cursor.syntax_error()


def _once(cursor: Cursor, first: bool) -> None:
    if not first:
        raise SqlError(sqlstates.SYNTAX_ERROR, "conflicting or redundant options", position=cursor.previous.position)


def _language(cursor: Cursor) -> str:
    token = cursor.current
    name = cursor.expect_string() if not cursor.at_name() else cursor.advance().text
    if name.lower() in _PYTHON:
        return "python"
    if name.lower() == "java":
        return "java"
    if name.lower() in ("sql", "plpgsql", "javascript"):
        raise cursor.not_supported(f"functions in {name.upper()} are not supported", hint=_LANGUAGES, token=token)
    raise SqlError(
        sqlstates.UNDEFINED_OBJECT, f'language "{name}" does not exist', hint=_LANGUAGES,
        position=token.position,
    )  # fmt: skip


def _refuse_body(options: _Options) -> None:
    if options.body is not None:
        raise SqlError(
            sqlstates.INVALID_FUNCTION_DEFINITION,
            "a function in JAVA has no body",
            hint="Say WITH ('source.name' = source, 'class.name' = class).",
        )


def _body(cursor: Cursor) -> tuple[str, int | None]:
    """The text, and where it begins where its characters stand there one by one."""
    token = cursor.current
    raw = cursor.raw(token)
    text = cursor.expect_string()
    if cursor.at_operator(","):
        raise cursor.not_supported("a function of a library is not supported", hint="Write its body: AS $$ body $$.")
    return text, token.start + raw.index("$", 1) + 1 if raw.startswith("$") else None


def _parameters(cursor: Cursor) -> tuple[FunctionParameter, ...]:
    cursor.expect_operator("(")
    if cursor.accept_operator(")"):
        return ()
    found = listed(cursor, _parameter)
    cursor.expect_operator(")")
    return found


def _parameter(cursor: Cursor) -> FunctionParameter:
    if cursor.at_any(_MODES) and cursor.peek().kind in (WORD, IDENTIFIER):
        raise cursor.not_supported(f"{cursor.current.text.upper()} parameters are not supported", hint=_SCALARS)
    if cursor.at_word("in"):
        cursor.advance()
    position = cursor.current.position
    name = identifier(cursor)
    if cursor.at_operator(",") or cursor.at_operator(")"):
        raise cursor.syntax_error(hint="A parameter has a name and a type: the body uses the name.")
    type_ = type_name(cursor)
    if cursor.at_word("default") or cursor.at_operator("="):
        raise cursor.not_supported(
            "defaults of parameters are not supported", hint="Make a second function without it."
        )
    return FunctionParameter(name, type_, position)


def function_name(cursor: Cursor) -> FunctionName:
    """``name`` or ``name(types)``; a parameter's name may stand before its type."""
    name = object_name(cursor)
    if not cursor.accept_operator("("):
        return FunctionName(name.parts, name.position)
    types: tuple[SqlType, ...] = ()
    if not cursor.at_operator(")"):
        types = listed(cursor, _type)
    cursor.expect_operator(")")
    return FunctionName(name.parts, name.position, types)


def _type(cursor: Cursor) -> SqlType:
    if cursor.at_word("in"):
        cursor.advance()
    mark = cursor.mark
    try:
        found = type_name(cursor)
        if cursor.current.kind is OPERATOR:
            return found
    except SqlError:
        if cursor.peek(0).kind is OPERATOR:
            raise
    cursor.reset(mark)  # it was the parameter's name
    identifier(cursor)
    return type_name(cursor)


def _drop(cursor: Cursor, dropped: type[DropFunction] = DropFunction) -> Statement:
    guarded = if_exists(cursor)
    found = listed(cursor, _dropped)
    names, arguments = tuple(name for name, _ in found), tuple(types for _, types in found)
    return dropped(names, arguments, guarded, cascade(cursor))


def _drop_aggregate(cursor: Cursor) -> Statement:
    return _drop(cursor, DropAggregate)


def _dropped(cursor: Cursor) -> tuple[ObjectName, tuple[ArgumentType, ...] | None]:
    name = object_name(cursor)
    return name, argument_types(cursor) if cursor.accept_operator("(") else None


def _list(_: Cursor) -> Statement:
    return ListFunctions()


def _list_aggregates(_: Cursor) -> Statement:
    return ListFunctions(aggregates=True)


def _describe(cursor: Cursor) -> Statement:
    return DescribeFunction(function_name(cursor))


HEADS: Heads = {
    ("create", "function"): _create,
    ("create", "or", "replace", "function"): _replace,
    ("drop", "function"): _drop,
    ("list", "functions"): _list,
    ("show", "functions"): _list,
    ("describe", "function"): _describe,
    ("create", "aggregate"): _create_aggregate,
    ("create", "or", "replace", "aggregate"): _replace_aggregate,
    ("drop", "aggregate"): _drop_aggregate,
    ("list", "aggregates"): _list_aggregates,
    ("show", "aggregates"): _list_aggregates,
    ("describe", "aggregate"): _describe,
}
