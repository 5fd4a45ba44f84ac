"""The port through which the system catalog learns of definitions: one frozen record per catalog generation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from catalog import row_security
from catalog.acl import Privilege
from catalog.authority import Authority
from catalog.model import (
    Comment,
    Database,
    DefaultPrivilege,
    EnumType,
    Function,
    Membership,
    Policy,
    Relation,
    Schema,
    SchemaRegistry,
    Store,
)
from catalog.store import Catalog
from mvserver.pgcatalog.visibility import Viewer

_ROW_TYPE_OID, _RULE_OID = 0x4000_0000, 0x8000_0000


def row_type_oid(relation: Relation) -> int:
    return relation.row_type_oid or _ROW_TYPE_OID | relation.oid


def rule_oid(relation: Relation) -> int:
    """Of the rule by which a view is read."""
    return _RULE_OID | relation.oid


def oids_of(relation: Relation) -> tuple[int, ...]:
    """Its own, and of what belongs to it."""
    return relation.oid, row_type_oid(relation), *(index.oid for index in relation.indexes)


@dataclass(frozen=True)
class Role:
    oid: int
    name: str
    superuser: bool = False
    can_login: bool = True
    create_database: bool = False
    connection_limit: int = -1
    valid_until: float | None = None
    settings: tuple[tuple[str, str], ...] = ()
    bypass_row_security: bool = False


@dataclass(frozen=True)
class CatalogSnapshot:
    """Everything that pg_catalog shows, at one generation; the generation grows with every committed change."""

    generation: int
    databases: tuple[Database, ...] = ()
    schemas: tuple[Schema, ...] = ()
    relations: tuple[Relation, ...] = ()
    stores: tuple[Store, ...] = ()
    schema_registries: tuple[SchemaRegistry, ...] = ()
    roles: tuple[Role, ...] = ()
    memberships: tuple[Membership, ...] = ()
    default_privileges: tuple[DefaultPrivilege, ...] = ()
    comments: tuple[Comment, ...] = ()
    enums: tuple[EnumType, ...] = ()
    policies: tuple[Policy, ...] = ()
    functions: tuple[Function, ...] = ()

    @classmethod
    def of(cls, catalog: Catalog) -> CatalogSnapshot:
        with catalog.snapshot():
            return cls(
                generation=catalog.generation,
                databases=catalog.databases.all(),
                schemas=catalog.schemas.all(),
                relations=catalog.relations.all(),
                stores=catalog.stores.all(),
                schema_registries=catalog.schema_registries.all(),
                roles=tuple(
                    Role(
                        r.oid, r.name, r.superuser, r.can_login, r.create_database, r.connection_limit, r.valid_until,
                        r.settings, r.bypass_row_security,
                    )
                    for r in catalog.roles.all()
                ),
                memberships=catalog.memberships.all(),
                default_privileges=catalog.default_privileges.all(),
                comments=catalog.comments.all(),
                enums=catalog.enums.all(),
                policies=catalog.policies.all(),
                functions=catalog.functions.all(),
            )  # fmt: skip

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
    def index_oids(self) -> dict[tuple[str, str, str], int]:
        """By (database, schema, index)."""
        return {
            (database, schema, index.name): index.oid
            for (database, schema, _), relation in self.relations_by_name.items()
            for index in relation.indexes
        }

    @cached_property
    def relations_by_id(self) -> dict[str, Relation]:
        return {relation.id: relation for relation in self.relations}

    @cached_property
    def enums_by_name(self) -> dict[tuple[str, str, str], EnumType]:
        """By (database, schema, type)."""
        result = {}
        for enum in self.enums:
            schema = self.schemas_by_id[enum.schema_id]
            result[self.databases_by_id[schema.database_id].name, schema.name, enum.name] = enum
        return result

    @cached_property
    def role_names(self) -> dict[int, str]:
        return {role.oid: role.name for role in self.roles}

    @cached_property
    def _authorities(self) -> dict[str, Authority]:
        return {}

    @cached_property
    def _viewers(self) -> dict[str, Viewer]:
        return {}

    def authority(self, role: str) -> Authority:
        known = self._authorities.get(role)
        if known is None:
            known = self._authorities[role] = Authority.of(role, self.roles, self.memberships)
        return known

    def sees_relation(self, role: str, relation: Relation) -> bool:
        """Not what is in a schema that the role may not use, whatever it may of the relation itself."""
        own = self.authority(role)
        return own.superuser or (
            own.sees(relation) and own.holds(self.schemas_by_id[relation.schema_id], Privilege.USAGE)
        )

    def sees_type(self, role: str, enum: EnumType) -> bool:
        own = self.authority(role)
        return own.superuser or (own.sees(enum) and own.holds(self.schemas_by_id[enum.schema_id], Privilege.USAGE))

    def sees_function(self, role: str, function: Function) -> bool:
        own = self.authority(role)
        usable = own.holds(self.schemas_by_id[function.schema_id], Privilege.USAGE)
        return own.superuser or (own.sees(function) and usable)

    @cached_property
    def function_names(self) -> frozenset[str]:
        return frozenset(each.name for each in self.functions)

    def viewer(self, role: str) -> Viewer | None:
        """None for a role that sees everything."""
        own = self.authority(role)
        if own.superuser:
            return None
        known = self._viewers.get(role)
        if known is None:
            seen = [relation for relation in self.relations if self.sees_relation(role, relation)]
            secured = frozenset(relation.oid for relation in seen if row_security.concerns(relation, own))
            things: tuple[Database | Schema | Store | SchemaRegistry, ...]
            things = (*self.databases, *self.schemas, *self.stores, *self.schema_registries)
            others = [thing.oid for thing in things if own.sees(thing)]
            others += [oid for enum in self.enums if self.sees_type(role, enum) for oid in (enum.oid, enum.array_oid)]
            others += [each.oid for each in self.functions if self.sees_function(role, each)]
            known = self._viewers[role] = Viewer(
                seen=frozenset((*others, *(relation.oid for relation in seen))),
                known=frozenset((*others, *(oid for relation in seen for oid in oids_of(relation)))),
                read=frozenset(
                    relation.oid
                    for relation in seen
                    if own.holds(relation, Privilege.SELECT) and relation.oid not in secured
                ),
                secured=secured,
                roles=own.names,
            )
        return known

    def role_oid(self, name: str) -> int:
        """0 for a role that is gone, as PostgreSQL shows "unknown (OID=0)"."""
        return next((role.oid for role in self.roles if role.name == name), 0)


class CatalogSource(Protocol):
    """The catalog as pull queries see it. Both calls are cheap and safe from any thread."""

    def generation(self) -> int: ...

    def snapshot(self) -> CatalogSnapshot: ...
