"""How names are written in the statements for DuckDB."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Any name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def qualified(table: str) -> str:
    """A table of the schema in which all states are; the names of tables are our own."""
    return f'"_state"."{table}"'
