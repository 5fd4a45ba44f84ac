"""The ledger: a batch counts once, in its place; rejected rows are kept once; progress moves with the rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvserver.errors import SqlError
from spark_sinks.duckdb.batch_plans import BatchCommit, Move
from spark_sinks.duckdb.ledger import ledger as ledgers
from spark_sinks.duckdb.ledger.ledger import HISTORY_ROWS_MAX, LedgerEntry, decode, encode
from tests.streaming.states import Fed, rejected, target, writer_in


def entry(batch: int, start: int, end: int, generation: int = 1) -> LedgerEntry:
    return LedgerEntry("p", generation, batch, {"at": start}, {"at": end}, 1)


def test_positions_compare_as_values() -> None:
    assert encode({"b": {"2": 1, "1": 0}, "a": 1}) == encode({"a": 1, "b": {"1": 0, "2": 1}})
    assert decode(encode({"a": [1, {"x": None}]})) == {"a": [1, {"x": None}]}


def test_the_same_range_is_skipped(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (_, writer):
        assert writer.commit(BatchCommit(entry(0, 0, 5), rejected=(rejected("0:1"),)))
        assert not writer.commit(BatchCommit(entry(0, 0, 5), rejected=(rejected("0:2"),)))
        assert writer.pipeline_position("p") == {"at": 5}
        assert [row[1] for row in writer.rejected_rows()] == ["0:1"]
        assert writer.commit(BatchCommit(entry(1, 5, 7)))
        assert not writer.commit(BatchCommit(entry(0, 0, 5)))


@pytest.mark.parametrize(
    "wrong",
    [
        entry(0, 0, 6),
        entry(1, 0, 5),
        entry(1, 4, 9),
        entry(1, 6, 9),
        entry(1, 5, 9, generation=2),
        entry(0, 0, 5, generation=0),
    ],
    ids=["more in it", "another id", "overlap", "gap", "later generation", "earlier generation"],
)
def test_any_other_range_is_refused_by_name(tmp_path: Path, wrong: LedgerEntry) -> None:
    with writer_in(tmp_path) as (_, writer):
        writer.commit(BatchCommit(entry(0, 0, 5)))
        with pytest.raises(SqlError) as caught:
            writer.commit(BatchCommit(wrong, rejected=(rejected("0:9"),)))
        assert caught.value.sqlstate == "40001"
        assert (
            caught.value.message
            == f"batch {wrong.batch_id} of generation {wrong.generation} does not follow the ledger"
        )
        assert caught.value.detail == (
            f'It reads from {{"at":{wrong.start["at"]}}}; the ledger is at {{"at":5}} of generation 1.'
        )
        assert writer.pipeline_position("p") == {"at": 5}
        assert writer.rejected_rows() == []


def test_a_pipeline_that_the_ledger_does_not_know_is_refused(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (_, writer), pytest.raises(SqlError, match="does not follow the ledger"):
        writer.commit(BatchCommit(LedgerEntry("other", 1, 0, {}, {}, 0)))


def test_a_new_generation_starts_where_it_is_told(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (_, writer):
        writer.commit(BatchCommit(entry(0, 0, 5)))
        with writer.transaction() as ledger:
            assert ledger.begin_generation("p", {"at": 5}) == 2
        assert writer.commit(BatchCommit(entry(0, 5, 8, generation=2)))
        with pytest.raises(SqlError):
            writer.commit(BatchCommit(entry(1, 5, 8, generation=1)))


def test_rejected_rows_are_kept_once_by_relation_and_position(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (_, writer):
        writer.commit(
            BatchCommit(entry(0, 0, 1), rejected=(rejected("0:1", "first"), rejected("0:1", "second"), rejected("0:2")))
        )
        writer.commit(BatchCommit(None, rejected=(rejected("0:2", "again"), rejected("0:3"))))
        rows = sorted((row[1], row[2], bytes(row[3]), row[4]) for row in writer.rejected_rows())
        assert rows == [
            ("0:1", "first", b"raw", 3),
            ("0:2", "it is wrong", b"raw", 3),
            ("0:3", "it is wrong", b"raw", 3),
        ]
        with writer.transaction() as ledger:
            ledger.drop_rejected("r1")
        assert writer.rejected_rows() == []


def test_a_round_of_a_backfill_moves_only_its_views(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (_, writer):
        with writer.transaction() as ledger:
            for name in ("a", "b"):
                ledger.add_subscriber(name, 1, "p", {"at": 0}, "note")
        writer.commit(BatchCommit(None, moves=(Move(("a",), {"at": 3}),), failures=(("b", "why"),)))
        rows = {row.query_id: row for row in writer.ledger_subscribers()}
        assert (rows["a"].position, rows["a"].epoch, rows["a"].failure) == ({"at": 3}, 1, None)
        assert (rows["b"].position, rows["b"].epoch, rows["b"].failure, rows["b"].note) == ({"at": 0}, 0, "why", "note")
        assert writer.pipeline_position("p") == {"at": 0}
        with writer.transaction() as ledger:
            ledger.set_filled("a")
            ledger.drop_subscriber("b")
        assert [(row.query_id, row.filled) for row in writer.ledger_subscribers()] == [("a", True)]


def test_history_is_bounded(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (database, writer):
        for number in range(HISTORY_ROWS_MAX * 2):
            writer.commit(BatchCommit(entry(number, number, number + 1)))
        with database.cursor() as cursor:
            ((rows, oldest),) = cursor.execute('SELECT count(*), min(batch_id) FROM "_ledger".batches').fetchall()
        assert HISTORY_ROWS_MAX <= rows <= HISTORY_ROWS_MAX + 1
        assert oldest >= HISTORY_ROWS_MAX - 1
        assert not writer.commit(
            BatchCommit(entry(HISTORY_ROWS_MAX * 2 - 1, HISTORY_ROWS_MAX * 2 - 1, HISTORY_ROWS_MAX * 2))
        )


def test_history_is_bounded_over_short_generations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic whose lanes change often, or a source that stalls often, begins one after the other."""
    monkeypatch.setattr(ledgers, "HISTORY_ROWS_MAX", 5)
    with writer_in(tmp_path) as (_, writer):
        for number in range(20):
            with writer.transaction() as ledger:
                generation = ledger.begin_generation("p", {"at": number})
            writer.commit(BatchCommit(entry(0, number, number + 1, generation)))
        assert [row[1] for row in writer.batches()] == [*range(generation, generation - 6, -1)]


def test_a_failure_after_the_rows_leaves_nothing(tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    from mvserver.dialect.errors.duck_errors import translate
    from spark_sinks.duckdb.writer import Writer

    with writer_in(tmp_path) as (database, writer):
        views = Fed(database, writer, target("SELECT k, count(*) FROM events GROUP BY k"))
        views.feed([{"k": "a"}])

        def reached(step: str) -> None:
            if step == "after ledger":
                raise StopError

        stopped = Writer(database.cursor, translate, reached)
        with pytest.raises(StopError):
            stopped.commit(BatchCommit(entry(1, 1, 2), rejected=(rejected("0:7"),)))
        stopped.close()
        assert writer.pipeline_position("p") == {"at": 1}
        assert writer.rejected_rows() == []
        views.feed([{"k": "a"}])
        assert views.rows() == [("a", 2)]


def test_dropping_a_view_leaves_no_table(tmp_path: Path) -> None:
    with writer_in(tmp_path) as (database, writer):
        view = target("SELECT k, count(*) FROM events GROUP BY k")
        Fed(database, writer, view)
        assert writer.has_tables(view.state.tables)
        assert writer.view_ids() == [view.view_id]
        with writer.transaction():
            writer.drop_state(writer.state_tables(), view.view_id)
        assert writer.state_tables() == []
        assert writer.view_ids() == []
