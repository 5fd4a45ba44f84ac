"""A data directory that an earlier server wrote opens, and its views are read in the same ways as then."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from kept_directory import ANSWERS, VIEWS, answers, opened_rooms, unpack
from server_program import Program

from catalog.model import Relation
from mvserver.server import Rooms
from mvserver.serving.api import PullScope
from mvserver.serving.finished_loader import CannotBeKept, Loader
from mvserver.sql.dialect import parse_pull
from spark_sinks.duckdb.layout import ViewLayout

_ROOMS = Path(__file__).parents[2]
_SHARED = {name for name in VIEWS if name.startswith("shared")}
# As the server found them when the directory was written.
_LOOKED_UP_IN_STATE = _SHARED | {
    "arithmetic", "changed", "counted", "instants", "keyed", "methods", "nested", "oldest", "regions", "sessions",
    "two_keys", "united", "unnested",
}  # fmt: skip
_ROWS_NOT_KEPT = _SHARED | {"final", "instants", "sessions"}  # by a watermark, or a key that Python writes otherwise


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    unpack(tmp_path)
    return tmp_path


@pytest.fixture
def rooms(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rooms]:
    with opened_rooms(folder, monkeypatch) as opened:
        yield opened


def _views(rooms: Rooms) -> dict[str, Relation]:
    return {each.name: each for each in rooms.catalog.relations.all() if each.name in VIEWS}


def test_its_views_give_what_they_gave(folder: Path) -> None:
    expected = json.loads((folder / "data" / ANSWERS).read_text())
    with Program(folder) as program, program.ready().connect() as connection:
        assert answers(connection) == expected


def test_look_ups_and_kept_rows_find_the_layouts(rooms: Rooms) -> None:
    scope = PullScope("postgres", ("public",), "postgres")
    loader = Loader(rooms.database, rooms.writer.layouts, ())
    in_state, not_kept = set(), set()
    for name, view in _views(rooms).items():
        whole_key = " AND ".join(f"{key} = ${at}" for at, key in enumerate(view.key_columns, start=1)) or "1 = 1"
        plan = rooms.pulls.plan(parse_pull(f"SELECT * FROM {name} WHERE {whole_key}"), scope)
        in_state |= {name} if plan.direct is not None else set()
        try:
            loader.source(view.id, view.key_columns)
        except CannotBeKept:
            not_kept.add(name)
    loader.close()
    assert in_state == _LOOKED_UP_IN_STATE
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
