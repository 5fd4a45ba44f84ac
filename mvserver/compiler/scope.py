"""Names to columns: the items of FROM under their aliases, with PostgreSQL's errors for what is not there."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.compiler.expressions import ColumnReference, Expression, FieldAccess
from mvserver.compiler.plans import Aggregation, Scan
from mvserver.compiler.row_functions import row_columns
from mvserver.compiler.shape import RelationShape
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.sql.types import Kind, SqlType


@dataclass(frozen=True)
class ScopeColumn:
    """A name and the expression over the scan that it stands for."""

    name: str
    expression: Expression

    @property
    def type(self) -> SqlType:
        return self.expression.type


@dataclass(frozen=True)
class ScopeTable:
    """An item of FROM; ``alias`` hides the relation's own name, as in PostgreSQL."""

    columns: tuple[ScopeColumn, ...]
    alias: str | None = None
    path: tuple[str, ...] = ()  # database, schema, name; empty for a sub-query
    records: tuple[ColumnReference, ...] = ()  # what its rows have besides columns, being records of an entity
    unnested: bool = False  # its rows are elements of a record's arrays

    @property
    def name(self) -> str:
        return self.alias or (self.path[-1] if self.path else "")

    def is_named(self, parts: Sequence[str]) -> bool:
        """Whether dotted parts are its alias, or its name with as many qualifiers as are given."""
        if self.alias is not None:
            return tuple(parts) == (self.alias,)
        return bool(parts) and len(parts) <= len(self.path) and self.path[-len(parts) :] == tuple(parts)

    def column(self, name: str) -> ScopeColumn | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True)
class Scope:
    """The columns that an expression may name: those of the items of FROM, in their order."""

    tables: tuple[ScopeTable, ...] = ()

    @staticmethod
    def of(relation: RelationShape, alias: str | None) -> Scope:
        columns = tuple(ScopeColumn(each.name, ColumnReference(each.type, each.name)) for each in relation.columns)
        path = tuple(relation.name.split("."))
        return Scope((ScopeTable(columns, alias, path, row_columns(relation.metadata)),))

    def all_columns(self, parts: Sequence[str] | None, position: int | None) -> tuple[ScopeColumn, ...]:
        """What ``*`` stands for, or ``parts.*``."""
        tables = self.tables if parts is None else [table for table in self.tables if table.is_named(parts)]
        if parts is not None and not tables:
            raise SqlError(
                sqlstates.UNDEFINED_TABLE, f'missing FROM-clause entry for table "{parts[-1]}"', position=position
            )
        return tuple(column for table in tables for column in table.columns)

    def row_function(self, name: str, position: int | None) -> Expression:
        """``rowtime()``, ``rowkey()`` or ``rowmetadata()`` of the records that FROM reads."""
        call = f"{name}()"
        tables = [table for table in self.tables if not table.unnested]
        known = tables[0].records if len(tables) == 1 else ()
        found = next((each for each in known if each.name == call), None)
        if found is None or self.has_column(call):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"{call} is only supported where FROM names one stream or changelog",
                hint=f"Select it in a sub-query over the stream: SELECT {call} AS name, ...",
                position=position,
            )
        return found

    def has_column(self, name: str) -> bool:
        return any(table.column(name) is not None for table in self.tables)

    def spelled(self, expression: Expression) -> str | None:
        """``table.column`` of the column that stands for this expression."""
        for table in self.tables:
            for column in table.columns:
                if column.expression == expression:
                    return f"{table.name}.{column.name}"
        return None

    def resolve(self, parts: Sequence[str], position: int | None) -> Expression:
        """``a``, ``t.a``, ``s.t.a`` or ``d.s.t.a``, and fields of structs after any of them."""
        for qualifiers in range(min(len(parts) - 1, 3), -1, -1):
            found = [
                column
                for table in self.tables
                if not qualifiers or table.is_named(parts[:qualifiers])
                if (column := table.column(parts[qualifiers])) is not None
            ]
            if len(found) > 1:
                raise SqlError(
                    sqlstates.AMBIGUOUS_COLUMN,
                    f'column reference "{parts[qualifiers]}" is ambiguous',
                    hint="Write the name of its table before it.",
                    position=position,
                )
            if found:
                node = found[0].expression
                for name in parts[qualifiers + 1 :]:
                    node = field(node, name, position)
                return node
        raise self._missing(parts, position)

    def _missing(self, parts: Sequence[str], position: int | None) -> SqlError:
        if len(parts) == 1:
            return SqlError(
                sqlstates.UNDEFINED_COLUMN,
                f'column "{parts[0]}" does not exist',
                hint=self._perhaps(parts[0]),
                position=position,
            )
        if any(table.is_named(parts[:-1]) or table.is_named(parts[:1]) for table in self.tables):
            return SqlError(
                sqlstates.UNDEFINED_COLUMN,
                f"column {'.'.join(parts)} does not exist",
                hint=self._perhaps(parts[-1]),
                position=position,
            )
        hidden = [table.alias for table in self.tables if table.alias is not None and table.path[-1:] == (parts[-2],)]
        return SqlError(
            sqlstates.UNDEFINED_TABLE,
            f'missing FROM-clause entry for table "{parts[-2]}"',
            hint=f'Perhaps you meant to reference the table alias "{hidden[0]}".' if hidden else None,
            position=position,
        )

    def _perhaps(self, name: str) -> str | None:
        known = [(column.name, table.name) for table in self.tables for column in table.columns]
        names = [column for column, _ in known]
        folded = [column for column in names if column.lower() == name.lower()]
        best = (folded or difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6))[:1]
        if not best:
            return None
        table = next(table for column, table in known if column == best[0])
        return f'Perhaps you meant to reference the column "{table}.{best[0]}".'


def field(node: Expression, name: str, position: int | None) -> Expression:
    """A field of a struct."""
    if node.type.kind is not Kind.STRUCT:
        raise SqlError(
            sqlstates.WRONG_OBJECT_TYPE,
            f"column notation .{name} applied to type {postgres_name(node.type)}, which is not a composite type",
            position=position,
        )
    for candidate, type_ in node.type.fields:
        if candidate == name:
            return FieldAccess(type_, node, name)
    raise SqlError(
        sqlstates.UNDEFINED_COLUMN,
        f'column "{name}" not found in data type {postgres_name(node.type)}',
        position=position,
    )


@dataclass(frozen=True)
class Source:
    """What a SELECT reads: names over a scan, and which records count. ``aggregation`` is that of a sub-query in FROM
    which aggregates: the names may then stand for its aggregates."""

    scope: Scope
    scan: Scan
    where: Expression | None = None
    aggregation: Aggregation | None = None
