"""The same texts asked of a real PostgreSQL: what it parses we parse and regenerate, what it refuses we refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from mvserver.errors import SqlError
from mvserver.sql import parse
from mvserver.sql.dialect import MvDialect, parse_pull
from tests.sql.test_pull import CLIENTS

pytestmark = pytest.mark.postgres

VALID = [
    "SELECT",
    "SELECT a, b AS \"B\", c d FROM t WHERE a = 1 AND (b = 2 OR b IS NULL) AND c IN ('x', 'y')",
    "SELECT a FROM t WHERE a = 1 IS NULL",
    "SELECT a FROM t WHERE (a > 1) = true AND a < (b < 1)::int",
    "SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM b, a ISNULL, a NOTNULL, (a > 1) IS NOT UNKNOWN FROM t",
    "SELECT c LIKE 'a%' ESCAPE '!', c NOT ILIKE 'b', c SIMILAR TO 'x', c ~ 'a', c !~* 'b' FROM t",
    "SELECT NOT a = 1, a BETWEEN 1 AND 2 AND b = 3, -1::int, 2 ^ 3 ^ 2, 5 / 2, 5 % 2, -a * b FROM t",
    "SELECT e[1:2], e[1], f->'a', f->>'a', f#>'{a}', f @> '{}' FROM t",
    "SELECT a::numeric(10,2), c::varchar(3), d::timestamp with time zone, c::text[], NULL::text FROM t",
    "SELECT interval '1 day', interval '1' day, interval '1-2' year to month, date '2020-01-01', time '10:00'",
    "SELECT array[1,2,3], array(select 1), row(1,2), (1,2) = (1,2), ROW(a, b) IS NULL FROM t",
    "SELECT a FROM t WHERE a = ANY(array[1,2]) AND b = ALL(select 1) AND EXISTS (SELECT 1) AND a "
    "NOT IN (SELECT b FROM t)",
    "SELECT extract(year FROM d), position('a' in c), substring(c from 1 for 2), overlay(c placing 'x' from 1 for 2), "
    "trim(both 'x' from c), d at time zone 'UTC', date_part('hour', d) FROM t",
    "SELECT current_date, current_timestamp, localtime, current_user, now(), user",
    "SELECT count(*) FILTER (WHERE a > 1) OVER (PARTITION BY b ORDER BY d ROWS BETWEEN UNBOUNDED "
    "PRECEDING AND CURRENT ROW), "
    "lag(a, 1, 0) OVER w, first_value(a) OVER (w ROWS 1 PRECEDING) FROM t WINDOW w AS (ORDER BY b)",
    "SELECT string_agg(c, ',' ORDER BY c), array_agg(DISTINCT a), percentile_cont(0.5) WITHIN GROUP "
    "(ORDER BY a) FROM t",
    "SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b DESC NULLS LAST LIMIT 5 OFFSET 1",
    "SELECT a FROM t FETCH FIRST 5 ROWS ONLY",
    "SELECT a FROM t LIMIT ALL FOR UPDATE",
    "SELECT a FROM t GROUP BY GROUPING SETS ((a), (b), ())",
    "SELECT a, b, count(*) FROM t GROUP BY CUBE (a, b) HAVING count(*) > 1",
    "SELECT * FROM t b NATURAL LEFT JOIN t c CROSS JOIN t a",
    "SELECT * FROM t a JOIN t b JOIN t c ON b.a = c.a ON a.a = b.a",
    "SELECT * FROM (t a JOIN t b USING (a, b, c, d, e, f)) JOIN t c USING (b)",
    "SELECT x.a FROM t AS x (a, b) CROSS JOIN LATERAL (SELECT x.a) y, ONLY t z",
    "SELECT * FROM generate_series(1,10) AS g(n), unnest(array[1,2]) WITH ORDINALITY AS u(a,b)",
    "SELECT * FROM (VALUES (1,'a'),(2,'b')) AS v(x,y)",
    "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x WHERE n < 5) SELECT * FROM x",
    "WITH a AS MATERIALIZED (SELECT 1 x), b AS NOT MATERIALIZED (SELECT x FROM a) SELECT * FROM a, b",
    "SELECT a FROM t EXCEPT ALL SELECT b FROM t INTERSECT SELECT 1 ORDER BY 1",
    "(SELECT 1) UNION (SELECT 2)",
    "VALUES (1), (2) ORDER BY 1 LIMIT 1",
    "TABLE t",
    "SELECT $$a$$, $x$b$x$, E'a\\nb', U&'\\0041', B'101', X'1F', N'x', 'a'\n'b'",
    "SELECT x.first, x.next, x.format, x.cache, x.list, x.object, x.name, x.index FROM (SELECT 1 as first, 2 as next, "
    "3 as format, 4 as cache, 5 as list, 6 as object, 7 as name, 8 as index) x",
    "SELECT (t).a, (t).*, t.*, \"t\".\"a\" FROM t",
    "SELECT 1 AS \"select\", 2 AS from",
    *(text for text in CLIENTS if not text.startswith("show")),
]  # fmt: skip
# The SQLSTATE, the text and the position are PostgreSQL's own.
REFUSED = [
    "SELECT a FROM t WHERE",
    "SELECT (1",
    "SELECT a, FROM t",
    "SELECT a FROM",
    "SELECT * FROM t GROUP",
    "SELECT * FROM t GROUP BY",
    "SELECT * FROM t ORDER BY a DESC NULLS",
    "SELECT a b c FROM t",
    "SELECT 1 + FROM t",
    "SELECT 1 +",
    "SELECT 'abc",
    "SELECT \"abc",
    "SELECT \"\" FROM t",
    "SELECT 1a",
    "SELECT $1a",
    "SELECT /* c",
    "SELECT $$a",
    "SELECT a FROM t WHERE a = = 1",
    "SELECT a FROM t WHERE a < 1 < 2",
    "SELECT a FROM t WHERE a = 1 = true",
    "SELECT a FROM t WHERE a IN ()",
    "SELECT a FROM t WHERE a IN 1",
    "SELECT a FROM t WHERE a BETWEEN 1",
    "SELECT a FROM t WHERE NOT",
    "SELECT a FROM t WHERE a NOT b",
    "SELECT a FROM t WHERE a IS",
    "SELECT a FROM t WHERE OR a",
    "SELECT a FROM t WHERE a AND AND b",
    "SELECT CASE WHEN a THEN 1 FROM t",
    "SELECT CASE END FROM t",
    "SELECT CAST(a AS) FROM t",
    "SELECT a:: FROM t",
    "SELECT f( FROM t",
    "SELECT f(a,) FROM t",
    "SELECT f(,a) FROM t",
    "SELECT * FROM (SELECT 1",
    "SELECT * FROM t JOIN t",
    "SELECT * FROM t JOIN t x ON",
    "SELECT * FROM t x, WHERE a",
    "SELECT * FROM t LEFT t x",
    "SELECT a AS FROM t WHERE",
    "SELECT a AS 1 FROM t",
    "SELECT 1 2",
    "SELECT 'a' 'b'",
    "SELECT a FROM t UNION",
    "SELECT a FROM t HAVING",
    "SELECT DISTINCT FROM t",
    "SELECT DISTINCT ON a FROM t",
    "VALUES",
    "VALUES (1), (2,",
    "TABLE",
    "WITH x AS SELECT 1 SELECT * FROM x",
    "WITH x AS (SELECT 1)",
    "SELECT extract(year, d) FROM t",
    "SELECT * FROM t LIMIT 1 LIMIT 2",
    "SELECT * FROM t ORDER BY b WHERE c",
    "SELECT * FROM t WHERE a = 1)",
    "SELECT count(DISTINCT) FROM t",
    "SELECT {1}",
    "SELECT a FROM t as",
    "SELECT a FROM t as x y",
    "SELECT * FROM a.b.c.d",
    "SELECT a from",
    "SELECT select",
    "BEGIN FOO",
    "COMMIT FOO",
    "SET x",
    "SET x =",
    "SET TRANSACTION FOO",
    "SHOW a b",
    "DISCARD FOO",
    "PREPARE p AS FOO",
    "EXECUTE p(",
    "EXECUTE p()",
    "RELEASE",
    "ROLLBACK TO",
    "FOO BAR",
    "CREATE FOO x",
    "DROP FOO",
    "EXPLAIN FOO",
    "EXPLAIN (FOO) SELECT 1",
    "CREATE SCHEMA",
    "DROP SCHEMA IF x",
    "CREATE MATERIALIZED VIEW v",
    "CREATE MATERIALIZED VIEW v AS",
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM",
    "CREATE MATERIALIZED VIEW v AS SELECT a, FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT a < b < 3 FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT a = b = 3 FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM t GROUP BY",
    "CREATE MATERIALIZED VIEW v AS SELECT CASE WHEN a > 1 THEN 1 FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT f(a FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE a = ) 1",
    "CREATE MATERIALIZED VIEW v AS SELECT 1 2 FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT a LIKE 'x' LIKE 'y' FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT a IS FOO FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT cast(a int) FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT extract(year d) FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT position('a', c) FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM t JOIN t x",
    "CREATE MATERIALIZED VIEW v AS SELECT a BETWEEN 1 OR 2 FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT a[] FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT ((a) FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT a) FROM t",
    "CREATE MATERIALIZED VIEW v AS SELECT a b c FROM t",
    "REFRESH MATERIALIZED v",
]  # fmt: skip


@pytest.fixture(scope="module")
def connection(postgres_server: Any) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_server.dsn, autocommit=True, prepare_threshold=None) as opened:
        opened.execute("CREATE TEMP TABLE t (a int, b int, c text, d timestamp, e int[], f jsonb)")
        yield opened


def said(connection: psycopg.Connection, text: str) -> tuple[str, str, int | None] | None:
    """What PostgreSQL's parser and analyser say of a query, or None when they accept it."""
    try:
        connection.execute(f"PREPARE q AS {text}")
        connection.execute("DEALLOCATE q")
    except psycopg.Error as error:
        position = error.diag.statement_position
        return (
            error.sqlstate or "",
            error.diag.message_primary or "",
            int(position) - len("PREPARE q AS ") if position else None,
        )
    return None


@pytest.mark.parametrize("text", VALID, ids=[text[:50] for text in VALID])
def test_what_postgresql_parses_regenerates_as_something_it_parses(connection: psycopg.Connection, text: str) -> None:
    assert said(connection, text.rstrip(";")) is None
    assert said(connection, parse_pull(text).sql(dialect=MvDialect)) is None


@pytest.mark.parametrize("text", REFUSED, ids=REFUSED)
def test_what_postgresql_refuses_is_refused_alike(connection: psycopg.Connection, text: str) -> None:
    with pytest.raises(psycopg.Error) as theirs:
        connection.execute(text)
    diagnosis = theirs.value.diag
    with pytest.raises(SqlError) as ours:
        parse(text)
    assert (ours.value.sqlstate, ours.value.message, ours.value.position) == (
        theirs.value.sqlstate,
        diagnosis.message_primary,
        int(diagnosis.statement_position or 0),
    )
