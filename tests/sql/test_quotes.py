"""Literals and quotes: PostgreSQL's, and the typographic ones that copied documents have."""

from __future__ import annotations

import pytest

from mvserver.errors import SqlError
from mvserver.sql import parse_one
from mvserver.sql.lexer import TokenKind, tokenize
from mvserver.sql.statements.relations import CreateStreamAs
from mvserver.sql.statements.stores import CreateStore, ListStores


def values(text: str) -> list[str]:
    return [token.text for token in tokenize(text) if token.kind is TokenKind.STRING]


def test_the_store_of_the_published_tutorial() -> None:
    statement = parse_one(
        "CREATE STORE prod_kinesis WITH ( 'type' = KINESIS, 'availability_zone'='us-east-2', "
        "'uris'=’https://kinesis.us-east-2.amazonaws.com:443', 'config_file'='./kinesis.properties' );"
    )
    assert isinstance(statement, CreateStore)
    assert dict(statement.properties) == {
        "type": "KINESIS",
        "availability_zone": "us-east-2",
        "uris": "https://kinesis.us-east-2.amazonaws.com:443",
        "config_file": "./kinesis.properties",
    }


def test_the_stream_of_the_published_tutorial() -> None:
    statement = parse_one(
        "CREATE STREAM user_clicks WITH ('store'=’prod_kafka’) AS SELECT u.registertime AS user_registertime, "
        "u.userid AS uid, c.url AS click_url FROM clicks c JOIN users u ON c.userid = u.userid;"
    )
    assert isinstance(statement, CreateStreamAs)
    assert dict(statement.properties) == {"store": "prod_kafka"}
    assert [item.alias for item in statement.select.expressions] == ["user_registertime", "uid", "click_url"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'it''s'", ["it's"]),
        ("'it’s'", ["it’s"]),  # opened by ' it is closed only by '
        ("’x’", ["x"]),
        ("’x'", ["x"]),
        ("‘x’", ["x"]),
        ("‘x'", ["x"]),
        ("’’", [""]),
        ("’it''s’", ["it's"]),
        ("''", [""]),
        ("'a' 'b'", ["a", "b"]),  # two literals: the parser refuses them
        ("'a'\n  'b'", ["ab"]),
        ("'a' -- c\n 'b'", ["ab"]),
        (r"E'a\nb\tc\\d\'e''f\x41\101\u00e9\U0001F600'", ["a\nb\tc\\d'e'fAAé😀"]),
        (r"e'\ud83d\ude00'", ["😀"]),
        (r"E'\xc3\xa9'", ["é"]),
        ("$$it's$$", ["it's"]),
        ("$a$ $$ $b$ $a$", [" $$ $b$ "]),
        (r"U&'d\0061t\+000061 \\'", ["data \\"]),
        ("N'x'", ["x"]),
        (r"'\n'", [r"\n"]),  # standard_conforming_strings
        ("'x' /* ' */ 'y' -- '\n", ["x", "y"]),
        ("/* a /* b */ ' */ 'z'", ["z"]),
    ],
)
def test_literals(text: str, expected: list[str]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "sqlstate", "message", "position"),
    [
        ("SELECT 'abc", "42601", 'unterminated quoted string at or near "\'abc"', 8),
        ("SELECT 'a''b", "42601", "unterminated quoted string at or near \"'a''b\"", 8),
        ("SELECT ’abc", "42601", 'unterminated quoted string at or near "’abc"', 8),
        ('SELECT "abc', "42601", 'unterminated quoted identifier at or near ""abc"', 8),
        ('SELECT ""', "42601", 'zero-length delimited identifier at or near """"', 8),
        ("SELECT $$abc", "42601", 'unterminated dollar-quoted string at or near "$$abc"', 8),
        ("SELECT /* /* */", "42601", 'unterminated /* comment at or near "/* /* */"', 8),
        ("SELECT 12ab", "42601", 'trailing junk after numeric literal at or near "12ab"', 8),
        ("SELECT 1e", "42601", 'trailing junk after numeric literal at or near "1e"', 8),
        ("SELECT $1a", "42601", 'trailing junk after parameter at or near "$1a"', 8),
        (r"SELECT E'\xff'", "22021", 'invalid byte sequence for encoding "UTF8": 0xff', 8),
        (r"SELECT E'\u12'", "22025", "invalid Unicode escape", 8),
        (r"SELECT E'\ud83d'", "42601", "invalid Unicode surrogate pair", 8),
        (r"SELECT U&'\zzzz'", "42601", "invalid Unicode escape", 8),
        ("SELECT X'0G'", "22P02", '"G" is not a valid hexadecimal digit', 8),
        ("SELECT B'12'", "22P02", '"2" is not a valid binary digit', 8),
        ("SELECT “a”", "42601", 'syntax error at or near "“"', 8),
        ("SELECT a\\b", "42601", 'syntax error at or near "\\"', 9),
        ("SELECT\0", "22021", 'invalid byte sequence for encoding "UTF8": 0x00', None),
    ],
)
def test_lexical_errors(text: str, sqlstate: str, message: str, position: int | None) -> None:
    with pytest.raises(SqlError) as caught:
        parse_one(text)
    assert (caught.value.sqlstate, caught.value.message, caught.value.position) == (sqlstate, message, position)


def test_spaces_of_copied_text() -> None:
    assert parse_one("LIST\u00a0STORES\u2003;") == ListStores(text="LIST\u00a0STORES")


def test_positions_count_characters_of_the_whole_text() -> None:
    with pytest.raises(SqlError) as caught:
        parse_one("SELECT 'é😀', ’x', 1 +")
    assert caught.value.position == len("SELECT 'é😀', ’x', 1 +") + 1
