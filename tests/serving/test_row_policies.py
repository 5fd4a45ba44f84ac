"""Row policies in pull queries: what is seen, by whom, and that nothing tells of the other rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from catalog.acl import PUBLIC, AclItem, Privilege
from catalog.model import Membership, Policy
from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.pgcatalog.snapshot import Role
from mvserver.serving.api import PullScope
from tests.serving.world import VISITS_ID, World

BOB = PullScope("postgres", ("public",), "bob")
ALL = [("./a", 1), ("./home", 3), (None, 2)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def secure(world: World, *policies: Policy, forced: bool = False) -> None:
    """All may read the view, through these policies."""
    current = world.catalog.current
    relations = tuple(
        replace(each, row_security=True, row_security_forced=forced, acl=_READABLE) if each.id == VISITS_ID else each
        for each in current.relations
    )
    schemas = tuple(replace(each, acl=(AclItem(PUBLIC, 10, frozenset({Privilege.USAGE})),)) for each in current.schemas)
    world.catalog.change(relations=relations, schemas=schemas, policies=policies)


_READABLE = (AclItem(10, 10, frozenset(Privilege)), AclItem(PUBLIC, 10, frozenset({Privilege.SELECT})))


def policy(condition: str, *roles: int, restrictive: bool = False, name: str = "p") -> Policy:
    return Policy(17000, name, 16400, condition, roles or (0,), restrictive, "SELECT")


TEXT = "SELECT url, visits FROM visits ORDER BY url"


def seen(world: World, scope: PullScope = BOB, text: str = TEXT) -> list[object]:
    return list(world.rows(text, scope=scope))


@pytest.mark.parametrize(
    ("policies", "rows"),
    [
        ((), []),
        ((policy("visits > 1"),), [("./home", 3), (None, 2)]),
        ((policy("visits > 1", 16450),), [("./home", 3), (None, 2)]),
        ((policy("visits > 1", 10),), []),
        ((policy("visits = 1"), policy("url = './home'")), [("./a", 1), ("./home", 3)]),
        ((policy("true"), policy("visits < 3", restrictive=True)), [("./a", 1), (None, 2)]),
        ((policy("visits < 3", restrictive=True),), []),
        ((policy("visits.visits = 1 -- a comment"),), [("./a", 1)]),
        ((policy("NULL"),), []),
        ((policy("current_user = 'bob' AND visits = 2"),), [(None, 2)]),
        ((policy("url ~ '^./h' OR total IS NULL"),), [("./home", 3), (None, 2)]),
    ],
)
def test_policies_decide_which_rows_are_seen(
    world: World, policies: Sequence[Policy], rows: list[tuple[str, int]]
) -> None:
    secure(world, *policies)
    assert seen(world) == rows
    assert seen(world, replace(BOB, role="postgres")) == ALL
    assert seen(world, text="SELECT count(*), sum(visits) FROM visits") == [
        (len(rows), sum(each[1] for each in rows) if rows else None)
    ]


def test_owner_bypass_and_force(world: World) -> None:
    secure(world, policy("false"))
    world.catalog.change(roles=(*world.catalog.current.roles, Role(16460, "all_seeing", bypass_row_security=True)))
    assert seen(world, replace(BOB, role="all_seeing")) == ALL
    owned = tuple(replace(each, owner="bob") for each in world.catalog.current.relations)
    world.catalog.change(relations=owned)
    assert seen(world) == ALL
    secure(world, policy("false"), forced=True)
    assert seen(world) == []
    assert seen(world, replace(BOB, role="all_seeing")) == ALL


def test_members_have_the_policies_of_their_roles(world: World) -> None:
    secure(world, policy("visits = 3", 16470))
    world.catalog.change(roles=(*world.catalog.current.roles, Role(16470, "readers")))
    assert seen(world) == []
    world.catalog.change(memberships=(Membership(16470, 16450, 10),))
    assert seen(world) == [("./home", 3)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM visits WHERE url = './a'",
        "SELECT * FROM visits WHERE url IN ('./a', './b')",
        "SELECT v.* FROM visits v JOIN visits w ON v.url = w.url WHERE v.url = './a'",
        "SELECT * FROM (SELECT * FROM visits) s WHERE visits = 1",
        "WITH s AS (SELECT * FROM visits) SELECT * FROM s WHERE visits = 1",
        "SELECT * FROM visits WHERE 1 / (visits - 1) > 1",
        "SELECT * FROM visits WHERE CASE WHEN url = './a' THEN url::int > 0 ELSE false END",
        "SELECT (SELECT visits FROM visits WHERE url = './a') FROM visits WHERE false",
        "SELECT * FROM visits TABLESAMPLE bernoulli (100) WHERE visits = 1",
    ],
)
def test_nothing_tells_of_a_hidden_row(world: World, text: str) -> None:
    secure(world, policy("visits > 1"))
    world.writer.execute("UPDATE _state.visits SET visits = 4 WHERE url = './home'")
    try:
        found = seen(world, text=text)
    except SqlError as error:
        assert error.sqlstate == sqlstates.FEATURE_NOT_SUPPORTED, error  # noqa: PT017
        return
    assert found == []


def test_explain_shows_no_plan_of_the_rows(world: World) -> None:
    secure(world, policy("visits > 1"))
    plan = world.plan("SELECT * FROM visits WHERE url = './a'", scope=BOB)
    lines = world.service.explain(plan)
    assert plan.secured
    assert "not shown" in lines[-1]
    assert len(lines) == 3
    assert world.service.plan_nodes(plan).rows == 1


def test_look_ups_are_not_answered_past_the_policies(world: World) -> None:
    secure(world, policy("visits > 1"))
    plan = world.plan("SELECT * FROM visits WHERE url = $1", (25,), BOB)
    assert (plan.kind, plan.direct, plan.key_read, plan.together) == ("other", None, None, None)
    assert '"url" =' in plan.sql.split("LIMIT")[0]
    assert world.rows("SELECT visits FROM visits WHERE url = $1", ["./home"], (25,), BOB) == [(3,)]
    assert world.rows("SELECT visits FROM visits WHERE url = $1", ["./a"], (25,), BOB) == []


def test_claims_are_the_sessions_own(world: World) -> None:
    secure(world, policy("url = current_setting('mv.claim.page', true)"))

    def of(page: str) -> PullScope:
        pairs = (("mv.claim.page", page),)
        return replace(BOB, claims=pairs, settings=pairs)

    assert seen(world) == []
    assert seen(world, of("./a")) == [("./a", 1)]
    assert seen(world, of("./home")) == [("./home", 3)]
    text = "SELECT url, visits FROM visits ORDER BY url"
    assert world.service.visible_rows(VISITS_ID, of("./a")) != world.service.visible_rows(VISITS_ID, of("./home"))
    assert world.service.visible_rows(VISITS_ID, replace(BOB, role="postgres")) is None
    assert world.plan(text, scope=of("./a")).sql != world.plan(text, scope=of("./home")).sql
    secure(world, policy("url = current_setting('mv.claim.page')"))
    with pytest.raises(SqlError, match="unrecognized configuration parameter"):
        seen(world)


def test_row_security_off_is_an_error_where_rows_would_be_hidden(world: World) -> None:
    secure(world, policy("true"))
    off = replace(BOB, row_security=False)
    with pytest.raises(SqlError, match='query would be affected by row-level security policy for table "visits"') as e:
        seen(world, off)
    assert e.value.sqlstate == sqlstates.INSUFFICIENT_PRIVILEGE
    assert seen(world, replace(off, role="postgres")) == ALL


def test_the_error_of_a_condition_has_no_values(world: World) -> None:
    secure(world, policy("url::int > 0"))
    with pytest.raises(SqlError, match="invalid input syntax for type integer") as failed:
        seen(world)
    assert failed.value.sqlstate == sqlstates.INVALID_TEXT_REPRESENTATION
    assert "./" not in repr(failed.value) + str(failed.value)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("visits", "argument of POLICY must be type boolean, not type bigint"),
        ("no_such = 1", 'column "no_such" does not exist'),
        ("other.visits = 1", "column other.visits does not exist"),
        ("visits = (SELECT 1)", "sub-queries in the condition of a policy are not supported"),
        ("EXISTS (SELECT 1)", "sub-queries in the condition of a policy are not supported"),
        ("count(*) > 1", "aggregate functions in the condition of a policy are not supported"),
        ("sum(visits) OVER () > 1", "window functions in the condition of a policy are not supported"),
        ("visits = $1", "parameters in the condition of a policy are not supported"),
        ("now() > '2020-01-01'", "functions of the present time and of chance in the condition"),
        ("random() > 0.5", "functions of the present time and of chance in the condition"),
        ("current_date > '2020-01-01'", "functions of the present time and of chance in the condition"),
        ("current_setting('timezone') = 'UTC'", "settings other than the claims"),
        ("pg_backend_pid() = 1", "function pg_backend_pid in the condition of a policy is not supported"),
        ("no_such_function(visits)", "function no_such_function in the condition of a policy is not supported"),
        ("visits = 1; SELECT 2", "syntax error"),
        ("visits =", "syntax error"),
        ("visits + 'x' > 1", "invalid input syntax"),
    ],
)
def test_conditions_that_no_policy_can_have(world: World, condition: str, message: str) -> None:
    view = world.catalog.current.relations_by_id[VISITS_ID]
    with pytest.raises(SqlError, match=message):
        world.service.check_policy(view, condition)


@pytest.mark.parametrize(
    "condition",
    ["true", "visits > 1", "visits.url LIKE 'a%'", "current_user = url", "url = current_setting('mv.claim.a', true)",
     "visits = current_setting('mv.claim.n')::int", "lower(url) IN ('a', 'b') AND visits BETWEEN 1 AND 3", "NULL"],
)  # fmt: skip
def test_conditions_that_a_policy_can_have(world: World, condition: str) -> None:
    world.service.check_policy(world.catalog.current.relations_by_id[VISITS_ID], condition)


def test_row_security_active(world: World) -> None:
    secure(world, policy("visits > 1"))
    text = "SELECT row_security_active('visits'), row_security_active('pg_class'), row_security_active(16400::oid)"
    assert seen(world, text=text) == [(True, False, True)]
    assert seen(world, replace(BOB, role="postgres"), text) == [(False, False, False)]
    shown = seen(world, text="SELECT policyname, roles, cmd, qual FROM pg_policies")
    assert shown == [("p", ["public"], "SELECT", "(visits > 1)")]
