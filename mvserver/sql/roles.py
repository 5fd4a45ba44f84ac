"""Roles: CREATE, ALTER, RENAME and DROP ROLE; USER is the same word, but for that a new one may log in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql import session
from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads, StatementParser
from mvserver.sql.lexer import IDENTIFIER, STRING, WORD
from mvserver.sql.names import NOT_A_NAME, identifier, if_exists, listed
from mvserver.sql.statements.base import RoleSpec, Statement
from mvserver.sql.statements.roles import AlterRole, AlterRoleSetting, CreateRole, DropRole, RenameRole, RoleOptions
from mvserver.sql.statements.settings import Set

_SPECIAL = frozenset({"current_user", "current_role", "session_user"})
_AFTER_A_ROLE = frozenset({"with", "granted", "cascade", "restrict", "to", "set", "reset"})
_TRUE_OF_ALL = frozenset({"inherit", "nocreaterole", "noreplication"})
"""What createuser and pg_dumpall say of a role that has no special rights, and what is so for each that is none."""

_REFUSED = {
    "createrole": "Superusers manage roles.",
    "noinherit": "A member has the privileges of its roles without asking for them.",
    "replication": "There is nothing to replicate by this protocol.",
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
        name = role_name(cursor)
        options = _options(cursor, creating=True)
        return CreateRole(name, replace(options, login=login) if options.login is None else options)

    return parse


def _alter(cursor: Cursor) -> Statement:
    if cursor.at_word("mapping"):
        raise cursor.not_supported("ALTER USER MAPPING is not supported", hint="Use UPDATE STORE.")
    if cursor.at_word("all"):
        raise cursor.not_supported("ALTER ROLE ALL is not supported")
    if cursor.at_any(_SPECIAL):
        spec = role_spec(cursor)
    else:
        spec = RoleSpec(role_name(cursor))
        if cursor.accept_word("rename", "to"):
            return RenameRole(spec.name, role_name(cursor))
    if cursor.at_word("in", "database"):
        raise cursor.not_supported(
            "settings of a role in one database are not supported", hint="Leave IN DATABASE out."
        )
    if cursor.accept_word("set"):
        return _setting(cursor, spec)
    if cursor.accept_word("reset"):
        reset = session.reset(cursor)
        return AlterRoleSetting(spec, None if reset.name == "all" else reset.name, None)
    return AlterRole(None if spec.special else spec.name, _options(cursor))


def _setting(cursor: Cursor, spec: RoleSpec) -> Statement:
    start = cursor.current
    if cursor.at_any({"local", "session"}):
        raise cursor.syntax_error()
    given = session.assignment(cursor)
    if not isinstance(given, Set) or given.name in ("role", "session_authorization"):
        raise cursor.not_supported("only settings of a session can be set for a role", token=start)
    return AlterRoleSetting(spec, given.name, given.value)


def _drop(cursor: Cursor) -> Statement:
    guarded = if_exists(cursor)
    return DropRole(listed(cursor, _dropped), guarded)


def _dropped(cursor: Cursor) -> str:
    if cursor.at_any(_SPECIAL):
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            "cannot use special role specifier in DROP ROLE",
            position=cursor.current.position,
        )
    return role_name(cursor)


def role_name(cursor: Cursor) -> str:
    """The name of one role, that is neither PUBLIC nor the current one by another word."""
    if cursor.at_word("public") or cursor.at_word("none"):
        raise SqlError(
            sqlstates.RESERVED_NAME,
            f'role name "{cursor.current.text}" is reserved',
            position=cursor.current.position,
        )
    return identifier(cursor)


def role_spec(cursor: Cursor) -> RoleSpec:
    """A name, PUBLIC, or who asks: ``[ROLE | USER | GROUP] name``."""
    following = cursor.peek()
    if cursor.at_any({"role", "user", "group"}) and (
        following.kind is IDENTIFIER or (following.kind is WORD and following.text not in _AFTER_A_ROLE)
    ):
        cursor.advance()
    position = cursor.current.position
    if cursor.accept_word("public"):
        return RoleSpec(special="public", position=position)
    if cursor.accept_word("session_user"):
        return RoleSpec(special="session", position=position)
    if cursor.at_any(_SPECIAL):
        cursor.advance()
        return RoleSpec(special="current", position=position)
    return RoleSpec(role_name(cursor), position=position)


def _options(cursor: Cursor, *, creating: bool = False) -> RoleOptions:
    cursor.accept_word("with")
    options = RoleOptions()
    seen: set[str] = set()
    while not cursor.at_end:
        token = cursor.current
        word = token.text if token.kind is WORD else ""
        option = _OPTIONS.get(word) or (_MEMBERS.get(word) if creating else None)
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


def _connection_limit(cursor: Cursor, options: RoleOptions) -> RoleOptions:
    cursor.expect_word("limit")
    position = cursor.current.position
    negative = cursor.accept_operator("-")
    limit = -cursor.expect_integer() if negative else cursor.expect_integer()
    if not -1 <= limit < 2**31:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f"invalid connection limit: {limit}", position=position)
    return replace(options, connection_limit=limit)


def _valid_until(cursor: Cursor, options: RoleOptions) -> RoleOptions:
    cursor.expect_word("until")
    return replace(options, valid_until="infinity" if cursor.accept_word("null") else cursor.expect_string())


def _in_roles(cursor: Cursor, options: RoleOptions) -> RoleOptions:
    cursor.expect_any("role", "group")
    return replace(options, in_roles=listed(cursor, role_name))


_MEMBERS: dict[str, Callable[[Cursor, RoleOptions], RoleOptions]] = {
    "in": _in_roles,
    "role": lambda cursor, options: replace(options, members=listed(cursor, role_name)),
    "user": lambda cursor, options: replace(options, members=listed(cursor, role_name)),
    "admin": lambda cursor, options: replace(options, admins=listed(cursor, role_name)),
}

_OPTIONS: dict[str, Callable[[Cursor, RoleOptions], RoleOptions]] = {
    "superuser": lambda _, options: replace(options, superuser=True),
    "bypassrls": lambda _, options: replace(options, bypass_row_security=True),
    "nobypassrls": lambda _, options: replace(options, bypass_row_security=False),
    "nosuperuser": lambda _, options: replace(options, superuser=False),
    "login": lambda _, options: replace(options, login=True),
    "nologin": lambda _, options: replace(options, login=False),
    "password": _password,
    "encrypted": _encrypted,
    "createdb": lambda _, options: replace(options, create_database=True),
    "nocreatedb": lambda _, options: replace(options, create_database=False),
    "createstore": lambda _, options: replace(options, create_store=True),
    "nocreatestore": lambda _, options: replace(options, create_store=False),
    "createfunction": lambda _, options: replace(options, create_function=True),
    "nocreatefunction": lambda _, options: replace(options, create_function=False),
    "connection": _connection_limit,
    "valid": _valid_until,
}

HEADS: Heads = {
    ("create", "role"): _create(login=False),
    ("create", "user"): _create(login=True),
    ("alter", "role"): _alter,
    ("alter", "user"): _alter,
    ("drop", "role"): _drop,
    ("drop", "user"): _drop,
}
