"""Stores of type FILE in services without Spark: what the services promise, entities, files and the sink."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from mvserver.errors import SqlError
from spark_sinks.base import SinkRecords
from spark_sinks.file.files import VisibleFile
from spark_sinks.file.objects.base import ObjectStore, OtherVersion
from spark_sinks.file.objects.client import ObjectClient
from spark_sinks.file.objects.files import ObjectFiles
from spark_sinks.file.objects.options import ObjectOptions, object_options, service_of
from spark_sinks.file.objects.sink import ObjectSink
from tests.file.services import SERVICES, Bucket, Service, serving

pytestmark = pytest.mark.slow

MANY = 1_010
UNIT = 256 * 1024
QUERY = "0b7c6a52-1d0f-4c62-9a51-5a3a1a2b3c4d"
IN = "lake/in"


@pytest.fixture(scope="module", params=SERVICES)
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    with serving(request.param) as found:
        yield found


@pytest.fixture
def bucket(service: Service) -> Bucket:
    return service.place()


@pytest.fixture
def objects(bucket: Bucket) -> Iterator[ObjectStore]:
    store = bucket.store()
    yield store
    store.close()


@pytest.fixture
def client(bucket: Bucket, objects: ObjectStore) -> ObjectClient:
    return ObjectClient("s", bucket.options, objects, 10_000_000)


def refused(call: Callable[[], object]) -> SqlError:
    with pytest.raises(SqlError) as caught:
        call()
    return caught.value


# --- the services ---------------------------------------------------------------------------------------------------
def test_conditions_are_honoured(objects: ObjectStore) -> None:
    first = objects.put("k", b"1", None)
    with pytest.raises(OtherVersion):
        objects.put("k", b"2", None)
    second = objects.put("k", b"2", first)
    with pytest.raises(OtherVersion):
        objects.put("k", b"3", first)
    with pytest.raises(OtherVersion):
        objects.put("absent", b"3", first)
    assert objects.read("k") == (b"2", second)
    assert objects.read("absent") is None
    objects.delete("absent")


@pytest.mark.parametrize("size", [7, 2 * UNIT, 2 * UNIT + 7])  # Google's storage takes parts in such units
def test_what_is_begun_is_seen_when_it_is_finished_and_not_made_again(
    bucket: Bucket, objects: ObjectStore, size: int
) -> None:
    begun = objects.begin("d/k", content := os.urandom(size))
    assert list(objects.list("d")) == []
    objects.finish("d/k", begun)
    objects.finish("d/k", begun)
    assert bucket.contents() == {"d/k": content}
    bucket.delete("d/k")
    objects.finish("d/k", begun)
    assert bucket.contents() == {}


def test_what_is_abandoned_is_not_finished(bucket: Bucket, objects: ObjectStore) -> None:
    if bucket.service.name != "s3":
        return  # which forgets it by itself
    mine, other = objects.begin("d/e/q1-1", b"1"), objects.begin("d/q2-1", b"2")
    objects.abandon("d", "q1-")
    objects.finish("d/e/q1-1", mine)
    objects.finish("d/q2-1", other)
    assert bucket.contents() == {"d/q2-1": b"2"}


def test_a_large_object(bucket: Bucket, objects: ObjectStore, tmp_path: Path) -> None:
    content = os.urandom(9_000_000)
    (tmp_path / "large").write_bytes(content)
    objects.put_file("l/large", tmp_path / "large")
    with pytest.raises(OtherVersion):
        objects.put_file("l/large", tmp_path / "large")
    (found,) = objects.list("l")
    objects.download("l/large", found.version, tmp_path / "again", lambda: False)
    assert (tmp_path / "again").read_bytes() == content


@pytest.mark.night
def test_many_objects(objects: ObjectStore) -> None:
    for number in range(MANY):  # S3 has them in several pages
        objects.put(f"m/{number:05}", b"", None)
    assert [found.key for found in objects.list("m")] == [f"m/{number:05}" for number in range(MANY)]


def test_a_service_that_is_away_is_named(bucket: Bucket) -> None:
    endpoint = {"s3": "s3.endpoint", "azure": "azure.endpoint", "google": "gcs.endpoint"}[bucket.service.name]
    bucket.properties[endpoint] = "http://127.0.0.1:9/devstoreaccount1"
    error = refused(lambda: bucket.store().check(""))
    assert (error.sqlstate, error.message) == ("08006", 'store "s" does not answer')
    assert bucket.properties["uris"] in (error.detail or "")


def test_a_bucket_that_is_not_there(bucket: Bucket) -> None:
    bucket.properties["uris"] = bucket.properties["uris"].replace(bucket.name, "nowhere-at-all")
    assert refused(lambda: bucket.store().check("")).sqlstate == "08006"


# --- entities -------------------------------------------------------------------------------------------------------
def test_entities_are_made_listed_described_and_dropped(bucket: Bucket, client: ObjectClient) -> None:
    assert client.list_entities() == []
    client.create_entity("clicks", {})
    assert refused(lambda: client.create_entity("clicks", {})).sqlstate == "42710"
    bucket.put(f"{IN}/found/a.json", b"{}\n")
    bucket.put("lake/input/x/a.json", b"{}\n")  # another place
    bucket.put(f"{IN}/.hidden/a.json", b"{}\n")
    assert [entity.name for entity in client.list_entities()] == ["clicks", "found"]
    assert client.entity_exists("found")
    assert not client.entity_exists("fou")
    details = dict(client.describe_entity("found").details)
    assert details == {"directory": f"{bucket.properties['uris']}/found", "files": "1", "bytes": "3"}
    assert refused(lambda: client.describe_entity("nowhere")).sqlstate == "42704"
    assert refused(lambda: client.drop_entity("found", {})).sqlstate == "2BP01"
    client.drop_entity("found", {"delete.files": True})
    client.drop_entity("clicks", {})
    assert client.list_entities() == []
    assert refused(lambda: client.create_entity("../up", {})).sqlstate == "42602"


def test_records_are_inserted_copied_and_printed(
    bucket: Bucket, client: ObjectClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_sinks.file.positions.time", SimpleNamespace(time=lambda: 7.5))
    client.create_entity("clicks", {})
    client.insert_record("clicks", '{"n": 1}', None, {})
    client.write_records([("clicks", iter([b"2", b"3"]))])
    bucket.put(f"{IN}/clicks/z.gz", gzip.compress(b"4\n5"))
    bucket.put(f"{IN}/clicks/k=v/_half", b"6\n")
    printed = client.print_entity("clicks", from_beginning=True, limit=5, stopped=lambda: False)
    assert [record.value for record in printed] == [b'{"n": 1}', b"2", b"3", b"4", b"5"]
    assert refused(lambda: client.insert_record("clicks", "x", "key", {})).sqlstate == "0A000"
    assert refused(lambda: client.write_records([("clicks", []), ("clicks", [])])).sqlstate == "0A000"
    latest = client.position("clicks", "latest")
    assert (len(latest["before"]), latest["at"]) == (3, 7.5)
    assert client.position("clicks", "earliest") == {"before": []}

    def broken() -> Iterator[bytes]:
        yield b"7"
        raise SqlError("22000", "no")

    assert refused(lambda: client.write_records([("clicks", broken())])).sqlstate == "22000"
    assert client.position("clicks", "latest") == latest


# --- files ----------------------------------------------------------------------------------------------------------
def test_files_are_fetched_as_they_were_seen(bucket: Bucket, objects: ObjectStore, tmp_path: Path) -> None:
    files = ObjectFiles(objects, f"{IN}/e", "place/e", 100)
    for key in ("b", "k=v/a", ".hidden", "_half", "other/c", "k=v/_x", "k=v/l=m/d", "a//b", "k=v/"):
        bucket.put(f"{IN}/e/{key}", key.encode())
    bucket.put(f"{IN}/other", b"")
    seen = {file.name: file for file in files.look()}
    assert sorted(seen) == ["b", "k=v/a", "k=v/l=m/d"]
    assert files.fetch(seen["k=v/a"], tmp_path, lambda: False).read_bytes() == b"k=v/a"
    assert list(files.damaged(list(seen.values()))) == []
    bucket.put(f"{IN}/e/b", b"other")
    bucket.delete(f"{IN}/e/k=v/a")
    for name, words in (("b", "changed after it was read"), ("k=v/a", "is gone")):
        error = refused(lambda name=name: files.fetch(seen[name], tmp_path, lambda: False))  # type: ignore[misc]
        assert (error.sqlstate, words in error.message) == ("55000", True)
    assert sorted(file.name for file, _ in files.damaged(list(seen.values()))) == ["b", "k=v/a"]
    bucket.put(f"{IN}/e/large", bytes(101))
    (large,) = files.look({"b", "k=v/l=m/d"})
    assert refused(lambda: files.fetch(large, tmp_path, lambda: False)).sqlstate == "54000"
    assert refused(lambda: files.fetch(VisibleFile("x" * 300, 1, 1, "v"), tmp_path, lambda: False)).sqlstate == "54000"


# --- the sink -------------------------------------------------------------------------------------------------------
def opened(bucket: Bucket, objects: ObjectStore, query: str = QUERY) -> ObjectSink:
    sink = ObjectSink("s", objects, f"{IN}/out", f"{bucket.properties['uris']}/out", query)
    sink.open()
    return sink


def write(sink: ObjectSink, *numbers: int, at: int, folders: bool = False) -> None:
    values = [json.dumps({"n": number}).encode() for number in numbers]
    named = [f"odd={number % 2}" for number in numbers] if folders else []
    sink.write(SinkRecords([None] * len(values), values, [None] * len(values), (), named), {"at": at})


def numbers_in(bucket: Bucket) -> list[int]:
    contents = {key: value for key, value in bucket.contents(f"{IN}/out/").items() if "/." not in key}
    return sorted(json.loads(line)["n"] for value in contents.values() for line in value.splitlines())


def test_a_batch_is_an_object_and_the_position_is_read_back(bucket: Bucket, objects: ObjectStore) -> None:
    sink = opened(bucket, objects)
    assert sink.committed_position() is None
    write(sink, 1, 2, at=1)
    write(sink, at=2)
    write(sink, 3, 4, 5, at=3, folders=True)
    assert opened(bucket, objects).committed_position(expected=True) == {"at": 3}
    assert sorted(key for key in bucket.contents() if "/." not in key) == [
        f"{IN}/out/{QUERY}-000000000001.json",
        f"{IN}/out/odd=0/{QUERY}-000000000002.json",
        f"{IN}/out/odd=1/{QUERY}-000000000002.json",
    ]
    assert numbers_in(bucket) == [1, 2, 3, 4, 5]


def test_ended_before_each_request_nothing_is_lost_or_doubled(
    bucket: Bucket, objects: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the server was killed there. A reader takes the objects away as soon as it sees them."""

    class Ended(BaseException):
        pass

    step, taken, at = 0, [], 0
    while True:
        left = [step]

        def counted(effect: Callable[..., object], left: list[int] = left) -> Callable[..., object]:
            def call(*arguments: object) -> object:
                if left[0] == 0:
                    raise Ended
                left[0] -= 1
                return effect(*arguments)

            return call

        with monkeypatch.context() as patched:
            for name in ("read", "put", "begin", "finish", "abandon", "delete"):
                patched.setattr(objects, name, counted(getattr(objects, name)))
            try:
                sink = opened(bucket, objects)
                for _ in range(2):
                    write(sink, at * 2 + 1, at * 2 + 2, at=at + 1, folders=True)
                    at += 1
                ended = False
            except Ended:
                ended = True
        taken += numbers_in(bucket)
        for key in bucket.contents(f"{IN}/out/odd"):
            bucket.delete(key)
        found = opened(bucket, objects).committed_position()
        at = 0 if found is None else found["at"]
        taken += numbers_in(bucket)
        for key in bucket.contents(f"{IN}/out/odd"):
            bucket.delete(key)
        assert sorted(taken) == list(range(1, 2 * at + 1)), step
        if not ended:
            break
        step += 1
    assert step > 10


def test_a_writer_that_was_replaced_writes_nothing(bucket: Bucket, objects: ObjectStore) -> None:
    first = opened(bucket, objects)
    write(first, 1, at=1)
    second = opened(bucket, objects)
    assert refused(lambda: write(first, 2, at=2)).sqlstate == "55006"
    write(second, 2, at=2)
    assert refused(lambda: write(first, 2, at=2)).sqlstate == "55000"
    assert numbers_in(bucket) == [1, 2]


def test_queries_do_not_see_each_other_and_forget_alone(bucket: Bucket, objects: ObjectStore) -> None:
    first, second = opened(bucket, objects), opened(bucket, objects, "another")
    write(first, 1, at=1)
    write(second, 2, at=5)
    first.forget()
    assert [key.rpartition("/")[2] for key in bucket.contents() if "/." in key] == [".mvserver-another.position"]
    write(second, 3, at=6)
    assert numbers_in(bucket) == [1, 2, 3]


def test_a_place_that_was_made_anew_has_lost_the_position(bucket: Bucket, objects: ObjectStore) -> None:
    sink = opened(bucket, objects)
    write(sink, 1, at=1)
    bucket.delete(f"{IN}/out/.mvserver-{QUERY}.position")
    assert refused(lambda: write(sink, 2, at=2)).sqlstate == "55006"
    again = opened(bucket, objects)
    assert refused(lambda: again.committed_position(expected=True)).sqlstate == "55000"


def test_a_note_that_is_damaged_is_named(bucket: Bucket, objects: ObjectStore) -> None:
    bucket.put(f"{IN}/out/.mvserver-{QUERY}.position", b"{")
    assert refused(lambda: opened(bucket, objects)).sqlstate == "XX001"


@pytest.mark.parametrize("deaf", [2, 4])
def test_storage_without_conditional_writes_is_refused(
    bucket: Bucket, objects: ObjectStore, monkeypatch: pytest.MonkeyPatch, deaf: int
) -> None:
    put, puts = objects.put, []

    def careless(key: str, content: bytes, replacing: str | None) -> str:
        puts.append(key)
        if len(puts) != deaf:
            return put(key, content, replacing)
        bucket.put(key, content)
        return "x"

    monkeypatch.setattr(objects, "put", careless)
    error = refused(lambda: opened(bucket, objects))
    assert (error.sqlstate, error.message) == (
        "0A000", 'the storage of store "s" does not honour conditional writes',
    )  # fmt: skip


# --- options --------------------------------------------------------------------------------------------------------
def options(**properties: str) -> ObjectOptions:
    given = {key.replace("__", "."): value for key, value in properties.items()}
    found = service_of(given["uris"])
    assert found is not None
    return object_options(found, given)


def test_options_of_s3() -> None:
    found = options(uris="s3://bucket/a/b/", access__region="us-east-2", max__files__per__batch="3")
    assert (found.container, found.prefix, found.region, found.files_max) == ("bucket", "a/b", "us-east-2", 3)
    assert found.below("e") == ("a/b/e", "s3://bucket/a/b/e")
    assert options(uris="s3a://bucket").below("e") == ("e", "s3a://bucket/e")
    with_keys = options(uris="s3://bucket", aws__access_key_id="k", aws__secret_access_key="hidden")
    assert "hidden" not in repr(with_keys)


@pytest.mark.parametrize(
    ("properties", "sqlstate"),
    [
        ({"uris": "s3://"}, "22023"),
        ({"uris": "s3://UPPER/x"}, "22023"),
        ({"uris": "s3://bucket/a/../b"}, "22023"),
        ({"uris": "s3://bucket/a?b"}, "22023"),
        ({"uris": "s3://bucket", "aws__access_key_id": "k"}, "22023"),
        ({"uris": "s3://bucket", "s3__endpoint": "http://localhost:1"}, "42501"),
        ({"uris": "s3://bucket", "azure__account_key": "k"}, "22023"),
        ({"uris": "s3://bucket", "aws__access_key_id": "k", "aws__secret_access_key": "s", "s3__endpoint": "x"},
         "22023"),
        ({"uris": "s3://bucket", "max__files__per__batch": "0"}, "22023"),
        ({"uris": "abfss://c@account.dfs.core.windows.net/x"}, "22023"),
        ({"uris": "abfss://c@example.org/x", "azure__account_key": "a2V5"}, "22023"),
        ({"uris": "abfss://container@account.dfs.core.windows.net/x", "azure__account_key": "a2V5",
          "azure__sas_token": "t"}, "22023"),
        ({"uris": "gs://bucket", "gcs__endpoint": "http://localhost:1"}, "42501"),
        ({"uris": "gs://bucket", "gcs__token": "t", "gcs__service_account_key": "{}"}, "22023"),
        ({"uris": "gs://bucket", "gcs__service_account_key": '{"type": "external_account"}'}, "22023"),
        ({"uris": "gs://bucket", "aws__access_key_id": "k"}, "0A000"),
        ({"uris": "wasb://container@account/x"}, "0A000"),
        ({"uris": "hdfs://host/x"}, "0A000"),
    ],
)  # fmt: skip
def test_options_that_are_wrong(properties: dict[str, str], sqlstate: str) -> None:
    assert refused(lambda: options(**properties)).sqlstate == sqlstate


def test_a_service_whose_packages_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_sinks.file.objects.options.find_spec", lambda name: None)
    error = refused(lambda: options(uris="abfss://container@account.dfs.core.windows.net/x", azure__account_key="a2V5"))
    assert (error.sqlstate, "pip install 'mvserver[azure]'" in (error.hint or "")) == ("0A000", True)
