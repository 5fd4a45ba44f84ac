"""Which messages are tried on the event loop, and the frames that are looked at without being taken."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Sequence

import pytest

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.pgwire import at_once
from mvserver.pgwire.codec import Frame, FrameReader


class Short:
    """Statement "s" and the text "short" are short."""

    at_once = False

    def is_short(self, statement: str) -> bool:
        return statement == "s"

    def is_short_query(self, text: str) -> bool:
        return text == "short"

    def is_short_text(self, text: str, parameter_oids: Sequence[int]) -> bool:
        return text == "short" and not any(parameter_oids)


def _parse(name: str, text: str, *oids: int) -> tuple[str, bytes]:
    body = name.encode() + b"\0" + text.encode() + b"\0" + struct.pack(f"!H{len(oids)}I", len(oids), *oids)
    return "P", body


def _bind(statement: str) -> tuple[str, bytes]:
    return "B", b"\0" + statement.encode() + b"\0" + b"\0" * 6


def _query(text: str) -> tuple[str, bytes]:
    return "Q", text.encode() + b"\0"


DESCRIBE = ("D", b"P\0")
EXECUTE = ("E", b"\0" + struct.pack("!i", 0))
EXECUTE_TEN = ("E", b"\0" + struct.pack("!i", 10))
SYNC = ("S", b"")
FLUSH = ("H", b"")
CLOSE = ("C", b"Ss\0")


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([_query("short")], True),
        ([_query("long")], False),
        ([_query("short"), _query("long")], False),
        ([_bind("s"), DESCRIBE, EXECUTE, SYNC], True),
        ([_bind("t"), DESCRIBE, EXECUTE, SYNC], False),
        ([_parse("", "short"), _bind(""), DESCRIBE, EXECUTE, SYNC], True),
        ([_parse("", "short"), FLUSH], True),
        ([_parse("", "long"), _bind(""), EXECUTE, SYNC], False),
        ([_parse("", "short", 23), _bind(""), EXECUTE, SYNC], False),
        ([_bind("s"), EXECUTE, _bind("s"), EXECUTE, SYNC], True),
        ([_bind("s"), EXECUTE_TEN, SYNC], False),  # it may be suspended
        ([EXECUTE, SYNC], False),  # perhaps of a suspended portal
        ([SYNC], False),
        ([_bind("s"), EXECUTE, CLOSE, SYNC], False),
        ([("X", b"")], False),
        ([("d", b"x")], False),
    ],
)
def test_short_statements_are_those_from_parse_or_bind_to_sync(
    messages: list[tuple[str, bytes]], expected: bool
) -> None:
    assert at_once.are_short([Frame(ord(kind), body) for kind, body in messages], Short()) is expected


@pytest.mark.parametrize("body", [b"", b"\0", b"no end", b"\xff\0"])
def test_a_malformed_message_is_no_short_one(body: bytes) -> None:
    for kind in "PBQ":
        with contextlib.suppress(SqlError):
            assert not at_once.are_short([Frame(ord(kind), body)], Short())


def _framed(kind: str, body: bytes) -> bytes:
    return kind.encode() + struct.pack("!I", len(body) + 4) + body


def test_waiting_frames_are_the_next_ones_and_stay() -> None:
    reader = FrameReader(limits.MESSAGE_BYTES_MAX)
    reader.startup = False
    first, second, begun = _framed("Q", b"one\0"), _framed("S", b""), _framed("Q", b"three\0")
    reader.feed(first + second + begun[:-2])
    for _ in range(2):
        assert list(reader.waiting()) == [Frame(ord("Q"), b"one\0"), Frame(ord("S"), b"")]
    assert reader.next() == Frame(ord("Q"), b"one\0")
    assert list(reader.waiting()) == [Frame(ord("S"), b"")]
    reader.feed(begun[-2:])
    assert [frame.body for frame in reader.waiting()] == [b"", b"three\0"]


def test_a_frame_of_impossible_length_ends_the_look() -> None:
    reader = FrameReader()
    reader.startup = False
    reader.feed(_framed("S", b"") + b"Q" + struct.pack("!I", 3) + b"xyz")
    assert list(reader.waiting()) == [Frame(ord("S"), b"")]
