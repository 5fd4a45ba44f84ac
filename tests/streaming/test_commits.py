"""What the writer says of its commits: whose rows they change, from before they can be seen."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from spark_sinks.duckdb.batch_plans import BatchCommit, TableMerge, ViewMerge
from spark_sinks.duckdb.changes.outbox import Outbox
from spark_sinks.duckdb.ledger.commits import Commits
from spark_sinks.duckdb.ledger.ledger import LedgerEntry
from tests.streaming.states import Fed, target, writer_in


def test_a_batch_changes_the_views_that_it_has_rows_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SELECT k, SUM(i) AS s FROM events GROUP BY k"
    with writer_in(tmp_path) as (database, writer):
        made: list[object] = []
        ordinary = Commits.making
        monkeypatch.setattr(
            Commits, "making", lambda self, query_ids: (made.append(query_ids), ordinary(self, query_ids))[1]
        )
        fed = Fed(database, writer, target(text, 1), target(text, 2))
        whole = writer.commits.version(["q1"])
        fed.feed([{"k": "a", "i": 1}])
        assert made == [None, {"q1", "q2"}]
        assert writer.commits.version(["q1"]) != whole
        others, third = writer.commits.version(["q3"]), writer.commits.version(["q1"])
        fed.feed([{"k": "a", "i": 2}])
        assert writer.commits.version(["q3"]) == others
        assert writer.commits.version(["q1"]) != third
        with writer.transaction():
            pass
        assert writer.commits.version(["q3"]) != others
        assert fed.rows() == [("a", 3)]


def test_a_batch_that_the_ledger_has_already_changes_nothing(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (database, writer):
        fed = Fed(database, writer, target("SELECT k, SUM(i) AS s FROM events GROUP BY k"))
        fed.feed([{"k": "a", "i": 1}])
        before = writer.commits.version(["q0"])
        assert not writer.commit(BatchCommit(LedgerEntry("p", 1, 0, {"at": 0}, {"at": 1}, 1)))
        assert writer.commits.version(["q0"]) == before


def test_one_whose_changes_others_are_told_may_change_any() -> None:
    grouped = target("SELECT k, SUM(i) AS s FROM events GROUP BY k")
    alone, told = (
        ViewMerge("q0", grouped.state, keeper=keeper) for keeper in (None, Outbox("q0", "v", "t", ("k",), ()))
    )
    empty = pa.table({"k": ["a"]})
    assert BatchCommit(None, (TableMerge(empty, (alone,)),)).changed == {"q0"}
    assert BatchCommit(None, (TableMerge(empty, (alone, told)),)).changed is None
    assert BatchCommit(None).changed == set()
