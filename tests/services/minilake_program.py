"""Run by the emulator's own Python: one call of Databricks' client, its answer as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(call: str, *arguments: str) -> Any:
    if call == "install":
        return install()
    from databricks.sdk import WorkspaceClient

    address, token, *rest = arguments
    client = WorkspaceClient(host=address, token=token)
    if call == "schema":
        catalog, schema = rest
        client.catalogs.create(catalog)
        return client.schemas.create(schema, catalog).full_name
    if call == "tables":
        return sorted(table.full_name for table in client.tables.list(*rest))
    if call == "table":
        return client.tables.get(*rest).as_dict()
    if call == "query":
        return query(client, *rest)
    raise ValueError(call)


def install() -> None:
    """DuckDB's extension for Delta, from its package."""
    import duckdb
    import duckdb_extension_delta

    folder = Path(duckdb_extension_delta.__file__).parent
    duckdb.sql(f"INSTALL '{next(folder.rglob('delta.duckdb_extension'))}'")


def query(client: Any, sql: str) -> Any:
    """By a warehouse."""
    warehouse = client.warehouses.create(name="w", cluster_size="2X-Small").result()
    done = client.statement_execution.execute_statement(sql, warehouse_id=warehouse.id, wait_timeout="50s")
    if done.result is None:
        raise ValueError(done.status)
    return done.result.data_array or []


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])))
