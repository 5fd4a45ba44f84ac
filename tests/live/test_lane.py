"""The live lane of a running server on a real broker: what it shows equals what the records say, whatever comes."""

from __future__ import annotations

import json
import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import STREAM, VIEWS, Clicks, LiveServer, check_views, create_views, topic_values
from tests.live.lane import WITHIN_S, generation, lane, wait_live, was_left

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
MakeTopic = Callable[..., str]


class Topic:
    """A topic with a stream of its own over it."""

    def __init__(self, server: LiveServer, broker: KafkaBroker, name: str, **producer: Any) -> None:
        self.name = name
        self.stream = f"s_{uuid.uuid4().hex[:8]}"
        self.producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 2, **producer})
        self._server = server
        server.run(
            f"CREATE STREAM {self.stream} (k VARCHAR, i BIGINT, t TIMESTAMP) WITH ('store' = 's', 'topic' = '{name}', "
            "'value.format' = 'json', 'timestamp' = 't')"
        )

    def view(self, name: str, select: str) -> None:
        self._server.run(f"CREATE MATERIALIZED VIEW {name} AS {select.format(s=self.stream)}")

    def send(self, *rows: Any, partition: int = -1) -> None:
        for row in rows:
            value = row if isinstance(row, bytes) else json.dumps(row).encode()
            self.producer.produce(self.name, value=value, partition=partition)
            self.producer.poll(0)
        assert self.producer.flush(60) == 0


@pytest.fixture(scope="module")
def server(live_server: LiveServer, kafka_broker: KafkaBroker) -> LiveServer:
    live_server.run(f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')")
    return live_server


@pytest.fixture
def topic(server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> Iterator[Topic]:
    made = Topic(server, kafka_broker, kafka_topic(2))
    yield made
    server.run(f"DROP STREAM {made.stream} CASCADE")


def at(second: float) -> str:
    return f"2026-01-01 00:{int(second) // 60:02}:{second % 60:06.3f}"


def clock(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def test_views_of_clicks_are_exact_and_every_lane_change_too(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: MakeTopic, seed: int
) -> None:
    """Live, then a backlog, then live again; a view is added and dropped meanwhile."""
    name = kafka_topic(3)
    clicks = Clicks(seed, kafka_broker.bootstrap, name)
    server.run(STREAM.format(topic=name))
    create_views(server)
    clicks.produce(200)
    number = wait_live(server, name)
    for _ in range(10):
        clicks.produce(50)
    check_views(server, clicks)
    assert was_left(server, name, number) == []
    clicks.produce(60_000)
    check_views(server, clicks)
    clicks.produce(100)
    wait_live(server, name)
    server.run("CREATE MATERIALIZED VIEW late AS SELECT url, count(*) AS visits FROM clicks GROUP BY url")
    clicks.produce(500)
    server.wait_equal("SELECT url, visits FROM late", clicks.truth["by_url"])
    wait_live(server, name)
    server.run("DROP MATERIALIZED VIEW late")
    clicks.produce(500)
    check_views(server, clicks)
    server.run(*(f"DROP MATERIALIZED VIEW {view}" for view in VIEWS), "DROP STREAM clicks")


def test_all_kinds_of_views_are_carried(server: LiveServer, topic: Topic, seed: int) -> None:
    """Rows, groups, filters, windows with late records, and push queries: against the records themselves."""
    topic.view("kinds_rows", "SELECT i, k, t FROM {s} WHERE i % 3 = 0")
    topic.view("kinds_none", "SELECT i FROM {s} WHERE k = 'never'")
    topic.view("kinds_groups", "SELECT k, count(*) AS n, sum(i) AS s, max(i) AS m, avg(i) AS a FROM {s} GROUP BY k")
    topic.view("kinds_distinct", "SELECT k, count(DISTINCT i % 7) AS n FROM {s} GROUP BY k")
    topic.view(
        "kinds_windows",
        "SELECT window_start AS w, k, count(*) AS n FROM TUMBLE({s}, SIZE 10 SECONDS) "
        "GROUP BY window_start, window_end, k",
    )
    random_ = random.Random(seed)
    rows = [{"k": random_.choice("abc"), "i": i, "t": at(i / 10)} for i in range(400)]
    topic.send(*rows[:100], partition=0)
    number = wait_live(server, topic.name)
    for begin in range(100, 400, 50):
        topic.send(*rows[begin : begin + 50], partition=0)
    topic.send({"k": "late", "i": -1, "t": at(0)}, partition=0)
    server.wait_equal("SELECT i, 1 FROM kinds_rows WHERE i >= 0", {(i,): 1 for i in range(0, 400, 3)})
    server.wait_equal("SELECT 'n', sum(n)::BIGINT FROM kinds_groups", {("n",): 401})
    groups = {k: [row["i"] for row in rows if row["k"] == k] for k in ("a", "b", "c")}
    found = {row[0]: row[1:] for row in server.query("SELECT k, n, s, m, a FROM kinds_groups WHERE k <> 'late'")}
    assert {k: (n, int(s), m, round(float(a), 6)) for k, (n, s, m, a) in found.items()} == {
        k: (len(own), sum(own), max(own), round(sum(own) / len(own), 6)) for k, own in groups.items()
    }
    assert dict(server.query("SELECT k, n FROM kinds_distinct WHERE k <> 'late'")) == {
        k: len({i % 7 for i in own}) for k, own in groups.items()
    }
    assert server.query("SELECT count(*) FROM kinds_none") == [(0,)]
    windows = Counter((row["i"] // 100 * 10, row["k"]) for row in rows)
    found_windows = {
        ((w.minute * 60 + w.second), k): n for w, k, n in server.query("SELECT w, k, n FROM kinds_windows")
    }
    assert found_windows == windows
    late = server.query(f"SELECT view, position FROM mv_catalog.late_rows WHERE relation LIKE '%{topic.stream}'")
    assert [position for view, position in late] == ["0:400"], late
    assert was_left(server, topic.name, number) == []


def test_several_rows_of_a_record_are_carried_beside_one(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: MakeTopic, seed: int
) -> None:
    """Windows that overlap, elements of arrays, late records, a push query; beside them a view of one row a record."""
    name, chance = kafka_topic(2), random.Random(seed)
    server.run(
        "CREATE STREAM spread (k VARCHAR, i BIGINT, t TIMESTAMP, tags ARRAY<VARCHAR>, o TIME) WITH ('store' = 's', "
        f"'topic' = '{name}', 'value.format' = 'json', 'timestamp' = 't')",
        "CREATE MATERIALIZED VIEW spread_groups AS SELECT k, count(*) AS n, sum(i) AS s, max(o) AS o FROM spread "
        "GROUP BY k",
        "CREATE MATERIALIZED VIEW spread_hops AS SELECT window_start AS w, k, count(*) AS n, sum(i) AS s "
        "FROM HOP(spread, SIZE 20 SECONDS, ADVANCE BY 5 SECONDS) GROUP BY window_start, window_end, k",
        "CREATE MATERIALIZED VIEW spread_tags AS SELECT tag, count(*) AS n, min(place) AS p FROM spread "
        "CROSS JOIN UNNEST(tags) WITH ORDINALITY AS u (tag, place) GROUP BY tag",
        "CREATE MATERIALIZED VIEW spread_outer AS SELECT i, tag FROM spread LEFT JOIN UNNEST(tags) AS u (tag) ON true "
        "WHERE i % 5 = 0",
    )
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "linger.ms": 2})
    rows: list[dict[str, Any]] = []

    def send(count: int) -> None:
        for _ in range(count):
            i = len(rows)
            tags = chance.choice([None, [], ["x"], ["x", "y", "x"], [None, "z"], list("abcdefgh") * 40])
            rows.append({"k": chance.choice("abc"), "i": i, "t": at(i / 10), "tags": tags, "o": clock(i)})
            producer.produce(name, value=json.dumps(rows[-1]).encode(), partition=i // 3 % 2)
        assert producer.flush(60) == 0

    def check() -> None:
        groups, hops, tags, outer = Counter[Any](), Counter[Any](), Counter[Any](), Counter[Any]()
        for row in rows:
            groups[(row["k"],)] += 1
            for back in range(4):
                hops[(row["i"] // 50 * 5 - back * 5, row["k"])] += 1
            tags.update((tag,) for tag in row["tags"] or ())
            if row["i"] % 5 == 0:
                outer.update((row["i"], tag) for tag in row["tags"] or [None])
        server.wait_equal("SELECT k, n FROM spread_groups", groups)
        sums = [(sum(row["i"] for row in rows), clock(len(rows) - 1))]
        assert server.query("SELECT sum(s)::BIGINT, max(o)::TEXT FROM spread_groups") == sums
        server.wait_equal("SELECT extract(epoch FROM w - '2026-01-01')::BIGINT, k, n FROM spread_hops", hops)
        server.wait_equal("SELECT tag, n FROM spread_tags", tags)
        server.wait_equal("SELECT i, tag, count(*) FROM spread_outer GROUP BY i, tag", outer)

    send(100)
    number = wait_live(server, name)
    for _ in range(4):
        send(60)
        check()
    with server.connect() as pushing:
        known, seen = len(rows), list[tuple[Any, ...]]()
        push = "SELECT i, tag FROM spread, UNNEST(tags) AS u (tag) WHERE tag = 'y' LIMIT 1"
        waiting = threading.Thread(target=lambda: seen.extend(pushing.execute(push).fetchall()))
        waiting.start()
        while waiting.is_alive():
            send(20)
            waiting.join(0.5)
        assert seen[0][0] >= known
        assert "y" in rows[seen[0][0]]["tags"]
    number = wait_live(server, name)
    send(50)
    check()
    producer.produce(name, value=json.dumps({"k": "late", "i": 0, "t": at(0), "tags": ["late"]}).encode(), partition=0)
    assert producer.flush(60) == 0
    server.wait_equal("SELECT tag, n FROM spread_tags WHERE tag = 'late'", {("late",): 1})
    late = server.query("SELECT view, count(*) FROM mv_catalog.late_rows WHERE relation LIKE '%.spread' GROUP BY view")
    assert [(view.rpartition(".")[2], n) for view, n in late] == [("spread_hops", 4)]  # for each of its windows
    assert was_left(server, name, number) == []
    server.run("DROP STREAM spread CASCADE")


def test_a_record_that_is_none_is_rejected_as_in_a_batch(server: LiveServer, topic: Topic) -> None:
    topic.view("poisoned", "SELECT k, count(*) AS n FROM {s} GROUP BY k")
    topic.send({"k": "a", "i": 1}, partition=0)
    number = wait_live(server, topic.name)
    topic.send({"k": "a", "i": 2}, b'{"k": "a", "i": ', {"k": "a", "i": "4"}, {"k": "a", "i": 5}, partition=0)
    server.wait_equal("SELECT k, n FROM poisoned", {("a",): 4})
    rejected = server.query(f"SELECT position, raw FROM mv_catalog.rejected_rows WHERE relation LIKE '%{topic.stream}'")
    assert [(position, bytes(raw)) for position, raw in rejected] == [("0:2", b'{"k": "a", "i": ')]
    wait_live(server, topic.name, number)
    topic.send({"k": "a", "i": 6}, partition=1)
    server.wait_equal("SELECT k, n FROM poisoned", {("a",): 5})


def test_an_expression_that_fails_takes_its_view_alone(server: LiveServer, topic: Topic) -> None:
    topic.view("dividing", "SELECT k, sum(10 / i) AS n FROM {s} GROUP BY k")
    topic.view("counting", "SELECT k, count(*) AS n FROM {s} GROUP BY k")
    topic.send({"k": "a", "i": 1})
    number = wait_live(server, topic.name)
    topic.send({"k": "a", "i": 0}, {"k": "a", "i": 2})
    server.wait_equal("SELECT k, n FROM counting", {("a",): 3})
    server.wait_for(lambda: server.states()["dividing"][0] == "FAILED", WITHIN_S, "the view at fault goes on")
    assert "22012" in str(server.states()["dividing"][1])
    wait_live(server, topic.name, number)
    topic.send({"k": "a", "i": 3})
    server.wait_equal("SELECT k, n FROM counting", {("a",): 4})
    assert server.states()["counting"] == ("RUNNING", None)


def test_partitions_that_are_added_are_read_from_their_beginning(
    server: LiveServer, topic: Topic, kafka_broker: KafkaBroker
) -> None:
    topic.view("parted", "SELECT k, count(*) AS n FROM {s} GROUP BY k")
    topic.send({"k": "a", "i": 1})
    number = wait_live(server, topic.name)
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    admin.create_partitions([NewPartitions(topic.name, 4)])[topic.name].result(60)
    server.wait_for(lambda: lane(server, topic.name)[0] == "batch", WITHIN_S, "the lane does not see the partitions")
    fresh = Producer({"bootstrap.servers": kafka_broker.bootstrap})
    for partition in range(4):
        for _ in range(10):
            fresh.produce(topic.name, value=b'{"k": "p", "i": 2}', partition=partition)
    assert fresh.flush(60) == 0
    server.wait_equal("SELECT k, n FROM parted", {("a",): 1, ("p",): 40})
    wait_live(server, topic.name, number)
    fresh.produce(topic.name, value=b'{"k": "p", "i": 2}', partition=3)
    assert fresh.flush(60) == 0
    server.wait_equal("SELECT k, n FROM parted", {("a",): 1, ("p",): 41})


def test_marks_of_transactions_are_passed_over(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: MakeTopic
) -> None:
    """Committed and aborted ones, also behind the last record: a reader of what is latest does not wait for these."""
    name = kafka_topic(2)
    topic = Topic(server, kafka_broker, name)
    topic.view("transacted", "SELECT k, count(*) AS n FROM {s} GROUP BY k")
    topic.send({"k": "a", "i": 0}, partition=0)
    number = wait_live(server, name)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "transactional.id": f"x-{name}"})
    producer.init_transactions(60)
    for turn in range(6):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(name, value=b'{"k": "a", "i": 1}', partition=partition)
        if turn % 3 == 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    with server.connect() as connection:
        connection.execute("SET mv.freshness = 'latest'")
        assert connection.execute("SELECT k, n FROM transacted").fetchall() == [("a", 9)]

    def caught_up() -> bool:
        return server.query("SELECT caught_up FROM mv_catalog.views WHERE view LIKE '%transacted'") == [(True,)]

    server.wait_for(caught_up, WITHIN_S, "the view does not come to the end of its topic")
    assert (lane(server, name), generation(server, name)) == (("live", None), number)
    server.run(f"DROP STREAM {topic.stream} CASCADE")


def test_what_is_not_carried_stays_in_batches_and_says_why(
    server: LiveServer, topic: Topic, kafka_broker: KafkaBroker, kafka_topic: MakeTopic
) -> None:
    server.run(
        "CREATE FUNCTION own(x BIGINT) RETURNS BIGINT LANGUAGE PYTHON STRICT AS $$\nreturn x + 1\n$$",
    )
    topic.view("owning", "SELECT own(i) AS n FROM {s}")
    topic.send({"k": "a", "i": 1, "t": at(1)})
    server.wait_equal("SELECT n, 1 FROM owning", {(2,): 1})
    assert lane(server, topic.name) == (
        "batch",
        "a query calls a function of one's own, whose rows go to Python in batches",
    )
    server.run(f"CREATE STORE off WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}', 'live_lane' = 'off')")
    name = kafka_topic(1)
    server.run(
        f"CREATE STREAM offs (k VARCHAR) WITH ('store' = 'off', 'topic' = '{name}', 'value.format' = 'json')",
        "CREATE MATERIALIZED VIEW off_view AS SELECT k, count(*) AS n FROM offs GROUP BY k",
    )
    assert lane(server, name) == ("batch", "its store's property live_lane is off")
    explained = [line for (line,) in server.query("EXPLAIN CREATE MATERIALIZED VIEW x AS SELECT k FROM offs")]
    assert explained[-1] == "  Lane of postgres.public.offs: batch (its store's property live_lane is off)"
    explained = [
        line for (line,) in server.query(f"EXPLAIN CREATE MATERIALIZED VIEW x AS SELECT k FROM {topic.stream}")
    ]
    assert explained[-1] == f"  Lane of postgres.public.{topic.stream}: live, once it has caught up"
    with server.connect() as connection:
        query = connection.execute("SELECT id FROM mv_catalog.queries WHERE sink LIKE '%owning'").fetchall()[0][0]
        described = connection.execute(f"DESCRIBE QUERY '{query}'")
        names = [column.name for column in described.description or ()]
        row = dict(zip(names, described.fetchall()[0], strict=True))
    assert (row["lane"], row["lane_reason"]) == lane(server, topic.name)
    server.run("DROP STREAM offs CASCADE", "DROP STORE off")


@pytest.mark.night
def test_changelogs_joins_and_what_is_written_from_them(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: MakeTopic
) -> None:
    """Rows that replace each other, sides of a join, and an outbox: each begins behind the door of a batch."""
    left, right = (Topic(server, kafka_broker, kafka_topic(2)) for _ in range(2))
    people, counts = kafka_topic(2), f"counts-{uuid.uuid4().hex[:8]}"
    server.run(
        "CREATE CHANGELOG people (id VARCHAR, city VARCHAR, PRIMARY KEY (id)) WITH ('store' = 's', "
        f"'topic' = '{people}', 'value.format' = 'json', 'key.format' = 'json', 'key.type' = 'STRUCT<id VARCHAR>')",
        "CREATE MATERIALIZED VIEW by_city AS SELECT city, count(*) AS n FROM people GROUP BY city",
        f"CREATE MATERIALIZED VIEW pairs AS SELECT l.k AS k, l.i AS a, r.i AS b FROM {left.stream} AS l "
        f"JOIN {right.stream} AS r WITHIN 1 MINUTE ON l.k = r.k",
        f"CREATE CHANGELOG counts WITH ('store' = 's', 'topic' = '{counts}', 'topic.partitions' = 1, "
        f"'topic.replicas' = 1, 'value.format' = 'json') AS SELECT k, count(*) AS n FROM {left.stream} GROUP BY k",
    )
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})

    def move(number: int, city: str | None) -> None:
        key = f"p{number}"
        value = None if city is None else json.dumps({"id": key, "city": city}).encode()
        producer.produce(people, key=json.dumps({"id": key}).encode(), value=value)
        assert producer.flush(60) == 0

    move(0, "Bonn")
    left.send({"k": "a", "i": 0, "t": at(0)}, partition=0)
    right.send({"k": "a", "i": 0, "t": at(0)}, partition=0)
    numbers = {name: wait_live(server, name) for name in (people, left.name, right.name)}
    for number in range(1, 30):
        move(number, ("Bonn", "Kiel", "Ulm")[number % 3])
        left.send({"k": "ab"[number % 2], "i": number, "t": at(number)}, partition=number % 2)
        right.send({"k": "ab"[number % 2], "i": number, "t": at(number)}, partition=number % 2)
    for number in range(0, 30, 5):
        move(number, "Kiel")
    for number in range(3, 30, 9):
        move(number, None)
    cities = {number: ("Bonn", "Kiel", "Ulm")[number % 3] for number in range(30)}
    cities |= dict.fromkeys(range(0, 30, 5), "Kiel")
    left_over = Counter((city,) for number, city in cities.items() if number not in range(3, 30, 9))
    server.wait_equal("SELECT city, n FROM by_city", left_over)
    pairs = {("ab"[a % 2], a, b): 1 for a in range(30) for b in range(30) if a % 2 == b % 2}
    server.wait_equal("SELECT k, a, b, count(*) AS n FROM pairs GROUP BY k, a, b", pairs)
    written: dict[str, int] = {}
    for row in topic_values(kafka_broker.bootstrap, counts, 30):
        assert row["n"] > written.get(row["k"], 0), "changes of a key come in their order"
        written[row["k"]] = row["n"]
    assert written == {"a": 15, "b": 15}
    assert not any(was_left(server, name, number) for name, number in numbers.items())
    server.run("DROP CHANGELOG counts CASCADE", "DROP CHANGELOG people CASCADE")
    server.run(*(f"DROP STREAM {each.stream} CASCADE" for each in (left, right)))
