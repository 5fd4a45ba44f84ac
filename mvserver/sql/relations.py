"""Streams and materialized views: declaring, filling, listing, describing, dropping."""

from __future__ import annotations

from sqlglot import exp

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.column_lists import column_definition
from mvserver.sql.cursor import Cursor
from mvserver.sql.entities import at_entity, insert_into_entity
from mvserver.sql.heads import Heads, StatementParser
from mvserver.sql.lexer import IDENTIFIER, WORD
from mvserver.sql.names import cascade, identifier, if_exists, if_not_exists, object_name
from mvserver.sql.properties import optional_properties
from mvserver.sql.select import continuous_select
from mvserver.sql.statements.base import ColumnDefinition, ObjectName, Properties, Statement
from mvserver.sql.statements.relations import (
    Analyze,
    CreateMaterializedView,
    CreateStream,
    CreateStreamAs,
    DescribeRelation,
    DropRelation,
    InsertInto,
    ListRelations,
    RefreshMaterializedView,
)

_INSERT_HINT = "Use INSERT INTO ENTITY name VALUE ('...') to write a record, or INSERT INTO stream SELECT ..."


# --- CREATE ---------------------------------------------------------------------------------------------------------
def _create_stream(cursor: Cursor, *, or_replace: bool = False) -> Statement:
    guarded = if_not_exists(cursor, or_replace=or_replace)
    name = object_name(cursor)
    if cursor.at_operator("("):
        columns = _columns(cursor)
        return CreateStream(name, columns, declared_properties(cursor, "STREAM"), guarded, or_replace)
    properties = optional_properties(cursor)
    if cursor.at_end and properties:  # the entity says which columns it has
        return CreateStream(name, (), properties, guarded, or_replace)
    return CreateStreamAs(name, properties, written_by(cursor, "STREAM", or_replace=or_replace), guarded)


def _replace_stream(cursor: Cursor) -> Statement:
    return _create_stream(cursor, or_replace=True)


def declared_properties(cursor: Cursor, what: str) -> Properties:
    """The properties behind columns; ``what`` is STREAM or CHANGELOG."""
    properties = optional_properties(cursor)
    if cursor.at_word("as"):
        raise cursor.syntax_error(
            hint=f"The columns of CREATE {what} AS come from its SELECT; name them there with AS."
        )
    return properties


def written_by(cursor: Cursor, what: str, *, or_replace: bool) -> exp.Expression:
    """The SELECT of ``CREATE ... AS``, behind the properties."""
    if or_replace:
        raise cursor.not_supported(
            f"CREATE OR REPLACE {what} AS is not supported",
            hint="What has been written stays in the entity, and would not fit another query. Choose another name.",
        )
    cursor.expect_word("as")
    return continuous_select(cursor)


def _columns(cursor: Cursor) -> tuple[ColumnDefinition, ...]:
    cursor.expect_operator("(")
    columns: list[ColumnDefinition] = []
    seen: set[str] = set()
    while True:
        token = cursor.current
        _refuse_constraint(cursor)
        column = column_definition(cursor, _refuse_constraint)
        if column.name in seen:
            raise SqlError(
                sqlstates.DUPLICATE_COLUMN, f'column "{column.name}" specified more than once', position=token.position
            )
        seen.add(column.name)
        columns.append(column)
        if len(columns) > limits.COLUMNS_MAX:
            raise SqlError(
                sqlstates.TOO_MANY_COLUMNS,
                f"streams can have at most {limits.COLUMNS_MAX} columns",
                position=token.position,
            )
        if cursor.accept_operator(")"):
            return tuple(columns)
        cursor.expect_operator(",")


def _refuse_constraint(cursor: Cursor) -> bool:
    if cursor.at_word("primary", "key"):
        raise SqlError(
            sqlstates.INVALID_TABLE_DEFINITION,
            "a stream has no primary key",
            hint="Rows of a stream are only added. For rows that are replaced by key, group a stream by that key in a "
            "materialized view.",
            position=cursor.current.position,
        )
    if cursor.at_any({"constraint", "foreign"}) or (cursor.at_any({"unique", "check"}) and cursor.peek().text == "("):
        raise cursor.not_supported("constraints are not supported in a stream", hint="Only NOT NULL is.")
    return False


def _create_materialized_view(cursor: Cursor, *, or_replace: bool = False) -> Statement:
    guarded = if_not_exists(cursor, or_replace=or_replace)
    name = object_name(cursor)
    if cursor.at_operator("("):
        raise cursor.not_supported(
            "column names after the view's name are not supported", hint="Name the columns in the SELECT with AS."
        )
    properties = optional_properties(cursor)
    cursor.expect_word("as")
    select = continuous_select(cursor)
    _with_data(cursor)
    return CreateMaterializedView(name, properties, select, guarded, or_replace)


def _replace_materialized_view(cursor: Cursor) -> Statement:
    return _create_materialized_view(cursor, or_replace=True)


def _with_data(cursor: Cursor) -> None:
    if cursor.at_word("with", "no", "data"):
        raise cursor.not_supported("WITH NO DATA is not supported", hint="A view starts to fill when it is created.")
    cursor.accept_word("with", "data")


def _refresh(cursor: Cursor) -> Statement:
    cursor.accept_word("concurrently")
    name = object_name(cursor)
    _with_data(cursor)
    return RefreshMaterializedView(name)


# --- INSERT INTO ----------------------------------------------------------------------------------------------------
def _insert(cursor: Cursor) -> Statement:
    if at_entity(cursor):
        return insert_into_entity(cursor)
    name = object_name(cursor)
    if cursor.at_any({"values", "default", "value"}):
        raise cursor.not_supported("INSERT INTO ... VALUES is not supported", hint=_INSERT_HINT)
    if cursor.at_operator("(") and not (
        (cursor.peek().kind is WORD and cursor.peek().text in ("select", "with")) or cursor.peek().text == "("
    ):
        raise cursor.not_supported(
            "a column list in INSERT INTO is not supported",
            hint="Columns are matched by name: give the columns of the SELECT the names of the stream's columns.",
        )
    if not cursor.at_any({"select", "with"}) and not cursor.at_operator("("):
        raise cursor.syntax_error()
    return InsertInto(name, continuous_select(cursor))


# --- DROP, LIST, DESCRIBE -------------------------------------------------------------------------------------------
def drop_parser(kind: str) -> StatementParser:
    def parse(cursor: Cursor) -> Statement:
        guarded = if_exists(cursor)
        name = object_name(cursor)
        if cursor.at_operator(","):
            raise cursor.not_supported("dropping several objects at once is not supported", hint="Drop one at a time.")
        return DropRelation(kind, name, guarded, cascade(cursor))

    return parse


_ANALYZE_OPTIONS = frozenset({"verbose", "skip_locked", "buffer_usage_limit"})


def _analyze(cursor: Cursor) -> Statement:
    """``ANALYZE [VERBOSE] [name [(columns)], ...]``, with options in brackets too."""
    if cursor.accept_operator("("):
        while not cursor.accept_operator(")"):
            if not cursor.at_any(_ANALYZE_OPTIONS):
                raise cursor.syntax_error()
            while not (cursor.at_operator(",") or cursor.at_operator(")")):
                cursor.advance()
            cursor.accept_operator(",")
    else:
        cursor.accept_word("verbose")
    names: list[ObjectName] = []
    while names or cursor.current.kind in (WORD, IDENTIFIER):
        names.append(object_name(cursor))
        if cursor.accept_operator("("):
            identifier(cursor)
            while cursor.accept_operator(","):
                identifier(cursor)
            cursor.expect_operator(")")
        if not cursor.accept_operator(","):
            break
    return Analyze(tuple(names))


def list_parser(*kinds: str) -> StatementParser:
    def parse(cursor: Cursor) -> Statement:
        schema: ObjectName | None = None
        if cursor.accept_word("in"):
            cursor.accept_word("schema")
            schema = object_name(cursor, parts_max=2)
        return ListRelations(kinds, schema)

    return parse


def describe_parser(cursor: Cursor) -> Statement:
    following = cursor.peek()
    columns = cursor.at_word("columns") and cursor.peek().text not in ("", ";", ".") and following is not cursor.current
    if columns:
        cursor.advance()
        return DescribeRelation(object_name(cursor), columns=True)
    name = object_name(cursor)
    return DescribeRelation(name, cursor.accept_word("columns"))


HEADS: Heads = {
    ("create", "stream"): _create_stream,
    ("create", "materialized", "view"): _create_materialized_view,
    ("create", "or", "replace", "materialized", "view"): _replace_materialized_view,
    ("create", "or", "replace", "stream"): _replace_stream,
    ("refresh", "materialized", "view"): _refresh,
    ("analyze",): _analyze,
    ("analyse",): _analyze,
    ("insert", "into"): _insert,
    ("drop", "stream"): drop_parser("stream"),
    ("drop", "materialized", "view"): drop_parser("materialized view"),
    ("drop", "view"): drop_parser("view"),
    ("drop", "relation"): drop_parser("relation"),
    ("drop", "table"): drop_parser("table"),
    ("describe", "relation"): describe_parser,
    ("describe", "stream"): describe_parser,
    ("describe", "materialized", "view"): describe_parser,
    ("describe", "view"): describe_parser,
    **{
        (verb, *words): list_parser(*kinds)
        for verb in ("list", "show")
        for words, kinds in (
            (("relations",), ()),
            (("streams",), ("stream",)),
            (("materialized", "views"), ("materialized view",)),
            (("views",), ("view", "materialized view")),
        )
    },
}
