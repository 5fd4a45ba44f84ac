"""The catalog as a whole: a fresh one, transactions, generations, listeners, threads, files that are not right."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from catalog import migrations
from catalog.store import Catalog
from mvserver.errors import SqlError
from mvserver.masking import MASK, is_secret, masked
from tests.catalog.objects import add_view, query, relation, store


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    catalog = Catalog.open(tmp_path / "deep" / "catalog.sqlite")
    yield catalog
    catalog.close()


def add_and_fail(catalog: Catalog, name: str) -> None:
    with catalog.transaction():
        catalog.databases.add(name, "postgres")
        raise ZeroDivisionError


def reopened(catalog: Catalog) -> Catalog:
    catalog.close()
    return Catalog.open(catalog.path)


def test_a_fresh_catalog_has_postgres_public_and_a_superuser(catalog: Catalog) -> None:
    (database,) = catalog.databases.all()
    (schema,) = catalog.schemas.all()
    (role,) = catalog.roles.all()
    assert (database.name, database.oid, database.owner) == ("postgres", 16384, "postgres")
    assert (schema.name, schema.oid, schema.database_id) == ("public", 16385, database.id)
    assert (role.name, role.oid, role.superuser) == ("postgres", 10, True)
    assert catalog.generation == 1
    assert catalog.roles.find("nobody") is None


def test_what_is_written_is_read_back_the_same_after_a_restart(catalog: Catalog) -> None:
    with catalog.transaction():
        kept_store = catalog.stores.add(store("k", uris="k:9092", password="ü"))
        source = catalog.relations.add(relation(catalog, "clicks", store_id=kept_store.id))
        view = catalog.relations.add(relation(catalog, "visits", "materialized view"))
        made = query(source, view)
        catalog.queries.add(made)
        catalog.settings.set("a", "1")
        catalog.settings.set("a", "2")
    catalog = reopened(catalog)
    assert catalog.stores.all() == (kept_store,)
    assert catalog.relations.all() == (source, view)
    assert catalog.queries.all() == (made,)
    assert catalog.queries.get(made.id) == made
    assert catalog.settings.all() == {"a": "2"}
    assert catalog.settings.get("b", "none") == "none"
    assert catalog.generation == 2
    assert catalog.names.full_name(view) == "postgres.public.visits"
    assert catalog.relations.by_oid(view.oid) == view
    catalog.close()


def test_oids_are_never_given_twice(catalog: Catalog) -> None:
    with catalog.transaction():
        first = catalog.relations.add(relation(catalog, "a"))
        catalog.relations.delete(first.id)
        second = catalog.relations.add(relation(catalog, "a"))
    assert len({first.oid, first.row_type_oid, second.oid, second.row_type_oid}) == 4
    assert min(first.oid, second.oid) >= 16384
    with catalog.transaction():
        database = catalog.databases.add("d", "postgres")
    assert database.oid > second.row_type_oid
    assert [s.name for s in catalog.schemas.of_database(database.id)] == ["public"]


def test_an_error_leaves_nothing_and_no_new_generation(catalog: Catalog) -> None:
    with pytest.raises(ZeroDivisionError):
        add_and_fail(catalog, "d")
    assert [d.name for d in catalog.databases.all()] == ["postgres"]
    assert catalog.generation == 1
    with catalog.transaction():
        pass
    assert catalog.generation == 1


def test_an_inner_transaction_takes_back_only_its_own(catalog: Catalog) -> None:
    with catalog.transaction():
        catalog.databases.add("kept", "postgres")
        with pytest.raises(ZeroDivisionError):
            add_and_fail(catalog, "lost")
        with catalog.transaction():
            catalog.databases.add("kept too", "postgres")
    assert [d.name for d in catalog.databases.all()] == ["kept", "kept too", "postgres"]
    assert catalog.generation == 2


def test_a_rehearsal_sees_its_own_changes_and_keeps_none(catalog: Catalog) -> None:
    with catalog.rehearsal():
        catalog.databases.add("d", "postgres")
        assert catalog.databases.find("d") is not None
    assert catalog.databases.find("d") is None
    with catalog.transaction():
        catalog.databases.add("e", "postgres")
        with catalog.rehearsal():
            catalog.databases.add("f", "postgres")
    assert [d.name for d in catalog.databases.all()] == ["e", "postgres"]


def test_changes_outside_a_transaction_are_a_fault_of_the_program(catalog: Catalog) -> None:
    with pytest.raises(RuntimeError, match="only inside a transaction"):
        catalog.settings.set("a", "1")
    with catalog.snapshot(), pytest.raises(RuntimeError, match="inside a snapshot"), catalog.transaction():
        pass


def test_listeners_hear_each_commit_once_and_cannot_spoil_it(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[int] = []

    def broken(generation: int) -> None:
        raise ValueError("a broken listener")

    catalog.subscribe(broken)
    unsubscribe = catalog.subscribe(heard.append)
    with catalog.transaction():
        catalog.settings.set("a", "1")
        with catalog.transaction():
            catalog.settings.set("b", "1")
        assert heard == []
    assert heard == [2]
    assert "a listener of the catalog failed at generation 2" in caplog.text
    unsubscribe()
    with catalog.transaction():
        catalog.settings.set("a", "2")
    assert heard == [2]


def test_readers_see_the_last_commit_while_a_transaction_is_open(catalog: Catalog) -> None:
    opened, read = threading.Event(), threading.Event()
    seen: list[object] = []

    def write() -> None:
        with catalog.transaction():
            catalog.databases.add("d", "postgres")
            opened.set()
            assert read.wait(5)

    thread = threading.Thread(target=write)
    thread.start()
    assert opened.wait(5)
    seen.append(catalog.databases.find("d"))
    read.set()
    thread.join(5)
    seen.append(catalog.databases.get("d").name)
    assert seen == [None, "d"]


def test_threads_do_not_lose_each_others_changes(catalog: Catalog) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(10):
                with catalog.transaction():
                    catalog.databases.add(f"d{number}_{i}", "postgres")
                with catalog.snapshot():
                    databases, schemas = catalog.databases.all(), catalog.schemas.all()
                assert {d.id for d in databases} == {s.database_id for s in schemas}
        except BaseException as error:  # noqa: BLE001 - told to the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []
    assert len(catalog.databases.all()) == 61
    assert catalog.generation == 61
    oids = [d.oid for d in catalog.databases.all()] + [s.oid for s in catalog.schemas.all()]
    assert len(set(oids)) == len(oids) == 122


def test_an_object_that_vanished_meanwhile_is_a_named_error(catalog: Catalog) -> None:
    gone = relation(catalog, "gone")
    with catalog.transaction():
        view = catalog.relations.add(relation(catalog, "v", "materialized view"))
    with pytest.raises(SqlError) as raised, catalog.transaction():
        catalog.queries.add(query(gone, view))
    assert raised.value.sqlstate == "40001"
    assert catalog.queries.all() == ()


def test_duplicates_have_postgres_texts(catalog: Catalog) -> None:
    def add_twice(add: Callable[..., object], *arguments: object) -> str:
        with catalog.transaction():
            add(*arguments)
            with pytest.raises(SqlError) as raised:
                add(*arguments)
        return f"{raised.value.sqlstate}: {raised.value.message}"

    database = catalog.databases.get("postgres").id
    assert add_twice(catalog.databases.add, "d", "postgres") == '42P04: database "d" already exists'
    assert add_twice(catalog.schemas.add, database, "s", "postgres") == '42P06: schema "s" already exists'
    assert add_twice(catalog.stores.add, store("k")) == '42710: store "k" already exists'
    assert add_twice(catalog.relations.add, relation(catalog, "r")) == '42P07: relation "r" already exists'


def test_names_resolve_by_database_and_search_path(catalog: Catalog) -> None:
    with catalog.transaction():
        other = catalog.databases.add("d", "postgres")
        schema = catalog.schemas.add(other.id, "s", "postgres")
        here = catalog.relations.add(relation(catalog, "r"))
        there = catalog.relations.add(replace(relation(catalog, "r"), schema_id=schema.id))
    names = catalog.names
    assert names.relation(("r",), "postgres", ("public",)) == here
    assert names.relation(("d", "s", "r"), "postgres", ("public",)) == there
    assert names.relation(("s", "r"), "d", ("public",)) == there
    assert names.relation(("r",), "d", ("public", "s")) == there
    assert names.find_relation(("r",), "d", ("public",)) is None
    assert names.path(there) == ("d", "s", "r")
    with pytest.raises(SqlError) as raised:
        names.relation(("x", "y", "r"), "d", ("s",), 9)
    assert (raised.value.sqlstate, raised.value.message, raised.value.position) == (
        "42P01", 'relation "x.y.r" does not exist', 9,
    )  # fmt: skip
    with pytest.raises(SqlError, match="too many dotted names"):
        names.relation(("a", "b", "c", "d"), "d", ("s",))


def test_bad_names_are_refused(catalog: Catalog) -> None:
    for name, message in (
        ("", "zero-length delimited identifier"),
        ("x" * 64, f'identifier "{"x" * 64}" is too long'),
        ("ä" * 32, f'identifier "{"ä" * 32}" is too long'),
    ):
        with pytest.raises(SqlError) as raised, catalog.transaction():
            catalog.databases.add(name, "postgres")
        assert (raised.value.sqlstate, raised.value.message) == ("42602", message)


def test_dependents_are_found_through_views_and_queries(catalog: Catalog) -> None:
    with catalog.transaction():
        k = catalog.stores.add(store())
        a = catalog.relations.add(relation(catalog, "a", store_id=k.id))
        b = catalog.relations.add(relation(catalog, "b", store_id=k.id))
        copy = query(a, b, "create_stream_as")
        ended = query(a, b, "insert_into", "terminated")
        catalog.queries.add(copy)
        catalog.queries.add(ended)
    v = add_view(catalog, "v", a)
    w = add_view(catalog, "w", v)

    found = catalog.dependencies.of_relation(a)
    assert [r.name for r in found.relations] == ["v", "w"]
    assert {q.id for q in found.queries} == {copy.id, ended.id}
    assert set(found.lines) == {
        "materialized view v depends on stream a",
        f"query {copy.id} into stream b depends on stream a",
        "materialized view w depends on materialized view v",
    }
    error = found.refuse("stream a")
    assert (error.sqlstate, error.message) == ("2BP01", "cannot drop stream a because other objects depend on it")

    assert catalog.dependencies.of_relation(w).lines == ()
    assert catalog.dependencies.of_relation(b).lines == (f"query {copy.id} into stream b depends on stream b",)
    assert [r.name for r in catalog.dependencies.of_store(k).relations] == ["a", "b", "v", "w"]

    with catalog.transaction():
        catalog.dependencies.drop((a, *found.relations), found.queries)
    assert [r.name for r in catalog.relations.all()] == ["b"]
    assert catalog.queries.all() == ()


def test_many_dependents_are_cut_as_postgres_cuts_them(catalog: Catalog) -> None:
    with catalog.transaction():
        a = catalog.relations.add(relation(catalog, "a"))
        for i in range(105):
            add_view(catalog, f"v{i:03}", a)
    lines = catalog.dependencies.of_relation(a).detail().splitlines()
    assert len(lines) == 101
    assert lines[-1] == "and 5 other objects"


def test_secrets_are_masked_by_name() -> None:
    pairs = (("uris", "x"), ("kafka.sasl.password", "p"), ("key.format", "json"), ("kinesis.secret_access_key", "s"))
    assert masked(pairs) == (
        ("uris", "x"), ("kafka.sasl.password", MASK), ("key.format", "json"), ("kinesis.secret_access_key", MASK),
    )  # fmt: skip
    assert is_secret("SASL.JAAS.CONFIG")
    assert not is_secret("topic.partitions")


def test_a_newer_catalog_is_refused_and_not_touched(catalog: Catalog) -> None:
    catalog.close()
    with sqlite3.connect(catalog.path) as connection:
        connection.execute(f"PRAGMA user_version = {migrations.VERSION + 1}")
    connection.close()
    with pytest.raises(SqlError) as raised:
        Catalog.open(catalog.path)
    assert raised.value.message == (
        f"the catalog is of a newer version ({migrations.VERSION + 1}) than this server knows ({migrations.VERSION})"
    )


def test_a_foreign_or_damaged_file_is_refused_by_name(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    with pytest.raises(SqlError, match="is not a catalog of this server"):
        Catalog.open(foreign)
    garbage = tmp_path / "garbage.sqlite"
    garbage.write_bytes(b"no database at all" * 1_000)
    with pytest.raises(SqlError) as raised:
        Catalog.open(garbage)
    assert (raised.value.sqlstate, raised.value.message) == ("XX001", "the catalog is damaged")


def test_damage_inside_the_file_is_found_at_the_start(catalog: Catalog) -> None:
    catalog.close()
    content = bytearray(catalog.path.read_bytes())
    content[4096:8192] = b"\xa5" * 4096
    catalog.path.write_bytes(bytes(content))
    with pytest.raises(SqlError) as raised:
        Catalog.open(catalog.path)
    assert raised.value.sqlstate == "XX001"


def test_a_migration_that_fails_leaves_the_old_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.sqlite"
    Catalog.open(path).close()

    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (a)")
        raise ZeroDivisionError

    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, fails))
    monkeypatch.setattr(migrations, "VERSION", migrations.VERSION + 1)
    with pytest.raises(ZeroDivisionError):
        Catalog.open(path)
    monkeypatch.undo()
    catalog = Catalog.open(path)
    assert [d.name for d in catalog.databases.all()] == ["postgres"]
    catalog.close()


def test_a_full_disk_is_named_and_leaves_the_last_commit(catalog: Catalog) -> None:
    writer = catalog._connection._writer
    (pages,) = writer.execute("PRAGMA page_count").fetchone()
    writer.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(SqlError) as raised, catalog.transaction():
        catalog.settings.set("large", "x" * 100_000)
    assert (raised.value.sqlstate, raised.value.message) == ("53100", "the catalog cannot be written")
    writer.execute(f"PRAGMA max_page_count = {pages + 1_000}")
    with catalog.transaction():
        catalog.settings.set("small", "x")
    assert catalog.settings.all() == {"small": "x"}


def test_another_process_on_the_same_file_is_refused(catalog: Catalog) -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from catalog.store import Catalog\nfrom mvserver.errors import SqlError\n"
        "try:\n    Catalog.open(Path(sys.argv[1]))\nexcept SqlError as error:\n    print(error.sqlstate, error.hint)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(catalog.path)], capture_output=True, text=True, timeout=30, check=True
    )
    assert told.stdout == "55006 Only one server can run on a data directory.\n"
