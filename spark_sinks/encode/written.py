"""What a format writes by a schema of its own: the schema's text, and a record's body of the JSON object of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.decode.columns import DecodeColumn

Encode = Callable[[bytes], bytes]


@dataclass(frozen=True)
class WrittenForm:
    """``kind`` is a registry's word for the format. ``encode`` takes the JSON that queries make of rows."""

    kind: str
    schema: str
    encode: Encode


MakeForm = Callable[[str, Sequence[DecodeColumn], str | None], WrittenForm]
"""Of a record's name, its columns, and the newest schema of the subject, whose name is kept."""


def refused(column: str, why: str) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f'column "{column}" cannot be written: {why}',
        hint="Name the column otherwise in the SELECT, cast it, or choose another value.format.",
    )


def null_value(column: str, format_: str) -> SqlError:
    return SqlError(
        sqlstates.NULL_VALUE_NOT_ALLOWED,
        f'column "{column}" is NULL, which the format {format_} cannot have as a value',
        hint="Leave such rows out with WHERE, or write another format.",
    )
