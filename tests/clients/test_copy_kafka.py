"""COPY FROM STDIN into a topic: one transaction of the broker for each of ours."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from mvserver.demo.kafka_broker import KafkaBroker
from tests.clients.live_server import LiveServer

pytestmark = pytest.mark.kafka


def test_copy_into_a_topic(
    own_server: LiveServer, kafka_broker: KafkaBroker, kafka_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = kafka_topic(2)

    def seen() -> list[object]:
        with psycopg.connect(own_server.conninfo, autocommit=True) as reader:
            end = reader.execute(f'DESCRIBE ENTITY "{topic}" IN STORE broker').fetchall()
            assert end
            count = sum(committed)
            rows = reader.execute(
                f"PRINT ENTITY \"{topic}\" IN STORE broker WITH ('from_beginning') LIMIT {count}"
            ).fetchall()
        return sorted((json.loads(row[1]) for row in rows), key=lambda record: record["id"])

    committed: list[int] = []
    with psycopg.connect(own_server.conninfo, autocommit=True) as connection:
        connection.execute(f"CREATE STORE broker WITH ('type' = KAFKA, 'uris' = '{kafka_broker.bootstrap}')")
        connection.execute(
            "CREATE STREAM pairs (id INTEGER NOT NULL, name VARCHAR) "
            f"WITH ('store' = 'broker', 'topic' = '{topic}', 'value.format' = 'json')"
        )
    with psycopg.connect(own_server.conninfo) as connection:
        with connection.cursor() as cursor, cursor.copy("COPY pairs FROM STDIN") as copy:
            for at in range(1_000):
                copy.write_row((at, f"name {at}"))
        connection.rollback()
        with connection.cursor() as cursor, cursor.copy("COPY pairs FROM STDIN") as copy:
            for at in range(100):
                copy.write_row((at, f"name {at}"))
        with connection.cursor() as cursor, cursor.copy("COPY pairs (name, id) FROM STDIN (FORMAT csv)") as copy:
            copy.write("x,100\n")
        connection.commit()
        committed.append(101)
    assert seen() == [*({"id": at, "name": f"name {at}"} for at in range(100)), {"id": 100, "name": "x"}]
    source = tmp_path / "pairs.csv"
    source.write_text("101,by psql\n")
    done = subprocess.run(
        ["psql", "-X", "-d", own_server.conninfo, "-c", f"\\copy pairs from '{source}' csv"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("COPY 1\n", "")
    committed.append(1)
    assert seen()[-1] == {"id": 101, "name": "by psql"}
