"""The catalog as the other rooms see it: one facade, a part for each kind of object, one way to change it.

    catalog = Catalog.open(path)
    with catalog.transaction():
        catalog.relations.add(...)
        catalog.queries.add(...)

A statement's changes are wholly there or wholly gone. Listeners and ``generation`` tell whoever keeps something derived
(plans, pg_catalog's tables) that it is old.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from catalog import counters, integrity, migrations
from catalog.api_tokens import ApiTokens
from catalog.comments import Comments
from catalog.connection import CatalogConnection
from catalog.databases import Databases
from catalog.default_privileges import DefaultPrivileges
from catalog.dependencies import Dependencies
from catalog.enums import Enums
from catalog.function_sources import FunctionSources
from catalog.functions import Functions
from catalog.memberships import Memberships
from catalog.names import Names
from catalog.policies import Policies
from catalog.privileges import Privileges
from catalog.queries import Queries
from catalog.relations import Relations
from catalog.roles import Roles
from catalog.schemas import Schemas
from catalog.sealing import KEY_FILE, Sealer
from catalog.settings import CatalogSettings
from catalog.systems import descriptor_sources, schema_registries, stores

Listener = Callable[[int], None]

_log = logging.getLogger(__name__)


class _RollBackError(Exception):
    """Ends a rehearsal: nothing of it stays."""


class Catalog:
    def __init__(self, connection: CatalogConnection, sealer: Sealer) -> None:
        self._connection = connection
        self.roles = Roles(connection)
        self.default_privileges = DefaultPrivileges(connection, self.roles)
        self.schemas = Schemas(connection, self.default_privileges)
        self.api_tokens = ApiTokens(connection)
        self.memberships = Memberships(connection)
        self.databases = Databases(connection, self.schemas, self.roles)
        self.stores = stores(connection, sealer)
        self.schema_registries = schema_registries(connection, sealer)
        self.descriptor_sources = descriptor_sources(connection, sealer)
        self.relations = Relations(connection, self.default_privileges)
        self.policies = Policies(connection)
        self.enums = Enums(connection)
        self.functions = Functions(connection, self.default_privileges)
        self.function_sources = FunctionSources(connection)
        self.queries = Queries(connection)
        self.settings = CatalogSettings(connection)
        self.comments = Comments(connection)
        self.names = Names(self.databases, self.schemas, self.relations, self.enums, self.functions)
        self.dependencies = Dependencies(
            connection,
            self.schemas,
            self.relations,
            self.enums,
            self.queries,
            self.names,
            self.stores,
            self.functions,
        )
        self.privileges = Privileges(
            connection, self.roles, self.memberships, self.databases, self.schemas, self.relations, self.stores,
            self.schema_registries, self.descriptor_sources, self.enums, self.functions,
        )  # fmt: skip
        self._generation = counters.generation(connection)
        self._listeners: list[Listener] = []
        self._listeners_lock = threading.Lock()

    @classmethod
    def open(cls, path: Path, key_file: Path | None = None) -> Catalog:
        """Opens or makes the file, brings its tables to this version; refuses a newer, foreign or damaged one.
        ``key_file`` seals the properties of stores; it lies beside the catalog where it is not given."""
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = CatalogConnection(path, migrations.migrate, integrity.is_whole)
        return cls(connection, Sealer(key_file or path.with_name(KEY_FILE)))

    def seal_all(self) -> None:
        """At a start: what an older server has left in the clear is sealed. F0000 without the right key."""
        with self.transaction():
            self.stores.seal_all()
            self.schema_registries.seal_all()
            self.descriptor_sources.seal_all()

    @property
    def path(self) -> Path:
        return self._connection.path

    @property
    def generation(self) -> int:
        """Goes up with each committed change, over restarts too."""
        return self._generation

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever made in it."""
        return counters.is_unused(self._connection)

    @property
    def in_transaction(self) -> bool:
        """Whether the calling thread has one open."""
        return self._connection.in_transaction

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; inside another one of the same thread, a part of it."""
        raised: list[int] = []

        def finish() -> None:
            raised.append(counters.raise_generation(self._connection))
            integrity.seal(self._connection.write, self._connection.read)

        with self._connection.transaction(finish):
            yield
        if raised:
            self._tell(raised[0])

    @contextmanager
    def rehearsal(self) -> Iterator[None]:
        """A transaction that is always rolled back: to validate statements that build on each other."""
        try:
            with self._connection.transaction(lambda: None):
                yield
                raise _RollBackError
        except _RollBackError:
            return

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Several reads of one committed state. Keep it short: writers wait."""
        with self._connection.snapshot():
            yield

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """``listener(generation)`` runs after each commit, in the committing thread; returns how to end it."""
        with self._listeners_lock:
            self._listeners.append(listener)

        def unsubscribe() -> None:
            with self._listeners_lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return unsubscribe

    def close(self) -> None:
        self._connection.close()

    def _tell(self, generation: int) -> None:
        with self._listeners_lock:
            self._generation = max(self._generation, generation)  # commits may arrive here out of order
            listeners = tuple(self._listeners)
        for listener in listeners:
            try:
                listener(generation)
            except Exception:  # noqa: BLE001 - the change is durable: a listener's fault must not make it look failed
                _log.exception("a listener of the catalog failed at generation %d", generation)
