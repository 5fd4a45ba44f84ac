"""Continuous queries as rows, with the relations each reads, in the order of its text."""

from __future__ import annotations

from collections.abc import Sequence

from catalog import records
from catalog.connection import CatalogConnection, Row
from catalog.model import Query
from mvserver import sqlstates
from mvserver.errors import SqlError

_SELECT = (
    "SELECT id, kind, select_text, search_database, search_schema, sink_id, owner, created_at, start_position, "
    "desired_state, definition_version, time_zone, properties FROM queries"
)


class Queries:
    def __init__(self, connection: CatalogConnection) -> None:
        self._connection = connection

    def all(self) -> tuple[Query, ...]:
        with self._connection.snapshot():
            sources: dict[str, list[str]] = {}
            for query_id, relation_id in self._connection.read(
                "SELECT query_id, relation_id FROM query_sources ORDER BY query_id, ordinal"
            ):
                sources.setdefault(query_id, []).append(relation_id)
            functions: dict[str, list[str]] = {}
            for query_id, function_id in self._connection.read("SELECT * FROM query_functions ORDER BY 1, 2"):
                functions.setdefault(query_id, []).append(function_id)
            rows = self._connection.read(f"{_SELECT} ORDER BY created_at, id")
        return tuple(_query(row, sources.get(row[0], ()), functions.get(row[0], ())) for row in rows)

    def by_id(self, id_: str) -> Query | None:
        with self._connection.snapshot():
            rows = self._connection.read(f"{_SELECT} WHERE id = ?", (id_,))
            if not rows:
                return None
            sources = self._connection.read(
                "SELECT relation_id FROM query_sources WHERE query_id = ? ORDER BY ordinal", (id_,)
            )
            functions = self._connection.read(
                "SELECT function_id FROM query_functions WHERE query_id = ? ORDER BY 1", (id_,)
            )
        return _query(rows[0], [str(row[0]) for row in sources], [str(row[0]) for row in functions])

    def get(self, id_: str) -> Query:
        found = self.by_id(id_)
        if found is None:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'query "{id_}" does not exist')
        return found

    def of_sink(self, relation_id: str) -> tuple[Query, ...]:
        """The queries that write to a relation."""
        return tuple(query for query in self.all() if query.sink_id == relation_id)

    def of_function(self, function_id: str) -> tuple[Query, ...]:
        """The queries that call a function."""
        return tuple(query for query in self.all() if function_id in query.function_ids)

    def of_source(self, relation_id: str) -> tuple[Query, ...]:
        """The queries that read a relation."""
        return tuple(query for query in self.all() if relation_id in query.source_ids)

    def add(self, query: Query) -> None:
        self._connection.write(
            "INSERT INTO queries (id, kind, select_text, search_database, search_schema, sink_id, owner, created_at, "
            "start_position, desired_state, definition_version, time_zone, properties) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                query.id,
                query.kind,
                query.select_text,
                *query.search_path,
                query.sink_id,
                query.owner,
                query.created_at,
                query.start_position,
                query.desired_state,
                query.definition_version,
                query.time_zone,
                records.pairs_text(query.properties),
            ),
        )
        for ordinal, relation_id in enumerate(query.source_ids):
            self._connection.write("INSERT INTO query_sources VALUES (?, ?, ?)", (query.id, ordinal, relation_id))
        for function_id in query.function_ids:
            self._connection.write("INSERT INTO query_functions VALUES (?, ?)", (query.id, function_id))

    def set_desired_state(self, id_: str, state: str) -> None:
        self._connection.write("UPDATE queries SET desired_state = ? WHERE id = ?", (state, id_))

    def set_start(self, id_: str, start_position: str, definition_version: int) -> None:
        """A rebuild's new beginning."""
        self._connection.write(
            "UPDATE queries SET start_position = ?, definition_version = ? WHERE id = ?",
            (start_position, definition_version, id_),
        )

    def delete(self, id_: str) -> None:
        self._connection.write("DELETE FROM queries WHERE id = ?", (id_,))


def _query(row: Row, source_ids: Sequence[str], function_ids: Sequence[str]) -> Query:
    return Query(
        id=row[0],
        kind=row[1],
        select_text=row[2],
        search_path=(row[3], row[4]),
        source_ids=tuple(source_ids),
        sink_id=row[5],
        owner=row[6],
        created_at=row[7],
        start_position=row[8],
        desired_state=row[9],
        definition_version=row[10],
        time_zone=row[11],
        properties=records.pairs(row[12]),
        function_ids=tuple(function_ids),
    )
