"""A database whose catalog equals the one that the captured queries were recorded on: a view and a stream."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from catalog.model import Column, Index, IndexColumn, Relation, Schema, Store
from catalog.model import Database as CatalogDatabase
from mvserver.front import Field
from mvserver.pgcatalog.snapshot import CatalogSnapshot, Role
from mvserver.serving.api import PlanRequest, PullScope
from mvserver.serving.engine.database import Database
from mvserver.serving.plan.pull import DuckPullService
from mvserver.session.settings.settings_rows import settings_table
from mvserver.sql.dialect import parse_pull

VIEW_ID = str(uuid.UUID(int=1))
SCOPE = PullScope("postgres", ("public",), "postgres")

VISITS = Relation(
    id=VIEW_ID, oid=16389, schema_id="s1", name="visits", kind="materialized view",
    columns=(
        Column("url", "VARCHAR"), Column("visits", "BIGINT"), Column("total", "BIGINT"),
        Column("mean", "DECIMAL(38, 6)"),
    ),
    properties=(), owner="postgres", created_at=0.0, key_columns=("url",), row_type_oid=16391,
    indexes=(Index(16392, "visits_key", (IndexColumn("url"),), unique=True, nulls_distinct=False),),
    definition="CREATE MATERIALIZED VIEW visits AS SELECT url, count(*) AS visits FROM src GROUP BY url",
)  # fmt: skip
SOURCE = Relation(
    id=str(uuid.UUID(int=2)), oid=16384, schema_id="s1", name="src", kind="stream",
    columns=(Column("url", "VARCHAR"), Column("ts", "TIMESTAMP"), Column("n", "INTEGER")), properties=(),
    definition="CREATE STREAM src", owner="postgres", created_at=0.0, store_id="st", entity="src",
)  # fmt: skip
SNAPSHOT = CatalogSnapshot(
    generation=1,
    databases=(CatalogDatabase("d1", 5, "postgres", "postgres"),),
    schemas=(Schema("s1", 2200, "d1", "public", "postgres"),),
    relations=(VISITS, SOURCE),
    stores=(Store("st", 16390, "kafka1", "KAFKA", (), "postgres", 0.0, 0.0),),
    roles=(Role(10, "postgres", superuser=True),),
)


class CatalogWorld:
    def __init__(self, database: Database) -> None:
        self.current = SNAPSHOT
        cursor = database.cursor()
        cursor.execute(
            f"CREATE VIEW _views.\"{VIEW_ID}\" AS SELECT './home' AS url, 3::BIGINT AS visits, 10::BIGINT AS total, "
            "3.333333::DECIMAL(38, 6) AS mean"
        )
        cursor.close()
        self.service = DuckPullService(database, self, {"pg_settings": settings_table})
        self._snapshot = self.service.snapshot()

    def generation(self) -> int:
        return self.current.generation

    def snapshot(self) -> CatalogSnapshot:
        return self.current

    def change(self, **fields: Any) -> None:
        self.current = replace(self.current, generation=self.current.generation + 1, **fields)

    def ask(
        self, text: str, parameters: Sequence[str] = (), scope: PullScope = SCOPE
    ) -> tuple[tuple[Field, ...], list[tuple[Any, ...]]]:
        plan = self.service.plan(PlanRequest(parse_pull(text), scope))
        values = [_typed(value, oid) for value, oid in zip(parameters, plan.parameter_oids, strict=False)]
        result = self._snapshot.run(plan, values)
        rows = [
            tuple(column[at].as_py() for column in batch.columns)
            for batch in result.batches
            for at in range(batch.num_rows)
        ]
        return plan.fields, rows

    def rows(self, text: str, *parameters: str, scope: PullScope = SCOPE) -> list[tuple[Any, ...]]:
        return self.ask(text, parameters, scope)[1]

    def close(self) -> None:
        self._snapshot.close()
        self.service.close()


def _typed(value: str, oid: int) -> object:
    """As the wire would decode a text parameter."""
    decoders: dict[int, Callable[[str], object]] = {16: lambda text: text == "t", 20: int, 21: int, 23: int, 26: int}
    return decoders.get(oid, str)(value)
