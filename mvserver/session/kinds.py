"""What a statement means to a transaction: which end it, which only read, which take effect at COMMIT; their tags."""

from __future__ import annotations

import re

from mvserver.routing.kinds import Kind, row_of
from mvserver.sql import statements as s

TRANSACTION_EXITS = (s.Commit, s.Rollback, s.RollbackToSavepoint, s.EndApplication)
"""The only statements that run in a failed transaction."""

_TAGS: dict[type[s.Statement], str] = {
    s.CreateStore: "CREATE STORE",
    s.UpdateStore: "UPDATE STORE",
    s.DropStore: "DROP STORE",
    s.CreateEntity: "CREATE ENTITY",
    s.DropEntity: "DROP ENTITY",
    s.InsertIntoEntity: "INSERT 0 1",
    s.CreateDatabase: "CREATE DATABASE",
    s.DropDatabase: "DROP DATABASE",
    s.CreateSchema: "CREATE SCHEMA",
    s.DropSchema: "DROP SCHEMA",
    s.CreateStream: "CREATE STREAM",
    s.CreateStreamAs: "CREATE STREAM",
    s.CreateChangelog: "CREATE CHANGELOG",
    s.CreateChangelogAs: "CREATE CHANGELOG",
    s.InsertInto: "INSERT INTO",
    s.CreateMaterializedView: "CREATE MATERIALIZED VIEW",
    s.RefreshMaterializedView: "REFRESH MATERIALIZED VIEW",
    s.TerminateQuery: "TERMINATE QUERY",
    s.RestartQuery: "RESTART QUERY",
    s.CommentOn: "COMMENT",
    s.RenameRole: "ALTER ROLE",
    s.AlterTypeAddValue: "ALTER TYPE",
    s.AlterTypeRename: "ALTER TYPE",
    s.AlterRoleSetting: "ALTER ROLE",
}


_MAKES_RELATIONS = (s.CreateStream, s.CreateStreamAs, s.CreateChangelog, s.CreateChangelogAs, s.CreateMaterializedView)


def takes_effect(statement: s.Statement) -> bool:
    """True where it changes the catalog, a store or a query: what a transaction block keeps until COMMIT."""
    return row_of(statement).kind in (Kind.DDL, Kind.CONTINUOUS)


def writes(statement: s.Statement) -> bool:
    """True where it changes anything that outlives the session."""
    return takes_effect(statement) or isinstance(statement, s.CopyFrom)


def is_session_statement(statement: s.Statement) -> bool:
    return row_of(statement).kind is Kind.SESSION


def command_tag(statement: s.Statement) -> str:
    """The tag of a statement that waits for COMMIT."""
    if isinstance(statement, s.DropRelation):
        return f"DROP {statement.kind.upper()}"
    if isinstance(statement, s.AlterOwner):
        return f"ALTER {(statement.relation_kind or statement.kind).upper()}"
    return _TAGS.get(type(statement)) or _spaced(type(statement).__name__)


def command_name(statement: s.Statement) -> str:
    """For messages: the tag without counts."""
    return "INSERT" if isinstance(statement, s.InsertIntoEntity) else command_tag(statement)


def created_name(statement: s.Statement) -> str | None:
    """The relation that a waiting statement will create, without its schema."""
    if isinstance(statement, _MAKES_RELATIONS):
        return statement.name.parts[-1]
    return None


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()
