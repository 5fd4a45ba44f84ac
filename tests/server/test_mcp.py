"""The endpoint for assistants, asked by its own client over the views of a kept directory; no Java is found."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from tests.server import kept_directory
from tests.server.program import Program
from tests.server.test_http import client, http_port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("server")
    kept_directory.unpack(folder)
    with Program(folder, "--http-port", "0") as program:
        yield program.ready(120)


def ask(server: Program, *calls: tuple[str, Mapping[str, Any]], user: str = "postgres") -> list[tuple[bool, Any]]:
    """Of each call whether it failed, and what was said."""

    async def run() -> list[tuple[bool, Any]]:
        async with (
            httpx2.AsyncClient(auth=(user, ""), trust_env=False, timeout=60) as http,
            streamable_http_client(f"http://127.0.0.1:{http_port(server)}/mcp", http_client=http) as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            found = []
            for name, arguments in calls:
                result = await session.call_tool(name, dict(arguments))
                found.append((bool(result.is_error), json.loads(result.content[0].text)))
            return found

    return asyncio.run(run())


def tools_of(server: Program) -> list[str]:
    async def run() -> list[str]:
        async with (
            httpx2.AsyncClient(auth=("postgres", ""), trust_env=False, timeout=60) as http,
            streamable_http_client(f"http://127.0.0.1:{http_port(server)}/mcp", http_client=http) as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            return [tool.name for tool in (await session.list_tools()).tools]

    return asyncio.run(run())


def test_the_tools(server: Program) -> None:
    assert tools_of(server) == ["list_views", "describe_view", "query", "why"]


def test_views_are_listed_and_described(server: Program) -> None:
    with server.connect() as root:
        names = [
            f"{schema}.{name}"
            for schema, name in root.execute("SELECT schemaname, matviewname FROM pg_matviews ORDER BY 1, 2").fetchall()
        ]
        first = names[0]
        root.execute(f"COMMENT ON MATERIALIZED VIEW {first} IS 'what it is'".encode())
        columns = [column.name for column in root.execute(f"SELECT * FROM {first}".encode()).description or ()]
    (listed,), (described,), (why,), (missing,), (by_name_alone,) = (
        [each]
        for each in ask(
            server,
            ("list_views", {}),
            ("describe_view", {"view": first}),
            ("why", {"view": first}),
            ("describe_view", {"view": "public.nosuch"}),
            ("describe_view", {"view": first.removeprefix("public.")}),
        )
    )
    assert sorted(row["view"] for row in listed[1] if row["kind"] == "materialized view") == sorted(names)
    assert next(row for row in listed[1] if row["view"] == first)["description"] == "what it is"
    assert [column["name"] for column in described[1]["columns"]] == columns
    assert described[1]["description"] == "what it is"
    assert by_name_alone[1]["columns"] == described[1]["columns"]
    assert "SELECT" in described[1]["definition"].upper()
    assert [query["kind"] for query in why[1]["queries"]] == ["materialized_view"]
    assert (missing[0], missing[1]["code"]) == (True, "42P01")
    assert "Terminating session" not in server.stderr


def test_queries_read_and_are_limited(server: Program) -> None:
    found = ask(
        server,
        ("query", {"sql": "SELECT $1::int + i AS n FROM generate_series(1, 500) AS s(i)", "parameters": [7]}),
        ("query", {"sql": "SELECT 1 AS one", "limit": 1}),
        ("query", {"sql": "SELECT i FROM generate_series(1, 3) AS s(i)", "limit": 2}),
    )
    assert found == [
        (False, {"rows": [{"n": 7 + i} for i in range(1, 101)], "more": True}),
        (False, {"rows": [{"one": 1}], "more": False}),
        (False, {"rows": [{"i": 1}, {"i": 2}], "more": True}),
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("query", {"sql": "CREATE ROLE x"}, "25006"),
        ("query", {"sql": "DROP MATERIALIZED VIEW x"}, "25006"),
        ("query", {"sql": "SELECT nosuch"}, "42703"),
        ("query", {"sql": "SELECT 1; SELECT 2"}, "42601"),
        ("query", {"sql": "SELECT repeat('x', 1000000)"}, "54000"),
        ("query", {"sql": "SELECT 1", "limit": 0}, "22023"),
        ("query", {"sql": "SELECT 1", "limit": 1001}, "22023"),
        ("query", {"sql": 1}, "22023"),
        ("query", {"sql": "SELECT 1", "role": "postgres"}, "22023"),
        ("query", {}, "22023"),
        ("nosuch", {}, "42883"),
    ],
)
def test_what_is_refused(server: Program, tool: str, arguments: Mapping[str, Any], code: str) -> None:
    ((failed, said),) = ask(server, (tool, arguments))
    assert (failed, said["code"]) == (True, code), said


def test_an_assistant_may_what_its_role_may(server: Program) -> None:
    with server.connect() as root:
        root.execute("CREATE ROLE assistant LOGIN")
    (listed, refused) = ask(server, ("list_views", {}), ("query", {"sql": "SELECT * FROM pg_authid"}), user="assistant")
    assert listed == (False, [])
    assert (refused[0], refused[1]["code"]) == (True, "42501")


def test_who_does_not_speak_the_protocol(server: Program) -> None:
    with client(server) as http:
        assert http.get("/mcp").status_code == 405
        assert http.post("/mcp", json={}).status_code in (400, 406)
        headers = {"Accept": "application/json, text/event-stream"}
        assert (
            http.post("/mcp", content=b"{", headers={**headers, "Content-Type": "application/json"}).status_code == 400
        )
        http.auth = None
        assert http.post("/mcp", json={}, headers=headers).status_code == 401
