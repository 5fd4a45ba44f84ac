"""What requests say: parameters, filters, Accept, If-None-Match, origins, credentials."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

import pytest

from mvserver import limits
from mvserver.auth import passwords
from mvserver.auth.password_check import PasswordCheck
from mvserver.auth.throttle import Throttle
from mvserver.errors import SqlError
from mvserver.http.bodies import parsed
from mvserver.http.cors import Origins
from mvserver.http.credentials import Caller, Credentials
from mvserver.http.etags import etag, matches
from mvserver.http.formats import ARROW, JSON, NDJSON, negotiate, wants_events
from mvserver.http.json_values import Numbers
from mvserver.http.parameters import read_all
from mvserver.http.status import OF_PATHS, RequestError, status_of
from mvserver.http.view_query import ViewQuery, build
from mvserver.types import oids


def read(text: str, *types: int) -> list[Any]:
    return read_all(parsed(f'{{"p": {text}}}'.encode())["p"], types, "UTC")


def test_parameters_keep_every_digit() -> None:
    types = (oids.INT8, oids.NUMERIC, oids.BOOL, oids.INT4, oids.TEXT)
    assert read("[9007199254740993, 1.10, true, null, 1e2]", *types) == [
        9007199254740993, Decimal("1.10"), True, None, "1e2",
    ]  # fmt: skip
    assert read('["12", "t", "2024-02-29"]', oids.INT4, oids.BOOL, oids.TEXT) == [12, True, "2024-02-29"]


def test_parameters_that_are_nested() -> None:
    types = (oids.ARRAY_OF[oids.INT4], oids.ARRAY_OF[oids.TEXT])
    assert read('[[1, null, 3], ["a,\\"b\\\\", "NULL", "", null]]', *types) == [
        [1, None, 3], ['a,"b\\', "NULL", "", None],
    ]  # fmt: skip
    (document,) = read('[{"a": [1.50, {"é": null}]}]', oids.JSONB)
    assert document == '{"a":[1.50,{"é":null}]}'
    assert read('["text"]', oids.JSON) == ['"text"']


@pytest.mark.parametrize(
    ("text", "oid", "code"),
    [('["x"]', oids.INT4, "22P02"), ("[1.5]", oids.INT4, "22P02"), ("[99999999999]", oids.INT4, "22003"),
     ("[]", oids.INT4, "08P01"), ("[1, 2]", oids.INT4, "08P01"), ('["\\ud800"]', oids.TEXT, "22021"),
     ("[[1]]", oids.INT4, "22P02"), ('["a\\u0000b"]', oids.TEXT, "22021")],
)  # fmt: skip
def test_parameters_that_are_wrong(text: str, oid: int, code: str) -> None:
    with pytest.raises(SqlError) as raised:
        read(text, oid)
    assert raised.value.sqlstate == code


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"\xff", b"[" * 100_000, b"1"])
def test_bodies_that_are_no_object(raw: bytes) -> None:
    with pytest.raises(RequestError) as raised:
        parsed(raw)
    assert raised.value.status == 400


def query(*pairs: tuple[str, str]) -> ViewQuery:
    return build("s", "v", pairs)


def test_filters_are_parameters() -> None:
    assert query() == ViewQuery('SELECT * FROM "s"."v"', ())
    found = query(
        ("page", "eq.a.b"), ("n", "gte.5"), ("page", "not.like.%x"), ("n", 'in.(1,"2,3", 4)'), ("z", "is.null"),
        ("z", "not.is.true"), ('"limit"', "lt.'; DROP--"), ("columns", 'page,"a "",b"'),
        ("order", 'n.desc.nullslast,page,"x.y".asc'), ("limit", "10"), ("offset", "0"),
    )  # fmt: skip
    assert found.text == (
        'SELECT "page", "a "",b" FROM "s"."v" WHERE "page" = $1 AND "n" >= $2 AND NOT ("page" LIKE $3) '
        'AND "n" IN ($4, $5, $6) AND "z" IS NULL AND NOT ("z" IS TRUE) AND "limit" < $7 '
        'ORDER BY "n" DESC NULLS LAST, "page", "x.y" ASC LIMIT $8 OFFSET $9'
    )
    assert found.parameters == ("a.b", "5", "%x", "1", "2,3", "4", "'; DROP--", "10", "0")


def test_names_are_quoted() -> None:
    assert build('a"b', "c;d", [('e"f', "eq.1")]).text == 'SELECT * FROM "a""b"."c;d" WHERE "e""f" = $1'


@pytest.mark.parametrize(
    "pair",
    [("a", "5"), ("a", "nope.5"), ("a", "in.5"), ("a", "is.5"), ("a", "not"), ("a", "in.(1,"), ("limit", "-1"),
     ("limit", "x"), ("offset", "1.5"), ("order", "a.up"), ("order", "a.asc.desc"), ("order", ""), ("columns", "a,"),
     ("columns", '"a"b'), ("columns", 'a"'), ("", "eq.1"), ("a", "eq.x\0y"), ("limit", "9" * 19)],
)  # fmt: skip
def test_queries_that_are_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(RequestError) as raised:
        query(pair)
    assert raised.value.status == 400


def test_accept() -> None:
    assert negotiate(None).media_type == JSON
    assert negotiate("text/html, */*;q=0.1").media_type == JSON
    assert negotiate("application/json;q=0.5, application/x-ndjson").media_type == NDJSON
    assert negotiate(ARROW).media_type == ARROW
    chosen = negotiate("application/json; numbers=string; rows=array")
    assert (chosen.numbers, chosen.as_arrays) == (Numbers.STRING, True)
    assert negotiate("*/*, application/x-ndjson;q=0").media_type == JSON
    for refused in (
        "text/html", "application/json; numbers=no", "application/json;q=0", "application/json; x=1",
        "*/*;q=0.5, application/json;q=0",
    ):  # fmt: skip
        with pytest.raises(RequestError) as raised:
            negotiate(refused)
        assert raised.value.status == 406


@pytest.mark.parametrize(
    ("accept", "events"),
    [(None, False), ("", False), ("*/*", False), ("text/event-stream", True), ("Text/Event-Stream", True),
     ("text/*", True), ("application/json, text/event-stream", True), ("text/event-stream;q=0.1, */*", False),
     ("application/json;q=0.2, text/event-stream;q=0.5", True), ("text/event-stream;q=0, application/json", False),
     ("text/event-stream;q=0, text/*, application/*;q=0.1", False)],
)  # fmt: skip
def test_accept_of_changes(accept: str | None, events: bool) -> None:
    assert wants_events(accept) is events


@pytest.mark.parametrize("accept", ["text/html", "text/event-stream;q=0", "application/json;q=0, */*", "image/png"])
def test_accept_of_changes_that_cannot_be_met(accept: str) -> None:
    with pytest.raises(RequestError) as raised:
        wants_events(accept)
    assert raised.value.status == 406


def test_etags_differ_with_whatever_the_answer_depends_on() -> None:
    one = etag("v", ["role", "query"])
    assert one == etag("v", ["role", "query"])
    assert len({one, etag("w", ["role", "query"]), etag("v", ["role2", "query"]), etag("v", ["rolequery", ""])}) == 4
    assert matches(one, one)
    assert matches(f'"x", W/{one}', one)
    assert matches("*", one)
    assert not matches(None, one)
    assert not matches('"x"', one)


def test_origins() -> None:
    assert Origins(()).headers("https://a.example") == {}
    some = Origins(("https://a.example",))
    assert some.headers("https://a.example")["Access-Control-Allow-Origin"] == "https://a.example"
    assert some.headers("https://b.example") == {"Vary": "Origin"}
    assert "Access-Control-Allow-Methods" not in some.preflight("https://b.example")
    assert some.preflight("https://a.example")["Access-Control-Allow-Methods"] == "GET, POST"
    assert Origins(("*",)).headers("https://b.example")["Access-Control-Allow-Origin"] == "*"


def test_statuses() -> None:
    codes = {"42501": 403, "28P01": 401, "42601": 400, "22012": 400, "0A000": 400, "57014": 504, "57P01": 503,
             "53300": 503, "54001": 413, "42P07": 409, "42P01": 400, "XX000": 500, "08006": 502, "55000": 409,
             "2BP01": 409}  # fmt: skip
    assert {code: status_of(SqlError(code, "x")) for code in codes} == codes
    assert status_of(SqlError("42P01", "x"), OF_PATHS) == 404


PASSWORD = "correct: horse"


class Passwords:
    def password_of(self, role: str) -> str | None:
        kept = {"anna": passwords.SCRAM, "ben": passwords.MD5}
        return passwords.stored(PASSWORD, role, kept[role]) if role in kept else None


class Tokens:
    def role_of(self, token: str) -> str | None:
        return {"mvt_good": "tom"}.get(token)


def basic(role: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{role}:{password}".encode()).decode()


def caller(authorization: str | None, peer: str = "192.0.2.1", host: str = "db.example") -> Caller:
    return Caller(peer, peer.startswith("127."), host, authorization)


def credentials(*, md5: bool = False) -> Credentials:
    return Credentials(PasswordCheck(Passwords(), secret=b"x" * 32, md5=md5, throttle=Throttle()), Tokens())


def test_passwords_and_tokens_are_roles() -> None:
    found = credentials(md5=True)
    assert found.role_of(caller(basic("anna", PASSWORD))) == "anna"
    assert found.role_of(caller(basic("ben", PASSWORD))) == "ben"
    assert found.role_of(caller("bearer mvt_good")) == "tom"


@pytest.mark.parametrize(
    "given",
    [None, "Basic", "Basic !!!", "Basic " + base64.b64encode(b"no colon").decode(), basic("", PASSWORD), "Digest x",
     "Bearer mvt_bad", basic("anna", "wrong"), basic("nobody", PASSWORD), basic("ben", PASSWORD), "Bearer"],
)  # fmt: skip
def test_who_is_not_let_in(given: str | None) -> None:
    with pytest.raises(SqlError) as raised:
        credentials().role_of(caller(given))
    assert status_of(raised.value) == 401
    assert PASSWORD not in json.dumps([raised.value.message, raised.value.detail, raised.value.hint])


def test_after_failures_a_role_waits() -> None:
    found = credentials()
    for _ in range(limits.AUTHENTICATION_FAILURES_MAX):
        with pytest.raises(SqlError, match="password authentication failed"):
            found.role_of(caller(basic("anna", "wrong")))
    with pytest.raises(SqlError, match="too many failed authentication attempts"):
        found.role_of(caller(basic("anna", PASSWORD)))
    assert found.role_of(caller(basic("anna", PASSWORD), peer="192.0.2.2")) == "anna"


def test_trust_is_for_the_machine_itself() -> None:
    trusting = Credentials(None, Tokens())
    for host in ("localhost:8080", "127.0.0.1", "[::1]:80"):
        assert trusting.role_of(caller(basic("anna", ""), "127.0.0.1", host)) == "anna"
    for peer, host in (("192.0.2.1", "localhost"), ("127.0.0.1", "evil.example"), ("127.0.0.1", "")):
        with pytest.raises(SqlError) as raised:
            trusting.role_of(caller(basic("anna", ""), peer, host))
        assert raised.value.sqlstate == "28000"
