"""SQLSTATEs as HTTP statuses, the body that an error has, and what any answer has. docs/web.md has the table."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mvserver import sqlstates
from mvserver.errors import SqlError

BAD_REQUEST = 400
UNAUTHORIZED = 401
NOT_FOUND = 404
INTERNAL = 500
UNAVAILABLE = 503

ALWAYS: Mapping[str, str] = {"X-Content-Type-Options": "nosniff", "Server": "mvserver"}
"""Headers of all answers."""

# a longer beginning of the code wins over a shorter one
BY_CODE: Mapping[str, int] = {
    "08": BAD_REQUEST,
    sqlstates.CONNECTION_FAILURE: 502,
    sqlstates.TRANSACTION_RESOLUTION_UNKNOWN: 502,
    "23": 409,
    "28": UNAUTHORIZED,
    "2B": 409,
    "40": 409,
    "42": BAD_REQUEST,
    sqlstates.INSUFFICIENT_PRIVILEGE: 403,
    sqlstates.DUPLICATE_DATABASE: 409,
    sqlstates.DUPLICATE_SCHEMA: 409,
    sqlstates.DUPLICATE_TABLE: 409,
    sqlstates.DUPLICATE_OBJECT: 409,
    "53": UNAVAILABLE,
    "54": 413,
    "55": 409,
    "57": UNAVAILABLE,
    sqlstates.QUERY_CANCELED: 504,
    "58": INTERNAL,
    "72": UNAVAILABLE,
    "F0": INTERNAL,
    "XX": INTERNAL,
}
# where the path names a view, what is not there is not found
OF_PATHS: Mapping[str, int] = {
    sqlstates.UNDEFINED_TABLE: NOT_FOUND,
    sqlstates.INVALID_CATALOG_NAME: NOT_FOUND,
    sqlstates.INVALID_SCHEMA_NAME: NOT_FOUND,
    sqlstates.WRONG_OBJECT_TYPE: NOT_FOUND,
}


class RequestError(SqlError):
    """What is wrong with a request itself, with a status of its own."""

    def __init__(self, status: int, message: str, *, hint: str | None = None, detail: str | None = None) -> None:
        super().__init__(sqlstates.PROTOCOL_VIOLATION, message, hint=hint, detail=detail)
        self.status = status


def status_of(error: SqlError, special: Mapping[str, int] | None = None) -> int:
    """``special`` are statuses that hold for this request before the others."""
    if isinstance(error, RequestError):
        return error.status
    found = (special or {}).get(error.sqlstate) or BY_CODE.get(error.sqlstate) or BY_CODE.get(error.sqlstate[:2])
    return found or BAD_REQUEST


def body_of(error: SqlError) -> bytes:
    shown = {
        "code": error.sqlstate,
        "message": error.message,
        "detail": error.detail,
        "hint": error.hint,
        "position": error.position,
    }
    return json.dumps(shown, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
