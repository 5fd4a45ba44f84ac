"""The spool: whole transactions by the LSNs of their ends, in memory and in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.postgresql import spool as spooling
from spark_sinks.postgresql.spool import Barrier, Spool


def values(spool: Spool, start: int, end: int) -> list[bytes]:
    return [value for batch in spool.table(start, end) for value in batch.column("value").to_pylist()]


def transaction(spool: Spool, end: int, *records: bytes) -> None:
    for number, record in enumerate(records):
        spool.add(None, record, f"{end}:{number}", 1_700_000_000_000_000, str(end), 7)
    spool.commit(end)


@pytest.fixture(params=[64 * 1024 * 1024, 0], ids=["in memory", "in files"])
def spool(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spool:
    monkeypatch.setattr(spooling, "CHUNK_RECORDS", 3)
    made = Spool(tmp_path / "spool", 100, memory_bytes=request.param)
    transaction(made, 110, b"a", b"b")
    transaction(made, 120, b"c", b"d", b"e")
    made.received(130)
    transaction(made, 140, b"f")
    return made


def test_a_range_has_the_transactions_that_end_in_it(spool: Spool) -> None:
    assert values(spool, 100, 140) == [b"a", b"b", b"c", b"d", b"e", b"f"]
    assert values(spool, 110, 130) == [b"c", b"d", b"e"]
    assert values(spool, 109, 119) == [b"a", b"b"]
    assert values(spool, 120, 139) == []
    assert (spool.count(100, 140), spool.count(110, 120), spool.count(120, 130)) == (6, 3, 0)


def test_what_is_not_here_is_not_counted(spool: Spool) -> None:
    assert spool.count(99, 120) is None
    assert spool.count(100, 141) is None
    assert spool.limited(99, 120, 2) is None


def test_a_limit_never_divides_a_transaction(spool: Spool) -> None:
    assert spool.limited(100, 140, 1) == 110  # the first one is larger, and comes whole
    assert spool.limited(100, 140, 2) == 110
    assert spool.limited(100, 140, 4) == 110
    assert spool.limited(100, 140, 5) == 120
    assert spool.limited(100, 140, 6) == 140
    assert spool.limited(120, 130, 1) == 130  # nothing is in between
    assert spool.limited(110, 120, 1) == 120


def test_nobody_sees_a_transaction_before_its_end(spool: Spool) -> None:
    for record in (b"g", b"h", b"i", b"j"):
        spool.add(None, record, "x", 0, "x", 8)
    assert spool.end == 140
    assert values(spool, 100, 140)[-1] == b"f"
    spool.commit(150)
    assert values(spool, 140, 150) == [b"g", b"h", b"i", b"j"]


@pytest.mark.parametrize("records", [1, 2, 3, 7])
def test_a_transaction_that_was_cut_off_comes_again(spool: Spool, records: int) -> None:
    for number in range(records):
        spool.add(None, b"cut%d" % number, "x", 0, "x", 8)
    spool.roll_back()
    transaction(spool, 150, *(b"whole%d" % number for number in range(records)))
    assert values(spool, 120, 150) == [b"f", *(b"whole%d" % number for number in range(records))]


def test_what_is_released_is_gone_and_the_rest_is_not(spool: Spool, tmp_path: Path) -> None:
    spool.release(120)
    assert spool.start == 120
    assert spool.count(110, 140) is None
    assert values(spool, 120, 140) == [b"f"]
    transaction(spool, 150, b"g")
    assert values(spool, 120, 150) == [b"f", b"g"]
    spool.release(200)
    assert (spool.start, spool.end, spool.count(200, 200)) == (200, 200, 0)
    spool.close()
    assert not (tmp_path / "spool").exists()


def test_a_barrier_is_for_those_who_stand_before_it(spool: Spool) -> None:
    why = SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, "the table was truncated")
    spool.stop_before(Barrier(155, 160, why))
    assert spool.barrier(100) == Barrier(155, 160, why)
    assert spool.barrier(160) is None


def test_what_was_received_behind_a_place_comes_again(spool: Spool) -> None:
    why = SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, "the key was changed")
    spool.stop_before(Barrier(145, 150, why))
    spool.stop_before(Barrier(155, 160, why))
    spool.rewind(150)
    assert (spool.end, spool.barrier(149), spool.barrier(150)) == (150, Barrier(145, 150, why), None)
    spool.rewind(115)
    assert (spool.end, spool.barrier(100)) == (115, None)
    assert values(spool, 100, 115) == [b"a", b"b"]
    transaction(spool, 120, b"C")
    assert values(spool, 100, 120) == [b"a", b"b", b"C"]
    spool.rewind(90)  # before all that is here
    assert (spool.end, values(spool, 100, 100)) == (100, [])


def test_transactions_that_are_not_read_for_one_reason_are_one_barrier(spool: Spool) -> None:
    why = SqlError(sqlstates.OBJECT_NOT_IN_PREREQUISITE_STATE, "the key was changed")
    spool.stop_before(Barrier(145, 150, why))
    spool.stop_before(Barrier(155, 160, why))
    assert spool.barrier(100) == spool.barrier(159) == Barrier(145, 160, why)
    transaction(spool, 170, b"g")
    spool.stop_before(Barrier(175, 180, why))
    assert spool.barrier(160) == Barrier(175, 180, why)


def test_a_chunk_that_cannot_be_written_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooling, "CHUNK_RECORDS", 3)
    made = Spool(tmp_path / "spool", 100, memory_bytes=0)
    transaction(made, 110, b"a", b"b")

    class Full:
        def __init__(self, *_: object) -> None: ...

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None: ...

        def write_batch(self, batch: object) -> None:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(spooling.pa.ipc, "new_file", Full)
        with pytest.raises(OSError, match="No space left"):
            made.add(None, b"c", "x", 0, "x", 8)
    made.roll_back()
    assert list((tmp_path / "spool").iterdir()) == []
    transaction(made, 120, b"c", b"d")
    assert values(made, 100, 120) == [b"a", b"b", b"c", b"d"]


def test_bytes_are_those_of_whole_transactions(spool: Spool) -> None:
    whole = spool.bytes_behind(100)
    assert 0 <= spool.bytes_behind(120) < whole <= spool.bytes
    spool.add(None, b"x" * 10_000, "x", 0, "x", 8)
    assert spool.bytes_behind(100) <= whole + 100
    assert spool.bytes >= 10_000
    spool.roll_back()
    spool.release(140)
    assert (spool.bytes_behind(140), spool.bytes < 10_000) == (0, True)
    for end in range(150, 400, 10):
        transaction(spool, end, b"y")
        spool.release(end)
    assert spool.bytes < 1_000
