"""How much memory that cannot go to disk each running query takes: whoever takes too much is ended, the others go on.

DuckDB bounds the memory of all queries together, and sorts, joins and groups go to disk before it is reached. What
cannot, such as the items of ``array_agg``, it has from its allocator; one query that takes all of that makes the next
ones fail, whosever they are. DuckDB does not say which query has how much, so what the allocator's memory grows by is
shared out among those that are at work just then: a query by itself is measured as it is, and among several one is
ended only when together they have taken as many times the limit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from mvserver import sqlstates
from mvserver.errors import SqlError

_LOG = logging.getLogger(__name__)
_LOOK_EVERY_S = 0.05

IN_USE = "SELECT coalesce(sum(memory_usage_bytes), 0) FROM duckdb_memory() WHERE tag = 'ALLOCATOR'"


class Watched:
    """One query, from its start until its last row is read."""

    __slots__ = ("_watch", "interrupt", "over", "taken")

    def __init__(self, watch: MemoryWatch, interrupt: Callable[[], None]) -> None:
        self._watch = watch
        self.interrupt = interrupt
        self.taken = 0.0
        self.over = False

    def end(self) -> None:
        """Safe to call twice."""
        self._watch.ended(self)

    def check(self) -> None:
        """53200 when it has taken too much."""
        if self.over:
            raise too_much(self._watch.limit)


class MemoryWatch:
    def __init__(self, in_use: Callable[[], int | None], limit: int) -> None:
        """``in_use`` is asked by one thread; None where it cannot be told now."""
        self.limit = limit
        self._in_use = in_use
        self._condition = threading.Condition()
        self._queries: set[Watched] = set()
        self._known = 0
        self._closed = False
        self._thread: threading.Thread | None = None

    def begin(self, interrupt: Callable[[], None]) -> Watched:
        """``interrupt`` is called, from another thread and repeatedly, when the query has taken too much."""
        query = Watched(self, interrupt)
        with self._condition:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="query-memory", daemon=True)
                self._thread.start()
            self._queries.add(query)
            if len(self._queries) == 1:
                self._condition.notify()
        return query

    def ended(self, query: Watched) -> None:
        with self._condition:
            self._queries.discard(query)

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify()
        if self._thread is not None:
            self._thread.join(5)

    def _run(self) -> None:
        while True:
            with self._condition:
                idle = not self._queries
                while not self._queries and not self._closed:
                    self._condition.wait()
                if self._closed:
                    return
                self._condition.wait(_LOOK_EVERY_S)  # most queries have ended by then, and cost nothing
                if not self._queries or self._closed:
                    continue
            self._look(first=idle)

    def _look(self, *, first: bool) -> None:
        in_use = self._in_use()
        if in_use is None:
            return
        with self._condition:
            # before the first look nobody was at work: what is there now, beyond the rest of long ago, is theirs
            grown = in_use - (min(self._known, in_use) if first else self._known)
            self._known = in_use
            if not self._queries:
                return
            share = grown / len(self._queries)
            for query in self._queries:
                query.taken = max(0.0, query.taken + share)
            greatest = max(self._queries, key=lambda query: query.taken)
            if greatest.taken > self.limit and not greatest.over:
                greatest.over = True
                _LOG.warning("a query is ended that has taken %d MiB of memory", greatest.taken / 2**20)
            for query in self._queries:
                if query.over:
                    query.interrupt()


def too_much(limit: int) -> SqlError:
    return SqlError(
        sqlstates.OUT_OF_MEMORY,
        "out of memory",
        detail=f"The query has taken more than {limit // 2**20} MiB of memory that cannot go to disk, "
        "such as the items of array_agg and the texts of string_agg.",
        hint="Aggregate fewer rows at a time, or raise the setting query_memory_limit.",
    )
