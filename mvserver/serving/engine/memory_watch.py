"""The memory of each running query that cannot go to disk: a query that takes too much is ended, the others go on.

DuckDB bounds the memory of its buffers, and sorts, joins and groups go to disk before it is reached. What cannot, such
as the items of ``array_agg`` and the texts that an expression makes of 2,048 rows, it has from its allocator. DuckDB
does not say which query has how much, so what that grows by is shared out among those that are at work just then: a
query by itself is measured as it is, and among several one is ended only when together they have taken as many times
the limit.

The process as a whole has a limit, too. Where it is reached, free memory is given back to the system first. Then the
query that has taken most is ended, of the role that has taken most. DuckDB looks for an interrupt between two steps
only. So large blocks are refused to it where the process is further above its limit, until it is well below, and for
about a second where a query that was told to end goes on. Whoever needs such a block then is told 53200: most likely
the same query, but a merge may be refused as well. A query that was canceled and left at work counts until it has
really ended, and a role whose queries left so have more than one query may have is refused new ones.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import duckdb

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.serving.api import NOBODY, Owner
from mvserver.serving.engine import allocators
from mvserver.serving.engine.abandonable_work import WorkAbandoned
from mvserver.threads import started

_LOG = logging.getLogger(__name__)
_LOOK_EVERY_S = 0.025
_REST_S = 2.0  # between two looks while no query is at work
_GIVE_BACK_EVERY_S = 2.0
_GIVE_BACK_BUSY_EVERY_S = 15.0  # it takes some milliseconds, in which whoever needs memory may have to wait
_GOES_ON_AFTER_S = 0.1  # most that are told to end have ended by then
_GOES_ON_UNTIL_S = 1.1  # a step that grows needs a block long before
_ROOM_AGAIN = 0.75  # of the process's limit
_WORTH_GIVING_BACK = 4 * 2**20  # bytes that have come since the last time
_WORTH_ENDING = 16 * 2**20  # bytes; queries that have taken less are not why the process is too large

_WORTH_ASKING = 8 * 2**20  # bytes more or less than when DuckDB was last asked
_ASK_AGAIN_S = 0.5
_KNOWN = (
    "SELECT coalesce(sum(memory_usage_bytes) FILTER (tag = 'ALLOCATOR'), 0), "
    "coalesce(sum(memory_usage_bytes) FILTER (tag <> 'ALLOCATOR'), 0) FROM duckdb_memory()"
)


class InUse:
    """Bytes of DuckDB's that cannot go to disk. It counts those of its operators itself, and not those of the vectors
    of its expressions; its allocator knows both. To ask DuckDB takes a millisecond, to ask its allocator next to
    nothing: so DuckDB is asked when the other has changed, and now and then. For one thread at a time."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        self._asked_at = -math.inf
        self._allocated = 0
        self._beside = 0  # what was in use, less what was allocated

    def __call__(self) -> int | None:
        """None where it cannot be told now: who wants more then is refused by DuckDB itself."""
        allocated, now = allocators.allocated(), time.monotonic()
        if not allocated or abs(allocated - self._allocated) > _WORTH_ASKING or now - self._asked_at > _ASK_AGAIN_S:
            try:
                ((counted, evictable),) = self._cursor.execute(_KNOWN).fetchall()  # an open result would pin a snapshot
            except duckdb.OutOfMemoryException:
                return None
            except duckdb.Error as error:  # the watch goes on: the process's own size needs no DuckDB
                _LOG.warning("DuckDB does not tell how much memory it uses: %s", error)
                return None
            self._asked_at, self._allocated = now, allocated
            self._beside = max(int(counted) - allocated, -int(evictable))
        return allocated + self._beside

    def close(self) -> None:
        self._cursor.close()


class Watched:
    """One query, from its start until its last row is read, or until it ends after it was left."""

    __slots__ = ("_watch", "interrupt", "left", "over_since", "owner", "reason", "taken")

    def __init__(self, watch: MemoryWatch, interrupt: Callable[[], None], owner: Owner) -> None:
        self._watch = watch
        self.interrupt = interrupt
        self.owner = owner
        self.taken = 0.0
        self.over_since: float | None = None
        self.left = False
        self.reason: Callable[[], SqlError] = lambda: too_much(watch.limit)

    @property
    def over(self) -> bool:
        """Whether it was told to end for what it has taken."""
        return self.over_since is not None

    def end(self) -> None:
        """Safe to call twice. Of one that was left, its own thread calls :meth:`ended` at its end."""
        if not self.left:
            self._watch.ended(self)

    def leave(self) -> None:
        """Nobody waits for it any more; what it has taken counts for its owner until it has ended."""
        self.left = True

    def ended(self) -> None:
        self._watch.ended(self)

    def check(self) -> None:
        """53200 when it has taken too much."""
        if self.over:
            raise self.reason()

    def check_left(self) -> None:
        """The same for work that was left: it is still a WorkAbandoned, since what the work uses is still its own."""
        if self.over:
            raise WorkAbandoned(self.reason())


@dataclass(frozen=True)
class Process:
    """The memory of the process in bytes, and what can be done about it."""

    limit: int
    resident: Callable[[], int | None] = allocators.resident
    allocated: Callable[[], int] = allocators.allocated
    give_back: Callable[[], None] = allocators.give_back
    refuse_large: Callable[[bool], None] = lambda refused: _refuse_large(refused)


class MemoryWatch:
    def __init__(self, in_use: Callable[[], int | None], limit: int, process: Process | None = None) -> None:
        """``in_use`` is asked by one thread; None where it cannot be told now. ``limit`` is a query's."""
        self.limit = limit
        self._in_use = in_use
        self._process = process
        self._condition = threading.Condition()
        self._queries: set[Watched] = set()
        self._known = 0
        self._closed = False
        self._thread: threading.Thread | None = None
        self._gave_back_at = 0.0
        self._least = 0  # bytes of the process when free memory was last given back
        self._beside = 0  # of those, what is not DuckDB's
        self._ended_last: tuple[Watched, float] | None = None  # for the process, and when
        self._above = False  # whether the process was above its limit, and is not yet well below it
        self._refusing = False

    def begin(self, interrupt: Callable[[], None], owner: Owner = NOBODY) -> Watched:
        """``interrupt`` is called, from another thread and repeatedly, when the query has taken too much."""
        query = Watched(self, interrupt, owner)
        with self._condition:
            if self._thread is None and not self._closed:
                self._thread = started(self._run, "query-memory")
            self._queries.add(query)
            if len(self._queries) == 1:
                self._condition.notify()
        return query

    def ended(self, query: Watched) -> None:
        with self._condition:
            self._queries.discard(query)

    def admit(self, owner: Owner) -> None:
        """53200 where what the role has left at work holds more than one query may take."""
        if not self._queries:
            return
        with self._condition:
            left = [query for query in self._queries if query.left and query.owner.role == owner.role]
            held = sum(query.taken for query in left)
        if held > self.limit:
            raise SqlError(
                sqlstates.OUT_OF_MEMORY,
                "canceled statements that are still at work hold too much memory",
                detail=f"{len(left)} of this role hold {held / 2**20:.0f} MiB; the limit is {self.limit // 2**20} MiB.",
                hint="Wait until they have ended. Queries that build long texts or lists cannot be stopped in the "
                "midst of a step.",
            )

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify()
        if self._thread is not None:
            self._thread.join(5)
        if self._refusing and self._process is not None:
            self._process.refuse_large(False)

    def _run(self) -> None:
        while True:
            with self._condition:
                idle = not self._queries
                if not self._closed:
                    self._condition.wait(_REST_S if idle else _LOOK_EVERY_S)
                if idle and self._queries and not self._closed:
                    self._condition.wait(_LOOK_EVERY_S)  # most queries have ended by then, and cost nothing
                if self._closed:
                    return
                busy = bool(self._queries)
            if busy:
                self._look(first=idle)
            if self._process is not None:
                self._keep_within(self._process, busy=busy)

    # --- one query's share ------------------------------------------------------------------------------------------
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
                greatest.over_since = time.monotonic()
                _LOG.warning("a query is ended that has taken %d MiB of memory", greatest.taken / 2**20)
            for query in self._queries:
                if query.over:
                    query.interrupt()

    # --- the process ------------------------------------------------------------------------------------------------
    def _keep_within(self, process: Process, *, busy: bool) -> None:
        resident = process.resident()
        if resident is None:
            return
        size = self._size(process, resident)
        if self._may_give_back(resident, busy=busy and size <= process.limit):
            process.give_back()
            self._gave_back_at = time.monotonic()
            resident = process.resident() or resident
            self._least, self._beside = resident, max(resident - process.allocated(), 0)
            size = self._size(process, resident)
        if size > process.limit:
            self._end_greatest(process.limit, size)
        much = _ROOM_AGAIN if self._above else 1 + limits.PROCESS_MEMORY_SLACK
        self._above = busy and size > much * process.limit
        self._refuse_large(process, refused=self._above or (busy and self._one_goes_on()))

    def _size(self, process: Process, resident: int) -> int:
        """What DuckDB has taken and not yet written to is going to be resident."""
        self._beside = min(self._beside, resident)
        return max(resident, self._beside + process.allocated())

    def _may_give_back(self, resident: int, *, busy: bool) -> bool:
        self._least = min(self._least, resident)
        every_s = _GIVE_BACK_BUSY_EVERY_S if busy else _GIVE_BACK_EVERY_S
        return resident > self._least + _WORTH_GIVING_BACK and time.monotonic() - self._gave_back_at >= every_s

    def _one_goes_on(self) -> bool:
        """Whether a query was just told to end, and has not: it may be in the midst of a step that still grows."""
        now = time.monotonic()
        with self._condition:
            told = [query.over_since for query in self._queries if query.over_since is not None]
        return any(_GOES_ON_AFTER_S <= now - since <= _GOES_ON_UNTIL_S for since in told)

    def _end_greatest(self, limit: int, size: int) -> None:
        """One at a time: the next one when that has ended, or has had time to."""
        now = time.monotonic()
        with self._condition:
            if self._ended_last is not None:
                before, since = self._ended_last
                if before in self._queries and now - since < limits.LEFT_AFTER_S:
                    return
            of_role: Counter[str] = Counter()
            for query in self._queries:
                of_role[query.owner.role] += int(query.taken)
            ready = [query for query in self._queries if not query.over and query.taken > _WORTH_ENDING]
            if not ready:
                return
            greatest = max(ready, key=lambda query: (of_role[query.owner.role], query.taken))
            greatest.over_since = now
            greatest.reason = lambda: too_much_together(limit, size)
            self._ended_last = greatest, now
            _LOG.warning(
                "a query of role %s is ended that has taken %d MiB: the process has %d MiB",
                greatest.owner.role, greatest.taken / 2**20, size / 2**20,
            )  # fmt: skip
        greatest.interrupt()

    def _refuse_large(self, process: Process, *, refused: bool) -> None:
        if refused and not self._refusing:
            _LOG.warning("large blocks of memory are refused to queries")
        if refused or self._refusing:
            process.refuse_large(refused)
        self._refusing = refused


def _refuse_large(refused: bool) -> None:
    allocator = allocators.duck_allocator()
    if allocator is not None:
        allocator.refuse_large(refused=refused)


def too_much(limit: int) -> SqlError:
    return SqlError(
        sqlstates.OUT_OF_MEMORY,
        "out of memory",
        detail=f"The query has taken more than {limit // 2**20} MiB of memory that cannot go to disk, "
        "such as the items of array_agg and the texts of string_agg.",
        hint="Aggregate fewer rows at a time, or raise the setting query_memory_limit.",
    )


def too_much_together(limit: int, size: int) -> SqlError:
    return SqlError(
        sqlstates.OUT_OF_MEMORY,
        "out of memory",
        detail=f"The server has taken {size // 2**20} MiB of memory (the limit is {limit // 2**20} MiB), "
        "and this query most of what can be given back.",
        hint="Make shorter texts and lists of fewer rows at a time, send the query again when there is less to do, or "
        "raise the setting process_memory_limit.",
    )
