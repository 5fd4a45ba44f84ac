"""The views whose history is kept: switched on when somebody watches, off when nobody has for a while."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from catalog.model import Query
from mvserver import limits
from mvserver.errors import SqlError
from mvserver.resume_tokens import Token
from mvserver.streaming.api import HISTORY
from mvserver.streaming.watching import refusals
from mvserver.streaming.watching.history_reader import HistoryReader
from mvserver.views.finishing import logged_view
from mvserver.views.targets import Target
from mvserver.visible_rows import VisibleRows
from spark_sinks.duckdb.history import reading
from spark_sinks.duckdb.history.histories import UNWATCHED
from spark_sinks.duckdb.history.history import Bounds, History
from spark_sinks.duckdb.history.log import refuse_taken
from spark_sinks.duckdb.history.reading import Kept
from spark_sinks.duckdb.writer import Writer

_log = logging.getLogger(__name__)

_ATTEMPTS = 5  # to begin with a view that is being rebuilt at the same moment


@dataclass(frozen=True)
class HistoryStatus:
    """Of one view; ``always`` by its property."""

    view_id: str
    always: bool
    watchers: int
    rows: int
    bytes: int
    seconds: float
    kept: Kept


class WatchedViews:
    """``retention_s`` is how long a history is kept for who comes back, where the view has no property."""

    def __init__(
        self,
        writer: Writer,
        retention_s: float,
        target_of: Callable[[str], Target | None],
        name_of: Callable[[str], str],
    ) -> None:
        self._writer = writer
        self._retention_s = retention_s
        self._target_of = target_of
        self._name_of = name_of
        self._watches: set[HistoryReader] = set()
        self._refusing: SqlError | None = None
        self._lock = threading.Lock()  # of the set of watches
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    # --- life ---------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        self._thread = threading.Thread(target=self._tend, name="histories", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def end_all(self, error: SqlError) -> None:
        """At shutdown; none begins from now on."""
        with self._lock:
            self._refusing = error
            watches = list(self._watches)
        for watch in watches:
            watch.stop(error)

    def _tend(self) -> None:
        while not self._stopping.wait(limits.HISTORY_LOOK_S):
            try:
                self.tend()
            except Exception:  # noqa: BLE001 - logged; the next look tries again
                _log.exception("the histories of views could not be looked after")

    def tend(self) -> None:
        """Ends the histories that nobody wants any more; a transaction also removes what is too old."""
        histories = self._writer.histories
        if not histories.open_ones:
            return
        with self._writer.transaction():
            for history in histories.open_ones.values():
                if history.is_unwanted:
                    histories.end_one(history, UNWATCHED)

    # --- views that are set up ----------------------------------------------------------------------------------------
    def take_up(self, query: Query, target: Target) -> None:
        """Before the view takes its first batch: its history goes on where it has one. In a transaction of its own."""
        with self._writer.transaction():
            self.take_up_within(query, target)

    def take_up_within(self, query: Query, target: Target) -> None:
        """The same in the transaction that is open."""
        millis = dict(query.properties).get(HISTORY)
        seconds = max(self._retention_s, 0.0 if millis is None else int(millis) / 1000)
        self._writer.histories.take_up(logged_view(target), Bounds(seconds), always=millis is not None)

    # --- readers ------------------------------------------------------------------------------------------------------
    def open(
        self, view_id: str, *, since: str | None, snapshot: bool, visible: VisibleRows | None = None
    ) -> HistoryReader:
        """A reader behind the token ``since``; without one, from now on, with or without the rows that are there. Where
        not all rows are ``visible``, it is of these alone, and so must the token be.
        22023 for what is no token, 72000 where its changes are not kept, 53400 where there are too many readers."""
        seal = self._writer.histories.seal
        token = None if since is None else seal.read(since)
        with self._lock:
            if self._refusing is not None:
                raise self._refusing
            if len(self._watches) >= limits.WATCHES_MAX:
                raise refusals.too_many_watches()
        name = self._name_of(view_id)
        if token is not None and token.mark != ("" if visible is None else visible.mark):
            raise refusals.other_rows(name)
        history = self._joined(view_id, name, begin=token is None)
        try:
            seq = None if snapshot and token is None else self._begin(history, name, token)
            watch = HistoryReader(name, history, self._writer, seq, lambda: self._left(watch, history), visible)
        except SqlError as error:
            history.leave()
            raise error if visible is None else refusals.to_who_sees_some_rows(error) from None
        except BaseException:
            history.leave()
            raise
        with self._lock:
            self._watches.add(watch)
            refusing = self._refusing
        if refusing is not None:
            watch.stop(refusing)
        return watch

    def _left(self, watch: HistoryReader, history: History) -> None:
        with self._lock:
            self._watches.discard(watch)
        history.leave()

    def _begin(self, history: History, name: str, token: Token | None) -> int:
        """The number behind which a reader begins."""
        if token is None:
            return history.extent.last_seq
        with self._writer.read_cursor() as cursor:
            kept = reading.kept(cursor, history.view)
        if kept is None:
            raise refusals.too_old(name, None)
        if kept.oldest.incarnation != token.incarnation:
            raise refusals.other_incarnation(name, kept)
        if token.seq < kept.oldest.seq:
            raise refusals.too_old(name, kept)
        if token.seq > kept.latest.seq:
            raise refusals.not_reached(name, kept)
        return token.seq

    def _joined(self, view_id: str, name: str, *, begin: bool) -> History:
        """The view's history with one reader more."""
        for _ in range(_ATTEMPTS):
            target = self._target_of(view_id)
            if target is None:
                break
            found = self._writer.histories.of(target.query_id)
            if found is None and not begin:
                raise refusals.too_old(name, None)
            if found is None:
                found = self._begun(target)
            if found is not None and found.join():
                return found
        raise refusals.rebuilding(name)

    def _begun(self, target: Target) -> History | None:
        """None where the view is being rebuilt."""
        histories = self._writer.histories
        refuse_taken(output.name for output in target.plan.outputs)
        if sum(not history.always for history in histories.open_ones.values()) >= limits.HISTORIES_MAX:
            raise refusals.too_many_histories()
        try:
            with self._writer.transaction():
                if histories.of(target.query_id) is None:
                    histories.begin_one(logged_view(target), Bounds(self._retention_s), always=False)
        except SqlError:
            raise
        except Exception as error:
            if self._writer.has_tables(target.state.tables):
                raise
            _log.debug("the history of a view that is being rebuilt was not begun: %s", error)
            return None
        return histories.of(target.query_id)

    # --- what is known of them ----------------------------------------------------------------------------------------
    def statuses(self) -> Sequence[HistoryStatus]:
        found = []
        with self._writer.read_cursor() as cursor:
            for history in self._writer.histories.open_ones.values():
                kept = reading.kept(cursor, history.view)
                if kept is None:
                    continue
                extent = history.extent
                found.append(
                    HistoryStatus(
                        history.view.view_id,
                        history.always,
                        history.readers,
                        extent.rows,
                        extent.bytes,
                        history.bounds.seconds,
                        kept,
                    )
                )
        return found
