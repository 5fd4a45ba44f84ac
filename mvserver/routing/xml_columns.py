"""Which columns a record of XML can have: names that elements have, and types that elements can be."""

from __future__ import annotations

import re

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.types import Kind, SqlType

_NAME = re.compile(r"_?[^\W\d_][\w.-]*|_")


def check(column: str, type_: SqlType) -> None:
    """0A000 where a record cannot have the column. Names that begin with ``_`` are attributes of an element."""
    _check(column, type_, column)


def _check(name: str, type_: SqlType, column: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise _refused(column, f'"{name}" is no name of an element')
    inner = type_.element if type_.kind is Kind.ARRAY else type_
    if inner is None or inner.kind in (Kind.MAP, Kind.ARRAY):
        raise _refused(column, f"the format xml has no {type_}")
    if name.startswith("_") and type_.is_nested:
        raise _refused(column, f'"{name}" is an attribute, and so no {type_}')
    for field, of_field in inner.fields:
        _check(field, of_field, column)


def _refused(column: str, why: str) -> SqlError:
    return SqlError(
        sqlstates.FEATURE_NOT_SUPPORTED,
        f'column "{column}" cannot be in a record of XML: {why}',
        hint="Name it otherwise, take a STRUCT or an ARRAY of scalars or STRUCTs, or another value.format.",
    )
