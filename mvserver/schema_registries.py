"""The server's schema registries: from a catalog record to its client."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from catalog.model import SchemaRegistry
from mvserver.routing.properties import text_of
from mvserver.sql.statements.base import Value
from spark_sinks.schema_registry.base import RegistryClient
from spark_sinks.schema_registry.client import ConfluentClient
from spark_sinks.schema_registry.options import RegistryOptions


class SchemaRegistryClients:
    """Implements the routing room's ``RegistryClients``. No request is made under the lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._clients: dict[str, tuple[float, RegistryClient]] = {}

    def check_properties(self, type_: str, properties: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
        RegistryOptions.from_properties(type_, properties, self._folder)
        return tuple((key, text_of(value)) for key, value in properties.items())

    def client(self, registry: SchemaRegistry) -> RegistryClient:
        with self._lock:
            known = self._clients.get(registry.id)
            if known is not None and known[0] == registry.updated_at:
                return known[1]
        options = RegistryOptions.from_properties(registry.type, dict(registry.properties), self._folder)
        client = ConfluentClient(registry.name, options)
        with self._lock:
            old = self._clients.get(registry.id)
            self._clients[registry.id] = (registry.updated_at, client)
        if old is not None:
            old[1].close()
        return client

    def forget(self, registry_id: str) -> None:
        with self._lock:
            known = self._clients.pop(registry_id, None)
        if known is not None:
            known[1].close()

    def close(self) -> None:
        with self._lock:
            clients = [client for _, client in self._clients.values()]
            self._clients.clear()
        for client in clients:
            client.close()
