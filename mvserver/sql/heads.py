"""The common part of the statement parsers: a table from leading keywords to the function that reads the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mvserver.sql.cursor import Cursor
from mvserver.sql.statements.base import Statement

StatementParser = Callable[[Cursor], Statement]
Heads = Mapping[tuple[str, ...], StatementParser]
"""``("create", "store")`` -> parser; the cursor stands behind the leading keywords when it is called."""


class HeadTable:
    """Finds the parser by the longest head that matches."""

    def __init__(self, *groups: Heads) -> None:
        self._by_first: dict[str, list[tuple[tuple[str, ...], StatementParser]]] = {}
        for group in groups:
            for words, parser in group.items():
                self._by_first.setdefault(words[0], []).append((words, parser))
        for heads in self._by_first.values():
            heads.sort(key=lambda head: -len(head[0]))

    def find(self, cursor: Cursor) -> StatementParser:
        """The parser of the statement at the cursor, which is moved behind the head; 42601 when there is none."""
        heads = self._by_first.get(cursor.current.text, ()) if cursor.at_name() else ()
        known = 0
        for words, parser in heads:
            if cursor.accept_word(*words):
                return parser
            matched = next((i for i, word in enumerate(words) if not self._is(cursor, i, word)), len(words))
            known = max(known, matched)
        raise cursor.syntax_error(cursor.peek(known) if known else cursor.current)

    @staticmethod
    def _is(cursor: Cursor, offset: int, word: str) -> bool:
        token = cursor.peek(offset) if offset else cursor.current
        return token.text == word
