"""Waiting for Spark to be up, which a statement that needs it may do for a minute: a cancel ends the wait."""

from __future__ import annotations

import time

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing.ports import Services
from mvserver.session.context import SessionContext

_SLICE_S = 0.25  # a cancel, a time-out of the statement or the server's end is seen after at most this


def wait_for_spark(context: SessionContext, services: Services) -> None:
    """57P03 when it is not up in time, 57014 when the statement is to stop, the cause when it cannot start."""
    deadline = time.monotonic() + services.spark_start_timeout_s
    while True:
        began = time.monotonic()
        slice_s = max(min(_SLICE_S, deadline - began), 0.0)
        try:
            services.engine.wait_until_ready(slice_s)
        except SqlError as error:
            if context.cancelled():
                raise SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request") from error
            waited = time.monotonic() - began >= slice_s / 2  # else it was refused at once: there is no waiting for it
            if error.sqlstate != sqlstates.CANNOT_CONNECT_NOW or slice_s < _SLICE_S or not waited:
                raise
        else:
            return
