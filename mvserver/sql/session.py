"""Statements on the session: settings, transactions, prepared statements."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from mvserver.quoting import quoted
from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads, StatementParser
from mvserver.sql.lexer import END, IDENTIFIER, NUMBER, STRING, WORD, Token
from mvserver.sql.names import NOT_A_NAME, identifier, label
from mvserver.sql.pull import pull_expression
from mvserver.sql.split import StatementTokens
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.queries import Pull
from mvserver.sql.statements.settings import (
    Deallocate,
    Discard,
    ExecutePrepared,
    Prepare,
    Reset,
    Set,
    SetTransaction,
    Show,
    Unlisten,
)
from mvserver.sql.statements.transactions import (
    Begin,
    Commit,
    ReleaseSavepoint,
    Rollback,
    RollbackToSavepoint,
    Savepoint,
)

_BARE = re.compile(r"[a-z_][a-z0-9_$]*\Z")
_PREPARABLE = frozenset({"select", "with", "values", "table", "("})
_LISTS = frozenset({"search_path", "temp_tablespaces"})  # settings whose parts are names


# --- SET, SHOW, RESET, DISCARD --------------------------------------------------------------------------------------
def assignment(cursor: Cursor) -> Statement:
    """What follows the word SET."""
    if cursor.accept_word("session", "characteristics"):
        cursor.expect_word("as", "transaction")
        isolation, read_only = _modes(cursor, required=True)
        return SetTransaction(isolation, read_only, session=True)
    if cursor.at_word("transaction"):
        cursor.advance()
        if cursor.at_word("snapshot"):
            raise cursor.not_supported("SET TRANSACTION SNAPSHOT is not supported")
        isolation, read_only = _modes(cursor, required=True)
        return SetTransaction(isolation, read_only)
    if cursor.at_word("constraints"):
        raise cursor.not_supported("SET CONSTRAINTS is not supported")
    if cursor.at_word("default") and cursor.peek().kind is WORD and cursor.peek().text != "to":
        raise cursor.not_supported("SET DEFAULT is not supported", hint="Use USE DATABASE, USE SCHEMA or USE STORE.")
    local = False
    if cursor.at_any({"local", "session"}) and cursor.peek().text not in ("=", "to", "."):
        local = cursor.advance().text == "local"
    if cursor.at_word("session", "authorization") or cursor.at_word("authorization"):
        raise cursor.not_supported("SET SESSION AUTHORIZATION is not supported", hint="Use SET ROLE.")
    if cursor.accept_word("time", "zone"):
        return Set("timezone", _time_zone(cursor), local)
    if cursor.accept_word("names"):
        if cursor.current.kind is STRING:
            return Set("client_encoding", cursor.advance().text, local)
        cursor.accept_word("default")
        return Set("client_encoding", None, local)
    if cursor.at_word("schema") and cursor.peek().kind is STRING:
        cursor.advance()
        return Set("search_path", _quoted(cursor.advance().text), local)
    if cursor.at_word("role") and cursor.peek().text not in ("=", "to"):
        cursor.advance()
        return Set("role", _name_or_text(cursor), local)
    if cursor.at_word("xml", "option"):
        raise cursor.not_supported("SET XML OPTION is not supported")
    name = _setting_name(cursor)
    if not cursor.accept_operator("="):
        cursor.expect_word("to")
    if cursor.accept_word("default"):
        return Set(name, None, local)
    return Set(name, _setting_value(cursor, name), local)


def _setting_name(cursor: Cursor) -> str:
    parts = [identifier(cursor)]
    while cursor.accept_operator("."):
        parts.append(label(cursor))
    return ".".join(parts).lower()


def _setting_value(cursor: Cursor, name: str) -> str:
    values = [_one_value(cursor, name in _LISTS)]
    while cursor.accept_operator(","):
        values.append(_one_value(cursor, name in _LISTS))
    return ", ".join(values)


def _one_value(cursor: Cursor, is_name: bool) -> str:
    sign = ""
    if cursor.at_operator("-") or cursor.at_operator("+"):
        sign = "-" if cursor.advance().text == "-" else ""
        if cursor.current.kind is not NUMBER:
            raise cursor.syntax_error()
    token = cursor.current
    if token.kind is NUMBER:
        return sign + cursor.advance().text
    if token.kind in (STRING, IDENTIFIER):
        cursor.advance()
        return _quoted(token.text) if is_name else token.text
    if token.kind is WORD and (token.text not in NOT_A_NAME or token.text in ("true", "false", "on")):
        return cursor.advance().text
    raise cursor.syntax_error()


def _quoted(name: str) -> str:
    """A name as an item of a list of names."""
    return name if _BARE.match(name) else quoted(name)


def _name_or_text(cursor: Cursor) -> str:
    if cursor.current.kind is STRING:
        return cursor.advance().text
    return identifier(cursor)


def _time_zone(cursor: Cursor) -> str | None:
    if cursor.accept_word("local") or cursor.accept_word("default"):
        return None
    if cursor.at_word("interval"):
        raise cursor.not_supported("SET TIME ZONE INTERVAL is not supported", hint="Give a zone name, as in 'UTC'.")
    return _one_value(cursor, is_name=False)


def _special_name(cursor: Cursor) -> str | None:
    """The settings that are spelled as several words."""
    if cursor.accept_word("time", "zone"):
        return "timezone"
    if cursor.accept_word("transaction", "isolation", "level"):
        return "transaction_isolation"
    if cursor.accept_word("session", "authorization"):
        return "session_authorization"
    return None


def _show(cursor: Cursor) -> Statement:
    if cursor.accept_word("all"):
        return Show("all")
    return Show(_special_name(cursor) or _setting_name(cursor))


def reset(cursor: Cursor) -> Reset:
    """What follows the word RESET."""
    if cursor.accept_word("all"):
        return Reset("all")
    return Reset(_special_name(cursor) or _setting_name(cursor))


def _discard(cursor: Cursor) -> Statement:
    what = cursor.expect_any("all", "plans", "sequences", "temp", "temporary")
    return Discard("temp" if what == "temporary" else what)


def _unlisten(cursor: Cursor) -> Statement:
    if not cursor.accept_operator("*"):
        identifier(cursor)
    return Unlisten()


# --- transactions ---------------------------------------------------------------------------------------------------
def _modes(cursor: Cursor, *, required: bool) -> tuple[str | None, bool | None]:
    """``ISOLATION LEVEL x``, ``READ ONLY`` and so on, with or without commas; the last of a kind wins."""
    isolation: str | None = None
    read_only: bool | None = None
    first = True
    while True:
        if cursor.accept_word("isolation", "level"):
            isolation = _level(cursor)
        elif cursor.at_word("read"):
            cursor.advance()
            read_only = cursor.expect_any("only", "write") == "only"
        elif cursor.accept_word("not", "deferrable") or cursor.accept_word("deferrable"):
            pass  # nothing is ever deferred here
        elif first and not required:
            return None, None
        else:
            raise cursor.syntax_error()
        first = False
        if not cursor.accept_operator(",") and cursor.at_end:
            return isolation, read_only


def _level(cursor: Cursor) -> str:
    word = cursor.expect_any("serializable", "repeatable", "read")
    if word == "serializable":
        return word
    if word == "repeatable":
        cursor.expect_word("read")
        return "repeatable read"
    return "read " + cursor.expect_any("committed", "uncommitted")


def _work(cursor: Cursor) -> None:
    if not cursor.accept_word("work"):
        cursor.accept_word("transaction")


def _begin(cursor: Cursor) -> Statement:
    _work(cursor)
    return Begin(*_modes(cursor, required=False))


def _start_transaction(cursor: Cursor) -> Statement:
    return Begin(*_modes(cursor, required=False))


def _chain(cursor: Cursor) -> bool:
    if not cursor.accept_word("and"):
        return False
    chain = not cursor.accept_word("no")
    cursor.expect_word("chain")
    return chain


def _commit(cursor: Cursor) -> Statement:
    _refuse_two_phase(cursor)
    _work(cursor)
    return Commit(_chain(cursor))


def _rollback(cursor: Cursor) -> Statement:
    _refuse_two_phase(cursor)
    _work(cursor)
    if cursor.accept_word("to"):
        cursor.accept_word("savepoint")
        return RollbackToSavepoint(identifier(cursor))
    return Rollback(_chain(cursor))


def _refuse_two_phase(cursor: Cursor) -> None:
    if cursor.at_word("prepared"):
        raise cursor.not_supported("two-phase commit is not supported", token=cursor.current)


def _savepoint(cursor: Cursor) -> Statement:
    return Savepoint(identifier(cursor))


def _release(cursor: Cursor) -> Statement:
    if cursor.at_word("savepoint") and cursor.peek().kind is not END:
        cursor.advance()
    return ReleaseSavepoint(identifier(cursor))


# --- prepared statements --------------------------------------------------------------------------------------------
def _execute(cursor: Cursor) -> Statement:
    name = identifier(cursor)
    if not cursor.accept_operator("("):
        return ExecutePrepared(name)
    arguments: list[exp.Expression] = []
    while True:
        arguments.append(_argument(cursor))
        if cursor.accept_operator(")"):
            return ExecutePrepared(name, tuple(arguments))
        cursor.expect_operator(",")


def _argument(cursor: Cursor) -> exp.Expression:
    """One expression: up to the comma or bracket that ends it."""
    tokens: list[Token] = []
    depth = 0
    while not cursor.at_end:
        text = cursor.current.text if cursor.current.kind.name == "OPERATOR" else ""
        if depth == 0 and text in (",", ")"):
            break
        depth += 1 if text in ("(", "[") else -1 if text in (")", "]") else 0
        tokens.append(cursor.advance())
    if not tokens or cursor.at_end:
        raise cursor.syntax_error()
    end = cursor.current
    tokens.append(Token(END, end.text, end.start, end.end))
    return pull_expression(StatementTokens(cursor.source, tokens))


def _deallocate(cursor: Cursor) -> Statement:
    if cursor.at_word("prepare") and cursor.peek().kind is not END:
        cursor.advance()
    if cursor.accept_word("all"):
        return Deallocate(None)
    return Deallocate(identifier(cursor))


def _prepare(nested: StatementParser) -> Callable[[Cursor], Statement]:
    def parse(cursor: Cursor) -> Statement:
        if cursor.at_word("transaction") and cursor.peek().kind is STRING:
            raise cursor.not_supported("two-phase commit is not supported")
        name = identifier(cursor)
        types = _types(cursor)
        cursor.expect_word("as")
        token = cursor.current
        statement = nested(cursor) if token.text in _PREPARABLE else None
        if not isinstance(statement, Pull):
            raise cursor.syntax_error(token)
        return Prepare(name, types, statement.text, statement.start)

    return parse


def _types(cursor: Cursor) -> tuple[str, ...]:
    """``(integer, varchar(10), double precision)`` as written, folded; the session knows what they are."""
    if not cursor.accept_operator("("):
        return ()
    types: list[str] = []
    while True:
        parts: list[str] = []
        depth = 0
        while depth or not (cursor.at_operator(",") or cursor.at_operator(")")):
            if cursor.at_end or (not parts and not cursor.at_name()):
                raise cursor.syntax_error()
            depth += {"(": 1, ")": -1}.get(cursor.current.text, 0)
            parts.append(cursor.advance().text)
        if not parts:
            raise cursor.syntax_error()
        types.append(re.sub(r" ?([\[\](),.]) ?", r"\1", " ".join(parts)))
        if cursor.accept_operator(")"):
            return tuple(types)
        cursor.expect_operator(",")


def heads(nested: StatementParser) -> Heads:
    """The table; ``nested`` reads any statement at the cursor."""
    return {
        ("set",): assignment,
        ("show",): _show,
        ("reset",): reset,
        ("discard",): _discard,
        ("unlisten",): _unlisten,
        ("begin",): _begin,
        ("start", "transaction"): _start_transaction,
        ("commit",): _commit,
        ("end",): _commit,
        ("rollback",): _rollback,
        ("abort",): _rollback,
        ("savepoint",): _savepoint,
        ("release",): _release,
        ("prepare",): _prepare(nested),
        ("execute",): _execute,
        ("deallocate",): _deallocate,
    }
