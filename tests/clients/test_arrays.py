"""Views with columns and keys that are arrays, beside a real PostgreSQL with the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from catalog.model import Column
from tests.clients.live_server import LiveServer
from tests.services.postgres import PostgresServer

pytestmark = pytest.mark.postgres

_TAGGED = """
SELECT * FROM (VALUES
  (1::BIGINT, ['a', 'b c', NULL], [3, 1, 2], [1.50::DECIMAL(10, 2)], [TIMESTAMP '2024-01-02 03:04:05']),
  (2, []::VARCHAR[], NULL, [NULL]::DECIMAL(10, 2)[], NULL),
  (3, NULL, []::INTEGER[], NULL, []::TIMESTAMP[])) AS t (id, tags, ns, ds, ts)
"""
_BY_TAGS = "SELECT * FROM (VALUES (['a'], 1::BIGINT), (['a', 'b'], 2), ([]::VARCHAR[], 3), (NULL, 4)) AS t (tags, n)"
_THEIRS = """
CREATE TABLE tagged (id bigint, tags text[], ns integer[], ds numeric(10, 2)[], ts timestamp[]);
INSERT INTO tagged VALUES
  (1, ARRAY['a', 'b c', NULL], '{3,1,2}', '{1.50}', ARRAY['2024-01-02 03:04:05'::timestamp]),
  (2, '{}', NULL, '{NULL}', NULL), (3, NULL, '{}', NULL, '{}');
CREATE TABLE by_tags (tags text[], n bigint);
INSERT INTO by_tags VALUES ('{a}', 1), ('{a,b}', 2), ('{}', 3), (NULL, 4);
"""

STATEMENTS = (
    "SELECT * FROM tagged ORDER BY id",
    "SELECT tags FROM tagged WHERE id = 1",
    "SELECT tags[1], ns[2], tags[9], array_length(tags, 1), cardinality(ns), array_upper(tags, 1) "
    "FROM tagged ORDER BY id",
    "SELECT id FROM tagged WHERE 'a' = ANY(tags)",
    "SELECT id FROM tagged WHERE 1 <> ALL(ns) ORDER BY 1",
    "SELECT id FROM tagged WHERE tags @> ARRAY['a']",
    "SELECT id FROM tagged WHERE tags && ARRAY['a', 'z']",
    "SELECT id FROM tagged WHERE ns > ARRAY[1] ORDER BY 1",
    "SELECT id, t, o FROM tagged, unnest(tags) WITH ORDINALITY AS u (t, o) ORDER BY 1, 3",
    "SELECT id, unnest(ns) AS n FROM tagged ORDER BY 1, 2",
    "SELECT ns[1:2], ns[2:], tags[:1] FROM tagged ORDER BY id",
    "SELECT array_append(ns, 9), ns || 4, 0 || ns, ns || ARRAY[7], array_remove(ns, 1) FROM tagged ORDER BY id",
    "SELECT array_agg(ns ORDER BY id) FROM tagged WHERE cardinality(ns) > 0",
    "SELECT to_jsonb(tags), array_to_json(ns) FROM tagged ORDER BY id",
    "SELECT pg_typeof(tags)::text, pg_typeof(ns)::text, pg_typeof(ds)::text, pg_typeof(ts)::text, "
    "pg_typeof(ARRAY[[true]])::text FROM tagged WHERE id = 1",
    "SELECT id FROM tagged ORDER BY ns DESC NULLS LAST, id",
    "SELECT ARRAY(SELECT t FROM unnest(tags) AS t WHERE t IS NOT NULL ORDER BY t DESC) FROM tagged ORDER BY id",
    # the key
    "SELECT * FROM by_tags ORDER BY n",
    "SELECT n FROM by_tags WHERE tags = ARRAY['a']",
    "SELECT n FROM by_tags WHERE tags IN (ARRAY['a'], ARRAY['x'])",
    "SELECT n FROM by_tags WHERE tags IS NULL",
    "SELECT tags, count(*) FROM by_tags GROUP BY tags ORDER BY 1",
    "SELECT DISTINCT tags FROM by_tags ORDER BY tags",
    "SELECT min(tags), max(tags) FROM by_tags",
    "SELECT a.n, b.n FROM by_tags AS a JOIN by_tags AS b ON a.tags = b.tags ORDER BY 1",
    # constants in quotes
    "SELECT n FROM by_tags WHERE tags = '{a,b}'",
    "SELECT n FROM by_tags WHERE tags <> '{}' ORDER BY 1",
    "SELECT id, ns = '{3,1,2}' AS eq, ns <> '{}' AS ne, ns IS DISTINCT FROM '{}' AS d FROM tagged ORDER BY id",
    "SELECT id FROM tagged WHERE tags IN ('{}', '{a}')",
    "SELECT id FROM tagged WHERE tags NOT IN ('{}') ORDER BY 1",
    "SELECT id FROM tagged WHERE ns BETWEEN '{}' AND '{9}' ORDER BY 1",
    "SELECT id FROM tagged WHERE ns NOT BETWEEN ARRAY[1] AND ARRAY[2] ORDER BY 1",
    "SELECT CASE WHEN id = 1 THEN tags ELSE '{}' END FROM tagged ORDER BY id",
    "SELECT CASE id WHEN 1 THEN '{1}' WHEN 2 THEN ns END FROM tagged ORDER BY id",
    "SELECT CASE ns WHEN '{3,1,2}' THEN 'it' ELSE 'other' END FROM tagged ORDER BY id",
    "SELECT coalesce(tags, '{}'), coalesce(ns, '{7}'), nullif(tags, '{}') FROM tagged ORDER BY id",
    "SELECT greatest(ns, '{2}'), least('{2}', ns) FROM tagged ORDER BY id",
    "SELECT array_cat(ns, '{8}'), '{8}' || ns, array_prepend(1, ns) FROM tagged ORDER BY id",
    "SELECT tags FROM tagged WHERE id = 1 UNION ALL SELECT '{x,y}'",
    "SELECT coalesce(ns, '{a}') FROM tagged",
    "SELECT coalesce(ns, '{1.5}') FROM tagged",
    "SELECT '{1.5}'::int[]",
    "SELECT '{{1,2},{3,4}}'::int[], '{1,NULL}'::bigint[]",
    "SELECT id FROM tagged WHERE ds = '{1.50001}'",
    "SELECT id FROM tagged WHERE ds = '{1.500}'",
    "SELECT id FROM tagged WHERE ts = '{2024-01-02 03:04:05}'",
    "SELECT id FROM tagged WHERE id = ANY('{1,NULL,3}') ORDER BY id",
    "SELECT id FROM tagged WHERE id = SOME('{2}')",
    "SELECT id FROM tagged WHERE id <> ALL('{2,3}')",
    "SELECT id FROM tagged WHERE id < ANY('{2,3}') ORDER BY id",
    "SELECT id FROM tagged WHERE id = ANY('{x}')",
    "SELECT id FROM tagged WHERE id = ANY('{1.5}')",
    "SELECT id FROM tagged WHERE ds[1] = ANY('{1.5000,7}')",
    "SELECT id FROM tagged WHERE ts[1] = ANY('{2024-01-02 03:04:05}')",
    "SELECT id FROM tagged WHERE tags[1] = ANY('{a,\"b c\"}')",
    "SELECT CASE WHEN id = 1 THEN '{bad' ELSE tags END FROM tagged",
)

WITH_VALUES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("SELECT id FROM tagged WHERE tags = %s", (["a", "b c", None],)),
    ("SELECT n FROM by_tags WHERE tags = %s", (["a"],)),
    ("SELECT n FROM by_tags WHERE tags = %s::text[]", ([],)),
    ("SELECT id FROM tagged WHERE %s = ANY(tags)", ("a",)),
    ("SELECT tags || %s FROM tagged WHERE id = %s", ("q", 1)),
    ("SELECT tags FROM tagged WHERE id = ANY(%s) ORDER BY id", ([1, 3],)),
    ("SELECT id FROM tagged WHERE tags BETWEEN %s::text[] AND %s::text[]", (["a"], ["b"])),
    ("SELECT id FROM tagged WHERE tags BETWEEN tags AND tags AND id BETWEEN %s AND %s ORDER BY 1", (1, 3)),
)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection[Any]]:
    server = LiveServer(tmp_path_factory.mktemp("arrays"))
    columns = (
        Column("id", "BIGINT", not_null=True), Column("tags", "ARRAY<VARCHAR>"), Column("ns", "ARRAY<INTEGER>"),
        Column("ds", "ARRAY<DECIMAL(10,2)>"), Column("ts", "ARRAY<TIMESTAMP>"),
    )  # fmt: skip
    server.add_view("tagged", columns, ("id",), _TAGGED)
    server.add_view("by_tags", (Column("tags", "ARRAY<VARCHAR>"), Column("n", "BIGINT")), ("tags",), _BY_TAGS)
    server.start()
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        yield connection
    server.stop()


@pytest.fixture(scope="module")
def theirs(postgres_server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA arrays; SET search_path = arrays")
        connection.execute(_THEIRS)
        yield connection
        connection.execute("DROP SCHEMA arrays CASCADE")


def _outcome(connection: psycopg.Connection[Any], text: str, values: tuple[Any, ...] | None, binary: bool) -> Any:
    try:
        cursor = connection.execute(text, values, binary=binary)
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary
    return [(each.name, each._ftype, each._fmod) for each in cursor.description or ()], cursor.fetchall()


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize(("text", "values"), [*((text, None) for text in STATEMENTS), *WITH_VALUES])
def test_answers_are_postgresqls(text: str, values: Any, binary: bool, ours: Any, theirs: Any) -> None:
    assert _outcome(ours, text, values, binary) == _outcome(theirs, text, values, binary)


def test_two_comparisons_are_answered_or_refused_in_so_many_words(ours: Any, theirs: Any) -> None:
    """DuckDB 2.0.0 makes a filter of them that it cannot run."""
    text = "SELECT id FROM tagged WHERE ns >= ARRAY[0] AND ns < ARRAY[9] ORDER BY id"
    try:
        found = ours.execute(text).fetchall()
    except psycopg.errors.FeatureNotSupported as refused:
        found = refused.diag.message_hint
    assert found in ("Write BETWEEN.", theirs.execute(text).fetchall())
