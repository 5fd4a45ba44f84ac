"""CREATE CHANGELOG: columns with a primary key, or the SELECT that the changelog is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.heads import Heads
from mvserver.sql.names import identifier, if_not_exists, listed, object_name
from mvserver.sql.relations import (
    column_definition,
    declared_properties,
    describe_parser,
    drop_parser,
    list_parser,
    written_by,
)
from mvserver.sql.statements.base import ColumnDefinition, Statement
from mvserver.sql.statements.relations import CreateChangelog, CreateChangelogAs

_KEY_HINT = "Name its columns once, as PRIMARY KEY (a, b) behind the columns."


@dataclass
class _Columns:
    """What is read of the list so far; the key is None until it is given."""

    definitions: list[ColumnDefinition] = field(default_factory=list)
    key: tuple[str, ...] | None = None
    key_position: int | None = None

    def set_key(self, names: tuple[str, ...], position: int) -> None:
        if self.key is not None:
            raise SqlError(
                sqlstates.INVALID_TABLE_DEFINITION,
                "multiple primary keys for a changelog are not allowed",
                hint=_KEY_HINT,
                position=position,
            )
        self.key, self.key_position = names, position


def _create(cursor: Cursor, *, or_replace: bool = False) -> Statement:
    guarded = if_not_exists(cursor, or_replace=or_replace)
    name = object_name(cursor)
    if cursor.at_operator("("):
        columns = _columns(cursor)
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
    columns_example = "column type, ..., PRIMARY KEY (column)"
    properties, select = written_by(cursor, "CHANGELOG", columns_example, or_replace=or_replace)
    return CreateChangelogAs(name, properties, select, guarded)


def _replace(cursor: Cursor) -> Statement:
    return _create(cursor, or_replace=True)


def _columns(cursor: Cursor) -> _Columns:
    cursor.expect_operator("(")
    found = _Columns()
    while True:
        token = cursor.current
        if cursor.at_word("primary", "key"):
            _table_key(cursor, found)
        else:
            _column(cursor, found)
        if len(found.definitions) > limits.COLUMNS_MAX:
            raise SqlError(
                sqlstates.TOO_MANY_COLUMNS,
                f"changelogs can have at most {limits.COLUMNS_MAX} columns",
                position=token.position,
            )
        if cursor.accept_operator(")"):
            break
        cursor.expect_operator(",")
    _check_key(found)
    return found


def _table_key(cursor: Cursor, found: _Columns) -> None:
    position = cursor.current.position
    cursor.accept_word("primary", "key")
    cursor.expect_operator("(")
    names = listed(cursor, identifier)
    cursor.expect_operator(")")
    cursor.accept_word("not", "enforced")  # Flink's spelling: nobody but the source can keep it
    found.set_key(names, position)


def _column(cursor: Cursor, found: _Columns) -> None:
    token = cursor.current
    _refuse_constraint(cursor)

    def constraint(at: Cursor) -> bool:
        position = at.current.position
        if at.accept_word("primary", "key"):
            found.set_key((token.text,), position)
            return True
        _refuse_constraint(at)
        return False

    column = column_definition(cursor, constraint)
    if any(column.name == each.name for each in found.definitions):
        raise SqlError(
            sqlstates.DUPLICATE_COLUMN, f'column "{column.name}" specified more than once', position=token.position
        )
    found.definitions.append(column)


def _refuse_constraint(cursor: Cursor) -> None:
    if cursor.at_any({"constraint", "foreign"}) or (cursor.at_any({"unique", "check"}) and cursor.peek().text == "("):
        raise cursor.not_supported(
            "constraints are not supported in a changelog", hint="Only PRIMARY KEY and NOT NULL are."
        )


def _check_key(found: _Columns) -> None:
    names = [column.name for column in found.definitions]
    seen: set[str] = set()
    for name in found.key or ():
        if name not in names:
            raise SqlError(
                sqlstates.UNDEFINED_COLUMN, f'column "{name}" named in key does not exist', position=found.key_position
            )
        if name in seen:
            raise SqlError(
                sqlstates.DUPLICATE_COLUMN,
                f'column "{name}" appears twice in primary key constraint',
                position=found.key_position,
            )
        seen.add(name)


HEADS: Heads = {
    ("create", "changelog"): _create,
    ("create", "or", "replace", "changelog"): _replace,
    ("drop", "changelog"): drop_parser("changelog"),
    ("describe", "changelog"): describe_parser,
    ("list", "changelogs"): list_parser("changelog"),
    ("show", "changelogs"): list_parser("changelog"),
}
