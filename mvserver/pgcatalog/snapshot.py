"""The port through which the system catalog learns of definitions: one frozen record per catalog generation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from catalog.model import Database, Relation, Schema, Store


@dataclass(frozen=True)
class Role:
    oid: int
    name: str
    superuser: bool = False
    can_login: bool = True
    create_database: bool = False
    create_role: bool = False


@dataclass(frozen=True)
class CatalogSnapshot:
    """Everything that pg_catalog shows, at one generation; the generation grows with every committed change."""

    generation: int
    databases: tuple[Database, ...] = ()
    schemas: tuple[Schema, ...] = ()
    relations: tuple[Relation, ...] = ()
    stores: tuple[Store, ...] = ()
    roles: tuple[Role, ...] = ()

    @cached_property
    def databases_by_name(self) -> dict[str, Database]:
        return {database.name: database for database in self.databases}

    @cached_property
    def databases_by_id(self) -> dict[str, Database]:
        return {database.id: database for database in self.databases}

    @cached_property
    def schemas_by_id(self) -> dict[str, Schema]:
        return {schema.id: schema for schema in self.schemas}

    @cached_property
    def schemas_by_name(self) -> dict[tuple[str, str], Schema]:
        """By (database, schema)."""
        return {(self.databases_by_id[schema.database_id].name, schema.name): schema for schema in self.schemas}

    @cached_property
    def relations_by_name(self) -> dict[tuple[str, str, str], Relation]:
        """By (database, schema, relation)."""
        result = {}
        for relation in self.relations:
            schema = self.schemas_by_id[relation.schema_id]
            result[self.databases_by_id[schema.database_id].name, schema.name, relation.name] = relation
        return result

    @cached_property
    def relations_by_id(self) -> dict[str, Relation]:
        return {relation.id: relation for relation in self.relations}

    def role_oid(self, name: str) -> int:
        """0 for a role that is gone, as PostgreSQL shows "unknown (OID=0)"."""
        return next((role.oid for role in self.roles if role.name == name), 0)


class CatalogSource(Protocol):
    """The catalog as pull queries see it. Both calls are cheap and safe from any thread."""

    def generation(self) -> int: ...

    def snapshot(self) -> CatalogSnapshot: ...
