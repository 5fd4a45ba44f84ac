"""The continuous tree: one node for each form, as ``mvserver.sql.dialect`` promises the binder."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp

from mvserver.errors import SqlError
from mvserver.sql.dialect import default_name, parse_select, position_of, sql_type_of
from mvserver.sql.statements.base import Properties


def show(node: Any) -> str:
    """A tree as a term: ``Add(a, Mul(b, c))``."""
    if isinstance(node, exp.Column):
        return ".".join(part.name if not isinstance(part, exp.Star) else "*" for part in node.parts)
    if isinstance(node, exp.Identifier):
        return node.name
    if isinstance(node, exp.Literal):
        return repr(node.this) if node.is_string else node.this
    if isinstance(node, exp.Anonymous):
        return f"{node.this}({', '.join(show(argument) for argument in node.expressions)})"
    if isinstance(node, exp.Cast):
        return f"{type(node).__name__}({show(node.this)}, {sql_type_of(node)})"
    if isinstance(node, exp.Var):
        return node.name
    if isinstance(node, list):
        return "[" + ", ".join(show(item) for item in node) + "]"
    if isinstance(node, exp.Expr):
        parts = [show(value) for value in node.args.values() if value is not None]
        return f"{type(node).__name__}({', '.join(parts)})"
    return str(node)


EXPRESSIONS = [
    # names and access
    ("a", "a"),
    ("T.Col", "t.col"),
    ('"T"."Col"', "T.Col"),
    ("d.s.t.a", "d.s.t.a"),
    ("a.b.c.d.e", "Dot(a.b.c.d, e)"),
    ("a->b->c", "Dot(Dot(a, b), c)"),
    ('t.a->"B"', "Dot(t.a, B)"),
    ("a->select", "Dot(a, select)"),
    ("(f(x)).b", "Dot(f(x), b)"),
    ("a->b + 1", "Add(Dot(a, b), 1)"),
    ("a->'k'", "JSONExtract(a, 'k')"),
    ("a->>0", "JSONExtractScalar(a, 0)"),
    ("m['k']", "Bracket(m, ['k'])"),
    ("arr[1]", "Bracket(arr, [1])"),
    ("arr[i + 1][2]", "Bracket(Bracket(arr, [Add(i, 1)]), [2])"),
    ("arr[0]", "Bracket(arr, [0])"),
    # literals
    ("'x'", "'x'"),
    ("1", "1"),
    (".5", ".5"),
    ("1.50e-3", "1.50e-3"),
    ("TRUE", "Boolean(True)"),
    ("null", "Null()"),
    ("X'1f'", "HexString(1f)"),
    ("DATE '2020-01-01'", "Cast('2020-01-01', DATE)"),
    ("timestamp(3) with time zone '2020'", "Cast('2020', TIMESTAMP_LTZ)"),
    ("double precision '1'", "Cast('1', DOUBLE)"),
    ("INTERVAL '1 day'", "Interval('1 day')"),
    ("INTERVAL '1' DAYS", "Interval('1', DAY)"),
    ("INTERVAL '1-2' YEAR TO MONTH", "Interval('1-2', YEAR TO MONTH)"),
    ("INTERVAL 5 MINUTES", "Interval('5', MINUTE)"),
    ("interval", "interval"),  # a column of that name
    # arithmetic
    ("a + b * c", "Add(a, Mul(b, c))"),
    ("(a + b) * c", "Mul(Add(a, b), c)"),
    ("a - b - c", "Sub(Sub(a, b), c)"),
    ("a % b / c", "Div(Mod(a, b), c)"),
    ("-a ^ 2", "Pow(Neg(a), 2)"),
    ("2 ^ 3 ^ 2", "Pow(Pow(2, 3), 2)"),
    ("- 1::int", "Neg(Cast(1, INTEGER))"),
    ("+a", "a"),
    ("a || b || c", "DPipe(DPipe(a, b), c)"),
    ("a || b + c", "DPipe(a, Add(b, c))"),
    ("a & b | c # d", "BitwiseXor(BitwiseOr(BitwiseAnd(a, b), c), d)"),
    ("a << 1 >> 2", "BitwiseRightShift(BitwiseLeftShift(a, 1), 2)"),
    ("~a", "BitwiseNot(a)"),
    # comparison and logic
    ("a = b AND c <> d OR NOT e != f", "Or(And(EQ(a, b), NEQ(c, d)), Not(NEQ(e, f)))"),
    ("a < 1 AND b <= 2 AND c > 3 AND d >= 4", "And(And(And(LT(a, 1), LTE(b, 2)), GT(c, 3)), GTE(d, 4))"),
    ("NOT a IS NULL", "Not(Is(a, Null()))"),
    ("a IS NOT NULL", "Not(Is(a, Null()))"),
    ("a ISNULL", "Is(a, Null())"),
    ("a NOTNULL", "Not(Is(a, Null()))"),
    ("a IS TRUE", "Is(a, Boolean(True))"),
    ("a IS NOT FALSE", "Not(Is(a, Boolean(False)))"),
    ("a IS UNKNOWN", "Is(a, UNKNOWN)"),
    ("a = b IS NULL", "Is(EQ(a, b), Null())"),
    ("a IS DISTINCT FROM b + 1", "NullSafeNEQ(a, Add(b, 1))"),
    ("a IS NOT DISTINCT FROM b", "NullSafeEQ(a, b)"),
    ("a BETWEEN 1 AND 2 AND c", "And(Between(a, 1, 2), c)"),
    ("a NOT BETWEEN SYMMETRIC 2 AND 1", "Not(Between(a, 2, 1, True))"),
    ("a IN (1, 'x', b + 1)", "In(a, [1, 'x', Add(b, 1)])"),
    ("a NOT IN (1)", "Not(In(a, [1]))"),
    ("a LIKE 'x%'", "Like(a, 'x%')"),
    ("a NOT ILIKE b || '%'", "Not(ILike(a, DPipe(b, '%')))"),
    ("a LIKE 'x' ESCAPE '!'", "Escape(Like(a, 'x'), '!')"),
    ("a SIMILAR TO 'x'", "SimilarTo(a, 'x')"),
    ("a ~ 'x'", "RegexpLike(a, 'x')"),
    ("a ~* 'x'", "RegexpILike(a, 'x')"),
    ("a !~ 'x'", "Not(RegexpLike(a, 'x'))"),
    ("a !~* 'x'", "Not(RegexpILike(a, 'x'))"),
    ("a ~~ 'x'", "Like(a, 'x')"),
    ("a !~~* 'x'", "Not(ILike(a, 'x'))"),
    ("t AT TIME ZONE 'UTC'", "AtTimeZone(t, 'UTC')"),
    # casts and conditionals
    ("CAST(a AS BIGINT)", "Cast(a, BIGINT)"),
    ("a::varchar(3)::bytes", "Cast(Cast(a, VARCHAR(3)), VARBINARY)"),
    ("TRY_CAST(a AS DOUBLE PRECISION)", "TryCast(a, DOUBLE)"),
    ('a::STRUCT<x INT, "Y" ARRAY<DECIMAL(5,2)>>', 'Cast(a, STRUCT<"x" INTEGER, "Y" ARRAY<DECIMAL(5, 2)>>)'),
    ("a::MAP<VARCHAR, ARRAY<INT>>", "Cast(a, MAP<VARCHAR, ARRAY<INTEGER>>)"),
    ("a::int[]", "Cast(a, ARRAY<INTEGER>)"),
    ("a::timestamp_ltz(3)", "Cast(a, TIMESTAMP_LTZ)"),
    ("CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END", "Case([If(a, 1), If(b, 2)], 3)"),
    ("CASE a WHEN 1 THEN 'x' END", "Case(a, [If(1, 'x')])"),
    ("ARRAY[1, 2]", "Array([1, 2])"),
    ("MAP['a', 1]", "map('a', 1)"),
    ("ROW(a, b)", "row(a, b)"),
    # calls
    ("COUNT(*)", "count(Star())"),
    ("Count(DISTINCT a, b)", "count(Distinct([a, b]))"),
    ("sum(ALL a)", "sum(a)"),
    ("count(*) FILTER (WHERE a > 1)", "Filter(count(Star()), Where(GT(a, 1)))"),
    ("mode() WITHIN GROUP (ORDER BY a)", "WithinGroup(mode(), Order([Ordered(a, False)]))"),
    (
        "p(0.5) WITHIN GROUP (ORDER BY a + 1 DESC NULLS LAST) FILTER (WHERE b)",
        "Filter(WithinGroup(p(0.5), Order([Ordered(Add(a, 1), True)])), Where(b))",
    ),
    ("COALESCE(a, b, 0)", "coalesce(a, b, 0)"),
    ("nullif(a, b)", "nullif(a, b)"),
    ("left(a, 2)", "left(a, 2)"),
    ("DATE_TRUNC('day', t)", "date_trunc('day', t)"),
    ("to_timestamp(a, 'x')", "to_timestamp(a, 'x')"),
    ("length(a)", "length(a)"),
    ("if(a, b, c)", "if(a, b, c)"),
    ("now()", "now()"),
    ("year(t)", "year(t)"),
    ("date(t)", "date(t)"),
    ("pg_catalog.lower(a)", "lower(a)"),
    ('"Lower"(a)', "Lower(a)"),
    ("CURRENT_TIMESTAMP", "current_timestamp()"),
    ("current_time(3)", "current_time(3)"),
    ("EXTRACT(YEAR FROM t)", "extract('year', t)"),
    ("EXTRACT('Epoch' FROM t)", "extract('epoch', t)"),
    ("POSITION('a' IN b || c)", "position('a', DPipe(b, c))"),
    ("SUBSTRING(a FROM 2 FOR 3)", "substring(a, 2, 3)"),
    ("SUBSTRING(a FOR 3)", "substring(a, 1, 3)"),
    ("SUBSTRING(a, 2)", "substring(a, 2)"),
    ("TRIM(a)", "btrim(a)"),
    ("TRIM(BOTH 'x' FROM a)", "btrim(a, 'x')"),
    ("TRIM(LEADING FROM a)", "ltrim(a)"),
    ("TRIM(TRAILING 'x' FROM a)", "rtrim(a, 'x')"),
    ("OVERLAY(a PLACING b FROM 1 FOR 2)", "overlay(a, b, 1, 2)"),
    ("CEIL(a)", "ceil(a)"),
    ("CEILING(a)", "ceil(a)"),
    ("FLOOR(t TO MINUTE)", "floor(t, 'minute')"),
    ("TIMESTAMPADD(DAY, 1, t)", "timestampadd('day', 1, t)"),
    ("TIMESTAMPDIFF(hours, a, b)", "timestampdiff('hour', a, b)"),
    ("JSON_VALUE(a, '$.x')", "json_value(a, '$.x')"),
    ("JSON_VALUE(a, '$.x' RETURNING INT NULL ON EMPTY NULL ON ERROR)", "TryCast(json_value(a, '$.x'), INTEGER)"),
]


@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS, ids=[text for text, _ in EXPRESSIONS])
def test_expression(text: str, expected: str) -> None:
    select = parse_select(f"SELECT {text} FROM t")
    assert show(select.expressions[0]) == expected
    aliased = parse_select(f"SELECT {text} AS n, {text} FROM t")
    assert show(aliased.expressions[0]) == f"Alias({expected}, n)"
    assert show(aliased.expressions[1]) == expected


def test_typed_literals_are_marked() -> None:
    literal, cast = parse_select("SELECT DATE '2020-01-01', CAST('2020-01-01' AS DATE)").expressions
    assert literal.meta["typed_literal"] is True
    assert "typed_literal" not in cast.meta


def test_clauses() -> None:
    select = parse_select(
        "WITH x AS (SELECT a FROM b), y (n) AS (SELECT 1) "
        'SELECT DISTINCT a, t.*, s.t.*, *, f(b) AS "N", c d FROM x AS t WHERE a > 1 GROUP BY 1, (a, b), c HAVING d'
    )
    assert [show(item) for item in select.expressions] == [
        "a",
        "t.*",
        "s.t.*",
        "Star()",
        "Alias(f(b), N)",
        "Alias(c, d)",
    ]
    assert isinstance(select.args["distinct"], exp.Distinct)
    assert show(select.args["where"].this) == "GT(a, 1)"
    assert [show(key) for key in select.args["group"].expressions] == ["1", "Tuple([a, b])", "c"]
    assert show(select.args["having"].this) == "d"
    assert [cte.alias for cte in select.args["with_"].expressions] == ["x", "y"]
    assert select.meta["query_properties"] == Properties()


@pytest.mark.parametrize(
    ("source", "alias"),
    [
        ("clicks WITH ('starting.position' = 'earliest', 'Timestamp' = event_time)", ""),
        ("clicks AS c WITH ('starting.position' = 'earliest', 'timestamp' = 'event_time')", "c"),
        ("clicks c WITH ('starting.position' = 'earliest', 'timestamp' = 'event_time')", "c"),
        ("clicks WITH ('starting.position' = 'earliest', 'timestamp' = 'event_time') c", "c"),
    ],
)
@pytest.mark.parametrize("behind", ["", " WHERE a > 1", " GROUP BY a", " JOIN u ON a = b"])
def test_source_properties(source: str, alias: str, behind: str) -> None:
    table = parse_select(f"SELECT a FROM db.s.{source}{behind}").args["from_"].this
    assert isinstance(table, exp.Table)
    assert [part.name for part in table.parts] == ["db", "s", "clicks"]
    assert table.alias == alias
    assert dict(table.meta["properties"]) == {"starting.position": "earliest", "timestamp": "event_time"}


def test_tables_without_properties_have_an_empty_list() -> None:
    select = parse_select("SELECT a FROM b QUERY WITH ('state.ttl.millis' = 5)")
    assert select.args["from_"].this.meta["properties"] == Properties()
    assert dict(select.meta["query_properties"]) == {"state.ttl.millis": 5}


def test_joins() -> None:
    select = parse_select(
        "SELECT a FROM x JOIN y WITH ('timestamp' = 't') WITHIN 5 MINUTES ON x.a = y.a LEFT OUTER JOIN z USING (a, b) "
        "CROSS JOIN (SELECT 1 AS one) w, v"
    )
    joins = select.args["joins"]
    assert [(join.side, join.kind) for join in joins] == [("", ""), ("LEFT", ""), ("", "CROSS"), ("", "CROSS")]
    assert show(joins[0].meta["within"]) == "Interval('5', MINUTE)"
    assert show(joins[0].args["on"]) == "EQ(x.a, y.a)"
    assert dict(joins[0].this.meta["properties"]) == {"timestamp": "t"}
    assert [column.name for column in joins[1].args["using"]] == ["a", "b"]
    assert joins[1].meta["within"] is None
    assert isinstance(joins[2].this, exp.Subquery)
    assert joins[2].this.alias == "w"


def test_positions_point_into_the_text() -> None:
    text = "SELECT abc, f(x) + 1, CAST(y AS INT) FROM topic WHERE z = 'q'"
    select = parse_select(text)
    column, addition, cast = select.expressions
    assert position_of(column) == text.index("abc") + 1
    assert position_of(addition) == text.index("+") + 1
    assert position_of(addition.this) == text.index("f(x)") + 1
    assert position_of(cast) == text.index("CAST") + 1
    assert position_of(select.args["from_"].this) == text.index("topic") + 1
    assert position_of(select.args["where"].this.expression) == text.index("'q'") + 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "a"), ("t.a", "a"), ("a->b", "b"), ("a['k']", "a"), ("f(x)", "f"), ("count(*) filter (where b)", "count"),
        ("a::int", "a"), ("CAST(1 AS bigint)", "int8"), ("'x'::text", "varchar"), ("CASE WHEN a THEN 1 END", "case"),
        ("CASE WHEN a THEN 1 ELSE b END", "b"), ("1 + a", "?column?"), ("'x'", "?column?"), ("TRIM(a)", "btrim"),
        ("mode() within group (order by a) filter (where b)", "mode"),
        ("DATE '2020-01-01'", "date"), ("ARRAY[1]", "array"), ("coalesce(a, 1)", "coalesce"), ("not a", "?column?"),
    ],
)  # fmt: skip
def test_default_names_of_columns(text: str, expected: str) -> None:
    assert default_name(parse_select(f"SELECT {text} FROM t").expressions[0]) == expected


REFUSED = [
    ("SELECT a FROM b UNION SELECT a FROM c", "UNION without ALL is not supported in continuous queries", 17),
    ("SELECT a FROM b ORDER BY a", "ORDER BY is not supported in continuous queries", 17),
    ("SELECT a FROM b LIMIT 1", "LIMIT is not supported in continuous queries", 17),
    ("SELECT a FROM b OFFSET 1", "OFFSET is not supported in continuous queries", 17),
    ("SELECT a FROM b FETCH FIRST ROW ONLY", "FETCH is not supported in continuous queries", 17),
    ("SELECT sum(a) OVER (PARTITION BY b) FROM c",
     "window functions (OVER) are not supported in continuous queries", 15),
    ("SELECT a FROM generate_series(1, 2)", "table functions are not supported in continuous queries", 15),
    ("SELECT (SELECT 1) FROM b", "sub-queries in expressions are not supported in continuous queries", 9),
    ("SELECT a FROM b WHERE c IN (SELECT 1)", "sub-queries in expressions are not supported in continuous queries", 29),
    ("SELECT a FROM b WHERE EXISTS (SELECT 1)",
     "EXISTS with a sub-query or an array is not supported in continuous queries", 23),
    ("SELECT a FROM b WHERE c = ANY (ARRAY[1])", "ANY and ALL are not supported in continuous queries", 27),
    ("SELECT DISTINCT ON (a) a FROM b", "DISTINCT ON is not supported in continuous queries", 17),
    ("SELECT a FROM LATERAL (SELECT 1) x", "LATERAL is only supported before UNNEST in continuous queries", 15),
    ("SELECT a FROM b TABLESAMPLE SYSTEM (1)", "TABLESAMPLE is not supported in continuous queries", 17),
    ("SELECT a FROM b MATCH_RECOGNIZE (PATTERN (x))", "MATCH_RECOGNIZE is not supported", 17),
    ("WITH RECURSIVE x AS (SELECT 1) SELECT a FROM x", "WITH RECURSIVE is not supported in continuous queries", 6),
    ("SELECT a FROM b NATURAL JOIN c", "NATURAL JOIN is not supported in continuous queries", 17),
    ("SELECT string_agg(a, ',' ORDER BY b) FROM c",
     "ORDER BY in an aggregate is not supported in continuous queries", 26),
    ("SELECT f(x => 1) FROM b", "named arguments are not supported", 10),
    ("SELECT a COLLATE \"C\" FROM b", "COLLATE is not supported in continuous queries", 10),
    ("SELECT a[1:2] FROM b", "array slices are not supported in continuous queries", 11),
    ("SELECT (a).* FROM b", "expanding a struct with .* is not supported", 12),
    ("SELECT JSON_VALUE(a, '$' DEFAULT 1 ON EMPTY) FROM b",
     "DEFAULT ON EMPTY and DEFAULT ON ERROR are not supported in JSON_VALUE", 26),
    ("SELECT B'1' FROM b", "bit strings are not supported", 8),
    ("VALUES (1)", "VALUES is not supported in continuous queries", 1),
    ("SELECT a INTO x FROM b", "SELECT INTO is not supported", 10),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "position"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_what_a_stream_cannot_answer_is_refused_by_name(text: str, message: str, position: int) -> None:
    with pytest.raises(SqlError) as caught:
        parse_select(text)
    assert (caught.value.sqlstate, caught.value.message, caught.value.position) == ("0A000", message, position)


def test_parameters_are_refused() -> None:
    with pytest.raises(SqlError) as caught:
        parse_select("SELECT a FROM b WHERE c = $1")
    assert (caught.value.sqlstate, caught.value.message) == ("42P02", "there is no parameter $1")
