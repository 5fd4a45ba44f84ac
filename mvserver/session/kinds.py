"""The kinds of statements for a transaction: those that end it, only read, or take effect at COMMIT; their tags."""

from __future__ import annotations

import re

from mvserver.sql.statements.absent import DropAbsent
from mvserver.sql.statements.api_tokens import CreateApiToken, DropApiToken
from mvserver.sql.statements.base import Kind, Statement
from mvserver.sql.statements.copying import CopyFrom
from mvserver.sql.statements.descriptor_sources import CreateDescriptorSource, DropDescriptorSource
from mvserver.sql.statements.function_sources import CreateFunctionSource, DropFunctionSource
from mvserver.sql.statements.functions import CreateAggregate, CreateFunction, DropAggregate, DropFunction
from mvserver.sql.statements.namespaces import CreateDatabase, CreateSchema, DropDatabase, DropSchema
from mvserver.sql.statements.policies import AlterPolicy, CreatePolicy, DropPolicy, SetRowSecurity
from mvserver.sql.statements.privileges import AlterOwner
from mvserver.sql.statements.queries import RestartQuery, TerminateQuery
from mvserver.sql.statements.relations import (
    CommentOn,
    CreateChangelog,
    CreateChangelogAs,
    CreateMaterializedView,
    CreateStream,
    CreateStreamAs,
    CreateTableAs,
    CreateView,
    DropRelation,
    InsertInto,
    MoveRelation,
    RefreshMaterializedView,
)
from mvserver.sql.statements.roles import AlterRoleSetting, RenameRole
from mvserver.sql.statements.schema_registries import CreateSchemaRegistry, DropSchemaRegistry, UpdateSchemaRegistry
from mvserver.sql.statements.stores import (
    CreateEntity,
    CreateStore,
    DropEntity,
    DropStore,
    InsertIntoEntity,
    UpdateStore,
)
from mvserver.sql.statements.transactions import Commit, EndApplication, Rollback, RollbackToSavepoint
from mvserver.sql.statements.types import AlterTypeAddValue, AlterTypeRename

TRANSACTION_EXITS = (Commit, Rollback, RollbackToSavepoint, EndApplication)
"""The only statements that run in a failed transaction."""

_TAGS: dict[type[Statement], str] = {
    CreateStore: "CREATE STORE",
    UpdateStore: "UPDATE STORE",
    DropStore: "DROP STORE",
    CreateSchemaRegistry: "CREATE SCHEMA_REGISTRY",
    UpdateSchemaRegistry: "UPDATE SCHEMA_REGISTRY",
    DropSchemaRegistry: "DROP SCHEMA_REGISTRY",
    CreateDescriptorSource: "CREATE DESCRIPTOR_SOURCE",
    DropDescriptorSource: "DROP DESCRIPTOR_SOURCE",
    CreateEntity: "CREATE ENTITY",
    DropEntity: "DROP ENTITY",
    InsertIntoEntity: "INSERT 0 1",
    CreateApiToken: "CREATE API_TOKEN",
    DropApiToken: "DROP API_TOKEN",
    CreateFunctionSource: "CREATE FUNCTION_SOURCE",
    DropFunctionSource: "DROP FUNCTION_SOURCE",
    CreateFunction: "CREATE FUNCTION",
    DropFunction: "DROP FUNCTION",
    CreateAggregate: "CREATE AGGREGATE",
    DropAggregate: "DROP AGGREGATE",
    CreatePolicy: "CREATE POLICY",
    AlterPolicy: "ALTER POLICY",
    DropPolicy: "DROP POLICY",
    CreateDatabase: "CREATE DATABASE",
    DropDatabase: "DROP DATABASE",
    CreateSchema: "CREATE SCHEMA",
    DropSchema: "DROP SCHEMA",
    CreateStream: "CREATE STREAM",
    CreateStreamAs: "CREATE STREAM",
    CreateChangelog: "CREATE CHANGELOG",
    CreateChangelogAs: "CREATE CHANGELOG",
    CreateTableAs: "CREATE TABLE",
    InsertInto: "INSERT INTO",
    CreateMaterializedView: "CREATE MATERIALIZED VIEW",
    RefreshMaterializedView: "REFRESH MATERIALIZED VIEW",
    TerminateQuery: "TERMINATE QUERY",
    RestartQuery: "RESTART QUERY",
    CommentOn: "COMMENT",
    RenameRole: "ALTER ROLE",
    AlterTypeAddValue: "ALTER TYPE",
    AlterTypeRename: "ALTER TYPE",
    AlterRoleSetting: "ALTER ROLE",
}


_MAKES_RELATIONS = (
    CreateStream,
    CreateStreamAs,
    CreateChangelog,
    CreateChangelogAs,
    CreateTableAs,
    CreateMaterializedView,
    CreateView,
)


def takes_effect(statement: Statement) -> bool:
    """True where it changes the catalog, a store or a query: what a transaction block keeps until COMMIT."""
    return statement.kind_of_statement in (Kind.DDL, Kind.CONTINUOUS)


def writes(statement: Statement) -> bool:
    """True where it changes anything that outlives the session."""
    return takes_effect(statement) or isinstance(statement, CopyFrom | DropAbsent)


def is_session_statement(statement: Statement) -> bool:
    return statement.kind_of_statement is Kind.SESSION


def command_tag(statement: Statement) -> str:
    """The tag of a statement that waits for COMMIT."""
    if isinstance(statement, DropRelation):
        return f"DROP {statement.kind.upper()}"
    if isinstance(statement, DropAbsent):
        return f"DROP {statement.what.upper()}"
    if isinstance(statement, SetRowSecurity):
        return f"ALTER {(statement.relation_kind or 'table').upper()}"
    if isinstance(statement, AlterOwner):
        return f"ALTER {(statement.relation_kind or statement.kind).upper()}"
    if isinstance(statement, MoveRelation):
        return f"ALTER {(statement.kind or 'table').upper()}"
    return _TAGS.get(type(statement)) or _spaced(type(statement).__name__)


def command_name(statement: Statement) -> str:
    """For messages: the tag without counts."""
    return "INSERT" if isinstance(statement, InsertIntoEntity) else command_tag(statement)


def created_name(statement: Statement) -> str | None:
    """The relation that a waiting statement will create, without its schema."""
    if isinstance(statement, _MAKES_RELATIONS):
        return statement.name.parts[-1]
    return None


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()
