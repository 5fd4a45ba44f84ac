"""Whoever is refused a part of a continuous query is told what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from mvserver import compiler, sql
from mvserver.errors import SqlError
from tests.compiler.harness import compiled

# The readers of SELECT; those of other statements are elsewhere.
_READERS = ("select.py", "calls.py", "expressions.py", "windows.py", "types.py")
_FOLDERS = [Path(module.__path__[0]) for module in (compiler, sql)]
FILES = [*sorted(_FOLDERS[0].rglob("*.py")), *(_FOLDERS[1] / name for name in _READERS)]


def _refusals(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        unsupported = any("FEATURE_NOT_SUPPORTED" in ast.unparse(argument) for argument in node.args)
        if name.endswith(".not_supported") or (name == "SqlError" and unsupported):
            yield node


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_every_refusal_is_raised_with_a_hint(file: Path) -> None:
    bare = [
        f"{file.name}:{call.lineno}"
        for call in _refusals(ast.parse(file.read_text()))
        if "hint" not in {keyword.arg for keyword in call.keywords}
    ]
    assert not bare, bare


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT ON (s) s, i4 FROM everything",
        "SELECT s FROM everything EXCEPT SELECT s FROM everything",
        "SELECT s FROM everything INTERSECT SELECT s FROM everything",
        "WITH RECURSIVE a AS (SELECT s FROM everything) SELECT s FROM a",
        "SELECT s FROM everything WHERE EXISTS (SELECT s FROM everything)",
        "SELECT s FROM everything TABLESAMPLE BERNOULLI (10)",
        "SELECT s FROM everything FOR UPDATE",
        "SELECT s FROM everything MATCH_RECOGNIZE (PATTERN (A B)) AS m",
        "SELECT string_agg(s, ',' ORDER BY i4) FROM everything",
        "SELECT array_agg(i4 ORDER BY i4) FROM everything",
        "SELECT first_value(i4) IGNORE NULLS FROM everything",
        "SELECT json_agg(s) FROM everything",
        "SELECT s, count(*) FROM everything GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE), s",
        "SELECT s FROM everything WITH ('expression.error.handling' = 'NULL')",
        "SELECT s FROM everything WITH ('source.deserialization.error.log.topic' = 't')",
        "SELECT s FROM everything WITH ('postgresql.slot.name' = 'x')",
        "SELECT s FROM everything QUERY WITH ('resume.from.query.id' = 'q')",
        "SELECT s FROM everything QUERY WITH ('parallelism.max' = 2)",
        "SELECT arr[1:2] FROM everything",
        'SELECT s COLLATE "C" FROM everything',
    ],
)
def test_what_is_refused_comes_with_what_to_write_instead(query: str) -> None:
    with pytest.raises(SqlError) as refusal:
        compiled(query)
    assert (refusal.value.sqlstate, bool(refusal.value.hint)) == ("0A000", True), refusal.value
