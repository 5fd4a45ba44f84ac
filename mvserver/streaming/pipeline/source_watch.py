"""The look at a pipeline's source: whether it is well, where it ends, and which views have all that it has.

One thread looks at intervals, and at once where a query asks for the present end. Whoever asks while a look is under
way is answered by the next one, so that any number of queries costs one look at a time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from mvserver import moments, sqlstates
from mvserver.errors import SqlError, words_of
from mvserver.streaming.pipeline.running_state import RunningState
from mvserver.streaming.pipeline.source_observations import SourceObservations
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.spark.errors import unwritten
from spark_sinks.base import Position, SourceHealth, SourceReader

_log = logging.getLogger(__name__)


def health_of(reader: SourceReader, position: Position) -> SourceHealth:
    """What a source says of itself. One that cannot be asked has stalled: whoever looks must not end of it."""
    try:
        return reader.health.look(position)
    except SqlError as error:
        return SourceHealth("failed" if error.sqlstate == sqlstates.DATA_CORRUPTED else "stalled", str(error))
    except Exception as error:  # noqa: BLE001 - shown as the pipeline's state, and asked again
        _log.exception("a source could not be looked at")
        return SourceHealth("stalled", f"{type(error).__name__}: {words_of(error)}")


def explained(reader: SourceReader, error: BaseException, position: Position) -> Exception:
    """What the reading ended of: the disk, where Spark could not write to it, or as the source puts it."""
    return unwritten(error) or reader.health.explain_failure(error, position)


class SourceWatch:
    """``looked`` is called after each look."""

    def __init__(
        self,
        state: RunningState,
        reader: SourceReader,
        *,
        interval_s: float,
        stopping: threading.Event,
        looked: Callable[[], None] = lambda: None,
    ) -> None:
        self._state = state
        self._reader = reader
        self._interval_s = interval_s
        self._stopping = stopping
        self._looked = looked
        self._wake = threading.Event()
        self._begun = 0  # number of the last look that has begun
        self._answered = 0  # number of the last look to which the source gave its end
        self._observations = SourceObservations(reader.positions)

    # --- asked by queries -------------------------------------------------------------------------------------------
    def ask(self) -> int:
        """Asks for a look that begins from now on; :meth:`answer` has its number's result."""
        with self._state.lock:
            self._wake.set()
            return self._begun + 1

    def answer(self, number: int) -> Position | None:
        """The source's end as of that look or a later one; None as long as the source has not said it."""
        with self._state.lock:
            return self._state.latest if self._answered >= number else None

    def confirmed_at(self, subscriber: Subscriber) -> float | None:
        """The latest moment of which the view is known to have all that its source had."""
        with self._state.lock:
            moment = self._observations.confirmed(subscriber.position)
            known = subscriber.last_confirmed_at
            if moment is not None and (known is None or moment > known):
                subscriber.last_confirmed_at = moment
            return subscriber.last_confirmed_at

    # --- the thread -------------------------------------------------------------------------------------------------
    def loop(self) -> None:
        while True:
            with self._state.lock:
                self._begun += 1
                number = self._begun
                self._wake.clear()
            if self._stopping.is_set():  # after the clearing, which may have taken the call to stop
                return
            known = self._state.known_position()
            if known is not None:
                try:
                    self._look(number, known)
                    self._looked()
                except Exception as error:  # noqa: BLE001 - as of a full disk; the next look tries again
                    self._note(error)
            self._wake.wait(self._interval_s)

    def stop(self) -> None:
        """``stopping`` is set already."""
        self._wake.set()

    def _note(self, error: Exception) -> None:
        self._state.notice(error)
        _log.exception("what a look at a source found could not be kept")
        self._state.met(words_of(error))

    def _look(self, number: int, known: Position) -> None:
        began, began_at = moments.now(), time.monotonic()
        health = health_of(self._reader, known)
        with self._state.lock:
            if health.latest is not None or health.state == "failed":
                self._state.latest = health.latest  # of a source that has failed the former end means nothing
                self._state.latest_at = began_at
            try:
                if health.state == "stalled":
                    self._state.stall.silent(health.cause or "the source does not answer")
                elif health.state == "ok":
                    self._confirm(number, began, health)
                    self._state.seen_well(known, health.latest)
            finally:
                self._state.changed.notify_all()
        if health.state == "failed":
            self._state.fail_at(known, health.cause or "the source failed")

    def _confirm(self, number: int, began: float, health: SourceHealth) -> None:
        if health.latest is None:
            return
        self._answered = number
        self._observations.add(began, health.latest)
        confirmed = [self.confirmed_at(s) for s in self._state.wanted() if s.kept]
        known = [moment for moment in confirmed if moment is not None]
        if known and len(known) == len(confirmed):
            self._observations.forget_before(min(known))
