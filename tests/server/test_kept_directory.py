"""A data directory that an earlier server wrote opens, and its views are read in the same ways as then."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

from catalog.model import Relation
from catalog.store import Catalog
from mvserver.server import Rooms
from mvserver.serving.fast.finished_loader import CannotBeKept, Loader
from spark_sinks.duckdb.layout import ViewLayout
from tests.server.kept_directory import ANSWERS, VIEWS, answers
from tests.server.program import Program

_ROOMS = Path(__file__).parents[2]
_SHARED = {name for name in VIEWS if name.startswith("shared")}
# As the server found them when the directory was written.
_LOOKED_UP_IN_STATE = _SHARED | {
    "arithmetic", "changed", "counted", "instants", "keyed", "methods", "nested", "oldest", "regions", "sessions",
    "two_keys", "united", "unnested",
}  # fmt: skip
_ROWS_NOT_KEPT = _SHARED | {"final", "instants", "sessions"}  # by a watermark, or a key that Python writes otherwise


def _views(rooms: Rooms) -> dict[str, Relation]:
    return {each.name: each for each in rooms.catalog.relations.all() if each.name in VIEWS}


def test_its_views_give_what_they_gave_in_the_ways_in_which_they_gave_it(folder: Path) -> None:
    expected = json.loads((folder / "data" / ANSWERS).read_text())
    with closing(Catalog.open(folder / "data" / "catalog.db")) as catalog:
        look_ups = {view.name: _look_up(view) for view in catalog.relations.all() if view.name in VIEWS}
    with Program(folder) as program, program.ready().connect() as connection:
        assert answers(connection) == expected
        in_state = set()
        for name, look_up in look_ups.items():
            told = [line for (line,) in connection.execute(f"EXPLAIN {look_up}".encode()) if line.startswith("DuckDB:")]
            in_state |= {name} if '"_state"' in told[0] else set()
    assert in_state == _LOOKED_UP_IN_STATE


def _look_up(view: Relation) -> str:
    """By the whole key, as far as the view has one."""
    types = {column.name: column.type for column in view.columns}
    values = {name: "x" if types[name] == "VARCHAR" else "1" for name in view.key_columns}
    values |= {name: "2024-05-01" for name in view.key_columns if types[name].startswith("TIMESTAMP")}
    compared = [f"{name} = '{value}'" for name, value in values.items()]
    return f"SELECT * FROM {view.name} WHERE {' AND '.join(compared) or 'true'}"


def test_the_views_whose_rows_can_be_kept_are_those_of_then(rooms: Rooms) -> None:
    loader, not_kept = Loader(rooms.database, rooms.writer.layouts, ()), set()
    for name, view in _views(rooms).items():
        try:
            loader.source(view.id, view.key_columns)
        except CannotBeKept:
            not_kept.add(name)
    loader.close()
    assert not_kept == _ROWS_NOT_KEPT


def test_a_layout_says_what_the_file_has(rooms: Rooms) -> None:
    kept = set(rooms.writer.state_tables())
    with rooms.database.cursor() as cursor:
        for view in _views(rooms).values():
            layout = rooms.writer.layouts.of(view.id)
            assert isinstance(layout, ViewLayout)
            assert set(layout.tables) <= kept
            assert layout.reads <= set(layout.tables)
            described = cursor.execute(f'DESCRIBE _state."{layout.table}"').fetchall()
            assert [name for name, *_ in described] == [name for name, _ in layout.stored]
            for (_, stored), (_, kind, *_) in zip(layout.stored, described, strict=True):
                ((same,),) = cursor.execute(f"SELECT typeof(NULL::{stored}) = '{kind}'").fetchall()
                assert same, (layout, stored, kind)
            assert set(layout.keys) <= {name for name, _ in layout.stored}


def test_nobody_reads_the_text_of_a_view_back() -> None:
    reading = re.compile(r"\bsql\b[^;]{0,80}FROM duckdb_views\(\)")
    found = [
        str(path)
        for room in ("mvserver", "spark_sinks")
        for path in (_ROOMS / room).rglob("*.py")
        if reading.search(path.read_text())
    ]
    assert not found
