"""Statements over a richer schema answer as a real PostgreSQL does, in three ways, or are listed with their reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus.compare import WAYS, Client
from tests.corpus.statements import BY_HAND, CLASSES, KNOWN, different

pytestmark = pytest.mark.postgres

_DOCUMENT = Path(__file__).parents[2] / "docs" / "sql" / "postgresql.md"
_CLASSES_MAX = 40


@pytest.mark.parametrize("way", WAYS)
def test_statements_written_by_hand_are_answered_as_postgresql_answers_them(
    ours: Client, theirs: Client, way: str
) -> None:
    found = different(BY_HAND, ours, theirs, way)
    assert {text: what for text, what in found.items() if text not in KNOWN} == {}


def test_the_classes_of_differences_are_documented() -> None:
    document = _DOCUMENT.read_text(encoding="utf-8")
    assert [title for title in CLASSES if title not in document] == []
    assert len(CLASSES) <= _CLASSES_MAX
