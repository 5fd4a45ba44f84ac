"""The schemas by which the records of one entity were written, fetched when a record of theirs is met first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from mvserver.errors import SqlError
from spark_sinks.schema_registry import limits
from spark_sinks.schema_registry.base import KnownSchemas, RegisteredSchema, RegistryClient
from spark_sinks.schema_registry.protobuf import prepared


class SchemaBook:
    """``client`` is asked for at each request, since the registry's properties may change. An id always means the same
    schema; one that is not there may come to be, and is asked for again after a while."""

    def __init__(self, client: Callable[[], RegistryClient], clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._schemas: dict[int, RegisteredSchema] = {}
        self._absent: dict[int, float] = {}  # when the registry said so
        self._wanted: frozenset[int] = frozenset()  # that could not be fetched
        self._failed: tuple[float, SqlError] | None = None
        self._asked: RegistryClient | None = None
        self._version = 1

    def known(self) -> KnownSchemas:
        self._turn_to(self._client())
        with self._lock:
            old = [id_ for id_, at in self._absent.items() if self._clock() - at > limits.ABSENCE_KEPT_S]
            for id_ in old:
                del self._absent[id_]
            self._version += bool(old)
            return KnownSchemas(self._version, tuple(self._schemas.values()), tuple(self._absent))

    def _turn_to(self, client: RegistryClient) -> None:
        with self._lock:
            if client is not self._asked:  # it may be another registry, whose ids mean other schemas
                self._asked = client
                self._schemas, self._absent, self._failed = {}, {}, None
                self._version += 1

    def fetch(self, ids: Iterable[int]) -> None:
        """All of them are known or absent after this; 08006 where the registry does not answer. It is given some time
        before it is asked again, since what evaluates records holds a place that others want."""
        with self._lock:
            wanted = sorted(frozenset(ids) - frozenset(self._schemas))
            failed = self._failed
        if failed is not None and self._clock() - failed[0] < limits.PAUSE_AFTER_FAILURE_S:
            raise failed[1]
        try:
            for id_ in wanted:
                while not self._fetched(id_):
                    pass
        except SqlError as error:
            with self._lock:
                self._failed = (self._clock(), error)
                self._wanted |= frozenset(wanted)
            raise

    def catch_up(self) -> None:
        """Fetches what could not be fetched before: where nobody waits for the answer but the entity's own reading."""
        with self._lock:
            wanted, self._failed = self._wanted, None
        self.fetch(wanted)
        with self._lock:
            self._wanted -= wanted

    def _fetched(self, id_: int) -> bool:
        """False where another registry has taken the place of the one that was asked: its answer says nothing now."""
        client = self._client()
        self._turn_to(client)
        found = client.schema(id_)
        schema = None if found is None else prepared(found)
        with self._lock:
            if client is not self._asked:
                return False
            self._failed = None
            self._version += 1
            if schema is None:
                while len(self._absent) >= limits.ABSENT_IDS_MAX:
                    del self._absent[next(iter(self._absent))]
                self._absent[id_] = self._clock()
            else:
                self._schemas[id_] = schema
            return True
