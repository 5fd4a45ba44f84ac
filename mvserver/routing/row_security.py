"""Row security as statements meet it: where it can be, who may change it, and what cannot read through it."""

from __future__ import annotations

from catalog import row_security
from catalog.acl import PUBLIC
from catalog.model import Policy, Query, Relation
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing import lookup, privileges, role_names
from mvserver.routing.ports import Services
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import ObjectName, RoleSpec


def secured(name: ObjectName, context: SessionContext, services: Services) -> Relation:
    """The materialized view that is named, for its owner; 42809 for another relation."""
    found = lookup.relation(name, context, services)
    privileges.require_relation_owner(found, context, services, name.position)
    if found.kind != lookup.VIEW:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f'"{found.name}" is not a materialized view',
            detail="Row security is supported for materialized views.",
            hint=f"Take SELECT on the {found.kind} from the role, and give it a materialized view of the rows.",
            position=name.position,
        )
    return found


def roles(specs: tuple[RoleSpec, ...], context: SessionContext, services: Services) -> tuple[int, ...]:
    """Their oids, each once; PUBLIC alone where it is among them, as in PostgreSQL."""
    found = tuple(dict.fromkeys(role_names.grantee(spec, context, services) for spec in specs))
    if PUBLIC in found and len(found) > 1:
        context.notice("ignoring specified roles other than PUBLIC", detail="All roles are members of PUBLIC.")
        return (PUBLIC,)
    return found


def enable(view: Relation, context: SessionContext, services: Services, *, forced: bool | None = None) -> None:
    """Inside a transaction. 0A000 where a continuous query reads the view as a role that would not see all rows."""
    made = view.row_security_forced if forced is None else forced
    services.catalog.relations.set_row_security(view, enabled=True, forced=made)
    changed = services.catalog.relations.by_id(view.id)
    assert changed is not None  # noqa: S101 - of this transaction
    for query in services.catalog.queries.all():
        if view.id in query.source_ids and query.desired_state != "terminated":
            _refuse_reader(changed, query, services)


def _refuse_reader(view: Relation, query: Query, services: Services) -> None:
    if row_security.concerns(view, services.catalog.privileges.authority(query.owner)):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'materialized view "{view.name}" is read by a continuous query, which cannot read through row security',
            detail=f'Query {query.id} reads it as its owner, role "{query.owner}".',
            hint="Drop what reads it first, or give the role BYPASSRLS.",
        )


def said_of(policy: Policy, services: Services) -> str:
    """As messages name it: ``policy p on materialized view v``."""
    relation = services.catalog.relations.by_oid(policy.relation_oid)
    return f"policy {policy.name} on materialized view {relation.name if relation else policy.relation_oid}"
