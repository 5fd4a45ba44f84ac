"""Row policies on a real server: whoever asks, by whatever way, sees the rows that are his and nothing of the others.

Each row of the view carries a word of its own. What a role is told by any way is searched for the words of rows that
are not its own.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.server.program import Program, with_spark
from tests.server.test_http import client, sql

pytestmark = pytest.mark.spark

WITHIN_S = 180.0
TENANTS = ("acme", "bolt", "core")
WORD = re.compile(r"secret-(\w+?)-\d+")
SETUP = (
    "CREATE STORE local WITH ('type' = FILE, 'uris' = '.')",
    "CREATE STREAM orders (tenant VARCHAR, word VARCHAR, n BIGINT) "
    "WITH ('store' = 'local', 'topic' = 'orders', 'value.format' = 'json')",
    "CREATE MATERIALIZED VIEW by_word WITH ('history.millis' = 3600000) AS SELECT tenant, word, sum(n) AS total, "
    "count(*) AS orders FROM orders WITH ('starting.position' = 'earliest') GROUP BY tenant, word",
    "CREATE MATERIALIZED VIEW moving WITH ('history.millis' = 3600000) AS SELECT n % 5 AS slot, count(*) AS c, "
    "CASE count(*) % 3 WHEN 0 THEN 'acme' WHEN 1 THEN 'bolt' ELSE 'core' END AS tenant, "
    "CASE count(*) % 3 WHEN 0 THEN 'secret-acme-1' WHEN 1 THEN 'secret-bolt-1' ELSE 'secret-core-1' END AS word "
    "FROM orders WITH ('starting.position' = 'earliest') GROUP BY n % 5",
    *(f"CREATE ROLE {tenant} LOGIN" for tenant in (*TENANTS, "web", "nobody")),
    "GRANT SELECT ON by_word, moving TO acme, bolt, core, web, nobody",
    "CREATE VIEW through AS SELECT * FROM by_word",
    "GRANT SELECT ON through TO acme, bolt, core, web, nobody",
    *(
        statement
        for view in ("by_word", "moving")
        for statement in (
            f"CREATE POLICY own ON {view} FOR SELECT TO acme, bolt, core USING (tenant = current_user)",
            f"CREATE POLICY claimed ON {view} TO web USING (tenant = current_setting('mv.claim.tenant', true))",
        )
    ),
)


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = folder / "data" / "files" / "orders"
        self.files.mkdir(parents=True)
        self.chance = random.Random(11)
        self.fed = 0
        environment = with_spark()
        arguments = ("--http-port", "0", "--file-poll-interval", "20ms", "--spark-driver-memory", "1GB")
        self.program = Program(folder, *arguments, environment=environment).ready(WITHIN_S)

    def connect(self, role: str = "postgres") -> psycopg.Connection[Any]:
        return self.program.connect(user=role)

    def feed(self, count: int) -> None:
        lines = []
        for _ in range(count):
            self.fed += 1
            tenant = self.chance.choice(TENANTS)
            word = f"secret-{tenant}-{self.chance.randrange(12)}"
            lines.append(json.dumps({"tenant": tenant, "word": word, "n": self.chance.randrange(1, 50)}))
        aside = self.folder / "aside"
        aside.write_text("".join(f"{line}\n" for line in lines))
        aside.rename(self.files / f"{time.time_ns()}.json")
        self.wait_for(lambda root: root.execute("SELECT sum(orders) FROM by_word").fetchall() == [(self.fed,)])
        self.wait_for(lambda root: root.execute("SELECT sum(c) FROM moving").fetchall() == [(self.fed,)])

    def wait_for(self, condition: Callable[[psycopg.Connection[Any]], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        with self.connect() as root:
            while not condition(root):
                assert time.monotonic() < deadline, "it took too long"
                time.sleep(0.05)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("policies"))
    try:
        with made.connect() as root:
            for statement in SETUP:
                root.execute(statement.encode())
        made.feed(60)
        yield made
    finally:
        made.program.__exit__()


def told(call: Callable[[], object]) -> str:
    """All that is said, by rows or by an error."""
    try:
        return repr(call())
    except psycopg.Error as error:
        return f"{error} {error.diag.message_primary} {error.diag.message_detail} {error.diag.message_hint}"


def words_of(text: str) -> set[str]:
    return set(WORD.findall(text))


SELECTS = (
    "SELECT * FROM {v}",
    "SELECT count(*), sum(length(word)) FROM {v}",
    "SELECT * FROM {v} WHERE word LIKE 'secret-{other}-%'",
    "SELECT * FROM {v} WHERE tenant = '{other}'",
    "SELECT * FROM {v} WHERE tenant IN ('{other}', 'acme') AND word = 'secret-{other}-3'",
    "SELECT * FROM {v} WHERE word::integer > 0",
    "SELECT max(word), min(word), string_agg(word, ',') FROM {v}",
    "SELECT a.word, b.word FROM {v} a LEFT JOIN {v} b ON a.tenant <> b.tenant",
    "SELECT (SELECT max(word) FROM {v} WHERE tenant = '{other}')",
    "WITH x AS MATERIALIZED (SELECT * FROM {v}) SELECT word FROM x WHERE tenant = '{other}'",
    "SELECT word FROM {v} UNION ALL SELECT word FROM {v} ORDER BY 1",
    "SELECT v::text FROM {v} v",
    "SELECT row_to_json(v) FROM {v} v",
    "SELECT word, rank() OVER (ORDER BY word) FROM {v}",
    "SELECT tenant, count(*) FROM {v} GROUP BY ROLLUP (tenant)",
    "SELECT * FROM {v} v WHERE EXISTS (SELECT 1 FROM {v} w WHERE w.tenant = '{other}' AND w.word > v.word)",
    "EXPLAIN SELECT * FROM {v} WHERE word = 'x'",
    "EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM {v}",
    'SELECT * FROM "{v}$changes"',
    "SELECT count(*) FROM \"{v}$changes\" WHERE tenant = '{other}'",
    "SELECT * FROM {v} AS OF '2100-01-01'",
    "TABLE {v}",
    "SELECT * FROM mv_catalog.late_rows",
    "SELECT * FROM mv_catalog.rejected_rows",
)


@pytest.mark.parametrize("role", [*TENANTS, "web", "nobody"])
@pytest.mark.parametrize("text", SELECTS)
def test_no_statement_tells_of_hidden_rows(world: World, role: str, text: str) -> None:
    own = {role} & set(TENANTS)
    other = next(tenant for tenant in TENANTS if tenant != role)
    with world.connect(role) as connection:
        for view in ("by_word", "moving"):
            statement = text.format(v=view, other=other)
            for way in (statement, f"COPY ({statement}) TO STDOUT", f"DECLARE c CURSOR FOR {statement}; FETCH ALL c"):
                if way != statement and text.startswith(("EXPLAIN", "TABLE")):
                    continue
                found = told(lambda way=way: _run(connection, way))
                left = words_of(found.replace(statement, "")) - own
                assert not left, (way, found[:2000])


def _run(connection: psycopg.Connection[Any], text: str) -> object:
    if text.startswith("COPY"):
        with connection.cursor().copy(text.encode()) as copy:
            return b"".join(map(bytes, copy))
    if text.startswith("DECLARE"):
        declare, fetch = text.split("; ")
        with connection.transaction():
            connection.execute(declare.encode())
            return connection.execute(fetch.encode()).fetchall()
    return connection.execute(text.encode()).fetchall()


def test_each_sees_all_that_is_his(world: World) -> None:
    with world.connect() as root:
        everything = set(root.execute("SELECT tenant, word, total FROM by_word").fetchall())
    assert {row[0] for row in everything} == set(TENANTS)
    for tenant in TENANTS:
        with world.connect(tenant) as connection:
            for view in ("by_word", "through"):
                own = set(connection.execute(f"SELECT tenant, word, total FROM {view}".encode()).fetchall())
                # a view reads as its owner, who sees all rows, as in PostgreSQL
                assert own == (everything if view == "through" else {row for row in everything if row[0] == tenant})
            for row in own:
                found = connection.execute(
                    "SELECT total FROM by_word WHERE tenant = %s AND word = %s", row[:2], prepare=True
                ).fetchall()
                assert found == ([(row[2],)] if row[0] == tenant else [])


def test_look_ups_that_are_kept_for_one_are_not_told_another(world: World) -> None:
    text = "SELECT word FROM by_word WHERE tenant = %s AND word = %s"
    with world.connect() as root:
        (first,) = root.execute("SELECT min(word) FROM by_word WHERE tenant = 'acme'").fetchall()
        for _ in range(400):
            assert root.execute(text, ("acme", first[0]), prepare=True).fetchall() == [first]
        for role, expected in (("acme", [first]), ("bolt", []), ("nobody", []), ("web", [])):
            with world.connect(role) as connection:
                for _ in range(20):
                    assert connection.execute(text, ("acme", first[0]), prepare=True).fetchall() == expected


def test_counts_of_hidden_rows_are_not_shown(world: World) -> None:
    text = "SELECT view, rows, bytes FROM mv_catalog.views WHERE view LIKE '%by_word'"
    with world.connect() as root, world.connect("bolt") as bolt:
        (counted,) = root.execute(text).fetchall()
        assert counted[1] == len(root.execute("SELECT * FROM by_word").fetchall())
        assert bolt.execute(text).fetchall() == [(counted[0], None, None)]
        when = "SELECT epoch, lag_records, last_change_at, caught_up FROM mv_catalog.views WHERE view LIKE '%by_word'"
        assert bolt.execute(when).fetchall() == [(None, None, None, True)]
        assert all(each is not None for each in root.execute(when).fetchall()[0])
        names = ("pg_relation_size", "pg_table_size", "pg_total_relation_size")
        sizes = ", ".join(f"{name}({of})" for name in names for of in ("'by_word'", "'by_word'::regclass", "oid"))
        sized = f"SELECT {sizes} FROM pg_class WHERE relname = 'by_word'"
        assert bolt.execute(sized.encode()).fetchall() == [(None,) * 9]
        assert all(root.execute(sized.encode()).fetchall()[0])
        watched = "SELECT changes, bytes, latest_token, watchers IS NULL FROM mv_catalog.watched_views"
        assert bolt.execute(f"{watched} WHERE view LIKE '%by_word'".encode()).fetchall() == [(None, None, None, False)]
        assert root.execute(f"{watched} WHERE changes > 0".encode()).fetchall()


FAILING = (
    "CREATE MATERIALIZED VIEW numbers WITH ('history.millis' = 3600000) AS SELECT tenant, CAST(word AS INTEGER) AS n "
    "FROM orders WITH ('starting.position' = 'earliest')",
    "GRANT SELECT ON numbers TO acme, bolt, core, web, nobody",
    "CREATE POLICY own ON numbers TO acme, bolt, core USING (tenant = current_user)",
    "CREATE VIEW through_acme AS SELECT * FROM numbers",
    "ALTER VIEW through_acme OWNER TO acme",
)
WHY = (
    "SELECT * FROM numbers", "SELECT * FROM through_acme", "LIST QUERIES", "DESCRIBE QUERY '{id}'",
    "SELECT * FROM mv_catalog.queries", "SET mv.freshness = 'latest'; SELECT * FROM numbers",
    "SET mv.read_while_filling = on; SELECT * FROM numbers", "SELECT * FROM \"numbers$changes\"",
    "SELECT * FROM numbers AS OF now()", "DECLARE s CURSOR FOR SUBSCRIBE TO numbers WITH (SNAPSHOT); FETCH ALL s",
)  # fmt: skip
OF_ALL_QUERIES = ("LIST QUERIES", "SELECT * FROM mv_catalog.queries")


def test_why_a_view_failed_names_no_value_of_a_hidden_row(world: World) -> None:
    """The error of its query names a word of the record at fault, whosever that is."""
    failed = "SELECT id, error FROM mv_catalog.queries WHERE sink LIKE '%.numbers' AND state = 'FAILED'"
    with world.connect() as root:
        for statement in FAILING:
            root.execute(statement.encode())
        try:
            world.wait_for(lambda asked: bool(asked.execute(failed.encode()).fetchall()))
            ((query_id, error),) = root.execute(failed.encode()).fetchall()
            assert words_of(error), error
            seen = "numbers"
            for role in (*TENANTS, "web", "nobody"):
                for text in WHY:
                    with world.connect(role) as connection:
                        notices: list[str] = []
                        connection.add_notice_handler(
                            lambda each, notices=notices: notices.append(f"{each.message_primary} {each.message_hint}")
                        )
                        whole = text.format(id=query_id)
                        found = told(lambda connection=connection, whole=whole: _last(connection, whole))
                        if text in OF_ALL_QUERIES:
                            found = _without_text(found)
                        assert not words_of(found), (role, text, found)
                        assert not words_of(repr(notices)), (role, text, notices)
                with client(world.program, user=role) as http:
                    assert not words_of(http.get(f"/v1/views/postgres/public/{seen}").text)
                    assert not words_of(http.get("/v1/changes", params={"view": seen, "wait": "0"}).text)
                    state = "SELECT state, error, rows_in, position FROM mv_catalog.queries WHERE sink LIKE '%.numbers'"
                    assert sql(http, state).json()["rows"] == [
                        {"state": "FAILED", "error": None, "rows_in": None, "position": None}
                    ]
            assert words_of(told(lambda: root.execute("SELECT * FROM numbers").fetchall()))
        finally:
            root.execute("DROP VIEW through_acme")
            root.execute("DROP MATERIALIZED VIEW numbers")


def _last(connection: psycopg.Connection[Any], text: str) -> object:
    """The rows of the last of some statements, in one transaction where there is a cursor."""
    *before, last = text.split("; ")
    with connection.transaction(force_rollback=True):
        for statement in before:
            connection.execute(statement.encode())
        return connection.execute(last.encode()).fetchall()


def _without_text(said: str) -> str:
    """Without the definition of "moving", which has such words itself."""
    return re.sub(r"CASE count\(\*\).*? END", "", said)


def test_claims_say_whose_rows(world: World) -> None:
    with world.connect("web") as connection:
        assert connection.execute("SELECT * FROM by_word").fetchall() == []
        for tenant in (*TENANTS, "none"):
            connection.execute(f"SET mv.claim.tenant = '{tenant}'".encode())
            seen = {row[0] for row in connection.execute("SELECT tenant FROM by_word").fetchall()}
            assert seen == {tenant} & set(TENANTS)
        connection.execute("RESET mv.claim.tenant")
        assert connection.execute("SELECT * FROM by_word").fetchall() == []
        connection.execute("SET row_security = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="affected by row-level security policy"):
            connection.execute("SELECT * FROM by_word")


class Copy:
    """What a client of SUBSCRIBE has."""

    def __init__(self) -> None:
        self.rows: dict[tuple[Any, ...], int] = {}

    def take(self, row: tuple[Any, ...]) -> None:
        kind, values = row[3], row[4:]
        change = 1 if kind in ("+I", "+U") else -1
        self.rows[values] = self.rows.get(values, 0) + change
        assert self.rows[values] >= 0, row
        if not self.rows[values]:
            del self.rows[values]


@pytest.mark.parametrize("view", ["by_word", "moving"])
def test_who_subscribes_has_a_copy_of_his_rows(world: World, view: str) -> None:
    with world.connect("bolt") as bolt, world.connect("bolt") as other:
        copy = Copy()
        bolt.execute("SET mv.fetch_timeout = '200ms'")
        bolt.execute("BEGIN")
        bolt.execute(f"DECLARE s CURSOR FOR SUBSCRIBE TO {view} WITH (SNAPSHOT)".encode())
        token = None
        for _ in range(4):
            world.feed(25)
            deadline = time.monotonic() + WITHIN_S
            while True:
                for row in bolt.execute("FETCH ALL s").fetchall():
                    assert words_of(repr(row)) <= {"bolt"}
                    copy.take(row)
                    token = row[0] or token
                now = other.execute(f"SELECT * FROM {view}".encode()).fetchall()
                if sorted(map(repr, copy.rows)) == sorted(map(repr, now)):
                    break
                assert time.monotonic() < deadline, (copy.rows, now)
        assert all(count == 1 for count in copy.rows.values())
        bolt.execute("ROLLBACK")
        assert token is not None
        with world.connect("acme") as acme:
            acme.execute("BEGIN")
            declare = f"DECLARE s CURSOR FOR SUBSCRIBE TO {view} WITH (SINCE '{token}')"
            with pytest.raises(psycopg.DatabaseError, match="of other rows of materialized view") as refused:
                acme.execute(declare.encode())
            assert refused.value.sqlstate == "72000"


def test_http_shows_each_his_own(world: World) -> None:
    path = "/v1/views/postgres/public/by_word"
    with client(world.program) as http:
        world.wait_for(lambda _: "ETag" in http.get(path).headers)
        tag = http.get(path).headers["ETag"]
    for role in (*TENANTS, "nobody"):
        with client(world.program, user=role) as http:
            shown = http.get(path, headers={"If-None-Match": tag})
            assert shown.status_code == 200
            assert words_of(shown.text) == {role} & set(TENANTS)
            assert "ETag" not in shown.headers  # it would change with rows of others
            assert words_of(sql(http, "SELECT * FROM by_word").text) == {role} & set(TENANTS)
            polled = http.get("/v1/changes", params={"view": "by_word"}, headers={"Accept": "application/json"})
            assert words_of(polled.text) == {role} & set(TENANTS)


COUNTING = re.compile(r"(?<![0-9a-f])[0-9a-f]{16}-[0-9a-f]{1,15}(?![0-9a-f])")  # a token with a number in the clear
CHANGES = 'SELECT mv_token, mv_epoch, mv_time, total FROM "by_word$changes" ORDER BY mv_epoch'
AS_OF = "SELECT word, total FROM by_word AS OF {} ORDER BY 1"


def test_tokens_of_who_sees_some_rows_lead_to_the_past(world: World) -> None:
    with world.connect("core") as core:
        found = core.execute(CHANGES).fetchall()
        token, at = found[-1][0], found[-1][2]
        now = core.execute("SELECT word, total FROM by_word ORDER BY 1").fetchall()
        assert now
        assert core.execute(AS_OF.format(f"'{token}'").encode()).fetchall() == now
        for place in (token, at, at.isoformat()):
            assert core.execute(AS_OF.format("%s"), (place,)).fetchall() == now
        core.execute(f"SET mv.as_of = '{token}'".encode())
        assert core.execute("SELECT word, total FROM by_word ORDER BY 1").fetchall() == now
        core.execute("RESET mv.as_of")


def test_nothing_counts_the_hidden_changes(world: World) -> None:
    """Tokens, epochs and ids of a role tell as little of others' changes as its rows do, wherever they come from."""
    with world.connect() as root, world.connect("core") as core, client(world.program, user="core") as http:
        known = root.execute(CHANGES).fetchall()
        assert COUNTING.fullmatch(known[-1][0])
        found = core.execute(CHANGES).fetchall()
        for token, epoch, at, _ in found:
            assert COUNTING.search(token) is None
            assert epoch == round(at.timestamp() * 1_000_000)
        token = found[-1][0]
        for place in (known[-1][0], f"{token[:16]}-1", f"{token[:16]}-fffff"):
            for text in (AS_OF.format(f"'{place}'"), f"SET mv.as_of = '{place}'; SELECT * FROM by_word"):
                with pytest.raises(psycopg.errors.InvalidParameterValue, match="invalid resume token"):
                    core.execute(text.encode())
                core.execute("RESET mv.as_of")
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="invalid resume token"):
                core.execute(AS_OF.format("%s"), (place,))
        made_up = token[:20] + ("0" if token[20] != "0" else "1") + token[21:]
        said = [
            told(lambda text=text: core.execute(AS_OF.format(f"'{text}'").encode()).fetchall())
            for text in (made_up, "0" * 16 + token[16:], "2020-01-01", "2100-01-01")
        ]
        assert all("None" in each for each in said), said  # errors without a detail
        headers = {"Accept": "application/json"}
        polled = [http.get("/v1/changes", params={"view": "by_word"}, headers=headers).text for _ in range(2)]
        with http.stream("GET", "/v1/changes?view=by_word", headers={"Accept": "text/event-stream"}) as stream:
            lines = stream.iter_lines()
            event = [next(lines) for _ in range(6)]
        core.execute("BEGIN")
        core.execute("DECLARE s CURSOR FOR SUBSCRIBE TO by_word WITH (SNAPSHOT)")
        subscribed = core.execute("FETCH 12 s").fetchall()
        core.execute("ROLLBACK")
        assert {row[1] for row in subscribed} == {0}
        assert COUNTING.search(" ".join([*said, *polled, *event, repr(subscribed)])) is None
        assert json.loads(polled[0])["events"][0]["data"]["epoch"] == 0
        assert any(line.startswith("id: ") for line in event), event


def test_tickets_carry_claims(world: World) -> None:
    with client(world.program, user="web") as http, client(world.program, user="nobody") as stranger:
        stranger.auth = None
        for claims, expected in (({}, set()), ({"tenant": "acme"}, {"acme"}), ({"Tenant": "core"}, {"core"})):
            made = http.post("/v1/tickets", json={"views": ["by_word", "moving"], "claims": claims})
            ticket = made.json()["ticket"]
            shown = stranger.get("/v1/views/postgres/public/by_word", params={"ticket": ticket})
            polled = stranger.get("/v1/changes", params={"ticket": ticket, "view": "by_word"})
            assert (shown.status_code, polled.status_code) == (200, 200), shown.text + polled.text
            assert (words_of(shown.text), words_of(polled.text)) == (expected, expected)
            refused = stranger.get("/v1/views/postgres/public/through", params={"ticket": ticket})
            assert (refused.status_code, refused.json()["code"]) == (403, "42501")
        for claims in ("acme", {"tenant": 1}, {"a b": "x"}, {"tenant": "x" * 1001}, {f"c{n}": "" for n in range(33)}):
            assert http.post("/v1/tickets", json={"views": ["by_word"], "claims": claims}).status_code == 400
        given = sql(http, "SELECT tenant FROM by_word", settings={"mv.claim.tenant": "bolt"})
        assert set(re.findall("acme|bolt|core", given.text)) == {"bolt"}


def test_a_stream_begins_anew_when_the_policies_change(world: World) -> None:
    headers = {"Accept": "text/event-stream"}
    with (
        world.connect() as root,
        client(world.program, user="core") as http,
        http.stream("GET", "/v1/changes?view=by_word", headers=headers) as stream,
    ):
        lines = stream.iter_lines()
        assert words_of(_data(lines, "snapshot")) == {"core"}
        root.execute("CREATE POLICY more ON by_word TO core USING (tenant = 'acme')")
        try:
            assert "are others now" in _data(lines, "reset")
            assert words_of(_data(lines, "snapshot")) == {"core", "acme"}
        finally:
            root.execute("DROP POLICY more ON by_word")
        _data(lines, "reset")
        assert words_of(_data(lines, "snapshot")) == {"core"}


def _data(lines: Iterator[str], kind: str) -> str:
    """Of the next event of the kind."""
    for line in lines:
        if line == f"event: {kind}":
            return next(lines)
    raise AssertionError(f"no event {kind}")


def test_the_life_of_a_policy(world: World) -> None:
    with world.connect() as root, world.connect("acme") as acme:

        def refused(text: str, state: str, words: str, who: psycopg.Connection[Any] = root) -> None:
            with pytest.raises(psycopg.Error, match=words) as error:
                who.execute(text.encode())
            assert error.value.sqlstate == state

        refused("CREATE POLICY own ON by_word USING (true)", "42710", 'policy "own" for table "by_word" already exists')
        refused("DROP POLICY nope ON by_word", "42704", 'policy "nope" for table "by_word" does not exist')
        refused("CREATE POLICY p ON orders USING (true)", "42809", '"orders" is not a materialized view')
        refused("CREATE POLICY p ON through USING (true)", "42809", '"through" is not a materialized view')
        refused("CREATE POLICY p ON by_word FOR INSERT USING (true)", "0A000", "policies FOR INSERT are not supported")
        refused("CREATE POLICY p ON by_word USING (true) WITH CHECK (true)", "0A000", "WITH CHECK of a policy")
        refused("CREATE POLICY p ON by_word TO nope USING (true)", "42704", 'role "nope" does not exist')
        refused("CREATE POLICY p ON by_word USING (total)", "42804", "must be type boolean, not type")
        refused("CREATE POLICY p ON by_word", "42601", "syntax error")
        refused("CREATE POLICY p ON by_word USING (true)", "42501", "must be owner of materialized view", acme)
        refused("ALTER MATERIALIZED VIEW by_word DISABLE ROW LEVEL SECURITY", "42501", "must be owner", acme)
        refused("DROP ROLE acme", "2BP01", 'role "acme" cannot be dropped')
        refused(
            "CREATE MATERIALIZED VIEW again AS SELECT total, count(*) AS c FROM by_word GROUP BY total", "42501",
            "permission denied for schema", acme,
        )  # fmt: skip
        root.execute("GRANT CREATE ON SCHEMA public TO acme")
        refused(
            "CREATE MATERIALIZED VIEW again AS SELECT total, count(*) AS c FROM by_word GROUP BY total", "0A000",
            "a continuous query cannot read", acme,
        )  # fmt: skip
        root.execute("DROP POLICY IF EXISTS nope ON by_word")
        root.execute("CREATE POLICY none ON by_word AS RESTRICTIVE USING (false)")
        assert acme.execute("SELECT count(*) FROM by_word").fetchall() == [(0,)]
        root.execute("ALTER POLICY none ON by_word USING (true)")
        assert acme.execute("SELECT count(*) > 0 FROM by_word").fetchall() == [(True,)]
        root.execute("ALTER POLICY none ON by_word RENAME TO all_of_it")
        root.execute("ALTER MATERIALIZED VIEW by_word DISABLE ROW LEVEL SECURITY")
        assert acme.execute("SELECT count(DISTINCT tenant) FROM by_word").fetchall() == [(3,)]
        root.execute("ALTER TABLE by_word ENABLE ROW LEVEL SECURITY")
        assert acme.execute("SELECT count(DISTINCT tenant) FROM by_word").fetchall() == [(1,)]
        shown = root.execute(
            "SELECT policyname, permissive, roles, cmd, qual FROM pg_policies WHERE tablename = 'by_word' ORDER BY 1"
        ).fetchall()
        assert shown == [
            ("all_of_it", "RESTRICTIVE", ["public"], "ALL", "(true)"),
            ("claimed", "PERMISSIVE", ["web"], "ALL", "(tenant = current_setting('mv.claim.tenant', true))"),
            ("own", "PERMISSIVE", ["acme", "bolt", "core"], "SELECT", "(tenant = current_user)"),
        ]
        root.execute("DROP POLICY all_of_it ON by_word")
        root.execute("ALTER ROLE acme BYPASSRLS")
        assert acme.execute("SELECT count(DISTINCT tenant) FROM by_word").fetchall() == [(3,)]
        assert root.execute("SELECT rolbypassrls FROM pg_roles WHERE rolname = 'acme'").fetchall() == [(True,)]
        root.execute("ALTER ROLE acme NOBYPASSRLS")
        assert acme.execute("SELECT count(DISTINCT tenant) FROM by_word").fetchall() == [(1,)]
