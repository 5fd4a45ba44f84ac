"""The streaming engine's neighbours, given by the composition of the server, and what its parts look up there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from catalog.model import Query, Relation, Store
from catalog.store import Catalog
from mvserver import limits, sqlstates
from mvserver.compiler.plans import ContinuousPlan
from mvserver.errors import SqlError
from mvserver.streaming.pipeline.pipeline import HEALTH_INTERVAL_S
from mvserver.streaming.queries.start_positions import is_rebuilding, rebuilding
from mvserver.streaming.spark.launch import Launched, launch
from mvserver.streaming.spark.options import SparkOptions
from mvserver.streaming.spark.supervisor import Supervision
from spark_sinks.base import KeptPosition, RefusedRecords, SourceReader, StoreClient, TableSink, TransactionalSink
from spark_sinks.duckdb.ledger.ledger import SubscriberRow
from spark_sinks.duckdb.writer import Writer
from spark_sinks.store_kind import StoreKind


class Stores(Protocol):
    """How the engine reaches stores."""

    def kind(self, name: str) -> StoreKind[Any]: ...

    def client(self, store: Store) -> StoreClient: ...

    def reader(self, store: Store, stream: Relation, plan: ContinuousPlan, work: Path) -> SourceReader: ...

    def held_reader(self, store: Store, entity: str, work: Path) -> SourceReader:
        """To forget what the store keeps for a reader of that folder, of which no query is left."""

    def sink(
        self, store: Store, stream: Relation, query_id: str, kept: KeptPosition, refused: RefusedRecords | None = None
    ) -> Callable[[], TransactionalSink]:
        """How the query's sink is opened, anew at each start. Without ``refused``, a record that cannot be written is
        an error."""

    def plain_sink(
        self, store: Store, stream: Relation, query_id: str, kept: KeptPosition
    ) -> Callable[[], TransactionalSink]:
        """The same for records that are written as they are given."""

    def forget_output(self, store: Store, stream: Relation, query_id: str, kept: KeptPosition) -> Callable[[], None]:
        """What takes away that which a query has left beside its records, once it is dropped."""

    def table_sink(self, store: Store, table: Relation, query_id: str) -> Callable[[Callable[[], bool]], TableSink]:
        """The same for one that writes to a table; what it is given says whether its waits are to end."""


@dataclass(frozen=True)
class EngineServices:
    catalog: Catalog
    compile_query: Callable[[Query], ContinuousPlan]
    stores: Stores
    writer: Writer
    spark: SparkOptions
    supervision: Supervision
    data_directory: Path
    records_per_trigger: int
    reached: Callable[[str], None] = lambda step: None
    health_interval_s: float = HEALTH_INTERVAL_S
    batch_timeout_s: float = limits.BATCH_TIMEOUT_S
    history_retention_s: float = limits.HISTORY_RETENTION_S
    launch: Callable[[SparkOptions], Launched] = launch  # Spark's JVM

    @property
    def work_directory(self) -> Path:
        """Each pipeline, and each query that writes, has a directory of its own there."""
        return self.data_directory / "sources"

    def relation(self, relation_id: str) -> Relation:
        found = self.catalog.relations.by_id(relation_id)
        if found is None:
            raise SqlError(sqlstates.UNDEFINED_TABLE, f"relation {relation_id} does not exist")
        return found

    def stored(self, relation_id: str) -> tuple[Store, Relation]:
        """A stream and its store."""
        stream = self.relation(relation_id)
        store = self.catalog.stores.by_id(stream.store_id or "")
        if store is None:
            raise SqlError(sqlstates.UNDEFINED_OBJECT, f'stream "{stream.name}" has no store')
        return store, stream

    def store_versions(self, query: Query) -> Mapping[str, float]:
        """When the stores of its sources and sink were changed, by id: their properties are in every connection."""
        ids = [self.relation(relation_id).store_id for relation_id in (*query.source_ids, query.sink_id)]
        stores = [self.catalog.stores.by_id(store_id) for store_id in ids if store_id is not None]
        return {store.id: store.updated_at for store in stores if store is not None}

    def ledger_row(self, query_id: str) -> SubscriberRow | None:
        """What the ledger has of a query; None for one that is new, or that keeps no rows."""
        return next((row for row in self.writer.ledger_subscribers() if row.query_id == query_id), None)

    def next_version(self, query: Query) -> Query:
        """Notes in the catalog that its state is to be built anew."""
        self._set_version(query, query.definition_version + 1)
        return self.catalog.queries.get(query.id)

    def same_version(self, query: Query) -> None:
        """Takes that back: what ``query`` was before counts again."""
        self._set_version(query, query.definition_version)

    def begin_rebuild(self, query: Query) -> Query:
        """The next version of a view over a join, whose state goes before the new one is made."""
        start = rebuilding(query.start_position, begun=True)
        self._set_version(query, query.definition_version + 1, start)
        return self.catalog.queries.get(query.id)

    def end_rebuild(self, query: Query) -> Query:
        """Once the state is there: where it is lost again, its sources must have all that it was made of."""
        if not is_rebuilding(query.start_position):
            return query
        self._set_version(query, query.definition_version, rebuilding(query.start_position, begun=False))
        return self.catalog.queries.get(query.id)

    def _set_version(self, query: Query, version: int, start_position: str | None = None) -> None:
        with self.catalog.transaction():
            self.catalog.queries.set_start(query.id, start_position or query.start_position, version)
