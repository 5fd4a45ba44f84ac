"""A small catalog and the DuckDB views behind it, as the lead's rooms would have made them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from catalog.model import Column, Relation, Schema, Store
from catalog.model import Database as CatalogDatabase
from mvserver.front import Result
from mvserver.pgcatalog.snapshot import CatalogSnapshot, Role
from mvserver.serving.api import PlanRequest, PullPlan, PullScope
from mvserver.serving.engine.database import Database
from mvserver.serving.plan.pull import DuckPullService
from mvserver.sql.dialect import parse_pull
from spark_sinks.duckdb.layout import Finishing, ViewLayout, ViewLayouts

VISITS_ID, TYPES_ID, OTHER_ID, STREAM_ID = (str(uuid.UUID(int=n)) for n in range(1, 5))
SCOPE = PullScope("postgres", ("public",), "postgres")


def _relation(identifier: str, oid: int, schema: str, name: str, columns: Sequence[Column], **more: Any) -> Relation:
    return Relation(
        id=identifier, oid=oid, schema_id=schema, name=name, kind=more.pop("kind", "materialized view"),
        columns=tuple(columns), properties=(), definition=f"CREATE MATERIALIZED VIEW {name} AS SELECT 1 AS x FROM src",
        owner="postgres", created_at=0.0, **more,
    )  # fmt: skip


TYPE_COLUMNS = (
    Column("b", "BOOLEAN"), Column("i2", "SMALLINT"), Column("i4", "INTEGER"), Column("i8", "BIGINT", True),
    Column("f4", "FLOAT"), Column("f8", "DOUBLE"), Column("d", "DECIMAL(10, 2)"), Column("t", "VARCHAR"),
    Column("by", "VARBINARY"), Column("dt", "DATE"), Column("tm", "TIME"), Column("ts", "TIMESTAMP"),
    Column("tz", "TIMESTAMP_LTZ"), Column("a", "ARRAY<INTEGER>"), Column("s", 'STRUCT<"x" INTEGER>'),
    Column("m", "MAP<VARCHAR, INTEGER>"),
)  # fmt: skip


def catalog_snapshot() -> CatalogSnapshot:
    visits = (
        Column("url", "VARCHAR"), Column("visits", "BIGINT"), Column("total", "BIGINT"),
        Column("mean", "DECIMAL(38, 6)"),
    )  # fmt: skip
    return CatalogSnapshot(
        generation=1,
        databases=(CatalogDatabase("d1", 16384, "postgres", "postgres"), CatalogDatabase("d2", 16385, "shop", "bob")),
        schemas=(
            Schema("s1", 16386, "d1", "public", "postgres"),
            Schema("s2", 16387, "d2", "public", "postgres"),
            Schema("s3", 16388, "d1", "Odd", "postgres"),
        ),
        relations=(
            _relation(VISITS_ID, 16400, "s1", "visits", visits, key_columns=("url",)),
            _relation(TYPES_ID, 16410, "s1", "all_types", TYPE_COLUMNS),
            _relation(OTHER_ID, 16420, "s2", "orders", (Column("n", "INTEGER"),)),
            _relation(
                STREAM_ID, 16430, "s1", "src", (Column("url", "VARCHAR"), Column("n", "INTEGER")), kind="stream",
                store_id="st", entity="src",
            ),
        ),
        stores=(Store("st", 16440, "kafka1", "KAFKA", (), "postgres", 0.0, 0.0),),
        roles=(Role(10, "postgres", superuser=True), Role(16450, "bob")),
    )  # fmt: skip


class FakeCatalog:
    def __init__(self) -> None:
        self.current = catalog_snapshot()

    def generation(self) -> int:
        return self.current.generation

    def snapshot(self) -> CatalogSnapshot:
        return self.current

    def change(self, **fields: Any) -> None:
        self.current = replace(self.current, generation=self.current.generation + 1, **fields)


class World:
    """A database with three views, a service over it, and one snapshot to ask it."""

    def __init__(self, folder: Path, live: dict[str, Any] | None = None, **service: Any) -> None:
        self.database = Database.open(folder / "views.duckdb", memory_limit="512MB", threads=2)
        self.writer = self.database.cursor()
        self.writer.execute(
            "CREATE TABLE _state.visits (url VARCHAR, visits BIGINT, total BIGINT, mean DECIMAL(38, 6))"
        )
        self.writer.execute(
            "INSERT INTO _state.visits VALUES ('./home', 3, 10, 3.333333), ('./a', 1, 2, 2), (NULL, 2, NULL, NULL)"
        )
        self.writer.execute(f'CREATE VIEW _views."{VISITS_ID}" AS SELECT * FROM _state.visits')
        self.writer.execute(
            f"""CREATE VIEW _views."{TYPES_ID}" AS SELECT true AS b, 1::SMALLINT AS i2, 2::INTEGER AS i4,
            3::BIGINT AS i8, 1.5::FLOAT AS f4, 2.5::DOUBLE AS f8, 1.25::DECIMAL(10, 2) AS d, 'x' AS t, 'ab'::BLOB AS by,
            DATE '2020-01-02' AS dt, TIME '03:04:05' AS tm, TIMESTAMP '2020-01-02 03:04:05' AS ts,
            TIMESTAMPTZ '2020-01-02 03:04:05+00' AS tz, [1, 2] AS a, {{'x': 1}} AS s, MAP {{'k': 1}} AS m"""
        )
        self.writer.execute(f'CREATE VIEW _views."{OTHER_ID}" AS SELECT 7::INTEGER AS n')
        self.catalog = FakeCatalog()
        self.layouts = ViewLayouts()
        self.service = DuckPullService(self.database, self.catalog, live, layouts=self.layouts, **service)
        self.snapshot = self.service.snapshot()

    def close(self) -> None:
        self.snapshot.close()
        self.service.close()
        self.writer.close()
        self.database.close()

    def plan(self, text: str, oids: Sequence[int] = (), scope: PullScope = SCOPE) -> PullPlan:
        return self.service.plan(PlanRequest(parse_pull(text), scope, oids))

    def rows(
        self, text: str, parameters: Sequence[Any] = (), oids: Sequence[int] = (), scope: PullScope = SCOPE
    ) -> list[tuple[Any, ...]]:
        return rows_of(self.snapshot.run(self.plan(text, oids, scope), parameters))

    def value(self, text: str, scope: PullScope = SCOPE) -> Any:
        ((value,),) = self.rows(text, scope=scope)
        return value


def rows_of(result: Result) -> list[tuple[Any, ...]]:
    try:
        return [
            tuple(column[at].as_py() for column in batch.columns)
            for batch in result.batches
            for at in range(batch.num_rows)
        ]
    finally:
        result.close()


# --- a view over state, as the streaming room makes it ---------------------------------------------------------------
KEYED_COLUMNS = (
    Column("site", "BIGINT"), Column("url", "VARCHAR"), Column("visits", "BIGINT"), Column("mean", "DOUBLE"),
    Column("seen", "TIMESTAMP"),
)  # fmt: skip


_STORED = (("k0", "BIGINT"), ("k1", "VARCHAR"), ("n", "BIGINT"), ("m0", "DOUBLE"), ("m1", "TIMESTAMP"))
_FINISHING = Finishing(
    columns=(
        ("site", "CAST(k0 AS BIGINT)"),
        ("url", "CAST(k1 AS VARCHAR)"),
        ("visits", "CAST(a0 AS BIGINT)"),
        ("mean", "CAST(CASE WHEN a0 = 0 THEN NULL ELSE a1 * 2 END AS DOUBLE)"),
        ("seen", "a2"),
    ),
    inner=(("k0", "k0"), ("k1", "k1"), ("a0", "n"), ("a1", "m0"), ("a2", "m1")),
)


def keyed_layout(version: int) -> ViewLayout:
    table = f"{VISITS_ID}_{version}"
    read = "k0, k1, n, m0, m1"
    columns = ", ".join(f"{text} AS {name}" for name, text in _FINISHING.columns)
    return ViewLayout(
        VISITS_ID, table, _STORED, ("k0", "k1"),
        f"SELECT {columns} FROM (SELECT k0, k1, n AS a0, m0 AS a1, m1 AS a2 FROM "
        f'((SELECT {read} FROM _state."{table}") UNION ALL (SELECT {read} FROM _state."{table}_nulls")))',
        _FINISHING, nulls=f"{table}_nulls", reads=frozenset({table, f"{table}_nulls"}),
    )  # fmt: skip


def make_keyed_state(world: World, version: int, rows: int) -> None:
    table = f'_state."{VISITS_ID}_{version}"'
    nulls = f'_state."{VISITS_ID}_{version}_nulls"'
    columns = ", ".join(f"{name} {kind}" for name, kind in _STORED)
    layout = keyed_layout(version)
    for statement in (
        "BEGIN",
        f"DROP VIEW IF EXISTS _views.\"{VISITS_ID}\"",
        f'DROP TABLE IF EXISTS _state."{VISITS_ID}_{version - 1}"',
        f'DROP TABLE IF EXISTS _state."{VISITS_ID}_{version - 1}_nulls"',
        f"CREATE TABLE {table} ({columns}, PRIMARY KEY (k0, k1))",
        f"CREATE TABLE {nulls} ({columns})",
        f"INSERT INTO {table} SELECT i // 5, 'u' || i % 5, i % 7, CASE WHEN i % 3 <> 0 THEN i / 4 END, "
        f"TIMESTAMP '2024-01-01' + INTERVAL 1 HOUR * i FROM range({rows}) r(i)",
        f"INSERT INTO {nulls} VALUES (1, NULL, 9, 1.5, NULL), (NULL, 'u1', 8, NULL, NULL), (NULL, NULL, 7, 0.5, NULL)",
        layout.statement,
        "COMMIT",
    ):  # fmt: skip
        world.writer.execute(statement)
    world.layouts.change({VISITS_ID: layout})


def key_visits(world: World) -> None:
    """The view ``visits`` with two key columns, over 2,000 rows of state."""
    current = world.catalog.current
    visits = replace(current.relations_by_id[VISITS_ID], columns=KEYED_COLUMNS, key_columns=("site", "url"))
    world.writer.execute(f'DROP VIEW _views."{VISITS_ID}"')
    make_keyed_state(world, 1, 2_000)
    world.catalog.change(relations=(visits, *(each for each in current.relations if each.id != VISITS_ID)))
