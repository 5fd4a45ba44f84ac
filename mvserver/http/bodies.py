"""Bodies of requests: JSON objects, bounded in size and time, whose fields are known."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.http.parameters import Number
from mvserver.http.status import RequestError

TEXTS = "A text is a JSON string without zero bytes and halves of surrogate pairs."
_NO_SETTINGS = frozenset({"user", "database", "options", "replication", "role", "session_authorization"})


def header_of(request: web.Request, name: str) -> str | None:
    """A list, which may stand in several lines."""
    lines = request.headers.getall(name, [])
    return ", ".join(lines) if lines else None


async def read_raw(request: web.Request) -> bytes:
    """415 for what is no JSON: a form of another site's page cannot send that without being asked about."""
    if request.content_type != "application/json":
        raise RequestError(415, "the body must be JSON", hint="Send Content-Type: application/json.")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise RequestError(415, "the body must not be compressed")
    if (request.content_length or 0) > limits.MESSAGE_BYTES_MAX:
        raise _too_large()  # before it is waited for
    try:
        async with asyncio.timeout(limits.HTTP_BODY_S):
            return await request.read()
    except TimeoutError:
        raise RequestError(408, f"the body did not come within {limits.HTTP_BODY_S:g} s") from None
    except web.HTTPRequestEntityTooLarge:
        raise _too_large() from None


def _too_large() -> SqlError:
    return SqlError(sqlstates.PROGRAM_LIMIT_EXCEEDED, f"the body has more than {limits.MESSAGE_BYTES_MAX} bytes")


def is_text(value: object) -> bool:
    """Whether a value of JSON is a text that can be sent on: no number, no zero byte, no half of a surrogate pair."""
    if not isinstance(value, str) or isinstance(value, Number) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def parsed(raw: bytes) -> dict[str, Any]:
    """A JSON object whose numbers are kept as they are written. May compute for long."""
    try:
        found = json.loads(
            raw.decode("utf-8"),
            parse_int=Number,
            parse_float=Number,
            parse_constant=_no_constant,
            object_pairs_hook=_unique,
        )
    except UnicodeDecodeError:
        raise RequestError(400, "the body is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        detail = str(error) if isinstance(error, ValueError) else "It is nested too deeply."
        raise RequestError(400, "the body is not JSON", detail=detail) from None
    if not isinstance(found, dict):
        raise RequestError(400, "the body must be a JSON object")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in an object")
    return found


def refuse_unknown(body: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in body:
        if name not in known:
            raise RequestError(400, f'unknown field "{name[:100]}"', hint=f"Fields are {', '.join(known)}.")


def text_of(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is None:
        return None
    if not is_text(value) or not value:
        raise RequestError(400, f'field "{name}" must be a text', detail=TEXTS)
    return str(value)


def settings_of(body: Mapping[str, Any]) -> dict[str, str]:
    given = body.get("settings")
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise RequestError(400, 'field "settings" must be an object of texts and numbers')
    for name, value in given.items():
        if name.lower() in _NO_SETTINGS or not is_text(name):
            raise RequestError(400, f'setting "{name[:100]}" cannot be given here')
        if not is_text(str(value)):
            raise RequestError(400, f'the value of setting "{name[:100]}" must be a text', detail=TEXTS)
    return {name: str(value) for name, value in given.items()}
