"""Requests that are no HTTP: their answers are JSON as all others, and the log has no traceback of them."""

from __future__ import annotations

import logging

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

from mvserver import limits
from mvserver.failures import as_sql_error
from mvserver.http.status import ALWAYS, INTERNAL, RequestError, body_of

_LOG = logging.getLogger(__name__)


class Conversation(web.RequestHandler):
    """One connection's requests, as aiohttp reads them; what it cannot read comes here."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = INTERNAL,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was begun already")
        if status >= INTERNAL:
            error = as_sql_error(exc if isinstance(exc, Exception) else RuntimeError(message))
        elif isinstance(exc, LineTooLong):
            error = RequestError(
                status,
                "the first line or a header is too long",
                hint=f"They have at most {limits.HTTP_HEADER_BYTES_MAX} bytes. POST /v1/sql takes long statements.",
            )
        else:
            error = RequestError(status, "the request is no HTTP", detail=_first_line(message))
        _LOG.info("a request could not be read: %s", error.message)
        response = web.Response(status=status, body=body_of(error), content_type="application/json", charset="utf-8")
        response.headers.update({"Cache-Control": "no-store", **ALWAYS})
        response.force_close()
        return response


def _first_line(message: str | None) -> str | None:
    """What is wrong, without the bytes that are shown behind it."""
    return message.strip().partition("\n")[0].rstrip(":") if message else None
