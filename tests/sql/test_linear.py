"""A parser's work grows with its text, not with what its levels multiply to; and it can be stopped.

Counted in steps of the parser, which are the same on every machine.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable

import pytest

from mvserver import interrupts, limits, sqlstates
from mvserver.errors import SqlError
from mvserver.sql import parse
from mvserver.sql.dialect import parse_pull
from mvserver.sql.lexer import tokenize
from mvserver.sql.pull_parser import PullParser
from mvserver.sql.pull_tokens import _WORDS

pytestmark = pytest.mark.large

LEVELS = 10
STEPS_PER_TOKEN = 12  # of the worst shape below; 2 ** LEVELS would be far more

WORDS = sorted(
    set(_WORDS) | {word.lower() for word in (*PullParser.FUNCTION_PARSERS, *PullParser.NO_PAREN_FUNCTION_PARSERS)}
    | {"x", "date", "timestamp", "int4", "array", "row", "interval", "limit", "offset", "greatest"}
)  # fmt: skip


def _nested(begin: str, end: str, innermost: str = "1", before: str = "SELECT ", behind: str = "") -> str:
    return before + begin * LEVELS + innermost + end * LEVELS + behind


SHAPES: dict[str, Callable[[str], str]] = {
    "call": lambda word: _nested(f"{word}(", ")"),
    "call of a text": lambda word: _nested(f"{word}(", ")", "'a'"),
    "call of two": lambda word: _nested(f"{word}(", ", 2)"),
    "call AS": lambda word: _nested(f"{word}(", " AS int)"),
    "call FROM": lambda word: _nested(f"{word}(a FROM ", ")"),
    "call DISTINCT": lambda word: _nested(f"{word}(DISTINCT ", ")"),
    "named argument": lambda word: _nested(f"{word}(a => ", ")"),
    "subscript": lambda word: _nested(f"{word}[", "]"),
    "prefix": lambda word: _nested(f"{word} ", ""),
    "prefix in brackets": lambda word: _nested(f"({word} ", ")"),
    "operator": lambda word: _nested(f"a {word} (", ")"),
    "operator before a query": lambda word: _nested(f"a {word} (SELECT ", ")"),
    "source": lambda word: _nested(f"{word} (SELECT * FROM ", ") a", "t", "SELECT * FROM "),
    "behind a source": lambda word: _nested(f"t {word} (SELECT * FROM ", ") a", "t", "SELECT * FROM "),
    "function as source": lambda word: _nested(f"{word}(", ")", before="SELECT * FROM "),
    "clause": lambda word: _nested(f" {word} (SELECT 1", ")", " ", "SELECT 1"),
    "condition": lambda word: _nested(f"{word} (SELECT 1 FROM a JOIN b ON ", ")", before="SELECT 1 FROM a JOIN b ON "),
    "cast": lambda word: _nested(f"1::{word}(", ")"),
    "cast with a length": lambda word: _nested(f"1::{word}[", "]"),
    "set operation": lambda word: _nested(f"{word} (SELECT 1 ", ")", " ", "SELECT 1 "),
    "window": lambda word: _nested(f"sum(1) {word} (ORDER BY ", ")"),
    "argument's clause": lambda word: _nested(f"f(a {word} ", ")"),
    "common table": lambda word: _nested(f"WITH a AS {word} (", ") SELECT 1", "SELECT 1", ""),
    "tuple": lambda word: _nested(f"({word}, ", ")"),
}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    made = [0]
    advance = PullParser._advance

    def counted(self: PullParser, times: int = 1) -> None:
        made[0] += 1
        advance(self, times)

    monkeypatch.setattr(PullParser, "_advance", counted)
    return made


@pytest.mark.parametrize("shape", SHAPES)
def test_steps_grow_with_the_text(steps: list[int], shape: str) -> None:
    """Every word that means something to the parser, nested in every place where it may stand."""
    worst: list[tuple[float, str]] = []
    for word in WORDS:
        text = SHAPES[shape](word)
        steps[0] = 0
        try:
            parse_pull(text)
        except SqlError as error:
            assert error.sqlstate != sqlstates.STATEMENT_TOO_COMPLEX, text  # noqa: PT017 - others are as PostgreSQL's
        worst.append((steps[0] / len(tokenize(text)), word))
    assert max(worst)[0] <= STEPS_PER_TOKEN, sorted(worst)[-5:]


def test_mixed_levels(steps: list[int]) -> None:
    """Levels of different kinds, by chance."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    levels = [
        ("ARRAY[", "]"), ("date(", ")"), ("(SELECT 1 LIMIT ", ")"), ("(SELECT 1 OFFSET ", ")"), ("CAST(", " AS date)"),
        ("(", ")"), ("CASE WHEN ", " THEN 1 END"), ("x IN (", ")"), ("timestamp(", ")"), ("interval(", ")"),
        ("(SELECT ", ")"), ("coalesce(", ", 1)"), ("a[", "]"), ("NOT ", ""), ("EXISTS (SELECT ", ")"),
        ("1 = ANY(ARRAY[", "])"), ("row(", ")"), ("extract(year FROM ", ")"), ("(VALUES (", "))"), ("int4(", ")::text"),
    ]  # fmt: skip
    for _ in range(300):
        text = "1"
        for begin, end in chance.choices(levels, k=15):
            text = begin + text + end
        steps[0] = 0
        try:
            parse_pull(f"SELECT {text}")
        except SqlError as error:
            assert error.sqlstate == sqlstates.SYNTAX_ERROR, text  # noqa: PT017
        assert steps[0] <= STEPS_PER_TOKEN * len(tokenize(text)), text


def test_what_would_be_read_again_and_again_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound behind the productions above: here one of them goes back as sqlglot's own does."""
    monkeypatch.setattr(
        PullParser, "_can_parse_limit_or_offset", super(PullParser, PullParser)._can_parse_limit_or_offset
    )
    with pytest.raises(SqlError) as caught:
        parse("SELECT 1 LIMIT " + "(SELECT 1 LIMIT " * 30 + "1" + ")" * 30)
    assert (caught.value.sqlstate, caught.value.message) == ("54001", "stack depth limit exceeded")
    assert caught.value.position is not None


# --- what is read differently now means what it meant ---------------------------------------------------------------
SAME = {
    "SELECT date '2024-01-02', timestamp(3) '2024-01-02 03:04:05.678'": (
        "SELECT CAST('2024-01-02' AS DATE), CAST('2024-01-02 03:04:05.678' AS TIMESTAMP(3))"
    ),
    "SELECT numeric(10, 2) '1.5', timestamp with time zone '2024-01-02', double precision '1'": (
        "SELECT CAST('1.5' AS DECIMAL(10, 2)), CAST('2024-01-02' AS TIMESTAMPTZ), CAST('1' AS DOUBLE PRECISION)"
    ),
    "SELECT date(a), time, date FROM t": "SELECT DATE(a), time, date FROM t",
    "SELECT date('2020-01' || '-01'), date('2020-01-01'::text), time((('10:00')))": (
        "SELECT DATE('2020-01' || '-01'), DATE(CAST('2020-01-01' AS TEXT)), TIME((('10:00')))"
    ),
    "SELECT interval '1 day', interval FROM t": "SELECT INTERVAL '1 DAY', interval FROM t",
    "SELECT a::int[], a::int[3], '{}'::text[][]": "SELECT CAST(a AS INT[]), CAST(a AS INT)[3], CAST('{}' AS TEXT[][])",
    "SELECT 1 LIMIT (SELECT 2) OFFSET (SELECT 3)": "SELECT 1 LIMIT (SELECT 2) OFFSET (SELECT 3)",
    "SELECT a limit 1": "SELECT a LIMIT 1",
    "SELECT a AS limit FROM t": "SELECT a AS limit FROM t",
    "SELECT ARRAY[1, 2], ARRAY[]::int[], ARRAY[[1], [2]]": (
        "SELECT ARRAY[1, 2], CAST(ARRAY[] AS INT[]), ARRAY[ARRAY[1], ARRAY[2]]"
    ),
}


@pytest.mark.parametrize("text", SAME)
def test_types_and_limits_are_read_as_before(text: str) -> None:
    assert parse_pull(text).sql(dialect="postgres") == SAME[text]


def test_a_long_array_of_literals_is_one_node() -> None:
    tree = parse_pull("SELECT ARRAY[" + ", ".join(str(-n if n % 2 else n) for n in range(100_000)) + "]")
    assert sum(1 for _ in tree.walk()) < 10
    assert tree.sql(dialect="duckdb").count(",") == 99_999


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + ", ".join(["1"] * 20_000),
        "SELECT concat(" + ", ".join(["1"] * 20_000) + ")",
        "SELECT 1 ORDER BY " + ", ".join(["1"] * 20_000),
        "SELECT 1 WHERE 1 IN (1), " + ", ".join(["1"] * 40_000),
        "VALUES (1)" + ", 1" * 40_000,
    ],
    ids=["columns", "arguments", "keys", "behind IN", "behind VALUES"],
)
def test_literals_count_where_each_is_a_node(text: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse(text)
    assert caught.value.sqlstate == sqlstates.PROGRAM_LIMIT_EXCEEDED


MANY = 20_000


def _many(text: str, piece: str, times: int = MANY) -> str:
    """The text with the piece many times where it has a star."""
    return text.replace("*", ",".join([piece] * times))


NODES: dict[str, str] = {
    "parameters": _many("SELECT 1 IN (*)", "$1"),
    "a parameter at the end": _many("SELECT 1 IN (*, $1)", "1"),
    "a column at the end": _many("SELECT 1 IN (*, a)", "1"),
    "nothing at the end": _many("SELECT 1 IN (*,, 1)", "1"),
    "no end": _many("SELECT 1 IN (*", "1"),
    "minus before texts": _many("SELECT 1 IN (*)", "-'1'"),
    "two minus": _many("SELECT 1 IN (*)", "- -1"),
    "mixed texts": _many("SELECT ARRAY[*]", "'a', -'b'", MANY // 2),
    "short lists": "SELECT " + " OR ".join([_many("1 IN (*)", "1", 400)] * 100),
    "short arrays": _many("SELECT concat(*)", _many("ARRAY[*]", "1", 400), 100),
    "a column's subscripts": _many("SELECT a.array[*] FROM a", "1"),
    "a quoted column's": _many('SELECT "array"[*] FROM a', "1"),
    "a type's lengths": _many("SELECT 1::array[*]", "1"),
    "another type's": _many("SELECT 1::int array[*], CAST(1 AS array[*])", "1"),
    "position": _many("SELECT position('a' IN (*))", "'b'"),
    "rows of two widths": _many("VALUES *", "(1),(1,2)", MANY // 2),
    "rows of minus texts": _many("VALUES *", "(1,-'1')", MANY // 2),
    "empty rows": _many("VALUES *", "()"),
    "no rows": _many("SELECT values, * FROM a", "(1)"),
    "an alias": _many("SELECT 1 AS values, * FROM a", "(1)"),
}


@pytest.mark.parametrize("name", NODES)
def test_what_becomes_a_node_each_counts_although_it_looks_like_a_list(steps: list[int], name: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse(NODES[name])
    assert caught.value.sqlstate == sqlstates.PROGRAM_LIMIT_EXCEEDED
    assert steps == [0]


CHEAP: dict[str, str] = {
    "IN": _many("SELECT 1 IN (*)", "1") + _many(" AND 'a' NOT IN (*)", "'a'"),
    "negative": _many("SELECT 1 IN (*) IN (1)", "-1"),
    "ARRAY": _many("SELECT ARRAY[*]", "1") + _many(" || ARRAY[*]", "'a'"),
    "ARRAY behind words": _many("SELECT DISTINCT ARRAY[*]", "1", 4_000) + _many(" ORDER BY ARRAY[*]", "1"),
    "VALUES": _many("SELECT 1 FROM (VALUES *) AS v", "(1, -2)", MANY // 2),
    "VALUES behind IN": _many("SELECT 1 IN (VALUES *)", "('a')"),
    "wide VALUES": _many("VALUES *", _many("(*)", "1", 1_000), 100),
}


@pytest.mark.parametrize("name", CHEAP)
def test_lists_of_literals_are_cheap(steps: list[int], name: str) -> None:
    tree = parse_pull(CHEAP[name])
    assert sum(1 for _ in tree.walk()) <= 8_000
    assert steps[0] <= 15_000


# --- stopping -------------------------------------------------------------------------------------------------------
class _Stopped(Exception):
    pass


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 IN (" + "1," * 20_000 + "1)",
        "SELECT * FROM (VALUES " + ", ".join(["(1, 'a')"] * 10_000) + ") AS v",
        "SELECT " + "- " * 40_000 + "1",
        ";" * 40_000,
        "SELECT " + "a " * 20_000,
        "--\n" * 40_000,
        "SELECT ARRAY[" + "1," * 20_000 + "1]",
        "SELECT " + "+".join(["a * (b - c)"] * 400),
    ],
    ids=["IN", "VALUES", "minus", "semicolons", "words", "comments", "array", "expressions"],
)
def test_parsing_can_be_stopped_at_any_time(text: str) -> None:
    """It asks again and again; whenever the answer is to stop, it does."""
    asked = 0

    def count() -> None:
        nonlocal asked
        asked += 1

    with interrupts.interruptible(count), contextlib.suppress(SqlError):
        parse(text)
    assert asked >= len(tokenize(text[:10_000])) // interrupts.EVERY // 2

    def stop_at(number: int) -> Callable[[], None]:
        left = number

        def stop() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise _Stopped

        return stop

    for number in (0, asked // 2, asked - 1):
        with interrupts.interruptible(stop_at(number)), pytest.raises(_Stopped):
            parse(text)


def test_whoever_asked_before_is_asked_again_afterwards() -> None:
    asked: list[str] = []
    with interrupts.interruptible(lambda: asked.append("outer")):
        with interrupts.interruptible(lambda: asked.append("inner")):
            interrupts.check()
        interrupts.check()
    interrupts.check()
    assert asked == ["inner", "outer"]


def test_limits_of_steps_leave_room() -> None:
    assert limits.PARSE_STEPS_PER_TOKEN_MAX > 2 * STEPS_PER_TOKEN
