"""The steps that all statements of continuous queries share: plan it, ask Spark, fix where it begins, keep it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog.model import Column, Query, Relation, Store
from mvserver import limits, sqlstates
from mvserver.compiler.derived import scans, views
from mvserver.compiler.own_functions import called_anywhere
from mvserver.compiler.plans import ContinuousPlan, Scan
from mvserver.compiler.view_properties import view_properties
from mvserver.errors import SqlError
from mvserver.routing import lookup
from mvserver.routing.functions import VisibleFunctions
from mvserver.routing.ports import Services
from mvserver.routing.spark_wait import with_spark
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.definitions import select_text
from mvserver.sql.statements.relations import (
    CreateChangelogAs,
    CreateMaterializedView,
    CreateStreamAs,
    CreateTableAs,
    InsertInto,
)
from mvserver.sql.types import Kind

EARLIEST = "earliest"
LATEST = "latest"

Continuous = CreateMaterializedView | CreateStreamAs | CreateChangelogAs | CreateTableAs | InsertInto


@dataclass(frozen=True)
class Input:
    """A stored relation that a SELECT reads."""

    scan: Scan
    relation: Relation
    store: Store
    entity: str


@dataclass(frozen=True)
class PlannedQuery:
    """A bound SELECT and what it reads: several relations where it joins them, the left-most first."""

    plan: ContinuousPlan
    inputs: tuple[Input, ...]

    @property
    def source(self) -> Relation:
        return self.inputs[0].relation

    @property
    def store(self) -> Store:
        return self.inputs[0].store

    @property
    def entity(self) -> str:
        return self.inputs[0].entity

    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(output.name, str(output.type)) for output in self.plan.outputs)


def plan(
    select: exp.Expression,
    context: SessionContext,
    services: Services,
    *,
    default_starting: str,
    new: Mapping[str, Relation] | None = None,
    written: bool = False,
) -> PlannedQuery:
    """Names, types and formats, all checked without Spark. ``new`` are relations, by name, that the statement is about
    to make: they alone can then be read. Rows that are ``written`` are not kept."""
    resolve = lookup.resolver(context, services) if new is None else lookup.new_resolver(new, services)
    functions = VisibleFunctions(context, services)
    plan_ = services.compile_select(
        select, resolve, default_starting=default_starting, functions=functions, written=written
    )
    known = {} if new is None else {each.id: each for each in new.values()}
    planned = PlannedQuery(plan_, tuple(_input(scan, known, services) for scan in scans(plan_.scan)))
    _check_outputs(planned)
    return planned


def _input(scan: Scan, known: Mapping[str, Relation], services: Services) -> Input:
    source = known.get(scan.relation_id) or services.catalog.relations.by_id(scan.relation_id)
    if source is None:
        raise SqlError(sqlstates.UNDEFINED_TABLE, f'relation "{scan.relation}" does not exist')
    store, entity = lookup.store_of(source, services)
    if scan.starting_position not in (EARLIEST, LATEST) and not services.stores.kind(store.type).starts_at_moments:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"reading a store of type {store.type} from a moment on is not supported",
            hint="The property 'starting.position' is earliest or latest there.",
        )
    said = dict(scan.reading)
    for each in services.stores.kind(store.type).reading_properties():
        if each.name in said and each.reading is not None:
            each.reading(said[each.name])
    return Input(scan, source, store, entity)


def attach(planned: PlannedQuery, context: SessionContext, services: Services, work: Work) -> str:
    """Spark's word on the plan, and the exact position at which the query begins."""
    if work.rehearsal:
        return "{}"
    with_spark(context, services, lambda: services.engine.check_plan(planned.plan))
    for each in planned.inputs:
        services.engine.check_reading(each.store, each.relation, each.scan)
    positions = _positions(planned.plan.scan, iter(planned.inputs), services)
    if planned.plan.scan.derived is None:
        return positions[0]
    return json.dumps({"sources": [json.loads(position) for position in positions]}, sort_keys=True)


def _positions(scan: Scan, inputs: Iterator[Input], services: Services) -> list[str]:
    """Where each stored relation below a scan is read from; over a view, from where the view itself was."""
    below = [] if scan.derived is None else [side.scan for side in scan.derived.sides]
    if scan.views and (below or scan.starting_position == EARLIEST):
        for _ in scans(scan):
            next(inputs)
        (view_query,) = services.catalog.queries.of_sink(scan.views[-1])
        start = json.loads(view_query.start_position)
        return [json.dumps(each, sort_keys=True) for each in (start["sources"] if below else [start])]
    if below:
        return [position for each in below for position in _positions(each, inputs, services)]
    found = next(inputs)
    return [services.engine.resolve_position(found.store, found.entity, scan.starting_position)]


def query(
    kind: str,
    statement: Continuous,
    planned: PlannedQuery,
    sink_id: str,
    start_position: str,
    context: SessionContext,
    services: Services,
) -> Query:
    return Query(
        id=str(uuid.uuid4()),
        kind=kind,
        select_text=select_text(statement),
        search_path=(context.database, context.schema),
        source_ids=(*(each.relation.id for each in planned.inputs), *_views_of(planned.plan)),
        sink_id=sink_id,
        owner=context.role,
        created_at=services.clock(),
        start_position=start_position,
        properties=(
            ("starting.position", planned.plan.scan.starting_position),
            *view_properties(planned.plan),
            *([] if context.application is None else [("application", context.application)]),
        ),
        function_ids=tuple(dict.fromkeys(each.id for each in called_anywhere(planned.plan))),
    )


def _views_of(plan_: ContinuousPlan) -> Sequence[str]:
    """The views that the query is made over, each once."""
    return list(dict.fromkeys(scan.views[-1] for scan in views(plan_.scan)))


Place = tuple[str, str]  # a store's id and an entity


def refuse_loop(
    planned: PlannedQuery,
    sink_store: Store,
    sink_entity: str,
    services: Services,
    also: Sequence[tuple[Place, Place]] = (),
) -> None:
    """A query that reads, be it through others, what it writes would never end. ``also`` are queries that begin with
    it: what each reads and writes."""
    catalog = services.catalog
    with catalog.snapshot():  # one committed state: other sessions make and drop relations meanwhile
        relations = {relation.id: relation for relation in catalog.relations.all()}
        queries = catalog.queries.all()
    edges = [
        (relations[source_id], relations[query_.sink_id])
        for query_ in queries
        if query_.desired_state == "running"
        for source_id in query_.source_ids
    ]
    goals = {(each.store.id, each.entity) for each in planned.inputs}
    front, seen = [(sink_store.id, sink_entity)], {(sink_store.id, sink_entity)}
    while front:
        place = front.pop()
        if place in goals:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'the query would read what it writes: entity "{sink_entity}" in store "{sink_store.name}"',
                hint="Write to another entity.",
            )
        for read, wrote in also:
            if read == place and wrote not in seen:
                seen.add(wrote)
                front.append(wrote)
        for source, sink in edges:
            if (source.store_id, source.entity) == place and sink.store_id is not None and sink.entity is not None:
                after = (sink.store_id, sink.entity)
                if after not in seen:
                    seen.add(after)
                    front.append(after)


def _check_outputs(planned: PlannedQuery) -> None:
    outputs = planned.plan.outputs
    if len(outputs) > limits.COLUMNS_MAX:
        raise SqlError(sqlstates.TOO_MANY_COLUMNS, f"target lists can have at most {limits.COLUMNS_MAX} entries")
    _refuse_duplicates([output.name for output in outputs])
    for output in outputs:
        if output.type.kind in (Kind.NULL, Kind.INTERVAL):
            raise SqlError(
                sqlstates.INVALID_TABLE_DEFINITION,
                f'column "{output.name}" cannot have type {output.type}',
                hint="Use CAST to give it a type that a column can have.",
            )


def _refuse_duplicates(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SqlError(
                sqlstates.DUPLICATE_COLUMN,
                f'column "{name}" specified more than once',
                hint="Give each column of the SELECT its own name with AS.",
            )
        seen.add(name)
