"""Queries that join: what the catalog keeps of both sources, where they begin, and what depends on them."""

from __future__ import annotations

import json

from mvserver.routing.lookup import known_resolver
from mvserver.sql.dialect import parse_select
from tests.routing.fakes import Bench

PAID = (
    "CREATE STREAM paid (url VARCHAR, amount INTEGER) "
    "WITH ('store' = k, 'value.format' = json, 'topic.partitions' = 1, 'topic.replicas' = 1)"
)
VIEW = (
    "CREATE MATERIALIZED VIEW joined AS SELECT c.url, p.amount FROM clicks c "
    "JOIN paid WITH ('starting.position' = 'latest') p WITHIN 1 HOUR ON c.url = p.url"
)


def test_both_sources_are_kept_with_their_starts(filled: Bench) -> None:
    filled.run(PAID, VIEW)
    (query,) = filled.catalog.queries.all()
    names = [filled.catalog.relations.by_id(id_) for id_ in query.source_ids]
    assert [relation.name for relation in names if relation is not None] == ["clicks", "paid"]
    starts = json.loads(query.start_position)["sources"]
    assert len(starts) == 2
    asked = [call for call in filled.engine.calls if call[0] == "resolve_position"]
    assert [call[-1] for call in asked] == ["earliest", "latest"]


def test_neither_source_can_be_dropped_alone(filled: Bench) -> None:
    filled.run(PAID, VIEW)
    for stream in ("clicks", "paid"):
        error = filled.error(f"DROP STREAM {stream}")
        assert (error.sqlstate, error.detail) == (
            "2BP01",
            f"materialized view joined depends on stream {stream}",
        )
    filled.run("DROP STREAM paid CASCADE")
    assert filled.catalog.queries.all() == ()


def test_a_self_join_has_its_source_twice(filled: Bench) -> None:
    filled.run(
        "CREATE MATERIALIZED VIEW own AS SELECT a.url FROM clicks a JOIN clicks b WITHIN 1 HOUR ON a.url = b.url"
    )
    (query,) = filled.catalog.queries.all()
    assert len(query.source_ids) == 2
    assert len(set(query.source_ids)) == 1


def test_a_join_that_reads_what_it_writes_is_refused(filled: Bench) -> None:
    filled.run(PAID)
    error = filled.error(
        "INSERT INTO paid SELECT c.url AS url, p.amount AS amount FROM clicks c JOIN paid p WITHIN 1 HOUR "
        "ON c.url = p.url"
    )
    assert (error.sqlstate, error.hint) == ("0A000", "Write to another entity.")


def test_the_application_is_kept_with_its_queries(filled: Bench) -> None:
    filled.context.application = "shop"
    filled.run("CREATE MATERIALIZED VIEW v AS SELECT url FROM clicks")
    (query,) = filled.catalog.queries.all()
    assert dict(query.properties)["application"] == "shop"


# --- views over views -----------------------------------------------------------------------------------------------
def test_a_view_over_a_view_reads_what_that_one_reads(filled: Bench) -> None:
    filled.run("CREATE MATERIALIZED VIEW inner_ AS SELECT url FROM clicks WITH ('starting.position' = 'latest')")
    filled.engine.calls.clear()
    filled.run("CREATE MATERIALIZED VIEW outer_ AS SELECT i.url, count(*) AS n FROM inner_ i GROUP BY i.url")
    inner, outer = sorted(filled.catalog.queries.all(), key=lambda query: len(query.source_ids))
    assert outer.source_ids == (*inner.source_ids, inner.sink_id)
    assert outer.start_position == inner.start_position, "where the inner view began, not where it stands"
    assert not [call for call in filled.engine.calls if call[0] == "resolve_position"]
    error = filled.error("DROP MATERIALIZED VIEW inner_")
    assert (error.sqlstate, error.detail) == (
        "2BP01",
        "materialized view outer_ depends on materialized view inner_",
    )
    filled.run("DROP MATERIALIZED VIEW inner_ CASCADE")
    assert filled.catalog.queries.all() == ()


def test_a_known_definition_finds_its_view_again(filled: Bench) -> None:
    """Also where the view has the stream's name in another schema."""
    filled.run("CREATE SCHEMA other", "CREATE MATERIALIZED VIEW other.clicks AS SELECT url AS page FROM clicks")
    filled.run("CREATE MATERIALIZED VIEW other.pages AS SELECT page FROM other.clicks")
    query = filled.catalog.queries.all()[-1]
    plan = filled.services.compile_select(
        parse_select(query.select_text), known_resolver(query, filled.services), default_starting="earliest"
    )
    assert [output.name for output in plan.outputs] == ["page"]


def test_views_over_views_and_joins(filled: Bench) -> None:
    filled.run(PAID, VIEW)
    filled.run("CREATE MATERIALIZED VIEW totals AS SELECT url, sum(amount) AS total FROM joined GROUP BY url")
    query = filled.catalog.queries.all()[-1]
    assert len(query.source_ids) == 3
    assert len(json.loads(query.start_position)["sources"]) == 2


def test_describe_names_all_sources(filled: Bench) -> None:
    filled.run(PAID)
    (row,) = filled.run(f"DESCRIBE {VIEW}")
    assert [each["fqn"] for each in json.loads(row["info"])["sources"]] == [
        "postgres.public.clicks",
        "postgres.public.paid",
    ]
    (row,) = filled.run(
        "DESCRIBE CREATE MATERIALIZED VIEW twice AS SELECT a.url FROM clicks a JOIN clicks b WITHIN 1 HOUR "
        "ON a.url = b.url"
    )
    assert [each["fqn"] for each in json.loads(row["info"])["sources"]] == ["postgres.public.clicks"]


def test_what_views_over_views_refuse(filled: Bench) -> None:
    filled.run("CREATE MATERIALIZED VIEW by_url AS SELECT url, count(*) AS n FROM clicks GROUP BY url")
    error = filled.error("CREATE MATERIALIZED VIEW w AS SELECT n FROM by_url WITH ('starting.position' = 'latest')")
    assert (error.sqlstate, error.hint) == ("0A000", "The view says how it reads its source.")
    filled.run("CREATE MATERIALIZED VIEW many AS SELECT url, n * 2 AS twice FROM by_url WHERE n > 1")
    assert filled.catalog.relations.all()[-1].key_columns == ("url",)
    filled.run("CREATE MATERIALIZED VIEW sizes AS SELECT n, count(*) AS urls FROM by_url GROUP BY n")
    assert filled.catalog.relations.all()[-1].key_columns == ("n",)


def test_a_window_may_be_over_a_view_that_filters_a_stream(filled: Bench) -> None:
    filled.run(
        "CREATE MATERIALIZED VIEW local AS SELECT url AS page FROM clicks WHERE url LIKE './%'",
        "CREATE MATERIALIZED VIEW minutes AS SELECT window_start, window_end, page, count(*) AS n "
        "FROM TUMBLE(local, SIZE 1 MINUTE) AS t GROUP BY window_start, window_end, page EMIT FINAL",
        "CREATE MATERIALIZED VIEW hours AS SELECT window_end, page FROM TUMBLE(local, SIZE 1 HOUR)",
    )
    views = {each.name: each for each in filled.catalog.relations.all()}
    assert views["minutes"].key_columns == ("window_start", "window_end", "page")
    assert [column.name for column in views["hours"].columns] == ["window_end", "page"]
    error = filled.error("CREATE MATERIALIZED VIEW w AS SELECT page FROM TUMBLE(minutes, SIZE 1 HOUR)")
    assert error.sqlstate == "0A000"
    assert filled.error("DROP MATERIALIZED VIEW local").sqlstate == "2BP01"


def test_views_that_forget_rows_have_no_views_over_them(filled: Bench) -> None:
    filled.run("CREATE MATERIALIZED VIEW kept WITH ('retention.millis' = 60000) AS SELECT url FROM clicks")
    error = filled.error("CREATE MATERIALIZED VIEW w AS SELECT url FROM kept")
    assert (error.sqlstate, error.message) == (
        "0A000",
        'a continuous query over materialized view "kept" is not supported',
    )
