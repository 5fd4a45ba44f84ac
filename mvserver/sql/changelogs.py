"""CREATE CHANGELOG: columns with a primary key, or the SELECT that the changelog is made of."""

from __future__ import annotations

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.sql.column_lists import keyed_columns
from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.names import if_not_exists, object_name
from mvserver.sql.properties import optional_properties
from mvserver.sql.relations import (
    declared_properties,
    describe_parser,
    drop_parser,
    list_parser,
    written_by,
)
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.relations import CreateChangelog, CreateChangelogAs


def _create(cursor: Cursor, *, or_replace: bool = False) -> Statement:
    guarded = if_not_exists(cursor, or_replace=or_replace)
    name = object_name(cursor)
    if cursor.at_operator("("):
        columns = keyed_columns(cursor, "a changelog")
        properties = declared_properties(cursor, "CHANGELOG")
        if columns.key is None:
            raise SqlError(
                sqlstates.INVALID_TABLE_DEFINITION,
                "a changelog needs a primary key",
                hint="Add PRIMARY KEY (column, ...) behind the columns, or use CREATE STREAM for rows that are only "
                "added.",
                position=name.position,
            )
        return CreateChangelog(name, tuple(columns.definitions), columns.key, properties, guarded, or_replace)
    properties = optional_properties(cursor)
    if cursor.at_end and properties:  # the entity says which columns it has, and its key
        return CreateChangelog(name, (), (), properties, guarded, or_replace)
    return CreateChangelogAs(name, properties, written_by(cursor, "CHANGELOG", or_replace=or_replace), guarded)


def _replace(cursor: Cursor) -> Statement:
    return _create(cursor, or_replace=True)


HEADS: Heads = {
    ("create", "changelog"): _create,
    ("create", "or", "replace", "changelog"): _replace,
    ("drop", "changelog"): drop_parser("changelog"),
    ("describe", "changelog"): describe_parser,
    ("list", "changelogs"): list_parser("changelog"),
    ("show", "changelogs"): list_parser("changelog"),
}
