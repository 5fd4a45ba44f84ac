"""Identifiers and texts as SQL text, for all rooms."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Any name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def constant(text: str) -> str:
    """Any text as a constant."""
    return "'" + text.replace("'", "''") + "'"
