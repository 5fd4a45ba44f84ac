"""The common part of GRANT and REVOKE: the objects, the privileges, and in whose name they are given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from catalog import acl
from catalog.acl import NOTHING, Acl, ObjectKind, Privilege, Privileges
from catalog.authority import Authority, kind_of
from catalog.privileges import Thing
from catalog.refusals import denied
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import Notice
from mvserver.routing import functions, lookup, organization, privileges, role_names
from mvserver.routing.ports import Services
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import ObjectName, RoleSpec
from mvserver.sql.statements.privileges import Grant, GrantTarget, Revoke

_KINDS = {
    "relation": ObjectKind.RELATION,
    "schema": ObjectKind.SCHEMA,
    "database": ObjectKind.DATABASE,
    "store": ObjectKind.STORE,
    "schema_registry": ObjectKind.SCHEMA_REGISTRY,
    "descriptor_source": ObjectKind.DESCRIPTOR_SOURCE,
    "function": ObjectKind.FUNCTION,
}
_WORDS: Mapping[str, Privilege] = {each.name.lower(): each for each in Privilege} | {"temp": Privilege.TEMPORARY}
_ALIASES: Mapping[tuple[ObjectKind, str], Privilege] = {
    # DeltaStream's words
    (ObjectKind.DATABASE, "usage"): Privilege.CONNECT,
    (ObjectKind.DATABASE, "create_schema"): Privilege.CREATE,
    (ObjectKind.SCHEMA, "create_relation"): Privilege.CREATE,
    (ObjectKind.STORE, "create_entity"): Privilege.CREATE,
}
_OTHER_WORDS = frozenset({"set", "alter", "maintain", "create_database", "create_store", "create_function"})


class Change(Protocol):
    """What a statement does to the list of an object, for one role."""

    def __call__(self, list_: Acl, /, *, grantor: int, owner: int, grantee: int, privileges: Privileges) -> Acl: ...


@dataclass(frozen=True)
class Grantor:
    """In whose name the privileges are given, and which of them may be."""

    oid: int
    may: Privileges


def read_privileges(words: Sequence[str] | None, kind: ObjectKind) -> Privileges:
    """``None`` is ALL."""
    if words is None:
        return acl.ALL[kind]
    return frozenset(_privilege(word, kind) for word in words)


def _privilege(word: str, kind: ObjectKind) -> Privilege:
    found = _ALIASES.get((kind, word)) or _WORDS.get(word)
    if found is None and word not in _OTHER_WORDS and not any(alias == word for _, alias in _ALIASES):
        raise SqlError(sqlstates.SYNTAX_ERROR, f'unrecognized privilege type "{word}"')
    if found is None or found not in acl.ALL[kind]:
        raise SqlError(sqlstates.INVALID_GRANT_OPERATION, f"invalid privilege type {word.upper()} for {kind.value}")
    return found


def targets(on: GrantTarget, context: SessionContext, services: Services) -> Iterator[Thing]:
    """The objects, each as it is now."""
    for name in on.names:
        if on.all_in_schema:
            privileges.require_place(name.parts, context, services, name.position)
            _, schema = services.catalog.names.schema(name.parts, context.database, name.position)
            if on.kind == "function":
                yield from services.catalog.functions.of_schema(schema.id)
                continue
            yield from (
                r for r in services.catalog.relations.of_schema(schema.id) if on.relation_kind in (None, r.kind)
            )
        else:
            yield find(on.kind, name, on.relation_kind, context, services)


def find(kind: str, name: ObjectName, relation_kind: str | None, context: SessionContext, services: Services) -> Thing:
    catalog = services.catalog
    if kind == "database":
        return catalog.databases.get(name.parts[0])
    if kind == "store":
        return catalog.stores.get(name.parts[0])
    if kind == "schema_registry":
        return catalog.schema_registries.get(name.parts[0])
    if kind == "descriptor_source":
        return catalog.descriptor_sources.get(name.parts[0])
    if kind == "schema":
        return catalog.names.schema(name.parts, context.database, name.position)[1]
    if kind == "function":
        return functions.function(name, context, services)
    if kind == "type":
        return lookup.enum_type(name, context, services)
    relation = lookup.relation(name, context, services)
    if relation_kind not in (None, relation.kind):
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE, f'"{relation.name}" is not a {relation_kind}', position=name.position
        )
    return relation


def kind_of_target(on: GrantTarget) -> ObjectKind:
    return _KINDS[on.kind]


# --- in whose name --------------------------------------------------------------------------------------------------
def grantor(
    thing: Thing, list_: Acl, wanted: Privileges, own: Authority, named: int | None, services: Services
) -> Grantor:
    """Of the roles that one is: the owner, else oneself, else the one who may pass on most. 42501 for a role that has
    nothing of the object at all."""
    owner = services.catalog.roles.get(thing.owner).oid
    kind = kind_of(thing)
    if named is not None and named != own.oid:
        raise SqlError(sqlstates.FEATURE_NOT_SUPPORTED, "grantor must be current user")
    if own.owns(thing):
        return Grantor(owner, acl.ALL[kind])
    may = {oid: acl.may_grant(list_, owner, {oid}, kind) & wanted for oid in own.oids if oid != acl.PUBLIC}
    best = (
        own.oid
        if own.oid in may and may[own.oid] == wanted
        else max(sorted(may), key=lambda oid: (len(may[oid]), oid == own.oid), default=own.oid)
    )
    found = Grantor(best, may.get(best, NOTHING))
    if not found.may and not own.held(thing):
        raise denied(thing)
    return found


def apply(
    statement: Grant | Revoke,
    of: Sequence[RoleSpec],
    change: Change,
    context: SessionContext,
    services: Services,
) -> None:
    """Gives to or takes from the roles ``of``, all of it or nothing, but for what the role itself may not pass on: of
    that it is warned."""
    granting, on = isinstance(statement, Grant), statement.on
    with services.catalog.transaction():
        if on.kind == "organization":
            organization.change(statement, of, granting, context, services)
            return
        wanted = read_privileges(statement.privileges, kind_of_target(on))
        grantees = [role_names.grantee(spec, context, services) for spec in of]
        named = None if statement.granted_by is None else role_names.grantee(statement.granted_by, context, services)
        own = privileges.authority(context, services)
        for thing in targets(on, context, services):
            list_ = services.catalog.privileges.acl(thing)
            by = grantor(thing, list_, wanted, own, named, services)
            given = wanted & by.may
            if given != wanted and not (statement.privileges is None and given):
                _warn(thing, granting=granting, nothing=not given, context=context)
            if given:
                owner = services.catalog.roles.get(thing.owner).oid
                for grantee in grantees:
                    list_ = change(list_, grantor=by.oid, owner=owner, grantee=grantee, privileges=given)
                services.catalog.privileges.set_acl(thing, list_)


def _warn(thing: Thing, *, granting: bool, nothing: bool, context: SessionContext) -> None:
    code = sqlstates.PRIVILEGE_NOT_GRANTED if granting else sqlstates.PRIVILEGE_NOT_REVOKED
    what = "were granted" if granting else "could be revoked"
    message = f'{"no" if nothing else "not all"} privileges {what} for "{thing.name}"'
    context.notices.append(Notice("WARNING", code, message))
