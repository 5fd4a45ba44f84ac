"""The published tutorials, statement by statement, on a real Kafka, with rows written down by hand.

Stores of other kinds than Kafka are Kafka stores here; statements that the pages show as pictures are rebuilt from
their text. Quotes are as the pages print them.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import LiveServer, temporary_server, topic_values
from tests.services.kafka import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

NOW_MS = 1_700_000_000_000
EDNA = {
    "registertime": 1665780360439, "name": "Edna Hook", "email": "edna@example.com", "userid": "User_4",
    "regionid": "Region_6", "gender": "OTHER", "interests": ["News", "Movies"],
    "contactinfo": {"phone": "6503349999", "city": "San Mateo", "state": "CA", "zipcode": "94403"},
}  # fmt: skip
SHAAN = {
    "registertime": 1665780361439, "name": "Shaan Gough", "email": "shaan@example.com", "userid": "User_6",
    "regionid": "Region_9", "gender": "OTHER", "interests": ["Game", "Sport"],
    "contactinfo": {"phone": "6503889999", "city": "Palo Alto", "state": "CA", "zipcode": "94301"},
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with temporary_server() as live:
        yield live.start()


class Topics:
    """Records with exact times; topics are found anew by each reader."""

    def __init__(self, broker: KafkaBroker) -> None:
        self.bootstrap = broker.bootstrap
        self._producer = Producer({"bootstrap.servers": broker.bootstrap})

    def put(self, topic: str, *records: tuple[str | None, dict[str, Any] | None, int]) -> None:
        """Each record is (key, value, seconds after a fixed moment)."""
        for key, value, second in records:
            self._producer.produce(
                topic,
                key=None if key is None else key.encode(),
                value=None if value is None else json.dumps(value).encode(),
                timestamp=NOW_MS + second * 1000,
            )
        assert self._producer.flush(30) == 0

    def values(self, topic: str, expected: int) -> list[Any]:
        """All committed values, at least so many."""
        found = topic_values(self.bootstrap, topic, expected, timeout_s=60, quiet_s=0)
        assert len(found) >= expected, found
        return found


@pytest.fixture(scope="module")
def topics(kafka_broker: KafkaBroker) -> Topics:
    return Topics(kafka_broker)


@pytest.fixture(scope="module")
def names(kafka_broker: KafkaBroker) -> dict[str, str]:
    """The topics of the pages, under names that no other test has."""
    mark = uuid.uuid4().hex[:8]
    made = {name: f"{name}-{mark}" for name in ("clicks", "users", "pageviews", "ds_users")}
    for name in made.values():
        create_topic(kafka_broker, name, 2)
    return made


@pytest.fixture(scope="module")
def clickstream(server: LiveServer, topics: Topics, names: dict[str, str]) -> LiveServer:
    """Part 1: the store of the clicks, the database, the stream."""
    server.run(
        f"CREATE STORE prod_kafka WITH ('type' = KAFKA, 'uris' = '{topics.bootstrap}')",
        "CREATE DATABASE clickstream_db",
    )
    with server.connect() as connection:
        connection.execute("USE DATABASE clickstream_db")
        connection.execute("USE STORE prod_kafka")
        connection.execute(
            "CREATE STREAM clicks (event_time BIGINT, device_id VARCHAR, url VARCHAR, ip VARCHAR, userid VARCHAR) "
            f"WITH ('store'='prod_kafka', 'topic'='{names['clicks']}', 'value.format'='json')"
        )
    return server


def click(user: str, url: str, device: str = "mobile") -> dict[str, Any]:
    return {"event_time": 1497014222380, "device_id": device, "url": url, "ip": "12.12.12.12", "userid": user}


def test_part_2_views_of_a_clickstream(clickstream: LiveServer, topics: Topics, names: dict[str, str]) -> None:
    with clickstream.connect() as connection:
        connection.execute("USE DATABASE clickstream_db")
        for statement in (
            "CREATE MATERIALIZED VIEW url_visit_count AS SELECT url, count(*) AS url_visit_count FROM clicks "
            "GROUP BY url",
            "CREATE MATERIALIZED VIEW url_device_visit_count AS SELECT url, device_id, count(*) AS visits FROM clicks "
            "WHERE device_id <> 'desktop' GROUP BY url, device_id",
            "CREATE MATERIALIZED VIEW user_url_device_visit_count AS SELECT userid, url, device_id, count(*) AS visits "
            "FROM clicks GROUP BY userid, url, device_id",
        ):
            connection.execute(statement)
        clicked = [
            click("User_9", "./home"), click("User_9", "./home"), click("User_9", "./cart", "desktop"),
            click("User_4", "./home", "desktop"), click("User_9", "./cart"),
        ]  # fmt: skip
        topics.put(names["clicks"], *((None, each, -100 + i) for i, each in enumerate(clicked)))
        connection.execute("SET mv.freshness = 'latest'")

        def rows(sql: str) -> list[Any]:
            return connection.execute(sql.encode()).fetchall()

        assert rows("SELECT * FROM url_visit_count WHERE url = './home'") == [("./home", 3)]
        assert rows("SELECT url FROM url_visit_count ORDER BY url_visit_count DESC LIMIT 1") == [("./home",)]
        assert sorted(rows("SELECT * FROM url_device_visit_count")) == [
            ("./cart", "mobile", 1),
            ("./home", "mobile", 2),
        ]
        mine = rows(
            "SELECT url, visits FROM user_url_device_visit_count WHERE userid = 'User_9' AND device_id = 'mobile'"
        )
        assert sorted(mine) == [("./cart", 1), ("./home", 2)]


def test_part_3_enriching_clicks(clickstream: LiveServer, topics: Topics, names: dict[str, str]) -> None:
    with clickstream.connect() as connection:
        connection.execute("USE DATABASE clickstream_db")
        connection.execute(f"CREATE STORE prod_kinesis WITH ( 'type' = KAFKA, 'uris'=’{topics.bootstrap}’ )".encode())
        connection.execute(
            "CREATE CHANGELOG users ( registertime BIGINT, name VARCHAR, email VARCHAR, userid VARCHAR, "
            "regionid VARCHAR, gender VARCHAR, interests ARRAY<VARCHAR>, contactinfo STRUCT<phone VARCHAR, city "
            "VARCHAR, \"state\" VARCHAR, zipcode VARCHAR>, PRIMARY KEY(userid) ) WITH ( 'store'='prod_kinesis', "
            f"'topic'='{names['users']}', 'value.format'='json')".encode()
        )
        topics.put(names["users"], ("User_4", EDNA, 0), ("User_6", SHAAN, 0))  # before anyone asks for them
        connection.execute(
            "CREATE STREAM user_clicks WITH ('store'=’prod_kafka’) AS SELECT u.registertime AS user_registertime, "
            "u.userid AS uid, u.regionid AS user_regionid, u.gender AS user_gender, u.interests AS user_interests, "
            "c.event_time AS click_time, c.device_id AS device_type, c.url AS click_url, c.ip AS click_location "
            "FROM clicks c JOIN users u ON c.userid = u.userid".encode()
        )
        connection.execute(
            b"CREATE CHANGELOG url_region_click_count AS SELECT click_url, user_regionid, "
            b"count(*) AS url_region_click_count FROM user_clicks GROUP BY click_url, user_regionid"
        )
        topics.put(
            names["clicks"],
            (None, click("User_4", "./home"), 10),
            (None, click("User_6", "./home", "desktop"), 10),
            (None, click("User_5", "./home"), 10),  # of nobody who is known
        )
        enriched = sorted(topics.values("user_clicks", 2), key=lambda row: row["uid"])
        assert enriched == [
            {
                "user_registertime": 1665780360439, "uid": "User_4", "user_regionid": "Region_6",
                "user_gender": "OTHER", "user_interests": ["News", "Movies"], "click_time": 1497014222380,
                "device_type": "mobile", "click_url": "./home", "click_location": "12.12.12.12",
            },
            {
                "user_registertime": 1665780361439, "uid": "User_6", "user_regionid": "Region_9",
                "user_gender": "OTHER", "user_interests": ["Game", "Sport"], "click_time": 1497014222380,
                "device_type": "desktop", "click_url": "./home", "click_location": "12.12.12.12",
            },
        ]  # fmt: skip
        # Edna moves: clicks go by the version of their own time; then she is deleted.
        connection.execute(b"CREATE MATERIALIZED VIEW users_now AS SELECT userid, regionid FROM users")
        topics.put(names["users"], ("User_4", {**EDNA, "regionid": "Region_9"}, 20), ("User_4", None, 40))
        # A changelog from which nothing has come for a while holds no click back: it is read first.
        now = b"SELECT userid FROM clickstream_db.public.users_now"
        clickstream.wait_for(lambda: connection.execute(now).fetchall() == [("User_6",)], 60, "Edna is still there")
        topics.put(
            names["clicks"],
            (None, click("User_4", "./cart"), 15),
            (None, click("User_4", "./cart"), 25),
            (None, click("User_6", "./home"), 30),
            (None, click("User_4", "./cart"), 45),
        )
        regions = [(row["click_url"], row["user_regionid"]) for row in topics.values("user_clicks", 5)]
        assert sorted(regions) == [
            ("./cart", "Region_6"), ("./cart", "Region_9"),
            ("./home", "Region_6"), ("./home", "Region_9"), ("./home", "Region_9"),
        ]  # fmt: skip
        counts: dict[tuple[str, str], int] = {}
        deadline = time.monotonic() + 60
        expected = {
            ("./home", "Region_6"): 1, ("./home", "Region_9"): 2, ("./cart", "Region_6"): 1, ("./cart", "Region_9"): 1,
        }  # fmt: skip
        while counts != expected:
            assert time.monotonic() < deadline, counts
            for row in topics.values("url_region_click_count", 4):
                counts[row["click_url"], row["user_regionid"]] = row["url_region_click_count"]


def test_several_stores_in_queries(server: LiveServer, topics: Topics, names: dict[str, str]) -> None:
    with server.connect() as connection:

        def run(sql: str) -> list[Any]:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

        run(f"CREATE STORE kinesis_store WITH ('type' = KAFKA, 'uris' = '{topics.bootstrap}')")
        run(f"CREATE STORE kafka_store WITH ('type' = KAFKA, 'uris' = '{topics.bootstrap}')")
        run(
            "CREATE STREAM pageviews_kinesis (viewtime BIGINT, userid VARCHAR, pageid VARCHAR) WITH ("
            f"'store'='kinesis_store', 'topic'='{names['pageviews']}', 'value.format'='JSON', 'timestamp'='viewtime')"
        )
        run(
            "CREATE STREAM users_kafka (registertime BIGINT, userid VARCHAR, regionid VARCHAR, gender VARCHAR) WITH ("
            f"'store'='kafka_store', 'topic'='{names['ds_users']}', 'value.format'='JSON', 'timestamp'='registertime')"
        )
        run(
            "CREATE STREAM pageviews_kafka WITH ('store'='kafka_store', 'topic.partitions' = 1, 'topic.replicas' = 1) "
            "AS SELECT * FROM pageviews_kinesis"
        )
        run(
            "CREATE STREAM pageviews_enriched WITH ('store'='kinesis_store') AS SELECT p.viewtime, p.userid, p.pageid, "
            "u.regionid, u.gender FROM pageviews_kinesis p JOIN users_kafka u WITHIN 5 MINUTES ON p.userid = u.userid"
        )
        views = [
            {"viewtime": 1_000_000, "userid": "User_1", "pageid": "Page_1"},
            {"viewtime": 1_360_000, "userid": "User_1", "pageid": "Page_2"},
            {"viewtime": 1_000_000, "userid": "User_2", "pageid": "Page_3"},
        ]
        users = [
            {"registertime": 1_060_000, "userid": "User_1", "regionid": "Region_1", "gender": "FEMALE"},
            {"registertime": 1_400_000, "userid": "User_2", "regionid": "Region_2", "gender": "MALE"},  # too late
        ]
        topics.put(names["pageviews"], *((None, view, 0) for view in views))
        topics.put(names["ds_users"], *((None, user, 0) for user in users))
        copied = topics.values("pageviews_kafka", 3)
        assert sorted(copied, key=lambda row: row["pageid"]) == views
        enriched = topics.values("pageviews_enriched", 2)
        assert sorted(enriched, key=lambda row: row["pageid"]) == [
            {**views[0], "regionid": "Region_1", "gender": "FEMALE"},
            {**views[1], "regionid": "Region_1", "gender": "FEMALE"},  # just five minutes after
        ]
        ((_, _, details, _),) = run("DESCRIBE ENTITY pageviews_enriched IN STORE kinesis_store")
        assert details["partitions"] == "2"  # as the left-most source's
