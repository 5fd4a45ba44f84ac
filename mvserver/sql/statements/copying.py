"""COPY."""

from __future__ import annotations

from dataclasses import dataclass

from mvserver.sql.statements.base import Kind, ObjectName, Statement
from mvserver.sql.statements.queries import Pull, Subscribe


@dataclass(frozen=True)
class CopyOptions:
    """With PostgreSQL's defaults filled in. ``force_…`` name columns: None means none, empty all of them. The first of
    them is for COPY TO, the others and ``header_match`` (the header has the columns' names) for COPY FROM."""

    format: str = "text"  # "text", "csv", "binary"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] | None = None
    header_match: bool = False
    force_not_null: tuple[str, ...] | None = None
    force_null: tuple[str, ...] | None = None


@dataclass(frozen=True)
class CopyTo(Statement, kind=Kind.SESSION):
    """``COPY relation [(columns)] TO STDOUT`` and ``COPY (query) TO STDOUT``, where a query may be a SUBSCRIBE."""

    query: Pull | Subscribe
    options: CopyOptions = CopyOptions()


@dataclass(frozen=True)
class CopyFrom(Statement, kind=Kind.SESSION):
    """``COPY stream [(columns)] FROM STDIN``; no columns are all of them."""

    name: ObjectName
    columns: tuple[str, ...] = ()
    options: CopyOptions = CopyOptions()
