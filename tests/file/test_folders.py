"""Folders below an entity, without Spark: which files are its own, what a sink writes there, and how they go."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mvserver.errors import SqlError
from spark_sinks.base import SinkRecords
from spark_sinks.decode.partitions import folder_of
from spark_sinks.file.client import FileClient
from spark_sinks.file.entity_files import DirectoryFiles
from spark_sinks.file.files import visible_files
from spark_sinks.file.options import FileOptions
from spark_sinks.file.sink import FileSink, Note

QUERY = "0b7c6a52-1d0f-4c62-9a51-5a3a1a2b3c4d"


@pytest.fixture
def entity(tmp_path: Path) -> Path:
    made = tmp_path / "e"
    made.mkdir()
    return made


def put(entity: Path, *names: str) -> None:
    for name in names:
        (entity / name).parent.mkdir(parents=True, exist_ok=True)
        (entity / name).write_text("{}\n")


def names(entity: Path) -> list[str]:
    return sorted(file.name for file in visible_files(entity, entity.parent))


def test_folders_of_the_form_key_value_belong_to_it(entity: Path) -> None:
    put(entity, "a", "k=v/b", "k=v/l=/c", "other/d", "k=v/other/e", ".k=v/f", "=v/g", "_k=v/h", "k=v/.i", "k=v/_j")
    (entity / "loop=1").symlink_to(entity)
    (entity / "k=v" / "k=v").mkdir()
    assert names(entity) == ["_k=v/h", "a", "k=v/b", "k=v/l=/c"]


def test_a_file_in_a_folder_that_was_there_is_noticed(entity: Path) -> None:
    """The entity's own directory does not change then."""
    put(entity, "k=v/a")
    old = 1_700_000_000_000_000_000
    for folder in (entity, entity / "k=v"):
        os.utime(folder, ns=(old, old))
    files = DirectoryFiles(entity)
    assert [file.name for file in files.look()] == ["k=v/a"]
    mark = files.mark()
    assert mark == files.mark()
    put(entity, "k=v/b")
    assert files.mark() != mark
    (entity / "k=v" / "a").unlink()
    (entity / "k=v" / "b").unlink()
    (entity / "k=v").rmdir()
    assert files.mark() != mark
    assert files.look() == []


def test_a_link_that_leads_out_of_a_folder_is_refused(entity: Path, tmp_path: Path) -> None:
    put(entity, "k=v/a")
    outside = tmp_path.parent / f"{tmp_path.name}.secret"
    outside.write_text("x")
    (entity / "k=v" / "b").symlink_to(outside)
    with pytest.raises(SqlError) as caught:
        visible_files(entity, tmp_path)
    assert caught.value.sqlstate == "42501"


def test_names_of_folders_are_escaped() -> None:
    values = ["a/b", "x=1%", "", None, "__HIVE_DEFAULT_PARTITION__", "ü +"]
    assert folder_of(["a", "b=", "c", "d", "e", "f"], values) == (
        "a=a%2Fb/b%3D=x%3D1%25/c=/d=__HIVE_DEFAULT_PARTITION__/e=%5F_HIVE_DEFAULT_PARTITION__/f=ü +"
    )


def opened(entity: Path) -> FileSink:
    sink = FileSink("s", entity, entity.parent, QUERY)
    sink.open()
    return sink


def write(sink: FileSink, *numbers: int, at: int) -> None:
    values = [json.dumps({"n": number}).encode() for number in numbers]
    folders = [f"odd={number % 2}/n={number}" for number in numbers]
    sink.write(SinkRecords([None] * len(values), values, [None] * len(values), (), folders), {"at": at})


def numbers_in(entity: Path) -> list[int]:
    return sorted(json.loads((entity / name).read_text())["n"] for name in names(entity))


@pytest.mark.slow
def test_killed_at_each_step_of_a_batch_of_many_files(entity: Path) -> None:
    from tests.file.test_sink import ending_at

    step, kills = 0, 0
    while True:
        found = opened(entity).committed_position()
        at = 0 if found is None else found["at"]
        assert numbers_in(entity) == list(range(1, at * 3 + 1))
        child = os.fork()
        if child == 0:
            with ending_at(step):
                write(opened(entity), *range(at * 3 + 1, at * 3 + 4), at=at + 1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 0:
            break
        kills += 1
        step += 1
    assert kills > 15
    assert not list(entity.glob(f".{QUERY}*"))


def test_a_note_of_an_older_server_is_understood(entity: Path) -> None:
    file = f"{QUERY}-000000000007.json"
    (entity / f".{file}").write_text('{"n": 1}\n')
    note = {"writer": "w", "batches": 7, "file": file, "position": {"at": 3}}
    (entity / f".mvserver-{QUERY}.position").write_text(json.dumps(note))
    sink = opened(entity)
    assert sink.committed_position() == {"at": 3}
    assert numbers_in(entity) == [1]
    empty = json.dumps({**note, "file": None}).encode()
    assert Note.from_json(empty, "x") == Note("w", 7, (), {"at": 3})


def test_what_a_dropped_query_has_left_goes(entity: Path) -> None:
    """What was noted is finished, and what was not is removed."""
    sink = opened(entity)
    write(sink, 1, at=1)
    note = Note("w", 2, (f"odd=0/n=2/{QUERY}-000000000002.json",), {"at": 2})
    (entity / f".{QUERY}-000000000002.json.0").write_text('{"n": 2}\n')
    (entity / f".{QUERY}-000000000003.json").write_text('{"n": 3}\n')
    (entity / f".mvserver-{QUERY}.position").write_bytes(note.to_json())
    (entity / ".mvserver-another.position").write_text("{}")
    FileSink("s", entity, entity.parent, QUERY).forget()
    assert numbers_in(entity) == [1, 2]
    assert [path.name for path in entity.glob(".*")] == [".mvserver-another.position"]
    FileSink("s", entity, entity.parent, QUERY).forget()
    FileSink("s", entity / "nowhere", entity.parent, QUERY).forget()


def test_an_entity_is_dropped_with_its_folders_alone(entity: Path, tmp_path: Path) -> None:
    client = FileClient("s", FileOptions(tmp_path, tmp_path))
    put(entity, "k=v/a", "k=v/l=m/b")
    with pytest.raises(SqlError) as caught:
        client.drop_entity("e", {})
    assert caught.value.sqlstate == "2BP01"
    put(entity, "k=v/other/c")
    with pytest.raises(SqlError) as caught:
        client.drop_entity("e", {"delete.files": True})
    assert (caught.value.sqlstate, caught.value.detail) == ("2BP01", 'The first of them is "other".')
    assert names(entity) == ["k=v/a", "k=v/l=m/b"]
    (entity / "k=v" / "other" / "c").unlink()
    (entity / "k=v" / "other").rmdir()
    client.drop_entity("e", {"delete.files": True})
    assert not entity.exists()
