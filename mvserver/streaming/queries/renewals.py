"""Queries of stores that were changed: each stops as it runs, and is taken up again by the new properties.

What reads or writes by the former ones may wait for a store that does not answer, as long as its requests may take. So
it ends in threads of its own, and the turn of the statement is not held meanwhile. The ledger makes that exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.pipeline.held_history import EndedReaders
from mvserver.streaming.queries.running import RunningQuery
from mvserver.streaming.queries.source_pipelines import SourcePipelines


class Renewals:
    """All calls are made in the turn of a statement. ``take_up`` is called behind it, when a query has ended."""

    def __init__(self, sources: SourcePipelines, ended: EndedReaders, take_up: Callable[[], None]) -> None:
        self._sources = sources
        self._ended = ended
        self._take_up = take_up

    def begin(self, known: RunningQuery, versions: Sequence[float]) -> None:
        """Tells what it has to end. ``versions`` are those of its stores now."""
        known.ending = (*self._end_writing(known), *self._end_reading(known, versions))
        self._ended.end(f"{known.query.id}/renewal", partial(self._finish, known.ending))

    def is_over(self, known: RunningQuery) -> bool:
        return not any(map(self._ended.is_ending, known.ending or ()))

    def _finish(self, ending: Sequence[str]) -> None:
        for each in ending:
            self._ended.wait_ended(each)
        self._take_up()

    def _end_writing(self, known: RunningQuery) -> Sequence[str]:
        writing = known.sink or known.relay
        if writing is None:
            return ()
        writing.give_up()
        self._ended.end(known.query.id, writing.stop)
        return (known.query.id,)

    def _end_reading(self, known: RunningQuery, versions: Sequence[float]) -> Sequence[str]:
        """Over a join the pipelines of its own, and those of the sources whose stores have changed; the others lose
        their sides."""
        if known.derived is None:
            stopped = [] if known.pipeline is None else [known.pipeline]
        else:
            stopped = list(known.derived.pipelines)
            for feed, before, now in zip(known.derived.leaves, known.store_versions, versions, strict=False):
                if before != now:
                    stopped.append(feed.pipeline)
                else:
                    feed.pipeline.remove(feed.subscriber.query_id)
        for pipeline in stopped:
            self._sources.end(pipeline)
        return [pipeline.id for pipeline in stopped]


def refuse_renewed(known: RunningQuery) -> None:
    """55006 where it is about to be taken up again anyway."""
    if known.ending is not None:
        raise SqlError(
            sqlstates.OBJECT_IN_USE,
            f'query "{known.query.id}" is about to begin again by the new properties of its store',
            detail="What reads or writes by the former ones has not ended yet.",
            hint="Try again.",
        )
