"""CREATE OR REPLACE MATERIALIZED VIEW: what stays of a view, what changes with its definition, and what is refused."""

from __future__ import annotations

import json

import pytest
from routing_fakes import Bench

from catalog.model import Relation

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
        (None, "CREATE OR REPLACE STREAM clicks (url VARCHAR) WITH ('value.format' = 'json')", "0A000",
         "CREATE OR REPLACE is not supported"),
    ],
)  # fmt: skip
def test_refusals_change_nothing(filled: Bench, setup: str | None, statement: str, sqlstate: str, message: str) -> None:
    filled.run(VIEW, *([setup] if setup else []))
    before = filled.dump()
    error = filled.error(statement)
    assert (error.sqlstate, error.message) == (sqlstate, message)
    assert filled.dump() == before
