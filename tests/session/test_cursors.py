"""SQL cursors in a session: which transaction they live in, what they keep, and when their query is let go.

How they move is compared with a real PostgreSQL in tests/clients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.session.cursors.cursor_rows import CursorRows, FetchedRows, cursor_memory
from mvserver.session.session import Session
from tests.session.fakes import World, rows, run, values


def fails(session: Session, text: str) -> tuple[str, str]:
    with pytest.raises(SqlError) as caught:
        run(session, text)
    return caught.value.sqlstate, caught.value.message


def test_a_cursor_lives_as_long_as_its_transaction(world: World, session: Session) -> None:
    run(session, "BEGIN")
    assert run(session, "DECLARE c CURSOR FOR SELECT a FROM v") == [("DECLARE CURSOR", [])]
    assert world.pulls.snapshots[0].open_result
    assert run(session, "FETCH 2 FROM c; FETCH ALL IN c; FETCH c") == [
        ("FETCH ", [(1,), (1,)]),
        ("FETCH ", [(1,)]),
        ("FETCH ", []),
    ]
    run(session, "COMMIT")
    assert fails(session, "FETCH c") == ("34000", 'cursor "c" does not exist')


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "CLOSE c", "CLOSE ALL", "ROLLBACK TO SAVEPOINT s"])
def test_the_query_ends_with_the_cursor(world: World, session: Session, end: str) -> None:
    run(session, "BEGIN; SAVEPOINT s; DECLARE c CURSOR FOR SELECT a FROM v; FETCH c")
    assert world.pulls.snapshots[0].open_result
    run(session, end)
    assert not world.pulls.snapshots[0].open_result
    assert fails(session, "MOVE c")[0] == "34000"


def test_without_hold_only_in_a_transaction(session: Session) -> None:
    expected = ("25P01", "DECLARE CURSOR can only be used in transaction blocks")
    assert fails(session, "DECLARE c CURSOR FOR SELECT a FROM v") == expected
    session.parse("", "DECLARE c CURSOR FOR SELECT a FROM v", [])
    session.bind("", "", [])
    with pytest.raises(SqlError) as caught:
        session.execute("")
    session.sync()
    assert (caught.value.sqlstate, caught.value.message) == expected
    # several statements of one text are a transaction
    assert values(session, "DECLARE c CURSOR FOR SELECT a FROM v; FETCH c") == [(1,)]
    assert fails(session, "FETCH c")[0] == "34000"


def test_a_held_cursor_shows_the_rows_of_its_declare(world: World, session: Session) -> None:
    run(session, "DECLARE c CURSOR WITH HOLD FOR SELECT a FROM v")
    assert not world.pulls.snapshots[0].open_result
    world.pulls.data.value = 2
    assert values(session, "FETCH 2 FROM c") == [(1,), (1,)]
    run(session, "BEGIN; DECLARE d CURSOR WITH HOLD FOR SELECT a FROM v; FETCH d")
    world.pulls.data.value = 3
    run(session, "COMMIT")
    assert values(session, "FETCH ALL c") == [(1,)]
    assert values(session, "FETCH ALL d") == [(2,), (2,)]
    run(session, "DISCARD ALL")
    assert fails(session, "FETCH d")[0] == "34000"


def test_what_a_failed_transaction_declared_is_not_held(session: Session) -> None:
    run(session, "DECLARE kept CURSOR WITH HOLD FOR SELECT a FROM v")
    run(session, "BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT a FROM v; FETCH c; FETCH kept; ROLLBACK")
    assert fails(session, "FETCH c")[0] == "34000"
    assert fails(session, "DECLARE c CURSOR WITH HOLD FOR SELECT a FROM v; FETCH c; SELECT a FROM broken")[0] == "22012"
    assert fails(session, "FETCH c")[0] == "34000"
    assert values(session, "FETCH ALL kept") == [(1,), (1,)]


def test_an_error_of_the_query_that_is_held_ends_the_transaction(session: Session) -> None:
    run(session, "BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT a FROM late_error")
    assert fails(session, "COMMIT")[0] == "22003"
    assert session.transaction_status() == "I"
    assert fails(session, "FETCH c")[0] == "34000"


def test_a_failed_cursor_does_not_look_read(session: Session) -> None:
    run(session, "BEGIN; DECLARE c CURSOR FOR SELECT a FROM late_error; SAVEPOINT s")
    assert fails(session, "FETCH 5 FROM c")[0] == "22003"
    run(session, "ROLLBACK TO SAVEPOINT s")
    assert fails(session, "FETCH c") == ("55000", 'portal "c" cannot be run')
    run(session, "ROLLBACK TO SAVEPOINT s; CLOSE c")


def test_names_are_shared_with_portals(session: Session) -> None:
    run(session, "BEGIN; DECLARE c CURSOR FOR SELECT a FROM v; SAVEPOINT s")
    duplicate = ("42P03", 'cursor "c" already exists')
    assert fails(session, "DECLARE c CURSOR FOR SELECT a FROM v") == duplicate
    run(session, "ROLLBACK TO SAVEPOINT s")
    session.parse("p", "SELECT a FROM v", [])
    with pytest.raises(SqlError) as caught:
        session.bind("c", "p", [])
    assert (caught.value.sqlstate, caught.value.message) == duplicate
    run(session, "ROLLBACK TO SAVEPOINT s")
    assert [field.name for field in session.describe_portal("c") or ()] == ["a"]
    session.close_portal("c")
    assert fails(session, "FETCH c")[0] == "34000"
    run(session, "ROLLBACK; BEGIN")
    session.parse("q", "SELECT a FROM v", [])
    session.bind("c", "q", [])
    assert fails(session, "DECLARE c CURSOR FOR SELECT a FROM v") == duplicate


def test_parameters_and_description(session: Session) -> None:
    run(session, "BEGIN")
    session.parse("d", "DECLARE c CURSOR FOR SELECT a FROM v WHERE b = $1", [23])
    description = session.describe_statement("d")
    assert (description.parameter_oids, description.fields) == ((23,), None)
    session.bind("", "d", [7])
    assert session.execute("").tag == "DECLARE CURSOR"
    session.parse("f", "FETCH 1 FROM c", [])
    assert [field.name for field in session.describe_statement("f").fields or ()] == ["a"]
    session.bind("", "f", [])
    assert rows(session.execute("")) == [(7,)]
    run(session, "CLOSE c; DECLARE c CURSOR FOR SELECT b FROM v")
    assert [field.name for field in session.describe_statement("f").fields or ()] == ["b"]
    assert fails(session, "DECLARE d CURSOR FOR SELECT a FROM v WHERE b = $1") == ("42P02", "there is no parameter $1")


def test_copy_has_no_parameters_and_no_description(session: Session) -> None:
    session.parse("c", "COPY (SELECT a FROM v) TO STDOUT", [])
    assert session.describe_statement("c").fields is None
    session.bind("", "c", [])
    result = session.execute("")
    assert result.copy is not None
    assert (result.tag, result.copy.format, rows(result)) == ("COPY ", "text", [(1,)] * 3)
    session.sync()
    assert fails(session, "COPY (SELECT a FROM v WHERE b = $1) TO STDOUT")[0] == "42P02"
    assert fails(session, "COPY v (a) TO STDOUT (FORMAT csv, FORCE_QUOTE (x))")[0] == "42703"


def test_cursors_are_bounded(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CURSORS_MAX", 2)
    run(session, "BEGIN; DECLARE a CURSOR FOR SELECT a FROM v; DECLARE b CURSOR FOR SELECT a FROM v")
    assert fails(session, "DECLARE c CURSOR FOR SELECT a FROM v")[0] == "53400"


def test_what_cursors_keep_is_bounded(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    run(session, "DECLARE kept CURSOR WITH HOLD FOR SELECT a FROM v")
    held = session._state.services.cursor_memory
    monkeypatch.setattr(held, "_bounds", replace(held._bounds, of_session=30))
    assert fails(session, "DECLARE c CURSOR WITH HOLD FOR SELECT a FROM v") == (
        "53200",
        "the rows that cursors keep take too much memory",
    )
    run(session, "BEGIN; DECLARE c SCROLL CURSOR FOR SELECT a FROM v")
    assert fails(session, "MOVE ALL IN c")[0] == "53200"
    run(session, "ROLLBACK; BEGIN; DECLARE c CURSOR FOR SELECT a FROM v")
    assert run(session, "MOVE ALL IN c") == [("MOVE 3", [])]
    run(session, "CLOSE kept; COMMIT")
    run(session, "DECLARE c CURSOR WITH HOLD FOR SELECT a FROM v")  # what the others kept was given back


# --- rows -----------------------------------------------------------------------------------------------------------
def batches(*sizes: int) -> Iterator[pa.RecordBatch]:
    at = 0
    for size in sizes:
        yield pa.record_batch([pa.array(range(at + 1, at + size + 1), pa.int64())], names=["n"])
        at += size


def numbers(found: Iterator[pa.RecordBatch]) -> list[int]:
    return [value for batch in found for value in batch.column(0).to_pylist()]


def test_a_forward_cursor_keeps_one_batch() -> None:
    cursor = CursorRows(batches(3, 0, 3, 3), keep=False, budget=cursor_memory().share(""))
    assert numbers(cursor.forward(4)) == [1, 2, 3, 4]
    assert [batch.num_rows for batch in cursor._batches] == [3]
    cursor.hold()
    assert numbers(cursor.forward(None)) == [5, 6, 7, 8, 9]
    assert (cursor.at, cursor._batches) == (10, [])


def test_rows_backward_over_batches() -> None:
    cursor = CursorRows(batches(3, 2, 4), keep=True, budget=cursor_memory().share(""))
    assert numbers(cursor.forward(7)) == [1, 2, 3, 4, 5, 6, 7]
    assert numbers(cursor.backward(3)) == [6, 5, 4]
    assert numbers(cursor.backward(None)) == [3, 2, 1]
    assert cursor.at == 0
    assert cursor.pass_over(None) == 9
    assert numbers(cursor.backward(2)) == [9, 8]
    cursor.close()
    with pytest.raises(SqlError, match="the cursor has been closed"):
        next(cursor.forward(1))


def test_the_rest_of_a_fetch_is_kept_for_who_reads_it_and_passed_over_else() -> None:
    cursor = CursorRows(batches(2, 2, 2), keep=False, budget=cursor_memory().share(""))
    fetched = FetchedRows(cursor.forward(4))
    assert numbers(iter([next(fetched)])) == [1, 2]
    fetched.settle()
    assert cursor.at == 4
    assert numbers(fetched) == [3, 4]
    abandoned = FetchedRows(cursor.forward(2))
    abandoned.close()
    abandoned.settle()
    assert (cursor.at, numbers(abandoned)) == (6, [])
