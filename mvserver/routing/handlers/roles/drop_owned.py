"""DROP OWNED BY roles: everything that they own, and everything that was given to them."""

from __future__ import annotations

from functools import partial

from catalog import acl
from catalog.acl import Acl
from catalog.dependencies import Dependents
from catalog.model import DescriptorSource, EnumType, Function, Query, Relation, Role, Schema, SchemaRegistry, Store
from catalog.privileges import Thing
from catalog.refusals import word
from mvserver.front import Result
from mvserver.routing import descriptor_sources, notices, privileges, role_names, schema_registries
from mvserver.routing.ports import Services
from mvserver.routing.rows import done
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.privileges import DropOwned

FIELDS = None
TAG = "DROP OWNED"


def run(statement: DropOwned, context: SessionContext, services: Services, work: Work) -> Result:
    with services.catalog.transaction():
        for spec in statement.of:
            role = role_names.resolve(spec, context, services)
            privileges.require_member(role, context, services, "drop")
            _take_what_was_given(role, services)
            _drop_what_it_owns(role, statement.cascade, context, services, work)
    return done(TAG)


def _take_what_was_given(role: Role, services: Services) -> None:
    """To the role, and by it: neither may be left when the role goes."""
    catalog = services.catalog
    for thing in catalog.privileges.given_to(role):
        owner = catalog.roles.get(thing.owner).oid
        catalog.privileges.set_acl(thing, _without(thing.acl or (), role.oid, owner))
    catalog.policies.leave(role.oid)
    catalog.default_privileges.delete_of(role.oid)
    for each in catalog.default_privileges.all():
        without = _without(each.acl, role.oid, each.role)
        catalog.default_privileges.put(each.role, each.schema_id, each.kind, without)


def _without(list_: Acl, role: int, owner: int) -> Acl:
    for item in list_:
        if role in (item.grantee, item.grantor):
            list_ = acl.revoke(
                list_, grantor=item.grantor, owner=owner, grantee=item.grantee, privileges=item.privileges,
                option_only=False, cascade=True,
            )  # fmt: skip
    return list_


def _drop_what_it_owns(role: Role, cascade: bool, context: SessionContext, services: Services, work: Work) -> None:
    """All at once, since one may hang on the other. A database stays, as in PostgreSQL: REASSIGN OWNED takes it."""
    catalog = services.catalog
    owned = [thing for thing in catalog.privileges.things() if thing.owner == role.name]
    relations = {thing.id: thing for thing in owned if isinstance(thing, Relation)}
    queries = {query.id: query for query in catalog.queries.all() if query.owner == role.name}
    own = frozenset((*relations, *queries))
    names: list[str] = []
    for thing in owned:
        if isinstance(thing, SchemaRegistry):
            left = [store for store in catalog.dependencies.of_schema_registry(thing) if store.owner != role.name]
            schema_registries.refuse_dropping(thing, left)
            continue
        if isinstance(thing, DescriptorSource):
            using = catalog.dependencies.of_descriptor_source(thing)
            descriptor_sources.refuse_dropping(thing, [each for each in using if each.owner != role.name])
            continue
        dependents = _dependents(thing, services)
        others: list[Relation | Query] = [*dependents.relations, *dependents.queries]
        others = [each for each in others if each.id not in own]
        if others and not cascade:
            raise dependents.refuse(f"{word(thing)} {thing.name}")
        names += [f"{each.kind} {each.name}" for each in others if isinstance(each, Relation)]
        relations.update((each.id, each) for each in dependents.relations)
        queries.update((each.id, each) for each in dependents.queries)
    catalog.dependencies.drop(relations.values(), queries.values())
    for thing in owned:
        if isinstance(thing, EnumType):
            catalog.enums.delete(thing.id)
        elif isinstance(thing, Function):
            catalog.functions.delete(thing.id)
        elif isinstance(thing, Schema):
            catalog.schemas.delete(thing.id)
        elif isinstance(thing, Store):
            catalog.stores.delete(thing.id)
            work.after_commit(partial(services.stores.forget, thing.id))
        elif isinstance(thing, SchemaRegistry):
            catalog.schema_registries.delete(thing.id)
            work.after_commit(partial(services.schema_registries.forget, thing.id))
        elif isinstance(thing, DescriptorSource):
            catalog.descriptor_sources.delete(thing.id)
    notices.cascades(context, list(dict.fromkeys(names)))
    work.after_commit(services.engine.reconcile)


def _dependents(thing: Thing, services: Services) -> Dependents:
    dependencies = services.catalog.dependencies
    if isinstance(thing, Relation):
        return dependencies.of_relation(thing)
    if isinstance(thing, Schema):
        return dependencies.of_schema(thing)
    if isinstance(thing, Function):
        return dependencies.of_function(thing)
    return dependencies.of_store(thing) if isinstance(thing, Store) else Dependents()
