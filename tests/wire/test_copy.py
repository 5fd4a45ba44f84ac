"""COPY TO STDOUT message by message, and what a client costs that does not take it."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from mvserver.front import CopyOut, Field
from mvserver.pgwire.copy_out import copy_framer
from tests.wire.client import SYNC, Driven, RawClient, bind, describe, errors, execute, kinds, parse, query, split, tags
from tests.wire.server import Running, wait_for
from tests.wire.toy import ToyBackend


@pytest.fixture
def engine() -> Driven:
    driven = Driven(ToyBackend())
    driven.log_in()
    return driven


def bodies(heard: bytes, wanted: str) -> list[bytes]:
    return [body for kind, body in split(heard) if kind == wanted]


def test_text(engine: Driven) -> None:
    heard = engine.say(query("copy text 2"))
    assert kinds(heard) == "HddcCZ"
    assert bodies(heard, "H") == [struct.pack("!bH5h", 0, 5, 0, 0, 0, 0, 0)]
    assert bodies(heard, "d") == [
        b"0\tname-0\t0\t2023-11-14 22:13:20\tt\n",
        b"1\tname-1\t0.125\t2023-11-14 22:13:20.001\tf\n",
    ]
    assert tags(heard) == ["COPY 2"]


def test_csv_has_its_header_in_a_message_of_its_own(engine: Driven) -> None:
    heard = engine.say(query("copy csv 1"))
    assert bodies(heard, "d") == [b"id,name,value,at,ok\n", b"0,name-0,0,2023-11-14 22:13:20,t\n"]
    assert tags(heard) == ["COPY 1"]


def test_binary_has_signature_and_trailer(engine: Driven) -> None:
    signature = b"PGCOPY\n\xff\r\n\0" + bytes(8)
    heard = engine.say(query("copy binary 40 30"))
    assert bodies(heard, "H") == [struct.pack("!bH5h", 1, 5, 1, 1, 1, 1, 1)]
    data = bodies(heard, "d")
    assert len(data) == 41
    assert data[0].startswith(signature + struct.pack("!hiqi", 5, 8, 0, 6) + b"name-0")
    assert data[39].startswith(struct.pack("!hiqi", 5, 8, 39, 7) + b"name-39")
    assert data[40] == b"\xff\xff"
    assert bodies(engine.say(query("copy binary 0")), "d") == [signature + b"\xff\xff"]


def test_extended(engine: Driven) -> None:
    """Row limits are not for COPY, and it runs once."""
    heard = engine.say(parse("copy text 3"), bind(), describe("P"), execute(1), execute(), SYNC)
    assert kinds(heard) == "12nHdddcCEZ"
    assert [error["C"] for error in errors(heard)] == ["55000"]


def test_a_client_that_stops_reading_costs_bounded_memory() -> None:
    with Running(write_high_water=1024 * 1024) as running, RawClient(running.port) as slow:
        slow.log_in()
        slow.send(query("copy text 20000000 5000"))
        backend = running.backend
        connection = next(iter(running.server._connections))
        wait_for(lambda: connection._parked and not connection._busy)
        seen = backend.pulled
        assert seen * 50 < 16 * 1024 * 1024  # the socket buffers of both ends, the high-water mark, and a few pieces
        slow.exactly(20_000_000)
        assert backend.pulled > seen


def test_large_and_small_batches_are_written_alike() -> None:
    words = ["plain", "a\tb", "a\\b", None, "", '"q"', "x,y", "\r\n", "\\."]
    whole = pa.record_batch([pa.array(words * 5)], names=["t"])
    for options in (CopyOut(), CopyOut("csv", ",", ""), CopyOut("csv", ";", "nil", force_quote=(True,))):
        framer = copy_framer(options, (Field("t", 25),), "UTC")
        alone = b"".join(bytes(framer.frame(whole.slice(at, 1))) for at in range(whole.num_rows))
        assert bytes(framer.frame(whole)) == alone
        assert framer.frame(whole.slice(0, 0)) == b""
