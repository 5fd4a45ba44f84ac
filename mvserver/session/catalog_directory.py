"""Who may connect and which query keeps a view, read from the catalog and remembered until it changes."""

from __future__ import annotations

from catalog.store import Catalog


class CatalogDirectory:
    """Implements ``mvserver.session.services.Directory``."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._generation = -1
        self._views: dict[str, tuple[str, str] | None] = {}

    def has_role(self, name: str) -> bool:
        return self._catalog.roles.find(name) is not None

    def may_log_in(self, name: str) -> bool:
        role = self._catalog.roles.find(name)
        return role is not None and role.can_login

    def is_superuser(self, name: str) -> bool:
        role = self._catalog.roles.find(name)
        return role is not None and role.superuser

    def has_database(self, name: str) -> bool:
        return self._catalog.databases.find(name) is not None

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
