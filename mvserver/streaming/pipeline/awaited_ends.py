"""The ends of a source for which statements wait by ``mv.freshness``."""

from __future__ import annotations

from collections.abc import Sequence

from spark_sinks.base import Position


class AwaitedEnds:
    """Each method is called under the lock of the pipeline's state. Statements that one look at the source has answered
    wait for the same position."""

    def __init__(self) -> None:
        self._waiters = 0
        self._ends: dict[int, tuple[Position, int]] = {}  # by identity, with the number of waiters

    def __bool__(self) -> bool:
        return self._waiters > 0

    def add(self, end: Position | None) -> None:
        """None: the statement waits to learn it."""
        self._waiters += 1
        if end is not None:
            self._ends[id(end)] = (end, self._ends.get(id(end), (end, 0))[1] + 1)

    def remove(self, end: Position | None) -> None:
        self._waiters -= 1
        if end is not None:
            _, number = self._ends.pop(id(end))
            if number > 1:
                self._ends[id(end)] = (end, number - 1)

    def known(self) -> Sequence[Position]:
        """Each once."""
        return [end for end, _ in self._ends.values()]
