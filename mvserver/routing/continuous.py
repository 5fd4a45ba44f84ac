"""What the statements that begin a continuous query share: plan it, ask Spark, fix where it begins, keep it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog.model import Column, Query, Relation, Store
from mvserver import limits, sqlstates
from mvserver.compiler.plans import ContinuousPlan
from mvserver.errors import SqlError
from mvserver.routing import lookup
from mvserver.routing.ports import Services
from mvserver.routing.spark_wait import wait_for_spark
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.lexer import TokenKind, tokenize
from mvserver.sql.statements import CreateMaterializedView, CreateStreamAs, InsertInto
from mvserver.sql.types import Kind

EARLIEST = "earliest"
LATEST = "latest"

Continuous = CreateMaterializedView | CreateStreamAs | InsertInto


@dataclass(frozen=True)
class PlannedQuery:
    """A bound SELECT and what it reads."""

    plan: ContinuousPlan
    source: Relation
    store: Store
    entity: str

    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(output.name, str(output.type)) for output in self.plan.outputs)


def plan(select: exp.Expression, context: SessionContext, services: Services, *, default_starting: str) -> PlannedQuery:
    """Names, types and formats, all checked without Spark."""
    resolve = lookup.resolver(context.database, context.search_path, services)
    plan_ = services.compile_select(select, resolve, default_starting=default_starting)
    source = services.catalog.relations.by_id(plan_.scan.relation_id)
    if source is None:
        raise SqlError(sqlstates.UNDEFINED_TABLE, f'relation "{plan_.scan.relation}" does not exist')
    store, entity = lookup.store_of(source, services)
    planned = PlannedQuery(plan_, source, store, entity)
    _check_outputs(planned)
    return planned


def attach(planned: PlannedQuery, context: SessionContext, services: Services, work: Work) -> str:
    """Spark's word on the plan, and the exact position at which the query begins."""
    if work.rehearsal:
        return "{}"
    wait_for_spark(context, services)
    services.engine.check_plan(planned.plan)
    return services.engine.resolve_position(planned.store, planned.entity, planned.plan.scan.starting_position)


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
        source_ids=(planned.source.id,),
        sink_id=sink_id,
        owner=context.role,
        created_at=services.clock(),
        start_position=start_position,
        properties=(("starting.position", planned.plan.scan.starting_position),),
    )


def select_text(statement: Continuous) -> str:
    """The SELECT as the user wrote it: the catalog keeps it, and each start of the server compiles it anew."""
    begins = ("select", "with") if isinstance(statement, InsertInto) else ("as",)
    depth = 0
    for token in tokenize(statement.text):
        if token.kind is TokenKind.OPERATOR and token.text in ("(", "["):
            depth += 1
        elif token.kind is TokenKind.OPERATOR and token.text in (")", "]"):
            depth -= 1
        elif depth == 0 and token.kind is TokenKind.WORD and token.text in begins:
            at = token.start if isinstance(statement, InsertInto) else token.end
            return statement.text[at:].strip()
    raise SqlError(sqlstates.INTERNAL_ERROR, "the statement has no SELECT", detail=statement.text)


def refuse_loop(planned: PlannedQuery, sink_store: Store, sink_entity: str, services: Services) -> None:
    """A query that reads, be it through others, what it writes would never end."""
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
    goal = (planned.store.id, planned.entity)
    front, seen = [(sink_store.id, sink_entity)], {(sink_store.id, sink_entity)}
    while front:
        place = front.pop()
        if place == goal:
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f'the query would read what it writes: entity "{sink_entity}" in store "{sink_store.name}"',
                hint="Write to another entity.",
            )
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
