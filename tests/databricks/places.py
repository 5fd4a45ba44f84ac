"""A workspace whose tables lie in a folder, and sinks as the server makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow.fs import SubTreeFileSystem

from spark_sinks.base import TableShape
from spark_sinks.databricks.client import DatabricksClient
from spark_sinks.databricks.delta import Storage
from spark_sinks.databricks.options import DatabricksOptions
from spark_sinks.databricks.sink import DeltaSink
from spark_sinks.databricks.unity import UnityCatalog
from spark_sinks.store_kind import TableTarget
from spark_sinks.table_options import TableOptions
from tests.databricks.unity_server import TOKEN, UnityServer

TIMEOUT_S = 10.0


class Workspace:
    """One store; ``place`` and ``more`` say where its tables lie."""

    def __init__(self, unity: UnityServer, folder: Path, place: str = "lake", **more: str) -> None:
        self.unity = unity
        properties = {"uris": unity.address, "databricks.app_token": TOKEN, "databricks.location": place, **more}
        self.options = DatabricksOptions.from_properties(properties, [folder])
        self.storage = Storage("bricks", self.options, TIMEOUT_S)
        self.catalog = UnityCatalog("bricks", self.options.workspace, self.options.token, timeout_s=TIMEOUT_S)
        self.client = DatabricksClient("bricks", self.catalog, self.storage)

    def sink(self, entity: str, shape: TableShape, query_id: str = "q") -> DeltaSink:
        target = TableTarget("bricks", self.options, entity, query_id, shape, TableOptions.of({}), {})
        return DeltaSink(target, self.catalog, self.storage)

    def table(self, entity: str) -> DeltaTable:
        """As another program opens it."""
        return self.storage.table(self.unity.tables[entity]["storage_location"])

    def rows(self, entity: str) -> list[dict[str, Any]]:
        """Sorted, read by another program."""
        location = self.unity.tables[entity]["storage_location"]
        files = SubTreeFileSystem(*reversed(self.storage.files(location)))
        found: list[dict[str, Any]] = self.table(entity).to_pyarrow_dataset(filesystem=files).to_table().to_pylist()
        return sorted(found, key=repr)


def table_of(shape: TableShape, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=shape.schema)


def keys_of(shape: TableShape, keys: Sequence[Mapping[str, Any]] = ()) -> pa.Table:
    return pa.Table.from_pylist(list(keys), schema=pa.schema([shape.schema.field(name) for name in shape.key]))
