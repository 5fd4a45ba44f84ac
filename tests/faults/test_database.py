"""The view database is derived: lost or damaged it is set aside and rebuilt, or refused by name where it cannot be."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from tests.faults.live import LiveServer

pytestmark = pytest.mark.spark


def _write(folder: Path, name: str, urls: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(json.dumps({"url": url}) + "\n" for url in urls))
    hidden.rename(folder / name)


@pytest.mark.night
def test_file_views_survive_the_loss_of_the_database_and_say_when_they_cannot(server: LiveServer) -> None:
    folder = server.data / "files" / "events"
    _write(folder, "a.json", ["./home", "./home", "./cart"])
    _write(folder, "b.json", ["./home"])
    server.start()
    server.run(
        "CREATE STORE f WITH ('type' = FILE, 'uris' = '.')",
        "CREATE STREAM events (url VARCHAR) WITH ('store' = 'f', 'topic' = 'events', 'value.format' = 'json')",
        "CREATE MATERIALIZED VIEW v AS SELECT url, count(*) AS c FROM events GROUP BY url",
    )
    truth = Counter({("./home",): 3, ("./cart",): 1})
    server.wait_equal("SELECT url, c FROM v", truth)

    # Deleted while the server is down: rebuilt from the files.
    server.kill()
    for file in server.data.glob("views.duckdb*"):
        file.unlink()
    _write(folder, "c.json", ["./cart"])
    truth[("./cart",)] += 1
    server.start()
    server.wait_equal("SELECT url, c FROM v", truth)

    # Damaged: set aside, kept, rebuilt.
    server.kill()
    database = server.data / "views.duckdb"
    content = bytearray(database.read_bytes())
    content[:4096] = os.urandom(4096)
    database.write_bytes(content)
    for wal in server.data.glob("views.duckdb.wal"):
        wal.unlink()
    server.start()
    server.wait_equal("SELECT url, c FROM v", truth)
    assert list(server.data.glob("views.duckdb.damaged-*"))

    # The source no longer has all of it: never a partial answer that looks whole.
    server.kill()
    for file in server.data.glob("views.duckdb*"):
        file.unlink()
    (folder / "a.json").unlink()
    server.start()
    server.wait_for(lambda: server.states()["v"][0] == "FAILED", 60, "the view did not fail")
    assert 'file "a.json"' in (server.states()["v"][1] or "")
    with server.connect() as connection, pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as refused:
        connection.execute("SELECT * FROM v")
    assert "REFRESH MATERIALIZED VIEW" in (refused.value.diag.message_hint or "")
    server.run("REFRESH MATERIALIZED VIEW v")
    left = Counter({("./home",): 1, ("./cart",): 1})
    server.wait_equal("SELECT url, c FROM v", left)
    notes = server.query("SELECT note FROM mv_catalog.queries")
    assert notes == [("rebuilt without 1 files that are gone or changed: a.json",)]


def test_a_file_that_changes_after_it_was_read_is_a_named_error(server: LiveServer) -> None:
    folder = server.data / "files" / "events"
    _write(folder, "a.json", ["./home"])
    server.start()
    server.run(
        "CREATE STORE f WITH ('type' = FILE, 'uris' = '.')",
        "CREATE STREAM events (url VARCHAR) WITH ('store' = 'f', 'topic' = 'events', 'value.format' = 'json')",
        "CREATE MATERIALIZED VIEW v AS SELECT url, count(*) AS c FROM events GROUP BY url",
    )
    server.wait_equal("SELECT url, c FROM v", {("./home",): 1})
    with (folder / "a.json").open("a") as file:
        file.write('{"url": "./late"}\n')
    server.run("CREATE MATERIALIZED VIEW w AS SELECT url, count(*) AS c FROM events GROUP BY url")
    server.wait_for(lambda: server.states()["w"][0] == "FAILED", 60, "the new view did not fail")
    assert "changed after it was read" in (server.states()["w"][1] or "")
    assert server.query("SELECT url, c FROM v") == [("./home", 1)]
