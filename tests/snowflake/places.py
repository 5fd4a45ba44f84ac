"""An account with one database for a test, and sinks as the server makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from spark_sinks.base import TableShape
from spark_sinks.snowflake.client import SnowflakeClient
from spark_sinks.snowflake.options import SnowflakeOptions
from spark_sinks.snowflake.sink import SnowflakeSink
from spark_sinks.store_kind import TableTarget
from spark_sinks.table_options import TableOptions
from tests.services.snowflake import SnowflakeEmulator

TIMEOUT_S = 5.0


class Account:
    """One store; ``port`` is that of something between it and the emulator."""

    def __init__(self, emulator: SnowflakeEmulator, database: str, port: int | None = None, **more: str) -> None:
        self.emulator = emulator
        self.database = database
        properties = {**emulator.properties(port), "snowflake.db.name": database, **more}
        self.options = SnowflakeOptions.from_properties(properties, [])
        self.client = SnowflakeClient("snow", self.options, timeout_s=TIMEOUT_S)

    def name(self, table: str) -> str:
        return str(self.options.table_name({}, table))

    def sink(self, entity: str, shape: TableShape, query_id: str = "q", **table: str) -> SnowflakeSink:
        options = TableOptions.of(table)
        target = TableTarget("snow", self.options, entity, query_id, shape, options, {})
        return SnowflakeSink(target, timeout_s=TIMEOUT_S)

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """By another program; ``{db}`` is the database."""
        return self.emulator.query(sql.replace("{db}", self.database))

    def rows(self, entity: str, columns: str) -> list[tuple[Any, ...]]:
        """Sorted, read by another program."""
        return sorted(self.run(f"SELECT {columns} FROM {entity}"), key=repr)


def table_of(shape: TableShape, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=shape.schema)


def keys_of(shape: TableShape, keys: Sequence[Mapping[str, Any]] = ()) -> pa.Table:
    return pa.Table.from_pylist(list(keys), schema=pa.schema([shape.schema.field(name) for name in shape.key]))
