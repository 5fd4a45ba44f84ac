"""Roles: CREATE, ALTER and DROP ROLE; USER is the same word, but for that a new one may log in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads, StatementParser
from mvserver.sql.lexer import IDENTIFIER, STRING, WORD
from mvserver.sql.names import NOT_A_NAME, identifier, if_exists
from mvserver.sql.statements import AlterRole, CreateRole, DropRole, RoleOptions, Statement

_SPECIAL = frozenset({"current_user", "current_role", "session_user"})
_TRUE_OF_ALL = frozenset({"inherit", "nocreatedb", "nocreaterole", "noreplication", "nobypassrls"})
"""What createuser and pg_dumpall say of a role that has no special rights, and what is so for each that is none."""

_REFUSED = {
    "createdb": "Superusers create databases.",
    "createrole": "Superusers manage roles.",
    "noinherit": "Roles have no members.",
    "in": "Roles have no members.",
    "role": "Roles have no members.",
    "user": "Roles have no members.",
    "admin": "Roles have no members.",
    "replication": "There is nothing to replicate by this protocol.",
    "bypassrls": "There is no row security.",
    "connection": "The number of connections is limited for the server as a whole.",
    "valid": "Take the password away when its time has come: ALTER ROLE name PASSWORD NULL.",
    "sysid": None,
}


def _create(*, login: bool) -> StatementParser:
    def parse(cursor: Cursor) -> Statement:
        if login and cursor.at_word("mapping"):
            raise cursor.not_supported("CREATE USER MAPPING is not supported", hint="Use CREATE STORE.")
        if cursor.at_any(_SPECIAL):
            raise SqlError(
                sqlstates.RESERVED_NAME,
                f"{cursor.current.text.upper()} cannot be used as a role name here",
                position=cursor.current.position,
            )
        name = _role(cursor)
        options = _options(cursor)
        return CreateRole(name, replace(options, login=login) if options.login is None else options)

    return parse


def _alter(cursor: Cursor) -> Statement:
    if cursor.at_word("mapping"):
        raise cursor.not_supported("ALTER USER MAPPING is not supported", hint="Use UPDATE STORE.")
    if cursor.at_word("all"):
        raise cursor.not_supported("ALTER ROLE ALL is not supported")
    if cursor.at_any(_SPECIAL):
        cursor.advance()
        name = None
    else:
        name = _role(cursor)
    if cursor.at_word("rename", "to"):
        raise cursor.not_supported(
            "ALTER ROLE RENAME is not supported", hint="Create a role with the new name and drop the old one."
        )
    if cursor.at_any({"set", "reset"}) or cursor.at_word("in", "database"):
        raise cursor.not_supported(
            "settings of a role are not supported", hint="Give them when connecting, as in options='-c name=value'."
        )
    return AlterRole(name, _options(cursor))


def _drop(cursor: Cursor) -> Statement:
    guarded = if_exists(cursor)
    names = [_dropped(cursor)]
    while cursor.accept_operator(","):
        names.append(_dropped(cursor))
    return DropRole(tuple(names), guarded)


def _dropped(cursor: Cursor) -> str:
    if cursor.at_any(_SPECIAL):
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            "cannot use special role specifier in DROP ROLE",
            position=cursor.current.position,
        )
    return _role(cursor)


def _role(cursor: Cursor) -> str:
    if cursor.at_word("public") or cursor.at_word("none"):
        raise SqlError(
            sqlstates.RESERVED_NAME,
            f'role name "{cursor.current.text}" is reserved',
            position=cursor.current.position,
        )
    return identifier(cursor)


def _options(cursor: Cursor) -> RoleOptions:
    cursor.accept_word("with")
    options = RoleOptions()
    seen: set[str] = set()
    while not cursor.at_end:
        token = cursor.current
        word = token.text if token.kind is WORD else ""
        option = _OPTIONS.get(word)
        subject = word.removeprefix("no") if word.startswith("no") else "password" if word == "encrypted" else word
        if subject in seen:
            raise SqlError(sqlstates.SYNTAX_ERROR, "conflicting or redundant options", position=token.position)
        seen.add(subject)
        if option is not None:
            cursor.advance()
            options = option(cursor, options)
        elif word in _TRUE_OF_ALL:
            cursor.advance()
        elif word in _REFUSED:
            raise cursor.not_supported(f"the option {word.upper()} of a role is not supported", hint=_REFUSED[word])
        elif word == "unencrypted":
            raise cursor.not_supported(
                "UNENCRYPTED PASSWORD is no longer supported",
                hint="Remove UNENCRYPTED to store the password in encrypted form instead.",
            )
        elif token.kind is IDENTIFIER or (word and word not in NOT_A_NAME):
            raise SqlError(sqlstates.SYNTAX_ERROR, f'unrecognized role option "{token.text}"', position=token.position)
        else:
            raise cursor.syntax_error()
    return options


def _encrypted(cursor: Cursor, options: RoleOptions) -> RoleOptions:
    cursor.expect_word("password")
    if cursor.current.kind is not STRING:
        raise cursor.syntax_error()
    return _password(cursor, options)


def _password(cursor: Cursor, options: RoleOptions) -> RoleOptions:
    password = None if cursor.accept_word("null") else cursor.expect_string()
    return replace(options, sets_password=True, password=password)


_OPTIONS: dict[str, Callable[[Cursor, RoleOptions], RoleOptions]] = {
    "superuser": lambda _, options: replace(options, superuser=True),
    "nosuperuser": lambda _, options: replace(options, superuser=False),
    "login": lambda _, options: replace(options, login=True),
    "nologin": lambda _, options: replace(options, login=False),
    "password": _password,
    "encrypted": _encrypted,
}

HEADS: Heads = {
    ("create", "role"): _create(login=False),
    ("create", "user"): _create(login=True),
    ("alter", "role"): _alter,
    ("alter", "user"): _alter,
    ("drop", "role"): _drop,
    ("drop", "user"): _drop,
}
