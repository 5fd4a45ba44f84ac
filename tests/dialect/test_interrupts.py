"""The rewritings of a large statement ask whether they are to stop, each of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlglot import exp

from mvserver import interrupts
from mvserver.dialect import binding, duck_text, guard, output_names, rewrite, signals
from mvserver.dialect.functions import (
    aggregates,
    binary_functions,
    division,
    enum_operands,
    jsonb,
    long_texts,
    periods,
)
from mvserver.dialect.parameters import constant_places, inference
from mvserver.dialect.pull_query import PullQuery
from mvserver.dialect.typing import operand_types, set_columns
from mvserver.dialect.typing.operand_checks import OperandChecks
from mvserver.dialect.typing.typed_rewrites import TypedRewriting
from mvserver.errors import SqlError
from mvserver.pgcatalog.session_functions import SessionFacts
from mvserver.serving.api import PlanRequest
from mvserver.serving.plan.name_resolution import NameResolver
from mvserver.sql.dialect import parse_pull
from tests.serving.world import SCOPE, World, catalog_snapshot

pytestmark = pytest.mark.large

ITEM = (
    "(SELECT upper(url) || repeat('x', visits::int) || to_char(visits / $1, '9') FROM visits "
    "WHERE visits - total = 3 GROUP BY url UNION SELECT concat('a', btrim('b')))"
)
ITEMS = interrupts.EVERY + 10
PLAIN = f"SELECT {', '.join(['visits + total'] * 1_600)} FROM visits"
LARGE = f"SELECT {', '.join([ITEM] * ITEMS)}"
PASS = Callable[[exp.Expr, World], object]
FACTS = SessionFacts(catalog_snapshot(), "postgres", ("public",), "postgres", {}, 1, "postgres")


class Stopped(Exception):
    """What the owner of a statement raises."""


def resolver(world: World) -> NameResolver:
    return NameResolver(world.catalog.current, SCOPE, world.service._system, "views")


def typed(tree: exp.Expr, world: World) -> TypedRewriting:
    return TypedRewriting(world.writer, tree, {}, "UTC")


def unknown(node: exp.Expr) -> str:
    return ""


PASSES: dict[str, PASS] = {
    "guard": lambda tree, world: guard.check(tree),
    "names": lambda tree, world: resolver(world).resolve(tree),
    "output_names": lambda tree, world: output_names.name_outputs(tree),
    "signals": lambda tree, world: signals.take(tree, FACTS),
    "jsonb": lambda tree, world: jsonb.adapt(tree),
    "types of parameters": lambda tree, world: inference.infer(tree, (), lambda node: None),
    "places of constants": lambda tree, world: constant_places.find(tree, ()),
    "constants": lambda tree, world: constant_places.settle(tree),
    "rewrite": lambda tree, world: rewrite.rewrite(PullQuery(tree, FACTS, False, False, (), {}, "UTC", "other")),
    "long texts": lambda tree, world: long_texts.bound(tree),
    "enums": lambda tree, world: enum_operands.present(tree),
    "operand checks": lambda tree, world: OperandChecks(world.writer, tree, {}, LARGE).check(),
    "typed": lambda tree, world: typed(tree, world).apply(with_enums=False),
    "periods": lambda tree, world: periods.add_missing(tree, unknown),
    "bytes": lambda tree, world: binary_functions.add_missing(tree, unknown),
    "operands": lambda tree, world: operand_types.add_missing(tree, unknown),
    "aggregates": lambda tree, world: aggregates.type_aggregates(world.writer, tree),
    "division": lambda tree, world: division.type_divisions(world.writer, tree),
    "sets": lambda tree, world: set_columns.unify(world.writer, tree),
    "parameters": lambda tree, world: binding.cast_parameters(tree, {}),
    "text": lambda tree, world: duck_text.written(tree),
    "text of plain columns": lambda tree, world: duck_text.written(parse_pull(PLAIN)),
}


@pytest.fixture(scope="module")
def large() -> exp.Expr:
    return parse_pull(LARGE)


@pytest.mark.parametrize("name", PASSES)
def test_each_rewriting_asks_and_can_be_stopped(world: World, large: exp.Expr, name: str) -> None:
    asked = 0

    def second() -> None:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise Stopped

    tree = large.copy()
    with interrupts.interruptible(second), pytest.raises(Stopped):
        PASSES[name](tree, world)


@pytest.mark.slow
def test_planning_can_be_stopped_at_any_time(world: World, large: exp.Expr) -> None:
    """Whenever the answer is to stop, it does, and the statement's tree stays whole for the next time."""
    world.value("SELECT 1")
    asked = 0

    def count() -> None:
        nonlocal asked
        asked += 1

    text = f"SELECT concat({', '.join(f'upper(url || {n})' for n in range(300))}) FROM visits"
    tree = parse_pull(text)
    nodes = sum(1 for _ in tree.walk())
    with interrupts.interruptible(count):
        world.service.plan(PlanRequest(tree, SCOPE))
    assert asked > 3 * nodes / interrupts.EVERY

    for number in (1, asked // 2, asked - 1):
        asked_again = 0

        def stop(number: int = number) -> None:
            nonlocal asked_again
            asked_again += 1
            if asked_again >= number:
                raise SqlError("57014", "canceling statement due to user request")

        with interrupts.interruptible(stop), pytest.raises(SqlError) as raised:
            world.service.plan(PlanRequest(tree, SCOPE))
        assert raised.value.sqlstate == "57014"
    assert sum(1 for _ in tree.walk()) == nodes
