"""Events over HTTP on a real server: a client's copy of views equals them, whoever is killed on the way."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator

import httpx2
import pytest

from tests.server.test_changes import STREAM, events, shown
from tests.server.test_http import client
from tests.server.test_subscribe import VIEWS, World, begun, kill_under_load, wait_for

pytestmark = [pytest.mark.spark]

AWAY_S = 0.1  # behind which a client comes back, as an EventSource does
PATH = "/v1/changes?" + "&".join(f"view={view}" for view in VIEWS)


class HttpWorld(World):
    further = ("--http-port", "0")


class EventSource(threading.Thread):
    """Keeps copies of all views by one stream, over any number of connections and servers, as a browser does: it comes
    back with the id of the last event."""

    def __init__(self, world: World) -> None:
        super().__init__(name="event-source", daemon=True)
        self.world = world
        self.copies: dict[str, Counter[str]] = {}
        self.kinds: Counter[str] = Counter()
        self.last_id: str | None = None
        self.connections = 0
        self.failure: BaseException | None = None
        self._epochs: dict[str, int] = {}
        self._answer: httpx2.Response | None = None
        self._ending = False

    def run(self) -> None:
        while not self._ending:
            try:
                self._follow()
            except (httpx2.TransportError, httpx2.StreamError, OSError):  # the server or the connection is gone
                time.sleep(AWAY_S)
            except BaseException as error:  # noqa: BLE001 - told by who asks for the copies
                self.failure = error
                return

    def _follow(self) -> None:
        headers = dict(STREAM) if self.last_id is None else {**STREAM, "Last-Event-ID": self.last_id}
        with client(self.world.program) as http, http.stream("GET", PATH, headers=headers) as answer:
            if answer.status_code == 503:  # it is only starting
                raise OSError
            assert answer.status_code == 200, answer.read()
            self._answer = answer
            self.connections += 1
            for fields in events(answer):
                self._take(fields)

    def _take(self, fields: dict[str, str]) -> None:
        kind = fields.get("event")
        if kind is not None:
            self.kinds[kind] += 1
            data = json.loads(fields["data"])
            assert kind in ("snapshot", "change"), (kind, data)
            view, copy = data["view"], self.copies.setdefault(data["view"], Counter())
            if kind == "snapshot":
                assert view not in self._epochs, "the rows came twice"
                copy.update(json.dumps(row) for row in data["rows"])
            else:
                assert data["epoch"] > self._epochs[view], "changes came twice"
                for change in data["changes"]:
                    row = json.dumps(change["row"])
                    copy[row] += 1 if change["op"] in ("+I", "+U") else -1
                    assert copy[row] >= 0, (change, data)
            self._epochs[view] = data["epoch"]
        self.last_id = fields.get("id", self.last_id)

    def break_off(self) -> None:
        """The connection goes without a word."""
        answer = self._answer
        if answer is not None:
            stream = answer.extensions["network_stream"].get_extra_info("socket")
            try:
                stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it is gone already

    def equals(self, view: str, rows: Counter[str]) -> bool:
        if self.failure is not None:
            raise self.failure
        return +self.copies.get(f"postgres.public.{view}", Counter()) == rows

    def end(self) -> None:
        self._ending = True
        self.break_off()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with begun(HttpWorld(tmp_path_factory.mktemp("events"))) as made:
        yield made


def follow_through(world: World, seed: int, kills: int, server_kills: int) -> None:
    """The copies equal the views, although the client's connection and the server are killed."""
    print("seed", seed)
    chance = random.Random(seed)
    source = EventSource(world)
    source.start()
    wait_for(lambda: source.kinds["snapshot"] == len(VIEWS) or source.failure is not None, "the beginning")
    before = source.connections
    for _ in kill_under_load(world, chance, kills, server_kills, source.break_off):
        wait_for(lambda b=before: source.connections > b or source.failure is not None, "to come back")  # type: ignore[misc]
        before = source.connections
    with client(world.program) as http:
        for view in VIEWS:
            rows = shown(http, view)
            wait_for(lambda v=view, r=rows: source.equals(v, r), f"the copy of {view}")  # type: ignore[misc]
    assert source.kinds["snapshot"] == len(VIEWS)
    source.end()


def test_copies_equal_the_views_through_kills(world: World) -> None:
    follow_through(world, 1, 20, 1)


@pytest.mark.night
@pytest.mark.parametrize("run", range(5))
def test_copies_equal_the_views_through_many_kills(world: World, run: int) -> None:
    follow_through(world, random.SystemRandom().randrange(2**32), 20, 6)
