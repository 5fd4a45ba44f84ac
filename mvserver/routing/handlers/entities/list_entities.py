"""LIST ENTITIES [IN path] [IN STORE s]: what the store itself says it holds."""

from __future__ import annotations

from catalog.acl import Privilege
from mvserver.front import Result
from mvserver.routing import lookup
from mvserver.routing.ports import Services
from mvserver.routing.rows import fields, json_object, result
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.stores import ListEntities
from mvserver.types.oids import JSON, TEXT

FIELDS = fields(("name", TEXT), ("details", JSON))


def run(statement: ListEntities, context: SessionContext, services: Services, work: Work) -> Result:
    store = lookup.store(statement.store, Privilege.USAGE, context, services)
    entities = services.stores.client(store).list_entities()
    if statement.path is not None:
        inside = (f"{statement.path}.", f"{statement.path}/")
        entities = [entity for entity in entities if entity.name.startswith(inside)]
    return result("LIST ENTITIES", FIELDS, [(entity.name, json_object(entity.details)) for entity in entities])
