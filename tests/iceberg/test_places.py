"""Catalogs in PostgreSQL, and tables in S3 (moto): each with real clients, and read by pyiceberg as another program."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer
from pyiceberg.catalog.sql import SqlCatalog

from mvserver.errors import SqlError
from spark_sinks.base import TableShape
from spark_sinks.iceberg.client import IcebergClient
from spark_sinks.iceberg.options import IcebergOptions
from spark_sinks.iceberg.sink import IcebergSink
from spark_sinks.store_kind import TableTarget
from spark_sinks.table_options import TableOptions
from tests.iceberg.places import TIMEOUT_S, keys_of, table_of
from tests.services.postgres import LogicalPostgres

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

SHAPE = TableShape(pa.schema([pa.field("k", pa.int64(), False), ("v", pa.string())]), ("k",))
KEY, SECRET, REGION = "a", "b", "us-east-1"


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@dataclass
class Place:
    """A store, and the client's properties for another program."""

    options: IcebergOptions
    uri: str
    warehouse: str
    s3: str

    def client(self) -> IcebergClient:
        return IcebergClient("lake", self.options, timeout_s=TIMEOUT_S)

    def sink(self) -> IcebergSink:
        target = TableTarget("lake", self.options, "web.t", "q", SHAPE, TableOptions.of({}), {})
        return IcebergSink(target, timeout_s=TIMEOUT_S)

    def bucket(self) -> Any:
        return boto3.client(
            "s3", endpoint_url=self.s3, region_name=REGION, aws_access_key_id=KEY, aws_secret_access_key=SECRET
        )

    def rows(self) -> list[dict[str, Any]]:
        catalog = SqlCatalog(
            "default", uri=self.uri, warehouse=self.warehouse,
            **{"s3.endpoint": self.s3, "s3.access-key-id": KEY, "s3.secret-access-key": SECRET, "s3.region": REGION},
        )  # fmt: skip
        try:
            found: list[dict[str, Any]] = catalog.load_table("web.t").scan().to_arrow().to_pylist()
            return sorted(found, key=repr)
        finally:
            catalog.close()


@pytest.fixture(params=["SQLite, S3", "PostgreSQL, S3", "PostgreSQL, folder"])
def place(request: pytest.FixtureRequest, s3: str, tmp_path: Path, logical_postgres: LogicalPostgres) -> Place:
    database, warehouse = request.param.split(", ")
    given, folder = {"uris": "sqlite:///catalog.db"}, (tmp_path / "lake").as_uri()
    uri = f"sqlite:///{tmp_path}/catalog.db"
    if database == "PostgreSQL":
        name = f"c{uuid.uuid4().hex[:12]}"
        with logical_postgres.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        given = {"uris": f"postgresql://127.0.0.1:{logical_postgres.port}/{name}", "iceberg.username": "postgres"}
        uri = f"postgresql+psycopg://postgres@127.0.0.1:{logical_postgres.port}/{name}"
    if warehouse == "S3":
        folder = f"s3://lake-{uuid.uuid4().hex[:12]}/tables"
        given |= {
            "s3.endpoint": s3, "s3.access_key_id": KEY, "s3.secret_access_key": SECRET, "access.region": REGION,
        }  # fmt: skip
    given["iceberg.warehouse"] = "lake" if warehouse == "folder" else folder
    made = Place(IcebergOptions.from_properties(given, [tmp_path]), uri, folder, s3)
    if warehouse == "S3":
        made.bucket().create_bucket(Bucket=folder.split("/")[2])
    return made


def test_a_table_is_made_written_described_printed_and_dropped(place: Place) -> None:
    client = place.client()
    client.check()
    assert not client.check_table("web.t", SHAPE, {})
    client.create_table("web.t", SHAPE, {})
    with pytest.raises(SqlError, match="42710"):
        client.create_table("web.t", SHAPE, {})
    assert client.check_table("web.t", SHAPE, {})
    assert [entity.name for entity in client.list_entities()] == ["web.t"]
    sink = place.sink()
    assert sink.committed_position() is None
    sink.write(table_of(SHAPE, [{"k": k, "v": "a"} for k in range(3)]), keys_of(SHAPE), {"seq": 1})
    sink.write(table_of(SHAPE, [{"k": 1, "v": "b"}]), keys_of(SHAPE, [{"k": 0}]), {"seq": 2})
    sink.close()
    assert place.sink().committed_position() == {"seq": 2}
    client.insert_record("web.t", '{"k": 7, "v": "by hand"}', None, {})
    wanted = [{"k": 1, "v": "b"}, {"k": 2, "v": "a"}, {"k": 7, "v": "by hand"}]
    assert place.rows() == wanted
    details = dict(client.describe_entity("web.t").details)
    assert (details["rows"], details["key"]) == ("3", "k")
    assert details["location"].startswith(place.warehouse)
    printed = client.print_entity("web.t", from_beginning=True, limit=10, stopped=lambda: False)
    assert len([record.value for record in printed]) == 3
    client.drop_entity("web.t", {})
    assert client.list_entities() == []
    if place.warehouse.startswith("s3"):
        left = place.bucket().list_objects_v2(Bucket=place.warehouse.split("/")[2], Prefix="tables/web")
        assert [item["Key"] for item in left.get("Contents", ()) if item["Key"].endswith(".parquet")] == []


def test_a_sink_that_was_left_behind_writes_nothing(place: Place) -> None:
    place.client().create_table("web.t", SHAPE, {})
    old, new = place.sink(), place.sink()
    assert old.committed_position() is None
    assert new.committed_position() is None
    new.write(table_of(SHAPE, [{"k": 1, "v": "new"}]), keys_of(SHAPE), {"seq": 1})
    with pytest.raises(SqlError, match="40001"):
        old.write(table_of(SHAPE, [{"k": 1, "v": "old"}]), keys_of(SHAPE), {"seq": 1})
    assert place.rows() == [{"k": 1, "v": "new"}]


def test_who_is_not_known_to_the_database_is_told_so(logical_postgres: LogicalPostgres, tmp_path: Path) -> None:
    given = {
        "uris": f"postgresql://127.0.0.1:{logical_postgres.port}/postgres", "iceberg.warehouse": "lake",
        "iceberg.username": "nobody_here", "iceberg.password": "hidden",
    }  # fmt: skip
    client = IcebergClient("lake", IcebergOptions.from_properties(given, [tmp_path]), timeout_s=TIMEOUT_S)
    with pytest.raises(SqlError) as caught:
        client.check()
    assert (caught.value.sqlstate, caught.value.message) == ("42501", 'store "lake" refuses the credentials')
    assert "nobody_here" in (caught.value.detail or "")
    assert "hidden" not in str(caught.value)


def test_a_bucket_that_is_not_there(s3: str, tmp_path: Path) -> None:
    given = {
        "uris": "sqlite:///catalog.db", "iceberg.warehouse": "s3://nowhere-at-all/x", "s3.endpoint": s3,
        "s3.access_key_id": KEY, "s3.secret_access_key": SECRET, "access.region": REGION,
    }  # fmt: skip
    client = IcebergClient("lake", IcebergOptions.from_properties(given, [tmp_path]), timeout_s=TIMEOUT_S)
    with pytest.raises(SqlError) as caught:
        client.create_table("web.t", SHAPE, {})
    assert caught.value.sqlstate == "58030"
    assert client.list_entities() == []
