"""The time of a batch: one thread looks at all that are being evaluated, and cancels the Spark jobs of those to end.

What counts is the time in which a batch had a task at work, so that nobody is blamed for waiting behind others. A batch
that takes too long is no verdict yet: the evaluator tries fewer records first.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pyspark import SparkContext
from pyspark.sql import SparkSession

from mvserver.threads import started

_log = logging.getLogger(__name__)

_LOOK_S = 0.25
_SHORT_S = 1.0  # a batch of less is not looked at more closely
_numbers = itertools.count()
_of_thread = threading.local()
_T = TypeVar("_T")


class BatchOverran(Exception):  # noqa: N818 - not an error yet: the batch is tried with fewer records
    """A batch had tasks at work for longer than it may."""

    def __init__(self, records: int, limit_s: float) -> None:
        super().__init__(f"a batch of about {records} records was ended after {limit_s:g} s of evaluation")
        self.records = records
        self.limit_s = limit_s


class BatchTooLarge(Exception):  # noqa: N818 - as the former
    """The rows of a batch came to more bytes than Spark may send."""

    def __init__(self, records: int, records_max: int) -> None:
        super().__init__(
            f"the rows of a batch of about {records} records came to more bytes than Spark may send; it is tried with "
            f"{records_max}"
        )


class BatchUnwanted(Exception):  # noqa: N818 - not an error: nobody wants the batch any more
    """A query that took part was dropped or stopped, or the pipeline ends."""


@dataclass(frozen=True)
class Bound:
    """``limit_s`` ends the batch; from ``notice_s`` on ``noticed`` is told, again and again, what is to be shown.
    ``unwanted`` is asked by the watching thread."""

    records: int
    limit_s: float
    notice_s: float
    noticed: Callable[[str], None] = lambda words: None
    unwanted: Callable[[], bool] = lambda: False


@dataclass
class _Watched:
    context: SparkContext
    tag: str
    bound: Bound
    began: float = field(default_factory=time.monotonic)
    looked: float = field(default_factory=time.monotonic)
    worked_s: float = 0.0  # with a task at work
    ended: BatchOverran | BatchUnwanted | None = None


class _Watch:
    """Its thread is started with the first batch and lives as long as the process."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._watched: dict[str, _Watched] = {}
        self._thread: threading.Thread | None = None

    def add(self, watched: _Watched) -> None:
        with self._lock:
            self._watched[watched.tag] = watched
            if self._thread is None:
                self._thread = started(self._loop, "batch-watch")
            self._lock.notify_all()

    def remove(self, watched: _Watched) -> None:
        with self._lock:
            self._watched.pop(watched.tag, None)

    def _loop(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: bool(self._watched))
                current = list(self._watched.values())
            for watched in current:
                try:
                    _look(watched)
                except Exception as error:  # noqa: BLE001 - Spark may be ending; the next look tries again
                    _log.debug("batch %s could not be looked at: %s", watched.tag, error)
            time.sleep(_LOOK_S)


def _look(watched: _Watched) -> None:
    now = time.monotonic()
    since, watched.looked = now - watched.looked, now
    elapsed, bound = now - watched.began, watched.bound
    if elapsed < min(_SHORT_S, bound.limit_s):
        watched.worked_s = elapsed
        return
    works = _is_at_work(watched)
    if works:
        watched.worked_s += since
    if watched.ended is None and bound.unwanted():
        watched.ended = BatchUnwanted()
    elif watched.ended is None and watched.worked_s > bound.limit_s:
        watched.ended = BatchOverran(bound.records, bound.limit_s)
    if elapsed > bound.notice_s:
        doing = "has been evaluated" if works else "has waited for a task slot of Spark or has been evaluated"
        bound.noticed(f"a batch of about {bound.records} records {doing} for {elapsed:.0f} s")
    if watched.ended is not None:
        watched.context.cancelJobsWithTag(watched.tag)


def _is_at_work(watched: _Watched) -> bool:
    tracker: Any = watched.context._jsc.sc().statusTracker()
    for job in tracker.getJobIdsForTag(watched.tag):
        info = tracker.getJobInfo(job)
        for stage in info.get().stageIds() if info.isDefined() else ():
            found = tracker.getStageInfo(stage)
            if found.isDefined() and found.get().numActiveTasks() > 0:
                return True
    return False


_watch = _Watch()


def run_watched(session: SparkSession, bound: Bound, body: Callable[[], _T]) -> _T:
    """What ``body`` returns; its Spark jobs are cancelled where ``bound`` says so. Raises BatchOverran or BatchUnwanted
    then, and else what ``body`` raises."""
    context = session.sparkContext
    watched = _Watched(context, f"mvserver-batch-{next(_numbers)}", bound)
    context.addJobTag(watched.tag)
    if getattr(_of_thread, "context", None) is not context:  # a call to the JVM, which lasts as long as the thread
        context.setInterruptOnCancel(True)
        _of_thread.context = context
    _watch.add(watched)
    try:
        return body()
    except Exception as error:
        if watched.ended is not None:
            raise watched.ended from error
        raise
    finally:
        _watch.remove(watched)
        context.removeJobTag(watched.tag)
