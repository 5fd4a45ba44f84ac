"""What sessions hold is bounded for each, for its role and for the server, and counted until it is let go."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.front import Field, Result
from mvserver.session.clock import StatementClock
from mvserver.session.cursors.cursor_rows import CursorRows, cursor_memory
from mvserver.session.deadlines import Deadlines
from mvserver.session.held_memory import Bounds, HeldMemory
from mvserver.session.prepared import (
    PreparedStatement,
    PreparedStatements,
    prepared_memory,
    prepared_table,
    without_tree,
)
from mvserver.session.results import WatchedBatches
from mvserver.sql import parse
from mvserver.sql.statements.queries import Pull

BOUNDS = Bounds(of_session=100, of_role=150, of_server=200)


def memory() -> HeldMemory:
    return HeldMemory("things", BOUNDS, "Let go.")


def test_each_bound_holds_by_itself() -> None:
    held = memory()
    one, second, other = held.share("a"), held.share("a"), held.share("b")
    one.take(90)
    for share, size, whose in ((one, 20, "a session"), (second, 70, "a role"), (other, 101, "a session")):
        with pytest.raises(SqlError, match="things take too much memory") as raised:
            share.take(size)
        assert raised.value.sqlstate == "53200"
        assert f"Those of {whose} may take" in (raised.value.detail or "")
    second.take(60)
    other.take(50)
    with pytest.raises(SqlError) as raised:
        held.share("c").take(1)
    assert "Those of all sessions" in (raised.value.detail or "")
    one.give_back(90)
    held.share("c").take(50)
    assert held.total == 160


def batches(count: int) -> Iterator[pa.RecordBatch]:
    return iter([pa.record_batch([pa.array([1, 2, 3], pa.int64())], names=["n"]) for _ in range(count)])  # 24 bytes


def watched(held: HeldMemory, count: int) -> WatchedBatches:
    result = Result("SELECT ", (Field("n", 20),), batches(count))
    clock = StatementClock(Deadlines(), None)
    return WatchedBatches(
        result, clock, interrupt=lambda: None, failed=lambda error: error, finished=lambda: None, share=held.share("a")
    )


def test_results_that_are_read_aside() -> None:
    held = memory()
    one, other = watched(held, 4), watched(held, 4)
    one.spool()
    assert held.total == 96
    with pytest.raises(SqlError):
        other.spool()
    assert held.total == 96
    next(one)
    assert held.total == 72
    one.discard()
    assert held.total == 0


def test_rows_of_cursors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CURSOR_ROWS_BYTES_OF_ROLE_MAX", 100)
    held = cursor_memory()
    one, other = (CursorRows(batches(3), keep=True, budget=held.share("a")) for _ in range(2))
    assert one.pass_over(None) == 9
    with pytest.raises(SqlError, match="the rows that cursors keep"):
        other.pass_over(None)
    other.close()
    one.close()
    assert held.total == 0


def prepared(name: str, text: str) -> PreparedStatement:
    (statement,) = parse(text)
    return PreparedStatement(name, text, statement)


def test_prepared_statements_are_counted_until_they_are_given_up() -> None:
    held, gone = prepared_memory(), list[str]()
    statements = PreparedStatements(held.share("a"))
    statements.on_gone(gone.append)
    for name in ("", "one", "two"):
        statements.add(prepared(name, "SELECT 1"))
    statements.add(prepared("", "SELECT 2"))  # in the place of the other
    before = held.total
    statements.deallocate("one")
    assert 0 < held.total < before
    statements.clear()
    assert (held.total, gone) == (0, ["", "one", "two", ""])


@pytest.mark.parametrize("form", ["SELECT {}", "DECLARE c CURSOR FOR SELECT {}"])
def test_only_small_statements_keep_their_trees(form: str) -> None:
    for text, kept in (("1", True), ("1 + " * 400 + "1", False)):
        (statement,) = parse(form.format(text))
        statement = without_tree(statement)
        query = statement if isinstance(statement, Pull) else statement.query  # type: ignore[union-attr]
        assert query.has_tree is kept


def test_a_statement_gives_back_what_it_took_also_when_its_text_has_grown() -> None:
    held = prepared_memory()
    other, own = held.share("a"), held.share("a")
    other.take(1000)
    statements = PreparedStatements(own)
    for number in range(5):
        text = f"SELECT '{number}é{'x' * 100_000}'"
        statements.add(PreparedStatement("s", text, parse(text)[0], prepare_text=text))
        prepared_table(statements.named())  # Python keeps the UTF-8 form of a text beside it
        statements.discard("s")
    assert (own.held, held.total) == (0, 1000)
