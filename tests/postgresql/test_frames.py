"""Frames that are too large for memory lie in files, of which the last few are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_sinks.postgresql import frames
from spark_sinks.postgresql.frames import Frames
from spark_sinks.postgresql.spool import RecordColumns
from spark_sinks.rows_frame import RowsFrame


class Files:
    """In Spark's place: a frame is what lies in its files."""

    _sc = None

    @property
    def read(self) -> Files:
        return self

    def parquet(self, folder: str) -> pa.Table:
        return pa.parquet.read_table(folder)

    def createDataFrame(self, table: pa.Table) -> pa.Table:
        return table


def batch(*values: bytes) -> pa.RecordBatch:
    columns = RecordColumns()
    for value in values:
        columns.add([None], [value], ["x"], 0, "x", 7)
    return columns.batch()


def values(frame: Any) -> list[bytes]:
    return list(frame.sort_by("place")["value"].to_pylist())


def test_what_a_killed_process_has_left_is_in_nobodys_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "FRAME_MEMORY_BYTES", 0)
    spark: Any = Files()
    killed = Frames(tmp_path / "frames")
    for number in range(20):
        killed.frame(spark, [batch(b"old%d" % number)])
    made = Frames(tmp_path / "frames")
    for number in range(20):
        frame = made.frame(spark, [batch(b"a%d" % number), batch(b"b%d" % number)])
        assert values(frame) == [b"a%d" % number, b"b%d" % number]
    assert len(list((tmp_path / "frames").iterdir())) == frames.FRAMES_KEPT
    made.remove()
    assert not (tmp_path / "frames").exists()


@pytest.mark.parametrize(("records", "pieces"), [(100, [100]), (5000, [5000]), (12_001, [6001, 6000])])
def test_many_records_are_divided_among_the_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int, pieces: list[int]
) -> None:
    """Whatever the batches of the spool are."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    spark: Any = Files()
    texts = [b"%d" % number for number in range(records)]
    found = [batch(*texts[at : at + 997]) for at in range(0, records, 997)]
    made = Frames(tmp_path / "frames").frame(spark, found)
    assert isinstance(made, RowsFrame) is (len(pieces) == 1)
    frame: Any = made.rows if isinstance(made, RowsFrame) else made
    assert [each.num_rows for each in frame.to_batches()] == pieces
    assert values(frame) == texts
