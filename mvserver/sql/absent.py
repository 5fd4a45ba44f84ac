"""DROP ... IF EXISTS of sequences, procedures, triggers and the like: scripts begin with it, though there are none."""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads, StatementParser
from mvserver.sql.lexer import END, IDENTIFIER, WORD
from mvserver.sql.names import cascade, identifier, if_exists, listed, object_name
from mvserver.sql.statements.absent import ArgumentType, DropAbsent
from mvserver.sql.statements.base import ObjectName, Statement
from mvserver.sql.typenames import type_name

_FUNCTIONS_HINT = "Use the built-in functions."
_QUALIFIED = ("sequence", "domain", "foreign table", "statistics")
_PLAIN = ("extension", "publication", "subscription", "server", "event trigger")
_FUNCTIONS = ("procedure", "routine")
_ON_RELATIONS = ("trigger", "rule", "policy")

_MODES = frozenset({"in", "out", "inout", "variadic"})
_SYSTEM_NAMES = {
    "int": "int4", "integer": "int4", "smallint": "int2", "bigint": "int8", "real": "float4", "float": "float8",
    "double precision": "float8", "decimal": "numeric", "dec": "numeric", "numeric": "numeric", "boolean": "bool",
    "char": "bpchar", "character": "bpchar", "varchar": "varchar", "character varying": "varchar",
    "char varying": "varchar", "timestamp": "timestamp", "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz", "time": "time", "time without time zone": "time",
    "time with time zone": "timetz", "interval": "interval", "bit": "bit", "bit varying": "varbit",
}  # fmt: skip


def _refused(cursor: Cursor, what: str, hint: str | None) -> Exception:
    cursor.reset(cursor.mark - 1 - len(what.split()))
    return cursor.not_supported(f"DROP {what.upper()} is not supported", hint=hint)


def _of_names(what: str) -> StatementParser:
    def parse(cursor: Cursor) -> Statement:
        if not if_exists(cursor):
            raise _refused(cursor, what, None)
        names = listed(cursor, object_name if what in _QUALIFIED else _plain)
        cascade(cursor)
        return DropAbsent(what, names)

    return parse


def _plain(cursor: Cursor) -> ObjectName:
    position = cursor.current.position
    return ObjectName((identifier(cursor),), position)


def _on_relation(what: str) -> StatementParser:
    def parse(cursor: Cursor) -> Statement:
        if not if_exists(cursor):
            raise _refused(cursor, what, None)
        name = _plain(cursor)
        cursor.expect_word("on")
        relation = object_name(cursor)
        cascade(cursor)
        return DropAbsent(what, (name,), on=relation)

    return parse


def _of_functions(what: str) -> StatementParser:
    def one(cursor: Cursor) -> tuple[ObjectName, tuple[ArgumentType, ...]]:
        name = object_name(cursor)
        if not cursor.accept_operator("("):
            return name, ()
        return name, argument_types(cursor)

    def parse(cursor: Cursor) -> Statement:
        if not if_exists(cursor):
            raise _refused(cursor, what, _FUNCTIONS_HINT)
        found = listed(cursor, one)
        cascade(cursor)
        return DropAbsent(what, tuple(name for name, _ in found), tuple(types for _, types in found))

    return parse


def argument_types(cursor: Cursor) -> tuple[ArgumentType, ...]:
    """``[mode] [name] type, ...)``, without those that are OUT."""
    found: list[ArgumentType] = []
    if cursor.accept_operator("*"):
        cursor.expect_operator(")")
        return ()
    if cursor.accept_operator(")"):
        return ()
    while True:
        mode = cursor.advance().text if cursor.at_any(_MODES) else "in"
        argument = _argument(cursor)
        if mode != "out":
            found.append(argument)
        if cursor.accept_operator(")"):
            return tuple(found)
        cursor.expect_operator(",")


def _argument(cursor: Cursor) -> ArgumentType:
    first = cursor.current
    if cursor.at_word("array") and cursor.peek().text == "<":
        element = type_name(cursor).element
        spellings = ("text",) if element is None else element.kind.row.spellings or ("numeric",)
        return ArgumentType(ObjectName(("pg_catalog", spellings[0].lower()), first.position), array=True)
    parts = [_word(cursor)]
    while cursor.accept_operator("."):
        parts.append(_word(cursor))
    words = [".".join(parts)]
    array = _modifiers(cursor)
    while cursor.current.kind in (WORD, IDENTIFIER):
        words.append(_word(cursor))
        array = _modifiers(cursor) or array
    if len(parts) > 1:
        if len(words) > 1:
            raise cursor.syntax_error(first)
        return ArgumentType(ObjectName(tuple(parts), first.position), array)
    for spelled in (" ".join(words), " ".join(words[1:])):  # a name may stand before the type
        known = _SYSTEM_NAMES.get(spelled)
        if known is not None:
            return ArgumentType(ObjectName(("pg_catalog", known), first.position), array)
    if len(words) > 2:
        raise cursor.syntax_error(first)
    return ArgumentType(ObjectName((words[-1],), first.position), array)


def _word(cursor: Cursor) -> str:
    if cursor.current.kind not in (WORD, IDENTIFIER):
        raise cursor.syntax_error()
    return cursor.advance().text


def _modifiers(cursor: Cursor) -> bool:
    """``(10, 2)`` and ``[]`` behind a type; whether it is an array."""
    if cursor.accept_operator("("):
        while not cursor.accept_operator(")"):
            if cursor.current.kind is END:
                raise cursor.syntax_error()
            cursor.advance()
    array = False
    while cursor.accept_operator("["):
        if not cursor.at_operator("]"):
            cursor.advance()
        cursor.expect_operator("]")
        array = True
    return array


def _heads() -> Heads:
    parsers: dict[tuple[str, ...], StatementParser] = {}
    for kinds, parser in (
        ((*_QUALIFIED, *_PLAIN), _of_names),
        (_FUNCTIONS, _of_functions),
        (_ON_RELATIONS, _on_relation),
    ):
        for what in kinds:
            parsers["drop", *what.split()] = parser(what)
    return parsers


HEADS: Heads = _heads()
