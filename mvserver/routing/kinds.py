"""One row for each statement: of which kind it is and which handler has it.

A statement class without a row is a fault of the program, and a test finds it before a user does.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from mvserver.pgwire.backend import Field, Result
from mvserver.routing.handlers import (
    alter_default_privileges,
    alter_owner,
    alter_role,
    alter_role_setting,
    alter_type_add_value,
    alter_type_rename,
    bounded_read,
    comment_on,
    create_changelog,
    create_changelog_as,
    create_database,
    create_entity,
    create_materialized_view,
    create_role,
    create_schema,
    create_store,
    create_stream,
    create_stream_as,
    create_type,
    describe_entity,
    describe_query,
    describe_relation,
    describe_statement,
    describe_store,
    drop_database,
    drop_entity,
    drop_owned,
    drop_relation,
    drop_role,
    drop_schema,
    drop_store,
    drop_type,
    explain,
    grant,
    grant_role,
    insert_into,
    insert_into_entity,
    list_databases,
    list_entities,
    list_queries,
    list_relations,
    list_schemas,
    list_stores,
    print_entity,
    push_query,
    reassign_owned,
    refresh_materialized_view,
    rename_role,
    restart_query,
    revoke,
    revoke_role,
    terminate_query,
    update_store,
    use,
    use_store,
)
from mvserver.routing.ports import Services
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.copying import CopyFrom, CopyTo
from mvserver.sql.statements.cursors import CloseCursor, DeclareCursor, Fetch
from mvserver.sql.statements.namespaces import (
    CreateDatabase,
    CreateSchema,
    DropDatabase,
    DropSchema,
    ListDatabases,
    ListSchemas,
    Use,
)
from mvserver.sql.statements.privileges import (
    AlterDefaultPrivileges,
    AlterOwner,
    DropOwned,
    Grant,
    ReassignOwned,
    Revoke,
)
from mvserver.sql.statements.queries import (
    BoundedRead,
    DescribeQuery,
    DescribeStatement,
    Explain,
    ListQueries,
    Pull,
    PushQuery,
    RestartQuery,
    TerminateQuery,
)
from mvserver.sql.statements.relations import (
    CommentOn,
    CreateChangelog,
    CreateChangelogAs,
    CreateMaterializedView,
    CreateStream,
    CreateStreamAs,
    CreateVirtual,
    DescribeRelation,
    DropRelation,
    InsertInto,
    ListRelations,
    RefreshMaterializedView,
)
from mvserver.sql.statements.roles import (
    AlterRole,
    AlterRoleSetting,
    CreateRole,
    DropRole,
    GrantRole,
    RenameRole,
    RevokeRole,
)
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
from mvserver.sql.statements.stores import (
    CreateEntity,
    CreateStore,
    DescribeEntity,
    DescribeStore,
    DropEntity,
    DropStore,
    InsertIntoEntity,
    ListEntities,
    ListStores,
    PrintEntity,
    UpdateStore,
    UseStore,
)
from mvserver.sql.statements.transactions import (
    Begin,
    BeginApplication,
    Commit,
    EndApplication,
    ReleaseSavepoint,
    Rollback,
    RollbackToSavepoint,
    Savepoint,
)
from mvserver.sql.statements.types import AlterTypeAddValue, AlterTypeRename, CreateType, DropType


class Kind(enum.Enum):
    DDL = "ddl"  # changes definitions, stores or entities
    CONTINUOUS = "continuous"  # begins, ends or steers a continuous query
    INSPECTION = "inspection"  # answers from definitions, states and stores; changes nothing
    PLACE = "place"  # changes where the session's names resolve
    SESSION = "session"  # the session room's own: settings, transactions, prepared statements, cursors, COPY
    PULL = "pull"  # reads views; the session room runs it in the serving room
    PUSH = "push"  # rows of a stream as they come; the session room finds out that a SELECT is one


class HandlerModule(Protocol):
    FIELDS: tuple[Field, ...] | None

    def run(self, statement: Any, context: SessionContext, services: Services, work: Work) -> Result: ...


@dataclass(frozen=True)
class Row:
    kind: Kind
    handler: HandlerModule | None = None  # None: the session room's
    fields_of: Callable[[Any], tuple[Field, ...]] | None = None  # where the statement decides its columns
    described: Callable[[Any, SessionContext, Services], tuple[Field, ...]] | None = None  # where the catalog does
    irreversible: bool = False  # cannot be taken back, and so not be a part of a transaction


def _row(kind: Kind, module: object, **rest: Any) -> Row:
    return Row(kind, cast(HandlerModule, module), **rest)


ROWS: dict[type[Statement], Row] = {
    CreateStore: _row(Kind.DDL, create_store),
    UpdateStore: _row(Kind.DDL, update_store),
    DropStore: _row(Kind.DDL, drop_store),
    DescribeStore: _row(Kind.INSPECTION, describe_store),
    ListStores: _row(Kind.INSPECTION, list_stores),
    UseStore: _row(Kind.PLACE, use_store),
    ListEntities: _row(Kind.INSPECTION, list_entities),
    DescribeEntity: _row(Kind.INSPECTION, describe_entity),
    CreateEntity: _row(Kind.DDL, create_entity),
    DropEntity: _row(Kind.DDL, drop_entity, irreversible=True),
    PrintEntity: _row(Kind.INSPECTION, print_entity),
    InsertIntoEntity: _row(Kind.DDL, insert_into_entity, irreversible=True),
    CreateDatabase: _row(Kind.DDL, create_database),
    DropDatabase: _row(Kind.DDL, drop_database),
    ListDatabases: _row(Kind.INSPECTION, list_databases),
    CreateSchema: _row(Kind.DDL, create_schema),
    DropSchema: _row(Kind.DDL, drop_schema),
    CreateType: _row(Kind.DDL, create_type),
    AlterTypeAddValue: _row(Kind.DDL, alter_type_add_value),
    AlterTypeRename: _row(Kind.DDL, alter_type_rename),
    DropType: _row(Kind.DDL, drop_type),
    ListSchemas: _row(Kind.INSPECTION, list_schemas),
    Use: _row(Kind.PLACE, use),
    CreateRole: _row(Kind.DDL, create_role),
    AlterRole: _row(Kind.DDL, alter_role),
    DropRole: _row(Kind.DDL, drop_role),
    RenameRole: _row(Kind.DDL, rename_role),
    AlterRoleSetting: _row(Kind.DDL, alter_role_setting),
    Grant: _row(Kind.DDL, grant),
    Revoke: _row(Kind.DDL, revoke),
    AlterDefaultPrivileges: _row(Kind.DDL, alter_default_privileges),
    GrantRole: _row(Kind.DDL, grant_role),
    RevokeRole: _row(Kind.DDL, revoke_role),
    AlterOwner: _row(Kind.DDL, alter_owner),
    CommentOn: _row(Kind.DDL, comment_on),
    ReassignOwned: _row(Kind.DDL, reassign_owned),
    DropOwned: _row(Kind.DDL, drop_owned),
    CreateStream: _row(Kind.DDL, create_stream),
    CreateChangelog: _row(Kind.DDL, create_changelog),
    CreateStreamAs: _row(Kind.CONTINUOUS, create_stream_as),
    CreateChangelogAs: _row(Kind.CONTINUOUS, create_changelog_as),
    InsertInto: _row(Kind.CONTINUOUS, insert_into),
    CreateMaterializedView: _row(Kind.CONTINUOUS, create_materialized_view),
    RefreshMaterializedView: _row(Kind.CONTINUOUS, refresh_materialized_view, irreversible=True),
    DropRelation: _row(Kind.DDL, drop_relation),
    ListRelations: _row(Kind.INSPECTION, list_relations),
    DescribeRelation: _row(Kind.INSPECTION, describe_relation, fields_of=describe_relation.fields_of),
    ListQueries: _row(Kind.INSPECTION, list_queries),
    DescribeQuery: _row(Kind.INSPECTION, describe_query),
    TerminateQuery: _row(Kind.CONTINUOUS, terminate_query),
    RestartQuery: _row(Kind.CONTINUOUS, restart_query, irreversible=True),
    DescribeStatement: _row(Kind.INSPECTION, describe_statement),
    Explain: _row(Kind.INSPECTION, explain),
    Pull: Row(Kind.PULL),
    BoundedRead: _row(Kind.PUSH, bounded_read),
    PushQuery: _row(Kind.PUSH, push_query, described=push_query.described),
    Set: Row(Kind.SESSION),
    SetTransaction: Row(Kind.SESSION),
    Show: Row(Kind.SESSION),
    Reset: Row(Kind.SESSION),
    Discard: Row(Kind.SESSION),
    Unlisten: Row(Kind.SESSION),
    Begin: Row(Kind.SESSION),
    BeginApplication: Row(Kind.SESSION),
    EndApplication: Row(Kind.SESSION),
    CreateVirtual: Row(Kind.SESSION),
    Commit: Row(Kind.SESSION),
    Rollback: Row(Kind.SESSION),
    Savepoint: Row(Kind.SESSION),
    ReleaseSavepoint: Row(Kind.SESSION),
    RollbackToSavepoint: Row(Kind.SESSION),
    Prepare: Row(Kind.SESSION),
    ExecutePrepared: Row(Kind.SESSION),
    Deallocate: Row(Kind.SESSION),
    DeclareCursor: Row(Kind.SESSION),
    Fetch: Row(Kind.SESSION),
    CloseCursor: Row(Kind.SESSION),
    CopyTo: Row(Kind.SESSION),
    CopyFrom: Row(Kind.SESSION),
}


def row_of(statement: Statement) -> Row:
    return ROWS[type(statement)]
