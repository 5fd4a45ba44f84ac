"""SELECTs kept parsed by their text: drivers that do not prepare send the same text with each execution.

Only a text that is one pull query is kept; its tree is read by whoever plans it and changed by nobody.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from mvserver import limits
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.queries import Pull


class RememberingParser:
    """Shared by all sessions: a text means the same tree to all of them."""

    def __init__(self, parse: Callable[[str], Sequence[Statement]]) -> None:
        self._parse = parse
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Sequence[Statement]] = OrderedDict()
        self._characters = 0

    def __call__(self, text: str) -> Sequence[Statement]:
        with self._lock:
            known = self._known.get(text)
            if known is not None:
                self._known.move_to_end(text)
                return known
        statements = self._parse(text)
        if len(text) <= limits.PARSED_TEXT_CHARACTERS_MAX and len(statements) == 1 and isinstance(statements[0], Pull):
            with self._lock:
                self._characters += 0 if text in self._known else len(text)
                self._known[text] = statements
                while len(self._known) > limits.PARSED_TEXTS_MAX or self._characters > limits.PARSED_CHARACTERS_MAX:
                    oldest, _ = self._known.popitem(last=False)
                    self._characters -= len(oldest)
        return statements
