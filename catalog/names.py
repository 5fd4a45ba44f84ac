"""From what a user wrote to the object: relation names resolve by database and search path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from catalog.databases import Databases
from catalog.enums import Enums
from catalog.functions import Functions
from catalog.model import Database, EnumType, Function, Relation, Schema
from catalog.relations import Relations
from catalog.schemas import Schemas
from mvserver import sqlstates
from mvserver.errors import SqlError

T = TypeVar("T")


class Names:
    """Parts are folded already. Errors carry ``position``, the 1-based offset of the name in the statement."""

    def __init__(
        self, databases: Databases, schemas: Schemas, relations: Relations, enums: Enums, functions: Functions
    ) -> None:
        self._databases = databases
        self._schemas = schemas
        self._relations = relations
        self._enums = enums
        self._functions = functions

    def schema(self, parts: Sequence[str], database: str, position: int | None = None) -> tuple[Database, Schema]:
        """``schema`` or ``database.schema``; 3D000, 3F000."""
        _check_parts(parts, 2, position)
        owner = self._database(parts[0] if len(parts) == 2 else database, position)
        found = self._schemas.find(owner.id, parts[-1])
        if found is None:
            raise SqlError(sqlstates.INVALID_SCHEMA_NAME, f'schema "{parts[-1]}" does not exist', position=position)
        return owner, found

    def find_relation(
        self, parts: Sequence[str], database: str, search_path: Sequence[str], position: int | None = None
    ) -> Relation | None:
        """``name``, ``schema.name`` or ``database.schema.name``; None where nothing has that name."""
        return self._find(parts, database, search_path, position, self._relations.find)

    def relation(
        self, parts: Sequence[str], database: str, search_path: Sequence[str], position: int | None = None
    ) -> Relation:
        """As :meth:`find_relation`; 42P01 where there is none, with PostgreSQL's text."""
        found = self.find_relation(parts, database, search_path, position)
        if found is None:
            raise SqlError(sqlstates.UNDEFINED_TABLE, f'relation "{".".join(parts)}" does not exist', position=position)
        return found

    def find_type(
        self, parts: Sequence[str], database: str, search_path: Sequence[str], position: int | None = None
    ) -> EnumType | None:
        """As :meth:`find_relation`, for types that users have made."""
        return self._find(parts, database, search_path, position, self._enums.find)

    def functions(
        self, parts: Sequence[str], database: str, search_path: Sequence[str], position: int | None = None
    ) -> tuple[Function, ...]:
        """Those of a name, of the first schema that has one; none where there is none."""

        def named(schema_id: str, name: str) -> tuple[Function, ...] | None:
            return self._functions.named(schema_id, name) or None

        return self._find(parts, database, search_path, position, named) or ()

    def _find(
        self,
        parts: Sequence[str],
        database: str,
        search_path: Sequence[str],
        position: int | None,
        find: Callable[[str, str], T | None],
    ) -> T | None:
        _check_parts(parts, 3, position)
        owner = self._databases.find(parts[0] if len(parts) == 3 else database)
        if owner is None:
            return None
        for name in (parts[-2],) if len(parts) > 1 else search_path:
            schema = self._schemas.find(owner.id, name)
            found = find(schema.id, parts[-1]) if schema is not None else None
            if found is not None:
                return found
        return None

    def new_relation(
        self, parts: Sequence[str], database: str, schema: str, position: int | None = None
    ) -> tuple[Schema, str]:
        """Where a new relation goes; 3D000, 3F000, not whether the name is free."""
        _check_parts(parts, 3, position)
        place = parts[:-1] if len(parts) > 1 else (schema,)
        return self.schema(place, database, position)[1], parts[-1]

    def full_name(self, relation: Relation) -> str:
        """database.schema.name, unquoted."""
        return ".".join(self.path(relation))

    def path(self, relation: Relation) -> tuple[str, str, str]:
        schema = self._schemas.by_id(relation.schema_id)
        database = self._databases.by_id(schema.database_id) if schema is not None else None
        if schema is None or database is None:  # foreign keys forbid it, except for a relation dropped meanwhile
            raise SqlError(sqlstates.UNDEFINED_TABLE, f'relation "{relation.name}" does not exist')
        return database.name, schema.name, relation.name

    def _database(self, name: str, position: int | None) -> Database:
        found = self._databases.find(name)
        if found is None:
            raise SqlError(sqlstates.INVALID_CATALOG_NAME, f'database "{name}" does not exist', position=position)
        return found


def _check_parts(parts: Sequence[str], most: int, position: int | None) -> None:
    if not 1 <= len(parts) <= most:
        raise SqlError(
            sqlstates.SYNTAX_ERROR,
            f"improper qualified name (too many dotted names): {'.'.join(parts)}",
            position=position,
        )
