"""Streams, changelogs, tables, materialized views and views."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from mvserver.sql.statements.base import ColumnDefinition, Kind, ObjectName, Properties, Statement


@dataclass(frozen=True)
class CommentOn(Statement, kind=Kind.DDL):
    """``kind`` as in GrantTarget, or "role"; ``comment`` None takes the comment away."""

    kind: str
    name: ObjectName
    comment: str | None
    column: str | None = None
    relation_kind: str | None = None


@dataclass(frozen=True)
class CreateStream(Statement, kind=Kind.DDL):
    name: ObjectName
    columns: tuple[ColumnDefinition, ...]
    properties: Properties
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True)
class CreateStreamAs(Statement, kind=Kind.CONTINUOUS):
    name: ObjectName
    properties: Properties
    select: exp.Expression
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateChangelog(Statement, kind=Kind.DDL):
    name: ObjectName
    columns: tuple[ColumnDefinition, ...]
    primary_key: tuple[str, ...]
    properties: Properties
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True)
class CreateChangelogAs(Statement, kind=Kind.CONTINUOUS):
    name: ObjectName
    properties: Properties
    select: exp.Expression
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateTableAs(Statement, kind=Kind.CONTINUOUS):
    name: ObjectName
    properties: Properties
    select: exp.Expression
    if_not_exists: bool = False


@dataclass(frozen=True)
class InsertInto(Statement, kind=Kind.CONTINUOUS):
    name: ObjectName
    select: exp.Expression


@dataclass(frozen=True)
class CreateMaterializedView(Statement, kind=Kind.CONTINUOUS):
    name: ObjectName
    properties: Properties
    select: exp.Expression
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True)
class CreateView(Statement, kind=Kind.DDL):
    """``select_text`` is that of the SELECT, which begins at ``select_start`` of what the client sent."""

    name: ObjectName
    columns: tuple[str, ...]  # () where those of the SELECT are meant
    select_text: str
    select_start: int
    or_replace: bool = False


@dataclass(frozen=True)
class IndexedColumn:
    name: str
    descending: bool = False
    nulls_first: bool = False
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class CreateIndex(Statement, kind=Kind.DDL):
    """``name`` None asks for one that is made of the relation's and the columns'."""

    name: str | None
    on: ObjectName
    columns: tuple[IndexedColumn, ...]
    unique: bool = False
    method: str = "btree"
    nulls_distinct: bool = True
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropIndex(Statement, kind=Kind.DDL):
    names: tuple[ObjectName, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class MoveRelation(Statement, kind=Kind.DDL):
    """Another name, or else another schema. ``kind`` is what the relation must be, None for any."""

    name: ObjectName
    kind: str | None
    new_name: str | None = None
    schema: ObjectName | None = None
    if_exists: bool = False


@dataclass(frozen=True)
class Analyze(Statement, kind=Kind.INSPECTION):
    """Of these relations, or of all: there are no statistics to make, so it only looks whether they are there."""

    names: tuple[ObjectName, ...] = ()


@dataclass(frozen=True)
class RefreshMaterializedView(Statement, kind=Kind.CONTINUOUS):
    name: ObjectName


@dataclass(frozen=True)
class DropRelation(Statement, kind=Kind.DDL):
    kind: str  # "stream", "materialized view", "view", "relation", "table"
    name: ObjectName
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class ListRelations(Statement, kind=Kind.INSPECTION):
    kinds: tuple[str, ...] = ()  # () for all
    schema: ObjectName | None = None


@dataclass(frozen=True)
class DescribeRelation(Statement, kind=Kind.INSPECTION):
    name: ObjectName
    columns: bool = False


@dataclass(frozen=True)
class CreateVirtual(Statement, kind=Kind.SESSION):
    """A relation without a topic, for the other statements of an application."""

    kind: str  # "stream", "changelog"
    name: ObjectName  # one part
    select: exp.Expression = field(compare=False)
