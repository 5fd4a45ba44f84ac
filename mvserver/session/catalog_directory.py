"""Roles that may connect and queries that keep views, read from the catalog and remembered until it changes."""

from __future__ import annotations

from catalog.acl import Privilege
from catalog.model import Role
from catalog.store import Catalog


class CatalogDirectory:
    """Implements ``mvserver.session.services.Directory``."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._generation = -1
        self._views: dict[str, tuple[str, str] | None] = {}

    def generation(self) -> int:
        return self._catalog.generation

    def role(self, name: str) -> Role | None:
        return self._catalog.roles.find(name)

    def role_by_oid(self, oid: int) -> Role | None:
        return self._catalog.roles.by_oid(oid)

    def is_member(self, name: str, role: Role) -> bool:
        return self._catalog.privileges.authority(name).is_member(role)

    def may_connect(self, name: str, database: str) -> bool | None:
        found = self._catalog.databases.find(database)
        return None if found is None else self._catalog.privileges.authority(name).holds(found, Privilege.CONNECT)

    def query_of_view(self, view_id: str) -> tuple[str, str] | None:
        generation = self._catalog.generation
        if generation != self._generation:
            self._views = {}
            self._generation = generation
        known = self._views
        if view_id not in known:
            known[view_id] = self._look_up(view_id)
        return known[view_id]

    def _look_up(self, view_id: str) -> tuple[str, str] | None:
        relation = self._catalog.relations.by_id(view_id)
        queries = self._catalog.queries.of_sink(view_id)
        return (relation.name, queries[0].id) if relation is not None and queries else None
