"""CREATE, ALTER and DROP TYPE: enums are the types of one's own that there are."""

from __future__ import annotations

from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.names import cascade, identifier, if_exists, if_not_exists, object_name
from mvserver.sql.roles import role_spec
from mvserver.sql.statements.base import ObjectName, Statement
from mvserver.sql.statements.privileges import AlterOwner
from mvserver.sql.statements.types import AlterTypeAddValue, AlterTypeRename, CreateType, DropType

_HINT = "Types of one's own are enums: CREATE TYPE name AS ENUM ('a', 'b')."


def _create(cursor: Cursor) -> Statement:
    name = object_name(cursor)
    if not cursor.accept_word("as", "enum"):
        raise cursor.not_supported("only enum types can be made", hint=_HINT)
    cursor.expect_operator("(")
    labels: list[str] = []
    if not cursor.at_operator(")"):
        labels.append(cursor.expect_string())
        while cursor.accept_operator(","):
            labels.append(cursor.expect_string())
    cursor.expect_operator(")")
    return CreateType(name, tuple(labels))


def _alter(cursor: Cursor) -> Statement:
    name = object_name(cursor)
    if cursor.accept_word("add", "value"):
        return _add_value(cursor, name)
    if cursor.accept_word("rename", "value"):
        old = cursor.expect_string()
        cursor.expect_word("to")
        return AlterTypeRename(name, cursor.expect_string(), label=old)
    if cursor.accept_word("rename", "to"):
        return AlterTypeRename(name, identifier(cursor))
    if cursor.accept_word("owner", "to"):
        return AlterOwner("type", name, role_spec(cursor))
    raise cursor.not_supported(
        "ALTER TYPE is supported with ADD VALUE, RENAME VALUE, RENAME TO and OWNER TO only",
        hint="Drop the type and create it anew.",
    )


def _add_value(cursor: Cursor, name: ObjectName) -> Statement:
    guarded = if_not_exists(cursor)
    label = cursor.expect_string()
    if cursor.accept_word("before"):
        return AlterTypeAddValue(name, label, guarded, before=cursor.expect_string())
    if cursor.accept_word("after"):
        return AlterTypeAddValue(name, label, guarded, after=cursor.expect_string())
    return AlterTypeAddValue(name, label, guarded)


def _drop(cursor: Cursor) -> Statement:
    guarded = if_exists(cursor)
    names = [object_name(cursor)]
    while cursor.accept_operator(","):
        names.append(object_name(cursor))
    return DropType(tuple(names), guarded, cascade(cursor))


HEADS: Heads = {("create", "type"): _create, ("alter", "type"): _alter, ("drop", "type"): _drop}
