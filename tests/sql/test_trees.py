"""Trees need no collector of cycles: a parsed one has no parents, and copies are taken apart."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from sqlglot import exp

from mvserver.sql import parse_one
from mvserver.sql.dialect import parse_pull
from mvserver.sql.statements.queries import Pull
from mvserver.sql.trees import dismantle, last_written, written

TEXT = "SELECT a + 1, (SELECT max(b) FROM u) FROM t WHERE a IN (1, 2) OR b = 'x'"


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def _nodes(tree: exp.Expr) -> list[weakref.ref[exp.Expr]]:
    found = [weakref.ref(node) for node in tree.walk()]
    assert len(found) > 10
    return found


def _are_freed(nodes: list[weakref.ref[exp.Expr]]) -> bool:
    return all(node() is None for node in nodes)


def test_a_parsed_tree_is_freed_with_the_last_name_for_it() -> None:
    statement = parse_one(TEXT)
    assert isinstance(statement, Pull)
    nodes = _nodes(statement.select)
    del statement
    assert _are_freed(nodes)


def test_a_copy_of_it_has_parents() -> None:
    statement = parse_one(TEXT)
    assert isinstance(statement, Pull)
    copied = statement.select.copy()
    assert all(child.parent is node for node in copied.walk() for child in node.iter_expressions())
    assert copied == parse_pull(TEXT)
    dismantle(copied)
    assert written(statement.select, "postgres") == TEXT.replace("max", "MAX")


def test_a_tree_taken_apart_is_freed() -> None:
    tree = parse_pull(TEXT)
    nodes = _nodes(tree)
    dismantle(tree)
    del tree
    assert _are_freed(nodes)


def test_writing_leaves_a_tree_as_it_is() -> None:
    tree, before = parse_pull(TEXT), parse_pull(TEXT)
    assert written(tree) == before.sql(dialect="duckdb")
    assert tree == before
    assert all(child.parent is node for node in tree.walk() for child in node.iter_expressions())


def test_what_is_written_for_the_last_time_is_freed() -> None:
    tree = parse_pull(TEXT)
    nodes, text = _nodes(tree), written(tree)
    assert last_written(tree) == text
    del tree
    assert _are_freed(nodes)
