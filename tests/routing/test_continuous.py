"""CREATE MATERIALIZED VIEW, CREATE STREAM AS, INSERT INTO, and the statements about running queries."""

from __future__ import annotations

import json

import pytest

from mvserver.errors import SqlError
from mvserver.sql import parse_one
from mvserver.streaming.api import QueryState, QueryStatus
from tests.routing.fakes import Bench

VIEW = "CREATE MATERIALIZED VIEW visits AS SELECT url, count(*) AS n FROM clicks GROUP BY url"


def test_a_view_is_checked_resolved_made_durable_and_then_reconciled(filled: Bench) -> None:
    result = filled.result(VIEW)
    assert result.tag == "CREATE MATERIALIZED VIEW"
    assert filled.engine.calls == [
        ("wait_until_ready",), ("check_plan",), ("resolve_position", "k", "clicks", "earliest"), ("reconcile",),
    ]  # fmt: skip
    (query,) = filled.catalog.queries.all()
    view = filled.catalog.relations.by_id(query.sink_id)
    assert view is not None
    assert (view.name, view.kind, view.key_columns, view.definition) == ("visits", "materialized view", ("url",), VIEW)
    assert [(c.name, c.type) for c in view.columns] == [("url", "VARCHAR"), ("n", "BIGINT")]
    assert query.kind == "materialized_view"
    assert query.select_text == "SELECT url, count(*) AS n FROM clicks GROUP BY url"
    assert query.search_path == ("postgres", "public")
    assert json.loads(query.start_position) == {"entity": "clicks", "starting": "earliest"}
    assert filled.notices == ['materialized view "visits" is being filled from the history of its source']


def test_the_select_is_kept_as_written_with_its_source_properties(filled: Bench) -> None:
    filled.run(
        "CREATE MATERIALIZED VIEW v AS\n SELECT url, 'a as b' x FROM clicks WITH ('starting.position' = 'latest')\n"
        " WHERE (url LIKE 'as%')"
    )
    (query,) = filled.catalog.queries.all()
    assert query.select_text == (
        "SELECT url, 'a as b' x FROM clicks WITH ('starting.position' = 'latest')\n WHERE (url LIKE 'as%')"
    )
    assert filled.engine.calls[2] == ("resolve_position", "k", "clicks", "latest")
    assert filled.notices == []
    (relation,) = [r for r in filled.catalog.relations.all() if r.name == "v"]
    assert relation.key_columns == ()


def test_if_not_exists_skips_before_anything_else(filled: Bench) -> None:
    filled.run(VIEW)
    filled.engine.calls.clear()
    filled.run(VIEW.replace("VIEW visits", "VIEW IF NOT EXISTS visits").replace("clicks", "nothing"))
    assert filled.notices == ['relation "visits" already exists, skipping']
    assert filled.engine.calls == []


@pytest.mark.parametrize("step", ["wait_until_ready", "check_plan", "resolve_position"])
def test_a_failure_of_the_engine_leaves_nothing(filled: Bench, step: str) -> None:
    before = filled.dump()
    filled.engine.fails[step] = SqlError("57P03", "Spark is still starting")
    for text in (VIEW, "CREATE STREAM s WITH ('store' = k) AS SELECT url FROM clicks"):
        assert str(filled.error(text)) == "57P03: Spark is still starting"
    assert filled.dump() == before


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SqlError("58000", "no Spark"), "no Spark"),
        (SystemError("bad argument to internal function"), "internal error"),
        (RuntimeError("dictionary changed size during iteration"), "internal error"),
        (MemoryError(), "internal error"),
    ],
    ids=["known", "of the interpreter", "of a race", "of memory"],
)
def test_a_reconcile_that_fails_is_a_warning_since_the_change_is_durable(
    filled: Bench, error: Exception, told: str
) -> None:
    """Whatever it is: a client that is told of an error takes the view for not made."""
    texts = [VIEW, "CREATE STREAM homes WITH ('store' = k) AS SELECT url FROM clicks", "DROP STREAM homes CASCADE"]
    for text in texts:
        filled.engine.fails["reconcile"] = error
        filled.run(text)
        assert f"the statement is durable, but did not take effect yet: {told}" in filled.notices
    assert [query.kind for query in filled.catalog.queries.all()] == ["materialized_view"]
    assert [relation.name for relation in filled.catalog.relations.all()][-1] == "visits"


def test_create_stream_as_takes_topic_properties_from_the_left_most_source(filled: Bench) -> None:
    filled.run("USE STORE k")
    result = filled.result("CREATE STREAM homes AS SELECT url, event_time FROM clicks WHERE url = './home'")
    assert result.tag == "CREATE STREAM"
    assert filled.kafka().entities["homes"] == {"partitions": "4", "replicas": "1"}
    (stream,) = [r for r in filled.catalog.relations.all() if r.name == "homes"]
    assert dict(stream.properties)["value.format"] == "json"
    assert dict(stream.properties)["topic.partitions"] == "4"
    assert (stream.kind, stream.entity) == ("stream", "homes")
    (query,) = filled.catalog.queries.all()
    assert (query.kind, query.sink_id) == ("create_stream_as", stream.id)
    assert query.select_text == "SELECT url, event_time FROM clicks WHERE url = './home'"
    assert filled.engine.calls[2] == ("resolve_position", "k", "clicks", "latest")
    assert filled.notices == [f'query {query.id} writes to stream "homes"']


def test_a_topic_that_was_made_is_taken_back_when_the_catalog_refuses(filled: Bench) -> None:
    before = filled.dump()

    def refuse(query: object) -> None:
        raise SqlError("53100", "the catalog cannot be written")

    filled.catalog.queries.add = refuse  # type: ignore[method-assign]
    filled.run("USE STORE k")
    error = filled.error("CREATE STREAM homes AS SELECT url FROM clicks")
    assert error.sqlstate == "53100"
    assert filled.dump() == before
    assert "reconcile" not in filled.engine.names()


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (SqlError("08006", 'store "k" does not answer'), 'store "k" does not answer'),
        (OSError(5, "I/O"), "internal error"),
    ],
    ids=["known", "unknown"],
)
def test_what_cannot_be_taken_back_is_told(filled: Bench, cause: Exception, told: str) -> None:
    def refuse(query: object) -> None:
        raise SqlError("53100", "the catalog cannot be written")

    filled.catalog.queries.add = refuse  # type: ignore[method-assign]
    filled.stores.fails["drop_entity"] = cause
    error = filled.error("CREATE STREAM homes WITH ('store' = k) AS SELECT url FROM clicks")
    assert error.message == "the catalog cannot be written"
    assert filled.notices == [f'entity "homes" in store "k" could not be taken back: {told}']


def test_from_a_file_source_the_topic_is_named(filled: Bench) -> None:
    error = filled.error("CREATE STREAM s WITH ('store' = k) AS SELECT url FROM file_clicks")
    assert error.message == (
        'entity "s" does not exist in store "k", and cannot be created without "topic.partitions" and "topic.replicas"'
    )
    filled.run(
        "CREATE STREAM s WITH ('store' = k, 'topic.partitions' = 2, 'topic.replicas' = 1) "
        "AS SELECT url FROM file_clicks"
    )
    assert "records are written at least once" not in filled.notices
    assert filled.kafka().entities["s"] == {"partitions": "2", "replicas": "1"}


def test_insert_into_adds_a_second_query(filled: Bench) -> None:
    filled.run(
        "CREATE STREAM homes WITH ('store' = k) AS SELECT url, event_time FROM clicks",
        "INSERT INTO homes SELECT url, event_time FROM clicks WHERE url = 'x'",
    )
    first, second = filled.catalog.queries.all()
    assert second.kind == "insert_into"
    assert second.sink_id == first.sink_id
    assert second.select_text == "SELECT url, event_time FROM clicks WHERE url = 'x'"


def test_narrower_types_fit_a_sink(filled: Bench) -> None:
    filled.run(
        "CREATE STREAM wide (a BIGINT, b VARCHAR, c DOUBLE, d DECIMAL(20, 4)) WITH ('store' = k, 'value.format' = json,"
        " 'topic.partitions' = 1, 'topic.replicas' = 1)",
        "INSERT INTO wide SELECT CAST(1 AS INTEGER) AS a, CAST(url AS VARCHAR(5)) AS b, CAST(1 AS FLOAT) AS c, "
        "CAST(1 AS DECIMAL(10, 2)) AS d FROM clicks",
    )
    assert len(filled.catalog.queries.all()) == 1


def test_loops_are_refused_also_through_other_queries(filled: Bench) -> None:
    filled.run(
        "CREATE STREAM a WITH ('store' = k) AS SELECT * FROM clicks",
        "CREATE STREAM b WITH ('store' = k) AS SELECT * FROM a",
    )
    for text in ("INSERT INTO clicks SELECT * FROM b", "INSERT INTO clicks SELECT * FROM clicks"):
        assert str(filled.error(text)) == (
            '0A000: the query would read what it writes: entity "clicks" in store "k" HINT: Write to another entity.'
        )


def test_list_and_describe_query_tell_the_engine_state(filled: Bench) -> None:
    filled.run(VIEW)
    (query,) = filled.catalog.queries.all()
    (row,) = filled.run("LIST QUERIES")
    assert (row["id"], row["name"], row["intended_state"], row["actual_state"]) == (
        query.id, "postgres.public.visits", "RUNNING", "STARTING",
    )  # fmt: skip
    filled.engine.known[query.id] = QueryStatus(
        query.id, QueryState.STALLED, error="08006: store \"k\" does not answer", rows_in=7, rows_in_per_s=1.5,
        position='{"0": 7}', lag_records=3, last_change_at=1_700_000_000.0,
    )  # fmt: skip
    (row,) = filled.run(f"DESCRIBE QUERY '{query.id}'")
    assert row["actual_state"] == "STALLED"
    assert row["error"] == '08006: store "k" does not answer'
    assert json.loads(row["sources"]) == ["postgres.public.clicks"]
    assert json.loads(row["sinks"]) == ["postgres.public.visits"]
    assert (row["rows_in"], row["rows_in_per_s"], row["lag_records"], row["position"]) == (7, 1.5, 3, '{"0": 7}')
    assert row["last_change_at"].isoformat() == "2023-11-14T22:13:20+00:00"


def test_what_tells_of_hidden_rows_is_not_described(filled: Bench) -> None:
    filled.run(VIEW, "CREATE ROLE anna", "GRANT SELECT ON visits TO anna")
    filled.run("CREATE POLICY p ON visits USING (n > 1)", "ALTER MATERIALIZED VIEW visits ENABLE ROW LEVEL SECURITY")
    (query,) = filled.catalog.queries.all()
    filled.engine.known[query.id] = QueryStatus(
        query.id, QueryState.FILLING, filled_share=0.5, rows_in=7, lane="batch", lane_reason="7 keys in a second"
    )
    described = f"DESCRIBE QUERY '{query.id}'"
    (own,) = filled.run(described)
    filled.context.role = "anna"
    (hers,) = filled.run(described)
    names = ("lane", "rows_in", "filled_share", "lane_reason")
    assert [own[name] for name in names] == ["batch", 7, 0.5, "7 keys in a second"]
    assert [hers[name] for name in names] == ["batch", None, None, None]


def test_terminate_and_restart(filled: Bench) -> None:
    filled.run(VIEW)
    (query,) = filled.catalog.queries.all()
    filled.engine.calls.clear()
    filled.run(f"TERMINATE QUERY '{query.id}'")
    assert filled.catalog.queries.get(query.id).desired_state == "terminated"
    assert filled.engine.names() == ["reconcile"]
    filled.run(f"TERMINATE QUERY '{query.id}'")
    assert filled.notices == [f'query "{query.id}" is already terminated']
    filled.run(f"RESTART QUERY '{query.id}' SKIP REJECTED")
    assert filled.catalog.queries.get(query.id).desired_state == "running"
    assert filled.engine.calls[-1] == ("restart", query.id, True)


def test_a_restart_with_a_snapshot_builds_a_view_anew(filled: Bench) -> None:
    filled.run(VIEW)
    (query,) = filled.catalog.queries.all()
    filled.run(f"TERMINATE QUERY '{query.id}'")
    filled.run(f"RESTART QUERY '{query.id}' WITH SNAPSHOT")
    assert filled.catalog.queries.get(query.id).desired_state == "running"
    assert filled.engine.calls[-2:] == [("restart", query.id, False), ("refresh", query.id)]
    filled.run(f"DROP MATERIALIZED VIEW {VIEW.split()[3]}")
    filled.run("CREATE STREAM copied WITH ('store' = f, 'value.format' = 'json') AS SELECT * FROM clicks")
    (query,) = filled.catalog.queries.all()
    assert filled.error(f"RESTART QUERY '{query.id}' WITH SNAPSHOT").sqlstate == "0A000"


def test_a_restart_that_fails_leaves_the_query_terminated(filled: Bench) -> None:
    filled.run(VIEW)
    (query,) = filled.catalog.queries.all()
    filled.run(f"TERMINATE QUERY '{query.id}'")
    filled.engine.fails["restart"] = SqlError("55000", "offsets are gone")
    assert filled.error(f"RESTART QUERY '{query.id}'").message == "offsets are gone"
    assert filled.catalog.queries.get(query.id).desired_state == "terminated"


def test_refresh_asks_the_engine_for_the_views_query(filled: Bench) -> None:
    filled.run(VIEW)
    (query,) = filled.catalog.queries.all()
    filled.run("REFRESH MATERIALIZED VIEW visits")
    assert filled.engine.calls[-1] == ("refresh", query.id)


def test_refresh_in_a_transaction_block_waits_for_its_commit(filled: Bench) -> None:
    filled.run(VIEW)
    (query,) = filled.catalog.queries.all()
    statement = parse_one("REFRESH MATERIALIZED VIEW visits")
    filled.router.validate(statement, filled.context)
    assert "refresh" not in filled.engine.names()
    filled.router.execute_all([statement], filled.context)
    assert filled.engine.calls[-1] == ("refresh", query.id)
    filled.engine.fails["refresh"] = SqlError("55000", "the view's query could not be set up")
    filled.router.execute_all([statement], filled.context)
    assert [notice.sqlstate for notice in filled.context.notices][-1] == "55000"


def test_describe_a_statement_executes_nothing(filled: Bench) -> None:
    before = filled.dump()
    source = {
        "fqn": "postgres.public.clicks", "type": "stream", "db_name": "postgres", "schema_name": "public",
        "name": "clicks", "store_name": "k",
    }  # fmt: skip
    (row,) = filled.run(f"DESCRIBE {VIEW}")
    assert row["type"] == "CREATE_MATERIALIZED_VIEW_AS"
    info = json.loads(row["info"])
    assert info["sink"] == {
        "fqn": "postgres.public.visits", "type": "materialized_view", "db_name": "postgres", "schema_name": "public",
        "name": "visits", "store_name": None,
    }  # fmt: skip
    assert info["sources"] == [source]
    (row,) = filled.run("DESCRIBE CREATE STREAM s WITH ('store' = k) AS SELECT url FROM clicks")
    assert row["type"] == "CREATE_STREAM_AS"
    assert json.loads(row["info"])["sink"]["store_name"] == "k"
    (row,) = filled.run(
        "DESCRIBE CREATE STREAM s (a INT) WITH ('store' = k, 'value.format' = json, 'topic.partitions' = 1, "
        "'topic.replicas' = 1)"
    )
    assert row["type"] == "CREATE_STREAM"
    assert json.loads(row["info"])["ddl"]["fqn"] == "postgres.public.s"
    assert filled.dump() == before
    assert filled.engine.calls == []


def test_explain_prints_the_plan_and_runs_nothing(filled: Bench) -> None:
    before = filled.dump()
    assert filled.run(f"EXPLAIN {VIEW}") == [
        {"QUERY PLAN": "Aggregation"}, {"QUERY PLAN": "  Scan postgres.public.clicks"},
    ]  # fmt: skip
    assert filled.run("EXPLAIN SELECT 1")[0]["QUERY PLAN"] == "Pull SELECT 1"
    assert filled.dump() == before
    assert filled.engine.calls == []


def test_a_transaction_is_carried_out_whole_or_not_at_all(filled: Bench) -> None:
    filled.run("USE STORE k")
    texts = [
        "CREATE STREAM a (x INT) WITH ('value.format' = json, 'topic.partitions' = 1, 'topic.replicas' = 1)",
        "CREATE MATERIALIZED VIEW va AS SELECT x, count(*) n FROM a GROUP BY x",
    ]
    statements = [parse_one(text) for text in texts]
    before = filled.dump()
    filled.router.validate(statements[0], filled.context)
    filled.router.validate(statements[1], filled.context, statements[:1])
    assert filled.dump() == before
    assert filled.engine.calls == []

    filled.engine.fails["resolve_position"] = SqlError("08006", 'store "k" does not answer')
    with pytest.raises(SqlError, match="08006"):
        filled.router.execute_all(statements, filled.context)
    assert filled.dump() == before

    filled.engine.fails.clear()
    generation = filled.catalog.generation
    assert [r.tag for r in filled.router.execute_all(statements, filled.context)] == [
        "CREATE STREAM", "CREATE MATERIALIZED VIEW",
    ]  # fmt: skip
    assert filled.catalog.generation == generation + 1
    assert filled.engine.names().count("reconcile") == 1


def test_a_rehearsal_finds_what_earlier_statements_take_away(filled: Bench) -> None:
    drop = parse_one("DROP STREAM clicks")
    with pytest.raises(SqlError) as raised:
        filled.router.validate(parse_one(VIEW), filled.context, [drop])
    assert (raised.value.sqlstate, raised.value.message) == ("42P01", 'relation "clicks" does not exist')
