"""COMMENT ON: what a user says about an object, kept in the catalog and shown by psql."""

from __future__ import annotations

from catalog.model import Comment, Relation
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import grants, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CommentOn

FIELDS = None
TAG = "COMMENT"


def run(statement: CommentOn, context: SessionContext, services: Services, work: Work) -> Result:
    name = statement.name
    with services.catalog.transaction():
        number = 0
        if statement.kind == "role":
            privileges.require_superuser(context, services, "comment on a role")
            oid = services.catalog.roles.get(name.parts[0]).oid
        else:
            thing = grants.find(statement.kind, name, statement.relation_kind, context, services)
            privileges.require_owner(thing, context, services, name.position)
            oid = thing.oid
            if statement.column is not None and isinstance(thing, Relation):
                number = _column_number(thing, statement.column, name.position)
        services.catalog.comments.put(Comment(statement.kind, oid, number, statement.comment or ""))
    return done(TAG)


def _column_number(relation: Relation, column: str, position: int | None) -> int:
    names = [each.name for each in relation.columns]
    if column not in names:
        raise SqlError(
            sqlstates.UNDEFINED_COLUMN,
            f'column "{column}" of relation "{relation.name}" does not exist',
            position=position,
        )
    return names.index(column) + 1
