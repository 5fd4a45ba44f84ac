"""A query's state as people read it: the engine's word where it has one."""

from __future__ import annotations

from collections.abc import Mapping

from catalog import row_security
from catalog.authority import Authority
from catalog.model import Query
from mvserver.routing.ports import Services
from mvserver.streaming.api import QueryState, QueryStatus


def status_of(query: Query, statuses: Mapping[str, QueryStatus]) -> QueryStatus:
    """A query that the engine does not know yet is starting, unless it is not meant to run."""
    found = statuses.get(query.id)
    if found is not None:
        return found
    return QueryStatus(query.id, QueryState.TERMINATED if query.desired_state == "terminated" else QueryState.STARTING)


def hides_rows(query: Query, own: Authority, services: Services) -> bool:
    """Whether row policies hide rows of what the query makes: then its error and its counts tell of them."""
    sink = services.catalog.relations.by_id(query.sink_id)
    return sink is not None and row_security.concerns(sink, own)


def relation_name(relation_id: str, services: Services) -> str | None:
    """database.schema.name; None for a relation that was dropped meanwhile."""
    relation = services.catalog.relations.by_id(relation_id)
    return services.catalog.names.full_name(relation) if relation is not None else None
