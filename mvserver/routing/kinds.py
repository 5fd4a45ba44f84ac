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
from mvserver.sql import statements as s


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


ROWS: dict[type[s.Statement], Row] = {
    s.CreateStore: _row(Kind.DDL, create_store),
    s.UpdateStore: _row(Kind.DDL, update_store),
    s.DropStore: _row(Kind.DDL, drop_store),
    s.DescribeStore: _row(Kind.INSPECTION, describe_store),
    s.ListStores: _row(Kind.INSPECTION, list_stores),
    s.UseStore: _row(Kind.PLACE, use_store),
    s.ListEntities: _row(Kind.INSPECTION, list_entities),
    s.DescribeEntity: _row(Kind.INSPECTION, describe_entity),
    s.CreateEntity: _row(Kind.DDL, create_entity),
    s.DropEntity: _row(Kind.DDL, drop_entity, irreversible=True),
    s.PrintEntity: _row(Kind.INSPECTION, print_entity),
    s.InsertIntoEntity: _row(Kind.DDL, insert_into_entity, irreversible=True),
    s.CreateDatabase: _row(Kind.DDL, create_database),
    s.DropDatabase: _row(Kind.DDL, drop_database),
    s.ListDatabases: _row(Kind.INSPECTION, list_databases),
    s.CreateSchema: _row(Kind.DDL, create_schema),
    s.DropSchema: _row(Kind.DDL, drop_schema),
    s.CreateType: _row(Kind.DDL, create_type),
    s.AlterTypeAddValue: _row(Kind.DDL, alter_type_add_value),
    s.AlterTypeRename: _row(Kind.DDL, alter_type_rename),
    s.DropType: _row(Kind.DDL, drop_type),
    s.ListSchemas: _row(Kind.INSPECTION, list_schemas),
    s.Use: _row(Kind.PLACE, use),
    s.CreateRole: _row(Kind.DDL, create_role),
    s.AlterRole: _row(Kind.DDL, alter_role),
    s.DropRole: _row(Kind.DDL, drop_role),
    s.RenameRole: _row(Kind.DDL, rename_role),
    s.AlterRoleSetting: _row(Kind.DDL, alter_role_setting),
    s.Grant: _row(Kind.DDL, grant),
    s.Revoke: _row(Kind.DDL, revoke),
    s.AlterDefaultPrivileges: _row(Kind.DDL, alter_default_privileges),
    s.GrantRole: _row(Kind.DDL, grant_role),
    s.RevokeRole: _row(Kind.DDL, revoke_role),
    s.AlterOwner: _row(Kind.DDL, alter_owner),
    s.CommentOn: _row(Kind.DDL, comment_on),
    s.ReassignOwned: _row(Kind.DDL, reassign_owned),
    s.DropOwned: _row(Kind.DDL, drop_owned),
    s.CreateStream: _row(Kind.DDL, create_stream),
    s.CreateChangelog: _row(Kind.DDL, create_changelog),
    s.CreateStreamAs: _row(Kind.CONTINUOUS, create_stream_as),
    s.CreateChangelogAs: _row(Kind.CONTINUOUS, create_changelog_as),
    s.InsertInto: _row(Kind.CONTINUOUS, insert_into),
    s.CreateMaterializedView: _row(Kind.CONTINUOUS, create_materialized_view),
    s.RefreshMaterializedView: _row(Kind.CONTINUOUS, refresh_materialized_view, irreversible=True),
    s.DropRelation: _row(Kind.DDL, drop_relation),
    s.ListRelations: _row(Kind.INSPECTION, list_relations),
    s.DescribeRelation: _row(Kind.INSPECTION, describe_relation, fields_of=describe_relation.fields_of),
    s.ListQueries: _row(Kind.INSPECTION, list_queries),
    s.DescribeQuery: _row(Kind.INSPECTION, describe_query),
    s.TerminateQuery: _row(Kind.CONTINUOUS, terminate_query),
    s.RestartQuery: _row(Kind.CONTINUOUS, restart_query, irreversible=True),
    s.DescribeStatement: _row(Kind.INSPECTION, describe_statement),
    s.Explain: _row(Kind.INSPECTION, explain),
    s.Pull: Row(Kind.PULL),
    s.BoundedRead: _row(Kind.PUSH, bounded_read),
    s.PushQuery: _row(Kind.PUSH, push_query, described=push_query.described),
    s.Set: Row(Kind.SESSION),
    s.SetTransaction: Row(Kind.SESSION),
    s.Show: Row(Kind.SESSION),
    s.Reset: Row(Kind.SESSION),
    s.Discard: Row(Kind.SESSION),
    s.Unlisten: Row(Kind.SESSION),
    s.Begin: Row(Kind.SESSION),
    s.BeginApplication: Row(Kind.SESSION),
    s.EndApplication: Row(Kind.SESSION),
    s.CreateVirtual: Row(Kind.SESSION),
    s.Commit: Row(Kind.SESSION),
    s.Rollback: Row(Kind.SESSION),
    s.Savepoint: Row(Kind.SESSION),
    s.ReleaseSavepoint: Row(Kind.SESSION),
    s.RollbackToSavepoint: Row(Kind.SESSION),
    s.Prepare: Row(Kind.SESSION),
    s.ExecutePrepared: Row(Kind.SESSION),
    s.Deallocate: Row(Kind.SESSION),
    s.DeclareCursor: Row(Kind.SESSION),
    s.Fetch: Row(Kind.SESSION),
    s.CloseCursor: Row(Kind.SESSION),
    s.CopyTo: Row(Kind.SESSION),
    s.CopyFrom: Row(Kind.SESSION),
}


def row_of(statement: s.Statement) -> Row:
    return ROWS[type(statement)]
