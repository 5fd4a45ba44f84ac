"""Results as the session hands them out: watched while they are read, spooled when their cursor is needed, and made of
Python rows for the session's own statements."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa

from mvserver import limits, sqlstates
from mvserver.errors import SqlError, raise_instead
from mvserver.front import Field, Result
from mvserver.session.clock import StatementClock
from mvserver.session.held_memory import Bounds, HeldMemory, HeldShare

TEXT_OID = 25

_T = TypeVar("_T")


def spool_memory() -> HeldMemory:
    """Of all sessions' open results that were read aside."""
    bounds = Bounds(
        limits.SPOOLED_RESULT_BYTES_MAX, limits.SPOOLED_RESULTS_BYTES_OF_ROLE_MAX, limits.SPOOLED_RESULTS_BYTES_MAX
    )
    return HeldMemory("open results that are kept aside", bounds, "Read open results to their ends, or close them.")


class WatchedBatches:
    """A result's batches under the statement's clock.

    ``failed`` is told of an error while rows are produced (the transaction fails although the statement had started);
    ``finished`` is called once, when nothing of the source is needed any more.
    """

    def __init__(
        self,
        result: Result,
        clock: StatementClock,
        *,
        interrupt: Callable[[], None],
        failed: Callable[[Exception], Exception],
        finished: Callable[[], None],
        share: HeldShare | None = None,
    ) -> None:
        """``share`` is what the session may keep of results that it reads aside."""
        self._share = share if share is not None else spool_memory().share("")
        self._result = result
        self._clock = clock
        self._interrupt = interrupt
        self._failed = failed
        self._finished = finished
        self._spooled: deque[pa.RecordBatch] = deque()
        self._done = False
        self._revoked = False

    @property
    def done(self) -> bool:
        """True when the source is read to its end or closed."""
        return self._done

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._revoked:
            raise self._failed(SqlError(sqlstates.INVALID_CURSOR_NAME, "the portal's transaction has ended"))
        if self._spooled:
            batch = self._spooled.popleft()
            self._share.give_back(batch.nbytes)
            return batch
        if self._done:
            raise StopIteration
        batch = self.guarded(lambda: next(self._result.batches, None))
        if batch is None:
            self.close()
            raise StopIteration
        return batch

    def guarded(self, work: Callable[[], _T]) -> _T:
        """Under the clock; an error is the end of the rows."""
        try:
            with self._clock.working(self._interrupt):
                return work()
        except Exception as error:  # noqa: BLE001 - raised again below
            self.close()
            raise_instead(self._failed(error), error)

    def spool(self) -> None:
        """Reads the rest into memory, so that the source is free; 53400 when it is too large, 53200 where all are."""
        size = taken = 0
        rest: list[pa.RecordBatch] = []
        try:
            while not self._done:
                batch = next(self, None)
                if batch is None:
                    break
                size += batch.nbytes
                if size > limits.SPOOLED_RESULT_BYTES_MAX:
                    raise SqlError(
                        sqlstates.CONFIGURATION_LIMIT_EXCEEDED,
                        "the rest of an open portal is too large to be kept aside",
                        hint="Read the portal to its end before the next statement, or use READ COMMITTED.",
                    )
                self._share.take(batch.nbytes)
                taken = size
                rest.append(batch)
        except BaseException:
            self._share.give_back(taken)
            self.close()
            raise
        self._spooled.extend(rest)

    def close(self) -> None:
        if not self._done:
            self._done = True
            try:
                self._result.close()
            finally:
                self._finished()

    def revoke(self) -> None:
        """The transaction has ended before the rows were read: what is left must not look like the end of the rows."""
        if not self._done or self._spooled:
            self._revoked = True
            self.discard()

    def discard(self) -> None:
        """Close, and forget what was spooled."""
        self._share.give_back(sum(batch.nbytes for batch in self._spooled))
        self._spooled.clear()
        self.close()


class DiscardOnClose:
    """The batches that the wire holds: its ``close`` frees what is spooled too."""

    def __init__(self, watched: WatchedBatches) -> None:
        self._watched = watched

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        return next(self._watched)

    def close(self) -> None:
        self._watched.discard()


def text_fields(names: Sequence[str]) -> tuple[Field, ...]:
    return tuple(Field(name, TEXT_OID) for name in names)


def text_rows(tag: str, names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> Result:
    """A finished result of text columns."""
    columns = [pa.array([row[at] for row in rows], type=pa.string()) for at in range(len(names))]
    batch = pa.RecordBatch.from_arrays(columns, names=list(names))
    return Result(tag, text_fields(names), iter([batch]))
