"""Finished rows of the views that are looked up often, beside DuckDB, which plans each look-up anew.

A view that is asked for often enough is read once, by a thread of its own, and kept in memory. It is put out of use
before each COMMIT that changes it, and used again behind it, when the rows of the changed keys have been taken from the
merge itself or read anew: what is read here is always the last committed state. Whatever is not certain is left to
DuckDB.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from mvserver import limits
from mvserver.front import Result
from mvserver.serving.api import KeyRead, Place, PullPlan
from mvserver.serving.engine.snapshot import whole
from mvserver.serving.fast.finished_loader import CannotBeKept, Loader, Source
from mvserver.serving.fast.finished_reader import Reader, reader
from mvserver.serving.fast.finished_view import Budget, FinishedView
from mvserver.serving.fast.past_rows import PastRows, RowsThen, place_of
from mvserver.threads import started
from spark_sinks.duckdb.changes.changes import Change
from spark_sinks.duckdb.history.history import History

_log = logging.getLogger(__name__)

_UTC = "UTC"
_LOADS_MAX = 3
_LOOK_S = 5.0  # for views that nobody asks for any more

Keys = Sequence[Change] | None
"""Those whose rows a commit changes, or the rows as they are then; None where it may be any."""


@dataclass(eq=False)
class _Kept:
    """A view that is kept, or is about to be. All but ``view.token``, ``past_wanted`` and what counts who asks
    is changed under the lock."""

    source: Source
    view: FinishedView | None = None
    committing: bool = False  # a COMMIT that changes it is under way
    current: bool = False  # it was up to date before that
    busy: bool = False  # the thread that reads is at work on it
    pending: list[pa.Table] = field(default_factory=list)  # keys whose rows have changed since they were read
    pending_keys: int = 0
    spoiled: bool = False  # any row may have changed since its loading began
    asked_at: float = 0.0
    answered: int = 0
    past: PastRows | None = None
    past_wanted: bool = False  # somebody has asked for what it has not
    past_asked_at: float = 0.0
    readers: dict[KeyRead, Reader | None] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _PastWanted:
    kept: _Kept


@dataclass(frozen=True)
class FinishedStatus:
    """``state``: ready, behind or loading; ``bytes`` is all that is kept of the view, ``answered`` how many look-ups
    and ranges were answered since it is kept."""

    view_id: str
    state: str
    rows: int
    bytes: int
    answered: int


class KeptViews:
    """Implements ``serving.api.FinishedRows`` and ``spark_sinks.duckdb.changes.changes.StateWatch``."""

    def __init__(
        self,
        loader: Callable[[], Loader],
        memory: int,
        clock: Callable[[], float] = time.monotonic,
        history: Callable[[str], History | None] = lambda view_id: None,
    ) -> None:
        """``memory`` is in bytes; with 0 nothing is kept. ``history`` is that of a view, by its id."""
        self._make_loader = loader
        self._history = history
        self._clock = clock
        self._budget = Budget(memory)
        self._condition = threading.Condition()
        self._kept: dict[str, _Kept] = {}  # by view id; read without the lock
        self._tables: dict[str, str] = {}  # state tables, and the views that are kept of them
        self._unwanted: set[str] = set()  # tables whose keys the transaction that is open does not tell
        self._asked: dict[str, tuple[float, int]] = {}  # since when and how often, of what is not kept
        self._refused: dict[str, float] = {}  # until when, by the view's id or that of its past
        self._requests: dict[str, KeyRead] = {}  # to be loaded
        self._committing: list[tuple[_Kept, Keys]] | None = None  # of the COMMIT that is under way
        self._thread: threading.Thread | None = None
        self._closed = False
        self.answered = 0

    # --- look-ups -----------------------------------------------------------------------------------------------------
    def knows(self, plan: PullPlan) -> bool:
        read = plan.key_read
        if read is None:
            return False
        kept = self._kept.get(read.view_id)
        if kept is None or kept.view is None or kept.view.token is None:
            return False
        return read.as_of is None or (kept.past is not None and kept.past.is_current)

    def find(self, plan: PullPlan, parameters: Sequence[Any]) -> Result | None:
        read = plan.key_read
        if read is None:
            return None
        kept = self._kept.get(read.view_id)
        if kept is None:
            if self._is_often(read.view_id):
                self._request(read)
            return None
        kept.asked_at = self._clock()
        view = kept.view
        token = None if view is None else view.token
        if view is None or token is None or (kept.source.zoned and plan.time_zone != _UTC):
            return None
        try:
            answering = kept.readers[read]
        except KeyError:
            answering = self._reader(kept, view, plan, read)
        there = view.rows if read.as_of is None else self._then(kept, view, plan, parameters)
        rows = None if answering is None or there is None else answering.find(parameters, there)
        if isinstance(there, RowsThen) and not there.stands:
            return None
        if rows is None or view.token is not token:
            if view.lacks_arrangement:
                self._wake()
            return None
        self.answered += 1
        kept.answered += 1
        return whole(plan, rows)

    def _reader(self, kept: _Kept, view: FinishedView, plan: PullPlan, read: KeyRead) -> Reader | None:
        if len(kept.readers) >= limits.PLAN_CACHE_ENTRIES:
            kept.readers = {}
        made = kept.readers[read] = reader(view, plan, read)
        return made

    def _then(self, kept: _Kept, view: FinishedView, plan: PullPlan, parameters: Sequence[Any]) -> RowsThen | None:
        """The rows at the place that the plan asks for; None where DuckDB has to be asked."""
        read, past = plan.key_read, kept.past
        kept.past_asked_at = kept.asked_at
        if past is None or not past.is_current:
            if not kept.past_wanted and (past is not None or self._is_often(_past_of(kept.source.view_id))):
                kept.past_wanted = True
                self._wake()
            return None
        asked = None if read is None else read.as_of
        place = place_of(parameters[asked.parameter - 1] if isinstance(asked, Place) else asked, plan.time_zone)
        return None if place is None else past.then(place, view.rows)

    def _is_often(self, name: str) -> bool:
        """Whether what is not kept has been asked for often enough now to be kept."""
        if not self._budget.most:
            return False
        now = self._clock()
        since, times = self._asked.get(name, (now, 0))
        if now - since > limits.FINISHED_ROWS_ASKED_WITHIN_S:
            since, times = now, 0
        self._asked[name] = (since, times + 1)
        if times + 1 < limits.FINISHED_ROWS_ASKED_MIN or self._refused.get(name, now) > now:
            return False
        self._asked.pop(name, None)
        self._refused.pop(name, None)
        return True

    def _request(self, read: KeyRead) -> None:
        with self._condition:
            self._requests[read.view_id] = read
        self._wake()

    def status(self) -> Sequence[FinishedStatus]:
        """Of all views that are kept."""
        with self._condition:
            return [
                FinishedStatus(view_id, "loading", 0, 0, 0)
                if kept.view is None
                else FinishedStatus(
                    view_id,
                    "ready" if kept.view.token else "behind",
                    len(kept.view.rows),
                    kept.view.size + (0 if kept.past is None else kept.past.size),
                    kept.answered,
                )
                for view_id, kept in self._kept.items()
            ]

    # --- commits ------------------------------------------------------------------------------------------------------
    def wants_rows(self, table: str) -> str | None:
        kept = self._kept.get(self._tables.get(table, ""))
        return None if kept is None else kept.source.told

    def wants_keys(self, table: str) -> bool:
        if table in self._tables:
            return True
        with self._condition:
            wanted = table in self._tables
            if not wanted:
                self._unwanted.add(table)
            return wanted

    def changing(self, changes: Mapping[str, Keys] | None) -> None:
        with self._condition:
            found = [(kept, _touched(kept.source, changes)) for kept in self._kept.values()]
            self._committing = [(kept, keys) for kept, (touched, keys) in found if touched]
            for kept, _ in self._committing:
                kept.committing = True
                kept.current = kept.view is not None and kept.view.token is not None
                if kept.view is not None:
                    kept.view.token = None

    def changed(self, *, done: bool) -> None:
        with self._condition:
            for kept, keys in self._committing or ():
                kept.committing = False
                if self._kept.get(kept.source.view_id) is not kept:
                    continue  # it was let go meanwhile, and takes nothing any more
                if done and kept.current and keys is not None and self._is_told(kept, keys):
                    continue
                if keys is None and kept.view is None:
                    kept.spoiled = True
                    continue
                if keys is None:
                    self._let_go(kept, refused=True)
                    continue
                kept.pending += [table for each in keys for table in kept.source.keys_of(each) if table.num_rows]
                kept.pending_keys = sum(table.num_rows for table in kept.pending)
                if kept.pending_keys > limits.FINISHED_ROWS_KEYS_MAX:
                    self._let_go(kept, refused=True)
            self._committing = None
            self._unwanted.clear()
            self._condition.notify_all()

    def _is_told(self, kept: _Kept, changes: Sequence[Change]) -> bool:
        """Whether the merge has told all that has changed, so that the view is up to date. Under the lock."""
        view = kept.view
        if view is None or kept.busy or kept.pending:
            return False
        try:
            now = kept.source.rows_now(changes, view.rows)
            if now is None:
                return False
            rows = [row for row in now.values() if row is not None]
            gone = [key for key, row in now.items() if row is None and key in view.rows]
            if not view.takes_at_once(rows) or (gone and view.is_ordered):
                return False
            usable = view.take(rows) and (not gone or view.replace(gone, ()))
        except Exception:  # noqa: BLE001 - logged; the commit is made, and look-ups are answered by DuckDB
            _log.exception("the rows of view %s are let go", kept.source.view_id)
            usable = False
        if usable:
            view.token = object()
        else:
            self._let_go(kept, refused=True)
        return True

    def _let_go(self, kept: _Kept, *, refused: bool = False) -> None:
        """Under the lock."""
        view_id = kept.source.view_id
        if self._kept.get(view_id) is not kept:
            return
        del self._kept[view_id]
        self._tables = {table: of for table, of in self._tables.items() if of != view_id}
        if refused:
            self._refused[view_id] = self._clock() + limits.FINISHED_ROWS_RETRY_S
        self._let_past_go(kept)
        if kept.view is not None:
            kept.view.give_up()

    def _let_past_go(self, kept: _Kept) -> None:
        """Under the lock."""
        past, kept.past = kept.past, None
        if past is not None:
            past.give_up()

    # --- the thread that reads ----------------------------------------------------------------------------------------
    def _wake(self) -> None:
        with self._condition:
            if self._thread is None and not self._closed:
                self._thread = started(self._run, "finished-rows")
            self._condition.notify_all()

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        loader = self._make_loader()
        try:
            while True:
                with self._condition:
                    while not self._closed and not (work := self._next()):
                        self._condition.wait(_LOOK_S)
                        self._let_idle_go()
                    if self._closed:
                        return
                if isinstance(work, KeyRead):
                    self._load(loader, work)
                elif isinstance(work, _PastWanted):
                    self._follow_past(loader, work.kept)
                elif work is not None:
                    self._bring_up_to_date(loader, work)
        finally:
            loader.close()

    def _next(self) -> KeyRead | _Kept | _PastWanted | None:
        for kept in self._kept.values():
            view = kept.view
            if view is not None and not kept.committing and (view.token is None or view.lacks_arrangement):
                return kept
        for kept in self._kept.values():
            if kept.past_wanted and kept.view is not None:
                return _PastWanted(kept)
        return self._requests.pop(next(iter(self._requests))) if self._requests else None

    def _let_idle_go(self) -> None:
        until = self._clock() - limits.FINISHED_ROWS_IDLE_S
        for kept in [kept for kept in self._kept.values() if kept.view is not None and kept.asked_at < until]:
            self._let_go(kept)
        for kept in [kept for kept in self._kept.values() if kept.past_asked_at < until]:
            self._let_past_go(kept)

    def _load(self, loader: Loader, read: KeyRead) -> None:
        view_id, kept = read.view_id, None
        try:
            source = loader.source(view_id, read.key)
            kept = self._begin(source)
            for _ in range(_LOADS_MAX):
                if self._loaded(loader, kept, read):
                    return
            raise CannotBeKept("commits came while it was read")
        except (CannotBeKept, duckdb.Error) as reason:
            _log.debug("the rows of view %s are not kept: %s", view_id, reason)
            self._refuse(view_id, kept)
        except Exception:  # noqa: BLE001 - logged; look-ups are answered by DuckDB
            _log.exception("the rows of view %s cannot be kept", view_id)
            self._refuse(view_id, kept)

    def _loaded(self, loader: Loader, kept: _Kept, read: KeyRead) -> bool:
        """False where a commit has spoiled it."""
        source = kept.source
        kept.spoiled = False
        if loader.source(source.view_id, read.key) != source:
            raise CannotBeKept("it was made anew just now")
        view = loader.load(source, self._budget, lambda: self._closed or self._kept.get(source.view_id) is not kept)
        with self._condition:
            if kept.spoiled or self._kept.get(source.view_id) is not kept:
                view.give_up()
                return False
            kept.view = view
            return True

    def _begin(self, source: Source) -> _Kept:
        """From here on it is told of each COMMIT. One that is under way is waited for, and so is a transaction that
        has changed its rows already: neither tells which."""
        with self._condition:
            kept = self._kept[source.view_id] = _Kept(source, asked_at=self._clock())
            self._tables = {**self._tables, **dict.fromkeys(source.tables, source.view_id)}
            self._condition.wait_for(
                lambda: (self._committing is None and not self._unwanted & source.tables) or self._closed
            )
            return kept

    def _refuse(self, view_id: str, kept: _Kept | None) -> None:
        with self._condition:
            self._refused[view_id] = self._clock() + limits.FINISHED_ROWS_RETRY_S
            if kept is not None:
                self._let_go(kept, refused=True)

    def _bring_up_to_date(self, loader: Loader, kept: _Kept) -> None:
        view = kept.view
        assert view is not None  # noqa: S101 - chosen so
        with self._condition:
            changes, kept.pending, kept.pending_keys, kept.busy = kept.pending, [], 0, True
        try:
            usable = not changes or view.replace(*loader.changed(kept.source, changes))
            usable = usable and (not view.lacks_arrangement or view.arrange())
        except duckdb.Error as reason:
            _log.debug("the rows of view %s are let go: %s", kept.source.view_id, reason)
            usable = False
        except Exception:  # noqa: BLE001 - logged; look-ups are answered by DuckDB
            _log.exception("the rows of view %s are let go", kept.source.view_id)
            usable = False
        with self._condition:
            kept.busy = False
            if not usable:
                self._let_go(kept, refused=True)
            if self._kept.get(kept.source.view_id) is not kept:
                view.give_up()  # what it has been given since
            elif not kept.committing and not kept.pending:
                view.token = view.token or object()

    def _follow_past(self, loader: Loader, kept: _Kept) -> None:
        kept.past_wanted = False  # before it is read: who asks for what comes now asks again
        view, view_id = kept.view, kept.source.view_id
        assert view is not None  # noqa: S101 - chosen so
        history, past = self._history(view_id), kept.past
        if past is not None and (past.history is not history or past.last_seq < history.extent.first_seq - 1):
            with self._condition:
                self._let_past_go(kept)
            past = None
        if past is None and history is not None:
            past = PastRows(history, len(kept.source.key_types), view.weight, self._budget)
        if past is None or history is None:
            return  # nobody watches the view any more
        usable = False
        try:
            usable = loader.follow(kept.source, past, lambda: self._closed or self._kept.get(view_id) is not kept)
        except duckdb.Error as reason:
            _log.debug("the past rows of view %s are not kept: %s", view_id, reason)
        except Exception:  # noqa: BLE001 - logged; look-ups are answered by DuckDB
            _log.exception("the past rows of view %s are not kept", view_id)
        with self._condition:
            if usable and self._kept.get(view_id) is kept:
                kept.past = past
                return
            if history.ended is None:
                self._refused[_past_of(view_id)] = self._clock() + limits.FINISHED_ROWS_RETRY_S
            kept.past = None
            past.give_up()


def _past_of(view_id: str) -> str:
    return f"{view_id}$past"


def _touched(source: Source, changes: Mapping[str, Keys] | None) -> tuple[bool, Keys]:
    """Whether a commit changes the view, and by which keys."""
    if changes is None:
        return True, None
    found: list[Change] = []
    touched = False
    for table, keys in changes.items():
        if table in source.tables and keys is not None and all(map(source.is_of, keys)):
            touched = True
            found += keys
        elif table in source.tables or source.view_id in (table, table.rpartition("_")[0]):  # also of another version
            return True, None
    return touched, found
