"""Views over a Kinesis stream in a real server, through splits, merges and ``kill -9``: each record counts once."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.faults.live import LiveServer, temporary_server
from tests.services.kinesis import KinesisEmulator, Stream

pytestmark = [pytest.mark.kinesis, pytest.mark.spark]
MakeStream = Callable[..., Stream]

LIFE_S = 240.0  # a bound for a machine that many share
STREAM = (
    "CREATE STREAM clicks (n BIGINT, url VARCHAR, user_id VARCHAR) "
    "WITH ('store' = 'k', 'topic' = '{topic}', 'value.format' = 'json')"
)
VIEWS = {
    "by_url": ("url",),
    "by_user": ("user_id", "url"),
}


class Clicks:
    """Seeded clicks, written all the time between ``begin`` and ``end``; what was acknowledged is the truth."""

    def __init__(self, stream: Stream, seed: int) -> None:
        self._stream = stream
        self._random = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write_all)
        self.fed = 0
        self.truth: dict[str, Counter[tuple[Any, ...]]] = {view: Counter() for view in VIEWS}

    def write(self, count: int) -> None:
        records = []
        for _ in range(count):
            self.fed += 1
            user = f"User_{self._random.randint(1, 40)}"
            row = {"n": self.fed, "url": self._random.choice(["./home", "./cart", None]), "user_id": user}
            for view, keys in VIEWS.items():
                self.truth[view][tuple(row[key] for key in keys)] += 1
            records.append((user, json.dumps(row).encode()))
        self._stream.put(records)

    def _write_all(self) -> None:
        while not self._over.wait(0.05):
            self.write(40)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        yield live.start()


def create_view(server: LiveServer, view: str) -> None:
    keys = ", ".join(VIEWS[view])
    server.run(
        f"CREATE MATERIALIZED VIEW {view} AS SELECT {keys}, count(*) AS visits, sum(n) AS total "
        f"FROM clicks GROUP BY {keys}"
    )


def rows_now(server: LiveServer, sql: str) -> list[tuple[Any, ...]]:
    """Also of a view that is still being filled."""
    with server.connect() as connection:
        connection.execute("SET mv.read_while_filling = on")
        return connection.execute(sql).fetchall()


def counted(server: LiveServer, view: str) -> int:
    ((records,),) = rows_now(server, f"SELECT coalesce(sum(visits), 0) FROM {view}")
    return int(records)


def await_progress(server: LiveServer, views: list[str]) -> None:
    """Each view reads something from now on: three ends of the server at one small batch are held against the batch."""
    for view in views:
        before = counted(server, view)
        server.wait_for(lambda view=view, before=before: counted(server, view) > before, LIFE_S, f"{view} stands still")


def shaken(
    server: LiveServer, kinesis: KinesisEmulator, stream: Stream, *, seed: int, changes: int, kills: int
) -> None:
    """Splits and merges while the server reads, while it is dead, and while it starts."""
    chance = random.Random(seed)
    clicks = Clicks(stream, seed)
    server.run(f"CREATE STORE k WITH ({kinesis.properties})", STREAM.format(topic=stream.name))
    create_view(server, "by_url")
    views = ["by_url"]
    clicks.begin()
    reshaping = Stream(kinesis.client(), stream.name)
    try:
        for number in range(changes):
            shards = len(reshaping.open_shards())
            kill = number * kills // changes != (number + 1) * kills // changes
            if kill:
                if number % 2 == 0:  # in every other life something is read; else it may end while it begins
                    await_progress(server, views)
                server.kill()
            if shards > 1 and (shards > 5 or chance.random() < 0.45):
                reshaping.merge(chance.randrange(shards - 1))
            else:
                reshaping.split(chance.randrange(shards))
            if kill:
                server.start()
            if number == changes // 2:
                create_view(server, "by_user")  # filled while the stream is read and reshaped
                views.append("by_user")
            time.sleep(chance.random() * 0.5)
    finally:
        clicks.end()
    for view, keys in VIEWS.items():
        whole = f"SELECT sum(visits) FROM {view}"
        server.wait_for(lambda whole=whole: rows_now(server, whole) == [(clicks.fed,)], LIFE_S, f"{view} lacks records")
        server.wait_equal(f"SELECT {', '.join(keys)}, visits FROM {view}", clicks.truth[view])
        total = clicks.fed * (clicks.fed + 1) // 2
        assert server.query(f"SELECT sum(total) FROM {view}") == [(total,)]
    server.run("DROP STREAM clicks CASCADE", "DROP STORE k")


@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.night)])
def test_splits_and_merges_and_as_many_kills(
    count: int, server: LiveServer, kinesis: KinesisEmulator, kinesis_stream: MakeStream
) -> None:
    shaken(server, kinesis, kinesis_stream(2), seed=count, changes=count, kills=count)


def test_what_a_store_of_the_kind_does(
    server: LiveServer, kinesis: KinesisEmulator, kinesis_stream: MakeStream
) -> None:
    stream = kinesis_stream(2)
    server.run(f"CREATE STORE w WITH ({kinesis.properties})")
    described = json.dumps(server.query("DESCRIBE STORE w"), default=str)
    assert "KINESIS" in described
    assert "test-secret" not in described
    stream.put([(f"u{n % 3}", json.dumps({"user_id": f"u{n % 3}", "n": n}).encode()) for n in range(30)])
    stream.put([("bad", b"no json")])
    server.run(
        f"CREATE STREAM s (user_id VARCHAR, n BIGINT) WITH ('store' = 'w', 'topic' = '{stream.name}', "
        "'value.format' = 'json', 'source.deserialization.error.handling' = IGNORE_AND_LOG)",
        f"CREATE CHANGELOG c (user_id VARCHAR, n BIGINT, PRIMARY KEY (user_id)) WITH ('store' = 'w', "
        f"'topic' = '{stream.name}', 'value.format' = 'json', 'source.deserialization.error.handling' = IGNORE)",
        "CREATE MATERIALIZED VIEW v AS SELECT user_id, count(*) AS n FROM s GROUP BY user_id",
        "CREATE MATERIALIZED VIEW last AS SELECT user_id, n FROM c",
        "CREATE MATERIALIZED VIEW places AS SELECT rowmetadata()->shard_id AS shard, "
        "rowmetadata()->partition_key AS k, rowmetadata()->stream AS stream, count(*) AS n FROM s "
        "GROUP BY rowmetadata()->shard_id, rowmetadata()->partition_key, rowmetadata()->stream",
    )
    server.wait_equal("SELECT user_id, n FROM v", {(f"u{n}",): 10 for n in range(3)})
    server.wait_equal("SELECT user_id, n FROM last", {("u0",): 27, ("u1",): 28, ("u2",): 29})
    rows = server.query("SELECT stream, k, n FROM places ORDER BY k")
    assert rows == [(stream.name, f"u{n}", 10) for n in range(3)]
    ((position, reason),) = server.query("SELECT position, reason FROM mv_catalog.rejected_rows")
    assert position.startswith("shardId-00000000000")
    assert "JSON" in reason
    stream.split()
    stream.put([("u1", b'{"user_id": "u1", "n": 100}')])
    server.wait_equal("SELECT user_id, n FROM last", {("u0",): 27, ("u1",): 100, ("u2",): 29})
    with server.connect() as connection:
        connection.execute("SET mv.stream_reads = 'bounded'")
        assert connection.execute("SELECT count(*) FROM (SELECT user_id FROM s) AS t").fetchall() == [(31,)]
    server.run("CREATE MATERIALIZED VIEW late AS SELECT user_id, n FROM s WITH ('starting.position' = 'latest')")
    stream.put([("u2", b'{"user_id": "u2", "n": 101}')])
    server.wait_equal("SELECT user_id, n FROM late", {("u2",): 101})
    out = Stream(kinesis.client(), f"out-{stream.name}")
    server.run(
        f"CREATE STREAM o WITH ('store' = 'w', 'topic' = '{out.name}') AS SELECT user_id, n * 2 AS twice FROM s "
        "WITH ('starting.position' = 'earliest') WHERE n < 30"
    )
    server.wait_for(lambda: len(out.values()) == 30, 60, "the records did not come")
    assert len(out.open_shards()) == 3  # as the source has
    written = [json.loads(value) for _, value in out.values()]
    assert sorted(row["twice"] for row in written) == [2 * n for n in range(30)]
    assert len({row["_mv_id"] for row in written}) == 30
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        server.run("COPY s FROM STDIN")
    server.run("DROP STREAM s CASCADE", "DROP STREAM o", "DROP CHANGELOG c CASCADE", "DROP STORE w")


def test_the_published_definitions(server: LiveServer, kinesis: KinesisEmulator, kinesis_stream: MakeStream) -> None:
    """A changelog in Kinesis enriches a stream, as in the published tutorial; typographic quotes are normalised."""
    users, pages = kinesis_stream(), kinesis_stream(2)
    now = int(time.time() * 1000)
    users.put([("User_1", json.dumps({"registertime": now - 9, "userid": "User_1", "regionid": "Region_1"}).encode())])
    server.run(
        f"CREATE STORE prod_kinesis WITH ({kinesis.properties})",
        "CREATE CHANGELOG users (registertime BIGINT, userid VARCHAR, regionid VARCHAR, PRIMARY KEY(userid)) "
        f"WITH ('store'='prod_kinesis', 'topic'='{users.name}', 'value.format'='json', 'timestamp'='registertime')",
        "CREATE STREAM pageviews (viewtime BIGINT, userid VARCHAR, pageid VARCHAR) "
        f"WITH ('store'='prod_kinesis', 'topic'='{pages.name}', 'value.format'='json', 'timestamp'='viewtime')",
        "CREATE MATERIALIZED VIEW regions AS SELECT u.regionid, p.pageid, count(*) AS n FROM pageviews "
        "WITH ('starting.position' = 'earliest', 'source.idle.timeout.millis' = 500) p JOIN users "
        "WITH ('source.idle.timeout.millis' = 500) u ON p.userid = u.userid GROUP BY u.regionid, p.pageid",
    )
    pages.put([("User_1", json.dumps({"viewtime": now, "userid": "User_1", "pageid": "Page_1"}).encode())] * 3)
    server.wait_equal("SELECT regionid, pageid, n FROM regions", {("Region_1", "Page_1"): 3})
    server.run("DROP STREAM pageviews CASCADE", "DROP CHANGELOG users CASCADE", "DROP STORE prod_kinesis")


@pytest.mark.night
def test_a_query_that_writes_is_killed_behind_its_records(kinesis: KinesisEmulator, kinesis_stream: MakeStream) -> None:
    """They are written again, and by their identities each is there once; the last of a key is the last."""
    source = kinesis_stream(2)
    out = Stream(kinesis.client(), f"out-{source.name}")
    source.put([(f"u{n % 3}", json.dumps({"user_id": f"u{n % 3}", "n": n}).encode()) for n in range(30)])
    with temporary_server() as live:
        live.start(MVSERVER_FAILPOINTS="after sink=kill:1")
        live.run(
            f"CREATE STORE k WITH ({kinesis.properties})",
            f"CREATE STREAM s (user_id VARCHAR, n BIGINT) WITH ('store' = 'k', 'topic' = '{source.name}', "
            "'value.format' = 'json')",
        )
        with live.connect() as connection:
            notices: list[str] = []
            connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
            connection.execute(
                f"CREATE STREAM o WITH ('store' = 'k', 'topic' = '{out.name}') AS SELECT user_id, n * 2 AS twice "
                "FROM s WITH ('starting.position' = 'earliest')"
            )
        assert "records are written at least once" in notices
        live.wait_killed()
        live.start()
        source.put([("u1", b'{"user_id": "u1", "n": 30}')])
        live.wait_for(lambda: len({v for _, v in out.values()}) == 31, 60, "the records did not come")
        assert len(out.open_shards()) == 2  # as the source has
        written = [json.loads(value) for _, value in out.values()]
        by_identity = {row["_mv_id"]: (row["user_id"], row["twice"]) for row in written}
        assert sorted(by_identity.values()) == sorted([(f"u{n % 3}", 2 * n) for n in range(30)] + [("u1", 60)])
        assert [row["twice"] for row in written if row["user_id"] == "u1"][-1] == 60
        live.run("INSERT INTO o SELECT user_id, n AS twice FROM s WITH ('starting.position' = 'latest') WHERE n > 100")
        source.put([("u2", b'{"user_id": "u2", "n": 101}')])
        live.wait_for(lambda: len({v for _, v in out.values()}) == 33, 60, "the records did not come")


def test_changelogs_are_read_and_written_with_their_deletions(
    server: LiveServer, kinesis: KinesisEmulator, kinesis_stream: MakeStream
) -> None:
    """A row that is gone is an object of its key that says so; through a kill each group is what its rows make."""
    source, client = kinesis_stream(2), kinesis.client()
    out, again = Stream(client, f"groups-{source.name}"), Stream(client, f"again-{source.name}")

    def put(user: str, n: int | None) -> None:
        row: dict[str, Any] = {"user_id": user, "_mv_deleted": True} if n is None else {"user_id": user, "n": n}
        source.put([(user, json.dumps(row).encode().replace(b": ", b":"))])

    for user, n in (("u0", 1), ("u1", 1), ("u2", 2), ("u3", 3)):
        put(user, n)
    server.run(
        f"CREATE STORE g WITH ({kinesis.properties})",
        "CREATE CHANGELOG users (user_id VARCHAR, n BIGINT, PRIMARY KEY (user_id)) "
        f"WITH ('store' = 'g', 'topic' = '{source.name}', 'value.format' = 'json')",
    )
    with server.connect() as connection:
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        connection.execute(
            f"CREATE CHANGELOG groups WITH ('store' = 'g', 'topic' = '{out.name}') AS "
            "SELECT n, count(*) AS users FROM users GROUP BY n"
        )
    assert notices[-1] == "records are written at least once"
    server.run(
        "CREATE MATERIALIZED VIEW seen AS SELECT n, users FROM groups",
        "CREATE MATERIALIZED VIEW total AS SELECT sum(users) AS users, count(*) AS groups FROM groups",
    )
    server.wait_equal("SELECT n, users FROM seen", {(1,): 2, (2,): 1, (3,): 1})
    put("u2", None)
    server.wait_equal("SELECT n, users FROM seen", {(1,): 2, (3,): 1})
    gone = [json.loads(value) for key, value in out.keyed_values() if key == '{"n":2}'][-1]
    assert (gone["n"], gone["_mv_deleted"], "users" in gone, "_mv_id" in gone) == (2, True, False, True)
    put("u3", 1)
    server.kill()
    put("u0", 2)
    put("u4", 4)
    put("u4", None)
    server.start()
    server.wait_equal("SELECT n, users FROM seen", {(1,): 2, (2,): 1})
    server.wait_equal("SELECT users, groups FROM total", {(3,): 2})
    server.run(
        "CREATE CHANGELOG again (n BIGINT, users BIGINT, PRIMARY KEY (n)) "
        f"WITH ('store' = 'g', 'topic' = '{again.name}', 'value.format' = 'json', 'topic.shards' = 1)",
        "INSERT INTO again SELECT n, users FROM groups WITH ('starting.position' = 'earliest')",
        "CREATE MATERIALIZED VIEW seen_again AS SELECT n, users FROM again",
    )
    server.wait_equal("SELECT n, users FROM seen_again", {(1,): 2, (2,): 1})
    for name, statement in (
        ("_mv_deleted", "SELECT n AS _mv_deleted, count(*) AS c FROM users GROUP BY n"),
        ("_mv_id", "SELECT n, count(*) AS _mv_id FROM users GROUP BY n"),
    ):
        with pytest.raises(psycopg.errors.ReservedName, match=name):
            server.run(f"CREATE CHANGELOG odd WITH ('store' = 'g', 'topic.shards' = 1) AS {statement}")
    server.run(
        "DROP CHANGELOG again CASCADE", "DROP CHANGELOG groups CASCADE", "DROP CHANGELOG users CASCADE", "DROP STORE g"
    )


@pytest.mark.night
def test_a_service_that_is_away_and_a_stream_that_goes(own_kinesis: KinesisEmulator) -> None:
    """The query stalls and goes on by itself; other statements are not held up; a stream made anew is not read."""
    stream = Stream(own_kinesis.client(), "s").create(2)
    with temporary_server() as live:
        live.start(MVSERVER_KINESIS_REQUEST_TIMEOUT="1s")
        live.run(
            f"CREATE STORE k WITH ({own_kinesis.properties})",
            "CREATE STREAM s (n BIGINT) WITH ('store' = 'k', 'topic' = 's', 'value.format' = 'json')",
            "CREATE MATERIALIZED VIEW v AS SELECT n % 2 AS odd, count(*) AS c FROM s GROUP BY n % 2",
        )
        stream.put([(str(n), b'{"n": %d}' % n) for n in range(20)])
        live.wait_equal("SELECT odd, c FROM v", {(0,): 10, (1,): 10})
        own_kinesis.pause()
        live.wait_for(lambda: live.states()["v"][0] == "STALLED", 60, "the query did not stall")
        assert "could not connect to store" in (live.states()["v"][1] or "")
        began = time.monotonic()
        with pytest.raises(psycopg.errors.ConnectionFailure):
            live.run("LIST ENTITIES IN STORE k")
        assert time.monotonic() - began < 10
        assert live.query("SELECT odd, c FROM v ORDER BY odd") == [(0, 10), (1, 10)]
        own_kinesis.resume()
        stream.put([(str(n), b'{"n": %d}' % n) for n in range(20, 40)])
        live.wait_equal("SELECT odd, c FROM v", {(0,): 20, (1,): 20})
        live.wait_for(lambda: live.states()["v"][0] == "RUNNING", 60, "the query did not go on")
        stream.client.delete_stream(StreamName="s")
        live.wait_for(lambda: live.states()["v"][0] == "FAILED", 60, "the query did not fail")
        assert 'stream "s" does not exist in store "k"' in (live.states()["v"][1] or "")
        assert live.query("SELECT odd, c FROM v ORDER BY odd") == [(0, 20), (1, 20)]
        stream.create()
        stream.put([("a", b'{"n": 1}')])
        live.run("REFRESH MATERIALIZED VIEW v")
        live.wait_equal("SELECT odd, c FROM v", {(1,): 1})
