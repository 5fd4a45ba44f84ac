"""The handlers' neighbours in one frozen record: the catalog, the engine, the stores and the compiler, as Protocols.

The server fills it once at its start; tests fill it with their own implementations of the same Protocols.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sqlglot import exp

from catalog.model import Relation, SchemaRegistry, Store
from catalog.store import Catalog
from mvserver import limits
from mvserver.compiler.own_functions import OwnFunctions
from mvserver.compiler.plans import ContinuousPlan
from mvserver.compiler.shape import Resolve
from mvserver.java_functions.jars import JarFolder
from mvserver.routing.entity_turns import EntityTurns
from mvserver.serving.api import PullService
from mvserver.sql.statements.base import Value
from mvserver.streaming.api import StreamingEngine
from spark_sinks.base import StoreClient
from spark_sinks.schema_registry.base import RegistryClient
from spark_sinks.store_kind import StoreKind


class StoreClients(Protocol):
    """The kinds of stores that the server has. Clients belong to it: whoever asks for one does not close it."""

    def kinds(self) -> Sequence[StoreKind[Any]]: ...

    def kind(self, name: str) -> StoreKind[Any]:
        """That of a store's ``type``; 0A000 for one that the server has not."""

    def check_properties(self, kind: str, properties: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
        """The properties of a store without 'type' and 'config_file', as checked text; 22023 for an unknown key or a
        bad value, naming it, 42501 for a place that is not open to stores. No network."""

    def table_entity(self, store: Store, properties: Mapping[str, str], relation: str) -> str:
        """The name of the table that CREATE TABLE means; 22023 where it says too little."""

    def check(self, store: Store) -> None:
        """Reaches it once, by a client of its own: those of a store that is there are in use by others."""

    def client(self, store: Store) -> StoreClient:
        """By ``store.id`` and ``store.updated_at``: a changed store gets a new client."""

    def forget(self, store_id: str) -> None:
        """Closes what was opened for a store that is dropped."""


class RegistryClients(Protocol):
    """Clients of schema registries, which belong to the server."""

    def check_properties(self, type_: str, properties: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
        """As those of a store."""

    def check_written(self, store: Store, sink: Relation) -> None:
        """22023 where the schemas of what queries write to the relation would not be taken; 0A000 for columns that its
        format cannot have. Nothing is registered."""

    def client(self, registry: SchemaRegistry) -> RegistryClient:
        """By ``registry.id`` and ``registry.updated_at``: a changed registry gets a new client."""

    def forget(self, registry_id: str) -> None:
        """Closes what was opened for a registry that is dropped, changed, or was never made."""


class CompileSelect(Protocol):
    def __call__(
        self,
        select: exp.Expression,
        resolve: Resolve,
        *,
        default_starting: str,
        functions: OwnFunctions | None = None,
        written: bool = False,
    ) -> ContinuousPlan:
        """Binds and analyses a continuous query; ``default_starting`` is ``earliest`` or ``latest``, for a source that
        does not say its starting.position, and ``functions`` are the users' own that it may call. Rows that are
        ``written`` are not kept. SqlError with SQLSTATE and position for what is wrong."""


ExplainPlan = Callable[[ContinuousPlan], Sequence[str]]


@dataclass(frozen=True)
class Services:
    catalog: Catalog
    engine: StreamingEngine
    stores: StoreClients
    schema_registries: RegistryClients
    compile_select: CompileSelect
    explain_plan: ExplainPlan
    pulls: PullService
    store_config_dir: Path
    jars: JarFolder
    spark_start_timeout_s: float = 120.0
    function_timeout_s: float = limits.FUNCTION_TIMEOUT_S  # of a call; what a function's properties may say at most
    function_memory_bytes: int = limits.FUNCTION_MEMORY_BYTES
    clock: Callable[[], float] = time.time
    entity_turns: EntityTurns = field(default_factory=EntityTurns)
