"""Tickets: whose they are, for how long, and that nobody else makes one."""

from __future__ import annotations

import base64
import time

import pytest

from mvserver.errors import SqlError
from mvserver.http.tickets import Tickets

VIEWS = ["postgres.public.b", "postgres.public.a"]


def test_a_ticket_says_what_it_is_of() -> None:
    tickets = Tickets(clock=lambda: 1_000.0)
    text, seconds = tickets.issue("rôle", VIEWS)
    found = tickets.read(text)
    assert (found.role, found.views, found.ends) == ("rôle", tuple(sorted(VIEWS)), 1_000 + seconds)
    assert 30 <= seconds <= 60
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_a_minute_later_it_is_over() -> None:
    now = [1_000.0]
    tickets = Tickets(clock=lambda: now[0])
    text, seconds = tickets.issue("r", VIEWS)
    now[0] += seconds - 0.1
    tickets.read(text)
    now[0] += 0.2
    with pytest.raises(SqlError, match="not valid"):
        tickets.read(text)


def test_a_clock_that_is_put_back_lets_no_ticket_live_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    passed, clock = time.monotonic_ns, time.time
    text, seconds = (tickets := Tickets()).issue("r", VIEWS)
    monkeypatch.setattr(time, "time", lambda: clock() - 3600)
    tickets.read(text)
    monkeypatch.setattr(time, "monotonic_ns", lambda: passed() + (seconds + 1) * 1_000_000_000)
    with pytest.raises(SqlError, match="not valid"):
        tickets.read(text)


def test_readers_of_the_same_half_minute_share_an_address() -> None:
    now = [1_020.0]
    tickets = Tickets(clock=lambda: now[0])
    first = tickets.issue("r", VIEWS)[0]
    now[0] += 29
    assert tickets.issue("r", VIEWS[::-1])[0] == first
    assert tickets.issue("s", VIEWS)[0] != first
    now[0] += 1
    assert tickets.issue("r", VIEWS)[0] != first


def test_no_other_is_taken() -> None:
    tickets = Tickets()
    text = tickets.issue("r", VIEWS)[0]
    raw = bytearray(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    for at in (0, 31, 32, len(raw) - 1):
        changed = bytes(raw[:at]) + bytes([raw[at] ^ 1]) + bytes(raw[at + 1 :])
        with pytest.raises(SqlError):
            tickets.read(base64.urlsafe_b64encode(changed).decode().rstrip("="))
    for other in ("", "x", "é", Tickets().issue("r", VIEWS)[0], text[:-4], "A" * 100_000):
        with pytest.raises(SqlError) as raised:
            tickets.read(other)
        assert raised.value.sqlstate == "28000"


def test_one_that_would_not_go_into_an_address_is_not_made() -> None:
    tickets = Tickets()
    fits = [(f"mv.claim.c{at}", "x" * 1_000) for at in range(4)]
    assert tickets.read(tickets.issue("r", VIEWS, fits)[0]).claims == tuple(fits)
    with pytest.raises(SqlError, match="too long for an address") as raised:
        tickets.issue("r", VIEWS, [*fits, ("mv.claim.d", "x" * 1_000)])
    assert raised.value.sqlstate == "54000"
