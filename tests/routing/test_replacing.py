"""CREATE OR REPLACE: what stays of a relation, what changes with its definition, and what is refused."""

from __future__ import annotations

import json

import pytest

from catalog.model import Relation
from tests.routing.fakes import Bench

VIEW = "CREATE MATERIALIZED VIEW visits AS SELECT url, count(*) AS n FROM clicks GROUP BY url"
OTHER = (
    "CREATE OR REPLACE MATERIALIZED VIEW visits AS "
    "SELECT url, max(event_time) AS latest, 1 AS one FROM clicks GROUP BY url"
)


def _view(bench: Bench, name: str = "visits") -> Relation:
    (found,) = [relation for relation in bench.catalog.relations.all() if relation.name == name]
    return found


def test_where_there_is_no_view_one_is_made(filled: Bench) -> None:
    filled.run(VIEW.replace("CREATE", "CREATE OR REPLACE"))
    assert [column.name for column in _view(filled).columns] == ["url", "n"]
    (query,) = filled.catalog.queries.all()
    assert query.definition_version == 1


def test_identity_privileges_and_fitting_comments_stay(filled: Bench) -> None:
    filled.run(VIEW, "CREATE ROLE reader", "GRANT SELECT ON visits TO reader")
    filled.run(
        "COMMENT ON MATERIALIZED VIEW visits IS 'of pages'",
        "COMMENT ON COLUMN visits.url IS 'the page'",
        "COMMENT ON COLUMN visits.n IS 'how many'",
    )
    before = _view(filled)
    (old,) = filled.catalog.queries.all()
    filled.engine.calls.clear()
    assert filled.result(OTHER).tag == "CREATE MATERIALIZED VIEW"
    assert filled.engine.names() == ["wait_until_ready", "check_plan", "resolve_position", "reconcile"]
    after = _view(filled)
    assert after.id != before.id
    assert (after.oid, after.owner, after.acl) == (before.oid, before.owner, before.acl)
    assert [(c.name, c.type) for c in after.columns] == [("url", "VARCHAR"), ("latest", "BIGINT"), ("one", "INTEGER")]
    assert after.definition == OTHER
    (query,) = filled.catalog.queries.all()
    assert query.id != old.id
    assert (query.sink_id, query.definition_version) == (after.id, 2)
    assert json.loads(query.start_position) == {"entity": "clicks", "starting": "earliest"}
    comments = {(each.column_number, each.text) for each in filled.catalog.comments.all()}
    assert comments == {(0, "of pages"), (1, "the page")}


@pytest.mark.parametrize("step", ["wait_until_ready", "check_plan", "resolve_position"])
def test_a_failure_leaves_the_old_view(filled: Bench, step: str) -> None:
    filled.run(VIEW)
    before = filled.dump()
    filled.engine.fails[step] = filled.error("SELECT nonsense FROM nowhere")
    filled.error(OTHER)
    assert filled.dump() == before


@pytest.mark.parametrize(
    ("setup", "statement", "sqlstate", "message"),
    [
        ("CREATE MATERIALIZED VIEW over AS SELECT n FROM visits", OTHER, "2BP01",
         'cannot replace materialized view "visits" because other objects depend on it'),
        (None, "CREATE OR REPLACE MATERIALIZED VIEW visits AS SELECT url FROM visits", "42P17",
         'materialized view "visits" cannot be replaced by a query that reads it'),
        (None, "CREATE OR REPLACE MATERIALIZED VIEW clicks AS SELECT url FROM clicks", "42809",
         '"clicks" is not a materialized view'),
        (None, "CREATE OR REPLACE MATERIALIZED VIEW visits AS SELECT nosuch FROM clicks", "42703",
         'column "nosuch" does not exist'),
        (None, "CREATE OR REPLACE MATERIALIZED VIEW IF NOT EXISTS visits AS SELECT url FROM clicks", "42601",
         "OR REPLACE and IF NOT EXISTS cannot be given together"),
        (None, "CREATE OR REPLACE STREAM clicks (url VARCHAR) WITH ('value.format' = 'json')", "2BP01",
         'cannot replace stream "clicks" because other objects depend on it'),
        (None, "CREATE OR REPLACE CHANGELOG clicks (a INT PRIMARY KEY) WITH ('value.format' = 'json')", "42809",
         '"clicks" is not a changelog'),
        (None, "CREATE OR REPLACE STREAM file_clicks (a INT) "
         "WITH ('store' = 'f', 'topic' = 'x', 'value.format' = 'csv')", "0A000",
         'stream "file_clicks" cannot be replaced by one over another entity'),
        (None, "CREATE OR REPLACE STREAM file_clicks (a INT) WITH ('store' = 'f', 'value.format' = 'nosuch')", "22023",
         None),
        (None, "CREATE OR REPLACE STREAM s AS SELECT url FROM clicks", "0A000",
         "CREATE OR REPLACE STREAM AS is not supported"),
        (None, "CREATE OR REPLACE CHANGELOG c AS SELECT url FROM clicks GROUP BY url", "0A000",
         "CREATE OR REPLACE CHANGELOG AS is not supported"),
        (None, "CREATE OR REPLACE STREAM IF NOT EXISTS s (a INT) WITH ('value.format' = 'json')", "42601",
         "OR REPLACE and IF NOT EXISTS cannot be given together"),
    ],
)  # fmt: skip
def test_refusals_change_nothing(
    filled: Bench, setup: str | None, statement: str, sqlstate: str, message: str | None
) -> None:
    filled.run(VIEW, *([setup] if setup else []))
    before = filled.dump()
    error = filled.error(statement)
    assert (error.sqlstate, error.message) == (sqlstate, message or error.message)
    assert filled.dump() == before
    assert error.hint or sqlstate != "0A000"


@pytest.mark.parametrize(
    ("first", "second", "columns", "key", "comments"),
    [
        ("STREAM r (a INTEGER, b VARCHAR) WITH ('store' = 'f', 'value.format' = 'json')",
         "STREAM r (a BIGINT, c DATE, b VARCHAR) WITH ('store' = 'f', 'value.format' = 'csv')",
         [("a", "BIGINT"), ("c", "DATE"), ("b", "VARCHAR")], (), {1}),
        ("CHANGELOG r (a INTEGER PRIMARY KEY, b VARCHAR) WITH ('store' = 'f', 'value.format' = 'json')",
         "CHANGELOG r (a INTEGER, b VARCHAR NOT NULL, PRIMARY KEY (b)) WITH ('store' = 'f', 'value.format' = 'json')",
         [("a", "INTEGER"), ("b", "VARCHAR")], ("b",), {1, 2}),
    ],
)  # fmt: skip
def test_a_declaration_gets_other_columns(
    filled: Bench,
    first: str,
    second: str,
    columns: list[tuple[str, str]],
    key: tuple[str, ...],
    comments: set[int],
) -> None:
    filled.run(f"CREATE OR REPLACE {first}", "CREATE ROLE reader", "GRANT SELECT ON r TO reader")
    filled.run("COMMENT ON COLUMN r.a IS 'first'", "COMMENT ON COLUMN r.b IS 'second'")
    before = _view(filled, "r")
    entities = filled.stores.place("FILE", "clicks").list_entities()
    filled.engine.calls.clear()
    assert filled.result(f"CREATE OR REPLACE {second}").tag == f"CREATE {before.kind.upper()}"
    after = _view(filled, "r")
    assert after.id != before.id
    assert (after.oid, after.row_type_oid, after.owner, after.acl, after.entity, after.store_id) == (
        before.oid, before.row_type_oid, before.owner, before.acl, before.entity, before.store_id,
    )  # fmt: skip
    assert [(column.name, column.type) for column in after.columns] == columns
    assert after.key_columns == key
    assert after.property("value.format") == second.rpartition("= '")[2].strip("')")
    assert after.definition == f"CREATE OR REPLACE {second}"
    assert filled.engine.names() == ["reconcile"]
    assert filled.stores.place("FILE", "clicks").list_entities() == entities
    assert {each.column_number for each in filled.catalog.comments.all()} == comments


def test_only_the_owner_may_replace(filled: Bench) -> None:
    statement = "STREAM mine (a INTEGER) WITH ('store' = 'f', 'value.format' = 'json')"
    filled.run(f"CREATE {statement}", "CREATE ROLE other", "GRANT USAGE ON STORE f TO other")
    before = filled.dump()
    filled.context.role = "other"
    error = filled.error(f"CREATE OR REPLACE {statement}")
    assert error.sqlstate == "42501"
    assert filled.dump() == before
