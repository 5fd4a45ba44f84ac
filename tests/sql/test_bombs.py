"""Texts that are made to hurt: refused quickly, or parsed in bounded time, and never a RecursionError."""

from __future__ import annotations

import sys
import time

import pytest
from sqlglot import exp

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.sql import parse, parse_one
from mvserver.sql.dialect import parse_select
from mvserver.sql.pull import MvDialect

pytestmark = pytest.mark.large

MANY = 10_000
REFUSED_WITHIN_S = 5.0  # a bound against quadratic and exponential work, with room for a slow machine
WRAPPERS = ["SELECT {} FROM t", "CREATE MATERIALIZED VIEW v AS SELECT {} FROM t"]

TOO_DEEP = {
    "brackets": "(" * MANY + "1" + ")" * MANY,
    "open brackets": "(" * MANY,
    "CASE": "CASE WHEN " * MANY + "a" + " THEN 1 END" * MANY,
    "open CASE": "CASE " * MANY,
    "NOT": "NOT " * MANY + "a",
    "minus": "- " * MANY + "1",
    "tilde": "~ " * MANY + "1",
    "minus in brackets": "(-" * MANY + "1" + ")" * MANY,
    "calls": "f(" * MANY + "a" + ")" * MANY,
    "sub-queries": "(SELECT " * MANY + "a" + ")" * MANY,
    "arrays": "ARRAY[" * MANY + "1" + "]" * MANY,
    "plus": "+".join(["a"] * MANY),
    "concat": "||".join(["a"] * MANY),
    "comparisons": "=".join(["a"] * MANY),
    "casts": "a" + "::int" * MANY,
    "subscripts": "a" + "[1]" * MANY,
    "arrows": "a" + "->b" * MANY,
    "dots": "a" + ".b" * MANY,
    "IS": "a" + " IS NULL" * MANY,
    "array type": "a::int" + "[]" * MANY,
    "AT TIME ZONE": "a" + " AT TIME ZONE 'x'" * MANY,
    "left-deep tree in brackets": "(" * 39 + "a" + (")" + "+a" * 100) * 39,
}


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=["pull", "continuous"])
@pytest.mark.parametrize("name", TOO_DEEP)
def test_deep_texts_are_refused_at_once(name: str, wrapper: str) -> None:
    text = wrapper.format(TOO_DEEP[name])
    begin = time.monotonic()
    with pytest.raises(SqlError) as caught:
        parse(text)
    assert caught.value.sqlstate == "54001"
    assert caught.value.message == "stack depth limit exceeded"
    assert caught.value.position is not None
    assert time.monotonic() - begin < REFUSED_WITHIN_S


DEPTH = limits.STATEMENT_DEPTH_MAX
CHAIN = limits.STATEMENT_CHAIN_MAX
DEEPEST = {
    "brackets": "(" * DEPTH + "a" + ")" * DEPTH,
    "CASE condition": "CASE WHEN " * DEPTH + "a" + " THEN 1 END" * DEPTH,
    "CASE else": "CASE WHEN a THEN 1 ELSE " * DEPTH + "a" + " END" * DEPTH,
    "NOT": "NOT " * DEPTH + "a",
    "minus": "- " * DEPTH + "a",
    "calls": "f(" * DEPTH + "a" + ")" * DEPTH,
    "NOT in brackets": "(NOT " * (DEPTH // 2) + "a" + ")" * (DEPTH // 2),
    "OR in brackets": "(a OR " * DEPTH + "b" + ")" * DEPTH,
    "plus": "+".join(["a"] * CHAIN),
    "casts": "a" + "::int" * (CHAIN - 1),
    "arrows": "a" + "->b" * (CHAIN - 1),
    "chains in brackets": "(" * DEPTH + "a" + (")" + "+a" * 10) * DEPTH,
}


@pytest.mark.parametrize("name", DEEPEST)
def test_the_deepest_accepted_texts_need_no_more_stack_than_there_is(name: str) -> None:
    """From a caller that is itself 300 frames deep, with half of the limit for readers of the tree."""

    def deeper(frames: int) -> None:
        if frames:
            deeper(frames - 1)
            return
        pull = parse_one(f"SELECT {DEEPEST[name]} FROM t")
        pull.select.sql(dialect=MvDialect)  # type: ignore[attr-defined]
        parse_one(f"CREATE MATERIALIZED VIEW v AS SELECT {DEEPEST[name]} FROM t")

    before = sys.getrecursionlimit()
    assert before >= limits.RECURSION_LIMIT
    sys.setrecursionlimit(before // 2)
    try:
        deeper(300)
    finally:
        sys.setrecursionlimit(before)


def depth_of(node: exp.Expr) -> int:
    deepest, stack = 0, [(node, 1)]
    while stack:
        current, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in current.iter_expressions())
    return deepest


@pytest.mark.parametrize("word", ["OR", "AND"])
def test_five_thousand_conditions_are_a_balanced_tree(word: str) -> None:
    chain = f" {word} ".join(f"a = {i}" for i in range(5_000))
    pull = parse_one(f"SELECT a FROM t WHERE {chain}")
    assert depth_of(pull.select) < 25  # type: ignore[attr-defined]
    regenerated = pull.select.sql(dialect=MvDialect)  # type: ignore[attr-defined]
    assert regenerated == f"SELECT a FROM t WHERE {chain}"
    assert depth_of(parse_select(f"SELECT a FROM t WHERE {chain}")) < 25


@pytest.mark.parametrize("name", ["v.c", "s.v.c", '"v"."c"', "v.c + 1", "v.c IS NULL", "f(v.c)", "(v.c).d"])
@pytest.mark.parametrize("between", [", ", " AND "])
def test_a_thousand_qualified_names_are_no_chain(name: str, between: str) -> None:
    """Dots of one name after the other were added up: a program that qualifies 41 columns got a 54001."""
    parse_one(f"SELECT {between.join([name] * 1_000)} FROM v GROUP BY {', '.join(['v.c'] * 1_000)}")


def test_a_hundred_thousand_items_in_a_list() -> None:
    many, less = (",".join(str(i) for i in range(count)) for count in (100_000, 20_000))
    for text, nodes, numbers in (
        (f"SELECT a FROM t WHERE a IN ({many})", 1, many),
        (f"CREATE STREAM s AS SELECT a FROM t WHERE a IN ({less})", 20_000, less),
    ):
        items = parse_one(text).select.args["where"].this.expressions  # type: ignore[attr-defined]
        assert len(items) == nodes
        assert ",".join(item.sql() for item in items).replace(" ", "") == numbers


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("SELECT '" + "x" * limits.STATEMENT_BYTES_MAX + "'", "54000", "statement is too long"),
        ("SELECT '" + "é" * (limits.STATEMENT_BYTES_MAX // 2) + "'", "54000", "statement is too long"),
        ("VALUES " + ",".join("(f(1), 2)" for _ in range(40_000)), "54000", "statement is too long"),
        ("SELECT 1" + ", 1" * 200_000, "54000", "statement is too long"),
        ("SELECT 1;" * (limits.STATEMENTS_PER_TEXT_MAX + 1), "54000", "too many statements in one text"),
        ("CREATE STREAM s AS SELECT " + ", ".join(["a"] * 1_601) + " FROM t", "54011",
         "target lists can have at most 1600 entries"),
        ("CREATE STREAM s (" + ", ".join(f"c{i} INT" for i in range(1_601)) + ")", "54011",
         "streams can have at most 1600 columns"),
        ("SELECT 1" + " UNION ALL SELECT 1" * MANY, "54001", "stack depth limit exceeded"),
        ("CREATE STREAM s (a " + "ARRAY<" * MANY, "54001", "stack depth limit exceeded"),
        ("PREPARE p AS " * (MANY // 2), "42601", 'syntax error at or near "PREPARE"'),
        ("EXPLAIN " * MANY, "42601", 'syntax error at or near "EXPLAIN"'),
        ("INTERVAL " * MANY, "42601", 'syntax error at or near "INTERVAL"'),
    ],
    ids=["bytes", "characters", "rows", "tokens", "statements", "outputs", "columns", "unions", "types", "PREPARE",
         "EXPLAIN", "INTERVAL"],
)  # fmt: skip
def test_limits(text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse(text)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


def test_running_out_of_stack_is_an_error_of_the_statement() -> None:
    with pytest.raises(SqlError) as caught:
        parse("SELECT " + "INTERVAL " * MANY)  # a chain that the guard does not know
    assert caught.value.sqlstate == "54001"


@pytest.mark.parametrize(
    "text",
    [
        "'" * 100_001,
        "’" * 100_001,
        '"' * 100_001,
        "/*" * 100_000,
        "$a$" * 3,
        "E'" + "\\\\" * 100_000,
        " " * 500_000 + "'",
    ],
)
def test_quotes_without_end_take_linear_time(text: str) -> None:
    begin = time.monotonic()
    with pytest.raises(SqlError) as caught:
        parse(text)
    assert caught.value.sqlstate == "42601"
    assert len(caught.value.message) < 300
    assert time.monotonic() - begin < REFUSED_WITHIN_S


def test_nested_comments_nest_as_deep_as_they_like() -> None:
    assert parse("/*" * 100_000 + "*/" * 100_000) == []
