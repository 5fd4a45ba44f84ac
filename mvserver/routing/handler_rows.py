"""The table of handlers: one row for each statement that the router carries out.

Statements of the kinds SESSION and PULL belong to the session room and have no row. A test finds a class without one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Field, Result
from mvserver.routing.handlers.api_tokens import create_api_token, drop_api_token, list_api_tokens
from mvserver.routing.handlers.descriptor_sources import (
    create_descriptor_source,
    drop_descriptor_source,
    list_descriptor_sources,
    list_descriptors,
)
from mvserver.routing.handlers.entities import (
    create_entity,
    describe_entity,
    drop_entity,
    insert_into_entity,
    list_entities,
    print_entity,
)
from mvserver.routing.handlers.function_sources import (
    create_function_source,
    drop_function_source,
    list_function_sources,
)
from mvserver.routing.handlers.functions import (
    create_aggregate,
    create_function,
    describe_function,
    drop_aggregate,
    drop_function,
    list_functions,
)
from mvserver.routing.handlers.namespaces import (
    create_database,
    create_schema,
    drop_database,
    drop_schema,
    list_databases,
    list_schemas,
    use,
)
from mvserver.routing.handlers.policies import alter_policy, create_policy, drop_policy, set_row_security
from mvserver.routing.handlers.privileges import alter_default_privileges, alter_owner, grant, revoke
from mvserver.routing.handlers.processors import (
    create_processor,
    describe_processor,
    drop_processor,
    list_processors,
    run_program,
    scale_processor,
    start_processor,
    stop_processor,
)
from mvserver.routing.handlers.queries import (
    describe_query,
    describe_statement,
    explain,
    list_queries,
    restart_query,
    terminate_query,
)
from mvserver.routing.handlers.relations import (
    analyze,
    bounded_read,
    comment_on,
    create_changelog,
    create_changelog_as,
    create_index,
    create_materialized_view,
    create_stream,
    create_stream_as,
    create_table_as,
    create_view,
    describe_relation,
    drop_absent,
    drop_index,
    drop_relation,
    insert_into,
    list_relations,
    move_relation,
    push_query,
    refresh_materialized_view,
    subscribe,
)
from mvserver.routing.handlers.roles import (
    alter_role,
    alter_role_setting,
    create_role,
    drop_owned,
    drop_role,
    grant_role,
    reassign_owned,
    rename_role,
    revoke_role,
)
from mvserver.routing.handlers.schema_registries import (
    create_schema_registry,
    describe_schema_registry,
    drop_schema_registry,
    list_schema_registries,
    update_schema_registry,
)
from mvserver.routing.handlers.stores import (
    create_store,
    describe_store,
    drop_store,
    list_stores,
    update_store,
    use_store,
)
from mvserver.routing.handlers.types import alter_type_add_value, alter_type_rename, create_type, drop_type
from mvserver.routing.ports import Services
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.absent import DropAbsent
from mvserver.sql.statements.api_tokens import CreateApiToken, DropApiToken, ListApiTokens
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.descriptor_sources import (
    CreateDescriptorSource,
    DropDescriptorSource,
    ListDescriptors,
    ListDescriptorSources,
)
from mvserver.sql.statements.function_sources import CreateFunctionSource, DropFunctionSource, ListFunctionSources
from mvserver.sql.statements.functions import (
    CreateAggregate,
    CreateFunction,
    DescribeFunction,
    DropAggregate,
    DropFunction,
    ListFunctions,
)
from mvserver.sql.statements.namespaces import (
    CreateDatabase,
    CreateSchema,
    DropDatabase,
    DropSchema,
    ListDatabases,
    ListSchemas,
    Use,
)
from mvserver.sql.statements.policies import AlterPolicy, CreatePolicy, DropPolicy, SetRowSecurity
from mvserver.sql.statements.privileges import (
    AlterDefaultPrivileges,
    AlterOwner,
    DropOwned,
    Grant,
    ReassignOwned,
    Revoke,
)
from mvserver.sql.statements.processors import (
    CreateProcessor,
    DescribeProcessor,
    DropProcessor,
    Lenses,
    ListProcessors,
    ScaleProcessor,
    StartProcessor,
    StopProcessor,
)
from mvserver.sql.statements.queries import (
    BoundedRead,
    DescribeQuery,
    DescribeStatement,
    Explain,
    ListQueries,
    PushQuery,
    RestartQuery,
    Subscribe,
    TerminateQuery,
)
from mvserver.sql.statements.relations import (
    Analyze,
    CommentOn,
    CreateChangelog,
    CreateChangelogAs,
    CreateIndex,
    CreateMaterializedView,
    CreateStream,
    CreateStreamAs,
    CreateTableAs,
    CreateView,
    DescribeRelation,
    DropIndex,
    DropRelation,
    InsertInto,
    ListRelations,
    MoveRelation,
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
from mvserver.sql.statements.schema_registries import (
    CreateSchemaRegistry,
    DescribeSchemaRegistry,
    DropSchemaRegistry,
    ListSchemaRegistries,
    UpdateSchemaRegistry,
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
from mvserver.sql.statements.types import AlterTypeAddValue, AlterTypeRename, CreateType, DropType


class HandlerModule(Protocol):
    FIELDS: tuple[Field, ...] | None

    def run(self, statement: Any, context: SessionContext, services: Services, work: Work) -> Result: ...


@dataclass(frozen=True)
class Row:
    handler: HandlerModule
    fields_of: Callable[[Any], tuple[Field, ...]] | None = None  # where the statement decides its columns
    described: Callable[[Any, SessionContext, Services], tuple[Field, ...]] | None = None  # where the catalog does
    irreversible: bool = False  # cannot be taken back, and so not be a part of a transaction


def _row(module: object, **rest: Any) -> Row:
    return Row(cast(HandlerModule, module), **rest)


ROWS: dict[type[Statement], Row] = {
    CreateStore: _row(create_store),
    UpdateStore: _row(update_store),
    DropStore: _row(drop_store),
    DescribeStore: _row(describe_store),
    ListStores: _row(list_stores),
    UseStore: _row(use_store),
    CreateSchemaRegistry: _row(create_schema_registry),
    UpdateSchemaRegistry: _row(update_schema_registry),
    DropSchemaRegistry: _row(drop_schema_registry),
    DescribeSchemaRegistry: _row(describe_schema_registry),
    ListSchemaRegistries: _row(list_schema_registries),
    CreateDescriptorSource: _row(create_descriptor_source),
    DropDescriptorSource: _row(drop_descriptor_source),
    ListDescriptorSources: _row(list_descriptor_sources),
    ListDescriptors: _row(list_descriptors),
    ListEntities: _row(list_entities),
    DescribeEntity: _row(describe_entity),
    CreateEntity: _row(create_entity),
    DropEntity: _row(drop_entity, irreversible=True),
    PrintEntity: _row(print_entity),
    InsertIntoEntity: _row(insert_into_entity, irreversible=True),
    CreateDatabase: _row(create_database),
    DropDatabase: _row(drop_database),
    ListDatabases: _row(list_databases),
    CreateSchema: _row(create_schema),
    DropSchema: _row(drop_schema),
    CreateType: _row(create_type),
    AlterTypeAddValue: _row(alter_type_add_value),
    AlterTypeRename: _row(alter_type_rename),
    DropType: _row(drop_type),
    CreateFunctionSource: _row(create_function_source),
    DropFunctionSource: _row(drop_function_source),
    ListFunctionSources: _row(list_function_sources),
    CreateFunction: _row(create_function),
    DropFunction: _row(drop_function),
    CreateAggregate: _row(create_aggregate),
    DropAggregate: _row(drop_aggregate),
    ListFunctions: _row(list_functions),
    DescribeFunction: _row(describe_function),
    ListSchemas: _row(list_schemas),
    Use: _row(use),
    CreateRole: _row(create_role),
    AlterRole: _row(alter_role),
    DropRole: _row(drop_role),
    RenameRole: _row(rename_role),
    AlterRoleSetting: _row(alter_role_setting),
    Grant: _row(grant),
    Revoke: _row(revoke),
    AlterDefaultPrivileges: _row(alter_default_privileges),
    GrantRole: _row(grant_role),
    RevokeRole: _row(revoke_role),
    AlterOwner: _row(alter_owner),
    CommentOn: _row(comment_on),
    ReassignOwned: _row(reassign_owned),
    DropOwned: _row(drop_owned),
    CreatePolicy: _row(create_policy),
    AlterPolicy: _row(alter_policy),
    DropPolicy: _row(drop_policy),
    SetRowSecurity: _row(set_row_security),
    CreateApiToken: _row(create_api_token, irreversible=True),
    DropApiToken: _row(drop_api_token),
    ListApiTokens: _row(list_api_tokens),
    CreateStream: _row(create_stream),
    CreateChangelog: _row(create_changelog),
    CreateStreamAs: _row(create_stream_as),
    CreateChangelogAs: _row(create_changelog_as),
    CreateTableAs: _row(create_table_as),
    InsertInto: _row(insert_into),
    CreateMaterializedView: _row(create_materialized_view),
    CreateView: _row(create_view),
    CreateIndex: _row(create_index),
    DropIndex: _row(drop_index),
    MoveRelation: _row(move_relation),
    RefreshMaterializedView: _row(refresh_materialized_view),
    DropRelation: _row(drop_relation),
    ListRelations: _row(list_relations),
    Analyze: _row(analyze),
    DropAbsent: _row(drop_absent),
    DescribeRelation: _row(describe_relation, fields_of=describe_relation.fields_of),
    ListQueries: _row(list_queries),
    DescribeQuery: _row(describe_query),
    TerminateQuery: _row(terminate_query),
    RestartQuery: _row(restart_query, irreversible=True),
    DescribeStatement: _row(describe_statement),
    Lenses: _row(run_program, irreversible=True),
    CreateProcessor: _row(create_processor, irreversible=True),
    StartProcessor: _row(start_processor, irreversible=True),
    StopProcessor: _row(stop_processor),
    ScaleProcessor: _row(scale_processor),
    DropProcessor: _row(drop_processor),
    ListProcessors: _row(list_processors),
    DescribeProcessor: _row(describe_processor),
    Explain: _row(explain, fields_of=explain.fields_of),
    BoundedRead: _row(bounded_read),
    PushQuery: _row(push_query, described=push_query.described),
    Subscribe: _row(subscribe, described=subscribe.described),
}


def row_of(statement: Statement) -> Row:
    """XX000 for a statement of the session room: those have no row."""
    row = ROWS.get(type(statement))
    if row is None:
        raise SqlError(sqlstates.INTERNAL_ERROR, f"{words(statement)} is not a statement of the router")
    return row


def words(statement: Statement) -> str:
    """The statement's name as messages spell it: ``CREATE STORE``."""
    name = type(statement).__name__
    return "".join(f" {c}" if c.isupper() and i else c for i, c in enumerate(name)).upper()
