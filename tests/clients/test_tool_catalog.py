"""What tools ask the system catalog for, beside a real PostgreSQL where both can answer alike."""

from __future__ import annotations

import re

import psycopg
import pytest

from tests.clients.live_server import LiveServer
from tests.clients.view_world import Connection, ours, outcome, theirs

__all__ = ["ours", "theirs"]

ALIKE = (
    # pgcli's completion
    "SELECT p.proname::text, COALESCE(proallargtypes::regtype[], proargtypes::regtype[])::text[] AS arguments, "
    "prorettype::regtype::text FROM pg_proc p WHERE p.proname IN ('abs', 'ascii', 'starts_with') "
    "AND prorettype::regtype <> 'trigger'::regtype ORDER BY 1, 2",
    "SELECT '{int4,text}'::regtype[]::text[], ARRAY['bigint', 'name']::regtype[]::text[], NULL::regtype[]::text[]",
    # PostgREST's schema cache
    "SELECT c.oid, u.col, u.ref, u.ord FROM pg_constraint c, unnest(conkey, confkey) WITH ORDINALITY "
    "AS u(col, ref, ord) WHERE c.contype = 'f'",
    "SELECT i.indrelid::regclass::text, u.k, u.o, u.n FROM pg_index i CROSS JOIN LATERAL "
    "unnest(i.indkey::int2[], i.indoption::int2[]) WITH ORDINALITY AS u(k, o, n) "
    "WHERE i.indrelid = 'visits'::regclass",
    "SELECT * FROM unnest(ARRAY[1, 2], ARRAY['a', 'b', 'c']) WITH ORDINALITY AS u(a, b, o)",
    "SELECT * FROM unnest(ARRAY[1, 2], ARRAY['a', NULL]) AS u(a, b)",
    "SELECT v.url, u.x, u.y FROM visits v, unnest(ARRAY[v.visits], ARRAY[v.url, 'z']) AS u(x, y)",
    "SELECT row_to_json(v.*)::text FROM (SELECT 1 AS a, 'x' AS b) AS v",
    "SELECT to_jsonb(v.*) ->> 'url' AS url FROM visits AS v",
    # vectors, whose subscripts count from 0
    "SELECT indkey[0], indkey::text, 1 = ANY(indkey) AS is_first FROM pg_index WHERE indrelid = 'visits'::regclass",
    # transactions
    "SELECT age(xmin) >= 0 AS known, xmax = '0'::xid AS alive FROM pg_class WHERE relname = 'visits'",
    "SELECT count(*) FROM visits WHERE xmin IS NOT NULL",
    "SELECT min(visits) AS xmin FROM visits GROUP BY url ORDER BY xmin",
    "SELECT age(datfrozenxid) > 0 AS aged FROM pg_database WHERE datname = current_database()",
    # sizes
    "SELECT pg_relation_size('visits') > 0, pg_total_relation_size('visits'::regclass) % 8192, "
    "pg_table_size(NULL::oid), pg_database_size(current_database()) > 0",
    "SELECT pid = pg_backend_pid() AS own, ssl, version, cipher, bits, client_dn FROM pg_stat_ssl "
    "WHERE pid = pg_backend_pid()",
    "SELECT name::text, utc_offset, is_dst, abbrev::text FROM pg_timezone_names "
    "WHERE name IN ('UTC', 'Asia/Kolkata', 'Europe/Berlin')",
)  # fmt: skip


@pytest.mark.postgres
@pytest.mark.parametrize("text", ALIKE)
def test_answers_are_postgresqls(text: str, ours: Connection, theirs: Connection) -> None:
    ours.execute("DROP INDEX visits_key")
    for connection in (ours, theirs):
        connection.execute("CREATE INDEX visits_url ON visits (url, visits DESC)")
    found, expected = outcome(ours, text), outcome(theirs, text)
    assert found[1] == expected[1]
    assert [name for name, *_ in found[0]] == [name for name, *_ in expected[0]]


def test_postgres_fdw_reads_the_costs(ours: Connection) -> None:
    """It takes the last bracket of the first line."""
    (first, *_) = ours.execute("EXPLAIN SELECT n FROM numbers").fetchall()
    assert re.search(r"\(cost=\d+\.\d\d\.\.\d+\.\d\d rows=100000 width=8\)$", first[0])
    (first, *_) = ours.execute("EXPLAIN (VERBOSE, COSTS OFF) SELECT n FROM numbers").fetchall()
    assert "cost" not in first[0]


@pytest.mark.postgres
def test_postgres_fdw_with_remote_estimates(own_server: LiveServer, theirs: Connection) -> None:
    theirs.execute("CREATE EXTENSION postgres_fdw")
    theirs.execute(
        "CREATE SERVER remote FOREIGN DATA WRAPPER postgres_fdw OPTIONS "
        f"(host '127.0.0.1', port '{own_server.port}', dbname 'postgres', use_remote_estimate 'true')"
    )
    theirs.execute("CREATE USER MAPPING FOR postgres SERVER remote OPTIONS (user 'postgres', password 'x')")
    theirs.execute("CREATE SCHEMA far")
    theirs.execute("IMPORT FOREIGN SCHEMA public LIMIT TO (visits, numbers) FROM SERVER remote INTO far")
    assert theirs.execute("SELECT url, visits FROM far.visits WHERE visits > 15 ORDER BY url").fetchall() == [
        ("./home", 30), ("./shop", 20),
    ]  # fmt: skip
    assert theirs.execute(
        "SELECT v.url, n.n FROM far.visits v JOIN far.numbers n ON n.n = v.visits ORDER BY 1"
    ).fetchall() == [("./cart", 10), ("./home", 30), ("./shop", 20)]
    (planned, *_) = theirs.execute("EXPLAIN SELECT n FROM far.numbers").fetchall()
    assert "rows=100000" in planned[0]


def test_sizes_follow_the_rows(ours: Connection) -> None:
    ((small, large),) = ours.execute("SELECT pg_relation_size('visits'), pg_relation_size('numbers')").fetchall()
    assert small == 8192  # a page
    assert large >= 100_000 * 8


def test_a_column_that_no_relation_has_is_undefined_still(ours: Connection) -> None:
    with pytest.raises(psycopg.errors.UndefinedColumn):
        ours.execute("SELECT ctid FROM visits")


def test_pg_dump_is_told_what_to_use_instead(ours: Connection) -> None:
    """Its first statement that fails, whose message and hint it shows."""
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="pg_dump is not supported") as raised:
        ours.execute("SET synchronize_seqscans TO off")
    assert "COPY (SELECT ...) TO STDOUT" in (raised.value.diag.message_hint or "")
