"""The SELECT within the text of a definition, as the user wrote it: found by the words that stand outside brackets."""

from __future__ import annotations

from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.lexer import OPERATOR, WORD, Token, tokenize
from mvserver.sql.statements.relations import (
    CreateChangelogAs,
    CreateMaterializedView,
    CreateStreamAs,
    CreateTableAs,
    CreateVirtual,
    InsertInto,
)

Definition = CreateMaterializedView | CreateStreamAs | CreateChangelogAs | CreateTableAs | CreateVirtual | InsertInto

_OPENING, _CLOSING = frozenset({"(", "["}), frozenset({")", "]"})


def word_outside_brackets(tokens: Sequence[Token], *words: str) -> int | None:
    """The index of the first of these keywords that stands in no brackets."""
    depth = 0
    for index, token in enumerate(tokens):
        if token.kind is OPERATOR and token.text in _OPENING:
            depth += 1
        elif token.kind is OPERATOR and token.text in _CLOSING:
            depth -= 1
        elif depth == 0 and token.kind is WORD and token.text in words:
            return index
    return None


def select_text(definition: Definition) -> str:
    """The catalog keeps it, and each start of the server compiles it anew."""
    tokens = tokenize(definition.text)
    inserts = isinstance(definition, InsertInto)
    index = word_outside_brackets(tokens, *(("select", "with") if inserts else ("as",)))
    if index is None:
        raise SqlError(sqlstates.INTERNAL_ERROR, "the statement has no SELECT", detail=definition.text)
    return definition.text[tokens[index].start if inserts else tokens[index].end :].strip()
