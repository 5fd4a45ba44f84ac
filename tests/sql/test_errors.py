"""Wrong statements: SQLSTATE, text and position, as a PostgreSQL user would expect them."""

from __future__ import annotations

import pytest

from mvserver.errors import SqlError
from mvserver.sql import parse, parse_one


def near(token: str) -> str:
    return f'syntax error at or near "{token}"'


END = "syntax error at end of input"

WRONG: list[tuple[str, str, str, int | None]] = [
    # not a statement
    ("FOO", "42601", near("FOO"), 1),
    ("CREATE", "42601", END, 7),
    ("CREATE FOO x", "42601", near("FOO"), 8),
    ("CREATE MATERIALIZED x", "42601", near("x"), 21),
    ("DROP", "42601", END, 5),
    ("LIST", "42601", END, 5),
    ("LIST FOO", "42601", near("FOO"), 6),
    ("LIST STORES x", "42601", near("x"), 13),
    ("REFRESH MATERIALIZED v", "42601", near("v"), 22),
    ("1", "42601", near("1"), 1),
    ("'x'", "42601", near("'x'"), 1),
    ("LIST STORES; LIST FOO", "42601", near("FOO"), 19),
    # stores and entities
    ("CREATE STORE", "42601", END, 13),
    ("CREATE STORE s", "42601", END, 15),
    ("CREATE STORE s WITH", "42601", END, 20),
    ("CREATE STORE s WITH ()", "42601", near(")"), 22),
    ("CREATE STORE s WITH (type = KAFKA)", "42601", near("type"), 22),
    ("CREATE STORE s WITH ('type' KAFKA)", "42601", near("KAFKA"), 29),
    ("CREATE STORE s WITH ('type' = )", "42601", near(")"), 31),
    ("CREATE STORE s WITH ('type' = KAFKA,)", "42601", near(")"), 37),
    ("CREATE STORE s WITH ('type' = NULL)", "42601", near("NULL"), 31),
    ("CREATE STORE s WITH ('a' = 1, 'A' = 2)", "42601", 'property "a" specified more than once', 31),
    ("CREATE STORE s WITH ('' = 1)", "42601", "property key must not be empty", 22),
    ("CREATE STORE s WITH ('a' = 1000000000000000000000)", "22003",
     'value "1000000000000000000000" is out of range for type bigint', 28),
    ("CREATE STORE select WITH ('a' = 1)", "42601", near("select"), 14),
    ("CREATE STORE a.b WITH ('a' = 1)", "42601", near("."), 15),
    ("UPDATE STORE s SET x", "42601", near("SET"), 16),
    ("ALTER STORE s WITH ('a' = 1)", "0A000", "ALTER STORE is supported with OWNER TO only", 15),
    ("PRINT ENTITY", "42601", END, 13),
    ("PRINT ENTITY e LIMIT x", "42601", near("x"), 22),
    ("PRINT ENTITY e LIMIT 1.5", "42601", near("1.5"), 22),
    ("INSERT INTO ENTITY e VALUE (1)", "42601", near("1"), 29),
    ("INSERT INTO ENTITY e VALUE ('a', 'b', 'c')", "42601", near(","), 37),
    ("DROP TOPIC ''", "42602", "entity name must not be empty", 12),
    # name spaces
    ("CREATE DATABASE a.b", "42601", near("."), 18),
    ("CREATE DATABASE d WITH ENCODING 'UTF8'", "0A000", "options of CREATE DATABASE are not supported", 19),
    ("CREATE SCHEMA a.b.c", "42601", "improper qualified name (too many dotted names): a.b.c", 15),
    ("USE", "42601", END, 4),
    ("USE ROLE r", "0A000", "USE ROLE is not supported", 5),
    # streams
    ("CREATE STREAM s", "42601", END, 16),
    ("CREATE STREAM s ()", "42601", near(")"), 18),
    ("CREATE STREAM s (a)", "42601", near(")"), 19),
    ("CREATE STREAM s (a INT,)", "42601", near(")"), 24),
    ("CREATE STREAM s (a INT b INT)", "42601", near("b"), 24),
    ("CREATE STREAM s (a INT, A TEXT)", "42701", 'column "a" specified more than once', 25),
    ("CREATE STREAM s (a NOTYPE)", "42704", 'type "notype" does not exist', 20),
    ("CREATE STREAM s (a DECIMAL(39, 0))", "22023", "DECIMAL precision 39 must be between 1 and 38", 20),
    ("CREATE STREAM s (a DECIMAL(5, 6))", "22023", "DECIMAL scale 6 must be between 0 and precision 5", 20),
    ("CREATE STREAM s (a ARRAY<INT)", "42601", near(")"), 29),
    ("CREATE STREAM s (a ARRAY<INT>>)", "42601", near(">>"), 29),
    ("CREATE STREAM s (a STRUCT<x INT, x TEXT>)", "42701", 'field "x" specified more than once', 20),
    ("CREATE STREAM s (a INT NOT NULL NULL)", "42601",
     'conflicting NULL/NOT NULL declarations for column "a"', 33),
    ("CREATE STREAM s (a INT PRIMARY KEY)", "42P16", "a stream has no primary key", 24),
    ("CREATE STREAM s (a INT, PRIMARY KEY (a))", "42P16", "a stream has no primary key", 25),
    ("CREATE STREAM s (a INT DEFAULT 1)", "0A000", "DEFAULT is not supported in a column definition", 24),
    ("CREATE STREAM s (a INT, CONSTRAINT c CHECK (a > 1))", "0A000", "constraints are not supported in a stream", 25),
    ("CREATE STREAM s (a INT) AS SELECT 1", "42601", near("AS"), 25),
    ("CREATE STREAM s WITH ('topic' = 't') AS", "42601", END, 40),
    ("CREATE STREAM a.b.c.d (x INT)", "42601", "improper qualified name (too many dotted names): a.b.c.d", 15),
    ("CREATE STREAM " + "x" * 64 + " (a INT)", "42602", f'identifier "{"x" * 63}..." is too long', 15),
    ('DROP STREAM "' + "é" * 32 + '"', "42602", f'identifier "{"é" * 32}..." is too long', 13),
    ("DROP STREAM a, b", "0A000", "dropping several objects at once is not supported", 14),
    ("DROP STREAM a CASCADE b", "42601", near("b"), 23),
    # views and INSERT
    ("CREATE MATERIALIZED VIEW v", "42601", END, 27),
    ("CREATE MATERIALIZED VIEW v (a) AS SELECT 1", "0A000",
     "column names after the view's name are not supported", 28),
    ("CREATE MATERIALIZED VIEW v AS SELECT a FROM b WITH NO DATA", "0A000", "WITH NO DATA is not supported", 47),
    ("CREATE MATERIALIZED VIEW v AS SELECT a FROM", "42601", END, 44),
    ("CREATE MATERIALIZED VIEW v AS SELECT a, FROM b", "42601", near("FROM"), 41),
    ("CREATE MATERIALIZED VIEW v AS SELECT a FROM b WHERE", "42601", END, 52),
    ("CREATE MATERIALIZED VIEW v AS SELECT a FROM b GROUP BY", "42601", END, 55),
    ("CREATE MATERIALIZED VIEW v AS SELECT a < b < c FROM d", "42601", near("<"), 44),
    ("CREATE MATERIALIZED VIEW v AS SELECT a = b = c FROM d", "42601", near("="), 44),
    ("CREATE MATERIALIZED VIEW v AS SELECT a LIKE b LIKE c FROM d", "42601", near("LIKE"), 47),
    ("CREATE MATERIALIZED VIEW v AS SELECT f(a FROM d", "42601", near("FROM"), 42),
    ("CREATE MATERIALIZED VIEW v AS SELECT (a FROM d", "42601", near("FROM"), 41),
    ("CREATE MATERIALIZED VIEW v AS SELECT CASE a END FROM d", "42601", near("END"), 45),
    ("CREATE MATERIALIZED VIEW v AS SELECT CAST(a, INT) FROM d", "42601", near(","), 44),
    ("CREATE MATERIALIZED VIEW v AS SELECT a::foo FROM d", "42704", 'type "foo" does not exist', 41),
    ("CREATE MATERIALIZED VIEW v AS SELECT a b c FROM d", "42601", near("c"), 42),
    ("CREATE MATERIALIZED VIEW v AS SELECT a FROM d JOIN e", "42601", END, 53),
    ("CREATE MATERIALIZED VIEW v AS SELECT a FROM d WITH ('x' = 1) e WITH ('y' = 1)", "42601", near("WITH"), 64),
    ("CREATE MATERIALIZED VIEW v AS SELECT X'123' FROM d", "22P02",
     "invalid hexadecimal data: odd number of digits", 38),
    ("CREATE MATERIALIZED VIEW v AS WITH a AS (SELECT 1), a AS (SELECT 2) SELECT 1", "42712",
     'WITH query name "a" specified more than once', 53),
    ("INSERT INTO s VALUES (1)", "0A000", "INSERT INTO ... VALUES is not supported", 15),
    ("INSERT INTO s (a) SELECT 1", "0A000", "a column list in INSERT INTO is not supported", 15),
    ("INSERT INTO s", "42601", END, 14),
    # other statements that are known and refused
    ("CREATE CHANGELOG c (a INT)", "42P16", "a changelog needs a primary key", 18),
    ("CREATE CHANGELOG c (a INT PRIMARY KEY, PRIMARY KEY (a))", "42P16",
     "multiple primary keys for a changelog are not allowed", 40),
    ("CREATE CHANGELOG c (a INT, PRIMARY KEY (b))", "42703", 'column "b" named in key does not exist', 28),
    ("CREATE CHANGELOG c (a INT, PRIMARY KEY (a, a))", "42701",
     'column "a" appears twice in primary key constraint', 28),
    ("CREATE CHANGELOG c (a INT, a INT, PRIMARY KEY (a))", "42701", 'column "a" specified more than once', 28),
    ("CREATE CHANGELOG c (a INT PRIMARY KEY, CONSTRAINT x CHECK (a > 1))", "0A000",
     "constraints are not supported in a changelog", 40),
    ("CREATE TABLE t (a INT)", "0A000", "CREATE TABLE with columns is not supported", 16),
    ("CREATE OR REPLACE TABLE t AS SELECT a FROM b", "0A000", "CREATE OR REPLACE TABLE AS is not supported", 27),
    ("CREATE TEMPORARY TABLE t AS SELECT 1", "0A000", "CREATE TEMPORARY is not supported", 1),
    ("CREATE RECURSIVE VIEW v AS SELECT 1", "0A000", "CREATE RECURSIVE is not supported", 1),
    ("CREATE VIEW v AS INSERT INTO t SELECT 1", "42601", 'syntax error at or near "INSERT"', 18),
    ("CREATE VIEW IF NOT EXISTS v AS SELECT 1", "42601", 'syntax error at or near "NOT"', 16),
    ("CREATE OR REPLACE SEQUENCE f", "0A000", "CREATE OR REPLACE is not supported", 1),
    ("CREATE FUNCTION f() AS 'x'", "42601", 'syntax error at or near "AS"', 21),
    ("CREATE FUNCTION f() RETURNS int AS 'x'", "42P13", "no language specified", 39),
    ("CREATE FUNCTION f() RETURNS int LANGUAGE python", "42P13", "no function body specified", 48),
    ("CREATE FUNCTION f() RETURNS int LANGUAGE c AS 'x'", "42704", 'language "c" does not exist', 42),
    ("CREATE FUNCTION f() RETURNS int LANGUAGE java AS 'x'", "42P13", "a function in JAVA has no body", None),
    ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'x'", "0A000", "functions in SQL are not supported", 42),
    ("CREATE FUNCTION f() RETURNS int VOLATILE", "0A000", "VOLATILE functions are not supported", 33),
    ("CREATE FUNCTION f() RETURNS int STRICT STRICT", "42601", "conflicting or redundant options", 40),
    ("CREATE FUNCTION f(int) RETURNS int", "42601", 'syntax error at or near ")"', 22),
    ("CREATE AGGREGATE f(int) RETURNS int", "42601", 'syntax error at or near ")"', 23),
    ("CREATE AGGREGATE f(int) (SFUNC = g, STYPE = int)", "0A000",
     "CREATE AGGREGATE with SFUNC and STYPE is not supported", 19),
    ("CREATE FUNCTION f(OUT a int) RETURNS int", "0A000", "OUT parameters are not supported", 19),
    ("CREATE FUNCTION f(a int DEFAULT 1) RETURNS int", "0A000", "defaults of parameters are not supported", 25),
    ("CREATE FUNCTION f() RETURNS SETOF int", "0A000", "RETURNS SETOF is not supported", 29),
    ("CREATE FUNCTION f() RETURNS int LANGUAGE python AS 'a', 'b'", "0A000",
     "a function of a library is not supported", 55),
    ("CREATE VIEW v WITH (security_barrier) AS SELECT 1", "0A000", "options of a view are not supported", 15),
    ("CREATE VIEW v AS SELECT 1 WITH LOCAL CHECK OPTION", "0A000", "WITH CHECK OPTION is not supported", 38),
    ("ALTER VIEW v RENAME a TO b", "0A000",
     "ALTER VIEW is supported with OWNER TO, RENAME TO, SET SCHEMA and ROW LEVEL SECURITY only", 14),
    ("CREATE GROUP r", "0A000", "CREATE GROUP is not supported", 1),
    ("GRANT SELECT (a) ON v TO r", "0A000", "privileges on columns are not supported", 14),
    ("UPDATE v SET a = 1", "0A000", "UPDATE is not supported", 1),
    ("DELETE FROM v", "0A000", "DELETE is not supported", 1),
    ("LISTEN c", "0A000", "LISTEN is not supported", 1),
    ("BEGIN APPLICATION", "42601", END, 18),
    ("COMMIT PREPARED 'x'", "0A000", "two-phase commit is not supported", 8),
    ("DESCRIBE QUERY METRICS x", "0A000", "DESCRIBE QUERY METRICS is not supported", 16),
    # session
    ("SET", "42601", END, 4),
    ("SET x", "42601", END, 6),
    ("SET x =", "42601", END, 8),
    ("SET x TO a b", "42601", near("b"), 12),
    ("SET TRANSACTION FOO", "42601", near("FOO"), 17),
    ("BEGIN READ", "42601", END, 11),
    ("COMMIT FOO", "42601", near("FOO"), 8),
    ("PREPARE p AS LIST STORES", "42601", near("LIST"), 14),
    ("EXECUTE p ()", "42601", near(")"), 12),
    ("EXPLAIN LIST STORES", "42601", near("LIST"), 9),
    ("EXPLAIN (FOO) SELECT 1", "42601", 'unrecognized EXPLAIN option "foo"', 10),
    ("DESCRIBE CREATE STORE s WITH ('a' = 1)", "42601", near("CREATE"), 10),
    # pull queries
    ("SELECT a FROM", "42601", END, 14),
    ("SELECT a, FROM t", "42601", near("FROM"), 11),
    ("SELECT 1 +", "42601", END, 11),
    ("SELECT (1", "42601", END, 10),
    ("SELECT 1)", "42601", near(")"), 9),
    ("SELECT a FROM t WHERE OR b", "42601", near("OR"), 23),
    ("SELECT a FROM t WHERE a AND AND b", "42601", near("AND"), 29),
    ("SELECT a FROM t WHERE a IN ()", "42601", near(")"), 29),
    ("SELECT a FROM t WHERE a IS", "42601", END, 27),
    ("SELECT a FROM t WHERE a < 1 < 2", "42601", near("<"), 29),
    ("SELECT a FROM t JOIN u", "42601", END, 23),
    ("SELECT a FROM t LEFT u", "42601", near("u"), 22),
    ("SELECT a FROM t, WHERE a", "42601", near("WHERE"), 18),
    ("SELECT a FROM t ORDER BY a WHERE b", "42601", near("WHERE"), 28),
    ("SELECT a FROM t LIMIT 1 LIMIT 2", "42601", near("LIMIT"), 25),
    ("SELECT a FROM t GROUP BY", "42601", END, 25),
    ("SELECT a FROM t GROUP a", "42601", near("a"), 23),
    ("SELECT a AS 1", "42601", near("1"), 13),
    ("SELECT a FROM t AS", "42601", END, 19),
    ("SELECT 'a' 'b'", "42601", near("'b'"), 12),
    ("SELECT DISTINCT FROM t", "42601", near("FROM"), 17),
    ("SELECT CASE END", "42601", near("END"), 13),
    ("SELECT CAST(a AS int FROM t", "42601", END, 28),
    ("SELECT extract(year, t)", "42601", near(","), 20),
    ("SELECT * FROM a.b.c.d", "42601", "improper qualified name (too many dotted names): a.b.c.d", 15),
    ("SELECT lower(a, b) FROM t", "42883", "function lower with 2 arguments does not exist", 8),
    ("SELECT @ 1", "42883", "operator does not exist: @", 8),
    ("SELECT {1}", "42601", near("{"), 8),
    ("SELECT a INTO b FROM t", "0A000", "SELECT INTO is not supported", 10),
    ("WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x", "0A000", "DELETE in WITH is not supported", 12),
    ("FROM t SELECT a", "42601", near("FROM"), 1),
    ("SELECT * FROM (FROM t)", "42601", near("FROM"), 16),
    ("VALUES", "42601", END, 7),
    ("VALUES (1),", "42601", END, 12),
    ("TABLE", "42601", END, 6),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sqlstate", "message", "position"), WRONG, ids=[case[0][:50] for case in WRONG])
def test_wrong_statement(text: str, sqlstate: str, message: str, position: int | None) -> None:
    with pytest.raises(SqlError) as caught:
        parse(text)
    assert (caught.value.sqlstate, caught.value.message, caught.value.position) == (sqlstate, message, position)
    with pytest.raises(SqlError) as caught:  # behind other statements positions are those of the whole text
        parse("LIST STORES;\n" + text)
    assert caught.value.position == (None if position is None else position + 13)


def test_hints() -> None:
    for text, hint in (
        ("CREATE STORE s WITH (type = KAFKA)",
         "Property keys are written in single quotes, as in WITH ('key' = value)."),
        ("INSERT INTO s VALUES (1)",
         "Use INSERT INTO ENTITY name VALUE ('...') to write a record, or INSERT INTO stream SELECT ..."),
        ("CREATE RECURSIVE VIEW v (n) AS SELECT 1", "Write WITH RECURSIVE in the SELECT of CREATE VIEW."),
    ):  # fmt: skip
        with pytest.raises(SqlError) as caught:
            parse(text)
        assert caught.value.hint == hint


def test_parse_one_wants_exactly_one() -> None:
    with pytest.raises(SqlError) as caught:
        parse_one("LIST STORES; LIST STORES")
    assert caught.value.sqlstate == "42601"
    assert caught.value.message == "cannot insert multiple commands into a prepared statement"
    with pytest.raises(SqlError) as caught:
        parse_one(" -- nothing")
    assert (caught.value.sqlstate, caught.value.message) == ("42601", END)
