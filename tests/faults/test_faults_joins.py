"""Joins on a real broker: the tutorials' statements as they are printed, and each joined row once over kills."""

from __future__ import annotations

import json
import random
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer
from services.kafka import create_topic

from faults.live import LiveServer, topic_values
from mvserver.demo.kafka_broker import KafkaBroker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

USERS = (
    "CREATE CHANGELOG users ( registertime BIGINT, name VARCHAR, email VARCHAR, userid VARCHAR, regionid VARCHAR, "
    'gender VARCHAR, interests ARRAY<VARCHAR>, contactinfo STRUCT<phone VARCHAR, city VARCHAR, "state" VARCHAR, '
    "zipcode VARCHAR>, PRIMARY KEY(userid) ) WITH ( 'store'='prod_kafka', 'topic'='users', 'value.format'='json');"
)
USER_CLICKS = (
    "CREATE STREAM user_clicks WITH ('store'=’prod_kafka’) AS SELECT u.registertime AS user_registertime, u.userid AS "
    "uid, u.regionid AS user_regionid, u.gender AS user_gender, u.interests AS user_interests, c.event_time AS "
    "click_time, c.device_id AS device_type, c.url AS click_url, c.ip AS click_location FROM clicks c JOIN users u ON "
    "c.userid = u.userid;"
)
_PEOPLE = [("Edna Hook", "User_4", "Region_6", ["News", "Movies"]), ("Shaan Gough", "User_6", "Region_9", ["Game"])]


def _produce(bootstrap: str, topic: str, rows: Sequence[tuple[str | None, dict[str, Any]]]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2})
    for key, row in rows:
        producer.produce(topic, key=key, value=json.dumps(row))
    assert producer.flush(60) == 0


def test_the_tutorials_joins(server: LiveServer, kafka_broker: KafkaBroker) -> None:
    bootstrap = kafka_broker.bootstrap
    for topic in ("users", "clicks", "pageviews", "ds_users"):
        create_topic(kafka_broker, topic, 2)
    server.start()
    server.run(
        "CREATE DATABASE clickstream_db",
        f"CREATE STORE prod_kafka WITH ('type' = KAFKA, 'uris' = '{bootstrap}')",
    )
    person = {"registertime": 1665780360439, "email": None, "gender": "OTHER", "contactinfo": {"city": "San Mateo"}}
    users = [{**person, "name": n, "userid": u, "regionid": r, "interests": i} for n, u, r, i in _PEOPLE]
    _produce(bootstrap, "users", [(str(user["userid"]), user) for user in users])
    server.run(
        USERS,
        "CREATE STREAM clicks (event_time BIGINT, device_id VARCHAR, url VARCHAR, ip VARCHAR, userid VARCHAR) "
        "WITH ('store'='prod_kafka', 'topic'='clicks', 'value.format'='json')",
        USER_CLICKS,
        "CREATE STREAM pageviews_kafka (viewtime BIGINT, userid VARCHAR, pageid VARCHAR) "
        "WITH ('store'='prod_kafka', 'topic'='pageviews', 'value.format'='json', 'timestamp'='viewtime')",
        "CREATE STREAM users_kafka (registertime BIGINT, userid VARCHAR, regionid VARCHAR) "
        "WITH ('store'='prod_kafka', 'topic'='ds_users', 'value.format'='json', 'timestamp'='registertime')",
        "CREATE STREAM pageviews_enriched WITH ('store'='prod_kafka') AS SELECT p.userid AS userid, pageid, regionid "
        "FROM pageviews_kafka p JOIN users_kafka u WITHIN 5 MINUTES ON p.userid = u.userid",
    )
    clicks = [
        {"event_time": 1497014222380 + i, "device_id": "mobile", "url": "./home", "ip": "12.12.12.12", "userid": user}
        for i, user in enumerate(("User_4", "User_6", "User_9"))
    ]
    _produce(bootstrap, "clicks", [(None, click) for click in clicks])
    _produce(
        bootstrap,
        "pageviews",
        [(None, {"viewtime": t, "userid": "User_4", "pageid": f"Page_{t}"}) for t in (1_000_000, 1_299_000, 1_301_000)],
    )
    _produce(bootstrap, "ds_users", [(None, {"registertime": 1_000_000, "userid": "User_4", "regionid": "Region_1"})])
    found = topic_values(bootstrap, "user_clicks", 2)
    assert sorted(found, key=lambda row: str(row["uid"])) == [
        {
            "user_registertime": 1665780360439,
            "uid": user,
            "user_regionid": region,
            "user_gender": "OTHER",
            "user_interests": interests,
            "click_time": 1497014222380 + i,
            "device_type": "mobile",
            "click_url": "./home",
            "click_location": "12.12.12.12",
        }
        for i, (_, user, region, interests) in enumerate(_PEOPLE)
    ]
    enriched = topic_values(bootstrap, "pageviews_enriched", 2)
    assert sorted(row["pageid"] for row in enriched) == ["Page_1000000", "Page_1299000"], "not 301 seconds apart"
    assert {row["regionid"] for row in enriched} == {"Region_1"}
    assert server.states()["user_clicks"][0] == "RUNNING"


@pytest.mark.night
def test_joined_rows_once_over_kills(
    server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int
) -> None:
    """A view of the join, one that aggregates it, and a topic it is written to: all as one look at both topics says."""
    chance = random.Random(seed)
    bootstrap = kafka_broker.bootstrap
    left, right, sink = kafka_topic(3), kafka_topic(2), f"out-{uuid.uuid4().hex[:8]}"
    server.start()
    server.run(
        f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{bootstrap}')",
        f"CREATE STREAM a (n BIGINT, k VARCHAR, t BIGINT) "
        f"WITH ('store'='s', 'topic'='{left}', 'value.format'='json', 'timestamp'='t')",
        f"CREATE STREAM b (n BIGINT, k VARCHAR, t BIGINT) "
        f"WITH ('store'='s', 'topic'='{right}', 'value.format'='json', 'timestamp'='t')",
    )
    rows: dict[str, list[dict[str, Any]]] = {left: [], right: []}

    def feed(count: int) -> None:
        for topic, known in rows.items():
            new = [
                {"n": len(known) + i, "k": chance.choice("abcdefgh"), "t": (len(known) + i) * 10} for i in range(count)
            ]
            known.extend(new)
            _produce(bootstrap, topic, [(row["k"], row) for row in new])

    feed(200)
    earliest = "WITH ('starting.position' = 'earliest')"
    join = f"FROM a {earliest} JOIN b {earliest} WITHIN 1 SECOND ON a.k = b.k"
    server.run(
        f"CREATE MATERIALIZED VIEW pairs AS SELECT a.n AS left_n, b.n AS right_n {join}",
        f"CREATE MATERIALIZED VIEW by_key AS SELECT a.k AS k, count(*) AS n {join} GROUP BY a.k",
        f"CREATE STREAM written WITH ('topic' = '{sink}', 'store' = 's', 'topic.partitions' = 1, 'topic.replicas' = 1) "
        f"AS SELECT a.n AS left_n, b.n AS right_n {join}",
    )
    for point in ("after rows", "after commit", "before relay", "after relay"):
        server.kill()
        feed(50)
        server.start(MVSERVER_FAILPOINTS=f"{point}=kill:1")
        server.wait_killed(300)
        server.start()
    feed(50)
    expected = Counter(
        (one["n"], other["n"])
        for one in rows[left]
        for other in rows[right]
        if one["k"] == other["k"] and abs(one["t"] - other["t"]) <= 1000
    )
    by_key = Counter(rows[left][one]["k"] for one, _ in expected)
    server.wait_equal("SELECT left_n, right_n, count(*) FROM pairs GROUP BY 1, 2", dict(expected))
    server.wait_equal("SELECT k, n FROM by_key", {(key,): count for key, count in by_key.items()})
    found = Counter((row["left_n"], row["right_n"]) for row in topic_values(bootstrap, sink, len(expected)))
    assert found == expected
