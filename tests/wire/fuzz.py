"""Hostile clients: what programs really send, cut, bent, spliced and made up; the same from one seed each time."""

from __future__ import annotations

import gc
import os
import random
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.wire.client import (
    FLUSH,
    SYNC,
    TERMINATE,
    Driven,
    bind,
    close,
    describe,
    errors,
    execute,
    message,
    parse,
    query,
    special,
    split,
    startup,
)

COPY_DONE, COPY_FAIL = message(b"c"), message(b"f", b"x\0")
# what a server may say after it has answered the start-up packet
SERVER_KINDS = frozenset("123CDEGHINRSTZcdnstvKW")
_LENGTHS = (0, 1, 3, 4, 5, 7, 8, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 16 * 1024 * 1024 + 5)


def seed() -> int:
    """Printed, so that a failure can be had again."""
    chosen = int(os.environ.get("WIRE_FUZZ_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
    print(f"WIRE_FUZZ_SEED={chosen}")
    return chosen


def count(default: int) -> int:
    return int(os.environ.get("WIRE_FUZZ_COUNT", "0")) or default


def resident_bytes() -> int:
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Language:
    """What a backend understands: whole conversations of clients, and texts and types to make messages of."""

    login: dict[str, str]
    conversations: Sequence[Sequence[bytes]]
    texts: Sequence[str]
    parameterised: str  # with {} for a type
    types: Sequence[str]


TOY = Language(
    {"user": "u", "database": "toy"},
    [
        [query("begin"), query("rows 3"), query("commit")],
        [parse("rows 12 5"), bind(), describe("P"), execute(4), execute(4), SYNC],
        [parse("echo $1::int4 $2::text", "s", [23, 0]), describe("S", "s"), SYNC,
         bind([b"\0\0\0\1", b"x"], statement="s", formats=[1, 0], results=[1]), execute(), SYNC, close("S", "s"), SYNC],
        [parse("set DateStyle ISO"), bind(), execute(), parse("syntax"), bind(), execute(), SYNC],
        [query("receive text 2"), message(b"d", b"1\ta\n2\t\\N\n"), message(b"d", b"3\tb"), COPY_DONE],
        [parse("receive csv 2"), bind(), execute(), SYNC, message(b"d", b'1,"a\nb"\n'), COPY_FAIL, SYNC],
        [query("receive binary 1"), message(b"d", b"PGCOPY\n\xff\r\n\0" + bytes(8)),
         message(b"d", b"\0\1\0\0\0\1x\xff\xff"), COPY_DONE],
        [query("copy csv 5"), query("copy binary 3"), FLUSH, query("notice x; insert 1; error 22012 y")],
    ],
    ("rows 3", "rows 12 5", "insert 1", "error 42601 x", "begin", "commit", ";;", "notice x", "receive text 1",
     "receive binary 2", "copy text 3"),
    "echo $1::{}",
    ("int4", "text", "numeric", "timestamptz", "int4[]", "uuid", "json", "interval", "bytea", "float8"),
)  # fmt: skip


class Fuzzer:
    def __init__(self, rng: random.Random, language: Language) -> None:
        self.rng = rng
        self.language = language

    # --- before log-in ----------------------------------------------------------------------------------------------
    def stranger(self) -> list[bytes]:
        """What comes instead of a log-in."""
        rng = self.rng
        whole = startup(**self.language.login)
        packets = [
            whole,
            special(5679),
            special(5680),
            special(5678, rng.randbytes(rng.choice((0, 4, 8, 8, 300)))),
            startup((3 << 16) | rng.randrange(4), **self.language.login),
            startup(rng.randrange(2**31), **self.language.login),
            whole[: rng.randrange(len(whole))],
            struct.pack("!I", rng.choice(_LENGTHS)) + whole[4:],
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"\x16\x03\x01" + rng.randbytes(60),
            rng.randbytes(rng.randrange(80)),
            message(b"p", rng.randbytes(rng.randrange(40))),
            query("rows 1"),
        ]
        return [self.bent(rng.choice(packets)) for _ in range(rng.randrange(1, 4))]

    # --- after it ---------------------------------------------------------------------------------------------------
    def messages(self) -> list[bytes]:
        """A few messages: a client's, somewhat damaged, or made up; most frames are sound, so that bodies are read."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.35:
            return [self.made_up() for _ in range(rng.randrange(1, 4))]
        told = list(rng.choice(self.language.conversations))
        if kind < 0.55:
            self.shuffle(told)
        elif kind < 0.7:  # into the middle of another one
            at = rng.randrange(len(told) + 1)
            told[at:at] = rng.choice(self.language.conversations)
        elif kind < 0.9:
            at = rng.randrange(len(told))
            told[at] = message(told[at][:1], self.bent(told[at][5:]))
        return told

    def shuffle(self, told: list[bytes]) -> None:
        for _ in range(self.rng.randrange(1, 4)):
            at = self.rng.randrange(len(told))
            what = self.rng.randrange(3)
            if what == 0 and len(told) > 1:
                del told[at]
            elif what == 1:
                told.insert(at, told[at])
            else:
                other = self.rng.randrange(len(told))
                told[at], told[other] = told[other], told[at]

    def made_up(self) -> bytes:
        rng, language = self.rng, self.language
        names = ("", "", "a", "b", "s")
        made = rng.choice((
            lambda: query(rng.choice(language.texts)),
            lambda: parse(language.parameterised.format(rng.choice(language.types)), rng.choice(names)),
            lambda: parse(rng.choice(language.texts), rng.choice(names), [rng.randrange(2**32)] * rng.randrange(3)),
            lambda: bind(
                [rng.choice((None, b"1", b"{1,2}", b"2024-01-01", rng.randbytes(rng.randrange(20))))],
                formats=[rng.choice((0, 1, 2))] * rng.randrange(3),
                results=[rng.choice((0, 1))] * rng.randrange(3),
                statement=rng.choice(names),
                portal=rng.choice(("", "p")),
            ),
            lambda: describe(rng.choice("SP"), rng.choice(("", "a", "p"))),
            lambda: execute(rng.choice((-1, 0, 1, 2, 2**31 - 1)), rng.choice(("", "p"))),
            lambda: close(rng.choice("SP"), rng.choice(("", "a", "p"))),
            lambda: SYNC,
            lambda: FLUSH,
            lambda: message(b"d", rng.randbytes(rng.randrange(40))),
            lambda: message(rng.choice((b"c", b"f", b"F")), rng.randbytes(rng.randrange(10))),
            lambda: message(bytes([rng.choice(b"QPBDECSHFdcfp")]), rng.randbytes(rng.randrange(60))),
        ))()  # fmt: skip
        return message(made[:1], self.bent(made[5:])) if rng.random() < 0.3 else made

    def bent(self, data: bytes) -> bytes:
        rng, raw = self.rng, bytearray(data)
        for _ in range(rng.choice((0, 1, 1, 2, 8))):
            if not raw:
                break
            at = rng.randrange(len(raw))
            what = rng.random()
            if what < 0.5:
                raw[at] = rng.randrange(256)
            elif what < 0.65:
                del raw[at : at + rng.randrange(1, 5)]
            elif what < 0.8:
                raw[at:at] = rng.randbytes(rng.randrange(1, 5))
            elif what < 0.9:
                raw[at : at + 4] = struct.pack("!I", rng.choice(_LENGTHS))
            else:
                del raw[at:]
        return bytes(raw)

    def broken_frame(self) -> bytes:
        """A length that is wrong, or bytes that are no message at all: the connection is lost by it."""
        rng = self.rng
        made = self.made_up()
        return rng.choice((
            made[:1] + struct.pack("!I", rng.choice(_LENGTHS)) + made[5:],
            bytes([rng.randrange(256)]) + made[1:],
            made[: rng.randrange(len(made))],
            rng.randbytes(rng.randrange(1, 60)),
            TERMINATE,
        ))  # fmt: skip


class Siege:
    """Engines driven without sockets, each until it is lost or settled; ``said`` counts messages."""

    def __init__(self, fuzzer: Fuzzer, open_engine: Callable[[], Driven]) -> None:
        self.fuzzer = fuzzer
        self.said = 0
        self.slowest_s = 0.0
        self._open = open_engine
        self._engine: Driven | None = None

    def run(self, until: int) -> None:
        while self.said < until:
            if self.fuzzer.rng.random() < 0.1:
                self._as_stranger()
            else:
                self._as_client()
        self.end()

    def end(self) -> None:
        if self._engine is not None:
            self._engine.machine.close()
            self._engine = None

    def _as_stranger(self) -> None:
        engine = self._open()
        self._say(engine, self.fuzzer.stranger())
        engine.machine.close()

    def _as_client(self) -> None:
        engine = self._engine
        if engine is None:
            engine = self._engine = self._open()
            engine.say(startup(**self.fuzzer.language.login))
        told = self.fuzzer.messages()
        if self.fuzzer.rng.random() < 0.05:
            told.append(self.fuzzer.broken_frame())
        self._say(engine, told)
        if not engine.done and not engine.machine.unread:
            # whatever state that was, this leads out of it: COPY fails, what is skipped ends at Sync
            heard = engine.say(COPY_FAIL, SYNC)
            assert engine.done or [kind for kind, _ in split(heard)][-1] == "Z", (told, heard)
        if engine.done or engine.machine.unread or self.fuzzer.rng.random() < 0.02:
            self.end()

    def _say(self, engine: Driven, told: Sequence[bytes]) -> None:
        for data in told:
            if engine.done:
                return
            self.said += 1
            began = time.perf_counter()
            heard = engine.say(data)
            self.slowest_s = max(self.slowest_s, time.perf_counter() - began)
            check_answer(heard, told)


def check_answer(heard: bytes, told: Any) -> None:
    """Whole messages of known kinds; no error that is the server's own, and no word of Python in any."""
    while heard[:1] in (b"N", b"S") and not _is_message(heard):
        heard = heard[1:]  # the answer to SSLRequest
    kinds = {kind for kind, _ in split(heard)}
    assert kinds <= SERVER_KINDS, (told, heard)
    for error in errors(heard):
        assert error["C"] != "XX000", (told, error)
        assert "Traceback" not in error["M"], (told, error)


def _is_message(heard: bytes) -> bool:
    """N and S also begin NoticeResponse and ParameterStatus, whose length is sound."""
    return len(heard) >= 5 and 4 <= struct.unpack_from("!i", heard, 1)[0] <= len(heard) - 1
