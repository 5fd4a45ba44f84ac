"""Spark comes up in the background; whoever needs it waits here, and learns the cause when it does not come."""

from __future__ import annotations

import logging
import threading
import time

from pyspark.sql import SparkSession

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.spark import SparkOptions, start_session, warm_up

_log = logging.getLogger(__name__)


class SessionStarter:
    def __init__(self, options: SparkOptions) -> None:
        self._options = options
        self._done = threading.Event()
        self._session: SparkSession | None = None
        self._problem: SqlError | None = None
        self._stopped = False

    def start(self) -> None:
        threading.Thread(target=self._start, name="spark-start", daemon=True).start()

    def _start(self) -> None:
        began = time.monotonic()
        try:
            session = start_session(self._options)
            warm_up(session)
            self._session = session
            _log.info("Spark %s is ready after %.1f s", session.version, time.monotonic() - began)
        except SqlError as error:
            _log.error("%s", error)
            self._problem = error
        except Exception as error:  # noqa: BLE001 - shown to whoever waits for Spark
            _log.exception("Spark could not be started")
            self._problem = SqlError(sqlstates.SYSTEM_ERROR, "Spark could not be started", detail=f"{error}.")
        finally:
            self._done.set()

    def problem_or_none(self) -> tuple[bool, str | None]:
        """(still starting, why it will not start)."""
        return not self._done.is_set(), None if self._problem is None else str(self._problem)

    def wait(self, timeout_s: float) -> None:
        if not self._done.wait(timeout_s):
            raise SqlError(
                sqlstates.CANNOT_CONNECT_NOW,
                "Spark is still starting",
                hint="Try again in a few seconds. Existing views can be read meanwhile.",
            )
        if self._problem is not None:
            raise self._problem

    def session(self) -> SparkSession:
        """Waits as long as the start takes."""
        self._done.wait()
        if self._problem is not None:
            raise self._problem
        if self._session is None or self._stopped:
            raise SqlError(sqlstates.ADMIN_SHUTDOWN, "the server is shutting down")
        return self._session

    def stop(self) -> None:
        self._stopped = True
        if self._session is not None:
            self._session.stop()
