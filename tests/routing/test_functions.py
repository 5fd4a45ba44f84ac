"""Statements on functions of one's own: what is refused and why, who may call them, and what hangs on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mvserver.compiler.changelogs import result_key
from mvserver.compiler.compile import compile_select
from mvserver.compiler.own_functions import called_anywhere
from mvserver.compiler.plans import Aggregate, Groups, Projection
from mvserver.routing.functions import KnownFunctions
from mvserver.routing.lookup import known_resolver
from mvserver.sql.dialect import parse_select
from tests.routing.fakes import SETUP, Bench

TWICE = "CREATE FUNCTION twice(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$return n * 2$$"
VIEW = "CREATE MATERIALIZED VIEW v AS SELECT twice(event_time) AS t FROM clicks"


MIDDLE = "CREATE AGGREGATE middle(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON STRICT AS $$return sorted(n)[len(n) // 2]$$"


def view(items: str, rest: str = "", source: str = "clicks") -> str:
    return f"CREATE MATERIALIZED VIEW w AS SELECT {items} FROM {source} {rest}".strip()


def create(body: str = "return n", rest: str = "", *, parameters: str = "n BIGINT", name: str = "f") -> str:
    return f"CREATE FUNCTION {name}({parameters}) RETURNS BIGINT LANGUAGE PYTHON {rest} AS $${body}$$"


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Made once: each of them is tried in a process when it is made."""
    bench = Bench(tmp_path_factory.mktemp("functions"))
    bench.run(
        *SETUP, "CREATE ROLE anna", TWICE, create(name="pair"), create(name="pair", parameters="n VARCHAR"), MIDDLE,
    )  # fmt: skip
    yield bench
    bench.close()


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        (create("return n +"), "42601", "invalid syntax at line 1, column 11 of the body"),
        (create("import os"), "0A000", 'a function cannot import "os" at line 1, column 1 of the body'),
        (create(name="upper"), "42723", 'function "upper" is built in'),
        (create(name="sum"), "42723", 'function "sum" is built in'),
        (create(parameters="n BIGINT, n BIGINT"), "42P13", 'parameter name "n" used more than once'),
        (create(parameters='"a b" BIGINT'), "42P13", 'parameter "a b" cannot be a name in Python'),
        (create(parameters="lambda BIGINT"), "42P13", 'parameter "lambda" cannot be a name in Python'),
        (create(parameters="n MAP<VARCHAR, INTEGER>"), "0A000",
         "an argument of type MAP<VARCHAR, INTEGER> is not supported"),
        (create(parameters=", ".join(f"a{i} BIGINT" for i in range(101))), "54023",
         "functions cannot have more than 100 arguments"),
        (create("# " + "x" * 70_000), "54000", "the body of a function has at most 65536 bytes"),
        (create(rest="WITH ('timeout.millis' = 10001)"), "22023", 'property "timeout.millis" can be at most 10000'),
        (create(rest="WITH ('memory.mb' = 5)"), "22023", 'property "memory.mb" must be between 16 and 256'),
        (create(rest="WITH ('file' = 'x')"), "22023", 'property "file" is not known for a function'),
        (TWICE, "42723", 'function "twice" already exists with same argument types'),
        (TWICE.replace("CREATE", "CREATE OR REPLACE").replace("RETURNS BIGINT", "RETURNS INTEGER"), "42P13",
         "cannot change return type of existing function"),
        ("CREATE MATERIALIZED VIEW w AS SELECT twice(url) AS t FROM clicks", "42883",
         "function twice(text) does not exist"),
        ("CREATE MATERIALIZED VIEW w AS SELECT hidden.twice(event_time) AS t FROM clicks", "3F000",
         'schema "hidden" does not exist'),
        ("CREATE MATERIALIZED VIEW w AS SELECT public.nosuch(event_time) AS t FROM clicks", "42883",
         "function public.nosuch does not exist"),
        ("CREATE AGGREGATE f(BIGINT) (SFUNC = g, STYPE = BIGINT)", "0A000",
         "CREATE AGGREGATE with SFUNC and STYPE is not supported"),
        ("CREATE AGGREGATE f(*) (SFUNC = g, STYPE = BIGINT)", "0A000",
         "CREATE AGGREGATE with SFUNC and STYPE is not supported"),
        (create(name="f", parameters="").replace("FUNCTION", "AGGREGATE"), "42P13",
         "an aggregate has at least one argument"),
        (create(parameters="n ARRAY<BIGINT>").replace("FUNCTION", "AGGREGATE"), "0A000",
         "an argument of type ARRAY<BIGINT> is not supported"),
        (create(name="sum").replace("FUNCTION", "AGGREGATE"), "42723", 'function "sum" is built in'),
        (create(name="twice", parameters="n VARCHAR").replace("FUNCTION", "AGGREGATE"), "42809",
         '"twice" is the name of a function'),
        (create(name="middle", parameters="n VARCHAR"), "42809", '"middle" is the name of an aggregate function'),
        (create(name="middle").replace("CREATE", "CREATE OR REPLACE"), "42809", "cannot change routine kind"),
        ("DROP FUNCTION middle", "42809", "middle(BIGINT) is an aggregate function"),
        ("DROP AGGREGATE twice(BIGINT)", "42809", "twice(BIGINT) is not an aggregate"),
        ("DROP AGGREGATE nosuch(BIGINT)", "42883", "aggregate nosuch(bigint) does not exist"),
        ("DROP AGGREGATE nosuch", "42883", 'could not find an aggregate named "nosuch"'),
        (view("middle()"), "42883", "function middle() does not exist"),
        (view("middle(*)"), "42883", "function middle(*) does not exist"),
        (view("middle(url)"), "42883", "function middle(text) does not exist"),
        (view("middle(middle(event_time))"), "42803", "aggregate function calls cannot be nested"),
        (view("sum(middle(event_time))"), "42803", "aggregate function calls cannot be nested"),
        (view("url, middle(event_time)"), "42803",
         'column "clicks.url" must appear in the GROUP BY clause or be used in an aggregate function'),
        (view("event_time", "WHERE middle(event_time) > 1"), "42803", "aggregate functions are not allowed in WHERE"),
        (view("middle(event_time) WITHIN GROUP (ORDER BY url)"), "42809",
         "middle is not an ordered-set aggregate, so it cannot have WITHIN GROUP"),
        (view("twice(event_time) FILTER (WHERE true)"), "42809",
         "FILTER specified, but twice is not an aggregate function"),
        (view("public.twice(event_time) FILTER (WHERE true)"), "42809",
         "FILTER specified, but twice is not an aggregate function"),
        (view("middle(event_time)", "GROUP BY window_start, window_end, url EMIT FINAL", "TUMBLE(clicks, SIZE 1 HOUR)"),
         "0A000", "EMIT FINAL with functions over aggregates that Spark computes is not supported"),
        ("CREATE STREAM t WITH ('store' = 'main') AS SELECT url, middle(event_time) AS m FROM clicks GROUP BY url",
         "42809", "the result of GROUP BY or of an aggregate is a changelog, not a stream"),
        ("DROP FUNCTION nosuch", "42883", 'could not find a function named "nosuch"'),
        ("DROP FUNCTION twice(VARCHAR)", "42883", "function twice(text) does not exist"),
        ("DESCRIBE FUNCTION pair", "42725", 'function name "pair" is not unique'),
        ("GRANT SELECT ON FUNCTION twice TO anna", "0LP01", "invalid privilege type SELECT for function"),
    ],
)  # fmt: skip
def test_what_is_refused_changes_nothing(functions: Bench, statement: str, sqlstate: str, message: str) -> None:
    before = functions.dump()
    error = functions.error(statement)
    assert (error.sqlstate, error.message) == (sqlstate, message)
    assert functions.dump() == before


def test_the_place_of_a_syntax_error_is_in_the_statement(bench: Bench) -> None:
    text = "CREATE FUNCTION f(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$\n  x = 1\n  return x +\n$$"
    error = bench.error(text)
    assert error.position == text.index("x +") + len("x +") + 1


def test_a_function_that_is_used_is_neither_dropped_nor_replaced(bench: Bench) -> None:
    bench.run(*SETUP, TWICE, VIEW)
    (query,) = bench.catalog.queries.all()
    (function,) = bench.catalog.functions.all()
    assert query.function_ids == (function.id,)
    bench.run(TWICE.replace("CREATE", "CREATE OR REPLACE"))  # says nothing new
    error = bench.error(TWICE.replace("CREATE", "CREATE OR REPLACE").replace("n * 2", "n * 3"))
    assert (error.sqlstate, error.message) == ("2BP01", "cannot replace function twice(BIGINT) because queries call it")
    error = bench.error("DROP FUNCTION twice(n bigint)")
    assert (error.sqlstate, error.message) == (
        "2BP01", "cannot drop function twice(BIGINT) because other objects depend on it",
    )  # fmt: skip
    assert error.detail == "materialized view v depends on function twice(BIGINT)"
    bench.run("DROP FUNCTION twice CASCADE")
    assert bench.notices == ["drop cascades to materialized view v"]
    assert bench.catalog.functions.all() == bench.catalog.queries.all() == ()


def test_a_schema_goes_with_its_functions_and_what_calls_them(bench: Bench) -> None:
    bench.run(*SETUP, "CREATE SCHEMA s", TWICE.replace("twice", "s.twice"), VIEW.replace("twice", "s.twice"))
    error = bench.error("DROP SCHEMA s")
    assert error.detail is not None
    assert error.detail.splitlines() == [
        "function twice(BIGINT) depends on schema s", "materialized view v depends on function twice(BIGINT)",
    ]  # fmt: skip
    bench.run("DROP SCHEMA s CASCADE")
    assert bench.catalog.functions.all() == bench.catalog.queries.all() == ()


def test_overloads_are_chosen_by_their_arguments(bench: Bench) -> None:
    bench.run(*SETUP, TWICE, TWICE.replace("n BIGINT", "n VARCHAR").replace("RETURNS BIGINT", "RETURNS VARCHAR"))
    bench.run("CREATE MATERIALIZED VIEW v AS SELECT twice(event_time) AS a, twice(url) AS b FROM clicks")
    (view,) = [each for each in bench.catalog.relations.all() if each.name == "v"]
    assert [(column.name, column.type) for column in view.columns] == [("a", "BIGINT"), ("b", "VARCHAR")]


def test_a_query_keeps_its_functions_whatever_else_gets_their_name(bench: Bench) -> None:
    """The catalog is read by another server, and the session's search path is another one."""
    bench.run(*SETUP, "CREATE SCHEMA s", TWICE.replace("twice", "s.twice"))
    bench.context.schema, bench.context.settings["search_path"] = "s", "s, public"
    bench.run("CREATE MATERIALIZED VIEW public.v AS SELECT twice(event_time) AS t FROM clicks")
    bench.context.schema, bench.context.settings["search_path"] = "public", "public"
    bench.run(TWICE.replace("n * 2", "n * 5"))
    (query,) = bench.catalog.queries.all()
    plan = compile_select(
        parse_select(query.select_text), known_resolver(query, bench.services), default_starting="earliest",
        functions=KnownFunctions(query, bench.services),
    )  # fmt: skip
    assert [each.body for each in called_anywhere(plan)] == ["return n * 2"]


def test_another_text_is_another_plan(bench: Bench) -> None:
    bench.run(*SETUP, TWICE)
    (first,) = bench.catalog.functions.all()
    bench.run(TWICE.replace("CREATE", "CREATE OR REPLACE").replace("n * 2", "n * 3"))
    (second,) = bench.catalog.functions.all()
    assert (first.id, first.oid, first.owner) == (second.id, second.oid, second.owner)
    assert first.body != second.body


def test_privileges_are_those_of_postgresql(bench: Bench) -> None:
    bench.run(
        *SETUP, "CREATE ROLE anna", TWICE, "GRANT CREATE ON SCHEMA public TO anna", "GRANT SELECT ON clicks TO anna"
    )
    bench.context.role = "anna"
    bench.run(VIEW)  # PUBLIC may, as with every new function
    bench.context.role = "postgres"
    bench.run("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC")
    bench.context.role = "anna"
    error = bench.error(VIEW.replace(" v ", " w "))
    assert (error.sqlstate, error.message) == ("42501", "permission denied for function twice")
    (query,) = bench.catalog.queries.all()
    error = bench.error(f"RESTART QUERY {query.id}")
    assert (error.sqlstate, error.message) == ("42501", "permission denied for function twice")
    bench.context.role = "postgres"
    bench.run("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC", create(name="g"))
    assert [each.acl is None for each in bench.catalog.functions.all()] == [False, False]
    bench.run("GRANT CREATE_FUNCTION ON ORGANIZATION TO ROLE anna", "ALTER FUNCTION twice OWNER TO anna")
    assert bench.error("DROP ROLE anna").detail is not None
    bench.run("REASSIGN OWNED BY anna TO postgres", "DROP OWNED BY anna CASCADE", "DROP ROLE anna")


def test_lists_show_what_one_may_see(bench: Bench) -> None:
    bench.run(*SETUP, "CREATE ROLE anna", TWICE, VIEW)
    (row,) = bench.run("LIST FUNCTIONS")
    shown = ("schema", "name", "arguments", "returns", "language", "queries", "owner")
    assert [row[name] for name in shown] == ["public", "twice", "n BIGINT", "BIGINT", "python", 1, "postgres"]
    assert row["kind"] == "function"
    assert bench.run("LIST AGGREGATES") == []
    (row,) = bench.run("DESCRIBE FUNCTION twice(BIGINT)")
    assert (row["body"], row["timeout_millis"], row["memory_mb"]) == ("return n * 2", 10_000, 256)
    bench.run("REVOKE ALL ON FUNCTION twice FROM PUBLIC")
    bench.context.role = "anna"
    assert bench.run("LIST FUNCTIONS") == []


def test_an_aggregate_is_dropped_as_one_and_shown_as_one(bench: Bench) -> None:
    bench.run(*SETUP, MIDDLE, view("url, middle(event_time) AS m", "GROUP BY url"))
    (query,) = bench.catalog.queries.all()
    (aggregate,) = bench.catalog.functions.all()
    assert query.function_ids == (aggregate.id,)
    (row,) = bench.run("LIST AGGREGATES")
    assert (row["name"], row["kind"], row["queries"]) == ("middle", "aggregate", 1)
    (row,) = bench.run("DESCRIBE AGGREGATE middle(BIGINT)")
    assert (row["kind"], row["strict"], row["arguments"]) == ("aggregate", True, "n BIGINT")
    error = bench.error("DROP AGGREGATE middle(BIGINT)")
    assert error.message == "cannot drop aggregate middle(BIGINT) because other objects depend on it"
    error = bench.error(MIDDLE.replace("CREATE", "CREATE OR REPLACE").replace("sorted(n)", "n"))
    assert error.message == "cannot replace aggregate middle(BIGINT) because queries call it"
    bench.run("GRANT EXECUTE ON FUNCTION middle TO PUBLIC", "ALTER AGGREGATE middle(BIGINT) OWNER TO postgres")
    bench.run("DROP AGGREGATE IF EXISTS nosuch(BIGINT), middle(BIGINT) CASCADE")
    assert bench.catalog.functions.all() == ()
    assert bench.catalog.queries.all() == ()


def test_an_aggregate_is_a_select_over_the_changes_of_groups(bench: Bench) -> None:
    bench.run(
        *SETUP, MIDDLE, TWICE,
        "CREATE MATERIALIZED VIEW v AS SELECT url, twice(middle(event_time)) + count(*) AS m, "
        "middle(DISTINCT event_time) FILTER (WHERE userid <> 'x') AS d FROM clicks "
        "GROUP BY url HAVING count(*) > 1 AND url <> 'y'",
    )  # fmt: skip
    (query,) = bench.catalog.queries.all()
    plan = compile_select(
        parse_select(query.select_text), known_resolver(query, bench.services), default_starting="earliest",
        functions=KnownFunctions(query, bench.services),
    )  # fmt: skip
    assert isinstance(plan, Projection)
    assert isinstance(plan.scan.derived, Groups)
    assert plan.where is None  # HAVING without calls spares calls
    groups = plan.scan.derived.plan
    assert groups.having is not None
    assert [call.function for call in groups.aggregates] == [
        Aggregate.ARRAY_AGG, Aggregate.COUNT_ROWS, Aggregate.ARRAY_AGG,
    ]  # fmt: skip
    assert [call.distinct for call in groups.aggregates] == [False, False, True]
    assert result_key(plan) == ("url",)
    assert {each.name for each in called_anywhere(plan)} == {"middle", "twice"}
