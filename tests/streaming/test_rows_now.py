"""The rows that a changelog has at its present end, against a dictionary that takes the same changes."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mvserver import limits
from spark_sinks.duckdb.changes.changelog import KeyedRows
from spark_sinks.duckdb.changes.rows_now import RowsNow
from tests.streaming.changelog_states import Changes, target

SQL = "SELECT id, k, n, t FROM rows"


@pytest.fixture
def decoded(tmp_path: Path) -> Iterator[Changes]:
    made = Changes(tmp_path, target(SQL))
    yield made
    made.close()


def rows_now() -> RowsNow:
    state = target(SQL).state
    assert isinstance(state, KeyedRows)
    return RowsNow(state)


def found(rows: RowsNow) -> list[tuple[Any, ...]]:
    table = rows.table(["id", "k", "n", "t"])
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_the_last_version_of_each_row_is_there(decoded: Changes) -> None:
    seed = time.time_ns()
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows, expected = rows_now(), dict[int, tuple[Any, ...]]()
    for size in (1, 300, 500, 40):
        batch = [{"id": chance.randrange(200), "k": f"k{chance.random()}", "gone": chance.random() < 0.3}
                 for _ in range(size)]  # fmt: skip
        for record in batch:
            if record["gone"]:
                expected.pop(record["id"], None)
            else:
                expected[record["id"]] = (record["id"], record["k"], None, None)
        rows.take(decoded.merge(batch))
        assert found(rows) == sorted(expected.values())
    rows.close()


def test_names_of_columns_are_the_query_s(decoded: Changes) -> None:
    rows = rows_now()
    table = rows.table(['say "id"', "K", "n", "t"])
    assert (table.num_rows, table.column_names) == (0, ['say "id"', "K", "n", "t"])
    assert [field.type for field in table.schema] == [pa.int64(), pa.string(), pa.decimal128(10, 2), pa.timestamp("us")]
    rows.close()


def test_more_than_the_memory_holds(decoded: Changes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BOUNDED_READ_BYTES_MAX", 1 << 20)
    rows = rows_now()
    batches = [
        decoded.merge([{"id": turn * 1_000 + i, "k": f"{turn} {i} " * 20} for i in range(1_000)]) for turn in range(40)
    ]
    with pytest.raises(MemoryError):
        deque(map(rows.take, batches), maxlen=0)
    rows.close()
