"""Each way of damaging the views' file leads to right content: noticed, set aside and rebuilt, or without effect."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.faults.live import CATCH_UP_TIMEOUT_S, LiveServer

pytestmark = pytest.mark.spark

_HEADERS, _BLOCK = 12_288, 262_144
_ROWS = 60_000
_KEYS = 20_000
_ALLOWED = ("closed", "XX001", "55000", "57P01", "57P03", "58030")
_READS = (
    "SELECT count(*), sum(c), sum(s) FROM v",
    "SELECT count(DISTINCT k), max(k) FROM v",
    "SELECT c, s FROM v WHERE k = 'key-777'",
)


def _feed(server: LiveServer, name: str, first: int, rows: int) -> None:
    folder = server.data / "files" / "events"
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(json.dumps({"k": f"key-{n % _KEYS}", "n": n}) + "\n" for n in range(first, first + rows)))
    hidden.rename(folder / name)


def _answers(first: int, rows: int) -> list[list[tuple[object, ...]]]:
    """Computed from what was written."""
    counts, sums = Counter[str](), Counter[str]()
    for n in range(first, first + rows):
        counts[f"key-{n % _KEYS}"] += 1
        sums[f"key-{n % _KEYS}"] += n
    return [
        [(len(counts), sum(counts.values()), sum(sums.values()))],
        [(len(counts), max(counts))],
        [(counts["key-777"], sums["key-777"])],
    ]


def _make(server: LiveServer) -> None:
    _feed(server, "a.json", 0, _ROWS)
    server.start()
    server.run(
        "CREATE STORE f WITH ('type' = FILE, 'uris' = '.')",
        "CREATE STREAM events (k VARCHAR, n BIGINT) WITH ('store' = 'f', 'topic' = 'events', 'value.format' = 'json')",
        "CREATE MATERIALIZED VIEW v AS SELECT k, count(*) AS c, sum(n) AS s FROM events GROUP BY k",
    )
    server.wait_for(lambda: _asked(server) == _answers(0, _ROWS), CATCH_UP_TIMEOUT_S, "the view was not filled")


def _asked(server: LiveServer) -> list[list[tuple[object, ...]]] | str:
    """The answers, or the SQLSTATE of the first error; damage shows as an error that says so, never as XX000."""
    try:
        with server.connect() as connection:
            return [list(connection.execute(question).fetchall()) for question in _READS]
    except psycopg.Error as error:
        found = error.sqlstate or "closed"  # the connection: it begins anew
        if found not in _ALLOWED:
            raise
        return found


def _comes_right(server: LiveServer, rows: int) -> None:
    deadline = time.monotonic() + 2 * CATCH_UP_TIMEOUT_S  # Spark may have to start twice
    truth = _answers(0, rows)
    while (found := _asked(server)) != truth:
        if isinstance(found, list) and all(isinstance(part, list) for part in found):
            total = found[0][0][1]  # an older state is a prefix of the source: it goes on from there
            assert total is None or int(str(total)) <= rows, found
        assert server.process.poll() is None, server.log_tail()
        assert time.monotonic() < deadline, (found, server.log_tail())
        time.sleep(0.2)


def _flip(content: bytearray, at: int) -> None:
    content[at] ^= 1 << random.Random(at).randrange(8)


def _damages(size: int) -> Iterator[tuple[str, Callable[[bytearray], None]]]:
    """By name: what is done to the file's content."""
    for at in (3, 8, 20, 100, 4_100, 5_000, 8_200, 9_000):
        yield f"header byte {at}", lambda content, at=at: _flip(content, at)  # type: ignore[misc]
    for block in range((size - _HEADERS) // _BLOCK):
        at = _HEADERS + block * _BLOCK + 1_000 + 777 * block
        yield f"block {block}", lambda content, at=at: _flip(content, at)  # type: ignore[misc]
    for length in (0, 1, 100, 4_096, 8_192, _HEADERS, size // 2, size - _BLOCK, size - 1):
        yield f"cut to {length}", lambda content, length=length: content.__delitem__(slice(length, None))  # type: ignore[misc]
    for first, last in ((0, 4_096), (4_096, 12_288), (_HEADERS, _HEADERS + _BLOCK), (size // 2, size)):
        yield f"zeros {first}-{last}", lambda content, a=first, b=last: content.__setitem__(slice(a, b), bytes(b - a))  # type: ignore[misc]


def _damaged_files(server: LiveServer) -> set[Path]:
    return {path for path in server.data.glob("views.duckdb.damaged-*") if path.suffix != ".wal"}


def _put_back(server: LiveServer, content: bytes) -> None:
    """The undamaged file, as at the beginning of each case."""
    for path in server.data.glob("views.duckdb*"):
        path.unlink()
    (server.data / "views.duckdb").write_bytes(content)


def test_a_flipped_byte_in_a_block_is_met_set_aside_and_rebuilt_without_help(server: LiveServer) -> None:
    _make(server)
    assert server.stop() == 0
    database = server.data / "views.duckdb"
    content = bytearray(database.read_bytes())
    for block in range(1, (len(content) - _HEADERS) // _BLOCK):  # all but the root of the metadata: it opens
        _flip(content, _HEADERS + block * _BLOCK + 5_000)
    database.write_bytes(content)
    server.start()
    pid = server.process.pid
    _comes_right(server, _ROWS)
    assert server.process.poll() is None
    assert server.process.pid == pid
    (kept,) = _damaged_files(server)
    assert kept.read_bytes() == content
    assert not (server.data / "views.duckdb.is-damaged").exists()
    assert "Traceback" not in server.log_tail()


@pytest.mark.night
def test_every_damage_is_noticed_and_mended_or_without_effect(server: LiveServer) -> None:
    _make(server)
    assert server.stop() == 0
    content = (server.data / "views.duckdb").read_bytes()
    for name, damage in _damages(len(content)):
        _put_back(server, content)
        damaged = bytearray(content)
        damage(damaged)
        (server.data / "views.duckdb").write_bytes(damaged)
        print(name, flush=True)
        server.start()
        _comes_right(server, _ROWS)
        assert server.stop() == 0, name


@pytest.mark.night
def test_every_damage_to_the_write_ahead_log_is_mended(server: LiveServer) -> None:
    _make(server)
    assert server.stop() == 0
    server.start()
    _feed(server, "b.json", _ROWS, 5_000)
    rows = _ROWS + 5_000
    _comes_right(server, rows)
    server.kill()
    content = (server.data / "views.duckdb").read_bytes()
    log = (server.data / "views.duckdb.wal").read_bytes()
    places = [0, 9, 40, len(log) // 3, len(log) // 2, len(log) - 40, len(log) - 1]
    damages = [(f"flip {at}", log[:at] + bytes([log[at] ^ 4]) + log[at + 1 :]) for at in places]
    damages += [(f"cut {at}", log[:at]) for at in places]
    damages += [(f"zeros {at}", log[:at] + bytes(len(log[at : at + 300])) + log[at + 300 :]) for at in places]
    for name, damaged in damages:
        _put_back(server, content)
        (server.data / "views.duckdb.wal").write_bytes(damaged)
        print(name, flush=True)
        server.start()
        _comes_right(server, rows)
        server.kill()
