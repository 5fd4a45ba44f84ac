"""BEGIN APPLICATION … END APPLICATION: one transaction, and virtual relations written into what reads them."""

from __future__ import annotations

import pytest

from mvserver.errors import SqlError
from mvserver.session.session import Session
from tests.session.fakes import World, run

VIEW = "CREATE MATERIALIZED VIEW {} AS SELECT {} FROM {}"


def tags(session: Session, text: str) -> list[str]:
    return [tag for tag, _ in run(session, text)]


def test_all_statements_take_effect_at_the_end(world: World, session: Session) -> None:
    text = (
        "BEGIN APPLICATION app CREATE STREAM s (a INT) WITH ('value.format' = 'json'); "
        f"CREATE VIRTUAL STREAM v AS SELECT a + 1 AS b FROM s; {VIEW.format('m', 'b', 'v')}; END APPLICATION;"
    )
    assert tags(session, text) == [
        "BEGIN APPLICATION",
        "CREATE STREAM",
        "CREATE VIRTUAL STREAM",
        "CREATE MATERIALIZED VIEW",
        "END APPLICATION",
    ]
    assert world.router.done == [
        "CREATE STREAM s (a INT) WITH ('value.format' = 'json')",
        'CREATE MATERIALIZED VIEW m AS WITH "v" AS (SELECT a + 1 AS b FROM s) SELECT b FROM v',
    ]
    assert session.transaction_status() == "I"


def test_statement_by_statement_as_psql_sends_them(world: World, session: Session) -> None:
    for text in (
        "BEGIN APPLICATION app CREATE VIRTUAL STREAM v AS SELECT a FROM s",
        "CREATE VIRTUAL CHANGELOG w AS SELECT a, count(*) AS n FROM v GROUP BY a",
        "INSERT INTO t SELECT a FROM v",
        "CREATE MATERIALIZED VIEW m AS WITH x AS (SELECT a FROM v) SELECT a FROM x",
        VIEW.format("n", "n", "w"),
    ):
        run(session, text)
        assert world.router.done == []
    run(session, "END APPLICATION")
    assert world.router.done == [
        'INSERT INTO t WITH "v" AS (SELECT a FROM s) SELECT a FROM v',
        'CREATE MATERIALIZED VIEW m AS WITH "v" AS (SELECT a FROM s), x AS (SELECT a FROM v) SELECT a FROM x',
        'CREATE MATERIALIZED VIEW n AS WITH "w" AS (WITH "v" AS (SELECT a FROM s) '
        "SELECT a, count(*) AS n FROM v GROUP BY a) SELECT n FROM w",
    ]


def test_a_name_of_its_own_hides_the_virtual_one(world: World, session: Session) -> None:
    run(session, "BEGIN APPLICATION app CREATE VIRTUAL STREAM v AS SELECT a FROM s")
    run(session, "CREATE MATERIALIZED VIEW m AS WITH v AS (SELECT b FROM s) SELECT b FROM v")
    with pytest.raises(SqlError) as caught:
        run(session, "END APPLICATION")
    assert (caught.value.sqlstate, caught.value.message) == ("0A000", 'virtual stream "v" is never read')
    assert session.transaction_status() == "I"
    run(session, f"BEGIN APPLICATION app {VIEW.format('m', 'a', 's')}")
    with pytest.raises(SqlError, match="properties of an application"):
        run(session, "END APPLICATION WITH ('parallelism.max' = 2)")
    assert session.transaction_status() == "I"
    assert world.router.done == []


def test_an_error_leaves_nothing(world: World, session: Session) -> None:
    run(session, "BEGIN APPLICATION app CREATE STREAM s (a INT) WITH ('value.format' = 'json')")
    with pytest.raises(SqlError):
        run(session, "CREATE VIRTUAL STREAM v (a INT)")
    with pytest.raises(SqlError, match="current transaction is aborted"):
        run(session, VIEW.format("m", "a", "s"))
    assert tags(session, "END APPLICATION") == ["ROLLBACK"]
    assert world.router.done == []


REFUSED = [
    ("", "END APPLICATION", "25P01", "there is no application in progress", None),
    ("", "CREATE VIRTUAL STREAM v AS SELECT a FROM s", "25P01",
     "a virtual stream can only be created in an application",
     "Put it between BEGIN APPLICATION name and END APPLICATION."),
    ("BEGIN", "BEGIN APPLICATION app", "25001", "an application cannot begin inside a transaction block",
     "Commit first."),
    ("BEGIN APPLICATION app", "COMMIT", "25001", "an application ends with END APPLICATION",
     "ROLLBACK leaves it without effect."),
    ("BEGIN APPLICATION app", "DROP STREAM s", "0A000",
     "an application has only statements that create relations and queries",
     "Run the others before BEGIN APPLICATION or after END APPLICATION."),
    ("BEGIN APPLICATION app", "COPY s FROM STDIN", "0A000",
     "an application has only statements that create relations and queries",
     "Run the others before BEGIN APPLICATION or after END APPLICATION."),
    ("BEGIN APPLICATION app CREATE VIRTUAL STREAM v AS SELECT a FROM s", "CREATE VIRTUAL STREAM v AS SELECT a FROM s",
     "42P07", 'virtual relation "v" already exists', None),
    ("BEGIN APPLICATION app", "END APPLICATION WITH ('parallelism.max' = 2)", "0A000",
     "properties of an application are not supported", "Give each statement its own, in its WITH or QUERY WITH."),
    ("", "CREATE VIRTUAL STREAM a.v AS SELECT a FROM s", "42601", 'syntax error at or near "a"',
     "A virtual relation belongs to its application and has no schema."),
    ("", "CREATE VIRTUAL STREAM v WITH ('topic' = 't') AS SELECT a FROM s", "42601", 'syntax error at or near "WITH"',
     "A virtual relation has no topic: CREATE VIRTUAL STREAM name AS SELECT ..."),
]  # fmt: skip


@pytest.mark.parametrize(("before", "text", "state", "message", "hint"), REFUSED, ids=[each[1] for each in REFUSED])
def test_what_is_refused(session: Session, before: str, text: str, state: str, message: str, hint: str | None) -> None:
    if before:
        run(session, before)
    with pytest.raises(SqlError) as caught:
        run(session, text)
    assert (caught.value.sqlstate, caught.value.message, caught.value.hint) == (state, message, hint)


def test_a_savepoint_takes_back_virtual_relations(world: World, session: Session) -> None:
    run(session, "BEGIN APPLICATION app CREATE VIRTUAL STREAM kept AS SELECT a FROM s")
    run(session, "SAVEPOINT one; CREATE VIRTUAL STREAM v AS SELECT a FROM kept; ROLLBACK TO one")
    run(session, "CREATE MATERIALIZED VIEW m AS SELECT a FROM v")  # not the virtual one
    run(session, "CREATE VIRTUAL STREAM v AS SELECT a + 1 AS a FROM s")
    run(session, "CREATE MATERIALIZED VIEW n AS SELECT a FROM v")
    with pytest.raises(SqlError, match='virtual stream "kept" is never read'):
        run(session, "END APPLICATION")
    run(session, "BEGIN APPLICATION app CREATE VIRTUAL STREAM v AS SELECT a FROM s")
    run(session, "SAVEPOINT one")
    with pytest.raises(SqlError, match='virtual relation "v" already exists'):
        run(session, "CREATE VIRTUAL STREAM v AS SELECT b FROM s")
    run(session, "ROLLBACK TO one; CREATE MATERIALIZED VIEW n AS SELECT a FROM v; END APPLICATION")
    assert world.router.done == ['CREATE MATERIALIZED VIEW n AS WITH "v" AS (SELECT a FROM s) SELECT a FROM v']


def test_rollback_forgets_it(world: World, session: Session) -> None:
    run(session, f"BEGIN APPLICATION app {VIEW.format('m', 'a', 's')}")
    run(session, "ROLLBACK")
    run(session, "BEGIN APPLICATION app")
    run(session, "END APPLICATION")
    assert world.router.done == []
