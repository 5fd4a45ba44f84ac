"""The privileges that a role's new objects begin with (ALTER DEFAULT PRIVILEGES): everywhere, or in a schema."""

from __future__ import annotations

from catalog import acl as acls
from catalog import records
from catalog.acl import Acl, ObjectKind
from catalog.connection import CatalogConnection
from catalog.model import DefaultPrivilege
from catalog.roles import Roles


class DefaultPrivileges:
    def __init__(self, connection: CatalogConnection, roles: Roles) -> None:
        self._connection = connection
        self._roles = roles

    def all(self) -> tuple[DefaultPrivilege, ...]:
        rows = self._connection.read(
            "SELECT rowid, role_oid, schema_id, kind, acl FROM default_privileges ORDER BY rowid"
        )
        return tuple(
            DefaultPrivilege(row[0], row[1], row[2], ObjectKind(row[3]), records.acl(row[4]) or ()) for row in rows
        )

    def find(self, role: int, schema_id: str | None, kind: ObjectKind) -> Acl:
        """That of a schema adds to the one that holds everywhere, which begins with what an object has anyway."""
        for each in self.all():
            if (each.role, each.schema_id, each.kind) == (role, schema_id, kind):
                return each.acl
        return acls.default(kind, role) if schema_id is None else ()

    def put(self, role: int, schema_id: str | None, kind: ObjectKind, acl: Acl) -> None:
        """One that says nothing new is forgotten."""
        self._connection.write(
            "DELETE FROM default_privileges WHERE role_oid = ? AND schema_id IS ? AND kind = ?",
            (role, schema_id, kind.value),
        )
        plain = acls.default(kind, role) if schema_id is None else ()
        if frozenset(acl) != frozenset(plain):
            self._connection.write(
                "INSERT INTO default_privileges VALUES (?, ?, ?, ?)",
                (
                    role,
                    schema_id,
                    kind.value,
                    records.acl_text(tuple(sorted(acl, key=lambda item: (item.grantee, item.grantor)))),
                ),
            )

    def delete_of(self, role: int) -> None:
        self._connection.write("DELETE FROM default_privileges WHERE role_oid = ?", (role,))

    def of_new(self, kind: ObjectKind, owner: str, schema_id: str | None = None) -> Acl | None:
        """The list with which an object begins; None where nothing was said."""
        role = self._roles.get(owner).oid
        everywhere = self.find(role, None, kind)
        here = self.find(role, schema_id, kind) if schema_id is not None else ()
        merged = acls.merged(everywhere, here)
        return None if frozenset(merged) == frozenset(acls.default(kind, role)) else merged
