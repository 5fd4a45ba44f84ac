"""The OpenAPI 3.1 document of the routes."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from mvserver import limits
from mvserver.http.formats import ARROW, JSON, NDJSON
from mvserver.http.view_query import COLUMNS, COMPARISONS, LIMIT, OFFSET, ORDER
from mvserver.http.view_schemas import ViewShape, paths_of

_Object = Mapping[str, Any]

_ROW: _Object = {"type": "object", "additionalProperties": True}
_SECURITY: list[dict[str, list[str]]] = [{"basic": []}, {"token": []}]


def _reference(name: str) -> _Object:
    return {"$ref": f"#/components/schemas/{name}"}


def _failures(**others: str) -> _Object:
    words = {
        "400": "the request or the statement is wrong",
        "401": "it is not clear who asks",
        "403": "the role may not do this",
        "503": "the server is busy or stopping",
        **{name.lstrip("_"): text for name, text in others.items()},
    }
    content = {JSON: {"schema": _reference("Error")}}
    return {status: {"description": text, "content": content} for status, text in sorted(words.items())}


def _rows(document: _Object) -> _Object:
    return {
        JSON: {"schema": document},
        NDJSON: {"schema": {"type": "string", "description": "one row a line"}},
        ARROW: {"schema": {"type": "string", "format": "binary"}},
    }


def _in_path(name: str) -> _Object:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _in_query(name: str, schema: _Object, words: str) -> _Object:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": words}


_TEXT: _Object = {"type": "string"}
_COUNT: _Object = {"type": "integer", "minimum": 0}

_SQL: _Object = {
    "summary": "Runs one statement",
    "operationId": "runStatement",
    "security": _SECURITY,
    "requestBody": {"required": True, "content": {JSON: {"schema": _reference("Statement")}}},
    "responses": {
        "200": {"description": "the rows, or what the statement did", "content": _rows(_reference("Result"))},
        "204": {"description": "the statement has no rows, and no JSON document was asked for"},
        **_failures(
            _406="no such format", _409="a conflict", _413="too much", _415="the body is no JSON", _504="out of time"
        ),
    },
}

_VIEW: _Object = {
    "summary": "Reads a view",
    "description": "Each other query parameter is a filter: column=operator.value. Operators are "
    + ", ".join([*COMPARISONS, "in", "is"])
    + ", each also as not.operator.",
    "operationId": "readView",
    "security": _SECURITY,
    "parameters": [
        *map(_in_path, ("database", "schema", "view")),
        _in_query(COLUMNS, _TEXT, "names of columns, separated by commas"),
        _in_query(ORDER, _TEXT, "columns to sort by, as name.desc.nullslast"),
        _in_query(LIMIT, _COUNT, "most rows"),
        _in_query(OFFSET, _COUNT, "rows to pass over"),
        {"name": "If-None-Match", "in": "header", "required": False, "schema": _TEXT},
    ],
    "responses": {
        "200": {
            "description": "the rows",
            "headers": {"ETag": {"description": "of the rows, while they are not being changed", "schema": _TEXT}},
            "content": _rows({"type": "array", "items": _ROW}),
        },
        "304": {"description": "the rows are those that the client has"},
        **_failures(_404="there is no such view", _406="no such format", _504="out of time"),
    },
}

_EVENTS = ("snapshot", "change", "reset", "end")

_CHANGES: _Object = {
    "summary": "What becomes of materialized views",
    "description": "With Accept: text/event-stream server-sent events; else a poll that waits for a change.",
    "operationId": "watchViews",
    "security": [*_SECURITY, {"ticket": []}],
    "parameters": [
        {
            "name": "view",
            "in": "query",
            "required": True,
            "schema": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": limits.HTTP_VIEWS_MAX},
            "explode": True,
            "description": "name, schema.name or database.schema.name",
        },
        _in_query("since", _TEXT, "the id of an event, or next of a poll: what is behind it"),
        _in_query("wait", {"type": "number", "maximum": limits.HTTP_POLL_MAX_S}, "seconds that a poll may wait"),
        {"name": "Last-Event-ID", "in": "header", "required": False, "schema": _TEXT},
    ],
    "responses": {
        "200": {
            "description": "events",
            "content": {
                "text/event-stream": {"schema": {"type": "string", "description": f"events {', '.join(_EVENTS)}"}},
                JSON: {"schema": _reference("Changes")},
            },
        },
        **_failures(_404="there is no such materialized view", _406="no such format", _409="the view is being made"),
    },
}

_TICKET: _Object = {
    "summary": "A ticket for the address of a stream",
    "operationId": "makeTicket",
    "security": _SECURITY,
    "requestBody": {
        "required": True,
        "content": {
            JSON: {
                "schema": {
                    "type": "object",
                    "required": ["views"],
                    "properties": {"views": {"type": "array", "items": _TEXT, "minItems": 1}},
                }
            }
        },
    },
    "responses": {
        "200": {
            "description": "the ticket, and for how many seconds it may be used",
            "content": {
                JSON: {
                    "schema": {
                        "type": "object",
                        "properties": {"ticket": _TEXT, "expires_in": {"type": "integer"}},
                    }
                }
            },
        },
        **_failures(_415="the body is no JSON"),
    },
}

_SCHEMAS: _Object = {
    "Changes": {
        "type": "object",
        "required": ["next", "events"],
        "properties": {
            "next": {"type": "string", "description": "since of the next poll"},
            "events": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"event": {"enum": list(_EVENTS)}, "data": {"type": "object"}},
                },
            },
        },
    },
    "Statement": {
        "type": "object",
        "required": ["statement"],
        "additionalProperties": False,
        "properties": {
            "statement": {"type": "string", "description": "one SQL statement"},
            "parameters": {"type": "array", "items": {}, "description": "the values of $1, $2, …"},
            "database": {"type": "string", "default": "postgres"},
            "schema": {"type": "string", "description": "where names without a schema are looked for"},
            "role": {"type": "string", "description": "the role to act as, as SET ROLE does"},
            "settings": {"type": "object", "additionalProperties": {"type": ["string", "number"]}},
        },
    },
    "Result": {
        "type": "object",
        "required": ["command", "notices"],
        "properties": {
            "columns": {
                "type": "array",
                "items": {"type": "object", "properties": {"name": _TEXT, "type": _TEXT}},
            },
            "rows": {"type": "array", "items": {"oneOf": [_ROW, {"type": "array"}]}},
            "command": {"type": "string", "description": "the command tag, as SELECT 3"},
            "notices": {"type": "array", "items": {"type": "object"}},
        },
    },
    "Error": {
        "type": "object",
        "required": ["code", "message"],
        "properties": {
            "code": {"type": "string", "description": "the SQLSTATE"},
            "message": _TEXT,
            "detail": {"type": ["string", "null"]},
            "hint": {"type": ["string", "null"]},
            "position": {"type": ["integer", "null"], "description": "of a character in the statement, from 1"},
        },
    },
}


def _state(summary: str, operation: str, *statuses: tuple[str, str]) -> _Object:
    return {
        "summary": summary,
        "operationId": operation,
        "security": [],
        "responses": {status: {"description": words} for status, words in statuses},
    }


@functools.cache
def document() -> bytes:
    """What holds for everybody."""
    return _document(())


def document_for(views: Sequence[ViewShape]) -> bytes:
    """The same, and the rows of these views."""
    return _document(views)


def _document(views: Sequence[ViewShape]) -> bytes:
    paths = {
        "/v1/sql": {"post": _SQL},
        "/v1/views/{database}/{schema}/{view}": {"get": _VIEW},
        **paths_of(views, _VIEW),
        "/v1/changes": {"get": _CHANGES},
        "/v1/tickets": {"post": _TICKET},
        "/v1/openapi.json": {
            "get": {
                **_state(
                    "This document, for a caller who is known with the views that it may read",
                    "describe",
                    ("200", "the document"),
                ),
                "security": [{}, *_SECURITY],
            }
        },
        "/console": {"get": _state("A page for people", "console", ("200", "the page"))},
        "/healthz": {"get": _state("Whether the server answers", "health", ("200", "it does"))},
        "/readyz": {
            "get": _state("Whether views follow their sources", "ready", ("200", "they do"), ("503", "Spark is not up"))
        },
    }
    found = {
        "openapi": "3.1.0",
        "info": {"title": "mvserver", "version": server_version()},
        "paths": paths,
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "token": {"type": "http", "scheme": "bearer"},
                "ticket": {"type": "apiKey", "in": "query", "name": "ticket"},
            },
        },
    }
    return json.dumps(found, ensure_ascii=False, indent=1).encode()


def server_version() -> str:
    try:
        return version("mvserver")
    except PackageNotFoundError:
        return "0"
