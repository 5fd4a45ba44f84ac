"""The results of a text, which may begin again: a generator that has ended could not go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mvserver.front import Postponed, Result


class Restartable:
    """``make`` must have had no effect when its iterator answers Postponed, which is then its last answer."""

    def __init__(self, make: Callable[[], Iterator[Result | Postponed]]) -> None:
        self._make = make
        self._results = make()

    def __iter__(self) -> Iterator[Result | Postponed]:
        return self

    def __next__(self) -> Result | Postponed:
        found = next(self._results)
        if isinstance(found, Postponed):
            next(self._results, None)  # to its end
            self._results = self._make()
        return found

    def close(self) -> None:
        close = getattr(self._results, "close", None)
        if close is not None:
            close()
