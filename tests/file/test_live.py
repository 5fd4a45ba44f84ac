"""Directories and a whole server: forms of files, columns in the names of folders, files that come, change and go."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.faults.live import LiveServer, temporary_server

pytestmark = pytest.mark.spark
NIGHT = pytest.mark.night
WITHIN_S = 120.0
EARLIEST = "WITH ('starting.position' = 'earliest')"


class Place:
    """A server, and the folder that its store ``f`` is."""

    def __init__(self, server: LiveServer) -> None:
        self.server = server
        self.folder = server.data / "files"

    def add(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.parent / f".{path.name}"
        aside.write_bytes(content)
        aside.rename(path)

    def add_table(self, name: str, table: pa.Table) -> None:
        self.add(name, table_bytes(table, name.rpartition(".")[2]))

    def shows(self, sql: str, wanted: list[tuple[Any, ...]]) -> None:
        found: list[tuple[Any, ...]] = []

        def equal() -> bool:
            try:
                found[:] = self.server.query(sql)
            except psycopg.errors.ObjectNotInPrerequisiteState:  # it is being filled
                return False
            return found == wanted

        try:
            self.server.wait_for(equal, WITHIN_S, sql)
        except AssertionError as error:
            raise AssertionError(f"{sql}: {found} is not {wanted}; {self.server.states()}") from error

    def rejected(self, relation: str) -> list[tuple[Any, ...]]:
        return self.server.query(
            f"SELECT position, reason FROM mv_catalog.rejected_rows WHERE relation LIKE '%{relation}' ORDER BY 1"
        )


def table_bytes(table: pa.Table, form: str) -> bytes:
    sink = pa.BufferOutputStream()
    (pq if form == "parquet" else orc).write_table(table, sink)
    return bytes(sink.getvalue())


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with temporary_server() as server:
        zone = {"TZ": "America/New_York"}  # which no answer shows
        server.start(MVSERVER_FILE_POLL_INTERVAL="20ms", MVSERVER_SPARK_START_TIMEOUT="10min", **zone)
        server.run("CREATE STORE f WITH ('type' = FILE, 'uris' = '.')")
        yield Place(server)
        print((server.data.parent / "data.log").read_text()[-9000:])


TYPES = {
    "n": ("BIGINT", pa.array([1, None, -(2**62)], pa.int64()), [1, None, -(2**62)]),
    "small": ("INTEGER", pa.array([1, 2, None], pa.int8()), [1, 2, None]),  # narrower in the file
    "t": ("VARCHAR(5)", pa.array(["ä", "", "12345"]), ["ä", "", "12345"]),
    "d": ("DECIMAL(10, 2)", pa.array([Decimal("1.25"), None, Decimal("-0.01")], pa.decimal128(10, 2)),
          [Decimal("1.25"), None, Decimal("-0.01")]),
    "r": ("DOUBLE", pa.array([0.5, float("inf"), None], pa.float32()), [0.5, float("inf"), None]),
    "b": ("BOOLEAN", pa.array([True, False, None]), [True, False, None]),
    "day": ("DATE", pa.array([dt.date(2026, 1, 2), None, dt.date(1969, 12, 31)]),
            [dt.date(2026, 1, 2), None, dt.date(1969, 12, 31)]),
    "at": ("TIMESTAMP", pa.array([dt.datetime(2026, 7, 1, 12, 0, 0, 5), None, None], pa.timestamp("us")),
           [dt.datetime(2026, 7, 1, 12, 0, 0, 5), None, None]),
    "moment": ("TIMESTAMP_LTZ", pa.array([dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC), None, None],
                                         pa.timestamp("us", "UTC")),
               [dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC), None, None]),
    "list": ("ARRAY<BIGINT>", pa.array([[1, None], None, []], pa.list_(pa.int64())), [[1, None], None, []]),
}  # fmt: skip


TIMES = {  # which ORC does not have, or Arrow does not read from it
    "old": ("TIMESTAMP_LTZ", pa.array([dt.datetime(1, 1, 1), dt.datetime(1582, 10, 10, 0, 0, 0, 1), None],
                                      pa.timestamp("us", "UTC")),
            [dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(1582, 10, 10, 0, 0, 0, 1, dt.UTC), None]),
    "clock": ("TIME", pa.array([dt.time(23, 59, 59, 999999), None, dt.time(0)], pa.time64("us")),
              [dt.time(23, 59, 59, 999999), None, dt.time(0)]),
    "clocks": ("ARRAY<TIME>", pa.array([[dt.time(1, 2, 3, 4), None], None, []], pa.list_(pa.time64("us"))),
               [[dt.time(1, 2, 3, 4), None], None, []]),
}  # fmt: skip


@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_every_type_of_files_with_types(place: Place, form: str) -> None:
    types = TYPES if form == "orc" else {**TYPES, **TIMES}
    table = pa.table({"i": [0, 1, 2], **{name: values for name, (_, values, _) in types.items()}})
    place.add_table(f"types_{form}/a.{form}", table)
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _, _) in types.items())
    names = ", ".join(f'"{name}"' for name in types)
    place.server.run(
        f"CREATE STREAM types_{form} (i BIGINT, {columns}, absent VARCHAR) "
        f"WITH ('store' = 'f', 'value.format' = '{form}')",
        f"CREATE MATERIALIZED VIEW seen_{form} AS SELECT i, {names}, absent FROM types_{form}",
    )
    wanted = [(i, *(shown[i] for _, _, shown in types.values()), None) for i in range(3)]
    place.shows(f"SELECT i, {names}, absent FROM seen_{form} ORDER BY i", wanted)


@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_files_with_types_that_a_query_writes(place: Place, form: str) -> None:
    """Read back by a stream of the server's own, and by pyarrow."""
    types = TYPES if form == "orc" else {**TYPES, **TIMES}
    table = pa.table({"i": [0, 1, 2], **{name: values for name, (_, values, _) in types.items()}})
    place.add_table(f"given_{form}/a.parquet", table)
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _, _) in types.items())
    names = ", ".join(f'"{name}"' for name in types)
    place.server.run(
        f"CREATE STREAM given_{form} (i BIGINT, {columns}) WITH ('store' = 'f', 'value.format' = 'parquet')",
        f"CREATE STREAM made_{form} WITH ('store' = 'f', 'value.format' = '{form}') AS "
        f"SELECT i, {names} FROM given_{form} {EARLIEST}",
        f"CREATE MATERIALIZED VIEW remade_{form} AS SELECT i, {names} FROM made_{form}",
    )
    wanted = [(i, *(shown[i] for _, _, shown in types.values())) for i in range(3)]
    place.shows(f"SELECT i, {names} FROM remade_{form} ORDER BY i", wanted)
    (file,) = (place.folder / f"made_{form}").glob(f"*.{form}")
    read = pq.read_table(file) if form == "parquet" else orc.read_table(file)
    assert read.column("i").to_pylist() == [0, 1, 2]
    assert read.schema.field("d").type == pa.decimal128(10, 2)
    assert read.schema.field("list").type.value_type == pa.int64()


def test_lines_of_csv_and_text_that_a_query_writes(place: Place) -> None:
    place.add("words/a.json", b'{"w": "a, \\"b\\"", "n": 1}\n{"w": "", "n": 2}\n{"w": null, "n": null}\n')
    place.server.run(
        "CREATE STREAM words (w VARCHAR, n BIGINT) WITH ('store' = 'f', 'value.format' = 'json')",
        f"CREATE STREAM fields WITH ('store' = 'f', 'value.format' = 'csv') AS SELECT w, n FROM words {EARLIEST}",
        "CREATE STREAM plain WITH ('store' = 'f', 'value.format' = 'text') AS "
        f"SELECT w FROM words {EARLIEST} WHERE w <> ''",
        "CREATE MATERIALIZED VIEW fields_back AS SELECT w, n FROM fields",
        "CREATE MATERIALIZED VIEW plain_back AS SELECT w, length(w) AS l FROM plain",
    )
    place.shows("SELECT w, n FROM fields_back ORDER BY n NULLS LAST", [('a, "b"', 1), ("", 2), (None, None)])
    place.shows("SELECT w, l FROM plain_back ORDER BY l", [('a, "b"', 6)])
    (csv,), (text,) = (place.folder / "fields").glob("*.csv"), (place.folder / "plain").glob("*.txt")
    assert csv.read_text() == '"a, ""b""",1\n"",2\n,\n'
    assert text.read_text() == 'a, "b"\n'


def test_what_lines_cannot_hold_ends_the_query_that_writes_it(place: Place) -> None:
    place.add("broken/a.json", b'{"w": "a\\nb"}\n')
    place.add("missing/a.json", b'{"w": null}\n')
    place.add("blank/a.json", b'{"w": ""}\n')
    for name, form, told in (
        ("blank", "text", "22000: a blank value cannot be written to a file of lines"),
        ("broken", "csv", "22000: a value with a line break cannot be written to a file of lines"),
        ("missing", "text", '22004: column "w" is NULL, which the format text cannot have as a value'),
    ):
        place.server.run(
            f"CREATE STREAM {name} (w VARCHAR) WITH ('store' = 'f', 'value.format' = 'json')",
            f"CREATE STREAM {name}_lines WITH ('store' = 'f', 'value.format' = '{form}') AS "
            f"SELECT w FROM {name} {EARLIEST}",
        )
        lines = f"{name}_lines"
        ended = lambda lines=lines: place.server.states()[lines][0] == "FAILED"  # noqa: E731
        place.server.wait_for(ended, WITHIN_S, f"{lines} did not fail")
        assert told in (place.server.states()[lines][1] or "")
        assert not list((place.folder / lines).glob("[!.]*"))


def test_an_orc_file_with_other_types_fails_its_query_by_name(place: Place) -> None:
    """Spark alone would show NULL."""
    place.add_table("wrong_orc/a.orc", pa.table({"n": ["x"]}))
    place.server.run(
        "CREATE STREAM wrong_orc (n BIGINT) WITH ('store' = 'f', 'value.format' = 'orc')",
        "CREATE MATERIALIZED VIEW wrong AS SELECT n FROM wrong_orc",
    )
    place.server.wait_for(lambda: place.server.states()["wrong"][0] == "FAILED", WITHIN_S, "it goes on")
    assert 'file "a.orc" does not have the declared types' in (place.server.states()["wrong"][1] or "")
    place.server.run("DROP MATERIALIZED VIEW wrong")


@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_a_file_that_is_not_whole_is_named_and_read_when_it_is(place: Place, form: str) -> None:
    whole = table_bytes(pa.table({"n": [1, 2]}), form)
    place.add(f"half_{form}/a.{form}", whole[:-7])
    place.server.run(
        f"CREATE STREAM half_{form} (n BIGINT) WITH ('store' = 'f', 'value.format' = '{form}')",
        f"CREATE MATERIALIZED VIEW half_{form}_n AS SELECT n FROM half_{form}",
    )
    place.server.wait_for(
        lambda: f'file "a.{form}" is not whole' in (place.server.states()[f"half_{form}_n"][1] or ""),
        WITHIN_S,
        "silent",
    )
    assert place.server.states()[f"half_{form}_n"][0] == "STALLED"
    place.add(f"half_{form}/a.{form}", whole)
    place.shows(f"SELECT n FROM half_{form}_n ORDER BY n", [(1,), (2,)])


def test_lines_of_text(place: Place) -> None:
    place.add("lines/a.txt", "one, {\n\n zwei ß\r\n".encode() + b"\xff\n" + b"\x00\n" + b"three")
    place.server.run(
        "CREATE STREAM lines (line VARCHAR(8)) WITH ('store' = 'f', 'value.format' = 'text')",
        "CREATE MATERIALIZED VIEW seen_lines AS SELECT line, count(*) AS n FROM lines GROUP BY line",
    )
    place.add("lines/b.txt", b"123456789\nthree\n")
    place.shows("SELECT line, n FROM seen_lines ORDER BY line", [(" zwei ß", 1), ("one, {", 1), ("three", 2)])
    place.server.wait_for(lambda: len(place.rejected("lines")) == 3, WITHIN_S, "too few are rejected")
    assert [position for position, _ in place.rejected("lines")] == ["a.txt:4", "a.txt:5", "b.txt:1"]
    for columns in ("a VARCHAR, b VARCHAR", "a BIGINT"):
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="one column of type VARCHAR"):
            place.server.run(f"CREATE STREAM no_lines ({columns}) WITH ('store' = 'f', 'value.format' = 'text')")


FOLDERS = {
    "day=2026-01-01/kind=a%2Fb": 1,
    "day=2026-01-01/kind=+ %25": 2,
    "day=2026-01-02/kind=__HIVE_DEFAULT_PARTITION__": 3,
    "DAY=2026-01-03/kind=ü": 4,
}
KINDS = {1: ("2026-01-01", "a/b"), 2: ("2026-01-01", "+ %"), 3: ("2026-01-02", None), 4: ("2026-01-03", "ü")}


@pytest.mark.parametrize("form", ["json", "orc", *(pytest.param(f, marks=NIGHT) for f in ("csv", "text", "parquet"))])
def test_columns_from_names_of_folders(place: Place, form: str) -> None:
    entity = f"parts_{form}"

    def add(folder: str, number: int) -> None:
        if form in ("parquet", "orc"):
            place.add_table(f"{entity}/{folder}/x.{form}", pa.table({"n": [str(number)]}))
        else:
            content = json.dumps({"n": str(number), "kind": "not this"}) if form == "json" else str(number)
            place.add(f"{entity}/{folder}/x.{form}", content.encode() + b"\n")

    place.server.run(f"CREATE ENTITY {entity} IN STORE f")
    first, *others = FOLDERS.items()
    add(*first)
    place.server.run(
        f"CREATE STREAM {entity} (kind VARCHAR, n VARCHAR, day DATE NOT NULL) "
        f"WITH ('store' = 'f', 'value.format' = '{form}', 'partition.columns' = 'day, kind')",
        f"CREATE MATERIALIZED VIEW seen_{entity} AS SELECT n, day, kind FROM {entity} {EARLIEST}",
    )
    place.shows(f"SELECT n FROM seen_{entity}", [("1",)])
    for folder, number in others:
        add(folder, number)
    add("other/deeper=1", 8)  # no part of the entity
    wanted = [(str(n), dt.date.fromisoformat(day), kind) for n, (day, kind) in KINDS.items()]
    place.shows(f"SELECT n, day, kind FROM seen_{entity} ORDER BY n", wanted)
    add("day=never/kind=c", 5)
    add("day=2026-01-01", 6)
    add("day=__HIVE_DEFAULT_PARTITION__/kind=c", 7)
    place.server.wait_for(lambda: len(place.rejected(entity)) == 3, WITHIN_S, "too few are rejected")
    at = "#0" if form in ("parquet", "orc") else "1"
    assert place.rejected(entity) == [
        (f"day=2026-01-01/x.{form}:{at}", 'the name of the file has no value of partition column "kind"'),
        (f"day=__HIVE_DEFAULT_PARTITION__/kind=c/x.{form}:{at}", 'column "day" is null and must not be'),
        (f"day=never/kind=c/x.{form}:{at}", 'column "day" is not of type DATE: never'),
    ]
    place.server.run(f"REFRESH MATERIALIZED VIEW seen_{entity}")
    place.shows(f"SELECT n, day, kind FROM seen_{entity} ORDER BY n", wanted)


def test_names_with_signs_are_read_and_read_again(place: Place) -> None:
    names = ["[x]{y}*?.json", "a+b %41.json", "ü ß.json"]
    place.server.run("CREATE ENTITY signs IN STORE f")
    place.server.run(
        "CREATE STREAM signs (n BIGINT) WITH ('store' = 'f', 'value.format' = 'json')",
        f"CREATE MATERIALIZED VIEW seen_signs AS SELECT n, rowmetadata()->file AS file FROM signs {EARLIEST}",
    )
    for number, name in enumerate(names):
        place.add(f"signs/{name}", b'{"n": %d}\n{"n": "x"}\n' % number)
    place.shows("SELECT n, file FROM seen_signs ORDER BY n", list(enumerate(names)))
    place.server.wait_for(lambda: len(place.rejected("signs")) == 3, WITHIN_S, "too few are rejected")
    assert sorted(position for position, _ in place.rejected("signs")) == sorted(f"{name}:2" for name in names)
    place.server.run("REFRESH MATERIALIZED VIEW seen_signs")
    place.shows("SELECT n, file FROM seen_signs ORDER BY n", list(enumerate(names)))


WRITTEN = {
    "i": ("BIGINT", [-5, 2**62, None]), "t": ("VARCHAR", ["a/b=%é ", "", "__HIVE_DEFAULT_PARTITION__"]),
    "d": ("DECIMAL(20, 10)", [Decimal("0.0000000001"), Decimal("-7.5000000000"), None]),
    "day": ("DATE", [dt.date(2026, 1, 1), None, dt.date(1, 1, 1)]),
    "at": ("TIMESTAMP", [dt.datetime(2026, 1, 1, 10, 0, 0, 500000), None, dt.datetime(1969, 1, 1)]),
    "z": ("TIMESTAMP_LTZ", [dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC), None, None]),
    "b": ("BOOLEAN", [True, False, None]), "r": ("DOUBLE", [1e300, 0.1, None]),
}  # fmt: skip


@pytest.mark.parametrize("chosen", ["i t day", pytest.param("", marks=NIGHT)])
def test_a_query_writes_folders_that_another_reads(place: Place, chosen: str) -> None:
    """Every type that may be in a folder's name, there and back; and what it leaves goes with the query."""
    types = {name: WRITTEN[name] for name in (chosen or " ".join(WRITTEN)).split()}
    flat, parted = ("flat", "parted") if chosen else ("flat_all", "parted_all")
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in types.items())
    names = ", ".join(f'"{name}"' for name in types)
    rows = [{"n": at, **{name: values[at] for name, (_, values) in types.items()}} for at in range(3)]
    place.add(f"{flat}/a.json", b"".join(json.dumps(row, default=str).encode() + b"\n" for row in rows))
    place.server.run(
        f"CREATE STREAM {flat} (n BIGINT, {columns}) WITH ('store' = 'f', 'value.format' = 'json')",
        f"CREATE STREAM {parted} WITH ('store' = 'f', 'partition.columns' = '" + ",".join(types) + "') AS "
        f"SELECT {names}, n FROM {flat} {EARLIEST}",
        f"CREATE MATERIALIZED VIEW again AS SELECT n, {names} FROM {parted} {EARLIEST}",
    )
    place.shows(f"SELECT n, {names} FROM again ORDER BY n", [tuple(row.values()) for row in rows])
    files = sorted(path for path in (place.folder / parted).rglob("*.json"))
    assert sorted(path.read_bytes() for path in files) == [b'{"n":0}\n', b'{"n":1}\n', b'{"n":2}\n']
    assert any("/t=a%2Fb%3D%25é /" in str(path) for path in files)
    place.add(f"{flat}/b.json", json.dumps({**rows[0], "n": 3}, default=str).encode() + b"\n")
    place.shows("SELECT n, i FROM again WHERE n = 3", [(3, -5)])
    assert len(list((place.folder / parted).glob(".mvserver-*.position"))) == 1
    (query,) = [
        query for query, sink in place.server.query("SELECT id, sink FROM mv_catalog.queries") if parted in sink
    ]
    place.server.run("DROP MATERIALIZED VIEW again", f"TERMINATE QUERY {query}")
    assert len(list((place.folder / parted).glob(".mvserver-*.position"))) == 1
    place.server.run(f"DROP STREAM {parted} CASCADE")
    until(lambda: not list((place.folder / parted).glob(".*")))
    assert len(list((place.folder / parted).rglob("*.json"))) == 4


def test_columns_that_cannot_be_in_names_of_folders(place: Place) -> None:
    declared = "CREATE STREAM refused (a ARRAY<BIGINT>, n BIGINT) WITH ('store' = 'f', 'value.format' = 'json', {})"
    for columns, error in {
        "a": psycopg.errors.DatatypeMismatch,
        "b": psycopg.errors.UndefinedColumn,
    }.items():
        with pytest.raises(error):
            place.server.run(declared.format(f"'partition.columns' = '{columns}'"))
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="names all columns"):
        place.server.run(
            "CREATE STREAM refused (n BIGINT) WITH ('store' = 'f', 'value.format' = 'json', 'partition.columns' = 'n')"
        )


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_files_come_while_it_is_read_and_go_behind_it(place: Place) -> None:
    """A deleted file is no matter to who has read it; a rebuild names it."""
    place.server.run("CREATE ENTITY going IN STORE f")
    place.server.run(
        "CREATE STREAM going (n BIGINT) WITH ('store' = 'f', 'value.format' = 'json')",
        f"CREATE MATERIALIZED VIEW gone AS SELECT count(*) AS c, sum(n) AS s FROM going {EARLIEST}",
    )
    for number in range(1, 41):
        place.add(f"going/{number}.json", b'{"n": %d}\n' % number)
        if number % 10 == 0:
            place.shows("SELECT c, s FROM gone", [(number, number * (number + 1) // 2)])
            (place.folder / "going" / f"{number}.json").unlink()
    Path(place.folder / "going" / ".half.json").write_bytes(b'{"n": 1000')
    place.add("going/last.json", b'{"n": 100}\n')
    place.shows("SELECT c, s FROM gone", [(41, 920)])
    place.server.run("REFRESH MATERIALIZED VIEW gone")
    place.shows("SELECT c, s FROM gone", [(37, 820)])
