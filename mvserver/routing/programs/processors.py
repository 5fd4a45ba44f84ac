"""Processors: groups of queries that a program has begun together. The catalog keeps name and program with them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from catalog.model import Query, Relation
from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.lenses.problems import Problems
from mvserver.routing import continuous, declaring, privileges, sinks
from mvserver.routing.ports import Services
from mvserver.routing.programs import planning
from mvserver.routing.programs.planning import PlannedInsert, PlannedProgram
from mvserver.routing.programs.schemas import PROCESSOR
from mvserver.routing.query_states import status_of
from mvserver.routing.work import Work
from mvserver.session.context import SessionContext
from mvserver.sql.statements.base import ObjectName
from mvserver.streaming.api import DEAD_LETTERS, LEAVES_REFUSED, REFUSED_LETTERS, QueryState, QueryStatus

_PROGRAM = "processor.program"  # the property of its first query
STOPPED = "terminated"
RUNNING = "running"


@dataclass(frozen=True)
class Processor:
    """``program`` is None where the query that had it was dropped."""

    name: str
    database: str
    schema: str
    queries: tuple[Query, ...]

    @property
    def owner(self) -> str:
        return self.queries[0].owner

    @property
    def program(self) -> str | None:
        texts = (dict(query.properties).get(_PROGRAM) for query in self.queries)
        return next((text for text in texts if text is not None), None)

    @property
    def stopped(self) -> bool:
        return all(query.desired_state == STOPPED for query in self.queries)


def all_of(services: Services) -> Sequence[Processor]:
    """In the order of their names."""
    grouped: dict[tuple[str, str, str], list[Query]] = {}
    for query in services.catalog.queries.all():
        name = dict(query.properties).get(PROCESSOR)
        if name is not None:
            grouped.setdefault((name, *query.search_path), []).append(query)
    return [Processor(*key, tuple(queries)) for key, queries in sorted(grouped.items())]


def find(name: ObjectName, context: SessionContext, services: Services) -> Processor | None:
    """By its name in the session's schema, or in the one that is named."""
    place = (*(context.database, context.schema)[: 3 - len(name.parts)], *name.parts[:-1])
    wanted = (name.parts[-1], *place)
    return next((each for each in all_of(services) if (each.name, each.database, each.schema) == wanted), None)


def get(name: ObjectName, context: SessionContext, services: Services) -> Processor:
    found = find(name, context, services)
    if found is None:
        raise SqlError(sqlstates.UNDEFINED_OBJECT, f'processor "{name}" does not exist', position=name.position)
    return found


def owned(name: ObjectName, context: SessionContext, services: Services) -> Processor:
    """42501 where the role may not change it."""
    found = get(name, context, services)
    for query in found.queries:
        privileges.require_query_owner(query, context, services)
    return found


def sources_of(processor: Processor, services: Services) -> Sequence[Relation]:
    """The declarations that it has made for itself."""
    _, schema = services.catalog.names.schema((processor.database, processor.schema), processor.database)
    return [
        each for each in services.catalog.relations.of_schema(schema.id) if each.property(PROCESSOR) == processor.name
    ]


# --- making one -----------------------------------------------------------------------------------------------------
def begin(
    name: str, text: str, start: int, state: str, context: SessionContext, services: Services, work: Work
) -> PlannedProgram:
    """All of the program or nothing. ``state`` is what its queries are to be."""
    if find(ObjectName((name,)), context, services) is not None:
        raise SqlError(sqlstates.DUPLICATE_OBJECT, f'processor "{name}" already exists')
    planned = planning.plan(name, text, start, context, services)
    starts = _attached(planned, start, context, services, work)
    with services.catalog.transaction():
        for source in planned.sources:
            declaring.declare(source.relation, source.entity, source.statement, planned.schema, context, services, work)
        for made in planned.made:
            declaring.declare(made.relation, made.entity, made.statement, planned.schema, context, services, work)
        for number, (insert, position) in enumerate(zip(planned.inserts, starts, strict=True)):
            program = ((_PROGRAM, text),) if number == 0 else ()
            services.catalog.queries.add(_query(planned, insert, position, state, program, context, services))
    work.after_commit(services.engine.reconcile)
    _tell(planned, context, services)
    return planned


def _attached(
    planned: PlannedProgram, start: int, context: SessionContext, services: Services, work: Work
) -> Sequence[str]:
    """Spark's word on each plan, and where each query begins."""
    problems, starts = Problems(), []
    for insert in planned.inserts:
        with problems.told_at(insert.place):
            starts.append(continuous.attach(insert.query, context, services, work))
    problems.raise_any(start)
    return starts


def _query(
    planned: PlannedProgram,
    insert: PlannedInsert,
    position: str,
    state: str,
    program: tuple[tuple[str, str], ...],
    context: SessionContext,
    services: Services,
) -> Query:
    made = continuous.query(
        insert.kind, insert.statement, insert.query, insert.target.relation.id, position, context, services
    )
    properties = (
        *(each for each in made.properties if each[0] != "application"),
        ("application", f"processor {context.database}.{context.schema}.{planned.name}"),  # its queries fail together
        (PROCESSOR, planned.name),
        *_refused(planned, insert),
        *program,
    )
    return replace(made, id=str(uuid.uuid4()), desired_state=state, properties=properties)


def _refused(planned: PlannedProgram, insert: PlannedInsert) -> Sequence[tuple[str, str]]:
    """What becomes of records that cannot be written."""
    if insert.kind == DEAD_LETTERS or planned.settings.writing == "fail":
        return ()
    letters = planned.letters
    return ((LEAVES_REFUSED, "true"), *([] if letters is None else [(REFUSED_LETTERS, letters.topic)]))


def _tell(planned: PlannedProgram, context: SessionContext, services: Services) -> None:
    for key, words in planned.settings.notices:
        context.notice(f'setting "{key}" has no effect here', detail=f"{words[0].upper()}{words[1:]}.")
    for warning in planned.warnings[: limits.LENSES_WARNINGS_SHOWN_MAX]:
        place = f"line {warning.place.line}, column {warning.place.column}"
        context.warning(f"{place}: {warning.message}", hint=warning.hint)
    more = len(planned.warnings) - limits.LENSES_WARNINGS_SHOWN_MAX
    if more > 0:
        context.warning(f"the program has {more} more warnings", hint="SET nullability = strict lists them as errors.")
    for insert in planned.inserts:
        if not insert.target.relation.key_columns:
            sinks.at_least_once(insert.query, insert.target.relation, planned.store, context, services)


# --- what it does ---------------------------------------------------------------------------------------------------
_WORST = (QueryState.FAILED, QueryState.STALLED, QueryState.STARTING, QueryState.FILLING)


def statuses(processor: Processor, services: Services) -> Mapping[str, QueryStatus]:
    known = {status.query_id: status for status in services.engine.statuses()}
    return {query.id: status_of(query, known) for query in processor.queries}


def failed(processor: Processor, services: Services) -> Sequence[str]:
    """The queries that are to run and have failed by themselves: the error of one that stands still because of another
    one names that, and it goes on with it."""
    known, found = statuses(processor, services), []
    for query in processor.queries:
        status = known[query.id]
        if query.desired_state == STOPPED or status.state is not QueryState.FAILED:
            continue
        others = [each.id for each in processor.queries if each.id != query.id]
        if not any(f"query {other} " in (status.error or "") for other in others):
            found.append(query.id)
    return found


def state_of(found: Mapping[str, QueryStatus]) -> str:
    """The worst state of its queries; STOPPED where none is to run."""
    states = {status.state for status in found.values()}
    if states == {QueryState.TERMINATED}:
        return "STOPPED"
    return next((state.value for state in _WORST if state in states), QueryState.RUNNING.value)
