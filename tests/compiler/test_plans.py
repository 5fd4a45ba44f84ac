"""compile_select: what becomes of a SELECT, name by name and type by type."""

from __future__ import annotations

import pytest

from mvserver.compiler.changelogs import result_key
from mvserver.compiler.explain import explain
from mvserver.compiler.expressions import AggregateReference, KeyReference
from mvserver.compiler.plans import Aggregate, Aggregation, ErrorHandling, Projection
from tests.compiler.harness import compiled


def columns(sql: str) -> list[tuple[str, str]]:
    return [(column.name, str(column.type)) for column in compiled(sql).outputs]


def test_the_tutorials_views() -> None:
    plan = compiled("SELECT url, count(*) AS url_visit_count FROM clicks GROUP BY url")
    assert isinstance(plan, Aggregation)
    assert [str(key.type) for key in plan.keys] == ["VARCHAR"]
    assert [call.function for call in plan.aggregates] == [Aggregate.COUNT_ROWS]
    assert [type(output.expression) for output in plan.outputs] == [KeyReference, AggregateReference]
    assert [(each.name, str(each.type)) for each in plan.outputs] == [("url", "VARCHAR"), ("url_visit_count", "BIGINT")]
    assert result_key(plan) == ("url",)
    plan = compiled("SELECT userid, url, device_id, count(*) AS visits FROM clicks GROUP BY userid, url, device_id")
    assert result_key(plan) == ("userid", "url", "device_id")


def test_a_projection_and_its_scan() -> None:
    plan = compiled(
        "SELECT *, upper(url) AS u FROM clicks c WITH ('starting.position' = LATEST, 'timestamp' = 'event_time', "
        "'source.deserialization.error.handling' = 'terminate') WHERE c.userid LIKE 'User%'"
    )
    assert isinstance(plan, Projection)
    assert [output.name for output in plan.outputs] == ["event_time", "device_id", "url", "ip", "userid", "u"]
    assert plan.scan.starting_position == "latest"
    assert plan.scan.error_handling is ErrorHandling.TERMINATE
    assert plan.scan.timestamp == "event_time"
    assert result_key(plan) == ()
    assert compiled("SELECT url FROM clicks", "latest").scan.starting_position == "latest"


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("count(*)", "BIGINT"), ("count(s)", "BIGINT"), ("sum(i1)", "BIGINT"), ("sum(i2)", "BIGINT"), ("sum(i4)",
        "BIGINT"),
        ("sum(i8)", "DECIMAL(38, 0)"), ("sum(n)", "DECIMAL(38, 2)"), ("sum(f4)", "FLOAT"), ("sum(f8)", "DOUBLE"),
        ("avg(i4)", "DECIMAL(38, 6)"), ("avg(i8)", "DECIMAL(38, 6)"), ("avg(n)", "DECIMAL(38, 6)"),
        ("avg(CAST(n AS decimal(12, 5)))", "DECIMAL(38, 9)"), ("avg(f4)", "DOUBLE"), ("stddev(i4)", "DOUBLE"),
        ("var_pop(n)", "DOUBLE"), ("min(d)", "DATE"), ("max(s5)", "VARCHAR"), ("max(tz)", "TIMESTAMP_LTZ"),
        ("sum(i4) * 1.0 / count(*)", "DECIMAL(38, 16)"), ("round(sum(i4) * 1.0 / count(*), 2)", "DECIMAL(25, 2)"),
        ("sum(i4) / count(*)", "BIGINT"), ("sum(f8) / count(*)", "DOUBLE"),
        ("bool_and(b)", "BOOLEAN"), ("every(i4 > 1)", "BOOLEAN"), ("bool_or('true')", "BOOLEAN"),
        ("count(DISTINCT s)", "BIGINT"), ("sum(DISTINCT i4)", "BIGINT"), ("avg(DISTINCT n)", "DECIMAL(38, 6)"),
        ("stddev(DISTINCT i8)", "DOUBLE"), ("min(DISTINCT d)", "DATE"), ("first_value(s5)", "VARCHAR"),
        ("last_value(n)", "DECIMAL(10, 2)"), ("last_value(bin)", "VARBINARY"), ("first_value('x')", "VARCHAR"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY i4)", "DOUBLE"),
        ("percentile_cont('0.5') WITHIN GROUP (ORDER BY n)", "DOUBLE"),
        ("percentile_disc(1) WITHIN GROUP (ORDER BY tm)", "TIME"), ("mode() WITHIN GROUP (ORDER BY s5)", "VARCHAR"),
        ("string_agg(s5, ',')", "VARCHAR"), ("listagg(DISTINCT s)", "VARCHAR"),
        ("mode() WITHIN GROUP (ORDER BY b DESC NULLS LAST) FILTER (WHERE i4 > 0)", "BOOLEAN"),
    ],
)  # fmt: skip
def test_types_of_aggregates(expression: str, type_: str) -> None:
    assert columns(f"SELECT {expression} AS x FROM everything")[0][1] == type_


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("i1 + i1", "TINYINT"), ("i2 + 1", "INTEGER"), ("i4 + i8", "BIGINT"), ("i4 + n", "DECIMAL(13, 2)"), ("n * n",
        "DECIMAL(21, 4)"),
        ("n / n", "DECIMAL(23, 13)"), ("n + f4", "DOUBLE"), ("f4 + f4", "FLOAT"), ("f4 + i4", "DOUBLE"), ("5",
        "INTEGER"),
        ("5000000000", "BIGINT"), ("1.50", "DECIMAL(3, 2)"), ("'x'", "VARCHAR"), ("NULL", "VARCHAR"), ("i4 + '5'",
        "INTEGER"),
        ("coalesce(i4, n)", "DECIMAL(12, 2)"), ("CASE WHEN b THEN i4 ELSE 1.5 END", "DECIMAL(11, 1)"), ("d + 1",
        "DATE"),
        ("d - d", "INTEGER"), ("ts + INTERVAL '1 day'", "TIMESTAMP"), ("date_trunc('day', d)", "TIMESTAMP_LTZ"),
        ("extract(epoch from ts)", "DECIMAL(20, 6)"), ("arr[1]", "INTEGER"), ("m['k']", "INTEGER"), ("st->inner->x",
        "VARCHAR"),
        ("everything.st", "STRUCT<\"a\" INTEGER, \"inner\" STRUCT<\"x\" VARCHAR>>"), ("\"Mixed\"", "INTEGER"),
        ("sqrt(i4)", "DOUBLE"),
        ("round(i4)", "DOUBLE"), ("CAST(n AS text)", "VARCHAR"), ("s5", "VARCHAR(5)"), ("s5 || s5", "VARCHAR"),
        ("greatest(i2, i8)", "BIGINT"), ("b IN (true, NULL)", "BOOLEAN"), ("ARRAY[i2, i8]", "ARRAY<BIGINT>"),
    ],
)  # fmt: skip
def test_types_of_expressions(expression: str, type_: str) -> None:
    assert columns(f"SELECT {expression} AS x FROM everything")[0][1] == type_


def test_equal_aggregates_are_kept_once_and_outputs_are_built_from_them() -> None:
    plan = compiled(
        "SELECT s, sum(i4) a, sum(i4) + count(*) b, count(*) FILTER (WHERE i4 > 0) c FROM everything GROUP BY s "
        "HAVING count(*) > 1 AND sum(i4) > 0"
    )
    assert isinstance(plan, Aggregation)
    assert [call.function for call in plan.aggregates] == [Aggregate.SUM, Aggregate.COUNT_ROWS, Aggregate.COUNT_ROWS]
    assert [call.filter is not None for call in plan.aggregates] == [False, False, True]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT upper(s) AS u, count(*) FROM everything GROUP BY upper(s)",
        "SELECT upper(s) AS u, count(*) FROM everything GROUP BY u",
        "SELECT upper(s) AS u, count(*) FROM everything GROUP BY 1",
    ],
)
def test_group_by_expression_alias_and_ordinal(sql: str) -> None:
    plan = compiled(sql)
    assert isinstance(plan, Aggregation)
    assert len(plan.keys) == 1
    assert result_key(plan) == ("u",)


def test_a_source_column_goes_before_an_output_name_in_group_by() -> None:
    with pytest.raises(Exception, match=r'column "everything\.i4" must appear in the GROUP BY clause'):
        compiled("SELECT i4 AS s, count(*) FROM everything GROUP BY s")


def test_what_duckdb_cannot_finish_over_keys_becomes_a_key() -> None:
    plan = compiled("SELECT lower(s) AS l, s || '!' AS e, count(*) FROM everything GROUP BY s")
    assert isinstance(plan, Aggregation)
    assert len(plan.keys) == 3
    assert [output.expression for output in plan.outputs[:2]] == [
        KeyReference(plan.keys[1].type, 1),
        KeyReference(plan.keys[2].type, 2),
    ]


def test_floating_point_keys_are_normalized_and_hidden_keys_have_no_output() -> None:
    plan = compiled("SELECT count(*) FROM everything GROUP BY f8, s")
    assert isinstance(plan, Aggregation)
    assert [getattr(key, "function", "") for key in plan.keys] == ["normalized key(double precision)", ""]
    assert result_key(plan) == ()


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("i4 + 1", "?column?"), ("count(*)", "count"), ("i4::bigint", "i4"), ("CASE WHEN b THEN 1 END", "case"),
        ("st->a", "a"),
        ("coalesce(i4, 1)", "coalesce"), ("arr[1]", "arr"), ("true", "bool"), ("5::text", "text"), ("trim(s)", "btrim"),
        ("extract(year from ts)", "extract"), ("DATE '2024-01-01'", "date"),
        ("mode() WITHIN GROUP (ORDER BY s)", "mode"), ("first_value(s)", "first_value"),
    ],
)  # fmt: skip
def test_default_names_are_postgresqls(expression: str, name: str) -> None:
    sql = f"SELECT {expression} FROM everything" + (" GROUP BY s" if "count" in expression else "")
    assert columns(sql)[0][0] in (name, {"text": "varchar"}.get(name, name))


def test_explain_prints_the_plan() -> None:
    plan = compiled("SELECT url, count(*) AS n FROM clicks WHERE ip <> '' GROUP BY url HAVING count(*) > 1")
    assert explain(plan) == [
        "Aggregation (upsert by key)",
        "  Output, finished by DuckDB:",
        "    url VARCHAR = key0",
        "    n BIGINT = agg0",
        "  Having, by DuckDB:",
        "    (agg0 > 1)",
        "  Keys, by Spark:",
        "    key0: `url` VARCHAR",
        "  Aggregates:",
        "    agg0: count(*) BIGINT",
        "  Filter, by Spark:",
        "    (`ip` <> '')",
        "  Scan of clickstream_db.public.clicks (json)",
        "    Starting position: earliest",
        "    Event time: column event_time (sql)",
        "    Undecodable records: IGNORE_AND_LOG",
        "    Columns: event_time BIGINT, device_id VARCHAR, url VARCHAR, ip VARCHAR, userid VARCHAR",
    ]


def test_explain_prints_distinct_and_ordered_aggregates() -> None:
    plan = compiled(
        "SELECT count(DISTINCT url) AS u, percentile_disc(0.9) WITHIN GROUP (ORDER BY event_time DESC) AS p, "
        "mode() WITHIN GROUP (ORDER BY url) FILTER (WHERE ip <> '') AS m, last_value(url) AS l, every(ip = '') AS e, "
        "listagg(DISTINCT url) AS j "
        "FROM clicks"
    )
    lines = explain(plan)
    at = lines.index("  Aggregates:")
    assert [line.strip() for line in lines[at + 1 : at + 7]] == [
        "agg0: count(DISTINCT `url`) BIGINT",
        "agg1: percentile_disc(0.9) WITHIN GROUP (ORDER BY `event_time` DESC) BIGINT",
        "agg2: mode() WITHIN GROUP (ORDER BY `url`) FILTER (WHERE (`ip` <> '')) VARCHAR",
        "agg3: last_value(`url`) VARCHAR",
        "agg4: bool_and((`ip` = '')) BOOLEAN",
        "agg5: string_agg(DISTINCT `url`, ',') VARCHAR",
    ]


def test_text_constants_keep_what_they_say() -> None:
    plan = compiled(
        "SELECT n = '1.555' AS a, s5 = 'longer than five' AS b, n + '0.0001' AS c, coalesce(n, '7.12345') AS e "
        "FROM everything"
    )
    text = "\n".join(explain(plan))
    assert "1.555" in text
    assert "longer than five" in text
    assert [str(output.type) for output in plan.outputs] == ["BOOLEAN", "BOOLEAN", "DECIMAL(13, 4)", "DECIMAL(13, 5)"]
