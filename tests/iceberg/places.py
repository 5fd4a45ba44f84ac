"""A real catalog in a SQLite file, its tables in a folder, and sinks as the server makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from spark_sinks.base import TableShape
from spark_sinks.iceberg.client import IcebergClient
from spark_sinks.iceberg.options import IcebergOptions
from spark_sinks.iceberg.sink import IcebergSink
from spark_sinks.store_kind import TableTarget
from spark_sinks.table_options import TableOptions

TIMEOUT_S = 10.0


class Lake:
    """One store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.options = IcebergOptions.from_properties(
            {"uris": "sqlite:///catalog.db", "iceberg.warehouse": "lake"}, [folder]
        )
        self.client = IcebergClient("lake", self.options, timeout_s=TIMEOUT_S)

    def catalog(self) -> SqlCatalog:
        """As another program has it."""
        return SqlCatalog(
            "default", uri=f"sqlite:///{self.folder}/catalog.db", warehouse=(self.folder / "lake").as_uri()
        )

    def sink(self, entity: str, shape: TableShape, query_id: str = "q") -> IcebergSink:
        target = TableTarget("lake", self.options, entity, query_id, shape, TableOptions.of({}), {})
        return IcebergSink(target, timeout_s=TIMEOUT_S)

    def rows(self, entity: str) -> list[dict[str, Any]]:
        """Sorted, read by another program."""
        catalog = self.catalog()
        try:
            found: list[dict[str, Any]] = catalog.load_table(entity).scan().to_arrow().to_pylist()
            return sorted(found, key=repr)
        finally:
            catalog.close()


def table_of(shape: TableShape, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=shape.schema)


def keys_of(shape: TableShape, keys: Sequence[Mapping[str, Any]] = ()) -> pa.Table:
    return pa.Table.from_pylist(list(keys), schema=pa.schema([shape.schema.field(name) for name in shape.key]))
