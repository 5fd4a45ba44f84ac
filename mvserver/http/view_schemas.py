"""The views that a caller may read, as paths of the OpenAPI document with the schema of their rows. They are asked for
by ordinary statements, so nothing is in it that the caller could not ask for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from urllib.parse import quote

from mvserver.front import Backend
from mvserver.http.formats import JSON, NDJSON, Format
from mvserver.http.statement import Login, Request, StatementRun
from mvserver.http.view_query import RESERVED
from mvserver.http.work import Workers
from mvserver.quoting import quoted
from mvserver.types import arrays, oids

Schema = Mapping[str, Any]

_DATABASES = "SELECT datname FROM pg_database WHERE has_database_privilege(datname, 'CONNECT') ORDER BY datname"
_COLUMNS = """
SELECT n.nspname, c.relname, obj_description(c.oid, 'pg_class'), a.attname, a.atttypid::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relkind IN ('m', 'v') AND a.attnum > 0 AND NOT a.attisdropped
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'mv_catalog')
  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY n.nspname, c.relname, a.attnum
"""
_TEXT: Schema = {"type": ["string", "null"]}
_OF_TYPE: Mapping[int, Schema] = {
    oids.BOOL: {"type": ["boolean", "null"]},
    oids.INT2: {"type": ["integer", "null"]},
    oids.INT4: {"type": ["integer", "null"]},
    oids.OID: {"type": ["integer", "null"]},
    oids.INT8: {"type": ["integer", "string", "null"]},  # a string, where a double does not hold it
    oids.NUMERIC: {"type": ["number", "string", "null"]},
    oids.FLOAT4: {"type": ["number", "string", "null"]},  # NaN and the infinities are strings
    oids.FLOAT8: {"type": ["number", "string", "null"]},
    oids.TIMESTAMPTZ: {"type": ["string", "null"], "format": "date-time"},
    oids.DATE: {"type": ["string", "null"], "format": "date"},
    oids.UUID: {"type": ["string", "null"], "format": "uuid"},
    oids.JSON: {},
    oids.JSONB: {},
}


@dataclass(frozen=True)
class ViewShape:
    """``columns`` are names and the oids of types. ``comment`` is the view's, if it has one."""

    database: str
    schema: str
    name: str
    comment: str | None
    columns: tuple[tuple[str, int], ...]

    @property
    def path(self) -> str:
        return "/v1/views/" + "/".join(quote(part, safe="") for part in (self.database, self.schema, self.name))


async def readable_views(workers: Workers, backend: Backend, login: Login) -> Sequence[ViewShape]:
    """Of all databases that the caller may connect to."""

    async def rows(statement: str, database: str) -> Iterator[Any]:
        run = StatementRun(backend, login, Request(statement, database=database))
        async with workers.supervise(run) as supervised:
            await supervised.step(run.prepare)
            raw = await supervised.step(_read, run)
        return map(json.loads, raw.splitlines())

    found: list[ViewShape] = []
    for (database,) in await rows(_DATABASES, Request("").database):
        named = groupby(await rows(_COLUMNS, database), key=lambda row: (row[0], row[1], row[2]))
        for (schema, name, comment), columns in named:
            shapes = tuple((column, int(oid)) for *_, column, oid in columns)
            found.append(ViewShape(database, schema, name, comment, shapes))
    return found


def _read(run: StatementRun) -> bytes:
    run.begin(Format(NDJSON, as_arrays=True))
    pieces = [run.piece(first=True)]
    while not pieces[-1].last:
        pieces.append(run.piece(first=False))
    return b"".join(piece.data for piece in pieces)


def paths_of(views: Sequence[ViewShape], general: Schema) -> Mapping[str, Any]:
    """``general`` is the operation of any view: these are it, with rows of their own."""
    return {view.path: {"get": _operation(view, general)} for view in views}


def _operation(view: ViewShape, general: Schema) -> Schema:
    filters = [
        {
            "name": quoted(column) if column in RESERVED else column,
            "in": "query",
            "required": False,
            "schema": {"type": "string"},
            "description": "a filter, as operator.value",
        }
        for column, _ in view.columns
    ]
    row = {
        "type": "object",
        "properties": {column: schema_of(oid) for column, oid in view.columns},
        "additionalProperties": False,
    }
    answer = general["responses"]["200"]
    content = {**answer["content"], JSON: {"schema": {"type": "array", "items": row}}}
    return {
        **general,
        "summary": f"Reads {view.database}.{view.schema}.{view.name}",
        "description": view.comment or general["description"],
        "operationId": f"{general['operationId']}{view.path.removeprefix('/v1/views')}",
        "parameters": [*(each for each in general["parameters"] if each["in"] != "path"), *filters],
        "responses": {**general["responses"], "200": {**answer, "content": content}},
    }


def schema_of(oid: int) -> Schema:
    """Of a column's values in a JSON document with ``numbers=safe``."""
    inner = arrays.element_oid(oid)
    if inner is None:
        return _OF_TYPE.get(oid, _TEXT)
    element = schema_of(inner)
    return {"type": ["array", "null"], "items": {"anyOf": [element, {"type": "array"}]} if element else {}}
