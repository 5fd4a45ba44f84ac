"""COPY as it is written: both grammars of options, what is copied, and what is refused."""

from __future__ import annotations

import pytest

from mvserver.errors import SqlError
from mvserver.sql import parse_one
from mvserver.sql.statements.base import ObjectName
from mvserver.sql.statements.copying import CopyFrom, CopyOptions, CopyTo

CSV = CopyOptions("csv", ",", "")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", CopyOptions()),
        ("(FORMAT text)", CopyOptions()),
        ("WITH (FORMAT csv, HEADER)", CopyOptions("csv", ",", "", True)),
        ("CSV HEADER", CopyOptions("csv", ",", "", True)),
        ("WITH CSV DELIMITER AS ';' NULL AS 'nil' QUOTE '$' ESCAPE AS '!'", CopyOptions("csv", ";", "nil", False, "$",
                                                                                       "!")),
        ("(FORMAT csv, DELIMITER ';', NULL 'nil', QUOTE '$', ESCAPE '!', HEADER off)",
         CopyOptions("csv", ";", "nil", False, "$", "!")),
        ("(FORMAT csv, QUOTE '$')", CopyOptions("csv", ",", "", False, "$", "$")),
        ("(FORMAT csv, FORCE_QUOTE (a, b), HEADER true)", CopyOptions("csv", ",", "", True, force_quote=("a", "b"))),
        ("(FORMAT csv, FORCE_QUOTE *)", CopyOptions("csv", ",", "", force_quote=())),
        ("CSV FORCE QUOTE a, b", CopyOptions("csv", ",", "", force_quote=("a", "b"))),
        ("CSV FORCE QUOTE *", CopyOptions("csv", ",", "", force_quote=())),
        ("BINARY", CopyOptions("binary")),
        ("(FORMAT 'binary', ENCODING 'utf-8')", CopyOptions("binary")),
        ("(DELIMITER '|', NULL '', HEADER 1)", CopyOptions("text", "|", "", True)),
    ],
)  # fmt: skip
def test_options(options: str, expected: CopyOptions) -> None:
    for what in ("v", "(SELECT (a) FROM v)"):
        statement = parse_one(f"COPY {what} TO STDOUT {options}")
        assert isinstance(statement, CopyTo)
        assert statement.options == expected


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("v", 'SELECT * FROM "v"'),
        ('sales."Odd" (a, "B")', 'SELECT "a", "B" FROM "sales"."Odd"'),
        ("d.s.v", 'SELECT * FROM "d"."s"."v"'),
        ("(SELECT f(a, ')') FROM v WHERE (b))", "SELECT f(a, ')') FROM v WHERE (b)"),
        ("((SELECT 1) UNION (SELECT 2))", "(SELECT 1) UNION (SELECT 2)"),
        ("(VALUES (1), (2))", "VALUES (1), (2)"),
        ("(TABLE v)", "TABLE v"),
    ],
)
def test_what_is_copied(what: str, text: str) -> None:
    statement = parse_one(f"COPY {what} TO STDOUT")
    assert isinstance(statement, CopyTo)
    assert statement.query.text == text
    assert statement.query.select == parse_one(text).select  # type: ignore[attr-defined]


WRONG = [
    ("COPY v TO '/tmp/x'", "42501", "COPY to a file of the server is not permitted"),
    ("COPY v FROM '/tmp/x'", "42501", "COPY from a file of the server is not permitted"),
    ("COPY v TO PROGRAM 'cat'", "42501", "COPY to or from an external program is not permitted"),
    ("COPY v FROM PROGRAM 'cat' CSV", "42501", "COPY to or from an external program is not permitted"),
    ("COPY v FROM STDIN WHERE a > 1", "0A000", "COPY FROM with WHERE is not supported"),
    ("COPY v FROM STDIN CSV WHERE a > 1", "0A000", "COPY FROM with WHERE is not supported"),
    ("COPY v FROM STDIN (FREEZE)", "0A000", "COPY FREEZE is not supported"),
    ("COPY v FROM STDIN (FORMAT csv, FORCE_QUOTE *)", "0A000", "COPY force quote only available using COPY TO"),
    ("COPY v FROM STDIN (FORCE_NOT_NULL (a))", "0A000", "COPY force not null available only in CSV mode"),
    ("COPY v FROM STDIN (FORCE_NULL (a))", "0A000", "COPY force null available only in CSV mode"),
    ("COPY v FROM STDIN (FORMAT binary, HEADER match)", "0A000", "cannot specify HEADER in BINARY mode"),
    ("COPY (SELECT 1) FROM STDIN", "42601", 'syntax error at or near "FROM"'),
    ("COPY (DELETE FROM v) TO STDOUT", "42601", 'syntax error at or near "DELETE"'),
    ("COPY () TO STDOUT", "42601", 'syntax error at or near ")"'),
    ("COPY (SELECT 1 TO STDOUT", "42601", "syntax error at end of input"),
    ("COPY v (a, a) TO STDOUT", "42701", 'column "a" specified more than once'),
    ("COPY v TO", "42601", "syntax error at end of input"),
    ("COPY v TO STDOUT (FOO 1)", "42601", 'option "foo" not recognized'),
    ("COPY v TO STDOUT (NULL 'a', NULL 'b')", "42601", "conflicting or redundant options"),
    ("COPY v TO STDOUT (FORMAT xml)", "22023", 'COPY format "xml" not recognized'),
    ("COPY v TO STDOUT (DELIMITER)", "42601", "delimiter requires a parameter"),
    ("COPY v TO STDOUT (DELIMITER '||')", "0A000", "COPY delimiter must be a single one-byte character"),
    ("COPY v TO STDOUT (DELIMITER 'ü')", "0A000", "COPY delimiter must be a single one-byte character"),
    ("COPY v TO STDOUT (DELIMITER E'\\n')", "22023", "COPY delimiter cannot be newline or carriage return"),
    ("COPY v TO STDOUT (DELIMITER 'a')", "22023", 'COPY delimiter cannot be "a"'),
    ("COPY v TO STDOUT (NULL E'a\\n')", "22023", "COPY null representation cannot use newline or carriage return"),
    ("COPY v TO STDOUT (DELIMITER 'N', NULL 'N')", "0A000",
     "COPY delimiter must not appear in the NULL specification"),
    ("COPY v TO STDOUT (QUOTE 'a')", "0A000", "COPY quote available only in CSV mode"),
    ("COPY v TO STDOUT (ESCAPE 'a')", "0A000", "COPY escape available only in CSV mode"),
    ("COPY v TO STDOUT (FORCE_QUOTE *)", "0A000", "COPY force quote available only in CSV mode"),
    ("COPY v TO STDOUT (FORCE_NULL (a), FORMAT csv)", "0A000", "COPY force null only available using COPY FROM"),
    ("COPY v TO STDOUT (FORMAT csv, QUOTE 'ab')", "0A000", "COPY quote must be a single one-byte character"),
    ("COPY v TO STDOUT (FORMAT csv, QUOTE ',')", "22023", "COPY delimiter and quote must be different"),
    ("COPY v TO STDOUT (FORMAT csv, ESCAPE '')", "0A000", "COPY escape must be a single one-byte character"),
    ("COPY v TO STDOUT (FORMAT csv, NULL '\"')", "0A000",
     "CSV quote character must not appear in the NULL specification"),
    ("COPY v TO STDOUT (FORMAT binary, DELIMITER ',')", "42601", "cannot specify DELIMITER in BINARY mode"),
    ("COPY v TO STDOUT (FORMAT binary, NULL '')", "42601", "cannot specify NULL in BINARY mode"),
    ("COPY v TO STDOUT (FORMAT binary, HEADER)", "0A000", "cannot specify HEADER in BINARY mode"),
    ("COPY v TO STDOUT (HEADER maybe)", "42601", 'header requires a Boolean value or "match"'),
    ("COPY v TO STDOUT (HEADER match)", "0A000", 'cannot use "match" with HEADER in COPY TO'),
    ("COPY v TO STDOUT (ENCODING 'LATIN1')", "0A000", 'COPY encoding "LATIN1" is not supported'),
    ("COPY v TO STDOUT (FORMAT csv, FORCE_QUOTE a)", "22023",
     'argument to option "force_quote" must be a list of column names'),
    ("COPY v TO STDOUT CSV FOO", "42601", 'syntax error at or near "FOO"'),
]  # fmt: skip


FROM = {
    "COPY s FROM STDIN": CopyFrom(ObjectName(("s",), 6)),
    "COPY a.s (b, c) FROM STDIN WITH (FORMAT csv, HEADER match)": CopyFrom(
        ObjectName(("a", "s"), 6), ("b", "c"), CopyOptions("csv", ",", "", header=True, header_match=True)
    ),
    "COPY s FROM STDIN CSV HEADER FORCE NOT NULL a, b FORCE NULL c": CopyFrom(
        ObjectName(("s",), 6),
        (),
        CopyOptions("csv", ",", "", header=True, force_not_null=("a", "b"), force_null=("c",)),
    ),
    "COPY BINARY s FROM STDIN": CopyFrom(ObjectName(("s",), 13), (), CopyOptions("binary")),
}


@pytest.mark.parametrize("text", FROM)
def test_where_rows_go(text: str) -> None:
    parsed = parse_one(text)
    assert isinstance(parsed, CopyFrom)
    wanted = FROM[text]
    assert (parsed.name, parsed.columns, parsed.options) == (wanted.name, wanted.columns, wanted.options)


@pytest.mark.parametrize(("text", "sqlstate", "message"), WRONG, ids=[case[0] for case in WRONG])
def test_wrong(text: str, sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse_one(text)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)
