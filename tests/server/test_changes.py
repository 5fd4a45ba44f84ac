"""Changes of views over HTTP: what readers put together of events is what a SELECT shows, however they come and go."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from mvserver.demo.page import PAGE, PageServer
from tests.server.program import Program, with_spark
from tests.server.test_http import client, http_port, wait_for
from tests.services.axe import grave_findings
from tests.services.chromium import Chromium
from tests.services.nginx import nginx

pytestmark = pytest.mark.spark

GENEROUS_S = 120.0
STREAM = {"Accept": "text/event-stream"}
SETUP = (
    "CREATE STORE local WITH ('type' = FILE, 'uris' = '.')",
    "CREATE STREAM visits (page VARCHAR, ms INTEGER, price DECIMAL(10, 2), x DOUBLE) "
    "WITH ('store' = 'local', 'topic' = 'visits', 'value.format' = 'json')",
    "CREATE MATERIALIZED VIEW by_page AS SELECT page, count(*) AS visits, sum(price) AS total, avg(ms) AS mean, "
    "max(x) AS most FROM visits GROUP BY page",
    "CREATE MATERIALIZED VIEW slow AS SELECT page, ms FROM visits WHERE ms > 50",
    "CREATE MATERIALIZED VIEW whole AS SELECT count(*) AS visits FROM visits",
)


def start(folder: Path, *arguments: str) -> Program:
    environment = with_spark()
    return Program(folder, "--http-port", "0", *arguments, environment=environment).ready(GENEROUS_S)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with start(tmp_path_factory.mktemp("changes"), "--http-cors-origins", "*") as program:
        with program.connect() as connection:
            for statement in SETUP:
                connection.execute(statement.encode())
        yield program


@pytest.fixture
def root(server: Program) -> Iterator[psycopg.Connection[Any]]:
    with server.connect() as connection:
        yield connection


class Visits:
    """Writes records to the stream's directory, seeded."""

    def __init__(self, server_data: Path, seed: int) -> None:
        self._folder = server_data / "files" / "visits"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._chance = random.Random(seed)
        self._seed = seed
        self._files = 0

    def write(self, records: int) -> None:
        chance = self._chance
        lines = [
            json.dumps(
                {
                    "page": f"/{chance.randrange(12)}",
                    "ms": chance.randrange(100),
                    "price": chance.randrange(10_000) / 100,
                    "x": chance.random(),
                }
            )
            for _ in range(records)
        ]
        self._files += 1
        path = self._folder / f".{self._seed}-{self._files}"
        path.write_text("".join(line + "\n" for line in lines))
        path.rename(path.with_name(path.name[1:]))


def data_of(server: Program) -> Path:
    command = Path(f"/proc/{server.process.pid}/cmdline").read_bytes().split(b"\0")
    return Path(command[command.index(b"--data-dir") + 1].decode())


def events(answer: httpx2.Response) -> Iterator[dict[str, str]]:
    """The fields of each event."""
    fields: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            yield fields
            fields = {}


class Reader:
    """Reads events in a thread, and keeps the rows of each view as the events say."""

    def __init__(self, server: Program, *views: str, position: str | None = None, query: str = "") -> None:
        self.rows: dict[str, Counter[str]] = {}
        self.kinds: Counter[str] = Counter()
        self.position = position
        self.events: list[tuple[str, Any]] = []
        self.error: str | None = None
        self._http = client(server)
        headers = dict(STREAM) if position is None else {**STREAM, "Last-Event-ID": position}
        path = "/v1/changes?" + "&".join(f"view={view}" for view in views) + query
        self._request = self._http.stream("GET", path, headers=headers)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            with self._request as answer:
                assert answer.status_code == 200, answer.read()
                for fields in events(answer):
                    self._take(fields)
        except Exception as error:  # noqa: BLE001 - shown by whoever waits
            self.error = repr(error)

    def _take(self, fields: dict[str, str]) -> None:
        if "event" in fields:
            kind, data = fields["event"], json.loads(fields["data"])
            if kind == "snapshot":
                self.rows[data["view"]] = Counter(json.dumps(row) for row in data["rows"])
            elif kind == "change":
                rows = self.rows.setdefault(data["view"], Counter())
                for change in data["changes"]:
                    rows[json.dumps(change["row"])] += 1 if change["op"] in ("+I", "+U") else -1
                    assert rows[json.dumps(change["row"])] >= 0, (change, data)
            self.events.append((kind, data))
            self.kinds[kind] += 1
        if "id" in fields:
            self.position = fields["id"]

    def has(self, view: str) -> Counter[str]:
        return +self.rows.get(f"postgres.public.{view}", Counter())

    def close(self) -> None:
        self._http.close()


def shown(http: httpx2.Client, view: str) -> Counter[str]:
    answer = http.get(f"/v1/views/postgres/public/{view}")
    assert answer.status_code == 200, answer.text
    return Counter(json.dumps(row) for row in answer.json())


def settled(root: psycopg.Connection[Any], expected: int) -> None:
    wait_for(lambda: root.execute("SELECT visits FROM whole").fetchone() == (expected,))


def agrees(reader: Reader, http: httpx2.Client, *views: str) -> None:
    for view in views:
        try:
            wait_for(lambda view=view: reader.has(view) == shown(http, view))  # type: ignore[misc]
        except AssertionError:
            raise AssertionError((view, reader.error, reader.has(view), shown(http, view))) from None


def test_readers_see_what_a_select_shows(server: Program, root: psycopg.Connection[Any]) -> None:
    """Some from the beginning, some who are cut off at random and go on behind the last event they have."""
    visits = Visits(data_of(server), 1)
    chance = random.Random(5)
    views = ("by_page", "slow", "whole")
    (before,) = root.execute("SELECT visits FROM whole").fetchone()  # type: ignore[misc]
    with client(server) as http:
        steady = Reader(server, *views)
        restless = Reader(server, "by_page")
        carried: Counter[str] = Counter()
        for _ in range(12):
            visits.write(200)
            time.sleep(chance.random() * 0.5)  # batches of one file and of several
            if restless.position is not None and chance.random() < 0.6:
                restless.close()
                position, carried = restless.position, restless.has("by_page")
                restless = Reader(server, "by_page", position=position)
                restless.rows["postgres.public.by_page"] = Counter(carried)
        settled(root, before + 2_400)
        agrees(steady, http, *views)
        agrees(restless, http, "by_page")
        late = Reader(server, *views)
        agrees(late, http, *views)
        assert restless.kinds["reset"] == 0
        assert steady.kinds["snapshot"] == 3
        assert steady.kinds["change"] >= 3
        epochs = [data["epoch"] for kind, data in steady.events if kind == "change" and data["view"].endswith("whole")]
        assert epochs == sorted(set(epochs))
        for reader in (steady, restless, late):
            reader.close()


def test_a_poll_waits_and_goes_on(server: Program, root: psycopg.Connection[Any]) -> None:
    visits = Visits(data_of(server), 2)
    with client(server) as http:
        first = http.get("/v1/changes?view=whole&view=by_page")
        assert first.headers["cache-control"] == "private, max-age=5"
        assert [each["event"] for each in first.json()["events"]].count("snapshot") == 2
        position = first.json()["next"]
        nothing = http.get(f"/v1/changes?view=whole&view=by_page&since={position}&wait=0")
        assert nothing.json() == {"next": position, "events": []}
        assert nothing.headers["cache-control"] == "private, max-age=0"
        threading.Timer(0.5, visits.write, [1]).start()
        changed = http.get(f"/v1/changes?view=whole&view=by_page&since={position}&wait=60").json()
        assert {each["event"] for each in changed["events"]} == {"change"}
        assert changed["next"] != position
        again = http.get(f"/v1/changes?view=whole&view=by_page&since={position}&wait=0").json()
        assert all(each in again["events"] for each in changed["events"])  # a view may have been heard of before others
        lost = http.get("/v1/changes?view=whole&since=0123456789abcdef-1").json()
        assert [each["event"] for each in lost["events"]][:2] == ["reset", "snapshot"]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [("", 400, "08P01"), ("view=nope", 404, "42P01"), ("view=visits", 404, "42809"), ("view=a.b.c.d", 400, "08P01"),
     ("view=whole&view=public.whole", 400, "08P01"), ("view=whole&x=1", 400, "08P01"),
     ("view=nope.public.x", 404, "3D000"),
     ("view=whole&wait=x", 400, "08P01"), ("view=whole&wait=0&wait=5", 400, "08P01"),
     ("view=whole&since=a-1&since=b-1", 400, "08P01"), ("&".join(f"view=v{n}" for n in range(20)), 400, "08P01"),
     ("view=whole&ticket=nope", 401, "28000")],
)  # fmt: skip
def test_requests_that_are_refused(server: Program, query: str, status: int, code: str) -> None:
    with client(server) as http:
        answer = http.get(f"/v1/changes?{query}")
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


def test_tickets_are_of_a_role_and_views(server: Program, root: psycopg.Connection[Any]) -> None:
    root.execute("CREATE ROLE looker LOGIN")
    root.execute("GRANT SELECT ON whole TO looker")
    with client(server, user="looker") as http:
        denied = http.post("/v1/tickets", json={"views": ["by_page"]})
        assert (denied.status_code, denied.json()["code"]) == (403, "42501")
        assert http.post("/v1/tickets", json={"views": []}).status_code == 400
        assert http.post("/v1/tickets", json={"views": ["whole"]}, auth=None).status_code == 401
        made = http.post("/v1/tickets", json={"views": ["whole"]}).json()
        assert 0 < made["expires_in"] <= 60
        path = f"/v1/changes?view=public.whole&ticket={made['ticket']}"
        read = http.get(path, auth=None)
        assert read.status_code == 200
        assert read.headers["cache-control"] == "public, max-age=5"
        assert http.get(f"/v1/changes?view=by_page&ticket={made['ticket']}", auth=None).status_code == 403
        assert http.get(path.replace("whole", "slow"), auth=None).status_code == 403
        assert made["ticket"] not in server.stderr
    watching = Reader(server, "whole", query=f"&ticket={made['ticket']}")
    wait_for(lambda: watching.kinds["snapshot"] == 1)
    root.execute("REVOKE SELECT ON whole FROM looker")
    wait_for(lambda: watching.kinds["end"] == 1)
    assert watching.events[-1][1]["code"] == "42501"
    watching.close()
    with client(server) as http:
        assert http.get(path, auth=None).status_code == 403
    root.execute("DROP ROLE looker")


def test_a_later_role_of_the_same_name_is_another_one(server: Program, root: psycopg.Connection[Any]) -> None:
    make = "CREATE ROLE again LOGIN; GRANT SELECT ON whole TO again"
    drop = "REVOKE SELECT ON whole FROM again; DROP ROLE again"
    root.execute(make)
    with client(server, user="again") as http:
        ticket = http.post("/v1/tickets", json={"views": ["whole"]}).json()["ticket"]
        path = f"/v1/changes?view=whole&ticket={ticket}"
        assert http.get(path).status_code == 200
        watching = Reader(server, "whole", query=f"&ticket={ticket}")
        wait_for(lambda: watching.kinds["snapshot"] == 1)
        root.execute(f"BEGIN; {drop}; {make}; COMMIT")
        other = http.post("/v1/tickets", json={"views": ["whole"]}).json()["ticket"]
        assert other != ticket
        later = Reader(server, "whole", query=f"&ticket={other}")
        refused = http.get(path)
        assert (refused.status_code, refused.json()["code"]) == (401, "28000")
        wait_for(lambda: watching.kinds["end"] == 1)
        assert watching.events[-1][1]["code"] == "28000"
        watching.close()
        wait_for(lambda: later.kinds["snapshot"] == 1)
        assert http.get(f"/v1/changes?view=whole&ticket={other}").status_code == 200
        assert later.kinds["end"] == 0
        later.close()
    root.execute(drop)


@pytest.mark.night
def test_a_reader_that_takes_nothing_begins_anew(server: Program, root: psycopg.Connection[Any]) -> None:
    """Its events are not kept for ever, others go on, and when it reads again it comes to the rows as they are."""
    root.execute("CREATE MATERIALIZED VIEW wide AS SELECT lpad(page, 100, '.') AS page, ms FROM visits")
    visits = Visits(data_of(server), 3)
    (before,) = root.execute("SELECT visits FROM whole").fetchone()  # type: ignore[misc]
    # a window of 64 kB: what it does not hold, the server has to
    narrow = httpx2.HTTPTransport(socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)])
    with client(server) as http, client(server, transport=narrow) as idle:
        shown(http, "wide")
        with idle.stream("GET", "/v1/changes?view=wide", headers=STREAM) as answer:
            lines = answer.iter_lines()
            while next(lines) != "event: snapshot":
                pass
            for number in range(1, 11):
                visits.write(20_000)  # some 3 MB of rows, none of which takes another one back
                settled(root, before + 20_000 * number)
            other = Reader(server, "whole")
            agrees(other, http, "whole")
            other.close()
            kind, kinds = "snapshot", Counter[str]()
            rows: Counter[str] = Counter()
            expected = shown(http, "wide")
            for line in lines:
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                    kinds[kind] += 1
                elif name == "data":
                    data = json.loads(value)
                    if kind == "snapshot":
                        rows = Counter(json.dumps(row) for row in data["rows"])
                    rows.update(json.dumps(change["row"]) for change in data.get("changes", ()))
                    if rows == expected:
                        break
        assert kinds["reset"] >= 1, kinds
        assert kinds["snapshot"] == kinds["reset"]
        assert rows == expected
    root.execute("DROP MATERIALIZED VIEW wide")


def test_a_reader_that_stops_reading_gets_the_epochs_as_one(server: Program, root: psycopg.Connection[Any]) -> None:
    """Two views in one stream: the rows are those of a select, no snapshot is sent again, and its last id holds."""
    root.execute("CREATE STREAM texts (k INTEGER, text VARCHAR) WITH ('store' = 'local', 'value.format' = 'json')")
    root.execute("CREATE MATERIALIZED VIEW fat AS SELECT k, count(*) AS n, max(text) AS text FROM texts GROUP BY k")
    root.execute("CREATE MATERIALIZED VIEW sum AS SELECT count(*) AS n FROM texts")
    folder = data_of(server) / "files" / "texts"
    folder.mkdir(parents=True, exist_ok=True)

    def write(number: int) -> None:
        """Some 1.2 MB of changes, always of the same hundred rows."""
        lines = "".join(json.dumps({"k": k, "text": "é" * 3_000}) + "\n" for k in range(100))
        (folder / f".{number}.json").write_text(lines)
        (folder / f".{number}.json").rename(folder / f"{number}.json")
        wait_for(lambda: root.execute("SELECT n FROM sum").fetchone() == (100 * number,))

    narrow = httpx2.HTTPTransport(socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)])
    views = ("fat", "sum")
    with client(server) as http, client(server, transport=narrow) as idle:
        shown(http, "fat")
        with idle.stream("GET", "/v1/changes?view=fat&view=sum", headers=STREAM) as answer:
            lines = answer.iter_lines()
            while next(lines) != "event: snapshot":
                pass
            for number in range(1, 13):
                write(number)
            rows: dict[str, Counter[str]] = {}
            kinds: Counter[str] = Counter()
            epochs: list[int] = []
            kind, position = "snapshot", ""
            expected = {f"postgres.public.{view}": shown(http, view) for view in views}
            for line in lines:
                name, _, value = line.partition(": ")
                if name == "id":
                    position = value
                elif name == "event":
                    kind = value
                elif name == "data":
                    kinds[kind] += 1
                    data = json.loads(value)
                    held = rows.setdefault(data["view"], Counter())
                    if kind == "snapshot":
                        held.update(json.dumps(row) for row in data["rows"])
                    for change in data.get("changes", ()):
                        held[json.dumps(change["row"])] += 1 if change["op"] in ("+I", "+U") else -1
                        assert held[json.dumps(change["row"])] >= 0
                    if data["view"].endswith("fat"):
                        epochs.append(data["epoch"])
                    if {view: +held for view, held in rows.items()} == expected:
                        break
        assert (kinds["snapshot"], kinds["reset"]) == (2, 0), kinds
        assert epochs == sorted(set(epochs))
        assert max(later - earlier for earlier, later in pairwise(epochs)) > 3, epochs  # one in the place of many
        again = Reader(server, *views, position=position)
        again.rows.update({view: Counter(held) for view, held in rows.items()})
        write(13)
        agrees(again, http, *views)
        assert again.kinds["snapshot"] == again.kinds["reset"] == 0
        again.close()
    for view in views:
        root.execute(f"DROP MATERIALIZED VIEW {view}")


def test_a_refresh_is_a_reset_and_a_drop_the_end(server: Program, root: psycopg.Connection[Any]) -> None:
    root.execute("CREATE MATERIALIZED VIEW passing AS SELECT page, count(*) AS n FROM visits GROUP BY page")
    root.execute("SELECT * FROM passing")
    with client(server) as http:
        reader = Reader(server, "passing", "whole")
        agrees(reader, http, "passing")
        root.execute("REFRESH MATERIALIZED VIEW passing")
        wait_for(lambda: reader.kinds["reset"] >= 1)
        agrees(reader, http, "passing", "whole")
        root.execute("DROP MATERIALIZED VIEW passing")
        wait_for(lambda: reader.kinds["end"] == 1)
        assert reader.events[-1][1]["code"] == "42P01"
        reader.close()


@pytest.mark.night  # by day test_change_kills ends the server under a reader
def test_a_reader_goes_on_behind_a_restart(tmp_path: Path) -> None:
    with start(tmp_path) as program:
        with program.connect() as root, client(program) as http:
            for statement in SETUP:
                root.execute(statement.encode())
            visits = Visits(data_of(program), 4)
            reader = Reader(program, "by_page")
            visits.write(500)
            settled(root, 500)
            agrees(reader, http, "by_page")
        program.terminate()
        assert program.ended(GENEROUS_S) == 0
        wait_for(lambda: reader.error is not None or not reader._thread.is_alive())
        kept, position = reader.has("by_page"), reader.position
        reader.close()
    with start(tmp_path) as program, program.connect() as root, client(program) as http:
        again = Reader(program, "by_page", position=position)
        again.rows["postgres.public.by_page"] = Counter(kept)
        visits.write(300)
        settled(root, 800)
        agrees(again, http, "by_page")
        assert again.kinds["snapshot"] == again.kinds["reset"] == 0, again.events
        again.close()


def _until_a_change(address: str, kinds: list[str]) -> None:
    with httpx2.stream("GET", address, headers=STREAM, timeout=GENEROUS_S, trust_env=False) as answer:
        assert answer.status_code == 200, answer.read()
        for line in answer.iter_lines():
            if line.startswith("event: "):
                kinds.append(line.removeprefix("event: "))
                if kinds[-1] == "change":
                    return


def test_a_proxy_asks_once_for_many(server: Program, root: psycopg.Connection[Any], tmp_path: Path) -> None:
    """Behind nginx, as docs/web.md configures it: polls with a ticket are one request, private ones are not shared,
    streams pass as they come."""
    visits = Visits(data_of(server), 11)
    log = tmp_path / "access.log"
    with client(server) as http, nginx(tmp_path, http_port(server)) as port:
        ticket = http.post("/v1/tickets", json={"views": ["whole"]}).json()["ticket"]
        position = http.get("/v1/changes?view=whole").json()["next"]
        proxy = f"http://127.0.0.1:{port}"
        shared = f"{proxy}/v1/changes?view=whole&wait=60&since={position}&ticket={ticket}"
        with httpx2.Client(timeout=GENEROUS_S, trust_env=False) as many, ThreadPoolExecutor(20) as threads:
            streamed: list[str] = []
            stream = threads.submit(_until_a_change, f"{proxy}/v1/changes?view=whole&ticket={ticket}", streamed)
            polls = [threads.submit(many.get, shared) for _ in range(12)]
            own = [threads.submit(many.get, shared.rpartition("&")[0], auth=("postgres", "")) for _ in range(2)]
            wait_for(lambda: "snapshot" in streamed)
            visits.write(1)
            answers = [each.result() for each in polls]
            assert len({answer.text for answer in answers}) == 1
            assert [each["event"] for each in answers[0].json()["events"]] == ["change"]
            assert all(each.result().json()["events"] for each in own)
            stream.result()
        asked = [line.split() for line in log.read_text().splitlines()]
        assert Counter(kind for kind, path in asked if "wait=60" in path and "ticket" in path) == {"MISS": 1, "HIT": 11}
        assert {kind for kind, path in asked if "wait=60" in path and "ticket" not in path} == {"MISS"}
        assert (
            http.get(f"{proxy}/v1/views/postgres/public/whole").json()
            == http.get("/v1/views/postgres/public/whole").json()
        )


def test_the_example_page_in_a_browser(
    server: Program, root: psycopg.Connection[Any], chromium: Chromium, axe: str
) -> None:
    """The page of the demo, with its own view, on another origin, by a ticket; with a new ticket it goes on."""
    assert PAGE.stat().st_size < 10_000
    root.execute("CREATE DATABASE clickstream_db")
    with server.connect(dbname="clickstream_db") as connection:
        connection.execute("CREATE STREAM clicks (url VARCHAR) WITH ('store' = 'local', 'topic' = 'visits2', "
                           "'value.format' = 'json')")  # fmt: skip
        connection.execute(
            "CREATE MATERIALIZED VIEW url_visit_count AS "
            "SELECT url, count(*) AS url_visit_count FROM clicks GROUP BY url"
        )

        def click(url: str) -> None:
            connection.execute(f"INSERT INTO ENTITY visits2 IN STORE local VALUE ('{json.dumps({'url': url})}')")

        page = PageServer(
            "127.0.0.1", 0, f"http://127.0.0.1:{http_port(server)}", ["clickstream_db.public.url_visit_count"]
        )
        page.start()
        try:
            click("./home")
            chromium.open(page.address)
            table = (
                "[...document.querySelectorAll('#body tr')].map(r => [...r.cells].map(c => c.textContent).join(' '))"
            )
            chromium.wait_for(f"JSON.stringify({table}) === '[\"./home 1\"]'")
            for url in ("./home", "./cart", "./home"):
                click(url)
            chromium.wait_for(f'JSON.stringify({table}) === \'["./home 3","./cart 1"]\'')
            assert chromium.evaluate("document.querySelectorAll('#chart .bar').length") == 2
            assert chromium.evaluate("document.getElementById('state').textContent") == "live"
            for width, dark in product((1280, 390), (False, True)):
                chromium.look(width, dark=dark)
                assert chromium.evaluate("document.documentElement.scrollWidth") <= width
                assert grave_findings(chromium, axe) == []
            # the connection ends, and its ticket does not hold any more
            chromium.evaluate("rows.forEach(row => { row.kept = true }); undefined")
            click("./cart")
            chromium.wait_for(f'JSON.stringify({table}) === \'["./home 3","./cart 2"]\'')
            chromium.evaluate("connect().then(() => true)")  # as the page does when its ticket is over
            click("./help")
            chromium.wait_for("rows.size === 3")
            assert chromium.evaluate("[...rows.values()].find(row => row.url === './home').kept") is True  # no snapshot
        finally:
            page.stop()
