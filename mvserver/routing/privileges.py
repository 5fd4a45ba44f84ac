"""Checks of privileges. The catalog is asked each time, so a change holds from the next statement on.

The words and SQLSTATEs are PostgreSQL's: an object that is named is refused with 42501, also where the role does
not see it in any list; a schema that the role may not use is passed over where a name is looked for along the search
path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from catalog import row_security
from catalog.acl import Privilege
from catalog.authority import Authority
from catalog.model import ApiToken, Database, EnumType, Function, Query, Relation, Role, Store
from catalog.privileges import Thing
from catalog.refusals import denied, denied_for, no_connect, not_owner, word
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing.ports import Services
from mvserver.session.context import SessionContext


def authority(context: SessionContext, services: Services) -> Authority:
    return services.catalog.privileges.authority(context.role)


def require_superuser(context: SessionContext, services: Services, what: str) -> None:
    """``what`` is what is denied, as in ``create role``."""
    if not authority(context, services).superuser:
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE, f"permission denied to {what}", detail="Only superusers may do this."
        )


@dataclass(frozen=True)
class Attribute:
    """What a role may by itself, and not by the roles that it is a member of."""

    word: str
    given: Callable[[Role], bool]

    def of(self, role: Role) -> bool:
        return role.superuser or self.given(role)


CREATEDB = Attribute("CREATEDB", lambda role: role.create_database)
CREATEFUNCTION = Attribute("CREATEFUNCTION", lambda role: role.create_function)
CREATESTORE = Attribute("CREATESTORE", lambda role: role.create_store)


def require_attribute(context: SessionContext, services: Services, attribute: Attribute, what: str) -> None:
    role = services.catalog.roles.find(context.role)
    if role is None or not attribute.of(role):
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE,
            f"permission denied to {what}",
            detail=f"Only superusers and roles with the attribute {attribute.word} may do this.",
        )


def require(
    thing: Thing,
    privilege: Privilege,
    context: SessionContext,
    services: Services,
    position: int | None = None,
) -> None:
    if not authority(context, services).holds(thing, privilege):
        raise denied(thing, position)


def require_write(
    stream: Relation, store: Store, position: int | None, context: SessionContext, services: Services
) -> None:
    """INSERT on the stream; and its owner must be allowed to write to the store, else whoever may read a store could
    write to it by declaring a stream there."""
    require(stream, Privilege.INSERT, context, services, position)
    if not services.catalog.privileges.authority(stream.owner).holds(store, Privilege.INSERT):
        error = denied(store, position)
        owner = f'Role "{stream.owner}", the owner of {stream.kind} "{stream.name}"'
        error.detail = f"{owner}, may not write to the store."
        raise error


def require_all_rows(relation: Relation, role: str, services: Services, position: int | None = None) -> None:
    """0A000 where policies hide rows from the role: a continuous query keeps what it reads, for other readers."""
    if row_security.concerns(relation, services.catalog.privileges.authority(role)):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'a continuous query cannot read {relation.kind} "{relation.name}" through row security',
            detail=f'Its policies decide which rows role "{role}" sees.',
            hint="Read it as its owner or as a role with BYPASSRLS, or read what it reads.",
            position=position,
        )


def require_sight(thing: Thing, context: SessionContext, services: Services, position: int | None = None) -> None:
    """Any privilege: for what only tells of the object."""
    if not authority(context, services).sees(thing):
        raise denied(thing, position)


def require_owner(thing: Thing, context: SessionContext, services: Services, position: int | None = None) -> None:
    if not authority(context, services).owns(thing):
        raise not_owner(f"{word(thing)} {thing.name}", position)


def require_relation_owner(
    relation: Relation | EnumType | Function,
    context: SessionContext,
    services: Services,
    position: int | None = None,
) -> None:
    """As for everything in a schema: its own, or its schema's, since who owns a schema may clear it."""
    schema = services.catalog.schemas.by_id(relation.schema_id)
    own = authority(context, services)
    if not own.owns(relation) and (schema is None or not own.owns(schema)):
        raise not_owner(f"{word(relation)} {relation.name}", position)


def require_member(role: Role, context: SessionContext, services: Services, action: str) -> None:
    """``action`` is what the role's objects would suffer, as ``drop``."""
    if not authority(context, services).is_member(role):
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE,
            f"permission denied to {action} objects",
            detail=f'Only roles with privileges of role "{role.name}" may {action} objects owned by it.',
        )


def require_token_owner(token: ApiToken, context: SessionContext, services: Services) -> None:
    role = services.catalog.roles.by_oid(token.role)
    if role is None or not authority(context, services).is_member(role):
        raise not_owner(f"API token {token.name}", None)


def require_query_owner(query: Query, context: SessionContext, services: Services) -> None:
    own = authority(context, services)
    if not own.superuser and query.owner not in own.names:
        raise not_owner(f"query {query.id}", None)


def require_query_sight(query: Query, context: SessionContext, services: Services) -> None:
    if not sees_query(query, authority(context, services), services):
        raise denied_for(f"query {query.id}")


def require_sources_of(query: Query, services: Services) -> None:
    """A continuous query runs as its owner, who must still be allowed to read what it reads, and to call what it
    calls, when it is started anew."""
    own = services.catalog.privileges.authority(query.owner)
    for source_id in query.source_ids:
        source = services.catalog.relations.by_id(source_id)
        if source is not None and not own.holds(source, Privilege.SELECT):
            error = denied(source, None)
            error.detail = f'The query runs as its owner, role "{query.owner}".'
            raise error
        if source is not None:
            require_all_rows(source, query.owner, services)
    for function_id in query.function_ids:
        function = services.catalog.functions.by_id(function_id)
        if function is not None and not own.holds(function, Privilege.EXECUTE):
            error = denied(function, None)
            error.detail = f'The query runs as its owner, role "{query.owner}".'
            raise error


def require_place(parts: Sequence[str], context: SessionContext, services: Services, position: int | None) -> None:
    """``schema`` or ``database.schema``: CONNECT and USAGE, as far as they are there."""
    own = authority(context, services)
    if own.superuser:
        return
    catalog = services.catalog
    database = catalog.databases.find(parts[0] if len(parts) > 1 else context.database)
    if database is None:
        return
    if len(parts) > 1 and database.name != context.database:
        require_connect(database, context, services, position)
    schema = catalog.schemas.find(database.id, parts[-1])
    if schema is not None and not own.holds(schema, Privilege.USAGE):
        raise denied(schema, position)


def require_connect(
    database: Database, context: SessionContext, services: Services, position: int | None = None
) -> None:
    if not authority(context, services).holds(database, Privilege.CONNECT):
        raise no_connect(database.name, position)


def usable_path(context: SessionContext, services: Services) -> tuple[str, ...]:
    """The schemas of the search path in which the role may look."""
    own = authority(context, services)
    database = services.catalog.databases.find(context.database)
    if own.superuser or database is None:
        return context.search_path
    found = ((name, services.catalog.schemas.find(database.id, name)) for name in context.search_path)
    return tuple(name for name, schema in found if schema is None or own.holds(schema, Privilege.USAGE))


def sees_relation(relation: Relation | Function, own: Authority, services: Services) -> bool:
    """Not what is in a schema that the role may not use, whatever it may of the relation itself."""
    if own.superuser:
        return True
    schema = services.catalog.schemas.by_id(relation.schema_id)
    return own.sees(relation) and schema is not None and own.holds(schema, Privilege.USAGE)


def sees_query(query: Query, own: Authority, services: Services) -> bool:
    if own.superuser or query.owner in own.names:
        return True
    sink = services.catalog.relations.by_id(query.sink_id)
    return sink is not None and sees_relation(sink, own, services)
