"""Views: each statement here and in a real PostgreSQL with the same relations, whose answers are the expected ones;
then what only this server has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mvserver import limits
from mvserver.streaming.live_relations import live_relations
from tests.clients.live_server import LiveServer, started_again, with_views
from tests.clients.view_world import Connection, ours, outcome, theirs

__all__ = ["ours", "theirs"]

CHANGES: tuple[Sequence[str], ...] = (
    (  # columns and their types
        "CREATE VIEW pv AS SELECT url, visits * 2 AS twice, '{\"a\": 1}'::jsonb AS j, date '2024-01-01' AS d, 'a' AS t,"
        " visits::numeric(10,2) AS n, ARRAY[url] AS urls, visits > 15 AS much, 'x'::varchar(5) AS v FROM visits",
        "SELECT * FROM pv",
        "SELECT p.j ->> 'a' AS a, p.url, p.v FROM pv AS p WHERE twice > 30",
        "SELECT j, count(*) FROM public.pv GROUP BY j",
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'pv'::regclass",
        "SELECT relkind::text, relhasindex, relhasrules, relnatts, relam FROM pg_class WHERE relname = 'pv'",
        "SELECT table_type::text FROM information_schema.tables WHERE table_name = 'pv'",
        "SELECT column_name::text, data_type::text, udt_name::text FROM information_schema.columns"
        " WHERE table_name = 'pv'",
        "SELECT viewname::text, viewowner::text FROM pg_views WHERE schemaname = 'public'",
    ),
    (  # names given behind the view's, fewer than columns, and too many
        "CREATE VIEW pv (a) AS SELECT url, visits FROM visits",
        "SELECT * FROM pv",
        "SELECT x, visits FROM pv AS p (x)",
        "CREATE VIEW other (a, b, c) AS SELECT url, visits FROM visits",
        "CREATE VIEW other AS SELECT url, visits AS url FROM visits",
        "CREATE VIEW other AS SELECT $1::int",
        "CREATE VIEW other AS SELECT * FROM nothing",
        "CREATE VIEW pv AS SELECT 1",
        "CREATE VIEW visits AS SELECT 1",
        "CREATE OR REPLACE VIEW visits AS SELECT 1",
    ),
    (  # OR REPLACE keeps names and types, and those who read the view keep the columns they know
        "CREATE VIEW pv AS SELECT url, visits FROM visits",
        "CREATE VIEW above AS SELECT *, 1 AS one FROM pv",
        "CREATE OR REPLACE VIEW pv AS SELECT url FROM visits",
        "CREATE OR REPLACE VIEW pv AS SELECT url AS u, visits FROM visits",
        "CREATE OR REPLACE VIEW pv AS SELECT url, visits::int AS visits FROM visits",
        "CREATE OR REPLACE VIEW pv AS SELECT url, visits + 1 AS visits, 'more' AS more FROM visits",
        "SELECT * FROM pv",
        "SELECT * FROM above",
        "CREATE OR REPLACE VIEW pv AS SELECT url, visits, 'more' AS more FROM visits WHERE url <> './home'",
        "SELECT * FROM above",
    ),
    (  # names, schemas and what depends on them
        "CREATE SCHEMA s",
        "CREATE VIEW pv AS WITH visits AS (SELECT 1 AS x) SELECT v.url, visits.x FROM visits, public.visits AS v",
        "CREATE VIEW above AS TABLE pv",
        "ALTER VIEW pv RENAME TO below",
        "SELECT * FROM above",
        "ALTER TABLE below SET SCHEMA s",
        "SELECT * FROM above",
        "SELECT * FROM below",
        "DROP VIEW s.below",
        "DROP VIEW s.below RESTRICT",
        "DROP MATERIALIZED VIEW visits",
        "DROP VIEW visits",
        "DROP MATERIALIZED VIEW above",
        "ALTER VIEW above RENAME TO visits",
        "ALTER VIEW IF EXISTS nothing RENAME TO something",
        "ALTER VIEW nothing RENAME TO something",
        "ALTER MATERIALIZED VIEW above RENAME TO something",
        "DROP VIEW IF EXISTS nothing",
        "DROP SCHEMA s",
        "DROP VIEW s.below CASCADE",
        "SELECT * FROM above",
        "DROP SCHEMA s",
    ),
    (  # all or nothing
        "BEGIN",
        "CREATE VIEW tmp AS SELECT url FROM visits",
        "CREATE VIEW above AS SELECT url FROM tmp",
        "ALTER VIEW tmp RENAME TO pv",
        "COMMIT",
        "SELECT * FROM above",
        "BEGIN",
        "DROP VIEW above",
        "CREATE VIEW above AS SELECT 2 AS two",
        "ROLLBACK",
        "SELECT * FROM above",
    ),
    (  # whose names are the view's own, and whose the reader's
        "CREATE VIEW pv AS SELECT url, visits FROM visits WHERE visits > 10",
        "WITH visits AS (SELECT 5 AS five) SELECT * FROM pv, visits",
        "SELECT v.visits, p.url FROM visits AS v JOIN pv AS p USING (url) ORDER BY 1",
        "SELECT (SELECT max(visits) FROM pv) - visits AS d FROM visits",
        "SELECT url, l.m FROM pv, LATERAL (SELECT pv.visits + 1 AS m) AS l",
        "CREATE VIEW rows_of AS VALUES (1, 'a'), (2, 'b')",
        "SELECT * FROM rows_of",
        "CREATE VIEW kinds AS SELECT relname::text AS name FROM pg_class WHERE relkind = 'v' AND relname LIKE 'rows%'",
        "SELECT * FROM kinds",
        "COMMENT ON VIEW pv IS 'what is seen'",
        "SELECT obj_description('pv'::regclass)",
        "COMMENT ON VIEW visits IS 'no'",
    ),
    (  # rights: the reader's on the view, the owner's on what it reads
        "CREATE ROLE anna LOGIN",
        "CREATE VIEW pv AS SELECT url FROM visits",
        "CREATE VIEW above AS SELECT url FROM pv",
        "SET ROLE anna",
        "SELECT * FROM pv",
        "RESET ROLE",
        "GRANT SELECT ON pv TO anna",
        "SET ROLE anna",
        "SELECT * FROM pv",
        "SELECT * FROM above",
        "SELECT * FROM visits",
        "DROP VIEW pv",
        "ALTER VIEW pv RENAME TO mine",
        "CREATE OR REPLACE VIEW pv AS SELECT 'x' AS url",
        "RESET ROLE",
        "ALTER VIEW above OWNER TO anna",
        "SELECT * FROM above",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO anna",
        "SELECT * FROM above",
        "REVOKE SELECT ON visits FROM anna",
        "SELECT * FROM above",
        "ALTER VIEW pv OWNER TO anna",
        "SELECT * FROM above",
        "REASSIGN OWNED BY anna TO postgres",
        "SELECT * FROM above",
        "DROP OWNED BY anna",
        "DROP ROLE anna",
    ),
)  # fmt: skip


@pytest.mark.postgres
@pytest.mark.parametrize("statements", CHANGES, ids=range(len(CHANGES)))
def test_views_are_postgresqls(statements: Sequence[str], ours: Connection, theirs: Connection) -> None:
    for text in statements:
        assert outcome(ours, text) == outcome(theirs, text), text


# --- what only this server has ----------------------------------------------------------------------------------------
def test_a_view_is_there_after_a_restart(tmp_path: Path) -> None:
    server = with_views(LiveServer(tmp_path))
    server.start()
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute("CREATE VIEW pv (a) AS SELECT url, visits FROM visits")
    with started_again(server) as again, psycopg.connect(again.conninfo, autocommit=True) as connection:
        assert connection.execute("SELECT a FROM pv WHERE visits = 10").fetchall() == [("./cart",)]


def test_the_definition_has_the_names_of_now(ours: Connection) -> None:
    ours.execute("CREATE VIEW pv AS SELECT url FROM visits AS v WHERE visits > (SELECT min(visits) FROM visits)")
    ours.execute('CREATE VIEW above AS SELECT * FROM pv, pg_class AS c WHERE "pv".url = c.relname')
    ours.execute('ALTER VIEW pv RENAME TO "P v"')
    (definition,) = ours.execute("SELECT definition FROM pg_views WHERE viewname = 'above'").fetchall()
    assert definition == (' SELECT * FROM public."P v", pg_class AS c WHERE "pv".url = c.relname;',)
    (depends,) = ours.execute(
        "SELECT count(*) FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass "
        "WHERE r.ev_class = 'above'::regclass AND d.refobjid = '\"P v\"'::regclass AND d.deptype = 'n'"
    ).fetchall()
    assert depends == (1,)


def test_mv_catalog_says_what_a_view_needs(own_server: LiveServer, ours: Connection) -> None:
    ours.execute("CREATE VIEW pv AS SELECT url FROM visits AS a JOIN visits AS b USING (url)")
    ours.execute("CREATE VIEW above AS SELECT relname FROM pv, pg_class")
    nobody: Any = None  # of those who are asked for other relations
    rows = live_relations(own_server.catalog, nobody, nobody)["dependencies"]().to_pylist()
    assert [(row["object"], row["kind"], row["depends_on"]) for row in rows if row["kind"] == "view"] == [
        ("postgres.public.pv", "view", "postgres.public.visits"),
        ("postgres.public.above", "view", "postgres.public.pv"),
    ]


def test_a_view_that_would_read_itself_is_refused(ours: Connection) -> None:
    ours.execute("CREATE VIEW pv AS SELECT url FROM visits")
    ours.execute("CREATE VIEW above AS SELECT url FROM pv")
    for text in ("SELECT url FROM pv", "SELECT url FROM visits WHERE url IN (SELECT url FROM above)"):
        with pytest.raises(psycopg.errors.InvalidObjectDefinition, match="infinite recursion"):
            ours.execute(f"CREATE OR REPLACE VIEW pv AS {text}")
    assert len(ours.execute("SELECT * FROM above").fetchall()) == 3


def test_views_over_views_are_bounded(ours: Connection) -> None:
    ours.execute("CREATE VIEW v0 AS SELECT url FROM visits")
    texts = [
        f"CREATE VIEW v{at + 1} AS SELECT a.url FROM v{at} AS a JOIN v{at} AS b USING (url)"
        for at in range(limits.EXPANDED_VIEWS_MAX.bit_length() - 1)  # each reads twice as many as the one before
    ]
    for text in texts[:-1]:
        ours.execute(text)
    with pytest.raises(psycopg.errors.StatementTooComplex, match="too many views"):
        ours.execute(texts[-1])
    assert len(ours.execute("SELECT * FROM v3").fetchall()) == 3


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("CREATE VIEW pv AS SELECT * FROM clicks", "Create a materialized view over it, and the view over that."),
        ("CREATE VIEW pv WITH (security_barrier) AS SELECT 1", "leave out WITH"),
        ("CREATE VIEW pv AS SELECT url FROM visits WITH CHECK OPTION", "Rows of views cannot be written."),
        ("CREATE VIEW pv AS SELECT set_config('a.b', 'c', false)", "in a SELECT of its own"),
        ("CREATE VIEW pv AS SELECT url FROM visits WHERE url = 'happy'::mood", "Compare with text"),
        ("CREATE RECURSIVE VIEW pv (n) AS SELECT 1", "Write WITH RECURSIVE"),
        ("ALTER TABLE clicks RENAME TO hits", "Drop it, and create it again."),
        ("CREATE MATERIALIZED VIEW m AS SELECT url, count(*) FROM seen GROUP BY url", "Name what the view reads"),
        ("COPY seen FROM STDIN", ""),
        ("INSERT INTO seen SELECT url FROM clicks", ""),
    ],
)
def test_what_is_not_there_yet_says_so(text: str, hint: str, own_server: LiveServer, ours: Connection) -> None:
    (own_server.files / "clicks").mkdir()
    (own_server.files / "clicks" / "a.json").write_text(json.dumps({"url": "./home"}) + "\n")
    ours.execute("CREATE STORE local WITH ('type' = FILE, 'uris' = '.')")
    ours.execute("CREATE STREAM clicks (url VARCHAR) WITH ('store' = 'local', 'value.format' = 'json')")
    ours.execute("CREATE TYPE mood AS ENUM ('happy', 'sad')")
    ours.execute("CREATE VIEW seen AS SELECT url FROM visits")
    with pytest.raises(psycopg.Error) as raised:
        ours.execute(text)
    assert raised.value.sqlstate in ("0A000", "42809")
    assert hint in (raised.value.diag.message_hint or "")


def test_errors_point_into_what_was_sent(ours: Connection) -> None:
    text = "SELECT 1; CREATE VIEW pv AS\n  SELECT url, nothing FROM visits"
    with pytest.raises(psycopg.errors.UndefinedColumn) as raised:
        ours.execute(text)
    assert raised.value.diag.statement_position == str(text.index("nothing") + 1)


def test_a_view_over_a_view_that_is_dropped_meanwhile_is_no_view(ours: Connection) -> None:
    ours.execute("CREATE VIEW pv AS SELECT url FROM visits")
    ours.execute("CREATE VIEW above AS SELECT url FROM pv")
    ours.execute("DROP MATERIALIZED VIEW visits CASCADE")
    assert ours.execute("SELECT relname FROM pg_class WHERE relname IN ('visits', 'pv', 'above')").fetchall() == []
    with pytest.raises(psycopg.errors.UndefinedTable):
        ours.execute("SELECT * FROM above")
