"""Kills from outside (``kill -9``) in the midst of a long first round: no query is to blame for them."""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest

from tests.faults.live import LiveServer

pytestmark = [pytest.mark.spark, pytest.mark.night]
FILES, LINES = 60, 6_000
KILLS = 4
UNDER_WAY_S = 240.0  # a bound for a machine that many share


def wait_under_way(server: LiveServer) -> None:
    """Until a batch is evaluated, as the next start would know it."""
    notes = server.data / "spark" / "batches"
    deadline = time.monotonic() + UNDER_WAY_S
    while not notes.exists() or 1 not in notes.read_bytes():
        assert time.monotonic() < deadline, server.log_tail()
        time.sleep(0.005)


def words_now(server: LiveServer) -> Counter[tuple[str]]:
    """Also while the view is filled."""
    with server.connect() as connection:
        connection.execute("SET mv.read_while_filling = on")
        return Counter({(word,): n for word, n in connection.execute("SELECT word, n FROM words").fetchall()})


def test_a_query_outlives_kills_of_the_server_during_its_first_round(server: LiveServer) -> None:
    server.start()
    folder = server.data / "files" / "lines"
    folder.mkdir(parents=True)
    truth: Counter[tuple[str]] = Counter()
    for number in range(FILES):
        words = [f"w{(number + line) % 7}" for line in range(LINES)]
        truth.update((word,) for word in words)
        (folder / f"{number:03}.json").write_text("".join(json.dumps({"word": word}) + "\n" for word in words))
    server.run(
        "CREATE STORE f WITH ('type' = FILE, 'uris' = '.')",
        "CREATE STREAM lines (word VARCHAR) WITH ('store' = 'f', 'value.format' = 'json')",
        "CREATE MATERIALIZED VIEW words AS SELECT word, count(*) AS n FROM lines GROUP BY word",
    )
    for _ in range(KILLS):
        wait_under_way(server)
        server.kill()
        server.start()
    server.wait_for(lambda: words_now(server) == truth, UNDER_WAY_S, "records are missing, or doubled")
    assert server.states()["words"] == ("RUNNING", None)
