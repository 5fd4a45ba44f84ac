"""Materialized views by name, for front ends whose clients keep answers: when an answer is still the same."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Protocol

from catalog.model import Relation
from catalog.store import Catalog
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.front import ViewReader
from mvserver.serving.api import PullScope
from mvserver.visible_rows import VisibleRows

_VIEWS = ("materialized view", "view")


class Watches(Protocol):
    def watch(
        self, view_id: str, *, since: str | None = None, snapshot: bool = False, visible: VisibleRows | None = None
    ) -> ViewReader: ...


class Policies(Protocol):
    def hides_rows(self, view_id: str, role: str) -> bool: ...

    def visible_rows(self, view_id: str, scope: PullScope) -> VisibleRows | None: ...


class CatalogViews:
    """Implements ``mvserver.front.ServedViews``. ``rows`` is the version of the rows of views by their ids, None while
    one of them is changed."""

    def __init__(
        self,
        catalog: Catalog,
        watches: Watches,
        rows: Callable[[Sequence[str]], Sequence[int] | None],
        policies: Policies,
    ) -> None:
        self._catalog = catalog
        self._policies = policies
        self._watches = watches
        self._rows = rows
        self._life = secrets.token_hex(8)  # the rows' version begins anew with each start

    def is_view(self, database: str, schema: str, name: str) -> bool:
        found = self._find(database, schema, name)
        return found is not None and found.kind in _VIEWS

    def version(self, database: str, schema: str, name: str) -> str | None:
        generation = self._catalog.generation  # first: a change that comes meanwhile makes the version an old one
        found = self._find(database, schema, name)
        if found is None or found.kind != _VIEWS[0]:
            return None
        rows = self._rows([found.id])
        return None if rows is None else f"{self._life}.{generation}.{found.id}.{'.'.join(map(str, rows))}"

    def hides_rows(self, database: str, schema: str, name: str, role: str) -> bool:
        found = self._find(database, schema, name)
        return found is not None and found.kind == _VIEWS[0] and self._policies.hides_rows(found.id, role)

    def generation(self) -> int:
        return self._catalog.generation

    def key(self, database: str, schema: str, name: str) -> Sequence[str]:
        found = self._find(database, schema, name)
        return () if found is None else found.key_columns

    def role_id(self, role: str) -> str | None:
        found = self._catalog.roles.find(role)
        return None if found is None else found.id

    def visible_rows(
        self, database: str, schema: str, name: str, role: str, claims: Sequence[tuple[str, str]]
    ) -> VisibleRows | None:
        found = self._find(database, schema, name)
        if found is None or found.kind != _VIEWS[0]:
            return None
        scope = PullScope(database, (), role, claims=tuple(claims), settings=tuple(claims))
        return self._policies.visible_rows(found.id, scope)

    def watch(
        self,
        database: str,
        schema: str,
        name: str,
        since: str | None,
        *,
        snapshot: bool,
        visible: VisibleRows | None = None,
    ) -> ViewReader:
        found = self._find(database, schema, name)
        if found is None:
            raise SqlError(sqlstates.UNDEFINED_TABLE, f'relation "{schema}.{name}" does not exist')
        if found.kind != _VIEWS[0]:
            raise SqlError(
                sqlstates.WRONG_OBJECT_TYPE,
                f'"{name}" is not a materialized view',
                hint="Only materialized views have changes that can be watched.",
            )
        return self._watches.watch(found.id, since=since, snapshot=snapshot, visible=visible)

    def _find(self, database: str, schema: str, name: str) -> Relation | None:
        return self._catalog.names.find_relation((database, schema, name), database, ())
