"""Tables in S3, or what stands for it here: commits need its conditional writes.

The service runs in this process, so that a call which keeps all threads waiting for an answer gets none.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer

from mvserver.errors import SqlError
from spark_sinks.base import TableShape
from spark_sinks.databricks import conditional_puts
from spark_sinks.databricks.delta import Storage
from spark_sinks.table_options import TableOptions
from spark_sinks.table_writes import RetriedTable
from tests.databricks.places import TIMEOUT_S, Workspace, keys_of, table_of
from tests.databricks.unity_server import serving

SHAPE = TableShape(pa.schema([pa.field("k", pa.int64(), False), ("v", pa.string())]), ("k",))
PATIENT = TableOptions.of({"retry.backoff.millis": "10", "retry.attempts": "10"})


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def in_s3(s3: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    more = {
        "aws.access_key_id": "a", "aws.secret_access_key": "b", "s3.endpoint": s3,
        "databricks.cloud.region": "us-east-1",
    }  # fmt: skip
    bucket = f"lake-{abs(hash(request.node.name)) % 10**9}"
    with serving() as unity:
        workspace = Workspace(unity, tmp_path, f"s3://{bucket}/tables", **more)
        conditional_puts.client_of(workspace.options.s3, TIMEOUT_S).create_bucket(Bucket=bucket)
        yield workspace


def test_a_table_in_s3_is_made_written_and_dropped(in_s3: Workspace) -> None:
    in_s3.client.check()
    in_s3.client.create_table("main.web.t", SHAPE, {})
    assert in_s3.unity.tables["main.web.t"]["storage_location"].endswith("/tables/main/web/t")
    sink = in_s3.sink("main.web.t", SHAPE)
    sink.committed_position()
    sink.write(table_of(SHAPE, [{"k": k, "v": "a"} for k in range(3)]), keys_of(SHAPE), {"seq": 1})
    sink.write(table_of(SHAPE, [{"k": 1, "v": "b"}]), keys_of(SHAPE, [{"k": 0}]), {"seq": 2})
    assert in_s3.rows("main.web.t") == [{"k": 1, "v": "b"}, {"k": 2, "v": "a"}]
    assert in_s3.sink("main.web.t", SHAPE).committed_position() == {"seq": 2}
    location = in_s3.unity.tables["main.web.t"]["storage_location"]
    assert dict(in_s3.client.describe_entity("main.web.t").details)["rows"] == "2"
    (printed,) = in_s3.client.print_entity("main.web.t", from_beginning=True, limit=1, stopped=lambda: False)
    assert printed.position == "row:0"
    in_s3.client.drop_entity("main.web.t", {})
    assert not in_s3.storage.is_table(location)


@pytest.mark.slow
def test_writers_beside_each_other_lose_nothing(in_s3: Workspace) -> None:
    """Four queries over one table, each with five commits."""
    shape = TableShape(SHAPE.schema)
    in_s3.client.create_table("main.web.t", shape, {})
    failed: list[BaseException] = []

    def write(query: int) -> None:
        try:
            sink = RetriedTable(lambda: in_s3.sink("main.web.t", shape, f"q{query}"), PATIENT, lambda: False)
            sink.committed_position()
            for seq in range(5):
                rows = table_of(shape, [{"k": query * 100 + seq, "v": "x"}])
                while True:
                    try:
                        sink.write(rows, keys_of(shape), {"seq": seq})
                        break
                    except SqlError as error:  # the server's query does so, too
                        if error.sqlstate != "40001":
                            raise
                        sink = RetriedTable(
                            lambda: in_s3.sink("main.web.t", shape, f"q{query}"), PATIENT, lambda: False
                        )
                        if sink.committed_position() == {"seq": seq}:
                            break
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failed.append(error)

    threads = [threading.Thread(target=write, args=(query,)) for query in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(row["k"] for row in in_s3.rows("main.web.t")) == [
        query * 100 + seq for query in range(4) for seq in range(5)
    ]


def test_a_bucket_that_is_not_there(in_s3: Workspace) -> None:
    with pytest.raises(SqlError) as caught:
        in_s3.client.create_table("main.web.t", SHAPE, {"table.data.file.location": "s3://nowhere-at-all/t"})
    assert caught.value.sqlstate == "58030"


def test_a_service_that_is_away_is_named_soon(in_s3: Workspace) -> None:
    """And with its cause."""
    away = replace(in_s3.options, s3=replace(in_s3.options.s3, endpoint="http://127.0.0.1:9"))
    began = time.monotonic()
    with pytest.raises(SqlError) as caught:
        Storage("bricks", away, 1.0).table("s3://bucket/t")
    assert caught.value.sqlstate == "58030"
    assert "127.0.0.1:9" in (caught.value.detail or "")
    assert "\x1b" not in (caught.value.detail or "")
    assert time.monotonic() - began < TIMEOUT_S


class Careless:
    """Storage that writes over what is there, whatever it is told."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def put_object(self, **given: Any) -> None:
        assert given["IfNoneMatch"] == "*"
        self.keys.append(given["Key"])

    def delete_object(self, **given: Any) -> None:
        self.keys.remove(given["Key"])
        self.keys.remove(given["Key"])


def test_storage_without_conditional_writes_is_refused() -> None:
    careless = Careless()
    with pytest.raises(SqlError) as caught:
        conditional_puts.check("bricks", "s3://bucket/tables", careless)
    assert (caught.value.sqlstate, caught.value.message) == (
        "0A000", 'the storage of store "bricks" does not honour conditional writes',
    )  # fmt: skip
    assert careless.keys == []
