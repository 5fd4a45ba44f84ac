"""The HTTP front end of the real program, asked by httpx, curl and bare sockets. No Java is found, so no Spark; the
views are those of a kept directory."""

from __future__ import annotations

import json
import random
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pyarrow as pa
import pytest
from openapi_spec_validator import validate

from mvserver import first_password, limits
from tests.server import kept_directory
from tests.server.program import Program, refusal, without_java
from tests.wire import certificates as wire_certificates

PASSWORD = "correct horse"
JSON, LINES, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
GENEROUS_S = 60.0


def http_port(program: Program) -> int:
    match = re.search(rb"HTTP on 127\.0\.0\.1:(\d+)\n", program.stdout)
    assert match is not None, program.stdout
    return int(match[1])


def client(program: Program, *, user: str = "postgres", scheme: str = "http", **rest: Any) -> httpx2.Client:
    return httpx2.Client(
        base_url=f"{scheme}://127.0.0.1:{http_port(program)}",
        auth=(user, ""),
        timeout=GENEROUS_S,
        trust_env=False,
        **rest,
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("server")
    kept_directory.unpack(folder)
    arguments = ("--http-port", "0", "--http-cors-origins", "https://a.example", "--http-max-connections", "40",
                 "--authentication-timeout", "2s", "--log-level", "debug")  # fmt: skip
    with Program(folder, *arguments) as program:
        yield program.ready()


@pytest.fixture
def http(server: Program) -> Iterator[httpx2.Client]:
    with client(server) as made:
        yield made


@pytest.fixture
def root(server: Program) -> Iterator[psycopg.Connection[Any]]:
    with server.connect() as connection:
        yield connection


def sql(http: httpx2.Client, statement: str, *parameters: Any, accept: str = JSON, **rest: Any) -> httpx2.Response:
    body = {"statement": statement, "parameters": parameters, **rest}
    return http.post("/v1/sql", json=body, headers={"Accept": accept})


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GENEROUS_S
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.02)


# --- statements -------------------------------------------------------------------------------------------------------


def test_rows_in_each_format_are_the_same(http: httpx2.Client) -> None:
    columns = "x AS id, (x / 4.0)::numeric(12, 2) AS q, 'n' || x AS name, x % 2 = 0 AS even"
    text = f"SELECT {columns} FROM generate_series(1, $1) AS g(x)"
    document = sql(http, text, 30_000)
    assert document.status_code == 200
    rows = document.json()["rows"]
    assert rows[2] == {"id": 3, "q": 0.75, "name": "n3", "even": False}
    assert document.json()["command"] == "SELECT 30000"
    assert [column["type"] for column in document.json()["columns"]] == ["bigint", "numeric", "text", "boolean"]
    lines = sql(http, text, 30_000, accept=LINES)
    assert [json.loads(line) for line in lines.text.splitlines()] == rows
    arrays = sql(http, text, 30_000, accept=f"{JSON}; rows=array").json()["rows"]
    assert arrays == [list(row.values()) for row in rows]
    table = pa.ipc.open_stream(sql(http, text, 30_000, accept=ARROW).content).read_all()
    assert table.column_names == ["id", "q", "name", "even"]
    assert [float(each["q"]) for each in table.to_pylist()] == [row["q"] for row in rows]
    assert table.column("name").to_pylist() == [row["name"] for row in rows]
    assert table.schema.field("q").metadata[b"postgresql.type"] == b"numeric"


def test_arrays_of_more_dimensions_than_the_query_has_are_refused(
    http: httpx2.Client, root: psycopg.Connection[Any]
) -> None:
    """Their rows were texts like "[a]", and what was compared with them was not found."""
    table = [["/home"], ["/about"]]
    assert sql(http, "SELECT $1::text[][] AS x", table).json()["rows"] == [{"x": table}]
    for text in ("SELECT $1::text[]", "SELECT unnest($1::text[])", "SELECT 1 AS x WHERE '/home' = ANY($1)"):
        answer = sql(http, text, table)
        assert (answer.status_code, answer.json()["code"]) == (400, "0A000"), answer.text
        asked_ = text.replace("$1", "%s").encode()
        for prepare in (False, True, True):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="has more than one dimension"):
                root.execute(asked_, (table,), prepare=prepare)
        assert root.execute(asked_, (["/home"],), prepare=True).fetchall()


def test_empty_results_have_their_shape(http: httpx2.Client) -> None:
    text = "SELECT 1 AS a, 'x' AS b WHERE false"
    assert sql(http, text).json() == {
        "columns": [{"name": "a", "type": "integer"}, {"name": "b", "type": "text"}], "rows": [],
        "command": "SELECT 0", "notices": [],
    }  # fmt: skip
    assert sql(http, text, accept=LINES).content == b""
    assert pa.ipc.open_stream(sql(http, text, accept=ARROW).content).read_all().num_rows == 0


def test_values_are_the_wires(http: httpx2.Client, root: psycopg.Connection[Any]) -> None:
    """Every text that JSON shows of a column is what the wire's text form has, or reads back as it."""
    text = "SELECT * FROM minutes ORDER BY 1, 2, 3"
    wire = root.execute(text).fetchall()
    found = sql(http, text, accept=f"{JSON}; rows=array").json()["rows"]
    assert len(found) == len(wire) > 0
    for row, other in zip(found, wire, strict=True):
        assert [str(value).replace("T", " ") for value in row] == [str(value) for value in other]


def test_statements_without_rows(http: httpx2.Client) -> None:
    made = sql(http, "CREATE ROLE without_rows")
    assert made.json() == {"command": "CREATE ROLE", "notices": []}
    dropped = sql(http, "DROP ROLE without_rows", accept=LINES)
    assert (dropped.status_code, dropped.content, dropped.headers["mv-command"]) == (204, b"", "DROP ROLE")
    notice = sql(http, "DROP ROLE IF EXISTS without_rows").json()["notices"]
    assert [each["message"] for each in notice] == ['role "without_rows" does not exist, skipping']


def test_a_request_is_a_session_of_its_own(http: httpx2.Client) -> None:
    assert sql(http, "SET TimeZone = 'Asia/Tokyo'").json()["command"] == "SET"
    assert sql(http, "SHOW TimeZone").json()["rows"] != [{"TimeZone": "Asia/Tokyo"}]
    shown = sql(http, "SELECT to_timestamp(0) AS t", settings={"TimeZone": "Asia/Tokyo"}).json()
    assert shown["rows"] == [{"t": "1970-01-01T09:00:00+09:00"}]
    assert sql(http, "SELECT current_schema() AS s", schema="pg_catalog").json()["rows"] == [{"s": "pg_catalog"}]


@pytest.mark.parametrize(
    ("statement", "status", "code"),
    [("SELEC 1", 400, "42601"), ("SELECT 1/0", 400, "22012"), ("SELECT * FROM nope", 400, "42P01"),
     ("BEGIN", 400, "0A000"), ("SELECT 1 AS a; SELECT 2 AS b", 400, "42601"), ("SELECT 1, 2", 400, "42701"),
     ("SELECT $1::int", 400, "08P01"), ("COPY keyed TO STDOUT", 400, "0A000"), ("LISTEN x", 400, "0A000"),
     ("-- nothing", 400, "42601"), ("CREATE VIEW keyed AS SELECT 1 AS a", 409, "42P07")],
)  # fmt: skip
def test_errors(http: httpx2.Client, statement: str, status: int, code: str) -> None:
    answer = sql(http, statement)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert set(answer.json()) == {"code", "message", "detail", "hint", "position"}


def test_an_application_needs_a_session(http: httpx2.Client) -> None:
    """Its statements are several requests, and each request is a session."""
    answer = sql(http, "BEGIN APPLICATION clicks")
    assert (answer.status_code, answer.json()["code"]) == (400, "0A000")
    assert "BEGIN APPLICATION" in answer.json()["hint"]
    whole = sql(http, "BEGIN APPLICATION clicks; CREATE STREAM s (a INTEGER); END APPLICATION")
    assert (whole.status_code, whole.json()["code"]) == (400, "42601")
    ended = sql(http, "END APPLICATION")
    assert (ended.status_code, ended.json()["code"]) == (400, "25P01")


def test_records_are_printed_as_they_come(http: httpx2.Client, root: psycopg.Connection[Any], server: Program) -> None:
    """Also with a LIMIT whose last records are still to come, over HTTP and the wire."""
    root.execute("CREATE STORE printed WITH ('type' = FILE, 'uris' = '.')")
    root.execute("CREATE ENTITY prints IN STORE printed")
    put = "INSERT INTO ENTITY prints IN STORE printed VALUE ('{}')"
    text = "PRINT ENTITY prints IN STORE printed WITH ('from_beginning') LIMIT 3"
    root.execute(put.format('{"n": 0}').encode())
    body, headers = (
        json.dumps({"statement": text}),
        {"Content-Type": "application/json", "Accept": "application/x-ndjson"},
    )
    with server.connect() as other, http.stream("POST", "/v1/sql", content=body, headers=headers) as answer:
        lines, rows = answer.iter_lines(), other.cursor().stream(text.encode(), size=1)
        for number in range(3):
            assert json.loads(next(lines))["value"] == f'{{"n": {number}}}'
            assert next(rows)[1] == f'{{"n": {number}}}'
            if number < 2:
                root.execute(put.format(f'{{"n": {number + 1}}}').encode())
        assert list(lines) == []
        assert list(rows) == []
    root.execute("DROP ENTITY prints IN STORE printed WITH ('delete.files' = TRUE)")
    root.execute("DROP STORE printed")


def test_the_position_counts_in_the_statement(http: httpx2.Client) -> None:
    assert sql(http, "SELECT 'é', nope").json()["position"] == 13


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{}", 400), (b'{"statement": 5}', 400), (b'{"statement": "SELECT 1", "x": 1}', 400), (b"[", 400),
     (b'{"statement": "SELECT 1", "parameters": {}}', 400), (b'{"statement": "SELECT 1", "database": "nope"}', 400),
     (b'{"statement": "SELECT 1", "settings": {"role": "x"}}', 400),
     (b'{"statement": "SELECT 1", "settings": {"nope": "x"}}', 400),
     (b'{"statement": "SELECT 1", "role": "nope"}', 400),
     *((b'{"statement": "SELECT 1 AS x", "%b": "\\ud800"}' % name, 400) for name in (b"schema", b"database", b"role")),
     (b'{"statement": "SELECT \'\\ud800\' AS x"}', 400),
     (b'{"statement": "SELECT 1 AS x", "settings": {"application_name": "\\ud800"}}', 400),
     (b'{"statement": "' + b"x" * limits.MESSAGE_BYTES_MAX + b'"}', 413),
     (b'{"statement": "SELECT ' + b"1" * (limits.STATEMENT_BYTES_MAX + 1) + b'"}', 413)],
)  # fmt: skip
def test_bodies_that_are_refused(http: httpx2.Client, body: bytes, status: int) -> None:
    answer = http.post("/v1/sql", content=body, headers={"Content-Type": JSON})
    assert answer.status_code == status, answer.text
    assert answer.json()["message"]


def test_a_form_of_another_site_is_refused(http: httpx2.Client) -> None:
    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"):
        answer = http.post("/v1/sql", content=b'{"statement": "SELECT 1"}', headers={"Content-Type": kind})
        assert answer.status_code == 415
    compressed = {"Content-Type": JSON, "Content-Encoding": "gzip"}
    assert http.post("/v1/sql", content=b"x", headers=compressed).status_code == 415


def test_a_statement_that_is_out_of_time(http: httpx2.Client) -> None:
    answer = sql(http, "SELECT pg_sleep(30)", settings={"statement_timeout": "100ms"})
    assert (answer.status_code, answer.json()["code"]) == (504, "57014")


def running(root: psycopg.Connection[Any], mark: str) -> int:
    (count,) = root.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'http' AND query LIKE %s", [f"%{mark}%"]
    ).fetchone()  # type: ignore[misc]
    return int(count)


def test_a_client_that_goes_away_cancels_its_statement(server: Program, root: psycopg.Connection[Any]) -> None:
    body = json.dumps({"statement": "SELECT pg_sleep(600), 'gone-away'"}).encode()
    head = f"POST /v1/sql HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic cG9zdGdyZXM6\r\nContent-Type: {JSON}\r\n"
    with socket.create_connection(("127.0.0.1", http_port(server)), GENEROUS_S) as stream:
        stream.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        wait_for(lambda: running(root, "gone-away") == 1)
    wait_for(lambda: running(root, "gone-away") == 0)


def test_a_client_that_reads_slowly_has_its_result_made_slowly(server: Program, root: psycopg.Connection[Any]) -> None:
    """What is sent without being read stays within the buffers: the statement waits, and ends with its client."""
    text = "SELECT repeat('x', 1000) AS slow_reader FROM generate_series(1, 1000000) AS g(x)"
    with client(server) as http:
        body = {"statement": text}
        with http.stream("POST", "/v1/sql", json=body, headers={"Accept": LINES}) as answer:
            pieces = answer.iter_raw()  # kept: without it the client hangs up
            assert next(pieces).startswith(b'{"slow_reader":"xxx')
            wait_for(lambda: running(root, "slow_reader") == 1)
            used = memory_of(server)
            time.sleep(1.0)  # a pause of the client, in which a server that does not wait would make a gigabyte
            assert memory_of(server) - used < 200 * 2**20
            assert running(root, "slow_reader") == 1
    wait_for(lambda: running(root, "slow_reader") == 0)
    assert "internal error" not in server.stderr
    assert "Traceback" not in server.stderr, server.stderr[server.stderr.index("Traceback") - 500 :][:3000]


def memory_of(server: Program) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert match is not None
    return int(match[1]) * 1024


def test_pg_terminate_backend_ends_a_request(server: Program, root: psycopg.Connection[Any]) -> None:
    with client(server) as http:
        found: list[httpx2.Response] = []
        asking = threading.Thread(target=lambda: found.append(sql(http, "SELECT pg_sleep(600), 'to-end'")))
        asking.start()
        wait_for(lambda: running(root, "to-end") == 1)
        root.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'http' AND query LIKE '%to-end%'"
        )
        asking.join(GENEROUS_S)
        assert (found[0].status_code, found[0].json()["code"]) == (503, "57P01")


# --- views ------------------------------------------------------------------------------------------------------------


def view(http: httpx2.Client, name: str, query: str = "", **headers: str) -> httpx2.Response:
    return http.get(f"/v1/views/postgres/public/{name}{query}", headers=headers)


@pytest.mark.parametrize(
    ("query", "where"),
    [("", ""), ("?url=eq../a", "WHERE url = './a'"),
     ("?visits=gte.2&visits=lt.100", "WHERE visits >= 2 AND visits < 100"),
     ("?url=in.(./a,./b)&order=visits.desc,url", "WHERE url IN ('./a', './b') ORDER BY visits DESC, url"),
     ("?url=is.null", "WHERE url IS NULL"), ("?url=not.is.null&order=url", "WHERE url IS NOT NULL ORDER BY url"),
     ("?url=like.%25a", "WHERE url LIKE '%a'"),
     ("?order=url.desc.nullslast&limit=1", "ORDER BY url DESC NULLS LAST LIMIT 1"),
     ("?order=url&limit=1&offset=1", "ORDER BY url LIMIT 1 OFFSET 1"), ("?total=eq.3.75", "WHERE total = 3.75"),
     ("?url=not.eq../a", "WHERE NOT url = './a'")],
)  # fmt: skip
def test_a_view_with_filters(http: httpx2.Client, root: psycopg.Connection[Any], query: str, where: str) -> None:
    answer = view(http, "keyed", query)
    assert answer.status_code == 200, answer.text
    expected = root.execute(f"SELECT url, visits, total, slowest FROM keyed {where}".encode()).fetchall()
    found = [tuple(row.values()) for row in answer.json()]
    if "order" not in query:
        expected, found = sorted(expected, key=str), sorted(found, key=str)
    assert len(found) == len(expected)
    for row, (url, visits, total, slowest) in zip(found, expected, strict=True):
        assert row == (url, visits, None if total is None else float(total), slowest)


def test_columns_of_a_view(http: httpx2.Client) -> None:
    rows = view(http, "keyed", "?columns=visits,url&order=url&limit=1").json()
    assert list(rows[0]) == ["visits", "url"]
    lines = view(http, "keyed", "?columns=url&order=url", Accept=LINES)
    assert [json.loads(line)["url"] for line in lines.text.splitlines()] == ["./a", "./b", None]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [("postgres/public/nope", 404, "42P01"), ("nope/public/keyed", 404, "3D000"), ("postgres/nope/keyed", 404, "42P01"),
     ("postgres/public/clicks", 404, "42809"), ("postgres/public/keyed?nope=eq.1", 400, "42703"),
     ("postgres/public/keyed?columns=nope", 400, "42703"), ("postgres/public/keyed?visits=eq.x", 400, "22P02"),
     ("postgres/public/keyed?visits=5", 400, "08P01"), ("postgres/public/ke%00yed", 400, "08P01"),
     ("postgres/pg_catalog/pg_class", 404, "42809")],
)  # fmt: skip
def test_views_that_cannot_be_read(http: httpx2.Client, path: str, status: int, code: str) -> None:
    answer = http.get(f"/v1/views/{path}")
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


def test_an_etag_holds_while_nothing_changes(server: Program, http: httpx2.Client) -> None:
    first = view(http, "keyed")
    tag = first.headers["etag"]
    again = view(http, "keyed", **{"If-None-Match": f'"other", W/{tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert view(http, "keyed").headers["etag"] == tag
    others = {
        view(http, "keyed", "?limit=1").headers["etag"],
        view(http, "keyed", Accept=LINES).headers["etag"],
        view(http, "whole").headers["etag"],
    }
    assert len(others | {tag}) == 4
    with server.connect() as connection:
        connection.execute("CREATE ROLE other LOGIN")
        connection.execute("GRANT SELECT ON keyed TO other")
        tag = view(http, "keyed").headers["etag"]  # a definition has changed, and it may be the view's
        with client(server, user="other") as other:
            assert view(other, "keyed", **{"If-None-Match": tag}).status_code == 200
            assert view(other, "whole", **{"If-None-Match": "*"}).status_code == 403
        connection.execute("REVOKE SELECT ON keyed FROM other")
        connection.execute("DROP ROLE other")


def test_an_etag_ends_with_a_drop_and_a_restart(tmp_path: Path) -> None:
    kept_directory.unpack(tmp_path)
    tags = set()
    for _ in range(2):
        with Program(tmp_path, "--http-port", "0") as program, client(program.ready()) as http:
            tags.add(view(http, "keyed").headers["etag"])
            with program.connect() as connection:
                connection.execute("CREATE VIEW shown AS SELECT url FROM keyed")
                assert "etag" not in view(http, "shown").headers
                connection.execute("DROP VIEW shown")
            tags.add(view(http, "keyed").headers["etag"])
            program.terminate()
            assert program.ended() == 0
    assert len(tags) == 4


# --- who asks ---------------------------------------------------------------------------------------------------------


def test_tokens_act_as_their_role(server: Program, http: httpx2.Client, root: psycopg.Connection[Any]) -> None:
    root.execute("CREATE ROLE reader LOGIN")
    made = sql(http, "CREATE API_TOKEN of_reader", role="reader").json()["rows"]
    ended = sql(http, "CREATE API_TOKEN ended VALID UNTIL '2000-01-01'").json()["rows"]
    token = made[0]["token"]
    bearer = {"Authorization": f"Bearer {token}"}
    asked = {"statement": "SELECT current_user AS u"}
    assert http.post("/v1/sql", json=asked, headers=bearer, auth=None).json()["rows"] == [{"u": "reader"}]
    listed = root.execute("LIST API_TOKENS").fetchall()
    assert [(row[0], row[1]) for row in listed] == [("ended", "postgres"), ("of_reader", "reader")]
    own = http.post("/v1/sql", json={"statement": "LIST API_TOKENS"}, headers=bearer, auth=None).json()["rows"]
    assert [row["name"] for row in own] == ["of_reader"]
    refused = http.post("/v1/sql", json={"statement": "DROP API_TOKEN ended"}, headers=bearer, auth=None)
    assert (refused.status_code, refused.json()["code"]) == (403, "42501")
    late = http.post("/v1/sql", json=asked, headers={"Authorization": f"Bearer {ended[0]['token']}"}, auth=None)
    assert late.status_code == 401
    root.execute("ALTER ROLE reader RENAME TO renamed")
    assert http.post("/v1/sql", json=asked, headers=bearer, auth=None).json()["rows"] == [{"u": "renamed"}]
    with pytest.raises(psycopg.errors.ActiveSqlTransaction), root.transaction():
        root.execute("CREATE API_TOKEN in_a_block")
    root.execute("DROP ROLE renamed")
    gone = http.post("/v1/sql", json=asked, headers=bearer, auth=None)
    assert (gone.status_code, gone.headers["www-authenticate"]) == (401, 'Bearer realm="mvserver"')
    root.execute("DROP API_TOKEN ended")
    with pytest.raises(psycopg.errors.UndefinedObject):
        root.execute("DROP API_TOKEN ended")
    for secret in (token, ended[0]["token"]):
        assert secret not in server.stderr
        assert secret.encode() not in b"".join(path.read_bytes() for path in (server_data(server)).glob("catalog.db*"))


def server_data(server: Program) -> Path:
    command = Path(f"/proc/{server.process.pid}/cmdline").read_bytes().split(b"\0")
    return Path(command[command.index(b"--data-dir") + 1].decode())


def test_passwords_and_tls(tmp_path: Path) -> None:
    certificate = wire_certificates.make(tmp_path)
    arguments = ("--authentication", "scram-sha-256", "--tls", "on", "--tls-certificate", str(certificate.file),
                 "--tls-key", str(certificate.key), "--http-port", "0", "--log-level", "debug")  # fmt: skip
    environment = {**without_java(), first_password.VARIABLE: PASSWORD}
    with Program(tmp_path, *arguments, environment=environment) as program:
        program.ready()
        trusted = ssl.create_default_context(cafile=str(certificate.file))
        trusted.check_hostname = False
        with client(program, scheme="https", verify=trusted) as http:
            asked = {"statement": "SELECT current_user AS u, current_setting('ssl') AS s"}
            good = http.post("/v1/sql", json=asked, auth=("postgres", PASSWORD))
            assert good.json()["rows"] == [{"u": "postgres", "s": "on"}]
            for auth in (("postgres", "wrong"), ("nobody", PASSWORD), None):
                bad = http.post("/v1/sql", json=asked, auth=auth)
                assert bad.status_code == 401
                assert bad.headers["www-authenticate"].startswith("Basic ")
            assert http.get("/healthz", auth=None).json() == {"status": "ok"}
        for secret in (PASSWORD, "wrong"):
            assert secret not in program.stderr.replace("the password is wrong", "")
        with socket.create_connection(("127.0.0.1", http_port(program)), GENEROUS_S) as clear:
            clear.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert not clear.recv(100).startswith(b"HTTP")


def test_trust_asks_for_a_name_and_a_host_of_this_machine(http: httpx2.Client) -> None:
    asked = {"statement": "SELECT 1 AS a"}
    assert http.post("/v1/sql", json=asked, auth=None).status_code == 401
    rebound = http.post("/v1/sql", json=asked, headers={"Host": "evil.example"})
    assert (rebound.status_code, rebound.json()["code"]) == (401, "28000")


# --- browsers ---------------------------------------------------------------------------------------------------------


def test_pages_of_other_origins(http: httpx2.Client) -> None:
    preflight = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    allowed = http.request("OPTIONS", "/v1/sql", headers=preflight, auth=None)
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (204, "https://a.example")
    assert allowed.headers["vary"] == "Origin"
    refused = http.request("OPTIONS", "/v1/sql", headers={**preflight, "Origin": "https://b.example"}, auth=None)
    assert "access-control-allow-origin" not in refused.headers
    read = view(http, "keyed", Origin="https://a.example")
    assert read.headers["access-control-allow-origin"] == "https://a.example"
    assert set(read.headers["vary"].split(", ")) == {"Origin", "Accept", "Authorization"}
    assert "access-control-allow-origin" not in view(http, "keyed", Origin="https://b.example").headers
    failed = view(http, "nope", Origin="https://a.example")
    assert failed.headers["access-control-allow-origin"] == "https://a.example"


# --- the server itself ------------------------------------------------------------------------------------------------


def test_the_openapi_document_is_one(http: httpx2.Client) -> None:
    document = http.get("/v1/openapi.json", auth=None).json()
    validate(document)
    assert set(document["paths"]) == {
        "/v1/sql", "/v1/views/{database}/{schema}/{view}", "/v1/changes", "/v1/tickets", "/v1/openapi.json", "/console",
        "/healthz", "/readyz",
    }  # fmt: skip


def test_the_openapi_document_has_the_views_that_may_be_read(
    http: httpx2.Client, server: Program, root: psycopg.Connection[Any]
) -> None:
    root.execute('CREATE DATABASE "o/p"')
    root.execute("CREATE ROLE describer LOGIN")
    root.execute(
        'CREATE VIEW "a/{b}" AS SELECT 1::bigint AS "limit", ARRAY[1.5] AS list, now() AS at, \'{}\'::jsonb AS doc'
    )
    root.execute('GRANT SELECT ON "a/{b}" TO describer')
    try:
        document = http.get("/v1/openapi.json").json()
        validate(document)
        path = "/v1/views/postgres/public/a%2F%7Bb%7D"
        own = document["paths"][path]["get"]
        row = own["responses"]["200"]["content"]["application/json"]["schema"]["items"]
        assert {name: each.get("type") for name, each in row["properties"].items()} == {
            "limit": ["integer", "string", "null"], "list": ["array", "null"], "at": ["string", "null"], "doc": None,
        }  # fmt: skip
        assert '"limit"' in {each["name"] for each in own["parameters"]}
        (found,) = http.get(path).json()
        assert set(found) == set(row["properties"])
        columns = {name: each["items"] for name, each in _rows_by_path(document).items()}
        assert set(columns) > {path, "/v1/views/postgres/public/minutes"}
        for address in columns:
            for shown in http.get(address, params={"limit": 3}).json():
                assert set(shown) == set(columns[address]["properties"]), address
        with client(server, user="describer") as other:
            assert set(_rows_by_path(other.get("/v1/openapi.json").json())) == {path}
        wrong = http.get("/v1/openapi.json", auth=None, headers={"Authorization": "Bearer nope"})
        assert wrong.status_code == 401
        assert _rows_by_path(http.get("/v1/openapi.json", auth=None).json()) == {}
    finally:
        root.execute('DROP VIEW "a/{b}"')
        root.execute("DROP ROLE describer")
        root.execute('DROP DATABASE "o/p"')


def _rows_by_path(document: Any) -> dict[str, Any]:
    """The schemas of the rows of each view that is named."""
    return {
        path: each["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        for path, each in document["paths"].items()
        if path.startswith("/v1/views/") and "{database}" not in path
    }


def test_health_and_readiness(http: httpx2.Client) -> None:
    assert http.get("/healthz", auth=None).status_code == 200
    wait_for(lambda: "needs Java" in http.get("/readyz", auth=None).text)
    assert http.get("/readyz", auth=None).status_code == 503


def test_paths_and_methods_that_are_not_there(http: httpx2.Client) -> None:
    for method, path, status in (("GET", "/", 404), ("GET", "/v1/sql", 405), ("DELETE", "/v1/sql", 405)):
        answer = http.request(method, path)
        assert (answer.status_code, answer.json()["code"]) == (status, "08P01")
    assert http.get("/v1/sql").headers["allow"] == "POST"


def test_heads_are_those_of_the_answers(http: httpx2.Client) -> None:
    for path in ("/healthz", "/readyz", "/v1/openapi.json", "/v1/views/postgres/public/whole", "/console"):
        whole, head = http.get(path), http.head(path)
        assert (head.status_code, head.content) == (whole.status_code, b""), path
        for name in ("content-type", "etag", "cache-control", "vary"):
            assert head.headers.get(name) == whole.headers.get(name), (path, name)
    tag = http.head("/v1/views/postgres/public/whole").headers["etag"]
    answer = http.head("/v1/views/postgres/public/whole", headers={"If-None-Match": tag})
    assert (answer.status_code, answer.content) == (304, b"")
    assert http.head("/v1/views/postgres/public/nope").status_code == 404
    assert http.head("/v1/views/postgres/public/whole", auth=None).status_code == 401
    assert http.head("/v1/changes?view=whole").status_code == 405


def test_lists_of_headers_stand_in_several_lines(http: httpx2.Client) -> None:
    path = "/v1/views/postgres/public/whole"
    tag = http.get(path).headers["etag"]
    assert http.get(path, headers=[("If-None-Match", '"x"'), ("If-None-Match", tag)]).status_code == 304
    assert http.get(path, headers=[("Accept", "text/html"), ("Accept", "application/json")]).status_code == 200


def test_tickets_that_are_refused(http: httpx2.Client) -> None:
    missing = http.post("/v1/tickets", json={"views": ["nope"]}).json()
    assert (missing["code"], missing["position"]) == ("42P01", None), "it has no statement of the client's"
    ticket = http.post("/v1/tickets", json={"views": ["whole"]}).json()["ticket"]
    for path in ("/v1/changes?view=whole", "/v1/views/postgres/public/whole?limit=1"):
        assert http.get(f"{path}&ticket={ticket}", auth=None).status_code == 200
        twice = http.get(f"{path}&ticket={ticket}&ticket={ticket}", auth=None)
        assert (twice.status_code, twice.json()["message"]) == (400, 'query parameter "ticket" stands twice')
    for wrong in ({"a": "1", "A": "2"}, {"a": "\ud800"}, {"a": 1}):
        claimed = http.post("/v1/tickets", content=json.dumps({"views": ["whole"], "claims": wrong}), headers=AS_JSON)
        assert (claimed.status_code, claimed.json()["code"]) == (400, "08P01"), claimed.text


def test_a_ticket_is_not_of_a_view_whose_name_reads_the_same(
    http: httpx2.Client, root: psycopg.Connection[Any]
) -> None:
    """Names may have dots: postgres.public."a.b" is not postgres."public.a".b."""
    root.execute('CREATE SCHEMA "public.a"')
    root.execute('CREATE VIEW "a.b" AS SELECT 1 AS x')
    root.execute('CREATE VIEW "public.a".b AS SELECT 2 AS x')
    ticket = http.post("/v1/tickets", json={"views": ['"a.b"']}).json()["ticket"]
    paths = ("/v1/views/postgres/public/a.b", "/v1/views/postgres/public.a/b")
    found = [http.get(f"{path}?ticket={ticket}", auth=None) for path in paths]
    assert [each.status_code for each in found] == [200, 403]
    assert found[0].json() == [{"x": 1}]
    for statement in ('DROP VIEW "a.b"', 'DROP VIEW "public.a".b', 'DROP SCHEMA "public.a"'):
        root.execute(statement.encode())


AS_JSON = {"Content-Type": JSON}


def test_curl(server: Program) -> None:
    command = [
        "curl",
        "-sS",
        "--fail",
        "-u",
        "postgres:",
        f"http://127.0.0.1:{http_port(server)}/v1/views/postgres/public/whole",
    ]
    done = subprocess.run(command, capture_output=True, check=True, timeout=GENEROUS_S)
    assert json.loads(done.stdout) == [{"visits": 6, "ms": 127}]


def test_garbage_leaves_the_server_up(server: Program, http: httpx2.Client) -> None:
    chance = random.Random(17)
    post = b"POST /v1/sql HTTP/1.1\r\nHost: x\r\n"
    beginnings = [
        b"", b"GET / HTTP/1.1\r\n", post + b"Content-Length: 99999999999999\r\n\r\n",
        post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"\x16\x03\x01\x02\x00",
    ]  # fmt: skip
    for number in range(60):
        with socket.create_connection(("127.0.0.1", http_port(server)), GENEROUS_S) as stream:
            stream.sendall(beginnings[number % len(beginnings)] + chance.randbytes(chance.randrange(2000)))
    long = {"X-Long": "x" * 20_000}
    assert http.get("/healthz", headers=long).status_code == 400
    assert http.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (b"GET /v1/views/postgres/public/whole?x=eq." + b"a" * 20_000 + b" HTTP/1.1\r\n", "is too long"),
        (b"GET /healthz HTTP/1.1\r\nX-Long: " + b"a" * 20_000 + b"\r\n", "is too long"),
        (b"GET /\0 HTTP/1.1\r\n", "is no HTTP"),
        (b"GET /healthz HTTP/1.1\r\nContent-Length: -1\r\n", "is no HTTP"),
        (b"FOO /healthz HTTP/1.1\r\n", "is no HTTP"),
        (b"GET /healthz HTTP/1.1\r\n\r\n", "is no HTTP"),  # without a Host
    ],
)
def test_what_is_no_http_is_told_so_in_json(server: Program, request_: bytes, message: str) -> None:
    end = b"" if request_.endswith(b"\r\n\r\n") else b"Host: localhost\r\n\r\n"
    head, body = told(server, request_ + end)
    assert head.split()[1] == b"400"
    assert headers_of(head) == {
        b"Content-Type": b"application/json; charset=utf-8", b"Cache-Control": b"no-store",
        b"X-Content-Type-Options": b"nosniff", b"Server": b"mvserver",
    }  # fmt: skip
    assert body["code"] == "08P01"
    assert message in body["message"]
    assert "aaa" not in json.dumps(body)
    assert "Traceback" not in server.stderr


def test_a_body_that_is_announced_as_too_large_is_not_waited_for(server: Program) -> None:
    head = b"POST /v1/sql HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic cG9zdGdyZXM6\r\n"
    length = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (limits.MESSAGE_BYTES_MAX + 1)
    status, body = asked(server, head + length)
    assert (status, body["code"]) == (413, "54000")


def headers_of(head: bytes) -> dict[bytes, bytes]:
    """But for those of the body and the moment."""
    lines = (line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
    return {name: value for name, value in lines if name not in (b"Content-Length", b"Date")}


def asked(server: Program, request: bytes) -> tuple[int, Any]:
    """The status and the JSON body of the answer to bytes."""
    head, body = told(server, request)
    return int(head.split()[1]), body


def told(server: Program, request: bytes) -> tuple[bytes, Any]:
    """The head and the JSON body of the answer to bytes, read until it is whole."""
    with socket.create_connection(("127.0.0.1", http_port(server)), GENEROUS_S) as stream:
        stream.sendall(request)
        answer = b""
        while not answer.endswith(b"}\n"):
            piece = stream.recv(65_536)
            assert piece, answer
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, json.loads(body)


def test_connections_that_ask_nothing_end_and_too_many_are_refused(server: Program, http: httpx2.Client) -> None:
    address = ("127.0.0.1", http_port(server))
    silent = [socket.create_connection(address, GENEROUS_S) for _ in range(45)]
    answers = []
    for stream in silent:
        stream.sendall(b"GET /heal")
    for stream in silent:
        try:
            answers.append(stream.recv(1000))
        except ConnectionResetError:  # hung up on, before it had read all
            answers.append(b"")
        stream.close()
    assert sum(answer.startswith(b"HTTP/1.1 503") for answer in answers) >= 4
    assert sum(answer == b"" for answer in answers) >= 30  # after the two seconds that a first request may take
    wait_for(lambda: http.get("/healthz").status_code == 200)


def test_a_stop_lets_statements_end_and_cancels_the_rest(tmp_path: Path) -> None:
    with Program(tmp_path, "--http-port", "0", "--shutdown-timeout", "3s") as program:
        program.ready()
        found: dict[str, Any] = {}

        def ask(name: str, seconds: float) -> None:
            with client(program) as http:
                found[name] = sql(http, f"SELECT pg_sleep({seconds}), '{name}'")

        threads = [threading.Thread(target=ask, args=each) for each in (("short", 1.5), ("long", 600))]
        for thread in threads:
            thread.start()
        with program.connect() as connection:
            wait_for(lambda: running(connection, "short") + running(connection, "long") == 2)
        program.terminate()
        for thread in threads:
            thread.join(GENEROUS_S)
        assert program.ended(GENEROUS_S) == 0
        assert found["short"].status_code == 200
        assert (found["long"].status_code, found["long"].json()["code"]) == (504, "57014")


def test_a_port_that_is_taken_and_packages_that_are_missing(
    server: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = refusal(monkeypatch, tmp_path, "--http-port", str(http_port(server)))
    assert f"cannot listen on 127.0.0.1:{http_port(server)}" in told
    monkeypatch.setitem(sys.modules, "mvserver.http.server", None)
    assert "pip install 'mvserver[web]'" in refusal(monkeypatch, tmp_path, "--http-port", "0")


# --- the console ------------------------------------------------------------------------------------------------------


def test_the_consoles_files(http: httpx2.Client) -> None:
    page = http.get("/console", auth=None)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = dict(part.split(" ", 1) for part in page.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["form-action"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "<style" not in page.text
    assert "onclick" not in page.text
    asked = re.findall(r'(?:src|href)="(console/[^"]+)"', page.text)
    assert len(asked) == 5
    assert len(re.findall("<script", page.text)) == len([each for each in asked if each.endswith(".js")])
    for path in asked:
        found = http.get(f"/{path}", auth=None)
        assert found.status_code == 200, path
        again = http.get(f"/{path}", auth=None, headers={"If-None-Match": found.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    scripts = http.get("/console/main.js", auth=None)
    assert scripts.headers["content-type"] == "text/javascript; charset=utf-8"
    for path in ("nosuch.js", "__init__.py", "..%2fapp.py", "pages/../../app.py", "vendor/README.md", ""):
        assert http.get(f"/console/{path}", auth=None).status_code == 404, path
