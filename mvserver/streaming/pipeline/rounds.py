"""The number of records in the next round of filling, so that live batches beside it wait for little.

Alone a round reads as much as a batch may: the fewer rounds, the less they cost. Beside live batches it is bounded by
what those wait for. Its commit goes before theirs, and is to be short; its evaluation keeps one part of Spark's task
slots, and its length is how long a live batch has less of the processors. Both are measured in each round, and the next
one gets as many records as would have taken the time that is allowed: more where live batches themselves take longer
than usual, on a slow machine or with many views, since then the fixed costs of a round are higher, too.
"""

from __future__ import annotations

import statistics
from collections import deque

from mvserver.limits import FILL_COMMIT_S, FILL_EVALUATION_S

_FIRST = 25_000  # records beside live batches, while nothing has been measured
_MIN = 5_000
_CHANGE_MAX = 2  # from one round to the next: a single one may have met a pause that was not its own
_AHEAD = 2  # a round reads so many times what came in since the last one: else the view would never come nearer
_LIVE_SHARE = 0.5  # of a round's evaluation: so long does the evaluation of a live batch usually take
_REMEMBERED = 5


class RoundSize:
    """Of one pipeline, for rounds beside live batches."""

    def __init__(self) -> None:
        self._allowed = _FIRST  # records, by the time that the last round took
        self._asked = _FIRST  # of the round under way
        self._live: deque[float] = deque([0.0], maxlen=_REMEMBERED)

    def live_evaluated(self, seconds: float) -> None:
        """A live batch, no backlog."""
        self._live.append(seconds)

    def next(self, came_in: int) -> int:
        """``came_in``: records since the last round of the same views."""
        self._asked = max(self._allowed, min(_AHEAD * came_in, _CHANGE_MAX * self._asked))
        return self._asked

    def measured(self, records: int, evaluation_s: float, commit_s: float) -> None:
        """A round beside live batches took so long, without its waiting. One that was short since there was no more
        to read says only that as many are too many, never that more would do; and one may be longer than it was to be,
        by a large file."""
        slowness = max(1.0, statistics.median(self._live) / (FILL_EVALUATION_S * _LIVE_SHARE))
        excess = max(evaluation_s / FILL_EVALUATION_S, commit_s / FILL_COMMIT_S) / slowness
        if records < self._asked and excess <= 1:
            return
        least, most = self._asked / _CHANGE_MAX, self._asked * _CHANGE_MAX
        self._allowed = max(_MIN, int(min(most, max(least, records / excess if excess > 0 else most))))
