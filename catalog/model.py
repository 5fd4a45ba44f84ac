"""The catalog's frozen records. Types are text (canonical SQL spelling), positions are JSON text."""

from __future__ import annotations

from dataclasses import dataclass, field

from catalog.acl import Acl, ObjectKind


@dataclass(frozen=True)
class Role:
    id: str
    oid: int
    name: str
    superuser: bool
    created_at: float = 0.0
    can_login: bool = True
    password: str | None = field(default=None, repr=False)  # its verifier; never the password itself
    create_database: bool = False
    create_store: bool = False
    connection_limit: int = -1  # -1: none
    valid_until: float | None = None  # of its password; seconds since the epoch, infinite ones too
    settings: tuple[tuple[str, str], ...] = ()  # with which its sessions begin
    bypass_row_security: bool = False
    create_function: bool = False


@dataclass(frozen=True)
class Membership:
    """``member`` has what ``role`` may; oids. With ``admin`` it may let others in."""

    role: int
    member: int
    grantor: int
    admin: bool = False


@dataclass(frozen=True)
class DefaultPrivilege:
    """What the next objects of ``role`` (an oid) begin with; in one schema, or where that is None everywhere."""

    number: int
    role: int
    schema_id: str | None
    kind: ObjectKind
    acl: Acl


@dataclass(frozen=True)
class Database:
    id: str  # UUID, as everywhere below
    oid: int  # stable, allocated once, >= 16384; what pg_catalog shows
    name: str
    owner: str
    created_at: float = 0.0
    acl: Acl | None = None  # None, here as below: nobody has granted or revoked anything


@dataclass(frozen=True)
class Schema:
    id: str
    oid: int
    database_id: str
    name: str
    owner: str
    created_at: float = 0.0
    acl: Acl | None = None


@dataclass(frozen=True)
class _OfKind:
    """What has a kind and properties: the checked WITH list, with lower-case keys and text values."""

    id: str
    oid: int
    name: str
    type: str  # the name of its kind, upper case
    properties: tuple[tuple[str, str], ...]
    owner: str
    created_at: float  # seconds since the epoch, UTC
    updated_at: float
    acl: Acl | None = None

    def property(self, key: str, default: str | None = None) -> str | None:
        return next((value for name, value in self.properties if name == key), default)


@dataclass(frozen=True)
class Store(_OfKind):
    """DESCRIBE masks the secrets in its properties."""


@dataclass(frozen=True)
class SchemaRegistry(_OfKind):
    """A service that keeps the schemas of records, of type CONFLUENT or CONFLUENT_CLOUD."""


@dataclass(frozen=True)
class DescriptorSource(_OfKind):
    """Schemas of records from a file, of type AVRO or PROTOBUF. ``properties`` are its name, the names of its messages,
    and its content."""


@dataclass(frozen=True)
class Column:
    """``spelling`` is how the name was written where it was declared, if not as it is: fields are often named so."""

    name: str
    type: str
    not_null: bool = False
    spelling: str | None = None


@dataclass(frozen=True)
class NamedSource:
    """A relation's name in the text of a view, ``text[start:end]``, and what it meant when the view was made: a
    relation by its id, or one of the system catalog by schema and name. ``columns`` are as many as it had then."""

    start: int
    end: int
    columns: int
    relation_id: str | None = None
    system: tuple[str, str] | None = None


@dataclass(frozen=True)
class StoredSelect:
    """What a view stands for: the SELECT as it was written."""

    text: str
    sources: tuple[NamedSource, ...]


@dataclass(frozen=True)
class IndexColumn:
    name: str
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Index:
    """CREATE INDEX: known to those who ask for indexes, and otherwise without effect. ``method`` is as btree."""

    oid: int
    name: str
    columns: tuple[IndexColumn, ...]
    unique: bool = False
    method: str = "btree"
    nulls_distinct: bool = True


@dataclass(frozen=True)
class Relation:
    """A stream, a changelog, a table, a materialized view or a view. The last two have no ``store_id`` and ``entity``.

    The types of a view's columns are spelled as PostgreSQL's format_type does; those of the others are canonical.
    """

    id: str
    oid: int
    schema_id: str
    name: str
    kind: str  # "stream", "changelog", "table", "materialized view", "view"
    columns: tuple[Column, ...]
    properties: tuple[tuple[str, str], ...]
    definition: str  # the statement's text
    owner: str
    created_at: float
    store_id: str | None = None
    entity: str | None = None
    key_columns: tuple[str, ...] = ()  # of a changelog, or a table or view in upsert mode: what tells rows apart
    row_type_oid: int = 0
    acl: Acl | None = None
    select: StoredSelect | None = None  # of a view
    indexes: tuple[Index, ...] = ()  # of a materialized view, in the order of their names
    row_security: bool = False
    row_security_forced: bool = False  # on its owner too

    def property(self, key: str, default: str | None = None) -> str | None:
        return next((value for name, value in self.properties if name == key), default)

    def columns_of(self, key: str) -> tuple[str, ...]:
        """Those that a property names."""
        return tuple(filter(None, (self.property(key) or "").split(",")))

    def reads(self, other_id: str) -> bool:
        """Whether the relation is a view whose text names the other one."""
        return self.select is not None and any(source.relation_id == other_id for source in self.select.sources)


@dataclass(frozen=True)
class EnumLabel:
    """``order`` is what labels compare by: one put between two others gets a number between theirs."""

    oid: int
    name: str
    order: float


@dataclass(frozen=True)
class EnumType:
    """CREATE TYPE … AS ENUM. ``oid`` is even, and the next one is that of its array type (``mvserver.types.oids``)."""

    id: str
    oid: int
    schema_id: str
    name: str
    labels: tuple[EnumLabel, ...]  # in their order
    owner: str
    created_at: float
    acl: Acl | None = None

    @property
    def array_oid(self) -> int:
        return self.oid + 1


@dataclass(frozen=True)
class Function:
    """CREATE FUNCTION. ``parameters`` are names and types; ``signature`` are the types without lengths and precisions,
    by which functions of one name are told apart. An ``aggregate`` is called with the lists of a group's values."""

    id: str
    oid: int
    schema_id: str
    name: str
    signature: str
    parameters: tuple[tuple[str, str], ...]
    result: str
    body: str
    strict: bool
    timeout_ms: int  # of a call
    memory_bytes: int  # of the process that runs it
    confined: bool  # whether the system denied it files and network where it was made: then it has to everywhere
    owner: str
    created_at: float = 0.0
    updated_at: float = 0.0
    language: str = "python"
    acl: Acl | None = None
    aggregate: bool = False
    source_id: str | None = None  # of one in Java, whose body is the name of its class
    method: str | None = None


@dataclass(frozen=True)
class FunctionSource:
    """CREATE FUNCTION_SOURCE: a jar. ``file`` is what it was read from, ``digest`` what is kept."""

    id: str
    oid: int
    name: str
    file: str
    digest: str
    description: str | None
    owner: str
    created_at: float = 0.0


@dataclass(frozen=True)
class Query:
    """A continuous query. What it should be is here; what it is, the streaming room knows.

    ``kind`` is ``materialized_view``, ``create_stream_as``, ``create_changelog_as``, ``create_table_as``,
    ``insert_into`` or ``dead_letters``.
    ``search_path`` is (database, schema) at creation, by which names in ``select_text`` resolve.
    ``start_position`` is the resolved JSON position per partition at which the query attached; with
    ``definition_version`` it decides what a rebuild must read.
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
    function_ids: tuple[str, ...] = ()  # of the users' functions that it calls


@dataclass(frozen=True)
class ApiToken:
    """``digest`` is of the token, which is kept nowhere; ``role`` is the oid of the role that it acts as."""

    name: str
    digest: str
    role: int
    created_at: float
    valid_until: float | None = None  # seconds since the epoch


@dataclass(frozen=True)
class Policy:
    """CREATE POLICY: which rows of a relation some roles may see. ``condition`` is as it was written; ``roles`` are
    oids, 0 is PUBLIC; ``command`` is SELECT or ALL."""

    oid: int
    name: str
    relation_oid: int
    condition: str
    roles: tuple[int, ...] = (0,)
    restrictive: bool = False
    command: str = "ALL"


@dataclass(frozen=True)
class Comment:
    """``kind`` is database, schema, store, relation, type or role; ``column_number`` counts from 1, and is 0 for the
    object itself."""

    kind: str
    oid: int
    column_number: int
    text: str
