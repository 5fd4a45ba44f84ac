"""Texts and messages that are made to hold up a server: as large and as deep as it takes them, and more."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from mvserver import limits

MANY = 10_000
BOMBS = {
    "brackets": "SELECT " + "(" * MANY + "1" + ")" * MANY,
    "CASE": "SELECT " + "CASE WHEN " * MANY + "true" + " THEN 1 END" * MANY,
    "NOT": "SELECT " + "NOT " * MANY + "true",
    "sub-queries": "SELECT " + "(SELECT " * MANY + "1" + ")" * MANY,
    "lists": "SELECT " + "ARRAY[" * MANY + "1" + "]" * MANY,
    "calls": "SELECT " + "abs(" * MANY + "1" + ")" * MANY,
    "plus": "SELECT " + "+".join(["1"] * MANY),
    "casts": "SELECT 1" + "::int" * MANY,
    "ANDs": "SELECT count(*) FROM visits WHERE " + " AND ".join(f"visits <> {n}" for n in range(2_500)),
    "INTERSECTs": " INTERSECT ".join(["SELECT 1"] * 1_000),
    "columns": "SELECT " + ", ".join(["visits"] * 5_000) + " FROM visits",
    "WITH": "WITH " + ", ".join(f"c{n} AS (SELECT {n} AS x)" for n in range(2_000)) + " SELECT * FROM c5",
    "joins": "SELECT 1 FROM visits a0 " + " ".join(f"JOIN visits a{n} USING (url)" for n in range(1, 2_000)),
    "doubling": "WITH d0 AS (SELECT url AS x FROM visits), "
    + ", ".join(f"d{n} AS (SELECT x || x AS x FROM d{n - 1})" for n in range(1, 40))
    + " SELECT max(length(x)) FROM d39",
    "cross join": "SELECT count(*) FROM " + ", ".join(f"generate_series(1, 1000) g{n}" for n in range(4)),
    "regular expression": "SELECT count(*) FROM generate_series(1, 9999999) g(n) WHERE repeat(n::text, 99) ~ '(1+2)+x'",
    "one too long": "SELECT '" + "x" * 1_100_000 + "'",
}
"""Each is refused, or stopped by its time-out."""

_DEEP = limits.STATEMENT_DEPTH_MAX - 2
_CHAIN = limits.STATEMENT_CHAIN_MAX
_LONG = limits.STATEMENT_BYTES_MAX - 1_000


def _filled(begin: str, piece: str, end: str, size: int) -> str:
    return begin + piece * ((size - len(begin) - len(end)) // len(piece)) + end


def at_the_limit() -> Iterator[tuple[str, str]]:
    """As deep and as long as they may be."""
    yield "nested brackets", "SELECT " + "(" * _DEEP + "1" + ")" * _DEEP
    yield "nested CASE", "SELECT " + "CASE WHEN true THEN " * _DEEP + "1" + " END" * _DEEP
    yield "nested sub-queries", "SELECT " + "(SELECT " * _DEEP + "1" + ")" * _DEEP
    yield "chain of plus", "SELECT " + "+".join(["1"] * (_CHAIN - 1))
    yield "chain of concatenations", "SELECT " + " || ".join(["'x'"] * (_CHAIN - 1))
    yield "calls of many arguments", f"SELECT concat({', '.join(map(str, range(9_000)))})"
    yield "many statements", ";".join(["SELECT 1"] * (limits.STATEMENTS_PER_TEXT_MAX - 1))
    yield (
        "different statements",
        ";".join(f"SELECT {n} AS a{n}" for n in range(limits.STATEMENTS_PER_TEXT_MAX - 1)),
    )
    yield "many settings", ";".join(["SET work_mem = '1MB'"] * (limits.STATEMENTS_PER_TEXT_MAX - 1))
    for kib in (64, 256, _LONG // 1024):
        size = kib * 1024
        yield f"literal of {kib} KiB", _filled("SELECT length('", "x", "')", size)
        yield f"quotes in a literal of {kib} KiB", _filled("SELECT length('", "''", "')", size)
        yield f"escapes of {kib} KiB", _filled("SELECT length(E'", "\\n", "')", size)
        yield f"code points of {kib} KiB", _filled("SELECT length(U&'", "\\00e9", "')", size)
        yield f"dollar quotes of {kib} KiB", _filled("SELECT length($a$", "$b$", "$a$)", size)
        yield f"nested comments of {kib} KiB", _filled("SELECT 1 ", "/* /* */ */", "", size)
        yield f"lines of comments of {kib} KiB", _filled("SELECT 1 ", "--\n", "", size)
        yield f"semicolons of {kib} KiB", _filled("SELECT 1", ";", "", size)
        yield f"spaces of {kib} KiB", _filled("SELECT", " ", "1", size)
        yield f"a name of {kib} KiB", _filled("SELECT ", "a", "", size)
        yield f"a quoted name of {kib} KiB", _filled('SELECT "', "a", '"', size)
        yield f"digits of {kib} KiB", _filled("SELECT ", "1", "", size)
        yield f"operators of {kib} KiB", _filled("SELECT 1 ", "+", " 1", size)
        yield f"parameters of {kib} KiB", _filled("SELECT $1 IN (", "$1,", "$1)", size)
        yield f"words of {kib} KiB", _filled("SELECT ", "a ", "", size)
        yield f"numbers behind IN of {kib} KiB", _filled("SELECT 1 IN (", "1,", "1)", size)
        yield f"texts behind IN of {kib} KiB", _filled("SELECT 'a' IN (", "'a',", "'a')", size)
        yield f"rows of VALUES of {kib} KiB", _filled("SELECT count(*) FROM (VALUES (1,2)", ",(1,2)", ") AS v", size)
        yield f"an array's text of {kib} KiB", _filled("SELECT cardinality('{1", ",1", "}'::int[])", size)
        yield f"a document of {kib} KiB", _filled("SELECT length('[1", ",1", "]'::jsonb::text)", size)


# --- messages -------------------------------------------------------------------------------------------------------
def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def startup() -> bytes:
    body = b"user\0postgres\0database\0postgres\0options\0-c statement_timeout=500ms\0\0"
    return struct.pack("!ii", len(body) + 8, 3 << 16) + body


def query(text: str) -> bytes:
    return message(b"Q", text.encode() + b"\0")


def parse(text: str, oids: Sequence[int] = ()) -> bytes:
    return message(b"P", b"\0" + text.encode() + b"\0" + struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def bind(values: Sequence[bytes]) -> bytes:
    body = b"\0\0\0\0" + struct.pack("!H", len(values))
    body += b"".join(struct.pack("!i", len(value)) + value for value in values)
    return message(b"B", body + struct.pack("!H", 0))


EXECUTE, SYNC, COPY_DONE = message(b"E", b"\0\0\0\0\0"), message(b"S"), message(b"c")
_TEXT, _INT8, _INT4_ARRAY, _JSONB, _NUMERIC = 25, 20, 1007, 3802, 1700
_PARAMETERS_MAX = 65_535
_WHOLE = limits.MESSAGE_BYTES_MAX - 1_000


def bound(text: str, oids: Sequence[int], values: Sequence[bytes]) -> bytes:
    return parse(text, oids) + bind(values) + EXECUTE + SYNC


def messages() -> Iterator[tuple[str, bytes]]:
    """Of the extended protocol; each ends with Sync."""
    every = ", ".join(f"${n}" for n in range(1, _PARAMETERS_MAX + 1))
    yield "65,535 parameters", bound(f"SELECT 1 IN ({every})", (), [b"1"] * _PARAMETERS_MAX)
    some = ", ".join(f"${n}" for n in range(1, 2_001))
    yield "2,000 parameters", bound(f"SELECT 1 IN ({some})", (_INT8,) * 2_000, [b"1"] * 2_000)
    yield "65,535 values for one parameter", bound("SELECT $1::int", (), [b"1"] * _PARAMETERS_MAX)
    yield "65,535 types", parse("SELECT $1::int", (_INT8,) * _PARAMETERS_MAX) + SYNC
    yield "a text of 16 MiB", bound("SELECT length($1)", (_TEXT,), [b"x" * _WHOLE])
    yield "a number of 16 MiB", bound("SELECT $1", (_NUMERIC,), [b"1" * _WHOLE])
    yield "an integer of 16 MiB", bound("SELECT $1", (_INT8,), [b"1" * _WHOLE])
    yield "an array of 1 MiB", bound("SELECT cardinality($1)", (_INT4_ARRAY,), [b"{1" + b",1" * 2**19 + b"}"])
    document = b"[1" + b",1" * (_WHOLE // 2 - 9) + b"]"
    yield "a document of 16 MiB", bound("SELECT 1 WHERE $1 IS NULL", (_JSONB,), [document])
    yield "brackets in a document", bound("SELECT $1", (_JSONB,), [b"[" * 1_000_000])
    yield "100,000 messages", message(b"H") * 100_000 + SYNC
    yield "10,000 times Parse and Bind", (parse("SELECT 1") + bind([])) * 10_000 + SYNC
    yield "a long name", message(b"C", b"S" + b"x" * 9_000 + b"\0") + SYNC


def copies() -> Iterator[tuple[str, bytes]]:
    """CopyData for a stream of two columns, a text and a number."""

    def data(piece: bytes, size: int) -> bytes:
        return message(b"d", piece * (size // len(piece)))

    row = b"a\t1\n"
    yield "short rows", data(row, 2**20)
    yield "one long row", data(b"a", _WHOLE) + message(b"d", row[1:])
    yield "escapes", data(b"\\n", 2**22) + message(b"d", row[1:])
    yield "empty rows", data(b"\n", _WHOLE)
    yield "columns", data(b"\t", _WHOLE)
    yield "rows in 20,000 messages", message(b"d", row) * 20_000
