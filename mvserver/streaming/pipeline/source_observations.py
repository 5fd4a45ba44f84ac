"""A source's end as it was seen, and when: a view that has come to an end has all that was there at that moment.

A view under load is never at the present end, so whether it keeps up cannot be told by comparing it with that alone.
"""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position, Positions
from spark_sinks.duckdb.ledger.ledger import encode

LOOKS_MAX = 64  # of a view that does not keep up; beyond, every other one is forgotten


class SourceObservations:
    """Guarded by its pipeline's lock. Moments are those of ``mvserver.moments``."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._seen: list[tuple[float, Position]] = []  # oldest first, and so the nearest end first

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, moment: float, end: Position) -> None:
        """``moment`` is before the question: what was there at that moment lies before ``end``."""
        if self._seen and encode(self._seen[-1][1]) == encode(end):
            self._seen.pop()  # nothing has come: to be there is to have all of the later moment, too
        self._seen.append((moment, end))
        if len(self._seen) > LOOKS_MAX:
            del self._seen[1:-1:2]

    def confirmed(self, position: Position) -> float | None:
        """The latest moment of which all is before ``position``."""
        low, high = 0, len(self._seen)
        while low < high:
            middle = (low + high) // 2
            if self._reached(position, self._seen[middle][1]):
                low = middle + 1
            else:
                high = middle
        return self._seen[low - 1][0] if low else None

    def forget_before(self, moment: float) -> None:
        self._seen = [look for look in self._seen if look[0] >= moment]

    def _reached(self, position: Position, end: Position) -> bool:
        try:
            return self._positions.reached(position, end)
        except SqlError as error:
            if error.sqlstate != sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE:
                raise
            return False  # a topic that was made anew: the end of one says nothing of a position in the other
