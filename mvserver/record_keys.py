"""How columns of a relation are named that are fields of a record's key alone, beside fields of the value."""

from __future__ import annotations

KEY_FIELD = "_key."  # before the field's name; so a key and a value may have fields of one name


def field_of_key(column: str) -> str:
    """What the key calls the field that a column is read from and written to."""
    return column.removeprefix(KEY_FIELD) or column
