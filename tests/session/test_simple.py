"""The simple protocol: texts of several statements, settings, transactions, what an error takes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.routing.handler_rows import ROWS
from mvserver.session.kinds import command_tag
from mvserver.session.session import Session
from mvserver.sql import parse
from mvserver.sql.statements.base import Kind
from mvserver.sql.statements.relations import DropRelation
from tests.session.fakes import World, rows, run, show, values


def notices(session: Session) -> list[tuple[str, str, str]]:
    return [(notice.severity, notice.sqlstate, notice.message) for notice in session.take_notices()]


def error(session: Session, text: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        run(session, text)
    return caught.value


# --- who may connect ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("user", "database", "sqlstate", "message"),
    [
        ("nobody", "postgres", "28000", 'role "nobody" does not exist'),
        ("postgres", "nowhere", "3D000", 'database "nowhere" does not exist'),
    ],
)
def test_role_and_database_must_exist(world: World, user: str, database: str, sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        world.open(user, database)
    assert (caught.value.sqlstate, caught.value.message, caught.value.severity) == (sqlstate, message, "FATAL")
    assert len(world.backend.registry) == 0


def test_start_up_settings(world: World) -> None:
    session = world.open("anna", application_name="psql", options="-c statement_timeout=3s", DateStyle="ISO, DMY")
    assert show(session, "statement_timeout") == "3s"
    status = session.parameter_status()
    assert (status["application_name"], status["DateStyle"]) == ("psql", "ISO, DMY")
    assert (status["is_superuser"], status["session_authorization"]) == ("off", "anna")
    with pytest.raises(SqlError) as caught:
        world.open(options="-c nonsense=1")
    assert (caught.value.sqlstate, caught.value.severity) == ("42704", "FATAL")


# --- texts ----------------------------------------------------------------------------------------------------------
def test_a_text_of_several_statements(session: Session) -> None:
    assert run(session, "SELECT a FROM v; SHOW server_encoding; SELECT b FROM w") == [
        ("SELECT ", [(1,), (1,), (1,)]),
        ("SHOW", [("UTF8",)]),
        ("SELECT ", [(1,), (1,), (1,)]),
    ]
    assert session.transaction_status() == "I"


def test_an_empty_text(session: Session) -> None:
    (result,) = session.simple_query("  ; -- nothing\n ")
    assert (result.empty, result.tag) == (True, "")


def test_the_whole_text_is_parsed_before_the_first_statement_runs(world: World, session: Session) -> None:
    assert error(session, "CREATE SCHEMA a; SELEC 1").sqlstate == "42601"
    assert world.router.done == []


def test_an_error_ends_the_text_and_takes_back_its_settings(world: World, session: Session) -> None:
    assert error(session, "SET application_name = 'x'; SELECT a FROM nothing; CREATE SCHEMA a").sqlstate == "42P01"
    assert show(session, "application_name") == ""
    assert world.router.done == []
    assert session.transaction_status() == "I"


def test_ddl_takes_effect_statement_by_statement(world: World, session: Session) -> None:
    error(session, "CREATE SCHEMA a; SELECT a FROM nothing; CREATE SCHEMA b")
    assert world.router.done == ["CREATE SCHEMA a"]


def test_parameters_need_the_extended_protocol(session: Session) -> None:
    caught = error(session, "SELECT a FROM v WHERE a = $1")
    assert (caught.sqlstate, caught.message, caught.position) == ("42P02", "there is no parameter $1", 27)


def test_an_error_while_rows_are_sent_fails_the_transaction(session: Session) -> None:
    run(session, "BEGIN")
    assert error(session, "SELECT a FROM late_error").sqlstate == "22003"
    assert session.transaction_status() == "E"


def test_a_client_that_stops_in_the_middle_of_a_text(session: Session) -> None:
    results = session.simple_query("SET application_name = 'x'; SELECT a FROM v; SELECT a FROM v")
    next(results)
    next(results).close()
    results.close()  # type: ignore[attr-defined]
    assert show(session, "application_name") == ""


def test_internal_errors_are_told_apart_from_the_users(world: World, session: Session) -> None:
    world.router.fields = None  # type: ignore[assignment]
    caught = error(session, "LIST STORES")
    assert (caught.sqlstate, caught.message) == ("XX000", "internal error")


# --- settings -------------------------------------------------------------------------------------------------------
def test_set_show_reset(session: Session) -> None:
    assert run(session, "SET TIME ZONE 'Asia/Tokyo'") == [("SET", [])]
    assert session.parameter_status()["TimeZone"] == "Asia/Tokyo"
    assert run(session, "SHOW TIME ZONE") == [("SHOW", [("Asia/Tokyo",)])]
    assert run(session, "RESET timezone") == [("RESET", [])]
    assert show(session, "timezone") == "UTC"
    assert error(session, "SHOW nonsense").sqlstate == "42704"
    assert error(session, "SET nonsense = 1").message == 'unrecognized configuration parameter "nonsense"'


def test_show_names_its_column_as_postgresql_does(session: Session) -> None:
    (result,) = [(r.fields, rows(r)) for r in session.simple_query("SHOW timezone")]
    assert result[0] is not None
    assert result[0][0].name == "TimeZone"


def test_show_all(session: Session) -> None:
    run(session, "SET application_name = 'me'")
    everything = {name: value for name, value, _ in values(session, "SHOW ALL")}
    assert everything["application_name"] == "me"
    assert everything["transaction_isolation"] == "read committed"


def test_the_time_zone_and_search_path_reach_the_plan(world: World, session: Session) -> None:
    run(session, "SET timezone = 'Asia/Tokyo'; SET search_path = sales, public; SELECT a FROM v")
    scope = world.pulls.scopes[-1]
    assert (scope.time_zone, scope.search_path, scope.role) == ("Asia/Tokyo", ("sales", "public"), "postgres")


def test_use_changes_the_search_path_and_rollback_takes_it_back(world: World, session: Session) -> None:
    run(session, "BEGIN; USE SCHEMA sales")
    assert show(session, "search_path") == "sales"
    run(session, "ROLLBACK")
    assert show(session, "search_path") == '"$user", public'
    run(session, "SELECT a FROM v")
    assert world.pulls.scopes[-1].search_path == ("public",)


def test_discard_all(session: Session) -> None:
    run(session, "SET application_name = 'x'; PREPARE p AS SELECT a FROM v; USE SCHEMA sales")
    assert run(session, "DISCARD ALL") == [("DISCARD ALL", [])]
    assert show(session, "application_name") == ""
    assert show(session, "search_path") == '"$user", public'
    assert error(session, "EXECUTE p").sqlstate == "26000"
    caught = error(session, "BEGIN; DISCARD ALL")
    assert (caught.sqlstate, caught.message) == ("25001", "DISCARD ALL cannot run inside a transaction block")


def test_set_role(world: World, session: Session) -> None:
    run(session, "SET ROLE anna")
    assert (show(session, "role"), show(session, "session_authorization")) == ("anna", "postgres")
    assert session.parameter_status()["is_superuser"] == "off"
    run(session, "RESET ALL")
    assert show(session, "role") == "anna"
    run(session, "RESET ROLE")
    assert (show(session, "role"), session.parameter_status()["is_superuser"]) == ("none", "on")
    assert error(session, "SET ROLE nobody").message == 'role "nobody" does not exist'
    anna = world.open("anna")
    refused = error(anna, "SET ROLE postgres")
    assert (refused.sqlstate, refused.message) == ("42501", 'permission denied to set role "postgres"')
    run(anna, "SET ROLE anna; SET ROLE NONE")
    assert show(anna, "role") == "none"


def test_set_role_belongs_to_the_transaction(session: Session) -> None:
    run(session, "BEGIN; SET LOCAL ROLE anna")
    assert show(session, "role") == "anna"
    run(session, "COMMIT")
    assert show(session, "role") == "none"
    run(session, "BEGIN; SET ROLE anna; ROLLBACK")
    assert (show(session, "role"), session.parameter_status()["is_superuser"]) == ("none", "on")


def test_what_waits_is_carried_out_by_the_role_that_gave_it(world: World, session: Session) -> None:
    run(session, "BEGIN; SET LOCAL ROLE anna; CREATE SCHEMA a")
    run(session, "RESET ROLE")
    assert error(session, "CREATE SCHEMA b").sqlstate == "25001"
    run(session, "ROLLBACK; BEGIN; SET ROLE anna; CREATE SCHEMA a; RESET ROLE; COMMIT")
    assert world.router.roles == ["anna"]
    assert show(session, "role") == "none"


def test_a_session_follows_its_role(world: World) -> None:
    anna = world.open("anna")
    assert anna.parameter_status()["is_superuser"] == "off"
    world.directory.roles[1] = replace(world.directory.roles[1], name="bea", superuser=True)
    world.directory.changes += 1
    assert show(anna, "session_authorization") == "bea"
    assert anna.parameter_status()["is_superuser"] == "on"
    del world.directory.roles[1]
    world.directory.changes += 1
    gone = error(anna, "SELECT 1")
    assert (gone.sqlstate, gone.severity, gone.message) == ("28000", "FATAL", 'role "bea" was concurrently dropped')
    assert error(anna, "SELECT 1") is gone


def test_a_roles_settings_are_what_its_sessions_begin_with(world: World) -> None:
    settings = (("search_path", "a, b"), ("datestyle", "nonsense"), ("mv.freshness", "latest"))
    world.directory.roles[1] = replace(world.directory.roles[1], settings=settings)
    anna = world.open("anna", options="-c mv.freshness=any")
    assert [notice.message for notice in anna.take_notices()] == [
        'setting "datestyle" of role "anna" is left out: invalid value for parameter "DateStyle": "nonsense"'
    ]
    assert show(anna, "search_path") == "a, b"
    assert show(anna, "mv.freshness") == "any"
    run(anna, "SET search_path = c; RESET search_path")
    assert show(anna, "search_path") == "a, b"


def test_connections_are_limited_by_role_and_some_are_kept_for_superusers() -> None:
    world = World(unreserved_connections=2)
    world.directory.roles[1] = replace(world.directory.roles[1], connection_limit=1)
    anna = world.open("anna")
    with pytest.raises(SqlError) as raised:
        world.open("anna")
    assert (raised.value.sqlstate, raised.value.message) == ("53300", 'too many connections for role "anna"')
    world.directory.roles[1] = replace(world.directory.roles[1], connection_limit=-1)
    second = world.open("anna")
    with pytest.raises(SqlError) as raised:
        world.open("anna")
    assert (raised.value.sqlstate, raised.value.severity) == ("53300", "FATAL")
    assert "reserved" in raised.value.message
    third = world.open("postgres")
    for session in (third, second, anna):
        session.close()
    world.open("anna").close()


# --- transactions ---------------------------------------------------------------------------------------------------
def test_begin_commit_rollback(session: Session) -> None:
    assert run(session, "BEGIN")[0][0] == "BEGIN"
    assert session.transaction_status() == "T"
    assert run(session, "COMMIT")[0][0] == "COMMIT"
    assert session.transaction_status() == "I"
    assert run(session, "START TRANSACTION")[0][0] == "START TRANSACTION"
    assert run(session, "ROLLBACK")[0][0] == "ROLLBACK"


def test_warnings_of_misplaced_transaction_commands(session: Session) -> None:
    run(session, "COMMIT")
    assert notices(session) == [("WARNING", "25P01", "there is no transaction in progress")]
    run(session, "BEGIN; BEGIN")
    assert notices(session) == [("WARNING", "25001", "there is already a transaction in progress")]
    run(session, "ROLLBACK; SET LOCAL application_name = 'x'")
    assert notices(session) == [("WARNING", "25P01", "SET LOCAL can only be used in transaction blocks")]


def test_client_min_messages(session: Session) -> None:
    run(session, "SET client_min_messages = error; COMMIT")
    assert notices(session) == []
    run(session, "SET client_min_messages = warning; COMMIT")
    assert len(notices(session)) == 1


def test_a_failed_transaction_refuses_all_but_its_end(session: Session) -> None:
    run(session, "BEGIN")
    error(session, "SELECT a FROM nothing")
    assert session.transaction_status() == "E"
    caught = error(session, "SELECT a FROM v")
    assert caught.sqlstate == "25P02"
    assert caught.message == "current transaction is aborted, commands ignored until end of transaction block"
    assert error(session, "SHOW timezone").sqlstate == "25P02"
    assert run(session, "COMMIT") == [("ROLLBACK", [])]
    assert session.transaction_status() == "I"


def test_rollback_takes_back_settings_and_commit_keeps_them(session: Session) -> None:
    run(session, "BEGIN; SET application_name = 'x'; ROLLBACK")
    assert show(session, "application_name") == ""
    run(session, "BEGIN; SET application_name = 'x'; SET LOCAL timezone = 'Asia/Tokyo'; COMMIT")
    assert show(session, "application_name") == "x"
    assert show(session, "timezone") == "UTC"


def test_savepoints(session: Session) -> None:
    run(session, "BEGIN; SET application_name = 'a'; SAVEPOINT s; SET application_name = 'b'")
    error(session, "SELECT a FROM nothing")
    assert run(session, "ROLLBACK TO SAVEPOINT s") == [("ROLLBACK", [])]
    assert session.transaction_status() == "T"
    assert show(session, "application_name") == "a"
    assert run(session, "RELEASE SAVEPOINT s") == [("RELEASE", [])]
    caught = error(session, "ROLLBACK TO SAVEPOINT s")
    assert (caught.sqlstate, caught.message) == ("3B001", 'savepoint "s" does not exist')
    run(session, "ROLLBACK")
    assert error(session, "SAVEPOINT s").message == "SAVEPOINT can only be used in transaction blocks"


def test_isolation_levels_are_shown(session: Session) -> None:
    assert values(session, "SHOW TRANSACTION ISOLATION LEVEL") == [("read committed",)]
    run(session, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    assert show(session, "transaction_isolation") == "repeatable read"
    assert show(session, "transaction_read_only") == "on"
    run(session, "COMMIT; SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    assert show(session, "default_transaction_isolation") == "serializable"
    assert show(session, "transaction_isolation") == "serializable"
    run(session, "BEGIN; SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    assert show(session, "transaction_isolation") == "read committed"
    run(session, "SELECT a FROM v")
    caught = error(session, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    assert (caught.sqlstate, caught.message) == (
        "25001",
        "SET TRANSACTION ISOLATION LEVEL must be called before any query",
    )


def test_read_committed_sees_each_commit_and_repeatable_read_one_state(world: World, session: Session) -> None:
    run(session, "BEGIN")
    assert values(session, "SELECT a FROM v")[0] == (1,)
    world.pulls.data.value = 2
    assert values(session, "SELECT a FROM v")[0] == (2,)
    run(session, "COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ")
    assert values(session, "SELECT a FROM v")[0] == (2,)
    world.pulls.data.value = 3
    assert values(session, "SELECT a FROM v")[0] == (2,)
    run(session, "COMMIT")
    assert values(session, "SELECT a FROM v")[0] == (3,)
    assert all(snapshot.pinned is None for snapshot in world.pulls.snapshots)


def test_a_broken_pin_is_not_read_again(session: Session) -> None:
    run(session, "BEGIN ISOLATION LEVEL REPEATABLE READ; SAVEPOINT s")
    error(session, "SELECT a FROM broken")
    run(session, "ROLLBACK TO s")
    assert error(session, "SELECT a FROM v").sqlstate == "40001"
    run(session, "ROLLBACK")
    assert values(session, "SELECT a FROM v")[0] == (1,)


def test_a_pinned_snapshot_has_a_bounded_age(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    run(session, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT a FROM v")
    monkeypatch.setattr(limits, "PINNED_SNAPSHOT_AGE_MAX_S", 0.0)
    assert error(session, "SELECT a FROM v").sqlstate == "72000"


def test_commit_and_chain(session: Session) -> None:
    run(session, "BEGIN ISOLATION LEVEL SERIALIZABLE; COMMIT AND CHAIN")
    assert session.transaction_status() == "T"
    assert show(session, "transaction_isolation") == "serializable"
    run(session, "ROLLBACK")
    assert error(session, "COMMIT AND CHAIN").sqlstate == "25P01"


# --- DDL in a transaction block -------------------------------------------------------------------------------------
def test_ddl_in_a_block_is_validated_at_once_and_done_at_commit(world: World, session: Session) -> None:
    assert run(session, "BEGIN; CREATE SCHEMA a; CREATE SCHEMA b")[1:] == [("CREATE SCHEMA", [])] * 2
    assert world.router.validated == [("CREATE SCHEMA a", []), ("CREATE SCHEMA b", ["CREATE SCHEMA a"])]
    assert world.router.done == []
    run(session, "COMMIT")
    assert world.router.done == ["CREATE SCHEMA a", "CREATE SCHEMA b"]


def test_rollback_forgets_ddl_and_savepoints_a_part_of_it(world: World, session: Session) -> None:
    run(session, "BEGIN; CREATE SCHEMA a; ROLLBACK")
    run(session, "BEGIN; CREATE SCHEMA b; SAVEPOINT s; CREATE SCHEMA c; ROLLBACK TO s; COMMIT")
    assert world.router.done == ["CREATE SCHEMA b"]


def test_the_tags_of_waiting_statements_are_those_of_their_handlers() -> None:
    for kind, row in ROWS.items():
        tag = getattr(row.handler, "TAG", None)
        if tag is not None and kind.kind_of_statement in (Kind.DDL, Kind.CONTINUOUS) and kind is not DropRelation:
            assert command_tag(object.__new__(kind)) == tag
    assert command_tag(parse("DROP MATERIALIZED VIEW v")[0]) == "DROP MATERIALIZED VIEW"


def test_what_waits_belongs_to_one_place(world: World, session: Session) -> None:
    run(session, "BEGIN; CREATE SCHEMA a; USE SCHEMA other")
    assert error(session, "CREATE SCHEMA b").sqlstate == "25001"
    run(session, "ROLLBACK; BEGIN; CREATE SCHEMA a; USE SCHEMA other; COMMIT")
    assert world.router.done == ["CREATE SCHEMA a"]
    assert world.router.schemas == ["public"]
    assert show(session, "search_path") == "other"


def test_ddl_that_would_fail_fails_at_once(world: World, session: Session) -> None:
    world.router.refuse = {"CreateSchema"}
    run(session, "BEGIN")
    assert error(session, "CREATE SCHEMA a").sqlstate == "42P07"
    assert session.transaction_status() == "E"


def test_a_commit_that_fails_ends_the_transaction(world: World, session: Session) -> None:
    run(session, "BEGIN; CREATE SCHEMA a; CREATE DATABASE d")
    world.router.refuse = {"CreateDatabase"}
    assert error(session, "COMMIT").sqlstate == "42P07"
    assert session.transaction_status() == "I"
    assert world.router.done == []


def test_what_a_block_creates_cannot_be_read_in_it(session: Session) -> None:
    run(session, "BEGIN; CREATE MATERIALIZED VIEW fresh AS SELECT a, count(*) FROM v GROUP BY a")
    caught = error(session, "SELECT a FROM fresh")
    assert caught.sqlstate == "25001"
    assert caught.message == 'relation "fresh" is created by this transaction and cannot be read before COMMIT'
    assert caught.hint == "Commit first, or use autocommit."


def test_read_only_transactions_refuse_ddl(session: Session) -> None:
    caught = error(session, "BEGIN READ ONLY; CREATE SCHEMA a")
    assert (caught.sqlstate, caught.message) == ("25006", "cannot execute CREATE SCHEMA in a read-only transaction")
    run(session, "ROLLBACK; SET default_transaction_read_only = on")
    assert error(session, "CREATE SCHEMA a").sqlstate == "25006"


# --- prepared statements in SQL -------------------------------------------------------------------------------------
def test_prepare_execute_deallocate(session: Session) -> None:
    assert run(session, "PREPARE p AS SELECT a FROM v; EXECUTE p") == [("PREPARE", []), ("SELECT ", [(1,)] * 3)]
    caught = error(session, "PREPARE p AS SELECT a FROM v")
    assert (caught.sqlstate, caught.message) == ("42P05", 'prepared statement "p" already exists')
    caught = error(session, "EXECUTE p(1)")
    assert caught.detail == "Expected 0 parameters but got 1."
    run(session, "DEALLOCATE p")
    assert error(session, "EXECUTE p").message == 'prepared statement "p" does not exist'
    run(session, "PREPARE q AS SELECT a FROM v; DEALLOCATE ALL")
    assert error(session, "DEALLOCATE q").sqlstate == "26000"


# --- extensions of the moment ---------------------------------------------------------------------------------------
def test_registry_knows_what_sessions_do(world: World, session: Session) -> None:
    run(session, "BEGIN; SELECT a FROM v WHERE b = 'x'")
    (row,) = world.backend.registry.activity()
    assert (row.user, row.database, row.state) == ("postgres", "postgres", "idle in transaction")
    assert row.query == "BEGIN; SELECT a FROM v WHERE b = 'x'"
    session.close()
    session.close()
    assert world.backend.registry.activity() == []
    assert all(snapshot.closed for snapshot in world.pulls.snapshots)
