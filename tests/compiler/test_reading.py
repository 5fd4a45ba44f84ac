"""Properties of how a source is read: the relation's own, and those behind its name, which count before them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mvserver.compiler.compile import compile_select
from mvserver.compiler.derived import scans
from mvserver.compiler.shape import RelationShape
from mvserver.errors import SqlError
from mvserver.sql.dialect import parse_select
from tests.compiler.harness import CLICKS

KEY = "postgresql.slot.name"
NAMED = replace(CLICKS, id="1", reading=((KEY, "own"),))
UNNAMED = replace(CLICKS, id="2", reading=((KEY, None),))


def resolve(parts: tuple[str, ...], position: int | None) -> RelationShape:
    return {"named": NAMED, "unnamed": UNNAMED}[parts[-1]]


def readings(sql: str) -> list[tuple[tuple[str, str], ...]]:
    plan = compile_select(parse_select(sql), resolve, default_starting="earliest")
    return [scan.reading for scan in scans(plan.scan)]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT url FROM named", [((KEY, "own"),)]),
        ("SELECT url FROM unnamed", [()]),
        (f"SELECT url FROM unnamed WITH ('{KEY}' = ' x ')", [((KEY, "x"),)]),
        (f"SELECT url FROM named WITH ('{KEY}' = 'x', 'starting.position' = 'latest')", [((KEY, "x"),)]),
        (f"SELECT a.url FROM named a WITH ('{KEY}' = 'x') JOIN unnamed b WITHIN 1 HOUR ON a.url = b.url",
         [((KEY, "x"),), ()]),
    ],
)  # fmt: skip
def test_the_scan_has_them(sql: str, found: list[tuple[tuple[str, str], ...]]) -> None:
    assert readings(sql) == found


@pytest.mark.parametrize("value", ["''", "' '", "7", "true"])
def test_their_values_are_texts(value: str) -> None:
    with pytest.raises(SqlError, match="must be a text") as refused:
        readings(f"SELECT url FROM unnamed WITH ('{KEY}' = {value})")
    assert refused.value.sqlstate == "22023"
