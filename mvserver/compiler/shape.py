"""A relation as the compiler sees it: enough to bind a SELECT, nothing of the catalog's own model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from mvserver.compiler.own_functions import NoFunctions, OwnFunctions
from mvserver.compiler.plans import ErrorHandling, RecordSchema, ScanColumn
from mvserver.sql.types import SqlType


@dataclass(frozen=True)
class ViewDefinition:
    """What a materialized view is made of: its SELECT, what the names in it mean, and when its groups are forgotten."""

    select: exp.Expression
    resolve: Resolve
    state_ttl_ms: int = 0  # 0: never
    functions: OwnFunctions = field(default_factory=NoFunctions)


@dataclass(frozen=True)
class RelationShape:
    """A relation as a continuous query sees it, with the defaults of its own declaration."""

    id: str
    name: str  # database.schema.name
    kind: str  # "stream", "changelog", "table", "materialized view"
    columns: tuple[ScanColumn, ...]
    value_format: str = "json"
    timestamp: str | None = None
    timestamp_format: str = "sql"
    error_handling: ErrorHandling = ErrorHandling.IGNORE_AND_LOG
    primary_key: tuple[str, ...] = ()  # of a changelog
    key_format: str | None = None
    view: ViewDefinition | None = None  # of a materialized view that other views may be made over
    key_only: tuple[str, ...] = ()  # key columns that records' values do not have
    partition_columns: tuple[str, ...] = ()  # in the names of folders
    metadata: SqlType | None = None  # of its records, a struct; None where they have none
    value_schema: RecordSchema | None = None  # of all its records, where they do not say it themselves
    key_schema: RecordSchema | None = None
    value_delimiter: str | None = None
    value_checked: bool = False
    reading: tuple[tuple[str, str | None], ...] = ()  # what queries may say of how it is read, and what it says itself


Resolve = Callable[[tuple[str, ...], int | None], RelationShape]
"""Folded name parts and 1-based position → the relation; raises 42P01 where there is none."""
