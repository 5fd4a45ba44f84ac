"""What a materialized view will be, validated whole before anything of it exists."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.model import Schema
from mvserver.compiler.expressions import KeyReference
from mvserver.compiler.plans import Aggregation
from mvserver.routing import continuous, lookup
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.session.context import SessionContext
from mvserver.sql.statements import CreateMaterializedView


@dataclass(frozen=True)
class PlannedView:
    schema: Schema
    name: str
    query: PlannedQuery

    def key_columns(self) -> tuple[str, ...]:
        """The output columns that together tell rows apart; none in append mode, or where a group key is left out."""
        plan = self.query.plan
        if not isinstance(plan, Aggregation):
            return ()
        keys = {o.expression.index: o.name for o in plan.outputs if isinstance(o.expression, KeyReference)}
        return tuple(keys[i] for i in sorted(keys)) if len(keys) == len(plan.keys) else ()


def plan_view(statement: CreateMaterializedView, context: SessionContext, services: Services) -> PlannedView:
    schema, name = lookup.new_relation(statement.name, context, services)
    services.catalog.relations.check_new(schema.id, name)
    PropertyReader(statement.properties, "a materialized view").end(())
    planned = continuous.plan(statement.select, context, services, default_starting=continuous.EARLIEST)
    return PlannedView(schema, name, planned)
