"""The freshness of answers, measured from outside: another connection polls, and the feeder knows what it fed."""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque

import psycopg

from mvserver.demo.feeder import Feeder
from mvserver.demo.server import Server

VISIBLE = "SELECT coalesce(sum(url_visit_count), 0) FROM url_visit_count;"
_POLL_S = 0.03
_KEPT = 50  # files, of which FILES_PER_S come in a second


class FreshnessWatch:
    """``visible`` is how many clicks the views showed at the last poll."""

    def __init__(self, server: Server, database: str, feeder: Feeder) -> None:
        self.visible = 0
        self.error: Exception | None = None
        self._server = server
        self._database = database
        self._feeder = feeder
        self._ages: deque[float] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="freshness", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def freshness_ms(self) -> tuple[float, float] | None:
        """Of the last files: how old the newest click was when it was visible, last and median."""
        with self._lock:
            return (self._ages[-1], statistics.median(self._ages)) if self._ages else None

    def _run(self) -> None:
        try:
            with self._server.connect(self._database) as connection:
                while not self._stop.wait(_POLL_S):
                    row = connection.execute(VISIBLE).fetchone()
                    now_ms = time.time() * 1000
                    self.visible = int(row[0]) if row else 0
                    ages = self._feeder.became_visible(self.visible, now_ms)
                    with self._lock:
                        self._ages.extend(ages)
        except psycopg.Error as error:
            self.error = error
