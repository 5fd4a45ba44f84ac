"""Functions of one's own on a real server: values by hand, views that fail alone, kills, a restart."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.faults.live import LiveServer, temporary_server

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        live.start(MVSERVER_FUNCTION_TIMEOUT="3s", SECRET_OF_TEST="not for functions")
        live.run("CREATE STORE f WITH ('type' = FILE, 'uris' = '.')")
        yield live


def feed(server: LiveServer, entity: str, name: str, rows: Sequence[dict[str, Any]]) -> None:
    folder = server.data / "files" / entity
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
    hidden.rename(folder / name)


def stream(server: LiveServer, name: str, columns: str) -> None:
    server.run(f"CREATE STREAM {name} ({columns}) WITH ('store' = f, 'topic' = '{name}', 'value.format' = json)")


ROWS = [
    {"n": 1, "word": "one", "price": "1.25", "at": 1_700_000_000_000},
    {"n": 2, "word": "two", "price": None, "at": None},
    {"n": None, "word": "Größe", "price": "7", "at": 0},
]
COLUMNS = "n BIGINT, word VARCHAR, price DECIMAL(10, 2), at TIMESTAMP_LTZ"


def test_values_of_all_types_are_those_written_by_hand(server: LiveServer) -> None:
    feed(server, "typed", "a.json", [{**row, "at": None} for row in ROWS])
    stream(server, "typed", COLUMNS)
    server.run(
        "CREATE FUNCTION twice(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON STRICT AS $$ return n * 2 $$",
        "CREATE FUNCTION shout(word VARCHAR, n BIGINT) RETURNS VARCHAR LANGUAGE PYTHON AS $$\n"
        "mark = '!' * (n or 0)\nreturn f'{word.upper()}{mark}'\n$$",
        "CREATE FUNCTION taxed(price DECIMAL(10, 2)) RETURNS DECIMAL(12, 3) LANGUAGE PYTHON "
        "RETURNS NULL ON NULL INPUT AS $$\nfrom decimal import Decimal\nreturn price * Decimal('1.19')\n$$",
        "CREATE FUNCTION letters(word VARCHAR) RETURNS ARRAY<VARCHAR> LANGUAGE PYTHON AS $$return sorted(set(word))$$",
        "CREATE FUNCTION answer() RETURNS INTEGER LANGUAGE PYTHON IMMUTABLE AS $$ return 42 $$",
        "CREATE FUNCTION twice(word VARCHAR) RETURNS VARCHAR LANGUAGE PYTHON AS $$ return word + word $$",
        "CREATE MATERIALIZED VIEW typed_rows AS SELECT n, twice(n) AS n2, shout(word, n) AS loud, taxed(price) AS tax, "
        "letters(word)[1] AS first, answer() AS a, public.twice(twice(word)) AS w4 FROM typed WHERE answer() = 42",
        "CREATE MATERIALIZED VIEW typed_groups AS SELECT twice(n) AS k, count(*) AS c, max(shout(word, n)) AS m "
        "FROM typed GROUP BY twice(n)",
        "CREATE MATERIALIZED VIEW over_it AS SELECT n2 + 1 AS n3, loud FROM typed_rows",
    )
    found = sorted(server.query("SELECT * FROM typed_rows"), key=str)
    assert [tuple(map(str, row)) for row in found] == [
        ("1", "2", "ONE!", "1.488", "e", "42", "oneoneoneone"),
        ("2", "4", "TWO!!", "None", "o", "42", "twotwotwotwo"),
        ("None", "None", "GRÖSSE", "8.330", "G", "42", "GrößeGrößeGrößeGröße"),
    ]
    assert sorted(server.query("SELECT * FROM typed_groups"), key=str) == [
        (2, 1, "ONE!"), (4, 1, "TWO!!"), (None, 1, "GRÖSSE"),
    ]  # fmt: skip
    assert sorted(server.query("SELECT * FROM over_it"), key=str) == [(3, "ONE!"), (5, "TWO!!"), (None, "GRÖSSE")]


BAD = {
    "raises": ("BIGINT", "return 1 // (n - 5)", "38000: function raises: ZeroDivisionError"),
    "wrong": ("BIGINT", "return 'text' if n == 5 else 1", "22000: function wrong: it answered with str where int"),
    "outside": ("INTEGER", "return 2 ** (n * 10)", "22003: function outside: its answer is out of range"),
    "endless": ("BIGINT", "while n == 5: pass\nreturn 1", "57014: function endless took longer than 3 s"),
    "greedy": ("BIGINT", "return len(bytes(10 ** 10)) if n == 5 else 1", "53200: function greedy needs more than"),
    "growing": ("VARCHAR", "return 'x' * 10 ** 7 if n == 5 else ''", "54000: function growing: its answer is longer"),
    "ends": (
        "BIGINT",
        "if n == 5: __import__('os')._exit(3)\nreturn 1",
        "38000: function ends ended its process: status",
    ),
    "crashes": (
        "BIGINT",
        "if n == 5: __import__('os').abort()\nreturn 1",
        "38000: function crashes ended its process: sig",
    ),
    "reads": ("VARCHAR", "return open('/etc/hostname').read()", "38000: function reads: PermissionError"),
    "calls": ("BIGINT", "__import__('_socket').socket()\nreturn 1", "38000: function calls: "),
    "forks": ("BIGINT", "return __import__('posix').fork()", "38000: function forks: PermissionError"),
    "exits": ("BIGINT", "raise SystemExit(n)", "38000: function exits: SystemExit"),
    "deep": ("BIGINT", "def g(n): return g(n)\nreturn g(n)", "38000: function deep: RecursionError"),
    "half": ("VARCHAR", "return '\\ud800'", "22021: function half: its answer has half of a surrogate pair"),
}


def test_each_bad_function_fails_its_view_alone(server: LiveServer) -> None:
    stream(server, "many", "n BIGINT")
    server.run("CREATE MATERIALIZED VIEW neighbour AS SELECT count(*) AS c, sum(n) AS s FROM many")
    server.run("CREATE FUNCTION fine(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$ return n + 1 $$")
    server.run("CREATE MATERIALIZED VIEW good AS SELECT sum(fine(n)) AS s FROM many")
    for name, (result, body, _) in BAD.items():
        server.run(f"CREATE FUNCTION {name}(n BIGINT) RETURNS {result} LANGUAGE PYTHON AS $$\n{body}\n$$")
        server.run(f"CREATE MATERIALIZED VIEW v_{name} AS SELECT n, {name}(n) AS x FROM many")
    feed(server, "many", "a.json", [{"n": n} for n in range(10)])
    for name, (_, _, words) in BAD.items():
        server.wait_for(lambda name=name: server.states()[f"v_{name}"][0] == "FAILED", 240, f"{name} did not fail")
        assert words in (server.states()[f"v_{name}"][1] or ""), name
    feed(server, "many", "b.json", [{"n": n} for n in range(10, 20)])
    server.wait_for(lambda: server.query("SELECT * FROM neighbour") == [(20, 190)], 120, "the neighbour stands still")
    server.wait_for(lambda: server.query("SELECT * FROM good") == [(210,)], 120, "the good one stands still")
    assert {server.states()[name][0] for name in ("neighbour", "good")} == {"RUNNING"}


def test_an_error_counts_only_where_the_value_does(server: LiveServer) -> None:
    feed(server, "guarded", "a.json", [{"n": n} for n in range(4)])
    stream(server, "guarded", "n BIGINT")
    server.run(
        "CREATE FUNCTION inverse(n BIGINT) RETURNS DOUBLE LANGUAGE PYTHON AS $$ return 1 / n $$",
        "CREATE MATERIALIZED VIEW guarded_case AS "
        "SELECT n, CASE WHEN n > 0 THEN inverse(n) ELSE -1 END AS x FROM guarded",
        "CREATE MATERIALIZED VIEW guarded_where AS SELECT inverse(n) AS x FROM guarded WHERE n > 0",
    )
    assert sorted(server.query("SELECT * FROM guarded_case")) == [(0, -1.0), (1, 1.0), (2, 0.5), (3, 1 / 3)]
    assert sorted(server.query("SELECT * FROM guarded_where")) == [(1 / 3,), (0.5,), (1.0,)]


def test_the_environment_of_the_server_is_not_visible(server: LiveServer) -> None:
    feed(server, "one", "a.json", [{"n": 1}])
    stream(server, "one", "n BIGINT")
    server.run(
        "CREATE FUNCTION environment(n BIGINT) RETURNS VARCHAR LANGUAGE PYTHON AS $$\n"
        "return ' '.join(sorted(__import__('os').environ))\n$$",
        "CREATE MATERIALIZED VIEW seen AS SELECT environment(n) AS names FROM one",
    )
    ((names,),) = server.query("SELECT names FROM seen")
    assert "SECRET" not in names
    assert set(names.split()) <= {"PYTHONHASHSEED", "ARROW_DEFAULT_MEMORY_POOL", "PYTHONDONTWRITEBYTECODE", "LC_CTYPE"}


def test_groups_are_given_to_a_function_whenever_they_change(server: LiveServer) -> None:
    stream(server, "scores", "k VARCHAR, n BIGINT")
    server.run(
        "CREATE FUNCTION median(v ARRAY<BIGINT>) RETURNS DOUBLE LANGUAGE PYTHON AS $$\nimport statistics\n"
        "return statistics.median(x for x in v if x is not None)\n$$",
        "CREATE FUNCTION thrice(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$return n * 3$$",
        "CREATE MATERIALIZED VIEW medians AS SELECT k, median(v) AS m, c FROM "
        "(SELECT k, array_agg(n) AS v, count(*) AS c FROM scores GROUP BY k) AS g WHERE thrice(c) > 3",
        "CREATE MATERIALIZED VIEW by_k AS SELECT k, count(*) AS c FROM scores GROUP BY k",
        "CREATE MATERIALIZED VIEW over_k AS SELECT k, thrice(c) AS c3 FROM by_k",
        "CREATE MATERIALIZED VIEW total AS SELECT sum(thrice(c)) AS t FROM by_k",
    )
    feed(server, "scores", "a.json", [{"k": "a", "n": 1}, {"k": "a", "n": 5}, {"k": "b", "n": 7}])
    server.wait_for(lambda: server.query("SELECT * FROM medians") == [("a", 3.0, 2)], 120, "first medians")
    feed(server, "scores", "b.json", [{"k": "a", "n": 2}, {"k": "b", "n": None}, {"k": "c", "n": 9}])
    wanted = [("a", 2.0, 3), ("b", 7.0, 2)]
    server.wait_for(lambda: sorted(server.query("SELECT * FROM medians")) == wanted, 120, "second medians")
    wanted = [("a", 9), ("b", 6), ("c", 3)]
    server.wait_for(lambda: sorted(server.query("SELECT * FROM over_k")) == wanted, 120, "a view over a view")
    server.wait_for(lambda: server.query("SELECT t FROM total") == [(18,)], 120, "their sum")


def test_tools_see_functions_and_pull_queries_refuse_them(server: LiveServer) -> None:
    server.run(
        "CREATE FUNCTION shown(a INTEGER, b VARCHAR) RETURNS ARRAY<DOUBLE> LANGUAGE PYTHON AS $$return [a / 1]$$"
    )
    shown = server.query(
        "SELECT n.nspname, p.proname, pg_get_function_result(p.oid), pg_get_function_arguments(p.oid), l.lanname, "
        "p.prosrc FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang "
        "WHERE p.proname = 'shown' AND pg_function_is_visible(p.oid)"
    )
    assert shown == [("public", "shown", "double precision[]", "a integer, b text", "python", "return [a / 1]")]
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="function shown cannot be called in a pull query"):
        server.query("SELECT shown(1, 'x')")
    with pytest.raises(psycopg.errors.UndefinedFunction):
        server.query("SELECT unknown_one(1, 'x')")
    feed(server, "pushed", "a.json", [{"n": 1}, {"n": 2}])
    stream(server, "pushed", "n INTEGER")
    with server.connect() as connection, connection.cursor() as cursor:
        text = "SELECT shown(n, 'x') AS x FROM pushed WITH ('starting.position' = 'earliest') LIMIT 2"
        rows = cursor.stream(text)
        assert list(rows) == [([1.0],), ([2.0],)]
    server.run("DROP FUNCTION shown")
    with pytest.raises(psycopg.errors.UndefinedFunction):
        server.query("SELECT shown(1, 'x')")


def _processes(server: LiveServer, words: bytes) -> list[int]:
    """Of this server: those below it whose command line has the words."""
    parents: dict[int, int] = {}
    found = []
    for each in Path("/proc").iterdir():
        if not each.name.isdigit():
            continue
        try:
            parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            if words in (each / "cmdline").read_bytes():
                found.append(int(each.name))
        except OSError:
            continue

    def is_below(pid: int) -> bool:
        while pid in parents:
            if pid == server.process.pid:
                return True
            pid = parents[pid]
        return False

    return [pid for pid in found if is_below(pid)]


def test_killed_workers_and_a_restart_lose_and_double_nothing(server: LiveServer) -> None:
    stream(server, "steady", "n BIGINT")
    server.run(
        "CREATE FUNCTION plus(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$ return n + 1 $$",
        "CREATE MATERIALIZED VIEW steady_sum AS SELECT count(*) AS c, sum(plus(n)) AS s FROM steady",
    )
    feed(server, "steady", "a.json", [{"n": n} for n in range(100)])
    server.wait_for(lambda: server.query("SELECT * FROM steady_sum") == [(100, 5050)], 120, "no first rows")
    functions = _processes(server, b"python_functions.child")
    assert functions
    for pid in functions:
        os.kill(pid, signal.SIGKILL)
    feed(server, "steady", "b.json", [{"n": n} for n in range(100, 200)])
    server.wait_for(lambda: server.query("SELECT * FROM steady_sum") == [(200, 20100)], 120, "killed functions")
    for pid in _processes(server, b"pyspark.daemon"):
        os.kill(pid, signal.SIGKILL)
    feed(server, "steady", "c.json", [{"n": n} for n in range(200, 300)])
    server.wait_for(lambda: server.query("SELECT * FROM steady_sum") == [(300, 45150)], 120, "killed workers")
    server.kill()
    server.start(MVSERVER_FUNCTION_TIMEOUT="3s")
    server.wait_for(lambda: _processes(server, b"python_functions.child") == [], 60, "processes of before live on")
    feed(server, "steady", "d.json", [{"n": n} for n in range(300, 400)])
    server.wait_for(lambda: server.query("SELECT * FROM steady_sum") == [(400, 80200)], 240, "after the restart")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        server.run("DROP FUNCTION plus(BIGINT)")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        server.run("CREATE OR REPLACE FUNCTION plus(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$ return n $$")
    server.run("DROP FUNCTION plus CASCADE")
    assert "steady_sum" not in server.states()
