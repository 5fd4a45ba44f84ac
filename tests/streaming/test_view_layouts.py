"""The layouts that the writer tells are those of the views that are committed."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from mvserver.views.finishing import layout_of
from spark_sinks.duckdb.layout import ViewLayout
from spark_sinks.duckdb.writer import Writer
from tests.streaming.states import target, writer_in


def _drop_and_fail(writer: Writer, layout: ViewLayout) -> None:
    with writer.transaction():
        writer.drop_state(layout.tables, layout.view_id)
        writer.execute("DROP TABLE no_such_table")


def test_a_layout_is_known_from_the_commit_on_until_the_view_is_dropped(tmp_path: Path) -> None:
    made = target("SELECT k, count(*) AS n, sum(n) AS total FROM events GROUP BY k", 1)
    layout = layout_of(made)
    with writer_in(tmp_path) as (_, writer):
        with writer.transaction():
            writer.create_state(made.state, layout)
            assert writer.layouts.of(made.view_id) is None
        assert writer.layouts.of(made.view_id) is layout
        with pytest.raises(duckdb.CatalogException):
            _drop_and_fail(writer, layout)
        with writer.transaction():
            pass
        assert writer.layouts.of(made.view_id) is layout
        with writer.transaction():
            writer.drop_state(layout.tables, made.view_id)
        assert writer.layouts.of(made.view_id) is None
        assert writer.state_tables() == []


def test_a_layout_names_the_tables_of_its_state(tmp_path: Path) -> None:
    made = target("SELECT k, count(DISTINCT i) AS n, mode() WITHIN GROUP (ORDER BY l) AS m FROM events GROUP BY k", 1)
    layout = layout_of(made)
    table = layout.table
    assert layout.tables == made.state.tables == (table, f"{table}_nulls", f"{table}_values0", f"{table}_values1")
    assert layout.keys == ("k0",)
    assert layout.reads == {table, f"{table}_nulls", f"{table}_values1"}  # of DISTINCT the state has the count
    assert layout.finishing is None
    with writer_in(tmp_path) as (_, writer):
        with writer.transaction():
            writer.create_state(made.state, layout)
        assert sorted(writer.state_tables()) == sorted(layout.tables)


def test_rows_that_a_watermark_shows_are_not_by_their_state_alone() -> None:
    text = "SELECT window_start, count(*) AS n FROM TUMBLE(events, SIZE 1 MINUTE) GROUP BY window_start, window_end"
    shown, final = layout_of(target(text)), layout_of(target(f"{text} EMIT FINAL"))
    assert shown.by_state_alone
    assert shown.finishing is not None
    assert not final.by_state_alone
    assert final.finishing is None
