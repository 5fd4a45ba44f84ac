"""Functions in jars on a real server: values by hand, exceptions that fail a view alone, isolation, kills."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg import Error

from tests.faults.live import LiveServer, temporary_server
from tests.java_functions import lenses_jar
from tests.java_functions.compiled import jar
from tests.java_functions.statements import FARM_SOURCE, SOURCE, create, farm
from tests.python_functions.test_live import _processes, feed, stream

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        live.start()
        folder: Path = live.data / "store-config"
        (folder / "shop.jar").write_bytes(jar())
        (folder / "other.jar").write_bytes(jar("2"))
        (folder / "unused.jar").write_bytes(jar("3"))
        (folder / "farm.jar").write_bytes(lenses_jar.jar())
        live.run("CREATE STORE f WITH ('type' = FILE, 'uris' = '.')", SOURCE, FARM_SOURCE)
        yield live


def expect(server: LiveServer, view: str, rows: list[tuple[object, ...]]) -> None:
    wanted = sorted(rows, key=str)
    server.wait_for(lambda: sorted(server.query(f"SELECT * FROM {view}"), key=str) == wanted, 120, f"{view}: {wanted}")


def test_values_of_all_types(server: LiveServer) -> None:
    stream(
        server, "typed",
        "w VARCHAR, n BIGINT, i INTEGER, p DECIMAL(10, 2), d DATE, t TIME, z TIMESTAMP_LTZ, l TIMESTAMP, b BOOLEAN, "
        "f FLOAT, s TINYINT, x VARBINARY",
    )  # fmt: skip
    server.run(
        create("Shout", rest="STRICT", name="shout"),
        create("Inherits", rest="STRICT", name="inherits"),
        create("Twice", "n BIGINT", "BIGINT", "STRICT", "twice"),
        create("Flink", "a INTEGER, b INTEGER", "INTEGER", name="first"),
        create("Answer", "", "INTEGER", name="answer"),
        create("Counts", rest="STRICT", result="INTEGER", name="counts"),
        create("Price", "p DECIMAL(10, 2)", "DECIMAL(12, 2)", "STRICT", "taxed"),
        create("Letters", result="ARRAY<VARCHAR>", rest="STRICT", name="letters"),
        create("Days", "d DATE", "DATE", "STRICT", "days"),
        create("Clock", "t TIME", "TIME", "STRICT", "clock"),
        create("Moment", "z TIMESTAMP_LTZ", "TIMESTAMP_LTZ", "STRICT", "moment"),
        create("Local", "l TIMESTAMP", "TIMESTAMP", "STRICT", "localized"),
        create("Bytes", "x VARBINARY", "VARBINARY", "STRICT", "bytes"),
        create("Flag", "b BOOLEAN", "BOOLEAN", "STRICT", "flag"),
        create("Half", "f FLOAT", "DOUBLE", "STRICT", "halved"),
        create("Small", "s TINYINT", "SMALLINT", "STRICT", "small"),
        create("Middle", '"values" ARRAY<BIGINT>', "BIGINT", "STRICT", "middle"),
        "CREATE MATERIALIZED VIEW typed_rows AS SELECT shout(w) AS w, inherits(w) AS h, twice(n) AS n, "
        "first(i, 7) AS i, answer() AS a, counts(w) AS c, taxed(p) AS p, letters(w)[1] AS l, days(d) AS d, "
        "clock(t) AS t, moment(z) AS z, localized(l) AS lo, bytes(x) AS x, flag(b) AS b, halved(f) AS f, "
        "small(s) AS s FROM typed",
        "CREATE MATERIALIZED VIEW typed_groups AS SELECT count(*) AS c, middle(array_agg(n)) AS m, "
        "twice(max(n)) AS t FROM typed WHERE answer() = 42",
    )
    feed(
        server, "typed", "a.json",
        [
            {"w": "Größe", "n": 4, "i": None, "p": "10.10", "d": "1582-10-04", "t": "22:59:59.5",
             "z": "1969-12-31 23:59:59.999Z", "l": "2020-02-28 01:02:03.000004", "b": True, "f": 0.5, "s": -64,
             "x": "/wE="},
            {},
        ],
    )  # fmt: skip
    expect(server, "typed_groups", [(2, 4, 8)])
    rows = sorted(server.query("SELECT * FROM typed_rows"), key=str)
    assert [tuple(map(str, row)) for row in rows] == [
        (
            "GRÖSSE!", "GRÖSSE!", "8", "7", "42", "5", "12.07", "G", "1582-10-05", "23:59:59.500000",
            "1970-01-01 00:00:00+00:00", "2021-02-28 01:02:03.000004", str(b"\xff\x00"), "False", "0.25", "-128",
        ),
        ("None", "None", "None", "7", "42", *["None"] * 11),
    ]  # fmt: skip


ECHOED = {
    "VARCHAR": ("w", "Größe"), "BOOLEAN": ("b", True), "TINYINT": ("s", -64), "INTEGER": ("i", 7), "BIGINT": ("n", 4),
    "FLOAT": ("f", 0.5), "DOUBLE": ("g", 20.0), "DECIMAL(10, 2)": ("p", "10.10"), "TIME": ("t", "22:59:59.500000"),
    "TIMESTAMP": ("l", "1602-02-28 01:02:03.000004"), "TIMESTAMP_LTZ": ("z", "1969-12-31 23:59:59.999000+00:00"),
    "VARBINARY": ("x", b"\xff\x01"),
}  # fmt: skip


def test_functions_by_the_interfaces_of_lenses(server: LiveServer) -> None:
    stream(server, "farmed", ", ".join(f"{column} {type_}" for type_, (column, _) in ECHOED.items()))
    echoes = {f"echo_{column}": (column, type_) for type_, (column, _) in ECHOED.items()}
    server.run(
        *(farm("Echo", f"a {type_}", type_, name) for name, (_, type_) in echoes.items()),
        *(farm("Echo", f"a {type_}", type_, f"may_{name}", "") for name, (_, type_) in echoes.items()),
        farm("Fahrenheit", "c DOUBLE", "DOUBLE", "fahrenheit"),
        farm("Below", "w VARCHAR", "VARCHAR", "below", ""),
        farm("Times", "a DECIMAL(10, 2), b DECIMAL(10, 2)", "DECIMAL(12, 1)", "times"),
        farm("Between", "x BIGINT, a BIGINT, b BIGINT", "BOOLEAN", "is_between"),
        farm("Names", "w VARCHAR, n BIGINT", "ARRAY<VARCHAR>", "names"),
        farm("Names", "w VARCHAR, n BIGINT, d DOUBLE", "ARRAY<VARCHAR>", "names", ""),
        farm("Echo", "a ARRAY<BIGINT>", "ARRAY<BIGINT>", "echo_list", ""),
        farm("Mean", "n BIGINT, least INTEGER", "DOUBLE", "mean", what="AGGREGATE"),
        farm("Mean", "n BIGINT", "DOUBLE", "mean_of_all", what="AGGREGATE"),
        farm("Last", "w VARCHAR", "VARCHAR", "in_order", what="AGGREGATE"),
        f"CREATE MATERIALIZED VIEW echoed AS SELECT {', '.join(f'{f}({c})' for f, (c, _) in echoes.items())} "
        "FROM farmed WHERE n IS NOT NULL",
        f"CREATE MATERIALIZED VIEW may_be AS SELECT {', '.join(f'may_{f}({c})' for f, (c, _) in echoes.items())} "
        "FROM farmed",
        "CREATE MATERIALIZED VIEW farm_rows AS SELECT fahrenheit(g) AS f, below(w) AS b, times(p, p) AS t, "
        "is_between(n, 1, 4) AS i, names(w, n)[2] AS n, names(w, n, g)[3] AS o, echo_list(ARRAY[n, NULL]) AS l "
        "FROM farmed",
        "CREATE MATERIALIZED VIEW farm_groups AS SELECT w, mean(n, 3) AS m, mean(n, 100) AS none, mean_of_all(n) AS a, "
        "in_order(w) FILTER (WHERE n < 5) AS o FROM farmed GROUP BY w",
    )
    row = dict(ECHOED.values()) | {"x": "/wE=", "z": "1969-12-31 23:59:59.999Z"}
    others = [{"w": "Größe", "n": n} for n in (1, 9)]
    feed(server, "farmed", "a.json", [row, {}, *others])
    expect(server, "farm_groups", [("Größe", 6.5, None, 14 / 3, ",Größe,Größe"), (None, None, None, None, None)])
    shown = [str(value) for _, value in ECHOED.values()]
    first = [tuple(map(str, each)) for each in server.query("SELECT * FROM echoed WHERE echo_b")]
    assert first == [tuple(shown)]
    rows = [tuple(map(str, each)) for each in server.query("SELECT * FROM may_be")]
    sparse = [("Größe", *["None"] * 3, n, *["None"] * 7) for n in "19"]
    assert sorted(rows) == sorted([tuple(shown), ("None",) * 12, *sparse])
    rows = [tuple(map(str, each)) for each in server.query("SELECT * FROM farm_rows")]
    assert sorted(rows) == sorted(
        [
            ("68.0", "Größe!", "102.0", "True", "LTLong", "LTOptional", "[4, None]"),
            ("None", "nothing", "None", "None", "None", "LTOptional", "[None, None]"),
            ("None", "Größe!", "None", "True", "LTLong", "LTOptional", "[1, None]"),
            ("None", "Größe!", "None", "False", "LTLong", "LTOptional", "[9, None]"),
        ]
    )


def test_what_a_class_of_lenses_refuses_changes_nothing(server: LiveServer) -> None:
    stream(server, "refusing", "w VARCHAR, n BIGINT")
    server.run(
        farm("Fahrenheit", "w VARCHAR", "DOUBLE", "of_text"),
        farm("Fahrenheit", "d DOUBLE", "BIGINT", "to_whole"),
        farm("Raises", "w VARCHAR", "VARCHAR", "raises"),
        farm("Mean", "n BIGINT, least INTEGER", "DOUBLE", "mean_from", what="AGGREGATE"),
        "CREATE MATERIALIZED VIEW v_raises AS SELECT raises(w) AS r FROM refusing WHERE w <> 'lie'",
        "CREATE MATERIALIZED VIEW v_lies AS SELECT raises(w) AS r FROM refusing WHERE w = 'lie'",
    )
    for call, sqlstate, words in (
        ("of_text(w)", "42P13", "a DOUBLE is wanted, and not LTString"),
        ("to_whole(CAST(n AS DOUBLE))", "42P13", "it says that its answer is of type LTDouble"),
        ("mean_from(n, CAST(n AS INTEGER))", "22023", "arguments of aggregate mean_from behind the first must be"),
    ):
        with pytest.raises(Error) as raised:
            server.run(f"CREATE MATERIALIZED VIEW wrong AS SELECT {call} AS x FROM refusing")
        assert raised.value.sqlstate == sqlstate
        assert words in f"{raised.value.diag.message_primary} {raised.value.diag.message_detail}"
    assert "wrong" not in server.states()
    feed(server, "refusing", "a.json", [{"w": "word", "n": 1}, {"w": "lie", "n": 1}])
    for view, words in (
        ("v_raises", "38000: function raises: io.lenses.sql.udf.UdfException: a bad word"),
        ("v_lies", "22000: function raises: it answered with java.lang.Long instead of VARCHAR"),
    ):
        server.wait_for(lambda view=view: server.states()[view][0] == "FAILED", 120, view)
        assert words in (server.states()[view][1] or "")


BAD = {
    "Raises": ("VARCHAR", "VARCHAR", "38000: function bad_raises: java.lang.IllegalStateException: a bad word"),
    "Deep": ("VARCHAR", "VARCHAR", "38000: function bad_deep: java.lang.StackOverflowError"),
    "Nul": ("VARCHAR", "VARCHAR", "22021: function bad_nul: its answer has the character 0x00"),
    "Mixed": ("VARCHAR", "ARRAY<BIGINT>", "22000: function bad_mixed: it answered with java.lang.Integer in a list"),
    "Great": ("DECIMAL(5, 2)", "DECIMAL(5, 2)",
              "22003: function bad_great: its answer is out of range for type DECIMAL(5, 2)"),
    "Twice": ("BIGINT", "BIGINT", "38000: function bad_twice: java.lang.ArithmeticException: long overflow"),
}  # fmt: skip


def test_what_a_function_throws_fails_its_view_alone(server: LiveServer) -> None:
    stream(server, "bad", "w VARCHAR, n BIGINT, p DECIMAL(5, 2)")
    for name, (given, result, _) in BAD.items():
        function, column = f"bad_{name.lower()}", {"VARCHAR": "w", "BIGINT": "n"}.get(given, "p")
        server.run(
            create(name, f"a {given}", result, "STRICT", function),
            f"CREATE MATERIALIZED VIEW v_{function} AS SELECT {function}({column}) AS r FROM bad",
        )
    server.run("CREATE MATERIALIZED VIEW v_good AS SELECT count(*) AS c FROM bad")
    feed(server, "bad", "a.json", [{"w": "bad", "n": 2**62, "p": "999.99"}])
    expect(server, "v_good", [(1,)])
    for name, (_, _, words) in BAD.items():
        view = f"v_bad_{name.lower()}"
        server.wait_for(lambda view=view: server.states()[view][0] == "FAILED", 120, view)
        assert words in (server.states()[view][1] or "")
    feed(server, "bad", "b.json", [{"w": "good", "n": 1, "p": "0"}])
    expect(server, "v_good", [(2,)])


def test_jars_do_not_see_each_other_nor_spark(server: LiveServer) -> None:
    stream(server, "isolated", "w VARCHAR")
    server.run(
        "CREATE FUNCTION_SOURCE other WITH ('file' = 'other.jar')",
        create("Version", name="one"),
        create("Version", name="two").replace("'shop',", "'other',"),
        create("Spark", name="seen"),
        "CREATE MATERIALIZED VIEW versions AS SELECT one(w) AS a, two(w) AS b FROM isolated",
        "CREATE MATERIALIZED VIEW classes AS SELECT seen('java.util.List') AS a, "
        "CASE WHEN w = 'x' THEN seen('org.apache.spark.SparkContext') END AS b FROM isolated",
    )
    feed(server, "isolated", "a.json", [{"w": "v"}])
    expect(server, "versions", [("v1", "v2")])
    expect(server, "classes", [("java.util.List", None)])
    feed(server, "isolated", "b.json", [{"w": "x"}])
    server.wait_for(lambda: server.states()["classes"][0] == "FAILED", 120, "a jar sees Spark")
    assert "java.lang.ClassNotFoundException: org.apache.spark.SparkContext" in (server.states()["classes"][1] or "")


def test_a_jar_that_is_dropped_before_a_task_has_used_it_hinders_nobody(server: LiveServer) -> None:
    stream(server, "silent", "w VARCHAR")
    stream(server, "after", "w VARCHAR")
    server.run(
        "CREATE FUNCTION_SOURCE unused WITH ('file' = 'unused.jar')",
        create("Version", name="unused_version").replace("'shop',", "'unused',"),
        "CREATE MATERIALIZED VIEW unused_versions AS SELECT unused_version(w) AS v FROM silent",
        "DROP FUNCTION unused_version CASCADE",
        "DROP FUNCTION_SOURCE unused",
        "CREATE MATERIALIZED VIEW of_others AS SELECT count(*) AS c FROM after",
    )
    feed(server, "after", "a.json", [{"w": "v"}])
    expect(server, "of_others", [(1,)])


def test_a_killed_jvm_and_a_restart_lose_and_double_nothing(server: LiveServer) -> None:
    stream(server, "steady", "n BIGINT")
    server.run(
        create("Twice", "n BIGINT", "BIGINT", "STRICT", "doubled"),
        "CREATE MATERIALIZED VIEW steady_sum AS SELECT count(*) AS c, sum(doubled(n)) AS s FROM steady",
    )
    feed(server, "steady", "a.json", [{"n": n} for n in range(100)])
    expect(server, "steady_sum", [(100, 9900)])
    for pid in _processes(server, b"SparkSubmit"):
        os.kill(pid, signal.SIGKILL)
    feed(server, "steady", "b.json", [{"n": n} for n in range(100, 200)])
    server.wait_for(lambda: server.query("SELECT * FROM steady_sum") == [(200, 39800)], 240, "after the JVM's death")
    server.kill()
    (server.data / "store-config" / "shop.jar").unlink()  # what is kept is the server's own
    server.start()
    feed(server, "steady", "c.json", [{"n": n} for n in range(200, 300)])
    server.wait_for(lambda: server.query("SELECT * FROM steady_sum") == [(300, 89700)], 240, "after the restart")
