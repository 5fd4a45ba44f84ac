"""The results of a text, which may begin again: a generator that raised Postponed could not go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mvserver.front import Postponed, Result


class Restartable:
    """``make`` must have had no effect when its iterator raises Postponed."""

    def __init__(self, make: Callable[[], Iterator[Result]]) -> None:
        self._make = make
        self._results = make()

    def __iter__(self) -> Iterator[Result]:
        return self

    def __next__(self) -> Result:
        try:
            return next(self._results)
        except Postponed:
            self._results = self._make()
            raise

    def close(self) -> None:
        close = getattr(self._results, "close", None)
        if close is not None:
            close()
