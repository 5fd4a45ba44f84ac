"""DROP INDEX: nothing depends on one."""

from __future__ import annotations

from catalog.model import Index, Relation
from catalog.refusals import not_owner
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import lookup, notices, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import ObjectName
from mvserver.sql.statements.relations import DropIndex

FIELDS = None
TAG = "DROP INDEX"


def run(statement: DropIndex, context: SessionContext, services: Services, work: Work) -> Result:
    with services.catalog.transaction():
        for name in statement.names:
            found = _find(name, context, services)
            if found is None:
                missing = f'index "{name.parts[-1]}" does not exist'
                if not statement.if_exists:
                    raise SqlError(sqlstates.UNDEFINED_OBJECT, missing, position=name.position)
                schema = lookup.missing_schema(name, context, services)
                notices.missing(context, missing if schema is None else f"{schema} does not exist")
                continue
            view, index = found
            if not privileges.authority(context, services).owns(view):
                raise not_owner(f"index {index.name}", name.position)
            services.catalog.relations.delete_index(view, index)
    return done(TAG)


def _find(name: ObjectName, context: SessionContext, services: Services) -> tuple[Relation, Index] | None:
    """The first along the search path; 42809 for a relation of that name."""
    catalog = services.catalog
    relation = lookup.find_relation(name, context, services)
    if relation is not None:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f'"{relation.name}" is not an index',
            hint=f"Use DROP {relation.kind.upper()} to remove a {relation.kind}.",
            position=name.position,
        )
    database = catalog.databases.find(name.parts[0] if len(name.parts) == 3 else context.database)
    if database is None:
        return None
    for place in (name.parts[-2],) if len(name.parts) > 1 else privileges.usable_path(context, services):
        schema = catalog.schemas.find(database.id, place)
        found = None if schema is None else catalog.relations.find_index(schema.id, name.parts[-1])
        if found is not None:
            return found
    return None
