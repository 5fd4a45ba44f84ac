"""Spark's JVM is killed and stopped under load: it comes back by itself, and views and topics are exact.

The sources are a topic and a directory; one of the queries writes to a topic.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from mvserver.demo.kafka_broker import KafkaBroker
from tests.faults.live import STREAM, Clicks, LiveServer, check_views, create_views, flowing, topic_values

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

RESTART_TIMEOUT_S = 240.0
KILLS = int(os.environ.get("MVSERVER_TEST_KILLS", "10"))
TRUE_CAUSES = (
    "Spark ended (signal 9)",
    "Spark ended (signal 15)",
    "Spark has not answered for ",
    "Spark does not answer any more: ",
)


class Load:
    """Clicks for the topic, and lines for the directory, with the truth of both."""

    def __init__(self, server: LiveServer, broker: KafkaBroker, topic: str, copy: str, seed: int) -> None:
        self.server = server
        self.clicks = Clicks(seed, broker.bootstrap, topic)
        self.lines: Counter[tuple[str]] = Counter()
        self.copy = copy
        self._folder = server.data / "files" / "lines"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._written = 0

    def set_up(self, broker: KafkaBroker, topic: str) -> None:
        self.server.run(
            f"CREATE STORE s WITH ('type' = KAFKA, 'uris' = '{broker.bootstrap}')",
            STREAM.format(topic=topic),
            "CREATE STORE f WITH ('type' = FILE, 'uris' = '.')",
            "CREATE STREAM lines (word VARCHAR) WITH ('store' = 'f', 'value.format' = 'json')",
            "CREATE MATERIALIZED VIEW words AS SELECT word, count(*) AS n FROM lines GROUP BY word",
            f"CREATE STREAM copied WITH ('store' = 's', 'topic' = '{self.copy}') AS SELECT n, url FROM clicks",
        )
        create_views(self.server)

    def feed(self) -> None:
        self.clicks.produce(100)
        words = [f"w{(self._written + i) % 7}" for i in range(50)]
        self._written += len(words)
        self.lines.update((word,) for word in words)
        aside = self._folder / f".{self._written}"
        aside.write_text("".join(json.dumps({"word": word}) + "\n" for word in words))
        aside.rename(self._folder / f"{self._written:09d}.json")

    def check(self, bootstrap: str) -> None:
        check_views(self.server, self.clicks)
        self.server.wait_equal("SELECT word, n FROM words", self.lines)
        copies = [row["n"] for row in topic_values(bootstrap, self.copy, self.clicks.fed, timeout_s=180)]
        assert sorted(copies) == list(range(1, self.clicks.fed + 1))

    def visible(self) -> int:
        """Clicks and lines."""
        ((found,),) = self.server.query(
            "SELECT (SELECT coalesce(sum(visits), 0) FROM by_url) + (SELECT coalesce(sum(n), 0) FROM words)"
        )
        return int(found)

    # --- Spark ------------------------------------------------------------------------------------------------------
    def jvm(self) -> int:
        (found,) = [pid for pid, state in children(self.server.process.pid) if state != "Z"]
        return found

    def kill_spark(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Returns when it is noticed, and the process is reaped. After SIGTERM the JVM cancels its jobs first."""
        pid = self.jvm()
        os.kill(pid, number)
        self.server.wait_for(lambda: all(each != pid for each, _ in children(self.server.process.pid)), 30, "a zombie")
        self.server.wait_for(lambda: "RUNNING" not in self.states(), 30, "the end of Spark is not noticed")

    def copied(self) -> str:
        """How far the query that writes has come."""
        ((position,),) = self.server.query("SELECT position FROM mv_catalog.queries WHERE sink LIKE '%copied'")
        return str(position)

    def states(self) -> set[str]:
        return {state for state, _ in self.server.states().values()}

    def wait_running(self) -> None:
        """The causes that are shown on the way are true. A broker that is young may have no coordinator yet."""
        deadline = time.monotonic() + RESTART_TIMEOUT_S
        while True:
            found = self.server.states()
            for state, cause in found.values():
                assert state in ("STALLED", "STARTING", "FILLING", "RUNNING"), found
                if state == "STALLED":
                    assert cause is not None, found
                    if not (cause.startswith(TRUE_CAUSES) or "Coordinator" in cause):
                        raise AssertionError(f"not a true cause, or one that is not known: {cause}")
            if all(state == "RUNNING" for state, _ in found.values()):
                return
            assert time.monotonic() < deadline, (found, self.server.log_tail())
            time.sleep(0.1)


def children(parent: int) -> list[tuple[int, str]]:
    """(pid, state) of the child processes of a process."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                fields = (process / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            if int(fields[1]) == parent:
                found.append((int(process.name), fields[0]))
    return found


@pytest.fixture
def load(server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], seed: int) -> Load:
    server.start()
    topic, copy = kafka_topic(4), kafka_topic(1)
    made = Load(server, kafka_broker, topic, copy, seed)
    made.set_up(kafka_broker, topic)
    return made


def test_spark_is_killed_and_stopped_under_load(load: Load, kafka_broker: KafkaBroker) -> None:
    server = load.server
    with flowing(load.feed, 0.4):
        load.wait_running()
        load.kill_spark()
        with server.connect() as connection:
            connection.execute("SELECT * FROM by_url")
            notices: list[str] = []
            connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
            connection.execute("SELECT * FROM words")  # what is there is answered
            assert notices == ['materialized view "words" is not kept up to date: its query is STALLED']
            connection.execute("SET statement_timeout = '300ms'")
            with pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute("CREATE MATERIALIZED VIEW never AS SELECT word FROM lines")
        server.run("CREATE MATERIALIZED VIEW later AS SELECT count(*) AS n FROM lines")  # waits until Spark is there
        load.wait_running()
        pid = load.jvm()
        os.kill(pid, signal.SIGSTOP)
        server.wait_for(lambda: load.states() == {"STALLED"}, 60, "a stopped JVM is not noticed")
        cause = server.states()["words"][1] or ""
        assert cause.startswith("Spark has not answered for ")
        assert "its process is stopped" in cause
        with server.connect() as connection:  # what hangs in the JVM can be left
            connection.execute("SET statement_timeout = '300ms'")
            with pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute("CREATE MATERIALIZED VIEW never AS SELECT word FROM lines")
        os.kill(pid, signal.SIGCONT)
        load.wait_running()
        load.kill_spark(signal.SIGTERM)
        load.wait_running()
    load.check(kafka_broker.bootstrap)
    assert server.query("SELECT n FROM later") == [(sum(load.lines.values()),)]
    assert len(list((server.data / "spark").glob("jvm-*"))) == 1
    assert server.stop() == 0


@pytest.mark.night
def test_ten_kills_of_spark(load: Load, kafka_broker: KafkaBroker, seed: int) -> None:
    chance = random.Random(seed)
    with flowing(load.feed, 0.4):
        for number in range(KILLS):
            load.wait_running()
            if number % 2 == 0:  # else it may come amid the first batch
                seen, copied = load.visible(), load.copied()
                load.server.wait_for(lambda seen=seen: load.visible() > seen, 240, "no batch is committed")
                # also of the query that writes: three ends amid the same small batch would be held against it
                load.server.wait_for(lambda copied=copied: load.copied() != copied, 240, "no batch is written")
            more = load.clicks.fed + chance.randint(0, 500)
            load.server.wait_for(lambda more=more: load.clicks.fed >= more, 240, "the clicks do not flow")
            load.kill_spark(chance.choice((signal.SIGKILL, signal.SIGTERM)))
        load.wait_running()
    load.check(kafka_broker.bootstrap)
    assert load.server.stop() == 0


@pytest.mark.night
def test_a_batch_that_ended_spark_twice_is_left_out_and_tried_again_when_asked(
    load: Load, kafka_broker: KafkaBroker
) -> None:
    """As a former life of the server has noted it: of the directory, and of the query that writes."""
    server = load.server
    load.feed()
    load.check(kafka_broker.bootstrap)
    positions = {}
    for query, sink, position in server.query("SELECT id, sink, position FROM mv_catalog.queries"):
        positions[sink.rsplit(".", 1)[-1]] = query, json.loads(position)
    ((pipeline,),) = server.query("SELECT id FROM mv_catalog.pipelines WHERE store LIKE '%f'")
    assert server.stop() == 0
    notes = [
        {"source": source, "place": "", "start": start, "crashes": 2, "kills": 0, "cause": "Spark ended", "at": 0.0}
        for source, start in ((pipeline, positions["words"][1]), (positions["copied"][0], positions["copied"][1]))
    ]
    (server.data / "spark" / "suspects.json").write_text(json.dumps(notes))
    server.start()
    load.feed()
    check_views(server, load.clicks)
    server.wait_for(lambda: server.states()["words"][0] == "FAILED", 60, "the directory is not isolated")
    server.wait_for(lambda: server.states()["copied"][0] == "FAILED", 60, "the query that writes is not isolated")
    states = server.states()
    assert "Spark ended each time that it evaluated the next records" in (states["words"][1] or "")
    assert states["by_url"][0] == "RUNNING"
    server.run(*(f"RESTART QUERY '{positions[sink][0]}'" for sink in ("words", "copied")))
    load.check(kafka_broker.bootstrap)


@pytest.mark.night
def test_views_over_a_topic_that_are_made_and_dropped_leave_nothing(load: Load) -> None:
    server, pid = load.server, load.server.process.pid
    load.clicks.produce(100)

    def look() -> tuple[int, int]:
        """Handles and threads of the server."""
        return len(list(Path(f"/proc/{pid}/fd").iterdir())), len(list(Path(f"/proc/{pid}/task").iterdir()))

    server.run("DROP MATERIALIZED VIEW by_url", "DROP MATERIALIZED VIEW by_device", "DROP MATERIALIZED VIEW by_user")
    seen = []
    for _ in range(20):
        server.run("CREATE MATERIALIZED VIEW one AS SELECT url, count(*) AS n FROM clicks GROUP BY url")
        assert server.query("SELECT sum(n) FROM one") == [(100,)]
        server.run("DROP MATERIALIZED VIEW one")
        seen.append(look())
    early = max(handles for handles, _ in seen[2:6]), max(threads for _, threads in seen[2:6])
    server.wait_for(
        lambda: all(now <= before + 3 for now, before in zip(look(), early, strict=True)), 60, f"{early}, then {seen}"
    )
