"""Queries of stores that were changed: each stops as it runs, and is taken up again by the new properties.

What reads or writes by the former ones may wait for a store that does not answer, as long as its requests may take. So
it ends in threads of its own, and the turn of the statement is not held meanwhile. The ledger makes that exact.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, repeat

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.streaming.pipeline.held_history import EndedReaders
from mvserver.streaming.pipeline.pipeline import Pipeline
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.queries.engine_services import EngineServices
from mvserver.streaming.queries.running import RunningQuery
from mvserver.streaming.queries.source_pipelines import SourcePipelines

_log = logging.getLogger(__name__)
_PAUSES_S = (0.1, 0.5, 2.0, 5.0)
_RENEWAL = "/renewal"


class Renewals:
    """All calls are made in the turn of a statement. ``take_up`` is called behind it, when a query has ended."""

    def __init__(
        self,
        services: EngineServices,
        sources: SourcePipelines,
        ended: EndedReaders,
        take_up: Callable[[RunningQuery], bool],
    ) -> None:
        """``take_up`` says False where the query has still to wait for something that ends."""
        self._services = services
        self._sources = sources
        self._ended = ended
        self._take_up = take_up

    def begin(self, changed: Sequence[RunningQuery]) -> None:
        """Tells what they have to end. What reads and writes is told first: what could not be set up waits for all of
        it, and would else read by it."""
        for known in sorted(changed, key=_is_broken):
            if _is_broken(known):
                ending = tuple(each for each in self._ended.ending if not each.endswith(_RENEWAL))
            else:
                ending = (*self._end_reading(known), *self._end_writing(known))
            known.ending = ending
            self._ended.end(f"{known.query.id}{_RENEWAL}", partial(self._finish, known))

    def is_over(self, known: RunningQuery) -> bool:
        return not any(map(self._ended.is_ending, known.ending or ()))

    def _finish(self, known: RunningQuery) -> None:
        """Tried again as long as something else hinders it: nobody else will take the query up. Others may meanwhile
        have read the same, and end that."""
        for pause_s in chain(_PAUSES_S, repeat(_PAUSES_S[-1])):
            for each in known.ending or ():
                self._ended.wait_ended(each)
            try:
                if self._take_up(known):
                    return
            except Exception:  # noqa: BLE001 - told in the log
                _log.exception("queries of a changed store could not be taken up again")
                time.sleep(pause_s)

    def _end_writing(self, known: RunningQuery) -> Sequence[str]:
        writing = known.sink or known.relay
        if writing is None:
            return ()
        writing.give_up()
        self._ended.end(known.query.id, writing.stop)
        return (known.query.id,)

    def _end_reading(self, known: RunningQuery) -> Sequence[str]:
        """The pipelines of its own, and those that read what has changed. What reads another store goes on for the
        other queries that read by it."""
        versions = self._services.store_versions(known.query)
        changed = {store_id for store_id, moment in known.store_versions.items() if versions.get(store_id) != moment}
        stopped = [] if known.derived is None else list(known.derived.pipelines)
        left = []
        for pipeline, subscriber in _reading(known):
            store, _ = self._services.stored(subscriber.target.plan.scan.relation_id)
            if store.id in changed or all(each is subscriber for each in pipeline.subscribers):
                stopped.append(pipeline)
            else:
                left.append((pipeline, subscriber))
        for pipeline, subscriber in left:
            pipeline.remove(subscriber.query_id)
        for pipeline in stopped:
            self._sources.end(pipeline)
        return [pipeline.id for pipeline in stopped]


def _is_broken(known: RunningQuery) -> bool:
    return known.pipeline is None and known.sink is None


def _reading(known: RunningQuery) -> Sequence[tuple[Pipeline, Subscriber]]:
    """What of a query reads stores."""
    if known.derived is not None:
        return [(feed.pipeline, feed.subscriber) for feed in known.derived.leaves]
    if known.pipeline is None or known.subscriber is None:
        return []
    return [(known.pipeline, known.subscriber)]


def refuse_renewed(known: RunningQuery) -> None:
    """55006 where it is about to be taken up again anyway."""
    if known.ending is not None:
        raise SqlError(
            sqlstates.OBJECT_IN_USE,
            f'query "{known.query.id}" is about to begin again by the new properties of its store',
            detail="What reads or writes by the former ones has not ended yet.",
            hint="Try again.",
        )
