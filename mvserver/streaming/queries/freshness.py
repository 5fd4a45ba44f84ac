"""Reads that ask for freshness: where the sources of views end at one moment, the wait until the views are there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from catalog.model import Query
from mvserver import moments, sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.pipeline.pipeline import Pipeline
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.queries.derived import DerivedSource, Feed
from spark_sinks.base import Position


@dataclass(frozen=True)
class KeptView:
    """A view, and what keeps it at this moment. ``broken``: why nothing can be read for it; it may then have neither
    pipeline nor subscriber."""

    name: Callable[[], str]
    query: Query
    pipeline: Pipeline | None = None
    subscriber: Subscriber | None = None
    broken: str | None = None
    derived: DerivedSource | None = None
    interruption: str | None = None  # why Spark does not compute at the moment

    def running(self) -> tuple[Pipeline, Subscriber]:
        """Raises 55000 where nothing keeps the view up to date: waiting would not help."""
        if self.pipeline is None or self.subscriber is None or self.broken is not None:
            raise self._stopped("FAILED", self.broken)
        if self.subscriber.query_terminated:
            raise self._stopped("TERMINATED", None)
        if self.subscriber.cause is not None:
            raise self._stopped("FAILED", self.subscriber.cause)
        return self.pipeline, self.subscriber

    def confirmed_at(self) -> float | None:
        if self.pipeline is None or self.subscriber is None:
            return None
        if self.derived is not None:
            return self.derived.confirmed_at(self.subscriber)
        return self.pipeline.confirmed_at(self.subscriber)

    def _stopped(self, state: str, cause: str | None) -> SqlError:
        return SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            f'materialized view "{self.name()}" is not kept up to date',
            detail=f"Its query {self.query.id} is {state}{f': {cause}' if cause else '.'}",
            hint=f"RESTART QUERY '{self.query.id}' lets it go on; SET mv.freshness = 'any' reads what is there.",
        )


class SourceEnds:
    """Implements ``streaming.api.PresentEnds``; ``located`` tells what keeps each view, None for a dropped one."""

    def __init__(self, located: Sequence[Callable[[], KeptView | None]]) -> None:
        self._views = [_ViewEnd(locate) for locate in located]
        for view in self._views:  # all sources are asked before one is waited for
            view.ask()

    def wait(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        return all(view.wait(deadline) for view in self._views)

    def behind(self) -> SqlError:
        lagging = [found for found in (view.lag() for view in self._views) if found is not None]
        subject = f'materialized view "{lagging[0][0]}"' if lagging else "a view of the query"
        return SqlError(
            sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE,
            f"{subject} is not as fresh as mv.freshness asks",
            detail=" ".join(sentence for _, sentence in lagging) or None,
            hint="mv.freshness_timeout is how long to wait; SET mv.freshness = 'any' reads what is there.",
        )


class _ViewEnd:
    """The end that a view's source had when it was asked. A pipeline that is made anew meanwhile is asked again."""

    def __init__(self, locate: Callable[[], KeptView | None]) -> None:
        self._locate = locate
        self._asked: Pipeline | None = None
        self._number = 0
        self._end: Position | None = None
        self._there = False
        self._below: list[_ViewEnd] = []

    def ask(self) -> None:
        kept = self._locate()
        if kept is None:
            return
        pipeline, _ = kept.running()
        if kept.derived is None:
            self._ask(pipeline)
            return
        # The end of what a join makes is known when its sides have come to the ends of their sources.
        leaves = [_ViewEnd(partial(_feed, kept, feed)) for feed in kept.derived.leaves]
        for end in leaves:
            end.ask()
        self._below = [*leaves, *(_ViewEnd(partial(_feed, kept, feed)) for feed in kept.derived.inner)]

    def _ask(self, pipeline: Pipeline) -> None:
        self._asked, self._number = pipeline, pipeline.ask_end()

    def wait(self, deadline: float) -> bool:
        if self._there:
            return True
        kept = self._locate()
        if kept is None:
            return True  # reading it says that it is gone
        if not all(below.wait(deadline) for below in self._below):
            kept.running()  # it may have failed meanwhile
            return False
        pipeline, subscriber = kept.running()
        if self._end is None and pipeline is not self._asked:
            self._ask(pipeline)

        def known() -> bool:
            if self._end is None:
                self._end = pipeline.end_answered(self._number)
            return self._end is not None

        def there() -> bool:
            return self._end is not None and pipeline.reader.positions.reached(subscriber.position, self._end)

        def left_s() -> float:
            return max(0.0, deadline - time.monotonic())

        with pipeline.awaiting(None):
            pipeline.wait(lambda: known() or not subscriber.wants_batches, left_s())
        if self._end is not None and not there():
            with pipeline.awaiting(self._end):
                pipeline.wait(lambda: there() or not subscriber.wants_batches, left_s())
        self._there = there()
        if not self._there:
            kept.running()  # it may have failed meanwhile
        return self._there

    def lag(self) -> tuple[str, str] | None:
        """The view's name and how far it is from there, in a sentence."""
        below = next((lag for lag in (end.lag() for end in self._below) if lag is not None), None)
        if below is not None:
            return below
        kept = self._locate()
        if self._there or kept is None or kept.pipeline is None or kept.subscriber is None:
            return None
        pipeline, name = kept.pipeline, kept.name()
        if self._end is None:
            sentence = f'The source of "{name}" has not said yet where it ends.'
        else:
            records = pipeline.reader.positions.distance(kept.subscriber.position, self._end)
            sentence = f'"{name}" lags {records} {"record" if records == 1 else "records"} behind the end that its '
            sentence += "source had when the query arrived."
        if kept.interruption is not None:
            sentence += f" {kept.interruption}."
        elif pipeline.standstill:
            sentence += f" {pipeline.standstill}"
        elif not pipeline.running:
            sentence += " It is not being read at this moment: Spark is starting, or the pipeline is."
        moment = kept.confirmed_at()
        if moment is not None:
            sentence += f" The view last had all of it {max(0.0, moments.now() - moment):.1f} s ago."
        return name, sentence


def _feed(kept: KeptView, feed: Feed) -> KeptView:
    """A side of a join as what keeps the view."""
    return replace(kept, pipeline=feed.pipeline, subscriber=feed.subscriber, derived=None)
