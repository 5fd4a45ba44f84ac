"""A FILE store's entities and records, on real directories."""

from __future__ import annotations

import bz2
import gzip
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from mvserver.errors import SqlError
from spark_sinks.base import StoreClient
from spark_sinks.file.client import FileClient
from spark_sinks.file.files import visible_files, write_visible
from spark_sinks.file.options import FileOptions


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "files"
    root.mkdir()
    return root


@pytest.fixture
def client(root: Path) -> StoreClient:
    return FileClient("local", FileOptions.from_properties({"uris": "."}, [root]))


def refused(call: Callable[[], object]) -> SqlError:
    with pytest.raises(SqlError) as caught:
        call()
    return caught.value


def never() -> bool:
    return False


def printed(client: StoreClient, name: str, limit: int) -> list[tuple[str, bytes | None]]:
    records = client.print_entity(name, from_beginning=True, limit=limit, stopped=never)
    return [(record.position, record.value) for record in records]


# --- entities --------------------------------------------------------------------------------------------------------
def test_entities_are_the_sub_directories(root: Path, client: StoreClient, tmp_path: Path) -> None:
    (root / "b").mkdir()
    (root / "a").mkdir()
    (root / ".hidden").mkdir()
    (root / "file.json").write_text("{}")
    (tmp_path / "secret").mkdir()
    (root / "leads-out").symlink_to(tmp_path / "secret")
    (root / "alias").symlink_to(root / "a")
    assert [entity.name for entity in client.list_entities()] == ["a", "alias", "b"]


def test_create_describe_drop(root: Path, client: StoreClient) -> None:
    assert client.entity_exists("clicks") is False
    client.create_entity("clicks", {})
    assert (root / "clicks").is_dir()
    assert client.entity_exists("clicks") is True
    (root / "clicks" / "1.json").write_bytes(b"{}\n")
    (root / "clicks" / "_part").write_bytes(b"{}\n")
    assert dict(client.describe_entity("clicks").details) == {
        "directory": str((root / "clicks").resolve()),
        "files": "1",
        "bytes": "3",
    }
    error = refused(lambda: client.create_entity("clicks", {}))
    assert (error.sqlstate, error.message) == ("42710", 'entity "clicks" already exists in store "local"')
    error = refused(lambda: client.drop_entity("clicks", {}))
    assert (error.sqlstate, error.message) == ("2BP01", 'cannot drop entity "clicks" because it is not empty')
    assert error.detail == "It holds 2 files."
    client.drop_entity("clicks", {"delete.files": True})
    assert not (root / "clicks").exists()


def test_an_empty_entity_is_dropped_without_more(root: Path, client: StoreClient) -> None:
    client.create_entity("clicks", {})
    client.drop_entity("clicks", {"delete.files": "false"})
    assert list(root.iterdir()) == []


def test_check_create_has_no_effect(root: Path, client: StoreClient) -> None:
    client.check_create_entity("clicks", {})
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a/b", "../a", "/etc", "a\\b", "a\0b", "x" * 256, "é" * 128]
)
def test_names_that_are_no_directory_names(client: StoreClient, name: str) -> None:
    for call in (
        lambda: client.create_entity(name, {}),
        lambda: client.describe_entity(name),
        lambda: client.entity_exists(name),
        lambda: client.drop_entity(name, {"delete.files": True}),
        lambda: client.position(name, "earliest"),
        lambda: client.insert_record(name, "x", None, {}),
    ):
        assert refused(call).sqlstate == "42602"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"x": 1}, 'property "x" is not known for DROP ENTITY in a store of type FILE'),
        ({"delete.files": "perhaps"}, 'property "delete.files" must be true or false, not "perhaps"'),
        ({"delete.files": None}, 'property "delete.files" must be true or false, not "None"'),
    ],
)
def test_drop_properties(client: StoreClient, properties: Mapping[str, Any], message: str) -> None:
    client.create_entity("clicks", {})
    error = refused(lambda: client.drop_entity("clicks", properties))
    assert (error.sqlstate, error.message) == ("22023", message)


def test_unknown_entities(client: StoreClient) -> None:
    for call in (
        lambda: client.describe_entity("nowhere"),
        lambda: client.drop_entity("nowhere", {}),
        lambda: client.position("nowhere", "latest"),
        lambda: client.insert_record("nowhere", "x", None, {}),
        lambda: client.print_entity("nowhere", from_beginning=True, limit=None, stopped=never),
    ):
        error = refused(call)
        assert (error.sqlstate, error.message) == ("42704", 'entity "nowhere" does not exist in store "local"')


def test_drop_never_follows_a_link(root: Path, client: StoreClient, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "keep.txt").write_text("x")
    (root / "data").mkdir()
    (root / "data" / "link.txt").symlink_to(tmp_path / "secret" / "keep.txt")
    (root / "data" / "linked-folder").symlink_to(tmp_path / "secret")
    (root / "alias").symlink_to(root / "data")
    error = refused(lambda: client.drop_entity("alias", {"delete.files": True}))
    assert (error.sqlstate, error.message) == ("0A000", 'entity "alias" is a symbolic link and cannot be dropped')
    client.drop_entity("data", {"delete.files": True})
    assert not (root / "data").exists()
    assert (tmp_path / "secret" / "keep.txt").read_text() == "x"


def test_an_entity_with_directories_is_not_dropped_and_loses_nothing(root: Path, client: StoreClient) -> None:
    (root / "data" / "inner").mkdir(parents=True)
    (root / "data" / "a.json").write_text("{}")
    error = refused(lambda: client.drop_entity("data", {"delete.files": True}))
    assert (error.sqlstate, error.message) == ("2BP01", 'cannot drop entity "data" because it holds directories')
    assert (root / "data" / "a.json").exists()


def test_a_link_that_leads_out_is_refused_everywhere(root: Path, client: StoreClient, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (root / "data").symlink_to(tmp_path / "secret")
    for call in (
        lambda: client.describe_entity("data"),
        lambda: client.position("data", "latest"),
        lambda: client.insert_record("data", "x", None, {}),
        lambda: client.drop_entity("data", {"delete.files": True}),
    ):
        assert refused(call).sqlstate == "42501"
    assert list((tmp_path / "secret").iterdir()) == []


def test_a_file_that_is_a_link_out_of_the_roots_is_refused_everywhere(
    root: Path, client: StoreClient, tmp_path: Path
) -> None:
    (tmp_path / "secret.json").write_text('{"a":1}\n')
    (root / "data").mkdir()
    (root / "other").mkdir()
    (root / "other" / "a.json").write_text('{"a":2}\n')
    link = root / "data" / "link.json"
    for target in (tmp_path / "secret.json", Path("../../secret.json"), root / "second"):
        if target == root / "second":
            target.symlink_to(tmp_path / "secret.json")
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        for call in (
            lambda: client.describe_entity("data"),
            lambda: client.position("data", "latest"),
            lambda: printed(client, "data", 1),
        ):
            error = refused(call)
            assert error.sqlstate == "42501"
            assert error.message.startswith('"link.json" leads out of the directories')
    link.unlink()
    link.symlink_to(tmp_path / "nowhere.json")  # a link to nowhere has nothing to read
    assert dict(client.describe_entity("data").details)["files"] == "0"
    link.unlink()
    link.symlink_to(root / "other" / "a.json")
    assert printed(client, "data", 1) == [("link.json:1", b'{"a":2}')]


def test_a_store_whose_directory_is_gone_does_not_answer(root: Path, client: StoreClient) -> None:
    client.check()
    root.rmdir()
    for call in (client.check, client.list_entities, lambda: client.position("a", "latest")):
        error = refused(call)
        assert (error.sqlstate, error.message) == ("08006", 'store "local" does not answer')


# --- records ---------------------------------------------------------------------------------------------------------
def test_insert_makes_one_visible_file_of_one_line(root: Path, client: StoreClient) -> None:
    client.create_entity("clicks", {})
    client.insert_record("clicks", '{"a": "ü"}', None, {})
    client.insert_record("clicks", "", None, {})
    files = sorted((root / "clicks").iterdir())
    assert [file.read_bytes() for file in files] == ['{"a": "ü"}\n'.encode(), b"\n"]
    assert len(visible_files(root / "clicks", root)) == 2


@pytest.mark.parametrize("value", ["a\nb", "a\r", "\n"])
def test_a_line_break_in_a_value_is_refused(root: Path, client: StoreClient, value: str) -> None:
    client.create_entity("clicks", {})
    error = refused(lambda: client.insert_record("clicks", value, None, {}))
    assert (error.sqlstate, error.message) == ("22023", "the value contains a line break")
    assert list((root / "clicks").iterdir()) == []


def test_a_key_and_properties_of_a_record_are_refused(client: StoreClient) -> None:
    client.create_entity("clicks", {})
    assert refused(lambda: client.insert_record("clicks", "x", "k", {})).sqlstate == "0A000"
    assert refused(lambda: client.insert_record("clicks", "x", None, {"a": 1})).message == (
        'property "a" is not known for INSERT INTO ENTITY in a store of type FILE'
    )


def test_a_failed_write_leaves_nothing(root: Path) -> None:
    (root / "taken.txt").mkdir()
    (root / "taken.txt" / "full").write_text("")
    with pytest.raises(OSError):
        write_visible(root, "taken.txt", b"x")
    assert [path.name for path in root.iterdir()] == ["taken.txt"]


def test_print_shows_the_lines_of_visible_files(root: Path, client: StoreClient) -> None:
    client.create_entity("clicks", {})
    write_visible(root / "clicks", "a.json", b'{"a": 1}\n{"a": 2}\r\n\n\xff')
    (root / "clicks" / "_temporary").write_bytes(b"no\n")
    (root / "clicks" / ".a.json.crc").write_bytes(b"no\n")
    with gzip.open(root / "clicks" / ".z", "wb") as file:
        file.write(b"zipped\n")
    (root / "clicks" / ".z").rename(root / "clicks" / "b.json.gz")
    assert printed(client, "clicks", 5) == [
        ("a.json:1", b'{"a": 1}'),
        ("a.json:2", b'{"a": 2}'),
        ("a.json:3", b""),
        ("a.json:4", b"\xff"),
        ("b.json.gz:1", b"zipped"),
    ]
    assert printed(client, "clicks", 2) == [("a.json:1", b'{"a": 1}'), ("a.json:2", b'{"a": 2}')]
    assert printed(client, "clicks", 0) == []


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst", ".deflate"])
def test_print_shows_the_lines_of_compressed_files(root: Path, client: StoreClient, suffix: str) -> None:
    """As Spark divides them: a return ends a line, too."""
    content = b'{"a": 1}\r{"a": 2}\r\n\n\xff'
    packers: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".zst": lambda text: pa.Codec("zstd").compress(text, asbytes=True),
        ".deflate": zlib.compress,
    }
    client.create_entity("clicks", {})
    write_visible(root / "clicks", f"a.json{suffix}", packers[suffix](content))
    assert printed(client, "clicks", 4) == [
        (f"a.json{suffix}:{number}", line)
        for number, line in enumerate([b'{"a": 1}', b'{"a": 2}', b"", b"\xff"], start=1)
    ]


@pytest.mark.parametrize("name", ["a.parquet", "a", "a.orc"])
def test_print_shows_the_rows_of_files_with_types(root: Path, client: StoreClient, name: str) -> None:
    moment = pa.timestamp("ns")
    table = pa.table(
        {
            "n": pa.array([1, None], pa.int64()),
            "price": pa.array([Decimal("1.50"), Decimal("-0.05")], pa.decimal128(6, 2)),
            "y": pa.array([b"\xff\x00", b""]),
            "at": pa.array([1_715_907_723_000_004_999, None], pa.int64()).cast(moment),
            "m": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int32())),
            "r": pa.array([{"x": 0.5, "t": [0]}, None], pa.struct([("x", pa.float64()), ("t", pa.list_(moment))])),
        }
    )
    client.create_entity("clicks", {})
    (orc.write_table if name.endswith(".orc") else parquet.write_table)(table, root / "clicks" / f".{name}")
    (root / "clicks" / f".{name}").rename(root / "clicks" / name)
    first = (
        b'{"n": 1, "price": 1.50, "y": "/wA=", "at": "2024-05-17 01:02:03.000004", "m": {"a": 1}, '
        b'"r": {"x": 0.5, "t": ["1970-01-01 00:00:00"]}}'
    )
    second = b'{"n": null, "price": -0.05, "y": "", "at": null, "m": {}, "r": null}'
    assert printed(client, "clicks", 2) == [(f"{name}:1", first), (f"{name}:2", second)]
    assert printed(client, "clicks", 1) == [(f"{name}:1", first)]


def test_print_follows_new_files_from_now_on(root: Path, client: StoreClient) -> None:
    client.create_entity("clicks", {})
    write_visible(root / "clicks", "old.json", b"old\n")
    records = client.print_entity("clicks", from_beginning=False, limit=3, stopped=never)
    write_visible(root / "clicks", "new.json", b"1\n2\n")
    assert next(records).value == b"1"
    write_visible(root / "clicks", "newer.json", b"3\n")
    assert [record.value for record in records] == [b"2", b"3"]


def test_print_stops_when_told(client: StoreClient) -> None:
    client.create_entity("clicks", {})
    stop = threading.Event()
    records: Iterator[object] = client.print_entity("clicks", from_beginning=True, limit=None, stopped=stop.is_set)
    ended = threading.Event()

    def read() -> None:
        list(records)
        ended.set()

    thread = threading.Thread(target=read)
    thread.start()
    stop.set()
    assert ended.wait(5)
    thread.join()


@pytest.mark.parametrize(
    ("name", "content", "sqlstate", "message"),
    [
        ("a.parquet", b"", "XX001", 'file "a.parquet" is not whole'),
        ("a", b"PAR1....", "XX001", 'file "a" is not whole'),
        ("a.orc", b"ORC....", "XX001", 'file "a.orc" is not whole'),
        ("a.json.lz4", b"", "0A000", 'file "a.json.lz4" cannot be printed'),
        ("a.json.xz", b"", "0A000", 'file "a.json.xz" cannot be printed'),
        ("a.zst", b"not packed", "XX001", 'file "a.zst" is not whole'),
        ("a.bz2", bz2.compress(b"x" * 1000)[:-9], "XX001", 'file "a.bz2" is not whole'),
        ("a.deflate", zlib.compress(b"x" * 1000)[:-9], "XX001", 'file "a.deflate" is not whole'),
        ("a.gz", b"not zipped", "XX001", 'file "a.gz" is not whole'),
        ("b.gz", gzip.compress(b"x" * 1000, mtime=0)[:-9], "XX001", 'file "b.gz" is not whole'),
    ],
)
def test_files_that_cannot_be_printed(
    root: Path, client: StoreClient, name: str, content: bytes, sqlstate: str, message: str
) -> None:
    client.create_entity("clicks", {})
    write_visible(root / "clicks", name, content)
    error = refused(lambda: printed(client, "clicks", 1))
    assert (error.sqlstate, error.message) == (sqlstate, message)


def test_a_line_that_is_too_long_is_refused(root: Path, client: StoreClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_sinks.file.records.FILE_RECORD_BYTES_MAX", 10)
    monkeypatch.setattr("spark_sinks.file.files.FILE_RECORD_BYTES_MAX", 10)
    monkeypatch.setattr("spark_sinks.file.shown.FILE_RECORD_BYTES_MAX", 10)
    client.create_entity("clicks", {})
    write_visible(root / "clicks", "a.json", b"short\n" + b"x" * 20 + b"\n")
    error = refused(lambda: printed(client, "clicks", 2))
    assert (error.sqlstate, error.message) == ("54000", 'line 2 of file "a.json" is too long')
    assert refused(lambda: client.insert_record("clicks", "x" * 10, None, {})).sqlstate == "54000"


# --- positions -------------------------------------------------------------------------------------------------------
def test_positions(root: Path, client: StoreClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_sinks.file.positions.time", SimpleNamespace(time=lambda: 7.5))
    client.create_entity("clicks", {})
    for name in ("b.json", "a.json"):
        write_visible(root / "clicks", name, b"{}\n")
    (root / "clicks" / "_part").write_bytes(b"")
    (root / "clicks" / "folder").mkdir()
    assert client.position("clicks", "earliest") == {"before": []}
    assert client.position("clicks", "latest") == {"before": ["a.json", "b.json"], "at": 7.5}
    error = refused(lambda: client.position("clicks", "yesterday"))
    assert (error.sqlstate, error.message) == ("22023", 'unrecognized starting position "yesterday"')
    client.close()
