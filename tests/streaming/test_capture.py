"""What a merge does to the rows of a changelog's view is told from the rows that the batch touches, by one look at
its changes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from spark_sinks.duckdb.changes.capture import AFTER, BEFORE, CHANGED_KEYS, Keeper, take_changes
from spark_sinks.duckdb.changes.change_outbox import ChangeOutbox
from spark_sinks.duckdb.changes.changelog import KeyedRows, Register
from spark_sinks.duckdb.changes.outbox import Outbox
from spark_sinks.duckdb.layout import ViewLayout
from spark_sinks.duckdb.names import qualified
from tests.streaming.states import writer_in

ELEMENTS = KeyedRows("v_1", ("BIGINT", "BIGINT"), ("BIGINT", "BIGINT", "VARCHAR"), ordinals=1)  # key, number, element
_VIEW = f"SELECT c0 AS id, c1 AS number, c2 AS element FROM {qualified('v_1')}"

Element = tuple[int, int, str]


class Told:
    """A keeper that counts the rows that another one looks at."""

    def __init__(self, keeper: Outbox) -> None:
        self._keeper = keeper
        self.looked_at: list[tuple[int, int]] = []

    def shown(self, *, changed_only: bool) -> str:
        return self._keeper.shown(changed_only=changed_only)

    def keep(self, cursor: duckdb.DuckDBPyConnection, register: Register, newest: dt.datetime | None) -> None:
        counts = f"SELECT (SELECT count(*) FROM {BEFORE}), (SELECT count(*) FROM {AFTER})"
        self.looked_at += cursor.execute(counts).fetchall()
        self._keeper.keep(cursor, register, newest)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Any]:
    with writer_in(tmp_path) as (_, made):
        yield made


def take(writer: Any, keeper: Keeper, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
    """One batch: the elements that records have from now on."""
    elements = [(i, n + 1, f"'{e}'", "true") for i, found in rows for n, e in enumerate(found)]
    gone = [(i, 0, "NULL", "false") for i, found in rows if not found]
    values = ", ".join(f"({i}, {n}, {e}, {passes})" for i, n, e, passes in (*elements, *gone))
    query = (
        "SELECT nextval('looks') AS look, i::BIGINT AS p0, n::BIGINT AS p1, passes, i AS c0, n AS c1, e AS c2 "
        f"FROM (VALUES {values}) AS v(i, n, e, passes)"
    )
    with writer.transaction():
        take_changes(writer._cursor, writer._cursor.register, ELEMENTS, query, keeper, None)


def outbox_of(kind: str) -> Outbox:
    columns = (("id", "BIGINT"), ("number", "BIGINT"), ("element", "VARCHAR"))
    if kind == "topic":
        return Outbox("q", "view", "v_1", ("id", "number"), columns, 1)
    rows = f"SELECT p0, p1, c0 AS id, c1 AS number, c2 AS element FROM {qualified('v_1')}"
    changed = f"{rows} AS k SEMI JOIN {CHANGED_KEYS} AS g ON p0 IS NOT DISTINCT FROM g.g0"
    return ChangeOutbox(
        "q", "view", "v_1", (), (("op", "VARCHAR"), *columns), keys=("p0", "p1"), rows=rows, changed_rows=changed
    )


@pytest.fixture(params=["topic", "client"])
def told(writer: Any, request: pytest.FixtureRequest) -> Told:
    outbox = outbox_of(request.param)
    with writer.transaction():
        writer.create_state(ELEMENTS, ViewLayout("view", ELEMENTS.table, ELEMENTS.stored_columns, (), _VIEW), outbox)
        writer.execute("CREATE SEQUENCE looks")
    return Told(outbox)


def test_elements_of_the_records_of_a_batch_alone_are_looked_at(writer: Any, told: Told) -> None:
    take(writer, told, [(i, ["x", "y"]) for i in range(100)])
    take(writer, told, [(7, ["x", "z", "w"]), (8, [])])
    assert told.looked_at == [(0, 200), (4, 3)]
    with writer.read_cursor() as cursor:
        rows = cursor.execute("SELECT * EXCLUDE (_seq) FROM _state.v_1_outbox WHERE _seq > 200").fetchall()
        if "op" in [column[0] for column in cursor.execute("SELECT * FROM _state.v_1_outbox").description]:
            assert [row[1:] for row in rows] == [
                ("-U", 7, 2, "y"), ("+U", 7, 2, "z"), ("+I", 7, 3, "w"), ("-D", 8, 1, "x"), ("-D", 8, 2, "y"),
            ]  # fmt: skip
        else:
            assert sorted(row[:3] for row in rows) == [(False, 7, 2), (False, 7, 3), (True, 8, 1), (True, 8, 2)]
        shown = cursor.execute('SELECT * FROM "_views".view WHERE id IN (7, 8) ORDER BY ALL').fetchall()
        assert shown == [(7, 1, "x"), (7, 2, "z"), (7, 3, "w")]


def test_the_changes_of_a_batch_are_evaluated_once(writer: Any, told: Told) -> None:
    take(writer, told, [(1, ["x", "y"]), (2, ["z"])])
    assert writer._cursor.execute("SELECT currval('looks')").fetchall() == [(3,)]
    with writer.transaction():
        take_changes(
            writer._cursor, writer._cursor.register, ELEMENTS, f"SELECT * FROM ({_VIEW}) WHERE false", told, None
        )
    assert len(told.looked_at) == 1, "an empty batch is not looked at"
