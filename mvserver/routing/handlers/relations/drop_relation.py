"""DROP STREAM, MATERIALIZED VIEW, RELATION: with what depends on it only by CASCADE. Entities stay in their stores."""

from __future__ import annotations

from catalog.model import Relation
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import lookup, notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import DropRelation

FIELDS = None


def run(statement: DropRelation, context: SessionContext, services: Services, work: Work) -> Result:
    catalog = services.catalog
    tag = f"DROP {statement.kind.upper()}"
    with catalog.transaction():
        relation = lookup.find_relation(statement.name, context, services)
        if relation is None:
            missing = f'{statement.kind} "{statement.name}" does not exist'
            if not statement.if_exists:
                raise SqlError(sqlstates.UNDEFINED_TABLE, missing, position=statement.name.position)
            what = f'{statement.kind} "{statement.name.parts[-1]}"'
            notices.missing(
                context, f"{lookup.missing_schema(statement.name, context, services) or what} does not exist"
            )
            return done(tag)
        _check_kind(statement, relation)
        privileges.require_relation_owner(relation, context, services, statement.name.position)
        dependents = catalog.dependencies.of_relation(relation)
        if dependents and not statement.cascade:
            raise dependents.refuse(f"{relation.kind} {relation.name}")
        catalog.dependencies.drop((relation, *dependents.relations), dependents.queries)
    notices.cascades(context, dependents.names)
    work.after_commit(services.engine.reconcile)
    return done(tag)


def _check_kind(statement: DropRelation, relation: Relation) -> None:
    if statement.kind not in ("relation", relation.kind):
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f'"{relation.name}" is not a {statement.kind}',
            hint=f"Use DROP {relation.kind.upper()} to remove a {relation.kind}.",
            position=statement.name.position,
        )
