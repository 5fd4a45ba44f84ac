"""Row policies: CREATE, ALTER and DROP POLICY, and ALTER … ROW LEVEL SECURITY, in PostgreSQL's spelling."""

from __future__ import annotations

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.names import cascade, identifier, if_exists, listed, object_name
from mvserver.sql.roles import role_spec
from mvserver.sql.statements.base import ObjectName, RoleSpec, Statement
from mvserver.sql.statements.policies import AlterPolicy, CreatePolicy, DropPolicy, SetRowSecurity

_READS = "Rows of views are read alone: policies are FOR SELECT, or FOR ALL."


def _create(cursor: Cursor) -> Statement:
    name, on = _name(cursor)
    restrictive = False
    if cursor.accept_word("as"):
        restrictive = cursor.expect_any("permissive", "restrictive") == "restrictive"
    command = "ALL"
    if cursor.accept_word("for"):
        command = _command(cursor)
    to = _roles(cursor)
    condition = _condition(cursor)
    if condition is None:
        raise cursor.syntax_error(hint="Write USING (condition): the rows that may be seen.")
    return CreatePolicy(name, on, condition, to or (RoleSpec(special="public"),), restrictive, command)


def _command(cursor: Cursor) -> str:
    if cursor.at_any({"insert", "update", "delete"}):
        raise cursor.not_supported(f"policies FOR {cursor.current.text.upper()} are not supported", hint=_READS)
    return cursor.expect_any("all", "select").upper()


def _name(cursor: Cursor) -> tuple[str, ObjectName]:
    name = identifier(cursor)
    cursor.expect_word("on")
    return name, object_name(cursor)


def _roles(cursor: Cursor) -> tuple[RoleSpec, ...] | None:
    return listed(cursor, role_spec) if cursor.accept_word("to") else None


def _condition(cursor: Cursor) -> str | None:
    """The text in the brackets of USING."""
    found: str | None = None
    if cursor.accept_word("using"):
        first = cursor.expect_operator("(")
        depth, mark = 1, cursor.mark
        while depth:
            if cursor.at_end:
                raise cursor.syntax_error()
            depth += cursor.at_operator("(") - cursor.at_operator(")")
            if depth:
                cursor.advance()
        if cursor.mark == mark:
            raise cursor.syntax_error()
        found = cursor.text_since(mark)
        cursor.expect_operator(")")
        if len(found) > limits.POLICY_CHARACTERS_MAX:
            raise SqlError(
                sqlstates.PROGRAM_LIMIT_EXCEEDED,
                "the condition of a policy is too long",
                detail=f"The limit is {limits.POLICY_CHARACTERS_MAX} characters.",
                position=first.position,
            )
    if cursor.at_word("with", "check"):
        raise cursor.not_supported("WITH CHECK of a policy is not supported", hint=_READS)
    return found


def _alter(cursor: Cursor) -> Statement:
    name, on = _name(cursor)
    if cursor.accept_word("rename", "to"):
        return AlterPolicy(name, on, new_name=identifier(cursor))
    to, condition = _roles(cursor), _condition(cursor)
    if to is None and condition is None:
        raise cursor.syntax_error()
    return AlterPolicy(name, on, to=to, condition=condition)


def _drop(cursor: Cursor) -> Statement:
    guarded = if_exists(cursor)
    name, on = _name(cursor)
    cascade(cursor)
    return DropPolicy(name, on, guarded)


def row_security(cursor: Cursor, name: ObjectName, relation_kind: str | None) -> SetRowSecurity | None:
    """``{ENABLE | DISABLE | FORCE | NO FORCE} ROW LEVEL SECURITY`` behind a relation's name; None for other words."""
    for words, enabled, forced in (
        (("enable", "row"), True, None),
        (("disable", "row"), False, None),
        (("force", "row"), None, True),
        (("no", "force", "row"), None, False),
    ):
        if cursor.accept_word(*words):
            cursor.expect_word("level", "security")
            return SetRowSecurity(name, relation_kind, enabled, forced)
    return None


HEADS: Heads = {
    ("create", "policy"): _create,
    ("alter", "policy"): _alter,
    ("drop", "policy"): _drop,
}
