"""Views over tables of a real PostgreSQL, by the whole server."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer, temporary_server, topic_values
from tests.services.postgres import LogicalPostgres

pytestmark = [pytest.mark.spark, pytest.mark.postgres]
WITHIN_S = 240.0  # a bound for a machine that many share
SOON_S = 40.0  # the same, for what takes a second or two and would hang for good


def store(source: LogicalPostgres) -> str:
    return (
        f"CREATE STORE pg WITH ('type' = POSTGRESQL, 'uris' = '{source.uris}', 'postgres.username' = 'postgres', "
        "'postgres.password' = 'nothing', 'tls.disabled' = true)"
    )


@pytest.fixture(scope="module")
def server(logical_postgres: LogicalPostgres) -> Iterator[LiveServer]:
    with temporary_server() as live:
        live.start()
        live.run(store(logical_postgres))
        yield live


@pytest.fixture
def source(logical_postgres: LogicalPostgres) -> Iterator[psycopg.Connection[Any]]:
    with logical_postgres.connect() as made:
        yield made


def rows_of(server: LiveServer, sql: str) -> list[tuple[Any, ...]]:
    try:
        return sorted(server.query(sql), key=str)
    except (psycopg.OperationalError, psycopg.errors.ObjectNotInPrerequisiteState) as error:  # it is being filled
        return [(str(error),)]


def wait_rows(server: LiveServer, sql: str, wanted: list[tuple[Any, ...]]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while (found := rows_of(server, sql)) != sorted(wanted, key=str):
        assert time.monotonic() < deadline, (found[:5], wanted[:5], server.states(), server.log_tail())
        time.sleep(0.1)


def slots(source: psycopg.Connection[Any]) -> int:
    row = source.execute("SELECT count(*) FROM pg_replication_slots").fetchone()
    assert row is not None
    return int(row[0])


MINE = "SELECT id, branch, balance FROM balances"
THEIRS = "SELECT id, branch, balance FROM accounts"


def begin_accounts(server: LiveServer, source: psycopg.Connection[Any]) -> None:
    source.execute("CREATE TABLE accounts (id int PRIMARY KEY, branch int, balance numeric(12, 2), at timestamptz)")
    source.execute("INSERT INTO accounts SELECT i, i % 3, i, '2024-05-17 12:00Z' FROM generate_series(1, 300) i")
    server.run(
        "CREATE CHANGELOG accounts WITH ('store' = pg)",
        "CREATE MATERIALIZED VIEW balances AS SELECT id, branch, balance, at FROM accounts",
        "CREATE STREAM events WITH ('store' = pg, 'topic' = 'accounts')",
        "CREATE MATERIALIZED VIEW ops AS SELECT op, count(*) AS n FROM events GROUP BY op",
    )
    wait_rows(server, MINE, source.execute(THEIRS).fetchall())
    wait_rows(server, "SELECT op, n FROM ops", [("r", 300)])


def end_accounts(server: LiveServer, source: psycopg.Connection[Any], *views: str) -> None:
    """The slots go with the last views over the table."""
    assert slots(source) == 2
    for view in (*views, "balances"):
        server.run(f"DROP MATERIALIZED VIEW {view}")
    assert slots(source) == 1
    server.run("DROP MATERIALIZED VIEW ops")
    assert slots(source) == 0
    assert source.execute("SELECT count(*) FROM pg_publication").fetchone() == (0,)
    server.run("DROP STREAM events", "DROP CHANGELOG accounts")
    source.execute("DROP TABLE accounts")


def test_views_over_a_table(server: LiveServer, source: psycopg.Connection[Any]) -> None:
    begin_accounts(server, source)
    source.execute("UPDATE accounts SET balance = balance + 0.5, branch = 1 WHERE id % 7 = 0")
    source.execute("UPDATE accounts SET id = id + 1000 WHERE id < 5; DELETE FROM accounts WHERE id % 10 = 0")
    with source.transaction():
        source.execute("INSERT INTO accounts VALUES (5000, 9, 1, now())")
        source.execute("DELETE FROM accounts WHERE id = 5000")
    wait_rows(server, MINE, source.execute(THEIRS).fetchall())
    wait_rows(server, "SELECT op, n FROM ops", [("r", 300), ("u", 46), ("d", 31), ("c", 1)])
    assert "nothing" not in str(server.query("DESCRIBE STORE pg"))
    end_accounts(server, source)


def test_numbers_keep_all_their_digits(server: LiveServer, source: psycopg.Connection[Any]) -> None:
    """Those that there is no DECIMAL for are texts, of the rows that were there and of changes."""
    source.execute("CREATE TABLE digits (id int PRIMARY KEY, n numeric, wide numeric(50, 10), d numeric(9, 2))")
    values = "'1.50', '1234567890123456789012345678901234567890.0123456789', 7.10"
    source.execute(f"INSERT INTO digits VALUES (1, {values})")
    server.run(
        "CREATE CHANGELOG digits WITH ('store' = pg)",
        "CREATE MATERIALIZED VIEW digits_now AS SELECT id, n, wide, d FROM digits",
    )
    theirs = "SELECT id, n::text, wide::text, d FROM digits"
    wait_rows(server, "SELECT id, n, wide, d FROM digits_now", source.execute(theirs).fetchall())
    source.execute(f"INSERT INTO digits VALUES (2, {values}), (3, '1e-30', -1, -1)")
    wait_rows(server, "SELECT id, n, wide, d FROM digits_now", source.execute(theirs).fetchall())
    server.run("DROP MATERIALIZED VIEW digits_now", "DROP CHANGELOG digits")
    source.execute("DROP TABLE digits")


EDGES = {
    "i8": ("bigint", ["-9223372036854775808", "9223372036854775807", "9007199254740993"]),
    "f4": ("real", ["0.1", "-0", "0", "1e-45", "3.4028235e38", "NaN", "-Infinity", "16777216"]),
    "f8": ("double precision", ["0.1", "-0", "5e-324", "1.7976931348623157e308", "0.30000000000000004", "NaN",
                                "Infinity"]),
    "d": ("numeric(38, 18)", ["99999999999999999999.999999999999999999", "-0.000000000000000001", "0"]),
    "v": ("text", ["", "NULL", "a\nb\r\t", "\\N", 'say "x"', "ä€𝄞👩", "\x01", " x "]),
    "x": ("bytea", ["\\x", "\\x" + bytes(range(256)).hex()]),
    "day": ("date", ["0001-01-01", "1582-10-10", "1969-12-31", "9999-12-31"]),
    "t": ("time", ["00:00", "23:59:59.999999"]),
    "ts": ("timestamp", ["0001-01-01 00:00", "1582-10-10 12:00:00.000001", "2024-03-10 02:30",
                         "9999-12-31 23:59:59.999999"]),
    "tz": ("timestamptz", ["0001-01-01 00:00Z", "1883-11-18 12:00Z", "2024-11-03 01:30:00.123456-04",
                           "1969-12-31 23:59:59.999999Z"]),
    "b": ("boolean", ["t", "f"]),
    "a": ("integer[]", ["{}", "{1,NULL}"]),
}  # fmt: skip


def texts_of(connection: psycopg.Connection[Any], sql: str) -> list[tuple[bytes | None, ...]]:
    """As the wire has them, from either server."""
    cursor = connection.execute("SET TimeZone = 'UTC'")
    found = cursor.execute(sql).pgresult
    assert found is not None
    return [tuple(found.get_value(row, at) for at in range(found.nfields)) for row in range(found.ntuples)]


def test_values_at_their_edges(server: LiveServer, source: psycopg.Connection[Any]) -> None:
    """Of rows that were there and of those that come: in a changelog, and inside the changes of a stream."""
    most = max(len(values) for _, values in EDGES.values())
    rows = [[values[at] if at < len(values) else None for _, values in EDGES.values()] for at in range(most + 1)]
    source.execute(f"CREATE TABLE edges (id int PRIMARY KEY, {', '.join(f'{n} {k}' for n, (k, _) in EDGES.items())})")
    places = ", ".join(["%s", *(f"%s::text::{kind}" for kind, _ in EDGES.values())])

    def insert(first: int) -> None:
        for number, row in enumerate(rows, first):
            source.execute(f"INSERT INTO edges VALUES ({places})", (number, *row))

    insert(0)
    after = ", ".join(f"(after).{name} AS {name}" for name in ("id", *EDGES))
    names = ", ".join(("id", *EDGES))
    server.run(
        "CREATE CHANGELOG edges WITH ('store' = pg)",
        f"CREATE MATERIALIZED VIEW edge_rows AS SELECT {names} FROM edges",
        "CREATE STREAM edge_changes WITH ('store' = pg, 'topic' = 'edges')",
        f"CREATE MATERIALIZED VIEW edge_afters AS SELECT {after} FROM edge_changes",
    )
    insert(100)
    wanted = texts_of(source, f"SELECT {names} FROM edges ORDER BY id")
    for view in ("edge_rows", "edge_afters"):
        wait_rows(server, f"SELECT count(*) FROM {view}", [(2 * len(rows),)])
        with server.connect() as connection:
            assert texts_of(connection, f"SELECT {names} FROM {view} ORDER BY id") == wanted, view
    server.run("DROP STREAM edge_changes CASCADE", "DROP CHANGELOG edges CASCADE")
    source.execute("DROP TABLE edges")


def test_a_database_that_answers_nothing_holds_up_nobody_else(
    server: LiveServer, source: psycopg.Connection[Any], own_postgres: LogicalPostgres
) -> None:
    with own_postgres.connect() as theirs:
        theirs.execute("CREATE TABLE silent (id int PRIMARY KEY); INSERT INTO silent VALUES (1)")
    source.execute("CREATE TABLE beside (id int PRIMARY KEY); INSERT INTO beside VALUES (1)")
    server.run(
        store(own_postgres).replace("CREATE STORE pg", "CREATE STORE frozen"),
        "CREATE CHANGELOG silent WITH ('store' = frozen)",
        "CREATE MATERIALIZED VIEW silent_rows AS SELECT id FROM silent",
        "CREATE CHANGELOG beside WITH ('store' = pg)",
    )
    wait_rows(server, "SELECT id FROM silent_rows", [(1,)])
    with own_postgres.frozen():
        drop = threading.Thread(target=server.run, args=("DROP MATERIALIZED VIEW silent_rows",))
        began = time.monotonic()
        drop.start()
        server.run(
            "CREATE MATERIALIZED VIEW beside_rows AS SELECT id FROM beside", "DROP MATERIALIZED VIEW beside_rows"
        )
        assert time.monotonic() - began < SOON_S
        drop.join(SOON_S)
        assert not drop.is_alive()
    server.run("DROP CHANGELOG silent", "DROP STORE frozen", "DROP CHANGELOG beside")
    source.execute("DROP TABLE beside")


@pytest.mark.night
def test_views_that_come_later_or_begin_anew(server: LiveServer, source: psycopg.Connection[Any]) -> None:
    begin_accounts(server, source)
    server.run(
        "CREATE MATERIALIZED VIEW branches AS SELECT branch, sum(balance) AS total, count(*) AS n FROM accounts "
        "GROUP BY branch",
        "CREATE MATERIALIZED VIEW late AS SELECT id, branch, balance FROM accounts WHERE id > 100",
    )
    source.execute("UPDATE accounts SET balance = -1 WHERE id = 299")
    totals = "SELECT branch, sum(balance), count(*) FROM accounts GROUP BY branch"
    wait_rows(server, "SELECT id, branch, balance FROM late", source.execute(f"{THEIRS} WHERE id > 100").fetchall())
    wait_rows(server, "SELECT branch, total, n FROM branches", source.execute(totals).fetchall())
    source.execute("TRUNCATE accounts")
    source.execute("INSERT INTO accounts VALUES (1, 1, 1)")
    wait_rows(server, "SELECT op, n FROM ops WHERE op IN ('t', 'c')", [("t", 1), ("c", 1)])
    server.wait_for(lambda: server.states()["late"][0] == "FAILED", WITHIN_S, "the view did not fail")
    assert "table public.accounts was truncated" in (server.states()["late"][1] or "")
    server.run("REFRESH MATERIALIZED VIEW late", "REFRESH MATERIALIZED VIEW balances")
    source.execute("INSERT INTO accounts VALUES (500, 5, 5)")
    wait_rows(server, "SELECT id, branch, balance FROM late", [(500, 5, 5)])
    wait_rows(server, MINE, [(1, 1, 1), (500, 5, 5)])
    # One that was not built anew does not pass the truncation, though the others have gone on behind it.
    query = server.query("SELECT id FROM mv_catalog.queries WHERE sink LIKE '%.branches'")[0][0]
    server.run(f"RESTART QUERY {query}")
    server.wait_for(lambda: server.states()["branches"][0] == "FAILED", WITHIN_S, "the view did not fail")
    assert "table public.accounts was truncated" in (server.states()["branches"][1] or "")
    # Their pipeline begins anew for the others.
    server.wait_for(lambda: server.states()["late"] == ("RUNNING", None), WITHIN_S, "the others do not go on")
    end_accounts(server, source, "branches", "late")


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("CREATE STREAM s WITH ('store' = pg, 'topic' = 'nowhere')", "42704",
         'entity "nowhere" does not exist in store "pg"'),
        ("CREATE STREAM s WITH ('store' = pg, 'topic' = 'loose')", "55000",
         'entity "public.loose" of store "pg" has no replica identity'),
        ("CREATE CHANGELOG s (a INT, PRIMARY KEY (a)) WITH ('store' = pg, 'topic' = 'keyed')", "42703",
         'entity "public.keyed" has no column "a"'),
        ("CREATE CHANGELOG s (id INT, PRIMARY KEY (id)) WITH ('store' = pg, 'topic' = 'keyed', "
         "'key.format' = primitive)", "0A000", 'key.format "primitive" is not supported in a store of type POSTGRESQL'),
        ("CREATE STREAM s (op VARCHAR) WITH ('store' = pg, 'topic' = 'keyed', 'value.format' = csv)", "0A000",
         'value.format "csv" is not supported in a store of type POSTGRESQL'),
        ("CREATE STREAM s WITH ('store' = pg, 'topic' = 'keyed') AS SELECT * FROM k", "0A000",
         "writing a query's result to a store of type POSTGRESQL is not supported"),
        ("INSERT INTO ENTITY keyed IN STORE pg VALUE ('{}')", "0A000",
         "inserting a record in a store of type POSTGRESQL is not supported"),
        ("CREATE ENTITY new IN STORE pg", "0A000", "creating an entity in a store of type POSTGRESQL is not supported"),
    ],
)  # fmt: skip
def test_what_is_refused(
    server: LiveServer, source: psycopg.Connection[Any], statement: str, sqlstate: str, message: str
) -> None:
    source.execute("CREATE TABLE IF NOT EXISTS loose (a int); CREATE TABLE IF NOT EXISTS keyed (id int PRIMARY KEY)")
    server.run("CREATE STREAM IF NOT EXISTS k WITH ('store' = pg, 'topic' = 'keyed')")
    with pytest.raises(psycopg.Error) as refused:
        server.run(statement)
    assert (refused.value.sqlstate, refused.value.diag.message_primary) == (sqlstate, message)


def transfers(source: LogicalPostgres, stop: threading.Event, seed: int) -> None:
    """Like pgbench's, with rows that come and go; goes on over the server's crashes."""
    chance = random.Random(seed)
    while not stop.is_set():
        try:
            with source.connect() as connection:
                while not stop.is_set():
                    with connection.transaction():
                        for _ in range(chance.randint(1, 5)):
                            number = chance.randint(1, 2000)
                            amount = chance.randint(-50, 50)
                            connection.execute(
                                "INSERT INTO tellers VALUES (%s, %s, %s) ON CONFLICT (tid) DO UPDATE SET "
                                "balance = tellers.balance + excluded.balance",
                                (number, number % 10, amount),
                            )
                            if chance.random() < 0.2:
                                connection.execute("DELETE FROM tellers WHERE tid = %s", (number + 1,))
                        if chance.random() < 0.1:
                            raise psycopg.Rollback
                    stop.wait(0.01)  # the views are to come to the end on a machine that has other work
        except psycopg.OperationalError:
            stop.wait(0.1)


@pytest.mark.night
@pytest.mark.parametrize("kills", [3, 30])
def test_kills_on_both_sides(logical_postgres: LogicalPostgres, kills: int) -> None:
    """Views equal the table: nothing is lost and nothing doubled, whoever ends in the middle of whatever."""
    chance, stop = random.Random(kills), threading.Event()
    with logical_postgres.connect() as source:
        source.execute("CREATE TABLE tellers (tid int PRIMARY KEY, bid int, balance bigint)")
        source.execute("INSERT INTO tellers SELECT i, i % 10, 0 FROM generate_series(1, 1000) i")
    writers = [threading.Thread(target=transfers, args=(logical_postgres, stop, seed)) for seed in range(2)]
    with temporary_server() as server:
        server.start()
        for writer in writers:
            writer.start()
        try:
            server.run(
                store(logical_postgres),
                "CREATE CHANGELOG tellers WITH ('store' = pg)",
                "CREATE MATERIALIZED VIEW whole AS SELECT tid, bid, balance FROM tellers",
            )
            for number in range(kills):
                server.run(f"CREATE MATERIALIZED VIEW v{number} AS SELECT bid, sum(balance) AS total, count(*) AS n "
                           "FROM tellers GROUP BY bid")  # fmt: skip
                time.sleep(chance.random() * 3)  # at no step of its own choosing
                if number % 3 == 1:
                    logical_postgres.stop("immediate")
                    logical_postgres.start()
                else:
                    server.kill()
                    server.start()
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        with logical_postgres.connect() as source:
            rows = source.execute("SELECT tid, bid, balance FROM tellers").fetchall()
            groups = source.execute("SELECT bid, sum(balance)::bigint, count(*) FROM tellers GROUP BY bid").fetchall()
            wait_rows(server, "SELECT tid, bid, balance FROM whole", rows)
            for number in range(kills):
                wait_rows(server, f"SELECT bid, total::bigint, n FROM v{number}", groups)
            assert slots(source) == 1
            server.run(
                *(f"DROP MATERIALIZED VIEW v{number}" for number in range(kills)), "DROP MATERIALIZED VIEW whole"
            )
            assert slots(source) == 0
            source.execute("DROP TABLE tellers")


@pytest.mark.night
@pytest.mark.kafka
def test_a_table_goes_to_a_topic_once(
    server: LiveServer, source: psycopg.Connection[Any], logical_postgres: LogicalPostgres, kafka_broker: KafkaBroker
) -> None:
    """Rows, then changes; over a kill, and where the topic's store is another kind's."""
    source.execute("CREATE TABLE visits (id int PRIMARY KEY, url text)")
    source.execute("INSERT INTO visits SELECT i, './' || i FROM generate_series(1, 1000) i")
    topic = f"out-{uuid4().hex[:8]}"
    server.run(
        f"CREATE STORE broker WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')",
        "CREATE STREAM visits WITH ('store' = pg)",
        f"CREATE STREAM copied WITH ('store' = broker, 'topic' = '{topic}', 'topic.partitions' = 2, "
        "'topic.replicas' = 1) AS SELECT op, after->id AS id, after->url AS url FROM visits "
        "WITH ('starting.position' = 'earliest')",
    )
    assert len(topic_values(kafka_broker.bootstrap, topic, 1000)) == 1000
    source.execute("INSERT INTO visits SELECT i FROM generate_series(1001, 1500) i")
    server.kill()
    source.execute("INSERT INTO visits SELECT i FROM generate_series(1501, 2000) i")
    server.start()
    source.execute("UPDATE visits SET url = 'new' WHERE id = 7")
    rows = topic_values(kafka_broker.bootstrap, topic, 2001)
    assert sorted((row["id"], row["op"]) for row in rows if row["op"] != "u") == [
        (number, "r" if number <= 1000 else "c") for number in range(1, 2001)
    ]
    assert [(row["id"], row["url"]) for row in rows if row["op"] == "u"] == [(7, "new")]
    server.run("DROP STREAM copied CASCADE")
    assert source.execute("SELECT count(*) FROM pg_publication WHERE pubname LIKE 'mvserver%%'").fetchone() == (0,)
    server.run("DROP STREAM visits")
    source.execute("DROP TABLE visits")


@pytest.mark.night
@pytest.mark.kafka
def test_a_table_goes_to_a_topic_from_the_moment_of_the_statement(
    server: LiveServer, source: psycopg.Connection[Any], kafka_broker: KafkaBroker
) -> None:
    """What is changed behind it arrives, though nothing was written yet when the server was killed."""
    source.execute("CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (1)")
    topic = f"out-{uuid4().hex[:8]}"
    server.run(
        f"CREATE STORE later WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')",
        "CREATE STREAM orders WITH ('store' = pg)",
        f"CREATE STREAM shipped WITH ('store' = later, 'topic' = '{topic}', 'topic.partitions' = 1, "
        "'topic.replicas' = 1) AS SELECT op, after->id AS id FROM orders WHERE after->id <> 2",
    )
    source.execute("INSERT INTO orders VALUES (2)")  # nothing of it passes
    source.execute("INSERT INTO orders VALUES (3)")
    server.kill()
    source.execute("INSERT INTO orders VALUES (4)")
    server.start()
    source.execute("INSERT INTO orders VALUES (5)")
    assert [row["id"] for row in topic_values(kafka_broker.bootstrap, topic, 3)] == [3, 4, 5]
    server.run("DROP STREAM shipped CASCADE", "DROP STREAM orders")
    source.execute("DROP TABLE orders")


@pytest.mark.night
def test_no_slot_is_left_behind(source: psycopg.Connection[Any], logical_postgres: LogicalPostgres) -> None:
    """By a statement that is cut off behind the catalog's commit, or by a database that does not answer."""
    source.execute("CREATE TABLE lots (id int PRIMARY KEY); INSERT INTO lots VALUES (1)")
    with temporary_server() as server:
        server.start(MVSERVER_FAILPOINTS="before forget=kill:1")
        server.run(
            store(logical_postgres),
            "CREATE CHANGELOG lots WITH ('store' = pg)",
            "CREATE MATERIALIZED VIEW kept AS SELECT id FROM lots",
        )
        wait_rows(server, "SELECT id FROM kept", [(1,)])
        assert slots(source) == 1
        with pytest.raises(psycopg.OperationalError):
            server.run("DROP MATERIALIZED VIEW kept")
        server.wait_killed()
        assert slots(source) == 1
        server.start()
        server.wait_for(lambda: slots(source) == 0, WITHIN_S, "the slot is still there")
        server.run("CREATE MATERIALIZED VIEW kept AS SELECT id FROM lots")
        wait_rows(server, "SELECT id FROM kept", [(1,)])
        logical_postgres.stop()
        server.run("DROP MATERIALIZED VIEW kept")
        logical_postgres.start()
        server.kill()
        server.start()
        with logical_postgres.connect() as again:
            server.wait_for(lambda: slots(again) == 0, WITHIN_S, "the slot is still there")
            assert again.execute("SELECT count(*) FROM pg_publication").fetchone() == (0,)
            again.execute("DROP TABLE lots")


def test_a_slot_that_statements_name(server: LiveServer, source: psycopg.Connection[Any]) -> None:
    """One relation names it, a query another one; each is one reading's, also over a kill."""
    source.execute("CREATE TABLE lanes (id int PRIMARY KEY, n int); INSERT INTO lanes VALUES (1, 1), (2, 2)")
    source.execute("SELECT pg_create_logical_replication_slot('theirs', 'pgoutput')")
    source.execute("SELECT pg_create_logical_replication_slot('decoding', 'test_decoding')")
    source.execute("UPDATE lanes SET n = 10 WHERE id = 1")
    for statement, sqlstate, message in (
        ("CREATE CHANGELOG lanes WITH ('store' = pg, 'postgresql.slot.name' = 'A-b')", "42602",
         'replication slot name "A-b" contains invalid character'),
        ("CREATE CHANGELOG lanes WITH ('store' = pg, 'postgresql.slot.name' = 'decoding')", "55000",
         'replication slot "decoding" of store "pg" cannot be read'),
    ):  # fmt: skip
        with pytest.raises(psycopg.Error) as refused:
            server.run(statement)
        assert (refused.value.sqlstate, refused.value.diag.message_primary) == (sqlstate, message)
    server.run(
        "CREATE CHANGELOG lanes WITH ('store' = pg, 'postgresql.slot.name' = 'theirs')",
        "CREATE STREAM lane_changes WITH ('store' = pg, 'topic' = 'lanes')",
        "CREATE MATERIALIZED VIEW lanes_now AS SELECT id, n FROM lanes",
        "CREATE MATERIALIZED VIEW lanes_sum AS SELECT sum(n) AS n FROM lanes",
        "CREATE MATERIALIZED VIEW lane_ops AS SELECT op, count(*) AS n FROM lane_changes "
        "WITH ('postgresql.slot.name' = 'ours') GROUP BY op",
    )
    wait_rows(server, "SELECT id, n FROM lanes_now", [(1, 10), (2, 2)])
    wait_rows(server, "SELECT op, n FROM lane_ops", [("r", 2)])
    names = "SELECT slot_name, active FROM pg_replication_slots ORDER BY 1"
    assert source.execute(names).fetchall() == [("decoding", False), ("ours", True), ("theirs", True)]
    held = "SELECT held_by, held_bytes > 0 FROM mv_catalog.pipelines WHERE entity = 'lanes'"
    wait_rows(server, held, [("ours", True), ("theirs", True)])
    for statement in (
        "CREATE MATERIALIZED VIEW other AS SELECT op FROM lane_changes WITH ('postgresql.slot.name' = 'theirs')",
        "CREATE MATERIALIZED VIEW other AS SELECT id FROM lanes WITH ('postgresql.slot.name' = 'ours')",
    ):
        with pytest.raises(psycopg.Error) as refused:
            server.run(statement)
        assert refused.value.sqlstate == "55006"
    server.kill()
    source.execute("INSERT INTO lanes VALUES (3, 3); DELETE FROM lanes WHERE id = 2")
    server.start()
    wait_rows(server, "SELECT id, n FROM lanes_now", [(1, 10), (3, 3)])
    wait_rows(server, "SELECT n FROM lanes_sum", [(13,)])
    wait_rows(server, "SELECT op, n FROM lane_ops", [("r", 2), ("c", 1), ("d", 1)])
    server.run(*(f"DROP MATERIALIZED VIEW {view}" for view in ("lanes_now", "lanes_sum", "lane_ops")))
    free = [("decoding", False), ("theirs", False)]  # which the server may say a moment later
    server.wait_for(lambda: source.execute(names).fetchall() == free, WITHIN_S, "the slots are not as they were")
    assert source.execute("SELECT count(*) FROM pg_publication").fetchone() == (0,)
    source.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
    server.run("DROP CHANGELOG lanes", "DROP STREAM lane_changes")
    source.execute("DROP TABLE lanes")
