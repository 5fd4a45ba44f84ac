"""The declaration of a materialized view, validated whole before anything of it exists."""

from __future__ import annotations

from dataclasses import dataclass, replace

from catalog.model import Relation, Schema
from mvserver import sqlstates
from mvserver.compiler.changelogs import result_key
from mvserver.compiler.derived import views
from mvserver.compiler.source_properties import millis
from mvserver.compiler.view_properties import VIEW_PROPERTIES, with_view_properties
from mvserver.errors import SqlError
from mvserver.routing import continuous, lookup, retention
from mvserver.routing.continuous import PlannedQuery
from mvserver.routing.ports import Services
from mvserver.routing.properties import PropertyReader
from mvserver.routing.replacing import replaced
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import Properties
from mvserver.sql.statements.relations import CreateMaterializedView
from mvserver.streaming.api import HISTORY
from spark_sinks.duckdb.history.log import refuse_taken


@dataclass(frozen=True)
class PlannedView:
    """``replaces`` is the view of OR REPLACE, where there is one."""

    schema: Schema
    name: str
    query: PlannedQuery
    replaces: Relation | None = None
    history_ms: int | None = None  # how long its changes are kept; None: while somebody watches

    def key_columns(self) -> tuple[str, ...]:
        """The output columns that together tell rows apart; none in append mode, or where a group key is left out."""
        return result_key(self.query.plan)


def plan_view(statement: CreateMaterializedView, context: SessionContext, services: Services) -> PlannedView:
    schema, name = lookup.new_relation(statement.name, context, services)
    replaces = None
    if statement.or_replace:
        replaces = replaced_view(statement, (schema, name), context, services)
    else:
        services.catalog.relations.check_new(schema.id, name)
    properties = PropertyReader(statement.properties, "a materialized view")
    kept = retention.read(properties, statement.properties)
    history_ms = _history(properties, statement.properties)
    properties.end((*VIEW_PROPERTIES, HISTORY))
    planned = continuous.plan(statement.select, context, services, default_starting=continuous.EARLIEST)
    planned = replace(planned, plan=with_view_properties(planned.plan, kept))
    if history_ms is not None:
        refuse_taken(output.name for output in planned.plan.outputs)
    if replaces is not None and any(replaces.id in scan.views for scan in views(planned.plan.scan)):
        raise SqlError(
            sqlstates.INVALID_OBJECT_DEFINITION,
            f'materialized view "{name}" cannot be replaced by a query that reads it',
            position=statement.name.position,
        )
    return PlannedView(schema, name, planned, replaces, history_ms)


def _history(properties: PropertyReader, given: Properties) -> int | None:
    properties.take(HISTORY)
    found = millis(given, HISTORY)
    if found == 0:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "{HISTORY}" must be at least 1',
            hint="Without the property a view's changes are kept while somebody watches it.",
            position=given.position(HISTORY),
        )
    return found


def replaced_view(
    statement: CreateMaterializedView, place: tuple[Schema, str], context: SessionContext, services: Services
) -> Relation | None:
    """The view that OR REPLACE gives another definition."""
    found = replaced(lookup.VIEW, statement.name, place, context, services)
    if found is None:
        return None
    (query,) = services.catalog.queries.of_sink(found.id)
    if "application" in dict(query.properties) or context.application is not None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'materialized view "{found.name}" cannot be replaced in an application',
            detail="The queries of an application begin and fail together.",
            hint="Drop the view, and create it again.",
            position=statement.name.position,
        )
    return found
