"""The tools of assistants: views and what is in them, as ordinary statements of the role that asks.

What an assistant may learn is what the role may: privileges, row policies and limits are those of each statement.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.failures import as_sql_error
from mvserver.front import Backend
from mvserver.http.formats import NDJSON, Format
from mvserver.http.mcp.endpoint import login_of
from mvserver.http.openapi import server_version
from mvserver.http.statement import Login, Request, StatementRun
from mvserver.http.status import body_of
from mvserver.http.work import Workers

_READ_ONLY = {"default_transaction_read_only": "on", "statement_timeout": str(limits.MCP_QUERY_MS)}
_TEXT: Mapping[str, Any] = {"type": "string"}
_DATABASE: Mapping[str, Any] = {"type": "string", "description": "the database; postgres where it is left out"}
_VIEW: Mapping[str, Any] = {"type": "string", "description": "the view as schema.name; a name alone is one of public"}

_LIST = """
SELECT n.nspname || '.' || c.relname AS view, CASE c.relkind WHEN 'm' THEN 'materialized view' ELSE 'view' END AS kind,
  obj_description(c.oid, 'pg_class') AS description, v.caught_up, v.lag_seconds, v.last_change_at
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN mv_catalog.views v ON v.view = current_database() || '.' || n.nspname || '.' || c.relname
WHERE c.relkind IN ('m', 'v') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'mv_catalog')
  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY 1
"""
_COLUMNS = """
SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, col_description(c.oid, a.attnum) AS description
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
WHERE n.nspname || '.' || c.relname = $1 AND c.relkind IN ('m', 'v') AND a.attnum > 0 AND NOT a.attisdropped
  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY a.attnum
"""
_ABOUT = """
SELECT obj_description(c.oid, 'pg_class') AS description, pg_get_viewdef(c.oid) AS definition
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname || '.' || c.relname = $1 AND c.relkind IN ('m', 'v')
"""
_FRESH = "SELECT * FROM mv_catalog.views WHERE view = current_database() || '.' || $1"
_QUERY = "SELECT * FROM mv_catalog.queries WHERE sink = current_database() || '.' || $1"
_REJECTED = """
SELECT r.relation, r.reason, r.position, r.rejected_at FROM mv_catalog.rejected_rows r
JOIN mv_catalog.dependencies d ON d.depends_on = r.relation
WHERE d.object = current_database() || '.' || $1 ORDER BY r.rejected_at DESC LIMIT 10
"""

_TOOLS: Mapping[str, tuple[str, Mapping[str, Any], tuple[str, ...]]] = {
    "list_views": ("Lists the views that can be read, with what they are and how fresh.", {"database": _DATABASE}, ()),
    "describe_view": (
        "Tells a view's columns and types, its definition, and how fresh it is.",
        {"view": _VIEW, "database": _DATABASE},
        ("view",),
    ),
    "query": (
        "Runs a SELECT in PostgreSQL's dialect over views, and gives at most so many rows. Nothing can be changed.",
        {
            "sql": {"type": "string", "description": "one SELECT; $1, $2 ... are parameters"},
            "parameters": {"type": "array", "description": "values of the parameters"},
            "limit": {"type": "integer", "minimum": 1, "maximum": limits.MCP_ROWS_MAX},
            "database": _DATABASE,
        },
        ("sql",),
    ),
    "why": (
        "Tells why a view is as it is: the state of its query, errors, lag, records that could not be read.",
        {"view": _VIEW, "database": _DATABASE},
        ("view",),
    ),
}


def server(backend: Backend, workers: Workers) -> Any:
    """The SDK's server with these tools."""
    from mcp import types
    from mcp.server.lowlevel import Server

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=description,
                    input_schema={
                        "type": "object",
                        "properties": dict(properties),
                        "required": list(required),
                        "additionalProperties": False,
                    },
                    annotations=types.ToolAnnotations(read_only_hint=True),
                )
                for name, (description, properties, required) in _TOOLS.items()
            ]
        )

    async def call_tool(context: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            call = Tools(backend, workers, login_of(context.request), asked.name, asked.arguments or {})
            text, failed = await call.answer(), False
        except Exception as error:  # noqa: BLE001 - whatever it is, the assistant is told
            text, failed = body_of(as_sql_error(error)).decode(), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)

    return Server(
        "mvserver",
        version=server_version(),
        instructions="Views are kept up to date from streams. Look at list_views first; query reads them by SQL.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


class Tools:
    """One call of a tool."""

    def __init__(
        self, backend: Backend, workers: Workers, login: Login, name: str, arguments: Mapping[str, Any]
    ) -> None:
        self._backend = backend
        self._workers = workers
        self._login = login
        self._name = name
        self._arguments = arguments

    async def answer(self) -> str:
        """JSON. SqlError for whatever is wrong with the call or its statements."""
        self._check()
        if self._name == "list_views":
            return _json(await self._rows(_LIST))
        if self._name == "query":
            rows, more = await self._read(self._arguments["sql"], self._arguments.get("parameters") or (), self._limit)
            return _json({"rows": rows, "more": more})
        view = self._arguments["view"]
        columns = await self._rows(_COLUMNS, view)
        if not columns:
            columns = await self._rows(_COLUMNS, in_public := f"public.{view}")
            view = in_public if columns else view
        if not columns:
            raise SqlError(sqlstates.UNDEFINED_TABLE, f'view "{view}" does not exist', hint="list_views names them.")
        if self._name == "describe_view":
            about, fresh = await self._rows(_ABOUT, view), await self._rows(_FRESH, view)
            return _json({**about[0], "columns": columns, "freshness": fresh[0] if fresh else None})
        return _json({"queries": await self._rows(_QUERY, view), "rejected": await self._rows(_REJECTED, view)})

    @property
    def _limit(self) -> int:
        return int(self._arguments.get("limit", limits.MCP_ROWS))

    def _check(self) -> None:
        known = _TOOLS.get(self._name)
        if known is None:
            raise SqlError(sqlstates.UNDEFINED_FUNCTION, f"there is no tool {self._name}")
        _, properties, required = known
        for name, value in self._arguments.items():
            kind = properties.get(name, {}).get("type")
            fits = {
                "string": isinstance(value, str),
                "array": isinstance(value, list),
                "integer": isinstance(value, int) and not isinstance(value, bool),
            }
            if not fits.get(kind, False):
                raise SqlError(
                    sqlstates.INVALID_PARAMETER_VALUE, f'argument "{name}" is not one that {self._name} takes'
                )
        for name in required:
            if name not in self._arguments:
                raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'argument "{name}" is missing')
        if not 1 <= self._limit <= limits.MCP_ROWS_MAX:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE, f'argument "limit" must be between 1 and {limits.MCP_ROWS_MAX}'
            )

    async def _rows(self, statement: str, *parameters: Any) -> list[Any]:
        rows, _ = await self._read(statement, parameters, limits.MCP_ROWS_MAX)
        return rows

    async def _read(self, statement: str, parameters: Sequence[Any], limit: int) -> tuple[list[Any], bool]:
        """At most so many rows, and whether there are more."""
        database = self._arguments.get("database", "postgres")
        run = StatementRun(
            self._backend, self._login, Request(statement, parameters, database=database, settings=_READ_ONLY)
        )
        async with self._workers.supervise(run) as supervised:
            await supervised.step(run.prepare)
            return await supervised.step(_first_rows, run, limit)


def _first_rows(run: StatementRun, limit: int) -> tuple[list[Any], bool]:
    run.begin(Format(NDJSON))
    if run.live:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "rows that come as they happen cannot be queried here",
            hint="Ask a materialized view.",
        )
    rows: list[Any] = []
    size = 0
    last = run.fields is None
    first = True
    while not last and len(rows) <= limit:
        piece = run.piece(first=first)
        first, last = False, piece.last
        size += len(piece.data)
        if size > limits.MCP_BYTES_MAX:
            raise SqlError(
                sqlstates.PROGRAM_LIMIT_EXCEEDED,
                f"the rows have more than {limits.MCP_BYTES_MAX >> 10} KiB",
                hint="Ask for fewer columns or rows, or for aggregates.",
            )
        rows += map(json.loads, piece.data.splitlines())
    return rows[:limit], len(rows) > limit


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
