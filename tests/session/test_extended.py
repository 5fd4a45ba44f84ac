"""The extended protocol: prepared statements, portals, implicit transactions until Sync, and no run by Describe."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.front import Field, HearsOfFailures
from mvserver.session.session import Session
from mvserver.sql.statements.queries import Pull
from tests.session.fakes import World, rows, run, values


def execute(session: Session, text: str, *parameters: Any) -> list[tuple[Any, ...]]:
    session.parse("", text, [])
    session.bind("", "", parameters)
    found = rows(session.execute(""))
    session.sync()
    return found


def test_parse_describe_bind_execute(world: World, session: Session) -> None:
    session.parse("p", "SELECT a FROM v WHERE b = $1", [23])
    description = session.describe_statement("p")
    assert description.parameter_oids == (23,)
    assert [field.name for field in description.fields or ()] == ["a"]
    session.bind("portal", "p", [7])
    assert [field.name for field in session.describe_portal("portal") or ()] == ["a"]
    assert world.pulls.snapshots == []  # nothing has run
    assert rows(session.execute("portal")) == [(7,)] * 3
    session.sync()
    with pytest.raises(SqlError) as caught:
        session.execute("portal")
    assert (caught.value.sqlstate, caught.value.message) == ("34000", 'portal "portal" does not exist')


def test_the_plan_is_kept_while_catalog_and_names_are_as_they_were(world: World, session: Session) -> None:
    session.parse("p", "SELECT a FROM v", [])
    planned = len(world.pulls.texts)
    for _ in range(3):
        session.bind("", "p", [])
        rows(session.execute(""))
        session.sync()
    assert len(world.pulls.texts) == planned
    world.pulls.generation = 2
    session.bind("", "p", [])
    rows(session.execute(""))
    assert len(world.pulls.texts) == planned + 1
    run(session, "SET search_path = other")
    session.bind("", "p", [])
    rows(session.execute(""))
    assert len(world.pulls.texts) == planned + 2


def test_names_of_prepared_statements(session: Session) -> None:
    session.parse("p", "SELECT a FROM v", [])
    with pytest.raises(SqlError) as caught:
        session.parse("p", "SELECT a FROM v", [])
    assert caught.value.sqlstate == "42P05"
    session.parse("", "SELECT a FROM v", [])
    session.parse("", "SELECT b FROM v", [])
    with pytest.raises(SqlError) as caught:
        session.bind("", "missing", [])
    assert (caught.value.sqlstate, caught.value.message) == ("26000", 'prepared statement "missing" does not exist')
    session.close_statement("p")
    session.close_statement("p")  # no error, as the protocol says
    with pytest.raises(SqlError):
        session.describe_statement("p")


def test_a_statement_prepared_by_the_protocol_is_sqls_too(session: Session) -> None:
    session.parse("p", "SELECT a FROM v", [])
    assert values(session, "EXECUTE p") == [(1,)] * 3
    run(session, "DEALLOCATE p")
    with pytest.raises(SqlError):
        session.bind("", "p", [])


def test_one_statement_only(session: Session) -> None:
    with pytest.raises(SqlError) as caught:
        session.parse("", "SELECT a FROM v; SELECT a FROM v", [])
    assert (caught.value.sqlstate, caught.value.message) == (
        "42601",
        "cannot insert multiple commands into a prepared statement",
    )
    session.sync()
    session.parse("", " ", [])
    assert session.describe_statement("").fields is None
    session.bind("", "", [])
    assert session.execute("").empty


def test_what_is_wrong_is_said_at_parse(session: Session) -> None:
    with pytest.raises(SqlError) as caught:
        session.parse("", "SELECT a FROM nothing", [])
    assert caught.value.sqlstate == "42P01"


def test_the_number_of_parameters_must_fit(session: Session) -> None:
    session.parse("", "SELECT a FROM v WHERE b = $1", [])
    with pytest.raises(SqlError) as caught:
        session.bind("", "", [])
    assert caught.value.sqlstate == "08P01"
    assert caught.value.message == 'bind message supplies 0 parameters, but prepared statement "" requires 1'


def test_parameters_are_for_selects(session: Session) -> None:
    text = "CREATE MATERIALIZED VIEW x AS SELECT a FROM v WHERE b = $1"
    with pytest.raises(SqlError) as caught:
        session.parse("", text, [])
    assert (caught.value.sqlstate, caught.value.message) == ("42P02", "there is no parameter $1")
    session.sync()
    with pytest.raises(SqlError) as caught:
        session.parse("", "CREATE SCHEMA a", [25])
    assert (caught.value.sqlstate, caught.value.message) == (
        "0A000",
        "parameters are not supported in CREATE SCHEMA",
    )


def test_a_rollback_to_a_savepoint_ends_the_portals_bound_since(session: Session) -> None:
    run(session, "BEGIN")
    session.parse("p", "SELECT a FROM v", [])
    session.bind("before", "p", [])
    run(session, "SAVEPOINT s")
    session.bind("since", "p", [])
    session.parse("back", "ROLLBACK TO SAVEPOINT s", [])
    session.bind("itself", "back", [])
    assert session.execute("itself").tag == "ROLLBACK"
    session.close_portal("itself")
    with pytest.raises(SqlError) as caught:
        session.execute("since")
    assert (caught.value.sqlstate, caught.value.message) == ("34000", 'portal "since" does not exist')
    run(session, "ROLLBACK TO SAVEPOINT s")
    assert session.describe_portal("before") is not None
    run(session, "COMMIT")


def test_portals_are_bounded_and_named_ones_unique(session: Session) -> None:
    run(session, "BEGIN")
    session.parse("p", "SELECT a FROM v", [])
    for number in range(limits.PORTALS_MAX):
        session.bind(f"c{number}", "p", [])
    with pytest.raises(SqlError) as caught:
        session.bind("more", "p", [])
    assert caught.value.sqlstate == "53400"
    run(session, "ROLLBACK; BEGIN")
    session.parse("q", "SELECT a FROM v", [])
    session.bind("c", "q", [])
    with pytest.raises(SqlError) as caught:
        session.bind("c", "q", [])
    assert (caught.value.sqlstate, caught.value.message) == ("42P03", 'cursor "c" already exists')


def test_prepared_statements_are_bounded(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PREPARED_STATEMENTS_MAX", 2)
    session.parse("a", "SELECT a FROM v", [])
    session.parse("b", "SELECT a FROM v", [])
    with pytest.raises(SqlError) as caught:
        session.parse("c", "SELECT a FROM v", [])
    assert caught.value.sqlstate == "53400"


def test_an_error_before_sync_takes_back_what_the_sequence_set(session: Session) -> None:
    session.parse("", "SET application_name = 'x'", [])
    session.bind("", "", [])
    session.execute("")
    assert session.parameter_status()["application_name"] == "x"
    with pytest.raises(SqlError):
        session.parse("", "SELECT a FROM nothing", [])
    session.sync()
    assert session.parameter_status()["application_name"] == ""
    assert execute(session, "SHOW server_encoding") == [("UTF8",)]


def test_errors_that_the_wire_finds_fail_the_transaction(session: Session) -> None:
    assert isinstance(session, HearsOfFailures)
    session.fail()
    assert session.transaction_status() == "I"
    execute(session, "BEGIN")
    session.fail()
    session.fail()
    session.sync()
    assert session.transaction_status() == "E"


def test_a_failed_block_stays_failed_over_sync(session: Session) -> None:
    execute(session, "BEGIN")
    with pytest.raises(SqlError):
        session.parse("", "SELECT a FROM nothing", [])
    session.sync()
    assert session.transaction_status() == "E"
    with pytest.raises(SqlError) as caught:
        session.parse("", "SELECT a FROM v", [])
    assert caught.value.sqlstate == "25P02"
    execute(session, "ROLLBACK")
    assert session.transaction_status() == "I"


def test_describe_of_statements_that_are_no_pulls(session: Session) -> None:
    for text, names in [
        ("SHOW timezone", ["TimeZone"]),
        ("SHOW ALL", ["name", "setting", "description"]),
        ("LIST STORES", ["name"]),
        ("CREATE SCHEMA a", None),
        ("BEGIN", None),
    ]:
        session.parse("", text, [])
        fields = session.describe_statement("").fields
        assert (None if fields is None else [field.name for field in fields]) == names
    session.sync()


def test_an_open_portal_keeps_its_cursor(world: World, session: Session) -> None:
    execute(session, "BEGIN")
    session.parse("p", "SELECT a FROM v", [])
    session.bind("first", "p", [])
    first = session.execute("first")
    next(first.batches)
    world.pulls.data.value = 2
    assert execute(session, "SELECT a FROM v")[0] == (2,)
    assert [b.to_pylist()[0]["a"] for b in first.batches] == [1, 1]
    assert len(world.pulls.snapshots) == 2


def test_a_suspended_portal_can_be_cancelled_only_while_it_is_read(session: Session) -> None:
    execute(session, "BEGIN")
    session.parse("p", "SELECT a FROM v", [])
    session.bind("first", "p", [])
    first = session.execute("first")
    next(first.batches)
    session.sync()
    session.cancel()  # nothing runs
    assert next(first.batches).num_rows == 1
    session.cancel()  # the portal is at work, as far as the session knows
    with pytest.raises(SqlError) as caught:
        next(first.batches)
    assert caught.value.sqlstate == "57014"
    assert session.transaction_status() == "E"


def test_an_open_portal_of_a_pinned_snapshot_is_read_aside(world: World, session: Session) -> None:
    execute(session, "BEGIN ISOLATION LEVEL REPEATABLE READ")
    session.parse("p", "SELECT a FROM v", [])
    session.bind("first", "p", [])
    first = session.execute("first")
    next(first.batches)
    world.pulls.data.value = 2
    assert execute(session, "SELECT a FROM v")[0] == (1,)
    assert [b.to_pylist()[0]["a"] for b in first.batches] == [1, 1]
    assert len(world.pulls.snapshots) == 1


def test_what_is_read_aside_is_bounded(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(session, "BEGIN ISOLATION LEVEL REPEATABLE READ")
    session.parse("p", "SELECT a FROM v", [])
    session.bind("first", "p", [])
    next(session.execute("first").batches)
    monkeypatch.setattr(limits, "SPOOLED_RESULT_BYTES_MAX", 1)
    with pytest.raises(SqlError) as caught:
        execute(session, "SELECT a FROM v")
    assert caught.value.sqlstate == "53400"


def test_a_portal_does_not_outlive_its_transaction(session: Session) -> None:
    execute(session, "BEGIN")
    session.parse("p", "SELECT a FROM v", [])
    session.bind("first", "p", [])
    first = session.execute("first")
    next(first.batches)
    execute(session, "COMMIT")
    with pytest.raises(SqlError) as caught:
        next(first.batches)
    assert caught.value.sqlstate == "34000"


def test_a_plan_must_keep_its_result_type(world: World, session: Session) -> None:
    session.parse("p", "SELECT * FROM v", [])
    original = world.pulls._plan
    world.pulls._plan = lambda *a: replace(original(*a), fields=(Field("renamed", 25),))  # type: ignore[method-assign]
    world.pulls.generation = 2
    session.bind("", "p", [])
    with pytest.raises(SqlError) as caught:
        session.execute("")
    assert (caught.value.sqlstate, caught.value.message) == ("0A000", "cached plan must not change result type")


def test_a_large_statement_is_kept_as_its_text(session: Session) -> None:
    session.parse("large", f"SELECT a FROM v WHERE b IN ({', '.join(f'{n} + 0' for n in range(2_000))})", [])
    session.parse("small", "SELECT a FROM v WHERE b = 1", [])
    kept = [prepared.statement for prepared in session._state.prepared.named()]
    assert [isinstance(query, Pull) and query.has_tree for query in kept] == [False, True]
