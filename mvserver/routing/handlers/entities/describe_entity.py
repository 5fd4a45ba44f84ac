"""DESCRIBE ENTITY: its details as the store tells them, and the streams that are declared over it."""

from __future__ import annotations

from catalog.acl import Privilege
from mvserver.front import Result
from mvserver.masking import masked
from mvserver.routing import lookup, privileges
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, json_object, json_text, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.stores import DescribeEntity
from mvserver.types.oids import JSON, TEXT

FIELDS = fields(("name", TEXT), ("store", TEXT), ("details", JSON), ("relations", JSON))


def run(statement: DescribeEntity, context: SessionContext, services: Services, work: Work) -> Result:
    store = lookup.store(statement.store, Privilege.USAGE, context, services)
    entity = services.stores.client(store).describe_entity(statement.name)
    own = privileges.authority(context, services)
    names = [
        services.catalog.names.full_name(relation)
        for relation in services.catalog.relations.of_store(store.id)
        if relation.entity == statement.name and privileges.sees_relation(relation, own, services)
    ]
    row = (entity.name, store.name, json_object(masked(entity.details)), json_text(names))
    return result("DESCRIBE ENTITY", FIELDS, [row])
