"""What a format writes by a schema of its own: the schema's text, and a record's body of the JSON object of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mvserver import sqlstates
from mvserver.errors import SqlError

if TYPE_CHECKING:
    from spark_sinks.decode.columns import DecodeColumn

Encode = Callable[[bytes], bytes]


@dataclass(frozen=True)
class WrittenForm:
    """``kind`` is a registry's word for the format. ``encode`` takes the JSON that queries make of rows."""

    kind: str
    schema: str
    encode: Encode


class FullName(str):
    """The name of a record as it was given, with a namespace of Avro's."""

    namespace: str | None

    def __new__(cls, name: str, namespace: str | None) -> FullName:
        made = super().__new__(cls, name)
        made.namespace = namespace
        return made


MakeForm = Callable[[str, "Sequence[DecodeColumn]", str | None], WrittenForm]
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


def no_record(why: str) -> SqlError:
    return SqlError(
        sqlstates.DATA_EXCEPTION,
        "a row cannot be written as a record of the descriptor",
        detail=f"{why[:500].rstrip('.')}.",
        hint="Leave such rows out with WHERE, or change the value in the SELECT.",
    )


def no_field(name: str) -> SqlError:
    return SqlError(sqlstates.UNDEFINED_COLUMN, f'the descriptor has no field "{name}"')
