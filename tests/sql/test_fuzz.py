"""Damaged statements: whatever is in them, the parser answers with statements or with SqlError, soon."""

from __future__ import annotations

import os
import random
import time

import pytest
from sqlglot.errors import ErrorLevel

from mvserver.errors import SqlError
from mvserver.sql import parse
from mvserver.sql.dialect import MvDialect
from mvserver.sql.statements.base import Statement
from mvserver.sql.statements.queries import Pull

SEED = int(os.environ.get("MVSERVER_TEST_SEED", "0")) or random.randrange(1 << 30)
ROUNDS = 2_500

_PIECES = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT WITH AS JOIN ON LEFT CROSS USING UNION ALL DISTINCT CASE WHEN
THEN ELSE END AND OR NOT IN IS NULL LIKE BETWEEN EXISTS CAST EXTRACT INTERVAL DATE TIMESTAMP ARRAY ROW MAP
VALUES TABLE LATERAL OVER PARTITION ROWS RANGE WITHIN FILTER COLLATE AT TIME ZONE CREATE STREAM MATERIALIZED
VIEW STORE ENTITY TOPIC DROP LIST DESCRIBE EXPLAIN INSERT INTO VALUE PRINT SET SHOW BEGIN COMMIT PREPARE
EXECUTE QUERY IF PRIMARY KEY INT VARCHAR STRUCT DECIMAL a b t x 1 2.5 'x' ’y’ "q" $1 $$z$$ E'\\n' ( ) [ ] { }
, . ; : :: + - * / % ^ = <> < > <= >= || -> ->> ~ ~* !~ @ # & | ? => := -- /* */ ' " ’ \\ é 😀 \u00a0 .. count(
f( sum( 'k'= U&'a' X'1' B'2' N'c' 1e 0x1
"""
PIECES = _PIECES.split()

BASES = [
    "CREATE STREAM s (a INT NOT NULL, b ARRAY<STRUCT<x MAP<INT, TEXT>>>, c DECIMAL(10, 2)) WITH "
    "('store' = ’k’, 'n' = 1)",
    "CREATE MATERIALIZED VIEW v AS SELECT url, count(*) AS n, sum(CASE WHEN a > 1 THEN b ELSE -c END) FROM s WITH "
    "('starting.position' = 'earliest') AS x JOIN u WITHIN 5 MINUTES ON x.a = u.a WHERE a->b->c[1] "
    "LIKE 'x%' ESCAPE '!' "
    "AND d::bigint BETWEEN 1 AND 2 OR e IS NOT DISTINCT FROM f GROUP BY url HAVING count(*) > 1 QUERY WITH ('p' = 2)",
    "SELECT a, sum(b) FILTER (WHERE c) OVER (PARTITION BY d ORDER BY e ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), "
    "extract(year FROM t), interval '1' day, array[1, 2], x.y.z FROM v LEFT JOIN w USING (a) WHERE a IN (1, 2) AND NOT "
    "EXISTS (SELECT 1) GROUP BY GROUPING SETS ((a), ()) ORDER BY 1 DESC NULLS LAST LIMIT 5 OFFSET $1",
    "WITH a AS (VALUES (1, 'x')), b(c) AS (SELECT 1) SELECT * FROM a, LATERAL (SELECT a.x) y UNION ALL TABLE b",
    "PREPARE p (int, text) AS SELECT $1; EXECUTE p (1, 'x'); EXPLAIN (ANALYZE, FORMAT json) SELECT "
    "1; SET a.b TO 'c', d",
    "INSERT INTO ENTITY e IN STORE s VALUE ('{}', 'k') WITH ('x'); PRINT TOPIC t LIMIT 5; SET TRANSACTION READ ONLY",
]


def damaged(random_: random.Random) -> str:
    kind = random_.randrange(4)
    if kind == 0:
        return " ".join(random_.choices(PIECES, k=random_.randint(1, 40)))
    words = random_.choice(BASES).split(" ")
    for _ in range(random_.randint(1, 4)):
        at = random_.randrange(len(words))
        action = random_.randrange(4)
        if action == 0:
            del words[at]
        elif action == 1:
            words.insert(at, random_.choice(PIECES))
        elif action == 2:
            words[at] = random_.choice(PIECES)
        else:
            other = random_.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        words = words or ["a"]
    text = " ".join(words)
    if kind == 1:
        at = random_.randrange(len(text) + 1)
        text = (
            text[:at]
            + random_.choice(["", "'", '"', "(", ")", "\\", "’", "$", "/*", "\n", "\0", "\ud800"])
            + text[at + 1 :]
        )
    return text[: random_.randint(1, len(text))] if kind == 2 and text else text


def test_nothing_but_statements_and_sql_errors() -> None:
    print(f"MVSERVER_TEST_SEED={SEED}")
    random_ = random.Random(SEED)
    accepted = 0
    for _ in range(ROUNDS):
        text = damaged(random_)
        begin = time.monotonic()
        refused: SqlError | None = None
        statements: list[Statement] = []
        try:
            statements = parse(text)
        except SqlError as error:
            refused = error
        except Exception as error:  # noqa: BLE001 - this is the finding
            pytest.fail(f"{error!r} for {text!r} (seed {SEED})")
        if refused is not None:
            assert len(refused.sqlstate) == 5, text
            assert refused.message, text
            assert refused.position is None or 1 <= refused.position <= len(text) + 1, text
        else:
            accepted += 1
        for statement in statements:
            assert statement.text in text
            if isinstance(statement, Pull):
                statement.select.sql(dialect=MvDialect, unsupported_level=ErrorLevel.IGNORE)
        assert time.monotonic() - begin < 5, text
    assert accepted > ROUNDS / 250, "the damage is too great to test anything"
