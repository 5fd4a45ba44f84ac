"""Large statements are parsed one after the other, so that many of them together hold up nobody else.

Parsing is work of the interpreter, which all threads of the server share: each of several that parse at the same time
makes the event loop wait for its own turn. It is known, too, whether such a statement is at work at all: Python's
collector of cycles had better not look through its tree just then (``mvserver.collector``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.queries import Pull
from mvserver.sql.trees import dismantle

_SLICE_S = 0.05  # a cancel is seen after at most this


def is_large(text: str) -> bool:
    return len(text) > limits.PARSED_TEXT_CHARACTERS_MAX


class LargeTexts:
    def __init__(self) -> None:
        self._parsing = threading.Lock()
        self._counting = threading.Lock()
        self._at_work = 0

    @property
    def at_work(self) -> bool:
        return self._at_work > 0

    @contextmanager
    def parsing(self, text: str, stopped: Callable[[], bool]) -> Iterator[None]:
        """Around the parsing of a text; a large one waits for its turn. 57014 when ``stopped`` before it comes."""
        if not is_large(text):
            yield
            return
        while not self._parsing.acquire(timeout=_SLICE_S):
            if stopped():
                raise SqlError(sqlstates.QUERY_CANCELED, "canceling statement due to user request")
        try:
            with self.working(text):
                yield
        finally:
            self._parsing.release()

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Around whatever else is done with the tree of a text."""
        large = int(is_large(text))
        with self._counting:
            self._at_work += large
        try:
            yield
        finally:
            with self._counting:
                self._at_work -= large

    def free(self, statement: Statement) -> None:
        """A tree of a hundred thousand nodes is taken apart, while others run, and not freed at once. The statement
        must be known to nobody else, as one of a large text is."""
        if isinstance(statement, Pull) and statement.has_tree and is_large(statement.text):
            with self.working(statement.text):
                dismantle(statement.select)
