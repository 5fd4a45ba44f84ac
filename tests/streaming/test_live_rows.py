"""The port of a live run, spoken to as Spark's tasks do; and the passage of rows into commits."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from mvserver.streaming.live import row_server
from mvserver.streaming.live.ended import LaneEnded, TaskGone
from mvserver.streaming.live.passage import Passage
from mvserver.streaming.live.pause import LONG_COMMIT_S, PAUSE_S_MAX, PAUSE_S_MIN, CommitPause
from mvserver.streaming.live.row_server import RowServer, rows_of
from spark_sinks.duckdb.record_columns import PARTITION, PLACE, PROGRAM

SCHEMA = pa.schema([(PARTITION, pa.string()), (PLACE, pa.int64())])
POLL_S = 10.0


def batch(places: Sequence[int], partition: str = "0") -> pa.RecordBatch:
    return pa.record_batch([[partition] * len(places), pa.array(places, pa.int64())], schema=SCHEMA)


class Task:
    """What LiveRows.java says."""

    def __init__(self, server: RowServer, token: str | None = None, *, greeting: bytes | None = None) -> None:
        self.socket = socket.create_connection((server.host, server.port))
        self.socket.settimeout(30)
        schema = SCHEMA.serialize().to_pybytes()
        whole = (token or server.token).encode() + struct.pack(">qqi", 0, 0, len(schema)) + schema
        self.socket.sendall(whole if greeting is None else greeting)

    def hear(self) -> bytes:
        return self.socket.recv(1)

    def say(self, message: bytes) -> None:
        self.socket.sendall(message)

    def give(self, *batches: pa.RecordBatch) -> None:
        """Of rows that were announced, when they are asked for."""
        for each in batches:
            assert self.hear() == b"T"
            data = each.serialize().to_pybytes()
            self.say(b"B" + struct.pack(">i", len(data)) + data)


@pytest.fixture
def server() -> Iterator[RowServer]:
    with contextlib.closing(RowServer()) as made:
        yield made


def until(server: RowServer, condition: Callable[[], bool]) -> None:
    for _ in range(100):
        if condition():
            return
        server.poll(POLL_S)
    raise AssertionError("nothing came")


def connected(server: RowServer) -> Task:
    before = server.tasks
    task = Task(server)
    until(server, lambda: server.tasks > before)
    assert task.hear() == b"G"
    return task


def test_rows_wait_until_they_are_asked_for(server: RowServer) -> None:
    first, second = connected(server), connected(server)
    assert not server.ready
    second.say(b"R")
    until(server, lambda: server.ready)
    first.say(b"R")
    with ThreadPoolExecutor() as pool:
        until(server, lambda: all(task.ready for task in server._tasks))
        giving = [pool.submit(first.give, batch([1, 2])), pool.submit(second.give, batch([7], "1"))]
        found = rows_of(server.take())
        for each in giving:
            each.result(30)
    assert found.column(PLACE).to_pylist() == [1, 2, 7]
    assert not server.ready


def test_an_end_is_noticed_and_one_with_other_rows_ends_the_lane(server: RowServer) -> None:
    task, other = connected(server), connected(server)
    task.say(b"E" + struct.pack(">q", 0))
    until(server, lambda: server.tasks == 1)
    assert task.hear() == b"K"
    other.say(b"E" + struct.pack(">q", 3))
    with pytest.raises(LaneEnded, match="sent 3 rows, of which 0 have come"):
        until(server, lambda: False)


def test_a_connection_that_breaks_ends_the_lane(server: RowServer) -> None:
    task = connected(server)
    task.socket.close()
    with pytest.raises(TaskGone):
        until(server, lambda: False)


def test_a_task_that_breaks_in_the_midst_of_its_rows_ends_the_lane(server: RowServer) -> None:
    task = connected(server)
    task.say(b"R")
    until(server, lambda: server.ready)

    def half() -> None:
        assert task.hear() == b"T"
        task.say(b"B" + struct.pack(">i", 1000) + b"x" * 10)
        task.socket.close()

    thread = threading.Thread(target=half)
    thread.start()
    with pytest.raises(TaskGone):
        server.take()
    thread.join(30)


@pytest.mark.parametrize("message", [b"X", b"B"])
def test_what_makes_no_sense_ends_the_lane(server: RowServer, message: bytes) -> None:
    task = connected(server)
    task.say(message)
    with pytest.raises(LaneEnded, match="was not asked for"):
        until(server, lambda: False)


def test_rows_that_cannot_be_read_end_the_lane(server: RowServer) -> None:
    task = connected(server)
    task.say(b"R")
    until(server, lambda: server.ready)
    task.say(b"B" + struct.pack(">i", 16) + b"\xff" * 16)
    with pytest.raises(LaneEnded, match="cannot be read"):
        server.take()


@pytest.mark.parametrize(
    "greeting",
    [
        b"0" * 32 + struct.pack(">qqi", 0, 0, 10),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_whoever_is_no_task_is_sent_away_and_holds_nobody_up(server: RowServer, greeting: bytes) -> None:
    silent = Task(server, greeting=b"")
    stranger = Task(server, greeting=greeting)
    task = connected(server)
    assert server.tasks == 1
    assert stranger.socket.recv(1) == b""
    task.say(b"R")
    until(server, lambda: server.ready)
    silent.socket.close()


@pytest.mark.parametrize("length", [0, -1, row_server.SCHEMA_BYTES_MAX + 1])
def test_a_schema_has_a_bound(server: RowServer, length: int) -> None:
    stranger = Task(server, greeting=server.token.encode() + struct.pack(">qqi", 0, 0, length))
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(stranger.socket.recv, 1)
        for _ in range(100):
            if answer.done():
                break
            server.poll(0.1)
        assert answer.result(30) == b""
    assert server.tasks == 0


def test_who_does_not_say_who_it_is_goes(server: RowServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_server, "GREETING_S", 0.0)
    silent = Task(server, greeting=b"")
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(silent.socket.recv, 1)
        for _ in range(100):
            if answer.done():
                break
            server.poll(0.1)
        assert answer.result(30) == b""


# --- the passage ----------------------------------------------------------------------------------------------------
def places(rows: pa.RecordBatch) -> list[int]:
    found: list[int] = rows.column(PLACE).to_pylist()
    return found


def test_what_was_counted_is_dropped() -> None:
    passage = Passage({"0": 5, "1": 0})
    assert places(passage.admit(batch([3, 4, 5, 6]))) == [5, 6]
    assert places(passage.admit(batch([5, 6]))) == []
    assert places(passage.admit(batch([6, 7]))) == [7]
    assert places(passage.admit(batch([]))) == []
    assert passage.places == {"0": 8, "1": 0}


def test_places_may_be_left_out() -> None:
    passage = Passage({"0": 0})
    assert places(passage.admit(batch([2, 9]))) == [2, 9]
    assert places(passage.admit(batch([12]))) == [12]
    assert passage.places == {"0": 13}


@pytest.mark.parametrize("found", [[1, 3, 2], [1, 1], [2, 1]])
def test_rows_out_of_order_end_the_lane(found: list[int]) -> None:
    with pytest.raises(LaneEnded, match="out of order"):
        Passage({"0": 0}).admit(batch(found))


def test_a_partition_that_nobody_knows_ends_the_lane() -> None:
    with pytest.raises(LaneEnded, match="partitions were added"):
        Passage({"0": 0}).admit(batch([0], "1"))


def test_rows_of_several_partitions_pass_together() -> None:
    passage = Passage({"0": 1, "1": 0})
    mixed = pa.Table.from_batches([batch([0, 1]), batch([0], "1")]).combine_chunks().to_batches()[0]
    assert sorted(zip(passage.admit(mixed).column(PARTITION).to_pylist(), [1, 0], strict=True)) == [("0", 1), ("1", 0)]
    assert passage.places == {"0": 2, "1": 1}


# Of a record with several rows the last one is of program 0.
def several(*rows: tuple[int, int], partition: str = "0") -> pa.RecordBatch:
    """Places and programs."""
    place, program = zip(*rows, strict=True)
    return batch(place, partition).append_column(PROGRAM, pa.array(program, pa.int32()))


def test_a_record_passes_when_all_its_rows_are_there() -> None:
    passage = Passage({"0": 5, "1": 0})
    assert places(passage.admit(several((5, 1), (5, 1)))) == []
    assert (passage.places["0"], passage.is_within_a_record) == (5, True)
    assert places(passage.admit(several((5, 2)))) == []
    assert places(passage.admit(several((0, 1), (0, 0), partition="1"))) == [0, 0]
    found = passage.admit(several((5, 0), (7, 1), (7, 0), (9, 1)))
    assert list(zip(places(found), found.column(PROGRAM).to_pylist(), strict=True)) == [
        (5, 1), (5, 1), (5, 2), (5, 0), (7, 1), (7, 0),
    ]  # fmt: skip
    assert passage.places == {"0": 8, "1": 1}
    assert places(passage.admit(several((9, 0)))) == [9, 9]
    assert (passage.places["0"], passage.is_within_a_record) == (10, False)


def test_a_record_of_several_rows_that_was_counted_is_dropped_whole() -> None:
    passage = Passage({"0": 6})
    assert places(passage.admit(several((5, 1), (5, 1)))) == []
    assert places(passage.admit(several((5, 0), (6, 1), (6, 0)))) == [6, 6]
    assert passage.places == {"0": 7}


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 1), (2, 0)],  # the first record is not whole
        [(1, 1), (1, 0), (1, 0)],
        [(2, 1), (2, 0), (1, 1), (1, 0)],
        [(1, 0), (2, 1), (1, 0)],
    ],
)
def test_rows_of_records_that_are_mixed_end_the_lane(rows: list[tuple[int, int]]) -> None:
    with pytest.raises(LaneEnded, match="out of order"):
        Passage({"0": 0}).admit(several(*rows))


# --- the pause ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("commit_s", "pause_s"),
    [
        (0.0, PAUSE_S_MIN),
        (0.012, 0.012),
        (0.02, PAUSE_S_MAX),
        (LONG_COMMIT_S, PAUSE_S_MAX),
        (0.05, 0.0128),
        (0.08, PAUSE_S_MIN),
        (9.0, PAUSE_S_MIN),
    ],
)
def test_the_pause_is_as_long_as_short_commits_and_gives_way_to_long_ones(commit_s: float, pause_s: float) -> None:
    pause = CommitPause()
    assert pause.left_s(100.0) == 0
    for _ in range(5):
        pause.committed(100.0, commit_s)
    assert pause.left_s(100.0) == pytest.approx(pause_s)
    assert pause.left_s(101.0) == 0


def test_it_listens_at_the_address_that_it_is_given() -> None:
    with contextlib.closing(RowServer("views.example", "127.0.0.2")) as server:
        assert server.host == "views.example"
        socket.create_connection(("127.0.0.2", server.port)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", server.port))


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="the machine has no addresses of IPv6")
def test_it_listens_at_addresses_of_ipv6() -> None:
    with contextlib.closing(RowServer("::1", "::1")) as server:
        socket.create_connection(("::1", server.port)).close()


def test_an_address_of_another_machine_ends_the_lane() -> None:
    with pytest.raises(LaneEnded, match=r"cannot listen on 192\.0\.2\.1"):
        RowServer("192.0.2.1", "192.0.2.1")
