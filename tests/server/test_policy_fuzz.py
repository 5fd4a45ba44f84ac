"""Random roles, rows and ways to ask: nobody is told a word of a row that policies hide from him, and nobody misses a
row of his own.

The superuser asks the same things in between, so that plans, rows and answers are kept that others must not get.
``MV_POLICY_FUZZ=5000`` asks so often; the seed is printed.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import psycopg
import pyarrow.ipc
import pytest

from tests.server.test_http import client, sql
from tests.server.test_mcp import ask
from tests.server.test_row_policies import SETUP, TENANTS, World, told, words_of

pytestmark = pytest.mark.spark

VIEWS = ("by_word", "moving")
ASKS = int(os.environ.get("MV_POLICY_FUZZ", "150"))
NIGHTLY = 3_000
CHANGE_EVERY = 40
ASKED = re.compile(r"secret-\w+-\d+")
STREAM = {"Accept": "text/event-stream"}
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("fuzz"))
    try:
        with made.connect() as root:
            for statement in SETUP:
                root.execute(statement.encode())
        made.feed(80)
        yield made
    finally:
        made.program.__exit__()


class Fuzz:
    """Everyone keeps a connection and an HTTP client, as an application would."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.chance = random.Random(seed)
        self.roles = (*TENANTS, "web", "nobody", "postgres")
        self.wires = {role: world.connect(role) for role in self.roles}
        self.https = {role: client(world.program, user=role) for role in self.roles}
        self.claim: str | None = None
        self.role = ""
        self.ways: tuple[Callable[[str], tuple[str, bool]], ...] = (
            self.select, self.prepared_look_up, self.copy, self.cursor, self.as_of, self.look_up_as_of, self.setting,
            self.changes, self.subscribe, self.explain, self.failing, self.post, self.arrow, self.get, self.poll,
            self.events, self.ticket, self.assistant, self.counts,
        )  # fmt: skip

    def close(self) -> None:
        for wire in self.wires.values():
            wire.close()
        for http in self.https.values():
            http.close()

    @property
    def wire(self) -> psycopg.Connection[Any]:
        return self.wires[self.role]

    @property
    def http(self) -> httpx2.Client:
        return self.https[self.role]

    @property
    def own(self) -> set[str]:
        if self.role == "postgres":
            return set(TENANTS)
        return {str(self.claim) if self.role == "web" else self.role} & set(TENANTS)

    def be_someone(self) -> None:
        self.role = self.chance.choice(self.roles)
        self.claim = self.chance.choice([*TENANTS, None]) if self.role == "web" else None
        if self.role == "web":
            self.wire.execute(f"SET mv.claim.tenant = '{self.claim or ''}'".encode())

    def settings(self) -> dict[str, str]:
        return {"mv.claim.tenant": self.claim} if self.claim else {}

    # --- ways to ask: what was said, and whether it should name all rows of the view that are the role's own ----------
    def condition(self) -> str:
        word = f"secret-{self.chance.choice(TENANTS)}-{self.chance.randrange(12)}"
        return self.chance.choice(
            [
                f"word = '{word}'", f"word LIKE '{word[:-2]}%'", f"tenant = '{self.chance.choice(TENANTS)}'",
                f"tenant <> current_user AND length(word) > {self.chance.randrange(20)}",
                f"tenant IN ('acme', 'bolt') OR word > '{word}'", "true", f"NOT (tenant < '{word[7:9]}')",
                f"word IN (SELECT word FROM by_word WHERE tenant >= '{word[7:8]}')",
            ]
        )  # fmt: skip

    def query(self, view: str) -> str:
        return self.chance.choice(
            [
                f"SELECT * FROM {view} WHERE {self.condition()}",
                f"SELECT max(word), count(*), min(tenant) FROM {view} WHERE {self.condition()}",
                f"SELECT tenant, string_agg(word, ' ') FROM {view} GROUP BY tenant HAVING bool_or({self.condition()})",
                f"SELECT a.word, (SELECT min(b.word) FROM {view} b WHERE b.tenant <> a.tenant) FROM {view} a "
                f"WHERE {self.condition().replace('word', 'a.word').replace('tenant', 'a.tenant')}",
                f"WITH x AS (SELECT *, rank() OVER (ORDER BY word) AS r FROM {view}) SELECT * FROM x",
                f"SELECT row_to_json(v) FROM {view} v ORDER BY v.word LIMIT {self.chance.randrange(9)}",
            ]
        )

    def rows(self, text: str, parameters: tuple[Any, ...] | None = None, **how: Any) -> str:
        return told(lambda: self.wire.execute(text.encode(), parameters, **how).fetchall())

    def select(self, view: str) -> tuple[str, bool]:
        if self.chance.random() < 0.3:
            return self.rows(f"SELECT * FROM {view}"), True
        return self.rows(self.query(view)), False

    def prepared_look_up(self, view: str) -> tuple[str, bool]:
        return self.hammered(f"SELECT word FROM {view} WHERE tenant = %s AND word = %s", ()), False

    def hammered(self, text: str, before: tuple[Any, ...]) -> str:
        """The same by the superuser, so often that rows are kept finished."""
        tenant = self.chance.choice(TENANTS)
        key = (*before, tenant, f"secret-{tenant}-{self.chance.randrange(12)}")
        for _ in range(self.chance.choice([0, 0, 130])):  # a token that is sealed for the role is none for others
            told(lambda: self.wires["postgres"].execute(text.encode(), key, prepare=True).fetchall())
        simple = self.chance.random() < 0.5
        return self.simple(text, key) if simple else self.rows(text, key, prepare=True)

    def simple(self, text: str, key: tuple[Any, ...]) -> str:
        return told(lambda: psycopg.ClientCursor(self.wire).execute(text.encode(), key).fetchall())

    def copy(self, view: str) -> tuple[str, bool]:
        def read() -> object:
            with self.wire.cursor().copy(f"COPY (SELECT * FROM {view}) TO STDOUT".encode()) as found:
                return b"".join(map(bytes, found))

        return told(read), True

    def cursor(self, view: str) -> tuple[str, bool]:
        def read() -> object:
            with self.wire.transaction():
                self.wire.execute(f"DECLARE c CURSOR FOR SELECT * FROM {view}".encode())
                return self.wire.execute(b"FETCH ALL c").fetchall()

        return told(read), True

    def place(self, view: str) -> Any:
        """A moment that has passed: of one's own or of the superuser's, as a token or a time."""
        changes = f'SELECT mv_token, mv_time FROM "{view}$changes" ORDER BY mv_time DESC LIMIT 20'
        asker = self.chance.choice([self.wire, self.wires["postgres"]])
        found = asker.execute(changes.encode()).fetchall()
        return self.chance.choice(self.chance.choice(found)) if found else "2020-01-01"

    def as_of(self, view: str) -> tuple[str, bool]:
        return self.rows(f"SELECT * FROM {view} AS OF %s", (self.place(view),)), False

    def look_up_as_of(self, view: str) -> tuple[str, bool]:
        text = f"SELECT tenant, word, orders FROM {view} AS OF %s WHERE tenant = %s AND word = %s"
        (latest,) = (
            self.wires["postgres"]
            .execute(b"SELECT latest_token FROM mv_catalog.watched_views WHERE view = %s", (f"postgres.public.{view}",))
            .fetchall()
        )
        place = latest[0] if self.chance.random() < 0.5 else self.place(view)
        return self.hammered(text.replace("orders", "1" if view == "moving" else "orders"), (str(place),)), False

    def setting(self, view: str) -> tuple[str, bool]:
        said = told(lambda: self.wire.execute("SELECT set_config('mv.as_of', %s, false)", (str(self.place(view)),)))
        said += self.rows(self.query(view))
        self.wire.execute(b"RESET mv.as_of")
        return said, False

    def changes(self, view: str) -> tuple[str, bool]:
        return self.rows(f'SELECT * FROM "{view}$changes" WHERE {self.condition()}'), False

    def subscribe(self, view: str) -> tuple[str, bool]:
        def read() -> object:
            self.wire.execute(b"SET mv.fetch_timeout = '50ms'")
            with self.wire.transaction():
                self.wire.execute(f"DECLARE s CURSOR FOR SUBSCRIBE TO {view} WITH (SNAPSHOT)".encode())
                return self.wire.execute(b"FETCH ALL s").fetchall()

        return told(read), True

    def explain(self, view: str) -> tuple[str, bool]:
        text = self.query(view)
        return without(self.rows(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}"), text), False

    def failing(self, view: str) -> tuple[str, bool]:
        wrong = ("word::integer", "1 / (length(word) - length(word))", "word::date", "(tenant || word)::numeric")
        text = f"SELECT {self.chance.choice(wrong)} FROM {view} WHERE {self.condition()}"
        return without(self.rows(text), text), False

    def post(self, view: str) -> tuple[str, bool]:
        return sql(self.http, f"SELECT * FROM {view}", settings=self.settings()).text, True

    def arrow(self, view: str) -> tuple[str, bool]:
        body = {"statement": f"SELECT * FROM {view}", "settings": self.settings()}
        found = self.http.post("/v1/sql", json=body, headers={"Accept": ARROW})
        return repr(pyarrow.ipc.open_stream(io.BytesIO(found.content)).read_all().to_pylist()), True

    def get(self, view: str) -> tuple[str, bool]:
        filters = self.chance.choice(["", "?tenant=neq.x", f"?word=like.*{self.chance.choice(TENANTS)}*"])
        found = self.http.get(f"/v1/views/postgres/public/{view}{filters}")
        return found.text + repr(dict(found.headers)), self.role != "web" and not filters

    def poll(self, view: str) -> tuple[str, bool]:
        return self.http.get("/v1/changes", params={"view": view, "wait": "0"}).text, False

    def events(self, view: str) -> tuple[str, bool]:
        with self.http.stream("GET", f"/v1/changes?view={view}", headers=STREAM) as stream:
            return self.first_event(stream), False  # a snapshot that others share, and changes behind it

    @staticmethod
    def first_event(stream: httpx2.Response) -> str:
        said = ""
        for line in stream.iter_lines():
            said += f"{line}\n"
            if line.startswith("data: "):
                break
        return said

    def ticket(self, view: str) -> tuple[str, bool]:
        body = {"views": [view], "claims": {"tenant": self.claim} if self.claim else {}}
        ticket = self.http.post("/v1/tickets", json=body).json()["ticket"]
        with client(self.world.program) as stranger:
            stranger.auth = None
            found = stranger.get(f"/v1/views/postgres/public/{view}", params={"ticket": ticket}).text
            parameters = {"view": view, "ticket": ticket}
            with stranger.stream("GET", "/v1/changes", params=parameters, headers=STREAM) as stream:
                return found + self.first_event(stream), False

    def assistant(self, view: str) -> tuple[str, bool]:
        calls: tuple[tuple[str, dict[str, Any]], ...] = (
            ("query", {"sql": f"SELECT * FROM {view}"}), ("describe_view", {"view": view}), ("list_views", {}),
            ("why", {"view": view}),
        )  # fmt: skip
        answers = ask(self.world.program, *calls, user=self.role)
        return json.dumps([_without_definitions(answer) for answer in answers]), self.role != "web"

    def counts(self, view: str) -> tuple[str, bool]:
        names = ("views", "watched_views", "queries", "rejected_rows", "late_rows")
        return self.rows(f"SELECT * FROM mv_catalog.{self.chance.choice(names)}"), False

    # --- one step -----------------------------------------------------------------------------------------------------
    def step(self) -> None:
        self.be_someone()
        view, way = self.chance.choice(VIEWS), self.chance.choice(self.ways)
        said, whole = way(view)
        words = words_of(said)
        assert words <= self.own, (self.role, self.claim, way.__name__, view, said[:3000])
        if whole:
            shown = self.wires["postgres"].execute(
                f"SELECT DISTINCT tenant FROM {view} WHERE tenant = ANY (%s)".encode(), (sorted(self.own),)
            )
            assert words == {tenant for (tenant,) in shown.fetchall()}, (self.role, way.__name__, view, said[:3000])


def _without_definitions(answer: Any) -> Any:
    """A view's definition is no row: everybody who may read the view may know it, as in PostgreSQL."""
    if isinstance(answer, dict):
        return {key: _without_definitions(each) for key, each in answer.items() if key not in ("definition", "query")}
    return [_without_definitions(each) for each in answer] if isinstance(answer, list | tuple) else answer


def without(said: str, text: str) -> str:
    """Without the words that the question has itself."""
    for word in set(ASKED.findall(text)):
        said = said.replace(word, "")
    return said


@pytest.mark.parametrize("asks", [ASKS, pytest.param(NIGHTLY, marks=pytest.mark.night)])
def test_random_roles_rows_and_ways(world: World, asks: int) -> None:
    seed = time.time_ns() % 1_000_000
    print("seed", seed)
    fuzz = Fuzz(world, seed)
    try:
        for number in range(asks):
            if number % CHANGE_EVERY == 0:
                world.feed(fuzz.chance.randrange(1, 30))
            fuzz.step()
    finally:
        fuzz.close()
