"""What a materialized view will be, validated whole before anything of it exists."""

from __future__ import annotations

from dataclasses import dataclass, replace

from catalog.model import Schema
from mvserver.compiler.changelogs import result_key
from mvserver.compiler.source_properties import millis
from mvserver.compiler.view_properties import RETENTION, VIEW_PROPERTIES, with_view_properties
from mvserver.routing import continuous, lookup
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.session.context import SessionContext
from mvserver.sql.statements.relations import CreateMaterializedView


@dataclass(frozen=True)
class PlannedView:
    schema: Schema
    name: str
    query: PlannedQuery

    def key_columns(self) -> tuple[str, ...]:
        """The output columns that together tell rows apart; none in append mode, or where a group key is left out."""
        return result_key(self.query.plan)


def plan_view(statement: CreateMaterializedView, context: SessionContext, services: Services) -> PlannedView:
    schema, name = lookup.new_relation(statement.name, context, services)
    services.catalog.relations.check_new(schema.id, name)
    properties = PropertyReader(statement.properties, "a materialized view")
    millis_ = {key: found for key in VIEW_PROPERTIES if (found := millis(statement.properties, key)) is not None}
    for key in VIEW_PROPERTIES:
        properties.take(key)
    properties.refuse("state.ttl.millis", f"Group by a window and give '{RETENTION}'.")
    properties.end(VIEW_PROPERTIES)
    planned = continuous.plan(statement.select, context, services, default_starting=continuous.EARLIEST)
    planned = replace(planned, plan=with_view_properties(planned.plan, millis_))
    return PlannedView(schema, name, planned)
