"""Functions of one's own over a real Kafka: queries that write, the live lane, the dialect lenses, random programs."""

from __future__ import annotations

import json
import os
import random
import statistics
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer, temporary_server, topic_values

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
MakeTopic = Callable[..., str]


@pytest.fixture(scope="module")
def server(kafka_broker: KafkaBroker) -> Iterator[LiveServer]:
    with temporary_server() as live:
        live.start(MVSERVER_LIVE_LANE="auto", MVSERVER_FUNCTION_TIMEOUT="3s")
        live.run(f"CREATE STORE k WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')")
        yield live


def put(broker: KafkaBroker, topic: str, rows: list[dict[str, Any]]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for row in rows:
        producer.produce(topic, value=json.dumps(row).encode())
    assert producer.flush(30) == 0


def declared(server: LiveServer, topic: str, columns: str) -> str:
    name = topic.replace("-", "_")
    server.run(f"CREATE STREAM {name} ({columns}) WITH ('store' = k, 'topic' = '{topic}', 'value.format' = json)")
    return name


def test_queries_that_write_and_a_view_beside_them(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: MakeTopic
) -> None:
    source, loud, totals = kafka_topic(2), kafka_topic(1), kafka_topic(1)
    name = declared(server, source, "n BIGINT, word VARCHAR")
    server.run(
        "CREATE FUNCTION shout(word VARCHAR) RETURNS VARCHAR LANGUAGE PYTHON STRICT AS $$return word.upper() + '!'$$",
        "CREATE FUNCTION parity(n BIGINT) RETURNS VARCHAR LANGUAGE PYTHON AS $$return 'odd' if n % 2 else 'even'$$",
        f"CREATE STREAM loud WITH ('store' = k, 'topic' = '{loud}', 'value.format' = json) "
        f"AS SELECT n, shout(word) AS w FROM {name} WHERE parity(n) = 'odd'",
        f"CREATE CHANGELOG totals WITH ('store' = k, 'topic' = '{totals}', 'value.format' = json, "
        f"'key.format' = json) AS SELECT parity(n) AS p, sum(n) AS s FROM {name} GROUP BY parity(n)",
        f"CREATE MATERIALIZED VIEW kept AS SELECT parity(n) AS p, count(*) AS c FROM {name} GROUP BY parity(n)",
        f"CREATE MATERIALIZED VIEW plain AS SELECT count(*) AS c FROM {name}",
    )
    put(kafka_broker, source, [{"n": 1, "word": "one"}, {"n": 2, "word": "two"}, {"n": 3, "word": None}])
    server.wait_for(lambda: sorted(server.query("SELECT * FROM kept")) == [("even", 1), ("odd", 2)], 120, "no groups")
    written = topic_values(kafka_broker.bootstrap, loud, 2)
    assert sorted(written, key=str) == [{"n": 1, "w": "ONE!"}, {"n": 3, "w": None}]
    put(kafka_broker, source, [{"n": 10, "word": "ten"}])
    server.wait_for(lambda: sorted(server.query("SELECT * FROM kept")) == [("even", 2), ("odd", 2)], 120, "no second")
    last = {}
    for value in topic_values(kafka_broker.bootstrap, totals, 3):
        last[value["p"]] = value["s"]
    assert last == {"odd": 4, "even": 12}
    lanes = server.query("SELECT lane, lane_reason FROM mv_catalog.pipelines")
    assert all(lane == "batch" for lane, _ in lanes)
    assert "a query calls a function of one's own, whose rows go to Python in batches" in {why for _, why in lanes}


def test_a_query_that_writes_goes_on_in_the_next_life_of_the_server(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: MakeTopic
) -> None:
    source, target = kafka_topic(1), kafka_topic(1)
    name = declared(server, source, "n BIGINT")
    server.run(
        "CREATE FUNCTION squared(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$return n * n$$",
        f"CREATE STREAM squares WITH ('store' = k, 'topic' = '{target}', 'value.format' = json) "
        f"AS SELECT squared(n) AS q FROM {name}",
    )
    put(kafka_broker, source, [{"n": 2}])
    assert topic_values(kafka_broker.bootstrap, target, 1) == [{"q": 4}]
    server.kill()
    server.start(MVSERVER_LIVE_LANE="auto", MVSERVER_FUNCTION_TIMEOUT="3s")
    put(kafka_broker, source, [{"n": 3}, {"n": 4}])
    assert topic_values(kafka_broker.bootstrap, target, 3, timeout_s=180) == [{"q": 4}, {"q": 9}, {"q": 16}]


def test_a_function_that_fails_leaves_its_topic_to_the_others(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: MakeTopic
) -> None:
    source = kafka_topic(1)
    name = declared(server, source, "n BIGINT")
    server.run(
        "CREATE FUNCTION picky(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$\n"
        "if n == 3: raise ValueError(f'not {n}')\nreturn n\n$$",
        "CREATE FUNCTION stuck(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON WITH ('timeout.millis' = 500) AS $$\n"
        "while n == 4: pass\nreturn n\n$$",
        f"CREATE MATERIALIZED VIEW picky_rows AS SELECT picky(n) AS n FROM {name}",
        f"CREATE MATERIALIZED VIEW stuck_rows AS SELECT stuck(n) AS n FROM {name}",
        f"CREATE MATERIALIZED VIEW all_rows AS SELECT sum(n) AS s FROM {name}",
    )
    put(kafka_broker, source, [{"n": n} for n in range(6)])
    server.wait_for(lambda: server.states()["picky_rows"][0] == "FAILED", 120, "picky")
    server.wait_for(lambda: server.states()["stuck_rows"][0] == "FAILED", 120, "stuck")
    assert "38000: function picky: ValueError: not 3 (line 2)" in (server.states()["picky_rows"][1] or "")
    assert "57014: function stuck took longer than 0.5 s for a call" in (server.states()["stuck_rows"][1] or "")
    put(kafka_broker, source, [{"n": 100}])
    server.wait_for(lambda: server.query("SELECT s FROM all_rows") == [(115,)], 120, "the other stands still")


def test_programs_of_the_dialect_lenses(server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: MakeTopic) -> None:
    source, target = kafka_topic(1), kafka_topic(1)
    declared(server, source, "n BIGINT, word VARCHAR")
    server.run("CREATE FUNCTION half(n BIGINT) RETURNS DOUBLE LANGUAGE PYTHON AS $$return n / 2$$")
    with server.connect() as connection:
        connection.execute("USE STORE k")
        program = (
            f"INSERT INTO {target} SELECT STREAM half(n) AS h, UPPER(word) AS w FROM {source} WHERE half(n) > 0.5;"
        )
        connection.execute(f"CREATE PROCESSOR halves AS $${program}$$".encode())
        connection.execute("START PROCESSOR halves")
    put(kafka_broker, source, [{"n": 1, "word": "a"}, {"n": 5, "word": "b"}, {"n": 2, "word": "c"}])
    assert topic_values(kafka_broker.bootstrap, target, 2) == [{"h": 2.5, "w": "B"}, {"h": 1.0, "w": "C"}]


def test_aggregates_in_programs_of_the_dialect_lenses(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: MakeTopic
) -> None:
    source, target, windowed = kafka_topic(1), kafka_topic(1), kafka_topic(1)
    declared(server, source, "n BIGINT, word VARCHAR")
    server.run(
        "CREATE AGGREGATE farthest(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON STRICT AS $$return max(n) - min(n)$$"
    )
    with server.connect() as connection:
        connection.execute("USE STORE k")
        program = (
            f"INSERT INTO {target} SELECT STREAM farthest(n) + COUNT(*) AS f FROM {source} GROUP BY word; "
            f"INSERT INTO {windowed} SELECT STREAM farthest(n) AS f FROM {source} WINDOW BY TUMBLE 365d GROUP BY word;"
        )
        connection.execute(f"CREATE PROCESSOR spans AS $${program}$$".encode())
        connection.execute("START PROCESSOR spans")
    put(kafka_broker, source, [{"n": 1, "word": "a"}, {"n": 5, "word": "a"}, {"n": 2, "word": "b"}])

    def values(topic: str) -> list[int]:
        rows = topic_records(kafka_broker.bootstrap, topic)
        return sorted(json.loads(value)["f"] for value in rows.values() if value is not None)

    server.wait_for(lambda: values(target) == [1, 6], 150, "no groups of the program")
    server.wait_for(lambda: values(windowed) == [0, 4], 150, "no windows of the program")


def test_aggregates_over_a_changelog_take_back_what_is_replaced_and_deleted(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: MakeTopic
) -> None:
    seed = int(os.environ.get("MVSERVER_TEST_SEED", random.randrange(10**6)))
    print(f"seed {seed} (MVSERVER_TEST_SEED)")
    chance = random.Random(seed)
    source, target = kafka_topic(3), kafka_topic(1)
    name = source.replace("-", "_")
    server.run(
        f"CREATE CHANGELOG {name} (id BIGINT, k BIGINT, n BIGINT, w BIGINT, PRIMARY KEY (id)) WITH ('store' = k, "
        f"'topic' = '{source}', 'value.format' = json, 'key.format' = primitive)",
        "CREATE AGGREGATE med(n BIGINT) RETURNS DOUBLE LANGUAGE PYTHON STRICT AS $$\n"
        "import statistics\nreturn float(statistics.median(n))\n$$",
        "CREATE AGGREGATE dot(n BIGINT, w BIGINT) RETURNS BIGINT LANGUAGE PYTHON STRICT AS $$\n"
        "return sum(a * b for a, b in zip(n, w))\n$$",
        f"CREATE MATERIALIZED VIEW taken AS SELECT k, med(n) AS m, dot(n, w) AS d, med(DISTINCT n) AS u, count(*) AS c "
        f"FROM {name} GROUP BY k",
        "CREATE MATERIALIZED VIEW taken_all AS SELECT sum(d) AS d, count(*) AS c FROM taken WHERE c > 0",
        f"CREATE CHANGELOG sent WITH ('store' = k, 'topic' = '{target}', 'value.format' = json, 'key.format' = json) "
        f"AS SELECT k, med(n) AS m, dot(n, w) AS d FROM {name} GROUP BY k",
    )
    present: dict[int, dict[str, int | None]] = {}

    def more() -> None:
        producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
        for _ in range(400):
            key = chance.randrange(60)
            if chance.random() < 0.3:
                present.pop(key, None)
                producer.produce(source, key=struct.pack(">q", key), value=None)
                continue
            n = None if chance.random() < 0.1 else chance.randrange(30)
            present[key] = {"id": key, "k": chance.randrange(6), "n": n, "w": chance.randrange(9)}
            producer.produce(source, key=struct.pack(">q", key), value=json.dumps(present[key]).encode())
        assert producer.flush(30) == 0

    def wanted() -> list[tuple[Any, ...]]:
        groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        for row in present.values():
            groups[row["k"]].append(row)
        rows = []
        for k, each in groups.items():
            numbers = [row["n"] for row in each if row["n"] is not None]
            rows.append(
                (
                    k, float(statistics.median(numbers)) if numbers else None,
                    sum(row["n"] * row["w"] for row in each if row["n"] is not None) if numbers else None,
                    float(statistics.median(set(numbers))) if numbers else None, len(each),
                )
            )  # fmt: skip
        return sorted(rows, key=str)

    for life in range(2):
        more()
        rows = wanted()
        server.wait_for(
            lambda rows=rows: sorted(server.query("SELECT * FROM taken"), key=str) == rows, 180, f"seed {seed}: {rows}"
        )
        totals = [(sum(row[2] or 0 for row in rows), len(rows))]
        server.wait_for(
            lambda totals=totals: server.query("SELECT * FROM taken_all") == totals,
            120, f"seed {seed}: {totals}",
        )  # fmt: skip
        server.wait_for(
            lambda rows=rows: _last_rows(kafka_broker, target) == [row[:3] for row in rows], 120, f"seed {seed}: sent"
        )
        if life == 0:
            server.kill()
            server.start(MVSERVER_LIVE_LANE="auto", MVSERVER_FUNCTION_TIMEOUT="3s")


def _last_rows(broker: KafkaBroker, topic: str) -> list[tuple[Any, ...]]:
    """The rows of a topic written by key: the last value of each, without those that are taken away."""
    rows = topic_records(broker.bootstrap, topic)
    present = (json.loads(value) for value in rows.values() if value is not None)
    return sorted(((each["k"], each["m"], each["d"]) for each in present), key=str)


def topic_records(bootstrap: str, topic: str) -> dict[bytes, bytes | None]:
    """The last value of each key, of what is committed now."""
    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.partition.eof": True})
    rows: dict[bytes, bytes | None] = {}
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(30)
            assert message is not None
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return rows
            assert error is None
            rows[message.key()] = message.value()
    finally:
        consumer.close()


BODIES: dict[str, str] = {
    "digits": "return sum(map(int, str(abs(n))))",
    "collatz": "s = 0\nwhile n > 1 and s < 60:\n  n = 3 * n + 1 if n % 2 else n // 2\n  s += 1\nreturn s",
    "sevens": "return None if n % 7 == 0 else n // 7",
    "mixed": "import hashlib\nreturn int.from_bytes(hashlib.md5(str(n).encode()).digest()[:4], 'big')",
}


AGGREGATES: dict[str, str] = {
    "middle": "return sorted(n)[len(n) // 2]",
    "spread": "return max(n) - min(n)",
    "folded": "s = 7\nfor each in sorted(n): s = (s * 31 + each) % 1000003\nreturn s",
    "odd": "return len([each for each in n if each % 2]) or None",
}


def in_python(body: str) -> Callable[[Any], int | None]:
    lines = "\n".join(f"  {line}" for line in body.splitlines())
    space: dict[str, Any] = {}
    exec(f"def f(n):\n{lines}", space)
    found: Callable[[Any], int | None] = space["f"]
    return found


def _counted(server: LiveServer, number: int) -> int:
    return int(sum(row[0] for row in server.query(f"SELECT c FROM random_{number}")))


def test_random_programs_agree_with_python(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: MakeTopic
) -> None:
    seed = int(os.environ.get("MVSERVER_TEST_SEED", random.randrange(10**6)))
    print(f"seed {seed} (MVSERVER_TEST_SEED)")
    chance = random.Random(seed)
    functions = {name: in_python(body) for name, body in BODIES.items()}
    for name, body in BODIES.items():
        server.run(f"CREATE FUNCTION {name}(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON STRICT AS $$\n{body}\n$$")
    aggregates = {name: in_python(body) for name, body in AGGREGATES.items()}
    for name, body in AGGREGATES.items():
        server.run(f"CREATE AGGREGATE {name}(n BIGINT) RETURNS BIGINT LANGUAGE PYTHON STRICT AS $$\n{body}\n$$")
    source = kafka_topic(3)
    stream = declared(server, source, "n BIGINT")
    programs = []
    for number in range(8):
        chain = [chance.choice(list(BODIES)) for _ in range(chance.randrange(1, 4))]
        keyed, limit = chance.choice(list(BODIES)), chance.randrange(0, 12)
        own, once = chance.choice(list(AGGREGATES)), chance.choice(["", "DISTINCT "])
        text = "n"
        for name in chain:
            text = f"{name}({text})"
        server.run(
            f"CREATE MATERIALIZED VIEW random_{number} AS SELECT {keyed}(n) % 5 AS k, count(*) AS c, sum({text}) AS s, "
            f"max({text}) FILTER (WHERE digits(n) > {limit}) AS m, {own}({once}{text}) FILTER (WHERE n % 2 = 0) AS o "
            f"FROM {stream} WHERE mixed(n) % 3 <> 0 GROUP BY {keyed}(n) % 5"
        )
        programs.append((chain, keyed, limit, own, once))
    values = [chance.randrange(0, 10**9) for _ in range(4000)]
    for at in range(0, len(values), 1000):
        put(kafka_broker, source, [{"n": n} for n in values[at : at + 1000]])
    server.wait_for(
        lambda: sum(row[0] for row in server.query("SELECT c FROM random_0"))
        == sum(1 for n in values if (functions["mixed"](n) or 0) % 3),
        180, "not all rows came",
    )  # fmt: skip
    for number, (chain, keyed, limit, own, once) in enumerate(programs):
        counts: Counter[int | None] = Counter()
        sums: dict[int | None, list[int]] = defaultdict(list)
        most: dict[int | None, list[int]] = defaultdict(list)
        given: dict[int | None, list[int]] = defaultdict(list)
        for n in values:
            if (functions["mixed"](n) or 0) % 3 == 0:
                continue
            value: int | None = n
            for name in chain:
                value = None if value is None else functions[name](value)
            key = functions[keyed](n)
            key = None if key is None else key % 5
            counts[key] += 1
            if value is not None:
                sums[key].append(value)
                if (functions["digits"](n) or 0) > limit:
                    most[key].append(value)
                if n % 2 == 0:
                    given[key].append(value)
        total = counts.total()
        wanted = set()
        for key, count in counts.items():
            values_of = list(set(given[key])) if once else given[key]
            answer = aggregates[own](values_of) if values_of else None
            wanted.add((key, count, sum(sums[key]) if sums[key] else None, max(most[key], default=None), answer))
        server.wait_for(
            lambda number=number, total=total: _counted(server, number) == total,
            120, f"random_{number}",
        )  # fmt: skip
        found = {
            tuple(None if v is None else int(v) for v in row) for row in server.query(f"SELECT * FROM random_{number}")
        }
        assert found == wanted, (seed, number, chain, keyed, limit, own, once)
