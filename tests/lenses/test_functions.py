"""Programs of the dialect lenses that call functions of one's own: names, places of errors, privileges."""

from __future__ import annotations

import pytest

from tests.lenses.test_processors import bench as bench
from tests.lenses.test_processors import create, told
from tests.routing.fakes import Bench

SHOUT = "CREATE FUNCTION {}(word VARCHAR) RETURNS VARCHAR LANGUAGE PYTHON AS $$return word.upper() + '!'$$"
GO = "SET defaults.topic.autocreate = true; INSERT INTO t SELECT STREAM "


def test_a_program_calls_a_function_and_keeps_it(bench: Bench) -> None:
    bench.run(SHOUT.format("shout"), SHOUT.format('"Shout"'))
    create(bench, f"{GO} shout(UPPER(Shout(field2))) AS x FROM input-topic WHERE LENGTH(shout(field3)) > 3")
    (query,) = bench.catalog.queries.all()
    assert {each.name for each in bench.catalog.functions.all() if each.id in query.function_ids} == {"shout", "Shout"}
    error = bench.error("DROP FUNCTION shout")
    assert error.sqlstate == "2BP01"
    bench.run("DROP PROCESSOR p", "DROP FUNCTION shout")


@pytest.mark.parametrize(
    ("call", "sqlstate", "message"),
    [
        ("SHOUT(field2)", "42883", "line 1, column 67: function SHOUT does not exist"),
        ("shout(field1)", "42883", "line 1, column 67: function shout(integer) does not exist"),
        ("shout(field2, field3)", "42883", "line 1, column 67: function shout(text, text) does not exist"),
        ("shout(nope)", "42703", 'line 1, column 73: field "nope" does not exist'),
        ("shout(*)", "42883", "line 1, column 67: function SHOUT does not exist"),
        ("hidden(field2)", "42501", "line 1, column 67: permission denied for function hidden"),
        ("md5(field2)", "42883", "line 1, column 67: function md5 does not exist"),  # of the first dialect alone
    ],
)
def test_errors_have_their_place(bench: Bench, call: str, sqlstate: str, message: str) -> None:
    bench.run(SHOUT.format("shout"), SHOUT.format("hidden"), "REVOKE EXECUTE ON FUNCTION hidden FROM PUBLIC")
    bench.run("CREATE ROLE anna", "GRANT CREATE ON SCHEMA public TO anna")
    bench.run("GRANT USAGE, INSERT, CREATE ON STORE k TO anna")
    bench.run("GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO anna")
    bench.context.role = "anna"
    error = told(bench, f"{GO}{call} AS x FROM input-topic")
    assert (error.sqlstate, error.message) == (sqlstate, message)


def test_nested_dumps_do_not_multiply(bench: Bench) -> None:
    """Each shows the text of the one within, which is never NULL: it stands there once."""
    create(bench, f"{GO} {'DUMP(' * 20}field1{')' * 20} AS x FROM input-topic")
    (query,) = bench.catalog.queries.all()
    assert len(query.select_text) < 5_000
    assert query.select_text.count("StringValue@StringValue(") == 19
