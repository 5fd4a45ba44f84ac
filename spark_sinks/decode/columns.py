"""The values that cross between a relation's declaration and its decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.types import DataType

SPELLING = "spelling"
"""In the metadata of a struct's field: its name as it was declared, where that is not the name."""
WANTED = "\ufdd1"
"""A noncharacter, which begins no other reason."""
NUL = "char(0)"
"""The character that PostgreSQL's texts cannot hold, as Spark writes it."""
_REASON_VALUE_CHARS = 200


@dataclass(frozen=True)
class DecodeColumn:
    """A declared column; ``label`` is its type as the user reads it in a rejection's reason. ``spelling`` is a name in
    other case that JSON's fields may have instead, without being looked for one by one."""

    name: str
    type: DataType
    label: str
    not_null: bool = False
    spelling: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.name,) if self.spelling is None else (self.name, self.spelling)


@dataclass(frozen=True)
class RecordFunction:
    """A function of Spark that decodes records by their schemas; registered before its name is used. ``columns`` and
    ``schemas`` are JSON, ``result`` is its type: the columns as c0, c1 ..., and the reason. ``owner`` is the class in
    Java whose ``Decoder`` it is."""

    name: str
    columns: str
    schemas: str
    result: str
    owner: str = "Records"


@dataclass(frozen=True)
class CheckFunction:
    """A function of Spark, in Python, that compares records with their schemas: NULL, or why a record is not of its
    own. ``schemas`` is JSON."""

    name: str
    schemas: str


@dataclass(frozen=True)
class Decoded:
    """What to select, in order, and what then to refer to.

    ``stages``: each a tuple of ``expression AS name`` texts to be added to all columns so far.
    ``columns``: by column name, the Spark SQL reference to its typed value (NULL for a rejected record).
    ``good``: a condition, true where the record is not rejected, never NULL.
    ``reason``: reference to a string column, NULL where the record is good. None for a trial, which tells only that a
    record needs a closer look. One that begins with :data:`WANTED` is the id of a schema that has to be fetched.
    ``functions``: what the stages call besides Spark's own.
    """

    stages: tuple[tuple[str, ...], ...]
    columns: tuple[tuple[str, str], ...]
    good: str
    reason: str | None
    functions: tuple[RecordFunction | CheckFunction, ...] = ()


def quoted(name: str) -> str:
    """A Spark identifier."""
    return "`" + name.replace("`", "``") + "`"


def parquet_column(name: str) -> str:
    """How a reader of Parquet calls a file's column, apart from the raw columns and from a program's own names."""
    return quoted(f"u_{name}")


def text(value: str) -> str:
    """A Spark string literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def utf8_text(value: str) -> str:
    """A binary value as text, NULL where it is none. A byte order mark before it is no part of it: Spark leaves that
    of a file out by itself."""
    utf8 = f"cast({value} as string)"
    whole = f"CASE WHEN startswith({utf8}, '\\uFEFF') THEN substring({utf8}, 2) ELSE {utf8} END"
    return f"CASE WHEN is_valid_utf8({utf8}) THEN {whole} END"


def first_reason(tests: Sequence[str]) -> str:
    """Of the first ``WHEN ... THEN reason`` that holds; NULL where none does."""
    return f"CASE {' '.join(tests)} END" if tests else "cast(NULL as string)"


def null_reason(column: DecodeColumn) -> str:
    return text(f'column "{column.name}" is null and must not be')


def wrong_reason(column: DecodeColumn, given: str) -> str:
    """With the beginning of the value, in which no reader of the reason could see a NUL."""
    shown = f"replace(left({given}, {_REASON_VALUE_CHARS}), {NUL}, '\\uFFFD')"
    wrong = text(f'column "{column.name}" is not of type {column.label}: ')
    no_text = text(f'column "{column.name}" has \\u0000 or half of a surrogate pair, which no text can hold: ')
    return f"concat(CASE WHEN contains({given}, {NUL}) THEN {no_text} ELSE {wrong} END, {shown})"


def valid_text(bytes_: str) -> str:
    """Bytes as text that every client can be sent: what is no UTF-8, and NUL, becomes U+FFFD."""
    return f"replace(make_valid_utf8(cast({bytes_} as string)), {NUL}, '\\uFFFD')"
