"""The pause behind a commit: about as long as a commit takes, where that is short.

What comes meanwhile is one commit. A pause before long commits saves little, since each has many records anyway, and
makes them older: the longer such a commit takes, the shorter the pause is.
"""

from __future__ import annotations

import statistics
from collections import deque

PAUSE_S_MIN = 0.005
PAUSE_S_MAX = 0.02
LONG_COMMIT_S = 0.04
_REMEMBERED = 5


class CommitPause:
    """Rows behind a longer silence are taken at once."""

    def __init__(self) -> None:
        self._commits: deque[float] = deque(maxlen=_REMEMBERED)
        self._until = 0.0

    def committed(self, now: float, took_s: float) -> None:
        """A commit has ended at ``now``, by the monotonic clock."""
        self._commits.append(took_s)
        commit_s = max(PAUSE_S_MIN, statistics.median(self._commits))
        longest_s = PAUSE_S_MAX * min(1.0, LONG_COMMIT_S / commit_s) ** 2
        self._until = now + max(PAUSE_S_MIN, min(commit_s, longest_s))

    def left_s(self, now: float) -> float:
        return max(0.0, self._until - now)
