"""What the catalog remembers, as frozen records. Types are text (canonical SQL spelling), positions are JSON text."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Role:
    id: str
    oid: int
    name: str
    superuser: bool
    created_at: float = 0.0
    can_login: bool = True
    password: str | None = field(default=None, repr=False)  # its verifier; never the password itself


@dataclass(frozen=True)
class Database:
    id: str  # UUID, as everywhere below
    oid: int  # stable, allocated once, >= 16384; what pg_catalog shows
    name: str
    owner: str
    created_at: float = 0.0


@dataclass(frozen=True)
class Schema:
    id: str
    oid: int
    database_id: str
    name: str
    owner: str
    created_at: float = 0.0


@dataclass(frozen=True)
class Store:
    """``properties`` are the checked WITH list (lower-case keys, text values); DESCRIBE masks the secrets in it."""

    id: str
    oid: int
    name: str
    type: str  # "KAFKA", "FILE"
    properties: tuple[tuple[str, str], ...]
    owner: str
    created_at: float  # seconds since the epoch, UTC
    updated_at: float

    def property(self, key: str, default: str | None = None) -> str | None:
        return next((value for name, value in self.properties if name == key), default)


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    not_null: bool = False


@dataclass(frozen=True)
class Relation:
    """A stream or a materialized view. A view's ``store_id`` and ``entity`` are None, a stream's ``query_id`` is None
    unless CREATE STREAM AS made it."""

    id: str
    oid: int
    schema_id: str
    name: str
    kind: str  # "stream", "materialized view"
    columns: tuple[Column, ...]
    properties: tuple[tuple[str, str], ...]
    definition: str  # the statement's text
    owner: str
    created_at: float
    store_id: str | None = None
    entity: str | None = None
    key_columns: tuple[str, ...] = ()  # an upsert view's unique key, by output column; () in append mode
    row_type_oid: int = 0

    def property(self, key: str, default: str | None = None) -> str | None:
        return next((value for name, value in self.properties if name == key), default)


@dataclass(frozen=True)
class Query:
    """A continuous query. What it should be is here; what it is, the streaming room knows.

    ``kind`` is ``materialized_view``, ``create_stream_as`` or ``insert_into``. ``search_path`` is (database, schema) at
    creation, by which names in ``select_text`` resolve. ``start_position`` is the resolved JSON position per partition
    at which the query attached; with ``definition_version`` it decides what a rebuild must read.
    """

    id: str
    kind: str
    select_text: str
    search_path: tuple[str, str]
    source_ids: tuple[str, ...]
    sink_id: str
    owner: str
    created_at: float
    start_position: str
    desired_state: str = "running"  # "running", "terminated"
    definition_version: int = 1
    time_zone: str = "UTC"
    properties: tuple[tuple[str, str], ...] = field(default=())
