"""One evaluation for all who ask the same: dashboards of many people send equal texts, again and again.

Whoever asks while an equal query is being evaluated waits for that evaluation, and a small result is kept until a view
that it reads is changed. Both hold only as long as no commit has begun since before the evaluation did, so each answer
is what the query would find itself. A query that is a moment too late for that, whose shared evaluation fails, or whose
result turns out to be large is run by itself.

An evaluation belongs to all who wait for it: one that is cancelled or out of time leaves, and the last of them ends it.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.front import Result
from mvserver.serving.api import Owner, PullPlan, Version
from mvserver.serving.engine.abandonable_work import AbandonableTask, AbandonableWork
from mvserver.serving.engine.snapshot import DuckSnapshot
from mvserver.serving.fast.evaluation import Begun, Whole

_Key = tuple[str, str, str]  # what DuckDB runs, in which time zone, with which values
_WRITTEN_OUT = (type(None), bool, int, float, str, Decimal, dt.date, dt.datetime, dt.time, dt.timedelta, uuid.UUID)
_ENTRY_BYTES = 1_000  # of what is kept beside the rows, about
_INTERRUPTED_AGAIN_S = 0.05  # the clock repeats a request to stop about as often


class Evaluation:
    """One that is under way, and the seats of those who wait for it."""

    def __init__(self, version: Version, snapshot: DuckSnapshot) -> None:
        self.version = version
        self.snapshot = snapshot  # of who began it, as long as that one stays
        self.work: AbandonableTask[None]
        self._lock = threading.Lock()
        self._seats: list[Seat] = []
        self._open = True
        self.outcome: Whole | Begun | BaseException | None = None

    def join(self, seat: Seat) -> bool:
        with self._lock:
            if self._open:
                self._seats.append(seat)
            return self._open

    def leave(self, seat: Seat, *, last_too: bool) -> bool:
        """False where it has ended just now, or the seat is the last and must stay for a while."""
        with self._lock:
            if self.outcome is not None or (len(self._seats) == 1 and not last_too):
                return False
            self._seats.remove(seat)
            if not self._seats:
                self._open = False
                self.snapshot.interrupt()
            return True

    @property
    def deserted(self) -> bool:
        return not self._seats

    def stop_if_alone(self, seat: Seat) -> None:
        """Nobody else waits for it: it is interrupted, and takes nobody more."""
        with self._lock:
            if self.outcome is not None or self._seats != [seat]:
                return
            self._open = False
            self.snapshot.interrupt()

    def end(self, outcome: Whole | Begun | BaseException) -> None:
        """On the thread of the evaluation."""
        with self._lock:
            self.outcome = outcome
            self._open = False
            seats = tuple(self._seats)
        if all(seat.snapshot is None for seat in seats):
            if isinstance(outcome, Begun):
                outcome.close()
            self.snapshot.close()
        for seat in seats:
            seat.wake()


class Seat:
    """Of one who waits. ``snapshot`` is the one that it has given, to be taken back when the waiting is over."""

    def __init__(
        self, evaluation: Evaluation, plan: PullPlan, owner: Owner, snapshot: DuckSnapshot | None = None
    ) -> None:
        self._evaluation = evaluation
        self._plan = plan
        self._owner = owner
        self.snapshot = snapshot
        self._event = threading.Event()
        self._stopped_at: float | None = None
        self._gone = False

    def wake(self) -> None:
        self._event.set()

    def interrupt(self) -> None:
        """From any thread."""
        self._stopped_at = self._stopped_at or time.monotonic()
        self._evaluation.stop_if_alone(self)
        self._event.set()

    def wait(self) -> Result | None:
        """None where the query has to be run by itself."""
        while self._evaluation.outcome is None:
            self._event.wait(None if self._stopped_at is None else _INTERRUPTED_AGAIN_S)
            self._event.clear()
            if self._stopped_at is not None and self._evaluation.outcome is None:
                overdue = time.monotonic() - self._stopped_at >= limits.LEFT_AFTER_S
                if self._leave(last_too=overdue):
                    raise SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request")
        outcome = self._evaluation.outcome
        if isinstance(outcome, Whole):
            return outcome.result(self._plan)
        if self.snapshot is None:
            return None
        if isinstance(outcome, Begun):
            return self.snapshot.go_on(self._plan, outcome)
        raise outcome

    def give_up(self) -> None:
        if self._gone or self._leave(last_too=True):
            return
        if isinstance(self._evaluation.outcome, Begun) and self.snapshot is not None:
            self._evaluation.outcome.close()

    def _leave(self, *, last_too: bool) -> bool:
        if not self._evaluation.leave(self, last_too=last_too):
            return False
        self._gone = True
        self.snapshot = None
        if self._evaluation.deserted:
            self._evaluation.work.leave(self._owner)  # whose memory counts for who began it
        return True


@dataclass(frozen=True)
class _Kept:
    version: Version
    view_ids: tuple[str, ...]
    whole: Whole
    bytes: int


class SharedReads:
    """Implements ``serving.api.Sharing``."""

    def __init__(self, version: Callable[[Sequence[str]], Version | None], abandonable: AbandonableWork) -> None:
        """``version`` is that of the rows of some views, None while a commit changes them."""
        self._version = version
        self._abandonable = abandonable
        self._lock = threading.Lock()
        self._evaluations: dict[_Key, Evaluation] = {}
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._bytes = 0
        self._since_swept = 0

    @property
    def kept_bytes(self) -> int:
        return self._bytes

    def version(self, plan: PullPlan) -> Version | None:
        return self._version(plan.view_ids)

    def kept(self, plan: PullPlan, parameters: Sequence[Any]) -> Result | None:
        """The answer, where it is at hand."""
        key = _key(plan, parameters)
        version = self.version(plan)
        with self._lock:
            found = None if key is None else self._kept.get(key)
            if key is None or found is None:
                return None
            if found.version != version:
                self._forget(key)
                return None
            self._kept.move_to_end(key)
        return found.whole.result(plan)

    def keep(self, plan: PullPlan, parameters: Sequence[Any], version: Version | None, result: Result) -> None:
        """What was found after ``version`` was asked for."""
        key = _key(plan, parameters)
        if key is not None and version is not None and result.rows is not None:
            self._keep(key, plan, version, Whole.of(result.rows))

    def seat(
        self, plan: PullPlan, parameters: Sequence[Any], snapshot: Callable[[], DuckSnapshot], owner: Owner
    ) -> Seat | None:
        """A place among those who wait for the answer; None where the query has to be run by itself. ``snapshot`` gives
        what it is evaluated with, where nobody evaluates it yet."""
        key, version = _key(plan, parameters), self.version(plan)
        if key is None or version is None or plan.runs.large:
            return None
        with self._lock:  # until it is known to others: those who ask at the same time find one evaluation
            known = self._evaluations.get(key)
            if known is not None and known.version == version:
                seat = Seat(known, plan, owner)
                if known.join(seat):
                    return seat
            evaluation = self._evaluations[key] = Evaluation(version, snapshot())
            seat = Seat(evaluation, plan, owner, evaluation.snapshot)
            evaluation.join(seat)
            evaluation.snapshot.make_ready()
            try:
                evaluation.work = self._abandonable.begin(
                    lambda left: self._evaluate(key, evaluation, plan, parameters),
                    owner, lambda: None, evaluation.snapshot.leave,
                )  # fmt: skip
            except BaseException:
                del self._evaluations[key]
                evaluation.snapshot.close()
                raise
        return seat

    def _evaluate(self, key: _Key, evaluation: Evaluation, plan: PullPlan, parameters: Sequence[Any]) -> None:
        outcome: Whole | Begun | BaseException
        try:
            outcome = evaluation.snapshot.evaluate(plan, parameters)
        except BaseException as error:  # noqa: BLE001 - raised by who began it
            outcome = error
        if isinstance(outcome, Whole):
            self._keep(key, plan, evaluation.version, outcome)
        with self._lock:
            evaluation.end(outcome)
            if self._evaluations.get(key) is evaluation:
                del self._evaluations[key]

    # --- what is kept -----------------------------------------------------------------------------------------------
    def _keep(self, key: _Key, plan: PullPlan, version: Version, whole: Whole) -> None:
        size = whole.bytes + _ENTRY_BYTES + len(key[2])
        if size > limits.SHARED_RESULT_BYTES_MAX or self._version(plan.view_ids) != version:
            return
        with self._lock:
            self._forget(key)
            self._kept[key] = _Kept(version, plan.view_ids, whole, size)
            self._bytes += size
            self._since_swept += 1
            if self._since_swept > len(self._kept) // 2:
                self._sweep()
            while self._bytes > limits.SHARED_RESULTS_BYTES_MAX:
                self._forget(next(iter(self._kept)))
        plan.runs.kept = whole.few

    def _sweep(self) -> None:
        """What nobody asks for again would stay although its views have changed."""
        self._since_swept = 0
        for key in [key for key, kept in self._kept.items() if self._version(kept.view_ids) != kept.version]:
            self._forget(key)

    def _forget(self, key: _Key) -> None:
        known = self._kept.pop(key, None)
        self._bytes -= 0 if known is None else known.bytes


def _key(plan: PullPlan, parameters: Sequence[Any]) -> _Key | None:
    """None for values that equal texts do not tell apart. Names are resolved in the text, and privileges checked when
    it was planned, so it means the same to all."""
    if not all(type(value) in _WRITTEN_OUT or _is_short_list(value) for value in parameters):
        return None
    return plan.sql, plan.time_zone, repr(list(parameters))


def _is_short_list(value: Any) -> bool:
    if type(value) is not list and type(value) is not tuple:
        return False
    return len(value) <= limits.FEW_ROWS_MAX and all(type(item) in _WRITTEN_OUT for item in value)
