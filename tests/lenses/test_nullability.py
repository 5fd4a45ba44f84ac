"""Which values may be NULL where the original takes none: each case written down by hand, with its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mvserver.errors import SqlError
from mvserver.lenses.parser import parse_program
from mvserver.lenses.problems import Problems
from mvserver.lenses.program import RowKind, SourceName
from mvserver.lenses.rows import Facet, Rows
from mvserver.lenses.sources import TopicSource
from mvserver.lenses.translate import Translated, translate
from tests.routing.fakes import Bench

STREAM, TABLE = RowKind.STREAM, RowKind.TABLE
NAMED = {
    "s": Rows(STREAM, Facet(), Facet(("a", "b", "n", "m", "xs")), not_null=frozenset({"a", "b"})),
    "u": Rows(STREAM, Facet(), Facet(("c", "o")), not_null=frozenset({"c"})),
    "t": Rows(TABLE, Facet(), Facet(("v", "w")), not_null=frozenset({"_key", "v"})),
    "k": Rows(TABLE, Facet(), Facet(("y", "z")), not_null=frozenset({"_key", "y"})),
}


def topic(source: SourceName, kind: RowKind) -> TopicSource:
    return TopicSource(Rows(kind, Facet(), Facet(("f",)), records=True), f"p.{source.name}")


def translated(text: str) -> Translated:
    problems = Problems()
    program = parse_program(f"INSERT INTO t {text}", problems)
    assert not problems, [str(each) for each in problems]
    return translate(program.inserts[0].select, NAMED, topic)


def found(text: str) -> list[str]:
    short = (each.message.removesuffix(" is given a value that may be NULL") for each in translated(text).findings)
    return list(short)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("UPPER(a)", []), ("UPPER(n)", ["UPPER"]), ("a + b", []), ("a + n", ["+"]), ("n", []), ("_key", []),
        ("LENGTH(_key)", ["LENGTH"]),  # a record of a stream may have no key
        ("LOWER(UPPER(n))", ["UPPER"]),  # told once
        ("CONCAT(a, n, m)", ["CONCAT"]), ("UPPER(NULL)", ["UPPER"]), ("n = 1", ["="]), ("n IN (1, 2)", ["IN"]),
        ("NOT n", ["NOT"]), ("a AND n", ["AND"]), ("-n", ["-"]), ("n LIKE 'x'", ["LIKE"]),
        ("COALESCE(n, 'x')", []), ("UPPER(COALESCE(n, 'x'))", []), ("UPPER(COALESCE(n, m))", ["UPPER"]),
        ("UPPER(COALESCE(n, a))", []), ("ISNULL(n)", []), ("n IS NULL", []), ("ISNULL(UPPER(n))", ["UPPER"]),
        ("UPPER(AS_NON_NULLABLE(n))", []), ("UPPER(AS_NULLABLE(a))", ["UPPER"]), ("UPPER(CAST(a AS STRING))", []),
        ("UPPER(CAST(n AS STRING))", ["UPPER"]), ("UPPER(JSON_EXTRACT_FIRST(a, '$.x'))", ["UPPER"]),
        ("SIZEOF(REGEX_MATCHES(a, 'x'))", []), ("SIZEOF(REGEXP(a, 'x'))", ["SIZEOF"]),
        ("CASE WHEN n IS NOT NULL THEN UPPER(n) ELSE 'x' END", []),
        ("CASE WHEN ISNOTNULL(n) AND b = 1 THEN UPPER(n) ELSE UPPER(m) END", ["UPPER"]),
        ("CASE WHEN n IS NULL THEN 'x' ELSE UPPER(n) END", []),
        ("CASE WHEN n IS NULL OR m IS NULL THEN 'x' ELSE CONCAT(n, m) END", []),
        ("CASE WHEN NOT (n IS NULL) THEN UPPER(n) ELSE 'x' END", []),
        ("UPPER(CASE WHEN a = 'x' THEN a END)", ["UPPER"]), ("UPPER(CASE a WHEN 'x' THEN a ELSE 'y' END)", []),
        ("CASE n WHEN 'x' THEN a ELSE 'y' END", ["CASE"]), ("CASE WHEN n > 1 THEN 1 ELSE 2 END", [">"]),
    ],
)  # fmt: skip
def test_of_expressions(expression: str, wanted: list[str]) -> None:
    assert found(f"SELECT STREAM {expression} AS x FROM s") == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT STREAM UPPER(n) AS x FROM s WHERE n IS NOT NULL", []),
        ("SELECT STREAM UPPER(n) AS x FROM s WHERE ISNOTNULL(s.n) AND n != 'q' AND m > 1", [">"]),
        ("SELECT STREAM UPPER(n) AS x FROM s WHERE n IS NOT NULL OR a = 'x'", ["UPPER"]),
        ("SELECT STREAM a FROM s WHERE n", ["WHERE"]),
        ("SELECT STREAM LENGTH(_key) AS x, _meta.offset + 1 AS y FROM f WHERE _key IS NOT NULL", []),
        ("SELECT STREAM LENGTH(_meta.headers.x) AS x FROM f", ["LENGTH"]),
        ("SELECT STREAM LENGTH(_meta.topic) AS x FROM f", []),
        ("SELECT TABLE LENGTH(_key) AS x, UPPER(v) AS y, UPPER(w) AS z FROM t", ["UPPER"]),
        ("SELECT STREAM UPPER(c) AS x FROM s JOIN u WITHIN 1h", []),
        ("SELECT STREAM UPPER(c) AS x, UPPER(a) AS y FROM s LEFT JOIN u WITHIN 1h", ["UPPER"]),
        ("SELECT STREAM UPPER(c) AS x, UPPER(a) AS y FROM s RIGHT JOIN u WITHIN 1h", ["UPPER"]),
        ("SELECT STREAM UPPER(c) AS x, UPPER(a) AS y FROM s OUTER JOIN u WITHIN 1h", ["UPPER", "UPPER"]),
        ("SELECT STREAM a FROM s LEFT JOIN t ON s.n = t._key", []),  # NULL meets nothing
        ("SELECT STREAM 1 + f._meta.offset AS x FROM s JOIN f WITHIN 1h", []),
        ("SELECT STREAM 1 + f._meta.offset AS x FROM s LEFT JOIN f WITHIN 1h", ["+"]),
        ("SELECT TABLE SUM(n) AS x FROM s GROUP BY a", []),
        ("SELECT TABLE SUM(n) + 1 AS x, COUNT(n) + 1 AS y, SUM(b) + 1 AS z FROM s GROUP BY a", ["+"]),
        ("SELECT TABLE SUM(n + 1) AS x FROM s GROUP BY UPPER(m)", ["UPPER", "+"]),
        ("SELECT TABLE SUM(n + 1) AS x FROM s WHERE n IS NOT NULL WINDOW BY TUMBLE 1m GROUP BY a", []),
        ("SELECT TABLE SUM(n + 1) AS x FROM s WINDOW BY TUMBLE 1m GROUP BY a", ["+"]),
        ("SELECT STREAM COUNT(*) AS x FROM q WHERE _meta.headers.x IS NOT NULL WINDOW BY TUMBLE 1m GROUP BY f", []),
        ("SELECT STREAM UPPER(x) AS y FROM s LATERAL xs AS x", ["UPPER"]),
    ],
)
def test_of_selects(text: str, wanted: list[str]) -> None:
    assert found(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT STREAM * FROM s", {"a", "b"}),
        ("SELECT STREAM a, n, UPPER(n) AS u, UPPER(a) AS v, 1 AS w FROM s", {"a", "v", "w"}),
        ("SELECT STREAM a AS _key, n FROM s WHERE n IS NOT NULL", {"_key", "n"}),
        ("SELECT STREAM a AS _key.x, n AS _key.y, b FROM s", {"_key.x", "b"}),
        ("SELECT TABLE v, y FROM t JOIN k", {"_key", "v", "y"}),
        ("SELECT TABLE v, y FROM t LEFT JOIN k", {"_key", "v"}),
        ("SELECT TABLE COUNT(*) AS c, MAX(n) AS m, MAX(b) AS x FROM s GROUP BY a", {"_key", "c", "x"}),
        ("SELECT TABLE COUNT(*) AS c FROM s WINDOW BY TUMBLE 1m GROUP BY n",
         {"_key.window_start", "_key.window_end", "c"}),
    ],
)  # fmt: skip
def test_what_is_known_of_the_rows(text: str, wanted: set[str]) -> None:
    assert translated(text).rows.not_null == wanted


# --- of programs ----------------------------------------------------------------------------------------------------
@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    made.run("CREATE STORE k WITH ('type' = KAFKA, 'uris' = 'h:1')", "USE STORE k")
    made.run(
        "CREATE STREAM people (name VARCHAR NOT NULL, town VARCHAR) WITH ('topic' = 'people', 'value.format' = 'json', "
        "'key.format' = 'primitive', 'key.type' = 'VARCHAR', 'topic.partitions' = 1, 'topic.replicas' = 1)"
    )
    yield made
    made.close()


PROGRAM = """SET defaults.topic.autocreate = true;
WITH p AS (SELECT STREAM UPPER(name) AS name, town FROM people);
INSERT INTO t SELECT STREAM LOWER(name) AS name,
  UPPER(town) AS town FROM p;
"""
NOT_RUNNING = 'processor "p" is not running yet'
WARNING = "line 4, column 3: UPPER is given a value that may be NULL"


def test_a_program_is_warned(bench: Bench) -> None:
    bench.run(f"CREATE PROCESSOR p AS $${PROGRAM}$$")
    assert bench.notices == [WARNING, NOT_RUNNING]


def test_a_strict_program_is_refused_and_makes_nothing(bench: Bench) -> None:
    before = bench.dump()
    with pytest.raises(SqlError) as caught:
        bench.run(f"CREATE PROCESSOR p AS $$SET nullability = strict;{PROGRAM}$$")
    assert (caught.value.sqlstate, caught.value.message) == ("22004", WARNING)
    assert caught.value.hint == "Use COALESCE or AS_NON_NULLABLE, or leave NULL out: WHERE ... IS NOT NULL."
    assert bench.dump() == before
    strict = PROGRAM.replace("UPPER(town)", "UPPER(COALESCE(town, '-'))")
    bench.run(f"CREATE PROCESSOR p AS $$SET nullability = 'strict';{strict}$$")
    assert bench.notices == [NOT_RUNNING]


def test_warnings_are_left_out_and_bounded(bench: Bench) -> None:
    bench.run(f"CREATE PROCESSOR p AS $$SET nullability = ignore;{PROGRAM}$$")
    assert bench.notices == [NOT_RUNNING]
    many = ", ".join(f"UPPER(town) AS t{i}" for i in range(25))
    bench.run(
        f"CREATE PROCESSOR q AS $$SET defaults.topic.autocreate = true;INSERT INTO u SELECT STREAM {many} FROM people$$"
    )
    assert len(bench.notices) == 22
    assert bench.notices[20] == "the program has 5 more warnings"
