"""Indexes: each statement here and in a real PostgreSQL with the same relations; then what only this server says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from tests.clients.live_server import LiveServer, started_again, with_views
from tests.clients.view_world import Connection, ours, outcome, theirs

__all__ = ["ours", "theirs"]

OF_DBT = (  # as dbt-postgres finds out which indexes it has to make and to drop
    'SELECT i.relname::text AS name, m.amname::text AS method, ix.indisunique AS "unique", '
    "array_to_string(array_agg(a.attname ORDER BY a.attname), ',') AS column_names FROM pg_index ix "
    "JOIN pg_class i ON i.oid = ix.indexrelid JOIN pg_am m ON m.oid = i.relam JOIN pg_class t ON t.oid = ix.indrelid "
    "JOIN pg_namespace n ON n.oid = t.relnamespace "
    "JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = ANY(ix.indkey) "
    "WHERE t.relname = 'visits' AND n.nspname = 'public' AND t.relkind IN ('r', 'm') GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
)
SHOWN = (
    OF_DBT,
    "SELECT indexname::text, indexdef FROM pg_indexes WHERE tablename = 'visits'",
    "SELECT c.relname::text, i.indisunique, i.indkey::text, i.indoption::text, i.indnatts, i.indisprimary, "
    "i.indnullsnotdistinct, c.relkind::text, c.relnatts, c.relam FROM pg_index i "
    "JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = 'visits'::regclass",
    "SELECT relhasindex FROM pg_class WHERE relname = 'visits'",
    "SELECT hasindexes FROM pg_matviews WHERE matviewname = 'visits'",
)

CHANGES: tuple[Sequence[str], ...] = (
    (
        *SHOWN,
        "CREATE UNIQUE INDEX one ON visits (url)",
        "CREATE INDEX ON visits (visits DESC, url ASC NULLS FIRST)",
        "CREATE INDEX ON visits (visits DESC, url)",
        "CREATE INDEX hashed ON public.visits USING hash (url)",
        'CREATE UNIQUE INDEX "Two" ON visits USING btree (visits, url) NULLS NOT DISTINCT',
        *SHOWN,
        "SELECT attname::text, attnum, atttypid FROM pg_attribute WHERE attrelid = 'one'::regclass",
        "SELECT pg_get_indexdef('one'::regclass, 1, false)",
        "CREATE INDEX one ON visits (url)",
        "CREATE INDEX IF NOT EXISTS one ON visits (url)",
        "CREATE INDEX visits ON visits (url)",
        "CREATE VIEW one AS SELECT 1",
        "CREATE INDEX bad ON visits (nothing)",
        "CREATE INDEX bad ON visits USING nothing (url)",
        "CREATE INDEX bad ON nothing (url)",
        "DROP INDEX nothing",
        "DROP INDEX IF EXISTS nothing",
        "DROP INDEX visits",
        "DROP INDEX one, hashed",
        *SHOWN,
        "BEGIN",
        "CREATE INDEX one ON visits (url)",
        "DROP INDEX one",
        "CREATE INDEX one ON visits (visits)",
        "REFRESH MATERIALIZED VIEW visits",
        "COMMIT",
        *SHOWN,
        "DROP MATERIALIZED VIEW visits",
        "SELECT relname::text FROM pg_class WHERE relname = 'one'",
        "CREATE VIEW one AS SELECT 1",
    ),
)


@pytest.mark.postgres
@pytest.mark.parametrize("statements", CHANGES, ids=range(len(CHANGES)))
def test_indexes_are_postgresqls(statements: Sequence[str], ours: Connection, theirs: Connection) -> None:
    ours.execute("DROP INDEX visits_key")
    for text in statements:
        assert outcome(ours, text) == outcome(theirs, text), text


# --- what only this server has ----------------------------------------------------------------------------------------
def test_a_notice_says_that_the_key_is_enough(ours: Connection) -> None:
    told: list[tuple[str | None, str | None]] = []
    ours.add_notice_handler(lambda diagnostic: told.append((diagnostic.message_primary, diagnostic.message_detail)))
    ours.execute("CREATE INDEX i ON visits (visits)")
    assert told == [
        (
            'index "i" has no effect on how materialized view "visits" is read',
            "The view is indexed by its key already: url.",
        )
    ]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("CREATE UNIQUE INDEX ON visits (visits)", errors.FeatureNotSupported, "must have all columns of its key"),
        ("CREATE INDEX ON visits (lower(url))", errors.FeatureNotSupported, "indexes of expressions"),
        ("CREATE INDEX ON visits ((visits + 1))", errors.FeatureNotSupported, "indexes of expressions"),
        ("CREATE INDEX ON visits (url) WHERE visits > 1", errors.FeatureNotSupported, "WHERE in CREATE INDEX"),
        ("CREATE INDEX ON visits (url) INCLUDE (visits)", errors.FeatureNotSupported, "INCLUDE in CREATE INDEX"),
        ("CREATE INDEX ON visits (url text_pattern_ops)", errors.FeatureNotSupported, "operator classes"),
        ("CREATE INDEX ON pv (url)", errors.WrongObjectType, 'cannot create index on relation "pv"'),
    ],
)
def test_what_is_refused(text: str, error: type[psycopg.Error], message: str, ours: Connection) -> None:
    ours.execute("CREATE VIEW pv AS SELECT url FROM visits")
    with pytest.raises(error, match=message):
        ours.execute(text)
    assert ours.execute("SELECT indexname FROM pg_indexes WHERE tablename = 'visits'").fetchall() == [("visits_key",)]


def test_indexes_are_there_after_a_restart(tmp_path: Path) -> None:
    server = with_views(LiveServer(tmp_path))
    server.start()
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        connection.execute("CREATE INDEX i ON visits (visits DESC)")
        before = connection.execute("SELECT * FROM pg_indexes").fetchall()
    with started_again(server) as again, psycopg.connect(again.conninfo, autocommit=True) as connection:
        assert connection.execute("SELECT * FROM pg_indexes").fetchall() == before
