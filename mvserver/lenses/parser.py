"""A text to a program. Each statement is read for itself, so the errors of all of them are told together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.lenses.cursor import Cursor
from mvserver.lenses.lexer import Token, TokenKind, tokenize
from mvserver.lenses.problems import Problems, problem, unsupported
from mvserver.lenses.program import Insert, Program, SetKey, With
from mvserver.lenses.selects import select
from mvserver.sql import guard

FORMATS = ("INT", "LONG", "STRING", "JSON", "AVRO", "CSV", "XML", "PROTOBUF", "BYTES")
_FUNCTION = "Make it outside of the program; docs/sql/own-functions.md says how. The program calls it by its name."
_STATEMENT_HINT = "A program has SET key = value, WITH name AS (SELECT ...) and INSERT INTO target SELECT ..."
_WHOLE_HINT = (
    "A program is sent as one text. A client that sends each statement by itself, as psql, sends LENSES $$ program $$."
)
_INSERT = r"""INSERT\s+INTO\s+\S+\s+(?:STORE\s+(?:KEY|VALUE)\b|SELECT\s+(?:STREAM|TABLE)\b)"""
_HAS_INSERT = re.compile(_INSERT, re.IGNORECASE)
_SETS = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*+SET\s", re.IGNORECASE | re.DOTALL)
_BEGINS = re.compile(
    r"""(?:\s|--[^\n]*\n|/\*.*?\*/)*+
    (?: SET\s+(?:defaults\.|topic\.|error\.policy|dead\.letter|auto\.offset|commit\.interval|processing\.|
        enable\.auto|rocksdb\.)
      | WITH\s+\S+\s+AS\s*\(\s*SELECT\s+(?:STREAM|TABLE)\b
      | """
    + _INSERT
    + ")",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def is_program(text: str) -> bool:
    """Whether a text begins as a program does; else it is of the first dialect."""
    if _BEGINS.match(text) is not None:
        return True
    return _SETS.match(text) is not None and _HAS_INSERT.search(text) is not None


def parse_program(text: str, problems: Problems) -> Program:
    """What is wrong is in ``problems``; the parts that could be read are in the program."""
    guard.check_size(text)
    tokens = tokenize(text, problems)
    settings: list[SetKey] = []
    withs: list[With] = []
    inserts: list[Insert] = []
    unread: list[str] = []
    statements = list(_split(tokens))
    if len(statements) > limits.LENSES_STATEMENTS_MAX:
        raise SqlError(
            sqlstates.PROGRAM_LIMIT_EXCEEDED,
            f"a program has at most {limits.LENSES_STATEMENTS_MAX} statements",
            hint="Split it into several processors.",
        )
    for part in statements:
        told = len(list(problems))
        with problems.collecting(), guard.no_recursion_error(part[0].place.offset + 1):
            statement = _statement(Cursor(text, part))
            if isinstance(statement, SetKey):
                settings.append(statement)
            elif isinstance(statement, With):
                withs.append(statement)
            else:
                inserts.append(statement)
        if len(list(problems)) > told and part[0].word == "with":
            unread += [token.text for token in part[1:2]]
    if not inserts and not problems:
        with problems.collecting():
            raise problem(tokens[-1].place, sqlstates.SYNTAX_ERROR, "the program has no INSERT INTO", _WHOLE_HINT)
    return Program(text, tuple(settings), tuple(withs), tuple(inserts), tuple(unread))


def _split(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Statements end at semicolons outside of brackets; one that begins a line anew ends an open bracket."""
    begin = depth = 0
    for index, token in enumerate(tokens):
        if token.kind is TokenKind.OPERATOR:
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        ends = token.kind is TokenKind.END or (
            token.kind is TokenKind.SEMICOLON and (depth <= 0 or _begins_statement(tokens, index + 1))
        )
        if ends:
            if index > begin:
                yield tokens[begin : index + 1]
            begin, depth = index + 1, 0


def _begins_statement(tokens: Sequence[Token], index: int) -> bool:
    return index < len(tokens) and tokens[index].word in ("set", "with", "insert")


def _statement(cursor: Cursor) -> SetKey | With | Insert:
    if cursor.at_word("set"):
        found: SetKey | With | Insert = _set(cursor)
    elif cursor.at_word("with"):
        found = _with(cursor)
    elif cursor.at_word("insert", "into"):
        found = _insert(cursor)
    elif cursor.at_word("select"):
        raise unsupported(
            cursor.current.place,
            "a SELECT without a target is not supported in a program",
            "Write INSERT INTO target SELECT ..., or give it a name: WITH name AS (SELECT ...);",
        )
    elif cursor.at_word("create", "function") or cursor.at_word("create", "function_source"):
        raise unsupported(cursor.current.place, "CREATE FUNCTION is not supported", _FUNCTION)
    else:
        raise cursor.unexpected(_STATEMENT_HINT[:-1] if _STATEMENT_HINT.endswith(".") else _STATEMENT_HINT)
    if not cursor.at_end():
        raise cursor.unexpected('Statements end with ";"')
    return found


def _set(cursor: Cursor) -> SetKey:
    cursor.advance()
    place = cursor.current.place
    parts = []
    while not cursor.at_operator("=") and not cursor.at_end():
        token = cursor.current
        if token.kind not in (TokenKind.WORD, TokenKind.NAME, TokenKind.NUMBER, TokenKind.OPERATOR):
            raise cursor.unexpected("SET key = value is expected")
        parts.append(f"`{token.text}`" if token.kind is TokenKind.NAME else token.text.lower())
        cursor.advance()
    if not parts:
        raise cursor.unexpected("SET key = value is expected")
    cursor.expect_operator("=")
    value = cursor.current
    if value.kind not in (TokenKind.WORD, TokenKind.STRING, TokenKind.NUMBER, TokenKind.NAME):
        raise cursor.unexpected("A value is expected")
    cursor.advance()
    text = value.text
    if value.kind is TokenKind.WORD:  # a topic's name or a class's may stand without quotes
        while not cursor.at_end() and value.kind is TokenKind.WORD and cursor.current.text in ("-", ".", ","):
            text += cursor.advance().text + cursor.advance().text
    return SetKey("".join(parts), text, place)


def _with(cursor: Cursor) -> With:
    cursor.advance()
    place = cursor.current.place
    name = cursor.topic("a WITH")
    cursor.expect_word("as")
    cursor.expect_operator("(")
    inner = select(cursor)
    if cursor.current.kind is TokenKind.SEMICOLON and cursor.peek().text == ")":
        cursor.advance()
    cursor.expect_operator(")")
    return With(name, inner, place)


def _insert(cursor: Cursor) -> Insert:
    cursor.advance()
    cursor.advance()
    place = cursor.current.place
    target = cursor.topic("a topic")
    key = value = None
    if cursor.accept_word("store"):
        if cursor.accept_word("key"):
            key = _format(cursor)
        if cursor.accept_word("value"):
            value = _format(cursor)
        if key is None and value is None:
            raise cursor.unexpected("KEY AS format or VALUE AS format is expected")
    return Insert(target, key, value, select(cursor), place)


def _format(cursor: Cursor) -> str:
    cursor.expect_word("as")
    name = cursor.current.text.upper()
    if name not in FORMATS:
        raise cursor.unexpected(f"Formats are {', '.join(FORMATS)}")
    cursor.advance()
    return name
