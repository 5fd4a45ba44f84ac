"""Texts of the dialect lenses to programs, and all errors of a text together with line and column."""

from __future__ import annotations

import pytest

from mvserver.errors import SqlError
from mvserver.lenses.parser import is_program, parse_program
from mvserver.lenses.problems import Problems
from mvserver.lenses.program import (
    Binary,
    Call,
    Case,
    Literal,
    Program,
    Projection,
    RowKind,
    Select,
    Selection,
    Span,
    Wildcard,
)


def program(text: str) -> Program:
    problems = Problems()
    found = parse_program(text, problems)
    assert not problems, [str(each) for each in problems]
    return found


def select(text: str) -> Select:
    return program(f"INSERT INTO t {text}").inserts[0].select


def errors(text: str) -> list[str]:
    problems = Problems()
    parse_program(text, problems)
    return [str(each) for each in problems]


def projection(text: str) -> Projection:
    (found,) = select(f"SELECT STREAM {text} FROM s").projections
    assert isinstance(found, Projection)
    return found


def test_a_program_has_settings_named_queries_and_inserts() -> None:
    found = program(
        "-- a comment\nSET defaults.topic.autocreate=true;\n"
        "SET commit.interval.ms='1000'; SET topic.`a-b`.partitions = 3;\n"
        "/* another; one */ WITH a AS (\n  SELECT STREAM * FROM input-topic;\n);\n"
        "INSERT INTO currentMerchants SELECT STREAM * FROM a;\n"
        "INSERT INTO `odd name` STORE KEY AS STRING VALUE AS JSON SELECT TABLE COUNT(*) AS n FROM a GROUP BY platform;"
    )
    assert [(each.key, each.value) for each in found.settings] == [
        ("defaults.topic.autocreate", "true"),
        ("commit.interval.ms", "1000"),
        ("topic.`a-b`.partitions", "3"),
    ]
    assert [(each.name, each.select.source.name) for each in found.withs] == [("a", "input-topic")]
    assert [(each.target, each.key_format, each.value_format) for each in found.inserts] == [
        ("currentMerchants", None, None),
        ("odd name", "STRING", "JSON"),
    ]
    assert [each.select.kind for each in found.inserts] == [RowKind.STREAM, RowKind.TABLE]
    assert (found.withs[0].place.line, found.withs[0].place.column) == (4, 25)


def test_names_with_dashes_and_dots() -> None:
    found = select("SELECT STREAM input-topic._value.field1, a-b, my.topic.x FROM input-topic JOIN my.topic WITHIN 1h")
    first, second, third = found.projections
    assert isinstance(first, Projection)
    assert first.expression == Selection(("input-topic", "_value", "field1"), first.place)
    assert isinstance(second, Projection)
    assert isinstance(second.expression, Binary)
    assert isinstance(third, Projection)
    assert isinstance(third.expression, Selection)
    assert third.expression.parts == ("my.topic", "x")
    assert (found.source.name, found.joins[0].source.name) == ("input-topic", "my.topic")


def test_targets_are_facets_or_fields() -> None:
    for text, facet, path in (
        ("a AS b", "_value", ("b",)),
        ("a AS _key", "_key", ()),
        ("a AS _key.f", "_key", ("f",)),
        ("a AS _key.f.g", "_key", ("f", "g")),
        ("a AS _value", "_value", ()),
        ("a AS _value.f", "_value", ("f",)),
        ("a AS b.c.d", "_value", ("b", "c", "d")),
        ("a AS `b.c`", "_value", ("b.c",)),
        ("a AS `_key`", "_value", ("_key",)),
        ("a AS `odd name`", "_value", ("odd name",)),
    ):
        target = projection(text).target
        assert target is not None
        assert (target.facet, target.path) == (facet, path)
    assert projection("address.country").text == "address.country"
    assert projection("1 + f").text == "1 + f"


def test_wildcards() -> None:
    found = select("SELECT STREAM *, _key.*, m._value.*, m.* FROM s AS m").projections
    assert [each.prefix for each in found if isinstance(each, Wildcard)] == [(), ("_key",), ("m", "_value"), ("m",)]


def test_expressions() -> None:
    what = projection(
        "CASE WHEN field3 = 'Robert' THEN 'It''s bobby' "
        "WHEN field3 = 'William' THEN 'It''s willy' ELSE 'Unknown' END AS w"
    ).expression
    assert isinstance(what, Case)
    (_, bobby), _ = what.branches
    assert isinstance(bobby, Literal)
    assert bobby.text == "It's bobby"
    call = projection("concat(surname, ', ', name)").expression
    assert isinstance(call, Call)
    assert (call.name, len(call.arguments)) == ("CONCAT", 3)
    where = select(
        "SELECT STREAM * FROM s WHERE LENGTH(a) > 5 AND b NOT IN (1, 2) AND c NOT LIKE 'x%' OR d IS NOT NULL"
    )
    assert where.where is not None


def test_windows_joins_and_laterals() -> None:
    found = select(
        "SELECT TABLE COUNT(*) FROM s AS x EVENTTIME BY _value.at LATERAL xs AS i LATERAL i.ys AS j WHERE a > 1 "
        "WINDOW BY HOP 5m BY 1m GRACE BY 30s GROUP BY a, b"
    )
    assert found.source.event_time is not None
    assert found.source.event_time.parts == ("_value", "at")
    assert [each.alias for each in found.laterals] == ["i", "j"]
    assert found.window is not None
    assert found.window.advance is not None
    assert found.window.grace is not None
    assert (found.window.kind, found.window.size.millis, found.window.advance.millis, found.window.grace.millis) == (
        "HOP", 300_000, 60_000, 30_000,
    )  # fmt: skip
    assert [each.text for each in found.group_by] == ["a", "b"]
    joined = select(
        "SELECT STREAM * FROM a JOIN b ON a.x = b._key WITHIN 500ms LEFT OUTER JOIN c RIGHT JOIN d OUTER JOIN e"
    )
    assert [each.side for each in joined.joins] == ["INNER", "LEFT", "RIGHT", "OUTER"]


def test_all_errors_of_a_text_are_told_together() -> None:
    assert errors(
        "SET x;\nWITH a AS (SELECT * FROM t);\nINSERT INTO b SELECT STREAM FROM t;\n"
        "INSERT INTO c SELECT STREAM x FROM t GROUP BY;\nINSERT INTO d SELECT STREAM x FROM t;"
    ) == [
        'line 1, column 6: syntax error at the end of the statement [42601] Hint: "=" is expected.',
        'line 2, column 19: syntax error at "*" [42601] Hint: A streaming SELECT is SELECT STREAM or SELECT TABLE.',
        'line 3, column 29: syntax error at "FROM" [42601] Hint: A field is expected.',
        "line 4, column 46: syntax error at the end of the statement [42601] Hint: An expression is expected.",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("INSERT INTO a SELECT STREAM 'x FROM t", "line 1, column 29: unterminated text"),
        ("INSERT INTO a SELECT STREAM `x FROM t", "line 1, column 29: unterminated name in back-quotes"),
        ("INSERT INTO a /* SELECT STREAM x FROM t", "line 1, column 15: unterminated comment"),
        ('INSERT INTO a SELECT STREAM "x FROM t', "line 1, column 29: unterminated text"),
        ("INSERT INTO a SELECT STREAM ’x’ FROM t", 'line 1, column 29: unexpected character "’"'),
        ("INSERT INTO a SELECT STREAM x FROM t WINDOW BY TUMBLE 5 m", 'line 1, column 55: syntax error at "5"'),
        ("INSERT INTO a SELECT STREAM x FROM t WINDOW BY TUMBLE 5y", 'line 1, column 55: syntax error at "5y"'),
        ("INSERT INTO a SELECT STREAM x FROM t WINDOW BY SLIDE 5m", 'line 1, column 48: syntax error at "SLIDE"'),
        ("INSERT INTO a SELECT STREAM x FROM t GROUP BY x WINDOW BY TUMBLE 5m", "line 1, column 49: syntax error"),
        ("INSERT INTO a SELECT STREAM x FROM t GROUP BY x HAVING y", "line 1, column 49: HAVING is not supported"),
        ("INSERT INTO a SELECT STREAM x FROM (SELECT STREAM x FROM t)", "line 1, column 36: a sub-query in FROM"),
        ("INSERT INTO a SELECT STREAM x FROM t, u", "line 1, column 37: a list in FROM is not supported"),
        ("INSERT INTO a STORE KEY AS TOML SELECT STREAM x FROM t", 'line 1, column 28: syntax error at "TOML"'),
        ("INSERT INTO a STORE SELECT STREAM x FROM t", 'line 1, column 21: syntax error at "SELECT"'),
        ("INSERT INTO a SELECT STREAM x AS _meta FROM t", "line 1, column 34: the facet _meta cannot be written"),
        ("INSERT INTO a SELECT STREAM x AS a. FROM t", 'line 1, column 42: syntax error at "t"'),
        ("SELECT STREAM x FROM t", "line 1, column 1: a SELECT without a target"),
        ("CREATE FUNCTION f", "line 1, column 1: CREATE FUNCTION is not supported"),
        ("DELETE FROM t", 'line 1, column 1: syntax error at "DELETE"'),
        ("SET a = 1;", "line 1, column 11: the program has no INSERT INTO"),
        ("INSERT INTO a SELECT STREAM " + "(" * 50 + "1" + ")" * 50 + " FROM t", "line 1, column 69: brackets, calls"),
        ("INSERT INTO a SELECT STREAM " + "1+" * 600 + "1 FROM t", "line 1, column 29: a chain of operators"),
    ],
)  # fmt: skip
def test_errors_have_line_and_column(text: str, told: str) -> None:
    (first, *_) = errors(text)
    assert first.startswith(told), first


def test_a_text_without_bound_is_refused() -> None:
    with pytest.raises(SqlError) as caught:
        errors("INSERT INTO a SELECT STREAM " + "x, " * 40_000 + "y FROM t")
    assert caught.value.sqlstate == "54000"
    with pytest.raises(SqlError) as caught:
        errors("INSERT INTO a SELECT STREAM '" + "x" * 2_000_000)
    assert caught.value.sqlstate == "54000"


def test_what_a_program_begins_with() -> None:
    for text in (
        "SET defaults.topic.autocreate=true; INSERT INTO a SELECT STREAM 1",
        "-- x\nWITH a AS (SELECT STREAM",
        "insert into a-b store value as json select table",
        "SET nonsense = 1; INSERT INTO a SELECT STREAM * FROM b",
    ):
        assert is_program(text), text
    for text in (
        "SET dialect = postgres",
        "INSERT INTO a SELECT b FROM c",
        "WITH a AS (SELECT 1) SELECT 1",
        "SELECT 1",
    ):
        assert not is_program(text), text


def test_lengths_of_time() -> None:
    problems = Problems()
    program = parse_program("INSERT INTO t SELECT STREAM a + 1M - 15m AS x, 2w + b AS y FROM s", problems)
    assert not problems
    first, second = (each.expression for each in program.inserts[0].select.projections if isinstance(each, Projection))
    assert isinstance(first, Binary)
    assert isinstance(second, Binary)
    assert (first.right, second.left) == (
        Span(15, "MINUTE", first.right.place), Span(2, "WEEK", second.left.place)
    )  # fmt: skip


@pytest.mark.parametrize("text", ["a + 1x", "a + 5ms", "a + 12345678901d"])
def test_lengths_of_time_that_are_none(text: str) -> None:
    problems = Problems()
    parse_program(f"INSERT INTO t SELECT STREAM {text} AS x FROM s", problems)
    (found,) = problems
    assert (found.place.column, found.hint) == (
        33, "A length of time is a number with y, M, w, d, h, m or s, as 1d."
    )  # fmt: skip
