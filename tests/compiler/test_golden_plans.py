"""What EXPLAIN shows of a continuous query, as texts to read: the plan, and the Spark and DuckDB expressions in it."""

from __future__ import annotations

from pathlib import Path

from mvserver.compiler.explain import explain
from mvserver.errors import SqlError
from tests.compiler.harness import compiled
from tests.golden import check

PLANS = Path(__file__).with_name("plans.txt")


def test_the_plans_of_continuous_queries() -> None:
    def made(statement: str) -> str:
        try:
            return "\n".join(explain(compiled(statement)))
        except SqlError as error:
            return f"{error.sqlstate} {error.message}"

    check(PLANS, made)
