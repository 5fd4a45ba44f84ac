"""Waiting for Spark to be up, which a statement that needs it may do for a minute: a cancel ends the wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.routing.ports import Services
from mvserver.session.context import SessionContext
from mvserver.streaming.spark.state import SparkLostError

T = TypeVar("T")

_SLICE_S = 0.25  # a cancel, a time-out of the statement or the server's end is seen after at most this


def wait_for_spark(context: SessionContext, services: Services) -> None:
    """57P03 when it is not up in time, 57014 when the statement is to stop, the cause when it cannot start."""
    _wait(context, services, time.monotonic() + services.spark_start_timeout_s)


def with_spark(context: SessionContext, services: Services, work: Callable[[], T], *, again: bool = True) -> T:
    """What ``work`` returns, which calls Spark and changes nothing: where Spark ends meanwhile it is done ``again``.
    A cancel is seen although Spark hangs; what was called then ends with that Spark."""
    deadline = time.monotonic() + services.spark_start_timeout_s
    while True:
        _wait(context, services, deadline)
        try:
            return _aside(context, work)
        except SparkLostError:
            if not again or time.monotonic() > deadline:
                raise


def _aside(context: SessionContext, work: Callable[[], T]) -> T:
    """In a thread of its own, which is left behind where the statement is to stop."""
    results: list[T] = []
    failures: list[Exception] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001 - raised below, in the statement's thread
            failures.append(error)

    thread = threading.Thread(target=run, name="spark-call", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_SLICE_S)
        if thread.is_alive() and context.cancelled():
            raise _cancelled()
    if failures:
        raise failures.pop()
    return results[0]


def _wait(context: SessionContext, services: Services, deadline: float) -> None:
    while True:
        began = time.monotonic()
        slice_s = max(min(_SLICE_S, deadline - began), 0.0)
        try:
            services.engine.wait_until_ready(slice_s)
        except SqlError as error:
            if context.cancelled():
                raise _cancelled() from error
            waited = time.monotonic() - began >= slice_s / 2  # else it was refused at once: there is no waiting for it
            if error.sqlstate != sqlstates.CANNOT_CONNECT_NOW or slice_s < _SLICE_S or not waited:
                raise
        else:
            return


def _cancelled() -> SqlError:
    return SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request")
