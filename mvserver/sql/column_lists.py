"""Columns in brackets: names, types and NOT NULL, and where rows are told apart by one, the primary key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql.cursor import Cursor
from mvserver.sql.lexer import WORD
from mvserver.sql.names import identifier, listed
from mvserver.sql.statements.base import ColumnDefinition
from mvserver.sql.typenames import type_name

_KEY_HINT = "Name its columns once, as PRIMARY KEY (a, b) behind the columns."


@dataclass
class KeyedColumns:
    """What is read of the list so far, which is that of ``what``; the key is None until it is given."""

    what: str
    definitions: list[ColumnDefinition] = field(default_factory=list)
    key: tuple[str, ...] | None = None
    key_position: int | None = None

    def set_key(self, names: tuple[str, ...], position: int) -> None:
        if self.key is not None:
            raise SqlError(
                sqlstates.INVALID_TABLE_DEFINITION,
                f"multiple primary keys for {self.what} are not allowed",
                hint=_KEY_HINT,
                position=position,
            )
        self.key, self.key_position = names, position


def column_definition(cursor: Cursor, constraint: Callable[[Cursor], bool]) -> ColumnDefinition:
    """``constraint`` reads or refuses a constraint at the cursor and says whether it has read one."""
    token = cursor.current
    name = identifier(cursor)
    written = cursor.source[token.start : token.end]
    spelling = written if token.kind is WORD and written != name else None
    sql_type = type_name(cursor)
    not_null = nullable = False
    while not cursor.at_operator(",") and not cursor.at_operator(")"):
        token = cursor.current
        if constraint(cursor):
            continue
        if cursor.accept_word("not", "null"):
            not_null = True
        elif cursor.accept_word("null"):
            nullable = True
        elif cursor.at_any({"default", "generated", "check", "references", "unique", "collate", "comment", "metadata"}):
            raise cursor.not_supported(
                f"{cursor.current.text.upper()} is not supported in a column definition",
                hint="A column has a name, a type and perhaps NOT NULL.",
            )
        else:
            raise cursor.syntax_error()
        if not_null and nullable:
            raise SqlError(
                sqlstates.SYNTAX_ERROR,
                f'conflicting NULL/NOT NULL declarations for column "{name}"',
                position=token.position,
            )
    return ColumnDefinition(name, sql_type, not_null, spelling)


def keyed_columns(cursor: Cursor, what: str) -> KeyedColumns:
    """Those of ``what``; the key may not be given."""
    cursor.expect_operator("(")
    found = KeyedColumns(what)
    while True:
        token = cursor.current
        if cursor.at_word("primary", "key"):
            _table_key(cursor, found)
        else:
            _column(cursor, found)
        if len(found.definitions) > limits.COLUMNS_MAX:
            raise SqlError(
                sqlstates.TOO_MANY_COLUMNS,
                f"{what} can have at most {limits.COLUMNS_MAX} columns",
                position=token.position,
            )
        if cursor.accept_operator(")"):
            break
        cursor.expect_operator(",")
    _check_key(found)
    return found


def _table_key(cursor: Cursor, found: KeyedColumns) -> None:
    position = cursor.current.position
    cursor.accept_word("primary", "key")
    cursor.expect_operator("(")
    names = listed(cursor, identifier)
    cursor.expect_operator(")")
    cursor.accept_word("not", "enforced")  # Flink's spelling: nobody but the source can keep it
    found.set_key(names, position)


def _column(cursor: Cursor, found: KeyedColumns) -> None:
    token = cursor.current
    _refuse_constraint(cursor, found.what)

    def constraint(at: Cursor) -> bool:
        position = at.current.position
        if at.accept_word("primary", "key"):
            found.set_key((token.text,), position)
            return True
        _refuse_constraint(at, found.what)
        return False

    column = column_definition(cursor, constraint)
    if any(column.name == each.name for each in found.definitions):
        raise SqlError(
            sqlstates.DUPLICATE_COLUMN, f'column "{column.name}" specified more than once', position=token.position
        )
    found.definitions.append(column)


def _refuse_constraint(cursor: Cursor, what: str) -> None:
    if cursor.at_any({"constraint", "foreign"}) or (cursor.at_any({"unique", "check"}) and cursor.peek().text == "("):
        raise cursor.not_supported(
            f"constraints are not supported in {what}", hint="Only PRIMARY KEY and NOT NULL are."
        )


def _check_key(found: KeyedColumns) -> None:
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
