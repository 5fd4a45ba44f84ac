"""A small batch and a state of many rows: the rows of its keys are found by the index, not by reading them all."""

from __future__ import annotations

import json
from pathlib import Path

from mvserver import limits
from tests.streaming.states import Fed, target, writer_in

GROUPS = 150_000
PIECE = 50_000


def test_few_keys_of_one_column_are_merged_by_its_index(tmp_path: Path) -> None:
    each = target("SELECT k, count(*) AS c, sum(i) AS s FROM events GROUP BY k")
    with writer_in(tmp_path) as (database, writer):
        fed = Fed(database, writer, each)
        for first in range(0, GROUPS, PIECE):
            fed.feed([{"k": f"key {number}", "i": 1} for number in range(first, first + PIECE)])
        known = limits.DUCKDB_INDEXED_KEYS_MAX - 10
        batch = [{"k": f"key {number * 1_000}", "i": 5} for number in range(known)]
        batch += [{"k": f"new {number}", "i": 7} for number in range(10)]
        fed.prepare(batch)
        cursor = writer._cursor
        cursor.enable_profiling()
        cursor.execute("PRAGMA enable_profiling = 'no_output'")
        scanned: list[int] = []
        execute = writer._statements.execute

        def watched(text: str, *arguments: object) -> object:
            found = execute(text, *arguments)  # type: ignore[arg-type]
            if text.startswith("MERGE"):
                scanned.append(json.loads(cursor.get_profiling_information("json"))["query"]["total_rows_scanned"])
            return found

        writer._statements.execute = watched  # type: ignore[method-assign, assignment]
        fed.commit()
        cursor.disable_profiling()
        assert [rows < GROUPS // 10 for rows in scanned] == [True]
        expected = {f"key {number}": (1, 1) for number in range(GROUPS)}
        expected.update({f"key {number * 1_000}": (2, 6) for number in range(known)})
        expected.update({f"new {number}": (1, 7) for number in range(10)})
        assert {row[0]: row[1:] for row in fed.rows()} == expected
