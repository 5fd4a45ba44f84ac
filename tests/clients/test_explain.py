"""EXPLAIN in PostgreSQL's forms: documents, measured times, and what it says of wrong options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

from tests.clients.client_world import Address

_STATEMENTS = (
    "SELECT 1",
    "SELECT url FROM visits WHERE visits > 10 ORDER BY url LIMIT 1",
    "SELECT count(*) FROM numbers",
    "SELECT a.url FROM visits AS a JOIN visits AS b ON a.url = b.url",
    "VALUES (1), (2)",
)
_OPTIONS = (
    "FORMAT JSON",
    "FORMAT json, COSTS off",
    "ANALYZE, FORMAT JSON",
    "ANALYZE on, FORMAT JSON, TIMING off",
    "ANALYZE, FORMAT JSON, SUMMARY off, COSTS 0",
    "FORMAT JSON, SUMMARY off",
    "FORMAT TEXT, FORMAT JSON, ANALYZE, ANALYZE off",
)
_NOT_OURS = re.compile(r"Blocks|Disabled|^Planning$|Unique|Memory|Output|Sort|Keys|Strategy|Partial|Hash|Workers")
_NOT_THEIRS = frozenset({"Pull Query", "Views", "DuckDB"})
_OF_NODE = {"Parallel Aware": False, "Async Capable": False}


@pytest.fixture
def both(ours: Address, theirs: Address) -> Any:
    with (
        psycopg.connect(ours.conninfo, autocommit=True) as our,
        psycopg.connect(theirs.conninfo, autocommit=True) as their,
    ):
        yield our, their


def _document(connection: psycopg.Connection[Any], options: str, text: str) -> tuple[Any, Any]:
    cursor = connection.execute(f"EXPLAIN ({options}) {text}")
    assert cursor.description is not None
    rows = cursor.fetchall()
    assert cursor.statusmessage == "EXPLAIN"
    assert len(rows) == 1
    return [(column.name, column.type_code) for column in cursor.description], rows[0][0]


def _shape(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Names and kinds of values of what is common to all nodes."""
    names = [name for name in node if not _NOT_OURS.search(name) and name not in _NOT_THEIRS]
    common = ("Node Type", "Plans", "Startup Cost", "Total Cost", "Plan Rows", "Plan Width", *_OF_NODE)
    kinds = {name: "number" if isinstance(node[name], int | float) else type(node[name]).__name__ for name in names}
    return {name: kind for name, kind in kinds.items() if name in common[2:] or name.startswith("Actual")}


@pytest.mark.parametrize("options", _OPTIONS)
@pytest.mark.parametrize("text", _STATEMENTS)
def test_documents_have_postgresqls_shape(both: Any, options: str, text: str) -> None:
    (our_columns, our), (their_columns, their) = (_document(each, options, text) for each in both)
    assert our_columns == their_columns == [("QUERY PLAN", 114)]
    assert [len(our), len(their)] == [1, 1]
    assert list(our[0]) == [name for name in their[0] if name != "Planning"]
    assert _shape(our[0]["Plan"]) == _shape(their[0]["Plan"])
    if "Actual Rows" in their[0]["Plan"]:
        for name in ("Actual Rows", "Actual Loops"):
            assert our[0]["Plan"][name] == their[0]["Plan"][name]
    _check_node(our[0]["Plan"])


def _check_node(node: Mapping[str, Any]) -> None:
    assert node["Node Type"]
    assert {name: node[name] for name in _OF_NODE} == _OF_NODE
    for child in node.get("Plans", ()):
        assert child["Parent Relationship"] in ("Outer", "Inner")
        _check_node(child)


def test_nodes_have_postgresqls_names(both: Any) -> None:
    our, _ = both
    _, found = _document(our, "FORMAT JSON", "SELECT a.n FROM numbers AS a JOIN numbers AS b ON a.n = b.n ORDER BY 1")

    def types(node: Mapping[str, Any]) -> set[str]:
        return {node["Node Type"]}.union(*map(types, node.get("Plans", ())))

    assert {"Sort", "Hash Join", "Seq Scan"} <= types(found[0]["Plan"])


def test_the_binary_form_is_the_same_document(both: Any) -> None:
    our, _ = both
    with our.cursor(binary=True) as cursor:
        (row,) = cursor.execute("EXPLAIN (FORMAT JSON, COSTS off) SELECT 1").fetchall()
    assert row == (_document(our, "FORMAT JSON, COSTS off", "SELECT 1")[1],)


def test_analyze_has_measured_the_statement(both: Any) -> None:
    our, their = both
    lines, expected = (
        [row[0] for row in each.execute("EXPLAIN ANALYZE SELECT n FROM numbers WHERE n < 7").fetchall()]
        for each in (our, their)
    )
    form = re.compile(
        r"\(cost=0\.00\.\.\S+ rows=\d+ width=8\) \(actual time=\d+\.\d{3}\.\.\d+\.\d{3} rows=7(\.00)? loops=1\)$"
    )
    assert form.search(lines[0])
    assert form.search(expected[0])
    for line, name in zip(lines[-2:], ("Planning", "Execution"), strict=True):
        assert re.fullmatch(rf"{name} Time: \d+\.\d{{3}} ms", line)
    (slow,) = our.execute("EXPLAIN (ANALYZE, FORMAT JSON) SELECT pg_sleep(0.05)").fetchone()
    assert slow[0]["Execution Time"] >= 50
    assert slow[0]["Plan"]["Actual Total Time"] >= 50
    with pytest.raises(psycopg.errors.DivisionByZero):
        our.execute("EXPLAIN (ANALYZE, FORMAT JSON) SELECT 1 / (n - n) FROM numbers")
    our.execute("SET statement_timeout = '100ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        our.execute("EXPLAIN ANALYZE SELECT pg_sleep(10)")


@pytest.mark.parametrize(
    "options",
    [
        "COLOUR on", "FORMAT nonsense", "FORMAT", "ANALYZE maybe", "ANALYZE 2", "WAL", "TIMING", "FORMAT 'JSON'",
        "COSTS nope, FORMAT json",
    ],
)  # fmt: skip
def test_wrong_options_are_postgresqls_errors(both: Any, options: str) -> None:
    told = []
    for connection in both:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(f"EXPLAIN ({options}) SELECT 1")
        told.append((caught.value.sqlstate, caught.value.diag.message_primary))
    assert told[0] == told[1]


@pytest.mark.parametrize("form", ["XML", "yaml"])
def test_other_formats_are_refused(both: Any, form: str) -> None:
    our, _ = both
    with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
        our.execute(f"EXPLAIN (FORMAT {form}) SELECT 1")
    assert caught.value.diag.message_primary == f"EXPLAIN format {form.lower()} is not supported"
    assert "FORMAT JSON" in (caught.value.diag.message_hint or "")
