"""Worked examples of casts, in the form of the capability table's own, for tests and generators."""

from __future__ import annotations

from mvserver.compiler.capabilities.build import example, fails
from mvserver.sql.worked_examples import Example


def _text(sql: str, expected: str | None) -> Example:
    return example(sql, expected)


def _column(value: str, source: str, target: str) -> str:
    """A cast that is not settled while parsing: the operand is computed, not a bare constant."""
    return f"CAST(coalesce(CAST(NULL AS {source}), CAST('{value}' AS {source})) AS {target})"


CAST_EXAMPLES: tuple[Example, ...] = (
    _text("CAST('  12 ' AS integer)", "12"),
    _text(_column("  12 ", "text", "integer"), "12"),
    fails(_column("1.5", "text", "integer"), "22P02"),
    fails("CAST('1.5' AS integer)", "22P02"),
    fails(_column("", "text", "integer"), "22P02"),
    fails(_column("99999999999", "text", "integer"), "22003"),
    _text(_column("-7", "text", "smallint"), "-7"),
    _text("CAST(2.5 AS integer)", "3"),
    _text("CAST(-2.5 AS integer)", "-3"),
    _text(_column("2.5", "numeric(5,2)", "integer"), "3"),
    _text(_column("2.5", "double precision", "integer"), "2"),
    _text(_column("3.5", "double precision", "bigint"), "4"),
    _text(_column("-2.5", "real", "integer"), "-2"),
    fails(_column("1e20", "double precision", "bigint"), "22003"),
    fails(_column("NaN", "double precision", "integer"), "22003"),
    fails(_column("70000", "integer", "smallint"), "22003"),
    _text("CAST(true AS integer)", "1"),
    _text("CAST(0 AS boolean)", "false"),
    _text("CAST(-3 AS boolean)", "true"),
    *(_text(_column(word, "text", "boolean"), "true") for word in ("t", "TRUE", " yes ", "on", "1", "tru")),
    *(_text(_column(word, "text", "boolean"), "false") for word in ("f", "False", "no", "off", "0", "n", "of")),
    fails(_column("maybe", "text", "boolean"), "22P02"),
    fails(_column("o", "text", "boolean"), "22P02"),
    _text("CAST(true AS text)", "true"),
    _text("CAST(CAST(0.1 AS double precision) AS text)", "0.1"),
    _text("CAST(CAST(100 AS double precision) AS text)", "100"),
    _text("CAST(CAST('1e15' AS double precision) AS text)", "1e+15"),
    _text("CAST(CAST('123456789012345' AS double precision) AS text)", "123456789012345"),
    _text("CAST(CAST('1.5e-5' AS double precision) AS text)", "1.5e-05"),
    _text("CAST(CAST('0.0001' AS double precision) AS text)", "0.0001"),
    _text("CAST(CAST('-0' AS double precision) AS text)", "-0"),
    _text("CAST(CAST('1e300' AS double precision) AS text)", "1e+300"),
    _text("CAST(CAST('-Infinity' AS double precision) AS text)", "-Infinity"),
    _text("CAST(CAST('nan' AS double precision) AS text)", "NaN"),
    _text("CAST(CAST('123456.7' AS real) AS text)", "123456.7"),
    _text("CAST(CAST('1234567' AS real) AS text)", "1.234567e+06"),
    _text("CAST(CAST('-1200000' AS real) AS text)", "-1.2e+06"),
    _text("CAST(CAST('Infinity' AS real) AS text)", "Infinity"),
    _text("CAST(CAST('0.1' AS real) AS text)", "0.1"),
    _text("CAST(1.50 AS text)", "1.50"),
    _text("CAST(CAST(0 AS numeric(20,16)) AS text)", "0.0000000000000000"),
    _text(_column("1e3", "text", "double precision"), "1000"),
    _text(_column(" inf ", "text", "double precision"), "Infinity"),
    fails(_column("1f", "text", "double precision"), "22P02"),
    fails(_column("x", "text", "double precision"), "22P02"),
    _text(_column("1.555", "text", "numeric(10,2)"), "1.56"),
    _text(_column("-1.555", "text", "numeric(10,2)"), "-1.56"),
    fails(_column("12345", "text", "numeric(4,1)"), "22003"),
    _text(_column("0.1", "double precision", "numeric(10,4)"), "0.1000"),
    _text(_column("1.005", "double precision", "numeric(10,2)"), "1.01"),
    _text(_column("1.25", "real", "numeric(10,1)"), "1.3"),
    fails(_column("1e300", "double precision", "numeric(10,2)"), "22003"),
    _text("CAST(123.456 AS numeric(5,1))", "123.5"),
    fails("CAST(123.456 AS numeric(4,2))", "22003"),
    _text(_column("16777217", "integer", "real"), "1.6777216e+07"),
    fails(_column("1e300", "double precision", "real"), "22003"),
    _text("CAST('hello world' AS varchar(5))", "hello"),
    _text(_column("hello world", "text", "varchar(5)"), "hello"),
    _text(_column("2024-05-17", "text", "date"), "2024-05-17"),
    _text(_column("2024-05-17 10:11:12.5", "text", "timestamp"), "2024-05-17 10:11:12.5"),
    _text(_column("2024-05-17T10:11:12", "text", "timestamp"), "2024-05-17 10:11:12"),
    _text(_column("2024-05-17 10:11:12+02", "text", "timestamp with time zone"), "2024-05-17 08:11:12+00"),
    _text(_column("2024-05-17 10:11:12.345678", "timestamp", "date"), "2024-05-17"),
    _text(_column("2024-05-17", "date", "timestamp"), "2024-05-17 00:00:00"),
    _text(_column("2024-05-17 10:11:12", "timestamp", "timestamp with time zone"), "2024-05-17 10:11:12+00"),
    _text(_column("2024-05-17 10:11:12.5", "timestamp", "time"), "10:11:12.5"),
    _text(_column("10:11:12", "text", "time"), "10:11:12"),
    fails(_column("2024-02-30", "text", "date"), "22008"),
    fails(_column("not a date", "text", "date"), "22007"),
    _text("CAST(CAST('\\x00ff' AS bytea) AS text)", "\\x00ff"),
    _text(_column("abc", "text", "bytea"), "\\x616263"),
    _text("CAST(DATE '2024-01-05' AS text)", "2024-01-05"),
    _text("CAST(CAST(NULL AS integer) AS text)", None),
)
