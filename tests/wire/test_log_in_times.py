"""A wrong password and a role that is not there are told apart by nothing, and by no clock either.

At every change the engine alone is timed, over the real catalog, where a difference is not hidden by a network; by
night whole log-ins over sockets. The two kinds of failure alternate, so that whatever else the machine does falls on
both; medians are compared.
"""

from __future__ import annotations

import gc
import itertools
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catalog.model import Role
from catalog.store import Catalog
from mvserver import limits
from mvserver.auth import passwords
from mvserver.auth.password_check import PasswordCheck
from mvserver.auth.password_source import CatalogPasswords
from mvserver.auth.throttle import Throttle
from mvserver.pgwire.authentication import PasswordAuthentication
from tests.wire.client import Driven, RawClient, error_fields, split, startup
from tests.wire.scram import ScramClient, sasl_initial, sasl_response
from tests.wire.server import Running
from tests.wire.toy import ToyBackend

KNOWN, UNKNOWN = "reader", "nobody"  # of one length: the name comes back in the message


@pytest.fixture
def source(tmp_path: Path) -> Iterator[CatalogPasswords]:
    catalog = Catalog.open(tmp_path / "catalog.sqlite")
    with catalog.transaction():
        verifier = passwords.stored("hush", KNOWN, "scram-sha-256")
        catalog.roles.add(Role(id=str(uuid.uuid4()), oid=0, name=KNOWN, superuser=False, password=verifier))
    yield CatalogPasswords(catalog)
    catalog.close()


Attempt = Callable[[str], tuple[float, dict[str, str]]]
"""For a role: the seconds that the server took to answer, and what the client heard at the end."""


def unthrottled(source: CatalogPasswords) -> PasswordAuthentication:
    windows = itertools.count(0.0, 2 * limits.AUTHENTICATION_FAILURE_WINDOW_S)
    return PasswordAuthentication(
        PasswordCheck(source, secret=source.secret(), throttle=Throttle(lambda: next(windows)))
    )


def timed(user: str, exchange: Callable[[bytes], bytes]) -> tuple[float, dict[str, str]]:
    client, spent = ScramClient("wrong"), 0.0

    def say(message: bytes) -> bytes:
        nonlocal spent
        began = time.perf_counter()
        said = exchange(message)
        spent += time.perf_counter() - began
        return said

    say(startup(user=user, database="toy"))
    ((_, challenge),) = split(say(sasl_initial("SCRAM-SHA-256", client.first())))
    ((kind, body),) = split(say(sasl_response(client.final(challenge[4:]))))
    assert kind == "E"
    return spent, error_fields(body)


@pytest.fixture
def engine(source: CatalogPasswords) -> Attempt:
    authentication = unthrottled(source)
    return lambda user: timed(user, Driven(ToyBackend(), authentication=authentication).say)


def medians(failed: Attempt, attempts: int) -> dict[str, float]:
    took: dict[str, list[float]] = {KNOWN: [], UNKNOWN: []}
    gc.collect()
    gc.disable()
    try:
        for attempt in range(attempts):
            for user in (KNOWN, UNKNOWN) if attempt % 2 else (UNKNOWN, KNOWN):
                took[user].append(failed(user)[0])
    finally:
        gc.enable()
    return {user: statistics.median(times) for user, times in took.items()}


def test_the_text_is_the_same(engine: Attempt) -> None:
    heard = [{code: text.replace(user, "?") for code, text in engine(user)[1].items()} for user in (KNOWN, UNKNOWN)]
    assert heard[0] == heard[1]
    assert (heard[0]["C"], heard[0]["M"]) == ("28P01", 'password authentication failed for user "?"')


def test_the_time_is_about_the_same(engine: Attempt) -> None:
    found = medians(engine, 60)
    assert 0.7 < found[KNOWN] / found[UNKNOWN] < 1.4, found


@pytest.mark.night
def test_the_time_of_a_thousand_is_the_same_within_five_percent(source: CatalogPasswords) -> None:
    """The best of three: a busy machine may spoil one, a difference in the work would be in all."""
    ratios = []
    with Running(authentication=unthrottled(source)) as running:

        def log_in(user: str) -> tuple[float, dict[str, str]]:
            with RawClient(running.port) as client:

                def exchange(message: bytes) -> bytes:
                    client.send(message)
                    head = client.exactly(5)
                    return head + client.exactly(int.from_bytes(head[1:]) - 4)

                return timed(user, exchange)

        for _ in range(3):
            found = medians(log_in, 1_000)
            ratios.append(found[KNOWN] / found[UNKNOWN])
    assert min(abs(ratio - 1) for ratio in ratios) <= 0.05, ratios
