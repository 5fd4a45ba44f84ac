"""The memberships of roles in roles, as rows."""

from __future__ import annotations

from catalog.connection import CatalogConnection
from catalog.model import Membership


class Memberships:
    def __init__(self, connection: CatalogConnection) -> None:
        self._connection = connection

    def all(self) -> tuple[Membership, ...]:
        rows = self._connection.read(
            "SELECT role_oid, member_oid, grantor_oid, admin FROM role_members ORDER BY role_oid, member_oid"
        )
        return tuple(Membership(row[0], row[1], row[2], bool(row[3])) for row in rows)

    def find(self, role: int, member: int) -> Membership | None:
        return next((each for each in self.all() if (each.role, each.member) == (role, member)), None)

    def put(self, membership: Membership) -> None:
        self._connection.write(
            "INSERT INTO role_members VALUES (?, ?, ?, ?) ON CONFLICT (role_oid, member_oid) "
            "DO UPDATE SET admin = excluded.admin, grantor_oid = excluded.grantor_oid",
            (membership.role, membership.member, membership.grantor, membership.admin),
        )

    def delete(self, role: int, member: int) -> None:
        self._connection.write("DELETE FROM role_members WHERE role_oid = ? AND member_oid = ?", (role, member))

    def delete_of(self, role: int) -> None:
        """A role that goes takes its memberships along, in both directions, as in PostgreSQL."""
        self._connection.write("DELETE FROM role_members WHERE role_oid = ? OR member_oid = ?", (role, role))
