"""The commits that have begun: a kept answer is valid as long as none of its views is among them.

A commit counts from just before it is made, since readers may see it before its writer hears that it is done. So two
equal versions mean that no commit lies between them: what was read after the first one is what is there at the second.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

Version = tuple[int, ...]


class Commits:
    """One is made at a time; versions may be asked for by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_all = 0
        self._of_query: Counter[str] = Counter()
        self._being_made: Collection[str] | None = ()  # None: one that may change any query's rows

    @contextmanager
    def making(self, query_ids: Collection[str] | None) -> Iterator[None]:
        """Around a commit of the rows of these queries; None where it may change those of any."""
        with self._lock:
            self._being_made = query_ids
            if query_ids is None:
                self._of_all += 1
            else:
                self._of_query.update(query_ids)
        try:
            yield
        finally:
            with self._lock:
                self._being_made = ()

    def version(self, query_ids: Sequence[str]) -> Version | None:
        """Of the rows of these queries together; None while a commit of one of them is being made."""
        with self._lock:
            making = self._being_made
            if making is None or any(query_id in making for query_id in query_ids):
                return None
            return (self._of_all, *(self._of_query[query_id] for query_id in query_ids))
