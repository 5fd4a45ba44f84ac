"""The objects that depend on an object, those that fall with it, and the words in which a refusal says so.

A view falls with the relation it reads, materialized or not; so does a query that writes into a stream. A stream made
by CREATE STREAM AS outlives its query: the topic and what was written stay readable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from catalog.connection import CatalogConnection
from catalog.enums import Enums
from catalog.functions import Functions
from catalog.model import Database, DescriptorSource, EnumType, Function, Query, Relation, Schema, SchemaRegistry, Store
from catalog.names import Names
from catalog.queries import Queries
from catalog.relations import Relations
from catalog.schemas import Schemas
from catalog.systems import Systems
from mvserver import sqlstates
from mvserver.errors import SqlError

REGISTRY_OF_STORE = "schema_registry.name"  # the property of a store that names its schema registry
DESCRIPTORS = ("value.descriptor.name", "key.descriptor.name")  # properties of a relation: "source.message"
_DETAIL_LINES_MAX = 100  # PostgreSQL's own bound of reported dependents


@dataclass(frozen=True)
class Dependents:
    """What would have to go first. ``lines`` say it in PostgreSQL's words; ``names`` are what CASCADE would take along.

    Terminated queries are among ``queries`` without a line: they are finished, and go without being asked about.
    """

    relations: tuple[Relation, ...] = ()
    queries: tuple[Query, ...] = ()
    lines: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lines)

    def detail(self) -> str:
        shown = list(self.lines[:_DETAIL_LINES_MAX])
        if len(self.lines) > _DETAIL_LINES_MAX:
            shown.append(f"and {len(self.lines) - _DETAIL_LINES_MAX} other objects")
        return "\n".join(shown)

    def refuse(self, subject: str) -> SqlError:
        """The 2BP01 for ``subject``, e.g. ``stream clicks``."""
        return SqlError(
            sqlstates.DEPENDENT_OBJECTS_STILL_EXIST,
            f"cannot drop {subject} because other objects depend on it",
            detail=self.detail(),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )


def called(function: Function) -> str:
    """As a refusal names it."""
    return f"{function.name}({function.signature})"


def kind(function: Function) -> str:
    """The word before its name."""
    return "aggregate" if function.aggregate else "function"


class Dependencies:
    def __init__(
        self,
        connection: CatalogConnection,
        schemas: Schemas,
        relations: Relations,
        enums: Enums,
        queries: Queries,
        names: Names,
        stores: Systems[Store],
        functions: Functions,
    ) -> None:
        self._connection = connection
        self._schemas = schemas
        self._relations = relations
        self._enums = enums
        self._queries = queries
        self._names = names
        self._stores = stores
        self._functions = functions

    def of_relation(self, relation: Relation) -> Dependents:
        """Not the query that fills a view: it is a part of the view."""
        with self._connection.snapshot():
            return self._closure([relation])

    def of_function(self, function: Function) -> Dependents:
        """The queries that call it, and the views that these fill, with what hangs on them."""
        with self._connection.snapshot():
            return self._closure([], [function])

    def of_schema(self, schema: Schema) -> Dependents:
        with self._connection.snapshot():
            types, functions = self._enums.of_schema(schema.id), self._functions.of_schema(schema.id)
            members = self._relations.of_schema(schema.id)
            return self._with_members(members, f"schema {schema.name}", types, functions)

    def of_database(self, database: Database) -> Dependents:
        with self._connection.snapshot():
            schemas = self._schemas.of_database(database.id)
            members = [r for s in schemas for r in self._relations.of_schema(s.id)]
            types = [t for s in schemas for t in self._enums.of_schema(s.id)]
            functions = [f for s in schemas for f in self._functions.of_schema(s.id)]
            return self._with_members(members, f"database {database.name}", types, functions)

    def of_store(self, store: Store) -> Dependents:
        with self._connection.snapshot():
            return self._with_members(self._relations.of_store(store.id), f"store {store.name}")

    def of_schema_registry(self, registry: SchemaRegistry) -> tuple[Store, ...]:
        """The stores that name it."""
        return tuple(each for each in self._stores.all() if each.property(REGISTRY_OF_STORE) == registry.name)

    def of_descriptor_source(self, source: DescriptorSource) -> tuple[Relation, ...]:
        """The relations whose records have schemas of it."""
        found = []
        for relation in self._relations.all():
            names = [(relation.property(key) or "").partition(".")[0] for key in DESCRIPTORS]
            if source.name in names:
                found.append(relation)
        return tuple(found)

    def drop(self, relations: Iterable[Relation], queries: Iterable[Query] = ()) -> None:
        """Removes relations, the queries that fill them or are given, and nothing else; inside a transaction."""
        doomed = {relation.id: relation for relation in relations}
        ids = {query.id for query in queries}
        ids.update(q.id for q in self._queries.all() if q.sink_id in doomed)
        for query_id in sorted(ids):
            self._queries.delete(query_id)
        for relation_id in doomed:
            self._relations.delete(relation_id)

    def _with_members(
        self,
        members: Sequence[Relation],
        holder: str,
        types: Sequence[EnumType] = (),
        functions: Sequence[Function] = (),
    ) -> Dependents:
        """Types and functions go with their schema's row."""
        beyond = self._closure(members, functions)
        others = [*(f"type {each.name}" for each in types), *(f"{kind(each)} {called(each)}" for each in functions)]
        return Dependents(
            (*members, *beyond.relations),
            beyond.queries,
            (
                *(f"{relation.kind} {relation.name} depends on {holder}" for relation in members),
                *(f"{each} depends on {holder}" for each in others),
                *beyond.lines,
            ),
            (
                *(f"{relation.kind} {relation.name}" for relation in members),
                *others,
                *beyond.names,
            ),
        )

    def _closure(self, roots: Sequence[Relation], functions: Sequence[Function] = ()) -> Dependents:
        """Everything that reads from, or writes by a query into, the roots, breadth first, each once;
        first everything that calls the functions."""
        all_queries, views = self._queries.all(), [each for each in self._relations.all() if each.select is not None]
        relations = {relation.id: relation for relation in roots}
        found: dict[str, Query] = {}
        lines: list[str] = []
        names: list[str] = []
        front = list(roots)

        def note(query: Query, what: str, *, also_terminated: bool = False) -> None:
            sink = self._relations.by_id(query.sink_id)
            if query.kind == "materialized_view":
                if sink is not None and sink.id not in relations:
                    relations[sink.id] = sink
                    front.append(sink)
                    lines.append(f"{sink.kind} {sink.name} depends on {what}")
                    names.append(f"{sink.kind} {sink.name}")
                return
            found[query.id] = query
            if also_terminated or query.desired_state != "terminated":
                target = f" into {sink.kind} {sink.name}" if sink is not None else ""
                lines.append(f"query {query.id}{target} depends on {what}")
                names.append(f"query {query.id}{target}")

        for function in functions:
            for query in all_queries:
                if function.id in query.function_ids and query.id not in found:
                    note(query, f"function {called(function)}", also_terminated=True)  # it may be restarted
        while front:
            subject = front.pop(0)
            what = f"{subject.kind} {subject.name}"
            for view in views:
                if view.reads(subject.id) and view.id not in relations:
                    relations[view.id] = view
                    front.append(view)
                    lines.append(f"{view.kind} {view.name} depends on {what}")
                    names.append(f"{view.kind} {view.name}")
            for query in all_queries:
                if query.id in found or (subject.id not in query.source_ids and subject.id != query.sink_id):
                    continue
                note(query, what)
        beyond = tuple(relation for relation in relations.values() if relation not in roots)
        return Dependents(beyond, tuple(found.values()), tuple(lines), tuple(names))
