"""A role's rights: its own, those of the roles that it is a member of, and those of all (PUBLIC)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from catalog import acl
from catalog.acl import PUBLIC, Acl, ObjectKind, Privilege, Privileges
from catalog.model import (
    Database,
    DescriptorSource,
    EnumType,
    Function,
    Membership,
    Relation,
    Schema,
    SchemaRegistry,
    Store,
)

_KINDS: dict[type, ObjectKind] = {
    Database: ObjectKind.DATABASE,
    Schema: ObjectKind.SCHEMA,
    Relation: ObjectKind.RELATION,
    Store: ObjectKind.STORE,
    SchemaRegistry: ObjectKind.SCHEMA_REGISTRY,
    DescriptorSource: ObjectKind.DESCRIPTOR_SOURCE,
    EnumType: ObjectKind.TYPE,
    Function: ObjectKind.FUNCTION,
}


class KnownRole(Protocol):
    @property
    def oid(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def superuser(self) -> bool: ...

    @property
    def bypass_row_security(self) -> bool: ...


class Owned(Protocol):
    """A database, schema, relation, store, schema registry, descriptor source, type or function."""

    @property
    def owner(self) -> str: ...

    @property
    def acl(self) -> Acl | None: ...


def kind_of(thing: Owned) -> ObjectKind:
    return _KINDS[type(thing)]


@dataclass(frozen=True)
class Authority:
    """``oids`` has PUBLIC in it; a role that is not there (any more) has nothing else. Whether it bypasses row security
    is its own attribute, which no membership gives."""

    oid: int
    superuser: bool
    oids: frozenset[int]
    names: frozenset[str]
    bypasses_row_security: bool = False

    @classmethod
    def of(cls, name: str, roles: Iterable[KnownRole], memberships: Iterable[Membership]) -> Authority:
        by_oid = {role.oid: role for role in roles}
        own = next((role for role in by_oid.values() if role.name == name), None)
        if own is None:
            return cls(PUBLIC, superuser=False, oids=frozenset({PUBLIC}), names=frozenset())
        above: dict[int, list[int]] = {}
        for membership in memberships:
            above.setdefault(membership.member, []).append(membership.role)
        found, front = {own.oid}, [own.oid]
        while front:
            for role in above.get(front.pop(), ()):
                if role not in found:
                    found.add(role)
                    front.append(role)
        names = frozenset(by_oid[oid].name for oid in found if oid in by_oid)
        return cls(
            own.oid,
            superuser=own.superuser,
            oids=frozenset({*found, PUBLIC}),
            names=names,
            bypasses_row_security=own.superuser or own.bypass_row_security,
        )

    def owns(self, thing: Owned) -> bool:
        return self.superuser or thing.owner in self.names

    def is_member(self, role: KnownRole) -> bool:
        return self.superuser or role.oid in self.oids

    def holds(self, thing: Owned, privilege: Privilege) -> bool:
        return self.superuser or privilege in self.held(thing)

    def sees(self, thing: Owned) -> bool:
        """Whatever a role may use in any way, it sees; what it may not, is not shown to it."""
        return self.superuser or thing.owner in self.names or bool(self.held(thing))

    def held(self, thing: Owned) -> Privileges:
        kind = kind_of(thing)
        if thing.acl is not None:
            return acl.held(thing.acl, self.oids)
        return acl.ALL[kind] if thing.owner in self.names else acl.OF_PUBLIC[kind]
