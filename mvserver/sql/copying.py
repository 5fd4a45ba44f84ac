"""COPY to and from the client: what is copied, and its options in PostgreSQL's two grammars, checked as there."""

from __future__ import annotations

from sqlglot import exp

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.quoting import quoted
from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.lexer import END, IDENTIFIER, NUMBER, STRING, WORD, Token
from mvserver.sql.names import identifier, label, listed, object_name
from mvserver.sql.pull import query_statement
from mvserver.sql.split import StatementTokens
from mvserver.sql.statements.base import ObjectName, Statement
from mvserver.sql.statements.copying import CopyFrom, CopyOptions, CopyTo
from mvserver.sql.statements.queries import Pull, Subscribe
from mvserver.sql.subscribe import subscribe

_FORMATS = frozenset({"text", "csv", "binary"})
_NAMES = frozenset(
    {
        "format", "freeze", "delimiter", "null", "header", "quote", "escape", "force_quote", "force_not_null",
        "force_null", "encoding",
    }
)  # fmt: skip
_TRUE, _FALSE = frozenset({"true", "on", "1"}), frozenset({"false", "off", "0"})
_NOT_A_DELIMITER = frozenset("\\.abcdefghijklmnopqrstuvwxyz0123456789")
_UTF8 = frozenset({"utf8", "utf-8", "unicode"})
_CLIENT_FILES = "Anyone can COPY to stdout. psql's \\copy command also works for anyone."

_Value = str | tuple[str, ...] | None
"""An option's value: text, names (none of them for ``*``), or that there is no value."""
_Found = dict[str, tuple[_Value, Token]]


def _copy(cursor: Cursor) -> Statement:
    binary = cursor.previous if cursor.accept_word("binary") else None
    columns: tuple[Token, ...] = ()
    table: ObjectName | None = None
    query: Pull | Subscribe | None = None
    if cursor.at_operator("("):
        query = _query(cursor)
        cursor.expect_word("to")
        is_from = False
    else:
        table = object_name(cursor)
        columns = _columns(cursor)
        is_from = cursor.expect_any("to", "from") == "from"
    _destination(cursor, is_from)
    found: _Found = {}
    if binary is not None:
        found["format"] = ("binary", binary)
    cursor.accept_word("with")
    if cursor.at_operator("("):
        _listed(cursor, found)
    else:
        _spelled(cursor, found)
    if is_from and cursor.at_word("where"):
        raise cursor.not_supported("COPY FROM with WHERE is not supported", hint="Send only the rows that are wanted.")
    cursor.expect_end()
    options = _options(found, is_from)
    if is_from and table is not None:
        return CopyFrom(table, tuple(token.text for token in columns), options)
    if query is None and table is not None:
        query = _whole(table, columns)
    if query is None:
        raise cursor.syntax_error()
    return CopyTo(query, options)


def _destination(cursor: Cursor, is_from: bool) -> None:
    token = cursor.current
    if cursor.accept_word("program"):
        cursor.expect_string()
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE,
            "COPY to or from an external program is not permitted",
            hint=_CLIENT_FILES,
            position=token.position,
        )
    if token.kind is STRING:
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE,
            f"COPY {'from' if is_from else 'to'} a file of the server is not permitted",
            hint=_CLIENT_FILES,
            position=token.position,
        )
    cursor.expect_any("stdout", "stdin")


# --- what is copied -------------------------------------------------------------------------------------------------
def _query(cursor: Cursor) -> Pull | Subscribe:
    """``( select )`` or ``( subscribe )``, up to its closing bracket."""
    cursor.expect_operator("(")
    tokens: list[Token] = []
    depth = 0
    while depth or not cursor.at_operator(")"):
        if cursor.at_end:
            raise cursor.syntax_error()
        depth += {"(": 1, ")": -1}.get(cursor.raw(cursor.current), 0)
        tokens.append(cursor.advance())
    end = cursor.current
    if not tokens:
        raise cursor.syntax_error()
    cursor.advance()
    inner = StatementTokens(cursor.source, [*tokens, Token(END, end.text, end.start, end.end)])
    if tokens[0].text == "subscribe":
        return _subscribe(Cursor(inner, 1))
    if tokens[0].text not in ("select", "with", "values", "table", "("):
        raise cursor.syntax_error(tokens[0])
    return query_statement(inner)


def _subscribe(cursor: Cursor) -> Subscribe:
    """Behind its first word."""
    statement = subscribe(cursor)
    cursor.expect_end()
    assert isinstance(statement, Subscribe)  # noqa: S101 - just read
    return statement


def _columns(cursor: Cursor) -> tuple[Token, ...]:
    """``(a, b)`` behind the relation's name, or nothing."""
    if not cursor.accept_operator("("):
        return ()
    columns: list[Token] = []
    while True:
        token = cursor.current
        name = identifier(cursor)
        if any(name == other.text for other in columns):
            raise SqlError(
                sqlstates.DUPLICATE_COLUMN, f'column "{name}" specified more than once', position=token.position
            )
        columns.append(token)
        if cursor.accept_operator(")"):
            return tuple(columns)
        cursor.expect_operator(",")


def _whole(table: ObjectName, columns: tuple[Token, ...]) -> Pull:
    """All rows of a relation, as the SELECT that it stands for."""
    parts = [exp.to_identifier(part, quoted=True) for part in table.parts]
    if table.position is not None:
        parts[0].meta["start"] = table.position - 1
    schema = parts[-2] if len(parts) > 1 else None
    database = parts[-3] if len(parts) > 2 else None
    named: list[exp.Expression] = [exp.Star()]
    if columns:
        named = [exp.Column(this=_at(token)) for token in columns]
    select = exp.Select(expressions=named).from_(exp.Table(this=parts[-1], db=schema, catalog=database))
    shown = ", ".join(quoted(token.text) for token in columns) or "*"
    return Pull(select, text=f"SELECT {shown} FROM {'.'.join(map(quoted, table.parts))}")


def _at(token: Token) -> exp.Identifier:
    made: exp.Identifier = exp.to_identifier(token.text, quoted=True)
    made.meta["start"] = token.start
    return made


# --- reading options ------------------------------------------------------------------------------------------------
def _listed(cursor: Cursor, found: _Found) -> None:
    """``(FORMAT csv, HEADER, FORCE_QUOTE (a, b))``."""
    cursor.expect_operator("(")
    while True:
        token = cursor.current
        name = label(cursor)
        if name not in _NAMES:
            raise SqlError(sqlstates.SYNTAX_ERROR, f'option "{name}" not recognized', position=token.position)
        _add(found, name, _argument(cursor), token)
        if cursor.accept_operator(")"):
            return
        cursor.expect_operator(",")


def _argument(cursor: Cursor) -> _Value:
    if cursor.accept_operator("*"):
        return ()
    if cursor.at_operator("("):
        return _names(cursor)
    if cursor.current.kind in (WORD, IDENTIFIER, STRING, NUMBER):
        return cursor.advance().text
    if cursor.at_operator(",") or cursor.at_operator(")"):
        return None
    raise cursor.syntax_error()


def _names(cursor: Cursor) -> tuple[str, ...]:
    return tuple(token.text for token in _columns(cursor))


def _spelled(cursor: Cursor, found: _Found) -> None:
    """``CSV HEADER DELIMITER AS ';'``, as before PostgreSQL 9.0; psql's users still write it."""
    while not (cursor.at_end or cursor.at_word("where")):
        token = cursor.current
        word = cursor.expect_any(
            "binary", "csv", "freeze", "header", "delimiter", "null", "quote", "escape", "encoding", "force"
        )
        if word in ("binary", "csv"):
            _add(found, "format", word, token)
        elif word in ("freeze", "header"):
            _add(found, word, None, token)
        elif word == "force":
            kind = "force_" + _forced(cursor)
            _add(found, kind, _force_columns(cursor), token)
        else:
            if word != "encoding":
                cursor.accept_word("as")
            _add(found, word, cursor.expect_string(), token)


def _forced(cursor: Cursor) -> str:
    if cursor.accept_word("not"):
        cursor.expect_word("null")
        return "not_null"
    return cursor.expect_any("quote", "null")


def _force_columns(cursor: Cursor) -> tuple[str, ...]:
    if cursor.accept_operator("*"):
        return ()
    return listed(cursor, identifier)


def _add(found: _Found, name: str, value: _Value, token: Token) -> None:
    if name in found:
        raise SqlError(sqlstates.SYNTAX_ERROR, "conflicting or redundant options", position=token.position)
    found[name] = (value, token)


# --- what they mean -------------------------------------------------------------------------------------------------
def _options(found: _Found, is_from: bool) -> CopyOptions:
    form = _text(found, "format") or "text"
    if form not in _FORMATS:
        raise _invalid(f'COPY format "{form}" not recognized', found["format"][1])
    delimiter, null = _text(found, "delimiter"), _text(found, "null")
    quote, escape = _text(found, "quote"), _text(found, "escape")
    header, match = _header(found, is_from)
    forced, not_null, to_null = (_force(found, name) for name in ("force_quote", "force_not_null", "force_null"))
    _refuse_freeze_and_encodings(found, is_from)
    if form == "binary":
        for name, value in (("DELIMITER", delimiter), ("NULL", null)):
            if value is not None:
                raise SqlError(sqlstates.SYNTAX_ERROR, f"cannot specify {name} in BINARY mode")
        if header:
            raise _unsupported("cannot specify HEADER in BINARY mode")
    if form != "csv":
        given = {"quote": quote, "escape": escape, "force quote": forced, "force not null": not_null}
        for name, option in {**given, "force null": to_null}.items():
            if option is not None:
                raise _unsupported(f"COPY {name} available only in CSV mode")
    for name, columns, other in (
        ("force quote", forced if is_from else None, "TO"),
        ("force not null", None if is_from else not_null, "FROM"),
        ("force null", None if is_from else to_null, "FROM"),
    ):
        if columns is not None:
            raise _unsupported(f"COPY {name} only available using COPY {other}")
    csv = form == "csv"
    quote = '"' if quote is None else quote
    options = CopyOptions(
        form,
        ("," if csv else "\t") if delimiter is None else delimiter,
        ("" if csv else "\\N") if null is None else null,
        header,
        quote,
        quote if escape is None else escape,
        forced,
        match,
        not_null,
        to_null,
    )
    _check(options)
    return options


def _check(options: CopyOptions) -> None:
    """The rules for single characters, in PostgreSQL's order."""
    csv = options.format == "csv"
    if len(options.delimiter.encode()) != 1:
        raise _unsupported("COPY delimiter must be a single one-byte character")
    if options.delimiter in "\r\n":
        raise _invalid("COPY delimiter cannot be newline or carriage return")
    if "\r" in options.null or "\n" in options.null:
        raise _invalid("COPY null representation cannot use newline or carriage return")
    if not csv and options.delimiter in _NOT_A_DELIMITER:
        raise _invalid(f'COPY delimiter cannot be "{options.delimiter}"')
    if csv:
        if len(options.quote.encode()) != 1:
            raise _unsupported("COPY quote must be a single one-byte character")
        if options.delimiter == options.quote:
            raise _invalid("COPY delimiter and quote must be different")
        if len(options.escape.encode()) != 1:
            raise _unsupported("COPY escape must be a single one-byte character")
    if options.delimiter in options.null:
        raise _unsupported("COPY delimiter must not appear in the NULL specification")
    if csv and options.quote in options.null:
        raise _unsupported("CSV quote character must not appear in the NULL specification")


def _text(found: _Found, name: str) -> str | None:
    if name not in found:
        return None
    value, token = found[name]
    if not isinstance(value, str):
        raise SqlError(sqlstates.SYNTAX_ERROR, f"{name} requires a parameter", position=token.position)
    return value


def _header(found: _Found, is_from: bool) -> tuple[bool, bool]:
    """Whether there is one, and whether its names must be the columns'."""
    value, token = found.get("header", ("off", None))
    if value is None or (isinstance(value, str) and value.lower() in _TRUE):
        return True, False
    if isinstance(value, str) and value.lower() in _FALSE:
        return False, False
    if isinstance(value, str) and value.lower() == "match":
        if is_from:
            return True, True
        raise _unsupported('cannot use "match" with HEADER in COPY TO')
    raise SqlError(
        sqlstates.SYNTAX_ERROR,
        'header requires a Boolean value or "match"',
        position=None if token is None else token.position,
    )


def _force(found: _Found, name: str) -> tuple[str, ...] | None:
    if name not in found:
        return None
    value, token = found[name]
    if not isinstance(value, tuple):
        raise _invalid(f'argument to option "{name}" must be a list of column names', token)
    return value


def _refuse_freeze_and_encodings(found: _Found, is_from: bool) -> None:
    if "freeze" in found:
        raise _unsupported("COPY FREEZE is not supported" if is_from else "COPY freeze only available using COPY FROM")
    encoding = _text(found, "encoding")
    if encoding is not None and encoding.lower() not in _UTF8:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'COPY encoding "{encoding}" is not supported',
            hint="The encoding is UTF8.",
            position=found["encoding"][1].position,
        )


def _unsupported(message: str) -> SqlError:
    return SqlError(sqlstates.FEATURE_NOT_SUPPORTED, message)


def _invalid(message: str, token: Token | None = None) -> SqlError:
    return SqlError(sqlstates.INVALID_PARAMETER_VALUE, message, position=None if token is None else token.position)


HEADS: Heads = {("copy",): _copy}
