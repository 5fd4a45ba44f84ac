"""Tables that the server writes, as Databricks' own client finds and reads them in an emulator of a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from mvserver.errors import SqlError
from spark_sinks.base import TableShape
from tests.databricks.places import Workspace, keys_of, table_of
from tests.databricks.unity_server import UnityServer
from tests.services.minilake import Minilake, minilake

pytestmark = pytest.mark.slow
SHAPE = TableShape(pa.schema([pa.field("k", pa.int32(), False), ("v", pa.string())]), ("k",))


@pytest.fixture(scope="module")
def databricks() -> Iterator[Minilake]:
    with minilake() as emulator:
        assert emulator.sdk("schema", "shop", "web") == "shop.web"
        yield emulator


@pytest.fixture
def workspace(databricks: Minilake, tmp_path: Path) -> Workspace:
    at = UnityServer()  # which is not served: its address alone counts
    at.address = databricks.address
    return Workspace(at, tmp_path)


def test_a_table_is_made_written_read_by_the_real_client_and_dropped(
    databricks: Minilake, workspace: Workspace, tmp_path: Path
) -> None:
    client, name = workspace.client, "shop.web.t"
    client.check()
    assert not client.check_table(name, SHAPE, {})
    client.create_table(name, SHAPE, {})
    found = databricks.sdk("table", name)
    assert (found["table_type"], found["data_source_format"]) == ("EXTERNAL", "DELTA")
    assert found["storage_location"] == (tmp_path / "lake/shop/web/t").as_uri()
    assert [(column["name"], column["type_text"]) for column in found["columns"]] == [("k", "int"), ("v", "string")]
    sink = workspace.sink(name, SHAPE)
    assert sink.committed_position() is None
    rows = [{"k": 1, "v": "a"}, {"k": 2, "v": None}]
    sink.write(table_of(SHAPE, rows), keys_of(SHAPE), {"seq": 1})
    select = f"SELECT k, v FROM {name} ORDER BY k"
    assert databricks.sdk("query", select) == [[1, "a"], [2, None]]
    sink.write(table_of(SHAPE, [{"k": 2, "v": "b"}]), keys_of(SHAPE, [{"k": 1}]), {"seq": 2})
    assert databricks.sdk("query", select) == [[2, "b"]]
    assert workspace.sink(name, SHAPE).committed_position(expected=True) == {"seq": 2}
    assert client.check_table(name, SHAPE, {})  # it is there, and fits
    assert [entity.name for entity in client.list_entities()] == databricks.sdk("tables", "shop", "web") == [name]
    client.drop_entity(name, {})
    assert databricks.sdk("tables", "shop", "web") == []


def test_what_the_service_refuses(workspace: Workspace) -> None:
    with pytest.raises(SqlError) as refused:
        workspace.client.create_table("shop.nowhere.t", SHAPE, {})
    assert (refused.value.sqlstate, "Schema 'shop.nowhere' does not exist" in (refused.value.detail or "")) == (
        "22023", True,
    )  # fmt: skip
    assert workspace.catalog.table("shop.web.absent") is None
