"""Row policies as rows."""

from __future__ import annotations

import json
from dataclasses import replace

from catalog.connection import CatalogConnection, Row
from catalog.counters import next_oid
from catalog.identifiers import check_identifier
from catalog.model import Policy, Relation
from mvserver import sqlstates
from mvserver.errors import SqlError

_SELECT = "SELECT oid, name, relation_oid, restrictive, command, roles, condition FROM policies"


class Policies:
    def __init__(self, connection: CatalogConnection) -> None:
        self._connection = connection

    def all(self) -> tuple[Policy, ...]:
        return tuple(map(_policy, self._connection.read(f"{_SELECT} ORDER BY relation_oid, name")))

    def of_relation(self, relation: Relation) -> tuple[Policy, ...]:
        rows = self._connection.read(f"{_SELECT} WHERE relation_oid = ? ORDER BY name", (relation.oid,))
        return tuple(map(_policy, rows))

    def of_role(self, role: int) -> tuple[Policy, ...]:
        """Those that name the role."""
        return tuple(policy for policy in self.all() if role in policy.roles)

    def find(self, relation: Relation, name: str) -> Policy | None:
        return next((policy for policy in self.of_relation(relation) if policy.name == name), None)

    def get(self, relation: Relation, name: str) -> Policy:
        found = self.find(relation, name)
        if found is None:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'policy "{name}" for table "{relation.name}" does not exist')
        return found

    def check_new(self, relation: Relation, name: str) -> None:
        check_identifier(name)
        if self.find(relation, name) is not None:
            raise SqlError(sqlstates.DUPLICATE_OBJECT, f'policy "{name}" for table "{relation.name}" already exists')

    def add(self, policy: Policy) -> Policy:
        """``oid`` is replaced by a new one."""
        made = replace(policy, oid=next_oid(self._connection))
        self._connection.write(
            "INSERT INTO policies (oid, name, relation_oid, restrictive, command, roles, condition) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                made.oid,
                made.name,
                made.relation_oid,
                made.restrictive,
                made.command,
                json.dumps(made.roles),
                made.condition,
            ),
        )
        return made

    def update(self, policy: Policy) -> None:
        """Its name, roles and condition."""
        self._connection.write(
            "UPDATE policies SET name = ?, roles = ?, condition = ? WHERE oid = ?",
            (policy.name, json.dumps(policy.roles), policy.condition, policy.oid),
        )

    def delete(self, policy: Policy) -> None:
        self._connection.write("DELETE FROM policies WHERE oid = ?", (policy.oid,))

    def leave(self, role: int) -> None:
        """The role is named by no policy any more; a policy that names no other role goes."""
        for policy in self.of_role(role):
            others = tuple(each for each in policy.roles if each != role)
            if others:
                self.update(replace(policy, roles=others))
            else:
                self.delete(policy)


def _policy(row: Row) -> Policy:
    oid, name, relation_oid, restrictive, command, roles, condition = row
    return Policy(oid, name, relation_oid, condition, tuple(json.loads(roles)), bool(restrictive), command)
