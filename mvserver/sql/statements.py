"""Statements as frozen data: what the parser yields and the router dispatches on.

Names keep what the user wrote after folding; nothing is resolved here. ``Properties`` keep the order of the text.
SELECTs stay sqlglot trees (dialect ``mvserver.sql.dialect``); source properties hang on the table node's
``meta["properties"]`` as a ``Properties`` value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from mvserver.sql.types import SqlType

Value = str | int | float | bool | None
"""A property's value: text (also bare keywords and quoted identifiers), number, TRUE/FALSE, None when valueless."""


@dataclass(frozen=True)
class Property:
    key: str  # lower-cased
    value: Value
    position: int  # 1-based offset of the key in the statement


@dataclass(frozen=True)
class Properties(Mapping[str, Value]):
    """``WITH ('key' = value, ...)``. A repeated key is refused by the parser (42601)."""

    items_: tuple[Property, ...] = ()

    def __getitem__(self, key: str) -> Value:
        for item in self.items_:
            if item.key == key:
                return item.value
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return (item.key for item in self.items_)

    def __len__(self) -> int:
        return len(self.items_)

    def position(self, key: str) -> int | None:
        return next((item.position for item in self.items_ if item.key == key), None)


@dataclass(frozen=True)
class ObjectName:
    """``a``, ``schema.a`` or ``database.schema.a``, folded; ``position`` is 1-based."""

    parts: tuple[str, ...]
    position: int | None = None

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True)
class RoleSpec:
    """A role as a statement names it: by ``name``, or as "public", "current" or "session"."""

    name: str = ""
    special: str | None = None
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ColumnDefinition:
    name: str
    type: SqlType
    not_null: bool = False


@dataclass(frozen=True)
class Statement:
    """Base of all; ``text`` is the statement's own text, trimmed, without its semicolon."""

    text: str = field(kw_only=True, default="")


# --- stores and entities --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class CreateStore(Statement):
    name: str
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True)
class UpdateStore(Statement):
    name: str
    properties: Properties


@dataclass(frozen=True)
class DropStore(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class DescribeStore(Statement):
    name: str


@dataclass(frozen=True)
class ListStores(Statement):
    pass


@dataclass(frozen=True)
class UseStore(Statement):
    name: str


@dataclass(frozen=True)
class ListEntities(Statement):
    store: str | None = None


@dataclass(frozen=True)
class DescribeEntity(Statement):
    name: str
    store: str | None = None


@dataclass(frozen=True)
class CreateEntity(Statement):
    name: str
    store: str | None = None
    properties: Properties = Properties()


@dataclass(frozen=True)
class DropEntity(Statement):
    name: str
    store: str | None = None
    if_exists: bool = False
    properties: Properties = Properties()


@dataclass(frozen=True)
class PrintEntity(Statement):
    name: str
    store: str | None = None
    properties: Properties = Properties()
    limit: int | None = None


@dataclass(frozen=True)
class InsertIntoEntity(Statement):
    """``INSERT INTO ENTITY e [IN STORE s] VALUE ('<text>' | NULL[, '<key>']) [WITH (...)]``."""

    name: str
    store: str | None
    value: str | None
    key: str | None = None
    properties: Properties = Properties()


# --- name spaces ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class CreateDatabase(Statement):
    name: str
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropDatabase(Statement):
    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class ListDatabases(Statement):
    pass


@dataclass(frozen=True)
class CreateSchema(Statement):
    name: ObjectName
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropSchema(Statement):
    name: ObjectName
    if_exists: bool = False
    cascade: bool = False


# --- types ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class CreateType(Statement):
    """``CREATE TYPE name AS ENUM (labels)``."""

    name: ObjectName
    labels: tuple[str, ...]


@dataclass(frozen=True)
class AlterTypeAddValue(Statement):
    """``before`` or ``after`` a label that is there; neither: at the end."""

    name: ObjectName
    label: str
    if_not_exists: bool = False
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True)
class AlterTypeRename(Statement):
    """The type itself, or where ``label`` is given that label of it."""

    name: ObjectName
    to: str
    label: str | None = None


@dataclass(frozen=True)
class DropType(Statement):
    names: tuple[ObjectName, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class ListSchemas(Statement):
    database: str | None = None


@dataclass(frozen=True)
class Use(Statement):
    """``USE DATABASE d``, ``USE SCHEMA [d.]s``, or ``USE d[.s]`` (kind None)."""

    kind: str | None  # "database", "schema", None
    name: ObjectName


# --- roles ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class RoleOptions:
    """What a statement says of a role; None where it says nothing."""

    superuser: bool | None = None
    login: bool | None = None
    sets_password: bool = False
    password: str | None = field(default=None, repr=False)  # None with sets_password: PASSWORD NULL
    create_database: bool | None = None
    create_store: bool | None = None
    connection_limit: int | None = None
    valid_until: str | None = None
    in_roles: tuple[str, ...] = ()  # CREATE only, as the next two
    members: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()


@dataclass(frozen=True)
class CreateRole(Statement):
    name: str
    options: RoleOptions = RoleOptions()


@dataclass(frozen=True)
class AlterRole(Statement):
    name: str | None  # None: CURRENT_USER
    options: RoleOptions = RoleOptions()


@dataclass(frozen=True)
class DropRole(Statement):
    names: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class RenameRole(Statement):
    name: str
    new_name: str


@dataclass(frozen=True)
class AlterRoleSetting(Statement):
    """``ALTER ROLE r SET x = v``; ``RESET`` where ``value`` is None, of all where ``setting`` is None too."""

    role: RoleSpec
    setting: str | None
    value: str | None


# --- privileges -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class GrantTarget:
    """``kind`` is "relation", "schema", "database", "store" or "organization"; ``relation_kind`` is what the statement
    says that each relation is, None where it leaves that open. With ``all_in_schema`` the names are of schemas."""

    kind: str
    names: tuple[ObjectName, ...] = ()
    relation_kind: str | None = None
    all_in_schema: bool = False


@dataclass(frozen=True)
class Grant(Statement):
    """``privileges`` are lower-case words as written; None for ALL."""

    privileges: tuple[str, ...] | None
    on: GrantTarget
    to: tuple[RoleSpec, ...]
    grant_option: bool = False
    granted_by: RoleSpec | None = None


@dataclass(frozen=True)
class Revoke(Statement):
    privileges: tuple[str, ...] | None
    on: GrantTarget
    of: tuple[RoleSpec, ...]
    option_only: bool = False
    granted_by: RoleSpec | None = None
    cascade: bool = False


@dataclass(frozen=True)
class AlterDefaultPrivileges(Statement):
    """``change`` is of all objects of its kind that the ``roles`` (none: who asks) will make, in all schemas or in
    these."""

    change: Grant | Revoke
    roles: tuple[RoleSpec, ...] = ()
    schemas: tuple[ObjectName, ...] = ()


@dataclass(frozen=True)
class GrantRole(Statement):
    roles: tuple[str, ...]
    to: tuple[RoleSpec, ...]
    admin_option: bool = False


@dataclass(frozen=True)
class RevokeRole(Statement):
    roles: tuple[str, ...]
    of: tuple[RoleSpec, ...]
    option_only: bool = False


@dataclass(frozen=True)
class AlterOwner(Statement):
    """``kind`` as in GrantTarget, or "query"."""

    kind: str
    name: ObjectName
    owner: RoleSpec
    relation_kind: str | None = None


@dataclass(frozen=True)
class CommentOn(Statement):
    """``kind`` as in GrantTarget, or "role"; ``comment`` None takes the comment away."""

    kind: str
    name: ObjectName
    comment: str | None
    column: str | None = None
    relation_kind: str | None = None


@dataclass(frozen=True)
class ReassignOwned(Statement):
    of: tuple[RoleSpec, ...]
    to: RoleSpec


@dataclass(frozen=True)
class DropOwned(Statement):
    of: tuple[RoleSpec, ...]
    cascade: bool = False


# --- relations ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class CreateStream(Statement):
    name: ObjectName
    columns: tuple[ColumnDefinition, ...]
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateStreamAs(Statement):
    name: ObjectName
    properties: Properties
    select: exp.Expression
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateChangelog(Statement):
    name: ObjectName
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[str, ...]
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateChangelogAs(Statement):
    name: ObjectName
    properties: Properties
    select: exp.Expression
    if_not_exists: bool = False


@dataclass(frozen=True)
class InsertInto(Statement):
    name: ObjectName
    select: exp.Expression


@dataclass(frozen=True)
class CreateMaterializedView(Statement):
    name: ObjectName
    properties: Properties
    select: exp.Expression
    if_not_exists: bool = False


@dataclass(frozen=True)
class RefreshMaterializedView(Statement):
    name: ObjectName


@dataclass(frozen=True)
class DropRelation(Statement):
    kind: str  # "stream", "materialized view", "relation", "table"
    name: ObjectName
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class ListRelations(Statement):
    kind: str | None = None  # None for all, else "stream", "materialized view"
    schema: ObjectName | None = None


@dataclass(frozen=True)
class DescribeRelation(Statement):
    name: ObjectName
    columns: bool = False


# --- queries --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ListQueries(Statement):
    pass


@dataclass(frozen=True)
class DescribeQuery(Statement):
    id: str


@dataclass(frozen=True)
class TerminateQuery(Statement):
    id: str


@dataclass(frozen=True)
class RestartQuery(Statement):
    id: str
    skip_rejected: bool = False


@dataclass(frozen=True)
class DescribeStatement(Statement):
    """DeltaStream's dry run: columns ``type`` and ``info`` (JSON)."""

    statement: Statement


@dataclass(frozen=True)
class Explain(Statement):
    """PostgreSQL's EXPLAIN; ``statement`` is anything, a pull query included."""

    statement: Statement
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Pull(Statement):
    """A SELECT, VALUES or TABLE that reads views and catalog relations and ends by itself."""

    select: exp.Expression

    @property
    def has_parameters(self) -> bool:
        return self.select.find(exp.Parameter) is not None


@dataclass(frozen=True)
class PushQuery(Statement):
    """A SELECT over a stream: rows as they come, until ``limit`` or until its client ends it. ``select`` is the tree of
    a continuous query."""

    select: exp.Expression
    limit: int | None = None


@dataclass(frozen=True)
class BoundedRead(Statement):
    """A stream read to its present end, for a pull query that names it. ``select`` is as a push query's."""

    select: exp.Expression
    limit: int | None = None


# --- session --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Set(Statement):
    name: str
    value: str | None  # None: TO DEFAULT
    local: bool = False


@dataclass(frozen=True)
class SetTransaction(Statement):
    """``SET TRANSACTION ...`` or, with ``session``, ``SET SESSION CHARACTERISTICS AS TRANSACTION ...``."""

    isolation: str | None = None  # "read committed", "repeatable read", ...
    read_only: bool | None = None
    session: bool = False


@dataclass(frozen=True)
class Show(Statement):
    name: str  # "all" for SHOW ALL


@dataclass(frozen=True)
class Reset(Statement):
    name: str  # "all" for RESET ALL


@dataclass(frozen=True)
class Discard(Statement):
    what: str  # "all", "plans", "temp", "sequences"


@dataclass(frozen=True)
class Unlisten(Statement):
    """Of a channel or of all: there is no LISTEN, so nothing is listened to. Pools send it with what they reset."""


@dataclass(frozen=True)
class Begin(Statement):
    isolation: str | None = None
    read_only: bool | None = None


@dataclass(frozen=True)
class BeginApplication(Statement):
    name: str


@dataclass(frozen=True)
class EndApplication(Statement):
    properties: Properties = Properties()


@dataclass(frozen=True)
class CreateVirtual(Statement):
    """A relation without a topic, for the other statements of an application."""

    kind: str  # "stream", "changelog"
    name: ObjectName  # one part
    select: exp.Expression = field(compare=False)


@dataclass(frozen=True)
class Commit(Statement):
    chain: bool = False


@dataclass(frozen=True)
class Rollback(Statement):
    chain: bool = False


@dataclass(frozen=True)
class Savepoint(Statement):
    name: str


@dataclass(frozen=True)
class ReleaseSavepoint(Statement):
    name: str


@dataclass(frozen=True)
class RollbackToSavepoint(Statement):
    name: str


@dataclass(frozen=True)
class Prepare(Statement):
    name: str
    types: tuple[str, ...]
    statement_text: str


@dataclass(frozen=True)
class ExecutePrepared(Statement):
    name: str
    arguments: tuple[exp.Expression, ...] = ()


@dataclass(frozen=True)
class Deallocate(Statement):
    name: str | None  # None for ALL


# --- cursors and COPY -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class DeclareCursor(Statement):
    name: str
    query: Pull
    scroll: bool = False
    hold: bool = False
    binary: bool = False


@dataclass(frozen=True)
class Fetch(Statement):
    """FETCH, or MOVE; ``count`` is a row's number where ``direction`` is "absolute", and None for ALL."""

    name: str
    direction: str = "forward"  # "forward", "backward", "absolute", "relative"
    count: int | None = 1
    move: bool = False


@dataclass(frozen=True)
class CloseCursor(Statement):
    name: str | None  # None for ALL


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
class CopyTo(Statement):
    """``COPY relation [(columns)] TO STDOUT`` and ``COPY (query) TO STDOUT``."""

    query: Pull
    options: CopyOptions = CopyOptions()


@dataclass(frozen=True)
class CopyFrom(Statement):
    """``COPY stream [(columns)] FROM STDIN``; no columns are all of them."""

    name: ObjectName
    columns: tuple[str, ...] = ()
    options: CopyOptions = CopyOptions()
