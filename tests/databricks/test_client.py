"""Tables of a workspace: listed, described, printed, made, compared, dropped; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from mvserver.errors import SqlError
from spark_sinks.base import TableShape
from tests.databricks.places import TIMEOUT_S, Workspace, keys_of, table_of

SHAPE = TableShape(pa.schema([pa.field("k", pa.int32(), False), ("v", pa.string())]), ("k",))
PLACE = "table.data.file.location"


def made_elsewhere(workspace: Workspace, folder: Path, name: str, schema: pa.Schema, **configuration: str) -> None:
    location = folder / "elsewhere" / name
    DeltaTable.create(str(location), schema=Schema.from_arrow(schema), configuration=configuration)
    workspace.unity.add(name, location.as_uri())


def refused(workspace: Workspace, name: str, shape: TableShape, **properties: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        workspace.client.check_table(name, shape, properties)
    return caught.value


def test_a_table_is_made_registered_and_dropped_with_its_files(workspace: Workspace, tmp_path: Path) -> None:
    client = workspace.client
    client.check()
    assert not client.check_table("main.web.t", SHAPE, {})
    client.create_table("main.web.t", SHAPE, {})
    registration = workspace.unity.tables["main.web.t"]
    assert (registration["table_type"], registration["data_source_format"]) == ("EXTERNAL", "DELTA")
    assert registration["storage_location"] == (tmp_path / "lake/main/web/t").as_uri()
    assert [(c["name"], c["type_name"], c["type_text"], c["nullable"]) for c in registration["columns"]] == [
        ("k", "INT", "int", False), ("v", "STRING", "string", True),
    ]  # fmt: skip
    assert json.loads(registration["columns"][0]["type_json"])["type"] == "integer"
    sink = workspace.sink("main.web.t", SHAPE)
    sink.committed_position()
    sink.write(table_of(SHAPE, [{"k": 1, "v": "a"}, {"k": 2, "v": None}]), keys_of(SHAPE), {"seq": 1})
    details = dict(client.describe_entity("main.web.t").details)
    assert (details["type"], details["rows"], details["version"], details["column k"]) == (
        "EXTERNAL", "2", "1", "int NOT NULL",
    )  # fmt: skip
    printed = client.print_entity("main.web.t", from_beginning=True, limit=1, stopped=lambda: False)
    (record,) = printed
    assert record.position == "row:0"
    assert json.loads(record.value or b"") in ({"k": 1, "v": "a"}, {"k": 2, "v": None})
    client.drop_entity("main.web.t", {})
    assert not client.entity_exists("main.web.t")
    assert not [path for path in (tmp_path / "lake").rglob("*") if path.is_file()]


def test_all_tables_are_listed_page_by_page(workspace: Workspace) -> None:
    for at in range(5):
        workspace.unity.add(f"main.web.t{at}", None, type_="MANAGED")
    workspace.unity.add("main.default.x", None, type_="VIEW")
    names = [entity.name for entity in workspace.client.list_entities()]
    assert names == ["main.default.x", *(f"main.web.t{at}" for at in range(5))]


def test_a_managed_table_is_refused_by_name(workspace: Workspace) -> None:
    workspace.unity.add("main.web.t", "s3://databricks/t", type_="MANAGED")
    error = refused(workspace, "main.web.t", SHAPE)
    assert (error.sqlstate, error.message) == (
        "0A000",
        'entity "main.web.t" is a managed table of format DELTA, and cannot be written from outside of Databricks',
    )
    with pytest.raises(SqlError, match="0A000"):
        workspace.sink("main.web.t", SHAPE)
    with pytest.raises(SqlError, match="0A000"):
        workspace.client.drop_entity("main.web.t", {})
    assert dict(workspace.client.describe_entity("main.web.t").details)["type"] == "MANAGED"


def test_a_table_that_is_there_is_compared_column_by_column(workspace: Workspace, tmp_path: Path) -> None:
    made_elsewhere(workspace, tmp_path, "main.web.t", pa.schema([pa.field("k", pa.int64(), False), ("v", pa.string())]))
    assert workspace.client.check_table("main.web.t", SHAPE, {})
    sink = workspace.sink("main.web.t", SHAPE)
    sink.committed_position()
    sink.write(table_of(SHAPE, [{"k": 1, "v": "a"}]), keys_of(SHAPE), {"seq": 1})
    assert workspace.rows("main.web.t") == [{"k": 1, "v": "a"}]
    other = TableShape(pa.schema([("k", pa.string())]))
    assert refused(workspace, "main.web.t", other).message == (
        'column "k" of entity "main.web.t" is of type bigint, but the query\'s is of type string'
    )
    assert refused(workspace, "main.web.t", TableShape(pa.schema([("z", pa.string())]))).sqlstate == "42703"
    null = TableShape(pa.schema([("k", pa.int64()), ("v", pa.string())]))
    assert refused(workspace, "main.web.t", null).message == (
        'column "k" of entity "main.web.t" takes no NULL, but the query\'s may be one'
    )
    missing = TableShape(pa.schema([("v", pa.string())]))
    assert refused(workspace, "main.web.t", missing).sqlstate == "42804"
    workspace.client.drop_entity("main.web.t", {})  # its files are another program's
    assert DeltaTable(str(tmp_path / "elsewhere/main.web.t")).count() == 1


@pytest.mark.parametrize(
    ("configuration", "keyed", "odd"),
    [
        ({"delta.columnMapping.mode": "name"}, False, "writer version 5"),
        ({"delta.enableChangeDataFeed": "true"}, False, "writer version 4"),
        ({"delta.appendOnly": "true"}, True, "appendOnly"),
        ({"delta.appendOnly": "true"}, False, None),
        ({}, True, None),
    ],
)
def test_features_that_are_not_written(
    workspace: Workspace, tmp_path: Path, configuration: dict[str, str], keyed: bool, odd: str | None
) -> None:
    made_elsewhere(workspace, tmp_path, "main.web.t", SHAPE.schema, **configuration)
    shape = SHAPE if keyed else TableShape(SHAPE.schema)
    if odd is None:
        assert workspace.client.check_table("main.web.t", shape, {})
        return
    error = refused(workspace, "main.web.t", shape)
    assert (error.sqlstate, error.detail) == ("0A000", f"They are {odd}.")


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (("t", pa.time64("us")), 'column "t" has type TIME'),
        (("t", pa.list_(pa.struct([("x", pa.time64("us"))]))), 'column "t" has type TIME'),
        (("a b", pa.string()), 'column "a b" has a name'),
        (("K", pa.string()), 'two columns have the name "k"'),
    ],
)
def test_what_delta_does_not_have(workspace: Workspace, field: tuple[str, pa.DataType], words: str) -> None:
    error = refused(workspace, "main.web.t", TableShape(pa.schema([("k", pa.int64()), field])))
    assert error.sqlstate == "0A000"
    assert error.message.startswith(words)


def test_names_and_places(workspace: Workspace, tmp_path: Path) -> None:
    assert refused(workspace, "main.web.../x", SHAPE).sqlstate == "22023"
    assert refused(workspace, "main.web.t", SHAPE, **{PLACE: "/etc/t"}).sqlstate == "42501"
    assert refused(workspace, "main.web.t", SHAPE, **{PLACE: "abfss://c@a/t"}).sqlstate == "0A000"
    workspace.unity.add("main.web.t", "file:///etc")
    assert refused(workspace, "main.web.t", SHAPE).sqlstate == "42501"
    workspace.client.create_table("main.web.u", SHAPE, {PLACE: "own/u"})
    assert workspace.unity.tables["main.web.u"]["storage_location"] == (tmp_path / "own/u").as_uri()


def test_a_registration_that_is_refused_leaves_no_files(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(SqlError) as caught:
        workspace.client.create_table("main.nowhere.t", SHAPE, {})
    assert (caught.value.sqlstate, caught.value.detail) == (
        "22023", "SCHEMA_DOES_NOT_EXIST: Schema 'nowhere' is not there.",
    )  # fmt: skip
    assert not [path for path in (tmp_path / "lake").rglob("*") if path.is_file()]


def test_a_table_that_lies_there_is_only_registered(workspace: Workspace, tmp_path: Path) -> None:
    location = tmp_path / "lake/main/web/t"
    DeltaTable.create(str(location), schema=Schema.from_arrow(SHAPE.schema))
    assert not workspace.client.check_table("main.web.t", SHAPE, {})
    workspace.client.create_table("main.web.t", SHAPE, {})
    assert workspace.table("main.web.t").version() == 0
    other = TableShape(pa.schema([("k", pa.string())]))
    workspace.client.drop_entity("main.web.t", {})
    assert refused(workspace, "main.web.t", other).sqlstate == "42804"


@pytest.mark.parametrize(("status", "sqlstate"), [(500, "08006"), (429, "08006"), (403, "42501"), (302, "08006")])
def test_answers_of_a_workspace_that_fails(workspace: Workspace, status: int, sqlstate: str) -> None:
    workspace.unity.status = status
    with pytest.raises(SqlError) as caught:
        workspace.client.check()
    assert caught.value.sqlstate == sqlstate


def test_a_token_that_is_wrong(workspace: Workspace, tmp_path: Path) -> None:
    from spark_sinks.databricks.unity import UnityCatalog

    with pytest.raises(SqlError) as caught:
        UnityCatalog("bricks", workspace.unity.address, "wrong", timeout_s=TIMEOUT_S).check()
    assert caught.value.sqlstate == "42501"
    assert "wrong" not in str(caught.value)


def test_what_such_a_store_does_not_do(workspace: Workspace) -> None:
    for attempt in (
        lambda: workspace.client.create_entity("main.web.t", {}),
        lambda: workspace.client.write_records([]),
        lambda: workspace.client.position("main.web.t", "earliest"),
    ):
        with pytest.raises(SqlError, match="0A000"):
            attempt()
