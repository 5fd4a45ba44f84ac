"""Poison: one record or one expression that would take the memory or the time of all. The view at fault fails alone, or
the record is rejected; the other views of the same source, and those of another source, go on exactly."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mvserver.compiler import lower_spark
from mvserver.compiler.plans import ErrorHandling
from mvserver.errors import SqlError
from mvserver.streaming.batch.evaluate import row_frame
from mvserver.streaming.batch.plan_check import check_plan
from mvserver.streaming.batch.program import build_program
from mvserver.streaming.batch.rejected import rejected_rows
from mvserver.streaming.pipeline.pipeline import Pipeline, PipelineServices
from mvserver.streaming.pipeline.subscribers import Subscriber
from mvserver.streaming.spark.session import SparkGate
from mvserver.views.finishing import layout_of
from spark_sinks.file.entity_files import DirectoryFiles
from spark_sinks.file.source import FileReader
from spark_sinks.oversize import mark, marked_unless_small, unmarked
from tests.streaming.states import target, writer_in

pytestmark = pytest.mark.spark
WITHIN_S = 240.0
RECORD_BYTES_MAX = 1024 * 1024
BATCH_TIMEOUT_S = 3.0


class Source:
    """A directory, the pipeline over it, and its views by number."""

    def __init__(self, name: str, folder: Path, spark: Any, writer: Any, database: Any, gate: SparkGate) -> None:
        self.name, self.writer, self.database = name, writer, database
        self.directory = folder / name
        self.directory.mkdir()
        self.reader = FileReader(
            DirectoryFiles(self.directory),
            folder / f"{name}-work",
            None,
            poll_s=0.01,
            record_bytes_max=RECORD_BYTES_MAX,
        )
        self.pipeline = Pipeline(
            name,
            self.reader,
            PipelineServices(
                writer=writer,
                gate=gate,
                session=lambda given_up: spark,
                work_directory=folder / f"{name}-pipelines",
                records_per_trigger=100_000,
                committed=lambda ids: None,
                batch_timeout_s=BATCH_TIMEOUT_S,
            ),
        )
        self.views: dict[int, Subscriber] = {}

    def view(self, number: int, sql: str) -> Subscriber:
        made = target(sql, number)
        position = self.reader.adopt({"before": []}, fresh=True)
        with self.writer.transaction() as ledger:
            self.writer.create_state(made.state, layout_of(made))
            ledger.add_subscriber(made.query_id, 1, self.name, position)
        self.views[number] = Subscriber(made, 1, position, ErrorHandling.IGNORE_AND_LOG)
        self.pipeline.add(self.views[number])
        return self.views[number]

    def feed(self, name: str, records: Sequence[object]) -> None:
        content = b"".join((r if isinstance(r, bytes) else json.dumps(r).encode()) + b"\n" for r in records)
        aside = self.directory.parent / "aside"
        aside.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        aside.rename(self.directory / name)

    def rows(self, number: int) -> list[tuple[Any, ...]]:
        with self.database.cursor() as cursor:
            view = f"00000000-0000-0000-0000-{number:012}"
            return list(cursor.execute(f'SELECT * FROM "_views"."{view}" ORDER BY ALL').fetchall())


@pytest.fixture
def sources(tmp_path: Path, spark: Any) -> Iterator[tuple[Source, Source]]:
    with writer_in(tmp_path) as (database, writer):
        gate = SparkGate()
        made = tuple(Source(name, tmp_path, spark, writer, database, gate) for name in ("p1", "p2"))
        yield made[0], made[1]
        for source in made:
            if source.pipeline.started:
                source.pipeline.stop()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_line_that_is_too_long_is_rejected_with_its_position_and_size(sources: tuple[Source, Source]) -> None:
    source, _ = sources
    source.view(1, "SELECT k, count(*) AS n, sum(i) AS s FROM events GROUP BY k")
    source.view(2, "SELECT i, upper(k) AS k FROM events WHERE i > 1")
    source.pipeline.start(None)
    long = b'{"k": "' + b"z" * (6 * 1024 * 1024) + b'", "i": 9}'
    bad = b'{"k": "a", "i": "no number"}'
    source.feed("1.json", [{"k": "a", "i": 1}, long, {"k": "a", "i": 2}, b"", bad, {"k": "b", "i": 3}])
    source.feed("2.json.gz", [long + b" ", {"k": "b", "i": 4}, long])
    source.feed("3.json", [{"k": "a", "i": 5}])
    until(lambda: source.rows(1) == [("a", 3, 8), ("b", 2, 7)])
    until(lambda: source.rows(2) == [(2, "A"), (3, "B"), (4, "B"), (5, "A")])
    rejected = {row[1]: (row[2], bytes(row[3]), row[4]) for row in source.writer.rejected_rows()}
    size = len(long)
    reason = f"the record is too large: it has %d bytes, and at most {RECORD_BYTES_MAX} are read"
    assert rejected["1.json:2"] == (reason % size, long[:65_000], size)
    assert rejected["1.json:5"][1:] == (bad, len(bad))
    assert rejected["2.json.gz:1"] == (reason % (size + 1), long[:65_000], size + 1)
    assert rejected["2.json.gz:3"] == (reason % size, long[:65_000], size)
    assert len(rejected) == 4
    # The same as a new view of what was read before.
    source.view(3, "SELECT count(*) AS n, sum(i) AS s FROM events")
    until(lambda: source.rows(3) == [(5, 15)])


def test_a_message_that_is_too_large_is_marked_in_its_place(spark: Any) -> None:
    frame = spark.createDataFrame([(b"ab",), (b"abcdefgh",), (None,)], "value binary")
    found = [row[0] for row in frame.selectExpr(f"{marked_unless_small('value', 4)} AS value").collect()]
    assert bytes(found[0]) == b"ab"
    assert bytes(found[1]) == mark(b"abcdefgh", 8, 4)
    assert unmarked(bytes(found[1])) == (
        b"abcdefgh",
        8,
        "the record is too large: it has 8 bytes, and at most 4 are read",
    )
    assert found[2] is None


def test_a_message_whose_key_is_too_large_is_rejected_where_nothing_decodes_the_key(spark: Any) -> None:
    """Else the mark would be taken for the key: by a query that writes to a topic, or by rowkey()."""
    value = b'{"k": "a", "i": 1}'
    frame = spark.createDataFrame(
        [(b"k" * 30, value, "0:1"), (b"k", value, "0:2"), (b"k" * 30, None, "0:3"), (None, value, "0:4")],
        "key binary, value binary, position string",
    )
    program = build_program([target("SELECT i, rowkey() AS key FROM events")])
    read = frame.selectExpr(
        f"{marked_unless_small('key', 20)} AS key",
        f"{marked_unless_small('value', 20, 'key')} AS value",
        "position",
        "timestamp_seconds(0) AS record_time",
    )
    table = row_frame(read, program, None).toArrow()
    rows, counts = rejected_rows(table, program.rejected, cast(Any, SimpleNamespace(rejected_positions=_positions)))
    assert sum(counts.values()) == 2
    assert [(row.position, row.raw, row.reason) for row in rows] == [
        (place, b"k" * 30, "the record is too large: it has 30 bytes, and at most 20 are read")
        for place in ("0:1", "0:3")
    ]
    passing = table.filter(table.column(program.views[0].flag))
    assert passing.column(program.views[0].outputs[1]).to_pylist() == ["k", None]


def _positions(records: Sequence[tuple[str, bytes | None]]) -> Sequence[str]:
    return [position for position, _ in records]


@pytest.mark.parametrize(
    ("pattern", "sqlstate"),
    [
        ("a(", "2201B"),
        ("((a{100}){100}){100}", "2201B"),
        ("a{1001}", "2201B"),
        ("[[:alpha:]]+", None),
        ("a++", "2201B"),
    ],
)
def test_a_pattern_is_checked_when_the_query_is_made(spark: Any, pattern: str, sqlstate: str | None) -> None:
    plan = target(f"SELECT i FROM events WHERE k ~ '{pattern}'").plan
    if sqlstate is None:
        check_plan(spark, plan)
        return
    with pytest.raises(SqlError) as caught:
        check_plan(spark, plan)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize("pattern", ["a(?=b)", "a(?!b)", "(?<=a)b", "(?<!a)b", "(a)\\1", "(?>a)b"])
def test_patterns_that_need_backtracking_are_refused(pattern: str) -> None:
    with pytest.raises(SqlError) as caught:
        build_program([target(f"SELECT i FROM events WHERE k ~ '{pattern}'")])
    assert caught.value.sqlstate == "0A000"
    assert caught.value.hint


@pytest.mark.parametrize("pattern", ["[(?=]", "\\\\1", "\\(?", "a[\\]1]"])
def test_patterns_that_only_look_like_those_are_not(pattern: str) -> None:
    build_program([target(f"SELECT i FROM events WHERE k ~ '{pattern}'")])


GROWING = (
    "repeat(k, 100000000)",
    "repeat(k, i * 100000)",
    "repeat(repeat(k, 4000), i)",
    "replace(replace(replace(k, 'a', repeat('b', 1000)), 'b', repeat('c', 1000)), 'c', repeat('d', 1000))",
    "lpad(k, i * 100000)",
    "rpad(k, 100000000, 'xy')",
    "space(i * 100000)",
    "regexp_replace(repeat(k, 1000), 'a', repeat('b', 10000), 'g')",
    "concat(repeat(k, 60000), repeat(k, 60000), repeat(k, 60000), repeat(k, 60000), repeat(k, 60000))",
    "concat_ws(repeat(k, 60000), k, k, k, k, k, k, k)",
    "repeat(k, 60000) || repeat(k, 60000) || repeat(k, 60000) || repeat(k, 60000) || repeat(k, 60000)",
    "array_to_string(string_to_array(repeat('x,', 4000), ','), repeat(k, 100))",
)


def test_results_that_grow_fail_their_view_alone(sources: tuple[Source, Source]) -> None:
    source, other = sources
    source.view(1, "SELECT k, sum(i) AS s FROM events GROUP BY k")
    other.view(2, "SELECT sum(i) AS s FROM events")
    poison = source.view(3, "SELECT length(repeat(repeat(k, 4000), i)) AS n FROM events")
    unwanted = source.view(4, "SELECT length(repeat(repeat(k, 4000), i)) AS n FROM events WHERE i < 5")
    for each in sources:
        each.pipeline.start(None)
        each.feed("1.json", [{"k": "aaaa", "i": 800}, {"k": "bbbb", "i": 900}, {"k": "aaaa", "i": 2}])
    until(lambda: source.rows(1) == [("aaaa", 802), ("bbbb", 900)] and other.rows(2) == [(1702,)])
    assert poison.failure == "54000: requested length too large"
    assert unwanted.failure is None
    assert source.rows(4) == [(32_000,)]
    # Each of them may be made, but not all of a batch together.
    many = source.view(5, "SELECT repeat(k, i * 300) AS v FROM events WHERE i = 800")
    until(lambda: [len(row[0]) for row in source.rows(5)] == [960_000])
    source.feed("2.json", [{"k": "aaaa", "i": 800}] * 400)
    until(lambda: source.rows(1) == [("aaaa", 320_802), ("bbbb", 900)])
    assert many.failure is not None
    assert many.failure.startswith("54000: the rows of a batch come to more bytes than Spark may send")
    assert len(source.rows(5)) == 1


@pytest.mark.parametrize("expression", GROWING)
def test_results_that_grow_are_measured_before_they_are_made(spark: Any, expression: str) -> None:
    frame = spark.createDataFrame([("aaaa", 800)], "k string, i int").repartition(1)
    plan = target(f"SELECT {expression} AS v FROM events").plan
    text = lower_spark.lower(plan.outputs[0].expression, lambda name: name)
    with pytest.raises(Exception, match="mvserver:54000:requested length too large"):
        frame.selectExpr(f"{text} AS v").selectExpr("length(v)").collect()


@pytest.mark.parametrize(
    "expression",
    [
        "upper(k) || '-' || lower(k) || '-' || k",
        "repeat(k, 5)",
        "replace(k, 'abc', 'x')",
        "lpad(k, 20)",
        "concat(k, i, x, l)",
        "concat_ws(',', k, i, k)",
        "array_to_string(string_to_array(k, ','), ';')",
    ],
)
def test_what_cannot_grow_is_left_to_spark(expression: str) -> None:
    plan = target(f"SELECT {expression} AS v FROM events").plan
    assert "mv_" not in lower_spark.lower(plan.outputs[0].expression, lambda name: name)


def test_an_array_of_many_grown_texts_is_refused() -> None:
    many = ", ".join(["repeat(k, i)"] * 100)
    with pytest.raises(SqlError) as caught:
        build_program([target(f"SELECT ARRAY[{many}] AS v FROM events")])
    assert caught.value.sqlstate == "54001"


def test_patterns_that_backtrack_take_no_time(sources: tuple[Source, Source]) -> None:
    source, _ = sources
    patterns = ("(.*a){25}!", "(a*)*b", "(a|aa)+$", "a*a*a*a*a*b", "(x+x+)+y")
    for number, pattern in enumerate(patterns):
        source.view(number, f"SELECT i, k ~ '{pattern}' AS m FROM events")
    source.view(20, "SELECT i, k LIKE '%a%a%a%a%a%a%a%b' AS m FROM events")
    source.view(21, "SELECT i, k SIMILAR TO '(%a){20}b' AS m FROM events")
    source.view(22, "SELECT i, k ~ ('(.*a)' || '{25}!') AS m, k LIKE ('%a%a%a%a%a%' || 'b') AS l FROM events")
    source.view(23, "SELECT i, length(regexp_replace(k, '(a*)*b', '', 'g')) AS n FROM events")
    source.view(24, "SELECT i, split_index(k, '\\E(.*a){25}!', 0) IS NULL AS n FROM events")
    source.pipeline.start(None)
    source.feed("1.json", [{"k": "a" * 30_000, "i": 1}, {"k": "a" * 50, "i": 2}])
    until(lambda: all(len(source.rows(number)) == 2 for number in source.views))
    for number, found in enumerate([False, False, True, False, False]):
        assert source.rows(number) == [(1, found), (2, found)]
    assert source.rows(20) == source.rows(21) == [(1, False), (2, False)]
    assert source.rows(22) == [(1, False, False), (2, False, False)]
    assert source.rows(23) == [(1, 30_000), (2, 50)]
    assert all(view.failure is None for view in source.views.values())


@pytest.mark.night
def test_a_batch_without_end_fails_its_view_alone_and_a_drop_ends_it(
    sources: tuple[Source, Source], spark: Any
) -> None:
    """A pattern of 6,000 steps over a text of 900,000 characters takes minutes even without backtracking."""
    source, other = sources
    slow = "SELECT count(*) AS n FROM events WHERE k ~ '(x+x+x+){300}y'"
    source.view(1, "SELECT sum(i) AS s FROM events")
    poison = source.view(2, slow)
    other.view(3, "SELECT sum(i) AS s FROM events")
    for each in sources:
        each.pipeline.start(None)
        each.feed("1.json", [{"k": "a", "i": i} for i in range(100)])
    until(lambda: source.rows(1) == [(4950,)] and other.rows(3) == [(4950,)] and source.rows(2) == [(0,)])
    source.feed("2.json", [{"k": "a", "i": 1}, {"k": "x" * 900_000, "i": 2}, {"k": "a", "i": 3}])
    stalled: list[str] = []

    def failed() -> bool:
        if source.pipeline.stalled:
            stalled.append(source.pipeline.stalled)
        return poison.failure is not None

    other.feed("2.json", [{"k": "a", "i": 50}])
    until(lambda: other.rows(3) == [(5000,)])
    until(failed)
    assert poison.failure is not None
    assert "took longer than 3 s" in poison.failure
    assert any("has been evaluated for" in words for words in stalled)
    until(lambda: source.rows(1) == [(4956,)])
    until(lambda: source.pipeline.stalled is None)
    # Its task ends too.
    until(lambda: not _active_tasks(spark, idle=other))
    # Dropped while its batch runs: the others go on at once, and nothing is left at work.
    again = source.view(4, slow)
    until(lambda: _active_tasks(spark, idle=other))
    source.pipeline.remove(again.query_id)
    until(lambda: not _active_tasks(spark, idle=other))
    source.feed("3.json", [{"k": "a", "i": 4}])
    until(lambda: source.rows(1) == [(4960,)])


def _active_tasks(spark: Any, idle: Source) -> bool:
    """Whether tasks are at work in Spark's executor itself, not only by the scheduler's word."""
    threads = spark.sparkContext._jvm.java.lang.Thread.getAllStackTraces()
    return any(
        "Bounded" in str(frame.getClassName())
        for thread in threads
        if str(thread.getName()).startswith("Executor task launch worker")
        for frame in threads[thread]
    )
