"""Calls, operators and casts at the edges of their arguments answer as a real PostgreSQL: types, values, SQLSTATEs."""

from __future__ import annotations

import json
import math
import os
import random
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import psycopg
import pytest

from mvserver import sqlstates
from mvserver.types import oids
from tests.clients.edge_calls import statements

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[Any]
Answer = str | tuple[int, Sequence[str | None]]
FIXED_SEED = 11
COUNT = 700  # in the normal set; by night all of several calls of each form
NIGHT_CALLS = 3
REFUSED_SHARE_MAX = 0.03  # what is not supported is refused by name (0A000): no wrong answer, but it must stay rare
PRECISION = 1e-6  # numerics have fewer digits than PostgreSQL's: docs/sql/postgresql.md
_NUMBERS = (oids.NUMERIC, oids.FLOAT8, oids.FLOAT4)

VALUE, TYPE, ACCEPTED, REFUSED, ERROR = "another value", "another type", "no error", "an error", "another error"
KNOWN: tuple[tuple[str, str, str], ...] = (
    (VALUE, r"array\[1\.5|jsonb?_agg\(", "numerics of one array have the digits of the one with most"),
    (VALUE, r"regexp_\w+\(.*'(\^|x\*|)'", "empty matches of RE2"),
    (VALUE, r"'5'::jsonb ->", "a scalar is an array of one for PostgreSQL's operator"),
    (VALUE, r"::jsonb (->>|#>>)", "no blanks in the text of a document inside a query"),
    (VALUE, r"ORDER BY x\) FROM \(VALUES .*::jsonb", "documents are ordered as texts"),
    (VALUE, r"right\(.*-2147483648\)", "a number of characters that has no opposite"),
    (TYPE, r"\b(exp|ln|pow|power|sqrt|stddev\w*|var\w*)\(|\^", "double precision for every argument"),
    (TYPE, r"to_reg\w+\(|getdatabaseencoding\(", "oid and text"),
    (TYPE, r"trim\(.*NULL::bytea", "a NULL of type bytea is text there"),
    (REFUSED, r"\bNULL\b", "what is wrong is an error also beside a NULL"),
    (REFUSED, r"::numeric|(?i:'(nan|-?inf\w*)')", "numeric and interval have neither NaN nor infinity"),
    (REFUSED, r"(time|interval) '.* (=|<>|<|>=) (time|interval) '", "no comparisons of a time with an interval"),
    (REFUSED, r"timezone\('100%'", "a zone in POSIX's form has letters and a number"),
    (REFUSED, r"to_char\(.*(NaN|Infinity)", "neither NaN nor infinity by a pattern"),
    (REFUSED, r"^SELECT x::(int|text)\[\]", "a text that is no constant is an array in DuckDB's form only"),
    (REFUSED, r"percentile_cont\(.*time '", "none of times"),
    (REFUSED, r"\^|\bpow(er)?\(", "a result too large for double precision"),
    (REFUSED, r"'\[1,\]'", "an interval with signs that PostgreSQL passes over"),
    (ERROR, r"::(time|date|timestamp)", "which error a wrong time has"),
    (ERROR, r"-?\b214748364[78]\b", "an overflow on the way is found first"),
    (REFUSED, r"pad\(.*2147483647", "a length beyond what one text may have, though nothing fills it"),
    (ERROR, r"array_\w+\(", "arrays of other types or of two dimensions"),
    (ERROR, r"time '.* \+ time '", "42883, not 42725"),
    (ERROR, r"numeric\(6,2\)", "infinity is no number here"),
    (ERROR, r"json_build_object\(NULL", "22023, as in the version that the server is of"),
    (ERROR, r"\^ ", "a text that is no number, before the types are known"),
    (VALUE, r"interval '.* \* ", "microseconds of products are rounded in another way"),
    (VALUE, r"any_value\(", "any"),
    (VALUE, r"regexp_match\(", "a group that matched nothing is empty, not NULL"),
    (VALUE, r"(var|stddev)\w*\(.*(NaN|Infinity)", "one value that is not finite has no deviation"),
    (REFUSED, r"factorial\((3[4-9]|[4-9]\d|\d{3,})\D", "a numeric has 38 digits"),
    (ERROR, r"percentile_cont\(1\.5", "the share is judged before the type"),
    (VALUE, r"to_regclass\('12'\)", "a number is a name, as in the version that the server is of"),
    (VALUE, r"\(array\[\[1,2\],\[3,4\]\]\)\[", "a row of an array of two dimensions"),
    (TYPE, r"\(array\[\[1,2\],\[3,4\]\]\)\[", "a row of an array of two dimensions"),
    (VALUE, r"percentile_cont\(.*Infinity", "between two infinities"),
    (TYPE, r"::jsonb", "a document is json where its type does not show in the text"),
    (REFUSED, r"array_(cat|replace)\(.*\[\[", "arrays of other numbers of dimensions"),
    (REFUSED, r"percentile_cont\(.*interval '", "none of intervals"),
    (
        REFUSED,
        r"'(23:59:60|P1Y2M|\.5|\+5)'",
        "a text that is no constant is a time or an interval in DuckDB's form only",
    ),
    (
        ERROR,
        r"interval|date_trunc\('timezone'|294277|::int\[\]|9223372036854775807|::json\b"
        r"|percentile_\w+\(1\.5\)",
        "which error comes first",
    ),
    (ACCEPTED, r"^SELECT interval '.* / |NULL::interval / ", "the divisor of an interval is cast to a number"),
    (ACCEPTED, r"bigint [-+] .*date|date .* [-+] .*bigint|date '.* [-+] .*2147483648|\d [-+] (NULL::)?date", "days"),
    (
        ACCEPTED,
        r"overlay\(.*2147483647|string_agg\(.*bytea|to_regtype\(|(stddev|var)\w*\(.*1e300|-1e-400|-inf",
        "no check",
    ),
    (ACCEPTED, r"^SELECT ('2024|x::time FROM)", "a date is midnight for DuckDB"),
    (ACCEPTED, r"::json\b", "json and jsonb are one type inside a query: json has an order too"),
    (ACCEPTED, r"'epoch'", "a time of day for DuckDB"),
    (ACCEPTED, r"(extract|date_part)\(", "fields that a date or a time without a zone has not are 0"),
)
"""Differences by kind and by a pattern of the statement, with the reason."""


def answer(connection: Connection, text: str) -> Answer:
    try:
        result = connection.execute(text).pgresult
    except psycopg.Error as error:
        return error.sqlstate or ""
    assert result is not None
    cells = [result.get_value(row, 0) for row in range(result.ntuples)]
    return result.ftype(0), [None if cell is None else bytes(cell).decode() for cell in cells]


def difference(mine: Answer, wanted: Answer) -> str | None:
    """Its kind; None where both are the same, or ours is a refusal by name."""
    if mine == wanted or mine == sqlstates.FEATURE_NOT_SUPPORTED:
        return None
    if isinstance(mine, str):
        return ERROR if isinstance(wanted, str) else REFUSED
    if isinstance(wanted, str):
        return ACCEPTED
    if len(mine[1]) != len(wanted[1]) or not all(map(_alike, mine[1], wanted[1], [wanted[0]] * len(mine[1]))):
        return VALUE
    return TYPE if mine[0] != wanted[0] else None


def _alike(mine: str | None, wanted: str | None, oid: int) -> bool:
    if mine == wanted or mine is None or wanted is None:
        return mine == wanted
    if oid == oids.JSON:  # blanks are not kept
        return bool(json.loads(mine) == json.loads(wanted))
    if oid in _NUMBERS:
        one, other = float(mine), float(wanted)
        return math.isclose(one, other, rel_tol=PRECISION, abs_tol=PRECISION) or (one != one and other != other)
    return False


def differences(ours: Connection, theirs: Connection, texts: Iterator[str]) -> list[tuple[str, str, Answer, Answer]]:
    found, asked, refused = [], 0, 0
    for text in texts:
        mine, wanted = answer(ours, text), answer(theirs, text)
        asked += 1
        refused += mine == sqlstates.FEATURE_NOT_SUPPORTED != wanted
        kind = difference(mine, wanted)
        if kind is not None and not any(kind == known and re.search(pattern, text) for known, pattern, _ in KNOWN):
            found.append((kind, text, mine, wanted))
    assert refused <= REFUSED_SHARE_MAX * asked
    return found


def test_calls_are_answered_as_by_postgresql(our_shop: Connection, their_shop: Connection) -> None:
    print(f"seed {FIXED_SEED}")
    made = list(statements(FIXED_SEED, 1))
    random.Random(FIXED_SEED).shuffle(made)
    assert differences(our_shop, their_shop, islice(iter(made), COUNT)) == []


@pytest.mark.night
def test_other_calls_are_answered_as_by_postgresql(our_shop: Connection, their_shop: Connection) -> None:
    seed = int(os.environ.get("MVSERVER_TEST_SEED", FIXED_SEED))
    print(f"MVSERVER_TEST_SEED={seed}")
    assert differences(our_shop, their_shop, statements(seed, NIGHT_CALLS)) == []
