"""The console page in a headless Chromium: what its users see and do, with hostile records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mvserver import first_password
from tests.server.program import Program, without_java
from tests.server.test_changes import start
from tests.server.test_http import client, http_port, sql
from tests.services.axe import grave_findings
from tests.services.chromium import Chromium

pytestmark = pytest.mark.spark

HOSTILE = '<img src=x onerror="window.hit = 1">'
SETUP = (
    "CREATE STORE local WITH ('type' = FILE, 'uris' = '.')",
    "CREATE STREAM visits (page VARCHAR, ms INTEGER, at BIGINT) "
    "WITH ('store' = 'local', 'topic' = 'visits', 'value.format' = 'json', 'timestamp' = 'at')",
    "CREATE MATERIALIZED VIEW by_page AS SELECT page, count(*) AS visits, sum(ms) AS ms FROM visits GROUP BY page",
    "CREATE MATERIALIZED VIEW by_minute AS SELECT window_start, window_end, count(*) AS visits "
    "FROM TUMBLE(visits, SIZE 1 MINUTE) GROUP BY window_start, window_end",
    "CREATE STREAM slow WITH ('store' = 'local', 'topic' = 'slow') AS SELECT page, ms FROM visits WHERE ms > 50",
    f'CREATE VIEW "top{HOSTILE.replace(chr(34), chr(34) * 2)}" AS SELECT page, visits FROM by_page',
    "CREATE ROLE reader LOGIN",
    "GRANT SELECT ON by_page TO reader",
    "COMMENT ON MATERIALIZED VIEW by_page IS 'Visits since the beginning'",
)
BASE = 1_700_000_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with start(tmp_path_factory.mktemp("console")) as program:
        with program.connect() as connection:
            for statement in SETUP:
                connection.execute(statement.encode())
            for page, at in ((HOSTILE, BASE), ("/home", BASE + 300_000), ("/late", BASE)):
                visit(connection, page, at)
            insert(connection, json.dumps({"page": HOSTILE, "ms": "<b>much", "at": BASE}))
        yield program


def insert(connection: psycopg.Connection[Any], record: str) -> None:
    connection.execute(f"INSERT INTO ENTITY visits IN STORE local VALUE ('{record}')".encode())


def visit(connection: psycopg.Connection[Any], page: str, at: int = BASE + 300_000) -> None:
    insert(connection, json.dumps({"page": page, "ms": 60, "at": at}))


@pytest.fixture
def root(server: Program) -> Iterator[psycopg.Connection[Any]]:
    with server.connect() as connection:
        yield connection


@pytest.fixture
def page(server: Program, chromium: Chromium) -> Chromium:
    chromium.look(1280)
    chromium.open(f"http://127.0.0.1:{http_port(server)}/console")
    chromium.wait_for("document.querySelector('form.sign-in')")
    return chromium


def sign_in(page: Chromium, role: str = "postgres") -> None:
    page.evaluate(f"document.getElementById('role').value = {json.dumps(role)}")
    page.evaluate("document.querySelector('form').requestSubmit()")
    page.wait_for("!document.getElementById('top').hidden")


def go(page: Chromium, address: str) -> None:
    page.evaluate(f"location.hash = {json.dumps('#/' + address)}; undefined")
    page.wait_for("document.querySelector('main h1') && !document.getElementById('main').hasAttribute('aria-busy')")
    assert page.evaluate("document.querySelector('main .failure')?.innerText ?? ''") == ""


def text(page: Chromium) -> str:
    return str(page.evaluate("document.getElementById('main').innerText"))


def see(page: Chromium, words: str) -> None:
    page.wait_for(f"document.getElementById('main').innerText.includes({json.dumps(words)})")


def run(page: Chromium, statement: str, *, live: bool = False) -> None:
    page.evaluate(
        "(() => { const box = document.getElementById('statement'); box.value = "
        + json.dumps(statement)
        + "; box.dispatchEvent(new Event('input')); document.getElementById('live').checked = "
        + json.dumps(live)
        + "; document.querySelector('form.editor').requestSubmit(); })()"
    )


def result(page: Chromium) -> Any:
    """The cells of the results."""
    return page.evaluate(
        "[...document.querySelectorAll('#results tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))"
    )


def wait_for_result(page: Chromium, rows: list[list[str]]) -> None:
    expression = (
        "JSON.stringify([...document.querySelectorAll('#results tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.textContent)).sort())"
    )
    page.wait_for(f"{expression} === {json.dumps(json.dumps(sorted(rows), separators=(',', ':'), ensure_ascii=False))}")


def harmless(page: Chromium) -> bool:
    """Nothing of a record has become an element or a program."""
    return bool(page.evaluate("window.hit === undefined && document.querySelectorAll('main img, main b').length === 0"))


def test_who_asks(server: Program, page: Chromium) -> None:
    page.evaluate("document.getElementById('by-token').click()")
    page.evaluate("document.getElementById('token').value = 'wrong-secret'")
    page.evaluate("document.querySelector('form').requestSubmit()")
    page.wait_for("document.querySelector('.failure')")
    assert "the token is not valid" in text(page)
    assert page.evaluate("sessionStorage.length") == 0
    with client(server) as http:
        token = sql(http, "CREATE API_TOKEN console").json()["rows"][0]["token"]
    page.evaluate(f"document.getElementById('token').value = {json.dumps(token)}")
    page.evaluate("document.getElementById('keep').click(); document.querySelector('form').requestSubmit()")
    page.wait_for("document.getElementById('who').textContent === 'postgres'")
    page.evaluate("location.reload()")
    page.wait_for("document.getElementById('who')?.textContent === 'postgres'")  # kept for the tab
    go(page, "stores")
    addresses = page.evaluate(
        "performance.getEntriesByType('resource').map(each => each.name).join(' ') + location.href"
    )
    assert token not in addresses
    assert page.evaluate("localStorage.length") == 0
    assert page.evaluate("document.cookie") == ""
    page.evaluate("document.getElementById('sign-out').click()")
    page.wait_for("document.querySelector('form.sign-in')")
    assert page.evaluate("sessionStorage.length") == 0


def test_passwords(tmp_path: Path, chromium: Chromium) -> None:
    """A wrong one is told by the page; the browser does not ask for it by itself."""
    environment = {**without_java(), first_password.VARIABLE: "korrect: é"}
    arguments = ("--http-port", "0", "--authentication", "scram-sha-256")
    with Program(tmp_path, *arguments, environment=environment) as program:
        chromium.open(f"http://127.0.0.1:{http_port(program.ready())}/console")
        chromium.wait_for("document.querySelector('form.sign-in')")
        for password, outcome in (
            ("wrong", "document.querySelector('.failure')?.innerText.includes('28P01')"),
            ("korrect: é", "document.getElementById('who').textContent === 'postgres'"),
        ):
            chromium.evaluate(f"document.getElementById('password').value = {json.dumps(password)}")
            chromium.evaluate("document.querySelector('form').requestSubmit()")
            chromium.wait_for(outcome)
        assert chromium.evaluate("sessionStorage.length") == 0
        program.terminate()
        program.ended()
        see_status = "document.getElementById('status').textContent.includes('the server does not answer')"
        chromium.wait_for(see_status)


def test_stores_entities_and_records(page: Chromium, root: psycopg.Connection[Any]) -> None:
    sign_in(page)
    go(page, "stores")
    assert page.evaluate("[...document.querySelectorAll('main tbody a')].map(a => a.textContent)") == ["local"]
    page.evaluate("document.querySelector('main tbody a').click()")
    see(page, "visits")
    page.evaluate("[...document.querySelectorAll('main tbody a')].find(a => a.textContent === 'visits').click()")
    see(page, "postgres.public.visits")
    page.evaluate("document.querySelector('main form').requestSubmit()")
    see(page, HOSTILE.replace('"', '\\"'))
    see(page, "more may come")
    visit(root, "/printed")
    see(page, '"/printed"')
    page.evaluate("[...document.querySelectorAll('button')].find(each => each.textContent === 'Stop').click()")
    see(page, "Stopped after")
    assert harmless(page)


def test_relations_queries_lineage_and_rejected_rows(page: Chromium, root: psycopg.Connection[Any]) -> None:
    sign_in(page)
    go(page, "relations")
    names = page.evaluate("[...document.querySelectorAll('main tbody tr')].map(row => row.cells[0].textContent)")
    assert names == ["by_minute", "by_page", "slow", f"top{HOSTILE}", "visits"]
    page.evaluate("[...document.querySelectorAll('main tbody a')].find(a => a.textContent.startsWith('top')).click()")
    page.wait_for(f"document.querySelector('h1').textContent === {json.dumps('top' + HOSTILE)}")
    see(page, "The first 100 rows")
    assert harmless(page)
    go(page, "relations/postgres/public/by_page")
    see(page, "Visits since the beginning")
    assert [line.split("\t")[:2] for line in text(page).splitlines() if "BIGINT" in line] == [
        ["visits", "BIGINT"], ["ms", "BIGINT"],
    ]  # fmt: skip
    page.evaluate("[...document.querySelectorAll('button')].find(each => each.textContent === 'Watch live').click()")
    see(page, "live: ")
    for _ in range(3):
        visit(root, "/watched")
    page.wait_for(
        "[...document.querySelectorAll('tbody tr')].some(row => row.cells[0].textContent === '/watched' "
        "&& row.cells[1].textContent === '3')"
    )
    go(page, "queries")
    sinks = "[...document.querySelectorAll('main tbody tr')].map(row => row.cells[0].textContent)"
    page.wait_for(f"{sinks}.length === 3")
    assert page.evaluate(sinks) == [f"postgres.public.{name}" for name in ("by_minute", "by_page", "slow")]
    assert (
        page.evaluate("[...document.querySelectorAll('main tbody tr')].map(row => row.cells[1].textContent)")
        == ["RUNNING"] * 3
    )
    page.wait_for("document.querySelectorAll('.plot canvas').length === 2")
    page.evaluate("document.querySelector('main tbody a').click()")
    page.wait_for("document.querySelectorAll('.plot canvas').length === 4")
    see(page, "SELECT window_start, window_end")
    go(page, "lineage")
    page.wait_for("document.querySelectorAll('svg .node').length === 8")  # two streams, three views, three queries
    edges = page.evaluate("document.querySelectorAll('svg .edge').length")
    assert edges == 7  # into and out of each query, and the view over a view
    labels = page.evaluate("[...document.querySelectorAll('svg .node')].map(each => each.getAttribute('aria-label'))")
    assert "query RUNNING, postgres.public.slow" in labels
    assert harmless(page)
    go(page, "rejected")
    see(page, 'column "ms" is not of type INTEGER')
    see(page, "<b>much")
    see(page, "2023-11-14 22:13:00")  # the window of the late record
    assert harmless(page)


def test_statements(page: Chromium, root: psycopg.Connection[Any]) -> None:
    sign_in(page)
    go(page, "sql")
    run(
        page,
        "SELECT 'a;b' AS x, NULL AS y, 9007199254740993 AS n; -- two;\nSELECT page FROM by_page WHERE page = '/home'",
    )
    wait_for_result(page, [["a;b", "NULL", "9007199254740993"], ["/home"]])
    run(page, "SELECT 1 AS one; SELECT nosuch")
    see(page, '42703: column "nosuch" does not exist')
    assert result(page) == [["1"]]
    assert page.evaluate("document.getElementById('statement').selectionStart") == 24
    run(page, "CREATE ROLE made; DROP ROLE IF EXISTS never; DROP ROLE made")
    see(page, "DROP ROLE")
    see(page, 'NOTICE: role "never" does not exist, skipping')
    visit(root, "/subscribed")
    run(page, "SUBSCRIBE TO by_page")  # rows that come as they happen
    see(page, "rows so far")
    visit(root, "/subscribed")
    page.wait_for(
        "[...document.querySelectorAll('#results tbody tr')].some(row => row.textContent.includes('/subscribed') "
        "&& row.textContent.includes('+U'))"
    )
    page.evaluate("[...document.querySelectorAll('button')].find(each => each.textContent === 'Stop').click()")
    see(page, "Stopped.")


def test_live_mode(page: Chromium, root: psycopg.Connection[Any]) -> None:
    sign_in(page)
    go(page, "sql")
    run(page, f"SELECT visits FROM \"top{HOSTILE.replace(chr(34), chr(34) * 2)}\" WHERE page = '/live'", live=True)
    see(page, "live: postgres.public.by_page")  # what the view reads
    for n in (1, 2):
        visit(root, "/live")
        wait_for_result(page, [[str(n)]])
        if n == 1:
            page.evaluate("document.querySelector('#results .scroll').focus()")
    assert page.evaluate("document.activeElement.className") == "scroll"  # rows come anew, the focus stays
    assert page.evaluate("document.querySelector('#results caption').textContent").startswith("SELECT 1, live: read ")
    assert page.evaluate("performance.getEntriesByType('resource').every(each => !each.name.includes('Basic'))")
    run(page, "SELECT 1", live=True)
    see(page, "The statement names no materialized view.")
    run(page, "SELECT nosuch FROM by_page", live=True)
    see(page, '42703: column "nosuch" does not exist')


def test_a_role_sees_what_it_may_read(page: Chromium) -> None:
    sign_in(page, "reader")
    go(page, "stores")
    see(page, "There is no store that you may use.")
    go(page, "relations")
    assert page.evaluate("[...document.querySelectorAll('main tbody a')].map(a => a.textContent)") == ["by_page"]
    go(page, "queries")
    page.wait_for("document.querySelectorAll('main tbody tr').length === 1")
    go(page, "rejected")
    see(page, "No record has been rejected.")
    go(page, "sql")
    run(page, "SELECT * FROM by_minute")
    see(page, "42501: permission denied for materialized view by_minute")


def test_the_keyboard(page: Chromium) -> None:
    sign_in(page)
    go(page, "sql")
    page.evaluate("document.activeElement.blur(); document.getElementById('skip').focus()")
    page.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.press("Tab")
    assert page.evaluate("document.activeElement.id") == "statement"
    page.evaluate("document.getElementById('statement').select()")
    page.write("SELECT 42 AS answer")
    page.press("Enter", modifiers=2)
    wait_for_result(page, [["42"]])
    page.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Run"
    go(page, "queries")
    page.wait_for("document.querySelectorAll('main tbody tr').length === 3")
    page.evaluate("document.querySelector('main tbody a').focus()")
    asked = "performance.getEntriesByType('resource').filter(each => each.name.endsWith('/v1/sql')).length"
    page.wait_for(f"{asked} > {page.evaluate(asked) + 1}")
    assert page.evaluate("document.activeElement.textContent") == "postgres.public.by_minute"  # still, after a sample
    page.press("Enter")
    page.wait_for("document.querySelector('h1').textContent === 'postgres.public.by_minute'")
    assert page.evaluate("document.activeElement.id") == "main"


PAGES = ("stores", "stores/local", "stores/local/visits", "relations", "relations/postgres/public/by_page", "queries",
         "lineage", "rejected", "sql")  # fmt: skip


def test_accessibility_in_both_widths_and_schemes(page: Chromium, axe: str) -> None:
    found: dict[str, list[Any]] = {}

    def check(name: str) -> None:
        for width, dark in product((1280, 390), (False, True)):
            page.look(width, dark=dark)
            if grave := grave_findings(page, axe):
                found[f"{name} at {width}, dark: {dark}"] = grave
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name

    check("sign in")
    sign_in(page)
    for name in PAGES:
        go(page, name)
        if name == "lineage":
            page.wait_for("document.querySelector('svg .node')")
        if name == "queries":
            page.wait_for("document.querySelector('.plot canvas')")
        if name == "sql":
            run(page, "SELECT * FROM by_page; SELECT nosuch")
            page.wait_for("document.querySelector('.failure')")
        check(name)
    assert found == {}


def test_narrow_tables_show_each_row_as_a_block(page: Chromium) -> None:
    """On a telephone the state of a query is seen without scrolling sideways, and is still a cell of a table."""
    sign_in(page)
    page.look(390)
    go(page, "queries")
    page.wait_for("document.querySelectorAll('main tbody tr').length === 3")
    state = "document.querySelector('main tbody .state')"
    assert page.evaluate(f"{state}.getBoundingClientRect().right") <= 390
    assert page.evaluate(f"getComputedStyle({state}.closest('td'), '::before').content") == '"State"'
    assert page.evaluate(f"{state}.closest('td').getAttribute('role')") == "cell"


def test_texts_of_the_lineage_stay_in_their_boxes(page: Chromium) -> None:
    sign_in(page)
    go(page, "lineage")
    page.wait_for("document.querySelector('svg .node')")
    beyond = page.evaluate(
        "[...document.querySelectorAll('svg .node text')].filter(text => text.getBoundingClientRect().right > "
        "text.parentNode.querySelector('rect').getBoundingClientRect().right).map(text => text.textContent)"
    )
    assert beyond == []


def test_texts_and_graphs(page: Chromium) -> None:
    def module(name: str, expression: str) -> Any:
        return page.evaluate(f"import('/console/{name}.js').then(m => {expression})")

    cases: dict[str, list[str]] = {
        "": [],
        " ; ;": [],
        "SELECT 1": ["SELECT 1"],
        "a; b ;c": ["a", "b", "c"],
        "SELECT ';', E'\\';', \"x;\"\"\"; d": ["SELECT ';', E'\\';', \"x;\"\"\"", "d"],
        "-- x;\na /* ; /* ; */ ; */; b": ["-- x;\na /* ; /* ; */ ; */", "b"],
        "SELECT $$;$$, $a$ $$;$a$, $1; -- end;": ["SELECT $$;$$, $a$ $$;$a$, $1"],
        "a 'open; b": ["a 'open; b"],
    }
    for given, expected in cases.items():
        assert module("statements", f"m.split({json.dumps(given)}).map(each => each.text)") == expected
    assert module("statements", "m.unitsBefore('😀x', 2)") == 2
    assert module("statements", "m.parts('a.b.c.d')") == ["a", "b", "c.d"]
    assert module("session", "m.basic('é', ':')") == "Basic w6k6Og=="
    views, below = ["d.s.a", "d.s.b"], [{"object": "d.s.v", "kind": "view", "depends_on": "d.s.b"}]
    for given, expected in (("SELECT A FROM a", ["d.s.a"]), ("FROM v", ["d.s.b"]), ('FROM "A"', []), ("FROM ab", [])):
        found = module("pages/editor", f"m.viewsIn({json.dumps(given)}, {json.dumps(views)}, {json.dumps(below)})")
        assert found == expected
    assert module("format", "[m.bytes('\\\\x3c62c3a9'), m.bytes('\\\\xff'), m.duration(90061000), m.seconds(0.5)]") == [
        "<bé", "\\xff", "25 h", "500 ms",
    ]  # fmt: skip
    days = [
        module("format", f"m.span('2026-01-01T08:00:00', '{end}')")
        for end in ("2026-01-01T09:00:00", "2026-01-02T00:00:00")
    ]
    assert days == ["2026-01-01 08:00:00 – 09:00:00", "2026-01-01 08:00:00 – 2026-01-02 00:00:00"]
    edges = [["a", "b"], ["b", "c"], ["a", "c"], ["c", "a"], ["d", "d"], ["a", "gone"]]
    drawn = module(
        "graph", f"((g) => [[...g.places], g.lines.length])(m.layout(['a','b','c','d'], {json.dumps(edges)}))"
    )
    places = {name: place["x"] for name, place in drawn[0]}
    assert places["a"] < places["b"] < places["c"]
    assert drawn[1] == 3
    spots = [(place["x"], place["y"]) for _, place in drawn[0]]
    assert all(a[0] != b[0] or abs(a[1] - b[1]) >= 46 for a in spots for b in spots if a is not b)
    rows = "new m.LiveRows()"
    counted = module(
        "live",
        f"((r) => {{ r.take('snapshot', {{columns: [{{name: 'x'}}], key: [], rows: [{{x: 1}}, {{x: 1}}]}}); "
        "r.take('change', {changes: [{op: '-D', row: {x: 1}}, {op: '+I', row: {x: 2}}]}); "
        f"return [r.size, r.first(9).map(each => each.row.x)] }})({rows})",
    )
    assert counted == [2, [1, 2]]


def test_screenshots(page: Chromium, tmp_path: Path) -> None:
    """In both widths and schemes: the figures are drawn, in the colours of the scheme."""
    sign_in(page)
    go(page, "queries")
    page.wait_for("document.querySelector('.plot canvas')")
    sizes = set()
    for width in (1280, 390):
        for dark in (False, True):
            page.look(width, dark=dark)
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert ground == ("rgb(18, 22, 28)" if dark else "rgb(255, 255, 255)")
            page.screenshot(tmp_path / f"{width}-{dark}.png")
            sizes.add((tmp_path / f"{width}-{dark}.png").stat().st_size)
    assert len(sizes) == 4
