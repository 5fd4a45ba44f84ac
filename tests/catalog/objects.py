"""Short ways to objects of a catalog, for its tests and the child processes they kill."""

from __future__ import annotations

import uuid

from catalog.model import Column, Query, Relation, Store
from catalog.store import Catalog


def store(name: str = "k", **properties: str) -> Store:
    pairs = tuple(properties.items()) or (("uris", "k:9092"),)
    return Store(str(uuid.uuid4()), 0, name, "KAFKA", pairs, "postgres", 1.5, 1.5)


def schema_id(catalog: Catalog, database: str = "postgres", schema: str = "public") -> str:
    return catalog.schemas.get(catalog.databases.get(database).id, schema).id


def relation(catalog: Catalog, name: str, kind: str = "stream", *, store_id: str | None = None) -> Relation:
    return Relation(
        id=str(uuid.uuid4()),
        oid=0,
        schema_id=schema_id(catalog),
        name=name,
        kind=kind,
        columns=(Column("url", "VARCHAR", True), Column("n", "DECIMAL(38, 0)")),
        properties=(("value.format", "json"),),
        definition=f"CREATE … {name}",
        owner="postgres",
        created_at=2.25,
        store_id=store_id,
        entity=name if store_id is not None else None,
        key_columns=("url",) if kind != "stream" else (),
    )


def query(source: Relation, sink: Relation, kind: str = "materialized_view", state: str = "running") -> Query:
    return Query(
        id=str(uuid.uuid4()),
        kind=kind,
        select_text=f"SELECT * FROM {source.name}",
        search_path=("postgres", "public"),
        source_ids=(source.id,),
        sink_id=sink.id,
        owner="postgres",
        created_at=3.0,
        start_position='{"partitions": {"0": 17}}',
        desired_state=state,
        properties=(("starting.position", "earliest"),),
    )


def add_view(catalog: Catalog, name: str, source: Relation) -> Relation:
    """A view and its query, in one transaction."""
    with catalog.transaction():
        view = catalog.relations.add(relation(catalog, name, "materialized view"))
        catalog.queries.add(query(source, view))
    return view
