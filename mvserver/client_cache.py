"""The open clients of other systems, by the catalog's records: a changed record gets a new client."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Closed(Protocol):
    def close(self) -> None: ...


Client = TypeVar("Client", bound=Closed)


class ClientCache(Generic[Client]):
    """Nothing is made or closed under the lock: both may reach the system."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[str, tuple[float, Client]] = {}

    def get(self, id_: str, updated_at: float, make: Callable[[], Client]) -> Client:
        with self._lock:
            known = self._clients.get(id_)
            if known is not None and known[0] == updated_at:
                return known[1]
        client = make()
        with self._lock:
            old = self._clients.get(id_)
            self._clients[id_] = (updated_at, client)
        if old is not None:
            old[1].close()
        return client

    def forget(self, id_: str) -> None:
        with self._lock:
            known = self._clients.pop(id_, None)
        if known is not None:
            known[1].close()

    def close(self) -> None:
        with self._lock:
            clients = [client for _, client in self._clients.values()]
            self._clients.clear()
        for client in clients:
            client.close()
