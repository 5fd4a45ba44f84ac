"""ALTER … OWNER TO, and DeltaStream's GRANT OWNERSHIP."""

from __future__ import annotations

from catalog.acl import Privilege
from catalog.authority import Authority
from catalog.model import Database, EnumType, Function, Relation, Role, Schema
from catalog.privileges import Thing
from catalog.refusals import denied, not_owner, word
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.routing import grants, privileges, role_names
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.privileges import AlterOwner

FIELDS = None


def run(statement: AlterOwner, context: SessionContext, services: Services, work: Work) -> Result:
    with services.catalog.transaction():
        owner = role_names.resolve(statement.owner, context, services)
        own = privileges.authority(context, services)
        if statement.kind == "query":
            _alter_query(statement, owner, own, context, services)
        else:
            thing = grants.find(statement.kind, statement.name, statement.relation_kind, context, services)
            _check(thing, owner, statement.name.position, own, context, services)
            services.catalog.privileges.set_owner(thing, owner)
    return done(f"ALTER {(statement.relation_kind or statement.kind).upper()}")


def _alter_query(
    statement: AlterOwner, owner: Role, own: Authority, context: SessionContext, services: Services
) -> None:
    query = services.catalog.queries.get(statement.name.parts[0])
    privileges.require_query_owner(query, context, services)
    _require_member(owner, own)
    if query.kind == "materialized_view":
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f"query {query.id} is a part of a materialized view",
            hint="Use ALTER MATERIALIZED VIEW name OWNER TO role.",
            position=statement.name.position,
        )
    services.catalog.privileges.set_query_owner(query.id, owner)


def _check(
    thing: Thing, owner: Role, position: int | None, own: Authority, context: SessionContext, services: Services
) -> None:
    """Nobody gives away what is not his, nor to whom he could not be, nor to one who could not have made it there."""
    if not own.owns(thing):
        raise not_owner(f"{word(thing)} {thing.name}", position)
    _require_member(owner, own)
    if own.superuser:
        return
    catalog = services.catalog
    if isinstance(thing, Function) and not privileges.CREATEFUNCTION.of(
        owner
    ):  # its text would run in that role's name
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE,
            f"permission denied to change owner of function {thing.name}",
            detail=f'Role "{owner.name}" does not have the attribute {privileges.CREATEFUNCTION.word}.',
        )
    if isinstance(thing, Relation | EnumType | Function):
        place = catalog.schemas.by_id(thing.schema_id)
        if place is not None and not catalog.privileges.authority(owner.name).holds(place, Privilege.CREATE):
            raise denied(place, position)
    elif isinstance(thing, Schema):
        database = catalog.databases.by_id(thing.database_id)
        if database is not None and not own.holds(database, Privilege.CREATE):
            raise denied(database, position)
    elif isinstance(thing, Database):
        privileges.require_attribute(context, services, privileges.CREATEDB, "change owner of database")
    elif not privileges.CREATESTORE.of(owner):
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE,
            f"permission denied to change owner of store {thing.name}",
            detail=f'Role "{owner.name}" does not have the attribute {privileges.CREATESTORE.word}.',
        )


def _require_member(owner: Role, own: Authority) -> None:
    if not own.is_member(owner):
        raise SqlError(sqlstates.INSUFFICIENT_PRIVILEGE, f'must be member of role "{owner.name}"')
