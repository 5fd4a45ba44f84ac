"""Lists of privileges and owners of objects, as they are kept: one place for all kinds of objects."""

from __future__ import annotations

from dataclasses import dataclass

from catalog import acl as acls
from catalog import records
from catalog.acl import Acl, ObjectKind
from catalog.authority import Authority, Owned, kind_of
from catalog.connection import CatalogConnection
from catalog.databases import Databases
from catalog.enums import Enums
from catalog.functions import Functions
from catalog.memberships import Memberships
from catalog.model import Database, DescriptorSource, EnumType, Function, Relation, Role, Schema, SchemaRegistry, Store
from catalog.relations import Relations
from catalog.roles import Roles
from catalog.schemas import Schemas
from catalog.systems import Systems

Thing = Database | Schema | Relation | Store | SchemaRegistry | DescriptorSource | EnumType | Function

_TABLES = {
    ObjectKind.DATABASE: "databases",
    ObjectKind.SCHEMA: "schemas",
    ObjectKind.RELATION: "relations",
    ObjectKind.STORE: "stores",
    ObjectKind.SCHEMA_REGISTRY: "schema_registries",
    ObjectKind.DESCRIPTOR_SOURCE: "descriptor_sources",
    ObjectKind.TYPE: "enum_types",
    ObjectKind.FUNCTION: "functions",
}


@dataclass(frozen=True)
class Privileges:
    connection: CatalogConnection
    roles: Roles
    memberships: Memberships
    databases: Databases
    schemas: Schemas
    relations: Relations
    stores: Systems[Store]
    schema_registries: Systems[SchemaRegistry]
    descriptor_sources: Systems[DescriptorSource]
    enums: Enums
    functions: Functions

    def authority(self, role: str) -> Authority:
        """What the role may, by what is in force now."""
        with self.connection.snapshot():
            return Authority.of(role, self.roles.all(), self.memberships.all())

    def things(self) -> tuple[Thing, ...]:
        """Everything that has an owner and a list, in the order in which it was made."""
        with self.connection.snapshot():
            found: list[Thing] = [*self.databases.all(), *self.schemas.all(), *self.stores.all(), *self.relations.all()]
            found += [*self.schema_registries.all(), *self.descriptor_sources.all(), *self.enums.all()]
            found += self.functions.all()
        return tuple(sorted(found, key=lambda thing: thing.oid))

    def acl(self, thing: Owned) -> Acl:
        """The list in force, also where it was never written down."""
        if thing.acl is not None:
            return thing.acl
        return acls.default(kind_of(thing), self.roles.get(thing.owner).oid)

    def set_acl(self, thing: Thing, acl: Acl | None) -> None:
        self.connection.write(
            f"UPDATE {_TABLES[kind_of(thing)]} SET acl = ? WHERE id = ?", (records.acl_text(acl), thing.id)
        )

    def set_owner(self, thing: Thing, owner: Role) -> None:
        """What the old owner had by owning, the new one has; a view's query goes along."""
        old = self.roles.get(thing.owner).oid
        self.set_acl(thing, acls.with_owner(thing.acl, old, owner.oid))
        self.connection.write(f"UPDATE {_TABLES[kind_of(thing)]} SET owner = ? WHERE id = ?", (owner.name, thing.id))
        if isinstance(thing, Relation) and thing.kind == "materialized view":
            self.connection.write("UPDATE queries SET owner = ? WHERE sink_id = ?", (owner.name, thing.id))

    def set_query_owner(self, query_id: str, owner: Role) -> None:
        self.connection.write("UPDATE queries SET owner = ? WHERE id = ?", (owner.name, query_id))

    def given_to(self, role: Role) -> tuple[Thing, ...]:
        """The objects of others in whose lists the role stands."""
        owners = {each.name: each.oid for each in self.roles.all()}
        return tuple(t for t in self.things() if role.oid in acls.roles_in(t.acl, owners[t.owner]))
