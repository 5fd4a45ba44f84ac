"""ALTER [MATERIALIZED] VIEW … RENAME TO and SET SCHEMA. What reads a view knows it by its id."""

from __future__ import annotations

from catalog.acl import Privilege
from catalog.model import Relation
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import lookup, notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.session.kinds import command_tag
from mvserver.sql.statements.relations import MoveRelation

FIELDS = None


def run(statement: MoveRelation, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    with catalog.transaction():
        if statement.if_exists and lookup.find_relation(statement.name, context, services) is None:
            notices.missing(context, f'relation "{statement.name}" does not exist')
            return done(command_tag(statement))
        relation = lookup.relation(statement.name, context, services)
        _check(relation, statement, context, services)
        schema = catalog.schemas.by_id(relation.schema_id)
        if statement.schema is not None:
            _, schema = catalog.names.schema(statement.schema.parts, context.database, statement.schema.position)
        assert schema is not None  # noqa: S101 - the relation's own is there
        if statement.schema is not None and schema.id == relation.schema_id:
            return done(command_tag(statement))
        privileges.require(schema, Privilege.CREATE, context, services, statement.name.position)
        catalog.relations.move(relation, schema.id, statement.new_name or relation.name)
    work.after_commit(services.engine.reconcile)
    return done(command_tag(statement))


def _check(relation: Relation, statement: MoveRelation, context: SessionContext, services: Services) -> None:
    position = statement.name.position
    if statement.kind not in (None, relation.kind):
        raise SqlError(sqlstates.WRONG_OBJECT_TYPE, f'"{relation.name}" is not a {statement.kind}', position=position)
    privileges.require_owner(relation, context, services, position)
    if relation.kind not in (lookup.VIEW, lookup.PLAIN_VIEW):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"a {relation.kind} cannot be renamed or moved",
            hint="Drop it, and create it again.",
            position=position,
        )
    readers = [query for query in services.catalog.queries.all() if relation.id in query.source_ids]
    if readers:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'{relation.kind} "{relation.name}" is read by a continuous query and cannot be renamed or moved',
            detail=f"Query {readers[0].id} names it.",
            hint="Drop what reads it first, and create it again.",
            position=position,
        )
