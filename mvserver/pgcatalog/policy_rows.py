"""The rows of pg_policy and pg_policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.acl import PUBLIC
from catalog.model import Policy, Relation
from mvserver.pgcatalog.snapshot import CatalogSnapshot

Row = Mapping[str, Any]

_COMMANDS = {"ALL": "*", "SELECT": "r"}


def _of_relations(snapshot: CatalogSnapshot) -> Iterator[tuple[Policy, Relation, int]]:
    """With the relation, and the oid of its database."""
    by_oid = {relation.oid: relation for relation in snapshot.relations}
    for policy in snapshot.policies:
        relation = by_oid.get(policy.relation_oid)
        if relation is not None:
            schema = snapshot.schemas_by_id[relation.schema_id]
            yield policy, relation, snapshot.databases_by_id[schema.database_id].oid


def policy(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for each, relation, database in _of_relations(snapshot):
        yield {
            "_db": database, "_o": relation.oid, "oid": each.oid, "polname": each.name, "polrelid": relation.oid,
            "polcmd": _COMMANDS[each.command], "polpermissive": not each.restrictive, "polroles": list(each.roles),
            "polqual": f"({each.condition})",
        }  # fmt: skip


def policies(snapshot: CatalogSnapshot) -> Iterator[Row]:
    for each, relation, database in _of_relations(snapshot):
        roles = ["public" if role == PUBLIC else snapshot.role_names.get(role, str(role)) for role in each.roles]
        yield {
            "_db": database, "_o": relation.oid, "schemaname": snapshot.schemas_by_id[relation.schema_id].name,
            "tablename": relation.name, "policyname": each.name,
            "permissive": "RESTRICTIVE" if each.restrictive else "PERMISSIVE", "roles": roles, "cmd": each.command,
            "qual": f"({each.condition})",
        }  # fmt: skip
