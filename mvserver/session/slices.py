"""A long wait cut into short ones, so that a cancel or time-out ends it within a second."""

from __future__ import annotations

import time
from collections.abc import Iterator

_SLICE_S = 0.25  # a cancel is seen after at most this


class Slices:
    """The seconds of each short wait, and whether it is the last; the time runs from the making. None: without end."""

    def __init__(self, limit_s: float | None) -> None:
        self._end = None if limit_s is None else time.monotonic() + limit_s

    def __iter__(self) -> Iterator[tuple[float, bool]]:
        while self._end is None or (left_s := self._end - time.monotonic()) > _SLICE_S:
            yield _SLICE_S, False
        yield max(left_s, 0.0), True
