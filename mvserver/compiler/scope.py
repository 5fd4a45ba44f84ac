"""Names to columns: one relation, under its alias, with PostgreSQL's errors for what is not there."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.compiler.expressions import ColumnReference, Expression, FieldAccess
from mvserver.compiler.plans import ScanColumn
from mvserver.compiler.shape import RelationShape
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.sql.types import Kind


@dataclass(frozen=True)
class Scope:
    """The columns that an expression may name; ``alias`` hides the relation's own name, as in PostgreSQL."""

    columns: tuple[ScanColumn, ...] = ()
    alias: str | None = None
    path: tuple[str, ...] = ()  # database, schema, name

    @staticmethod
    def of(relation: RelationShape, alias: str | None) -> Scope:
        return Scope(relation.columns, alias, tuple(relation.name.split(".")))

    @property
    def table_name(self) -> str:
        return self.alias or (self.path[-1] if self.path else "")

    def names_table(self, parts: Sequence[str]) -> bool:
        """Whether dotted parts are this relation's alias, or its name with as many qualifiers as are given."""
        if self.alias is not None:
            return tuple(parts) == (self.alias,)
        return bool(parts) and len(parts) <= len(self.path) and self.path[-len(parts) :] == tuple(parts)

    def column(self, name: str) -> ScanColumn | None:
        return next((column for column in self.columns if column.name == name), None)

    def resolve(self, parts: Sequence[str], position: int | None) -> Expression:
        """``a``, ``t.a``, ``s.t.a`` or ``d.s.t.a``, and fields of structs after any of them."""
        for qualifiers in range(min(len(parts) - 1, 3), -1, -1):
            if qualifiers and not self.names_table(parts[:qualifiers]):
                continue
            column = self.column(parts[qualifiers])
            if column is None:
                continue
            node: Expression = ColumnReference(column.type, column.name)
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
        if self.names_table(parts[:-1]) or self.names_table(parts[:1]):
            return SqlError(
                sqlstates.UNDEFINED_COLUMN,
                f"column {'.'.join(parts)} does not exist",
                hint=self._perhaps(parts[-1]),
                position=position,
            )
        hint = None
        if self.alias is not None and parts[-2] == (self.path[-1] if self.path else None):
            hint = f'Perhaps you meant to reference the table alias "{self.alias}".'
        return SqlError(
            sqlstates.UNDEFINED_TABLE,
            f'missing FROM-clause entry for table "{parts[-2]}"',
            hint=hint,
            position=position,
        )

    def _perhaps(self, name: str) -> str | None:
        close = difflib.get_close_matches(name.lower(), [column.name for column in self.columns], n=1, cutoff=0.6)
        folded = [column.name for column in self.columns if column.name.lower() == name.lower()]
        best = (folded or close)[:1]
        return f'Perhaps you meant to reference the column "{self.table_name}.{best[0]}".' if best else None


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
