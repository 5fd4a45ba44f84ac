"""mv_catalog for roles that do not see everything: rows by the oids that they carry, whose columns nobody is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.acl import AclItem, Privilege
from mvserver.pgcatalog.snapshot import CatalogSnapshot, Role
from mvserver.pgcatalog.visibility import Viewer
from mvserver.serving.api import PullScope
from mvserver.serving.engine.database import Database
from mvserver.serving.plan.pull import DuckPullService
from tests.pgcatalog.world import SNAPSHOT, SOURCE, VISITS, CatalogWorld

ANNA, BEN = 16_500, 16_501
UINT = pa.uint32()


def things() -> pa.Table:
    return pa.table(
        {
            "name": ["view", "stream", "its records", "everybody's"],
            "_o": pa.array([VISITS.oid, SOURCE.oid, SOURCE.oid, 0], UINT),
            "_r": pa.array([0, 0, SOURCE.oid, 0], UINT),
        }
    )


def snapshot() -> CatalogSnapshot:
    """Anna reads the view and may write to the stream; ben has nothing but the schema."""
    usage = AclItem(0, 10, frozenset({Privilege.USAGE}))
    return replace(
        SNAPSHOT,
        generation=2,
        schemas=tuple(replace(schema, acl=(usage,)) for schema in SNAPSHOT.schemas),
        relations=(
            replace(VISITS, acl=(AclItem(ANNA, 10, frozenset({Privilege.SELECT})),)),
            replace(SOURCE, acl=(AclItem(ANNA, 10, frozenset({Privilege.INSERT})),)),
        ),
        roles=(*SNAPSHOT.roles, Role(ANNA, "anna"), Role(BEN, "ben")),
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogWorld]:
    folder: Path = tmp_path_factory.mktemp("visibility")
    with Database.open(folder / "views.duckdb") as database:
        made = CatalogWorld(database)
        made.close()
        made.service = DuckPullService(
            database, made, {"things": things, "bare": lambda: pa.table({"name": ["untold"]})}
        )
        made._snapshot = made.service.snapshot()
        made.current = snapshot()
        yield made
        made.close()


def names(world: CatalogWorld, text: str, role: str) -> list[str]:
    return sorted(str(row[0]) for row in world.rows(text, scope=PullScope("postgres", ("public",), role)))


def test_rows_are_shown_to_those_who_see_what_they_tell_of(world: CatalogWorld) -> None:
    text = "SELECT name FROM mv_catalog.things"
    assert names(world, text, "postgres") == ["everybody's", "its records", "stream", "view"]
    assert names(world, text, "anna") == ["everybody's", "stream", "view"]
    assert names(world, text, "ben") == names(world, text, "dropped") == ["everybody's"]


def test_a_relation_that_does_not_say_of_what_it_tells_is_for_superusers(world: CatalogWorld) -> None:
    assert names(world, "SELECT name FROM mv_catalog.bare", "postgres") == ["untold"]
    assert names(world, "SELECT name FROM mv_catalog.bare", "anna") == []


@pytest.mark.parametrize("role", ["postgres", "anna"])
def test_the_columns_that_decide_are_nobodys(world: CatalogWorld, role: str) -> None:
    scope = PullScope("postgres", ("public",), role)
    fields, _ = world.ask("SELECT * FROM mv_catalog.things", scope=scope)
    assert [field.name for field in fields] == ["name"]
    listed = world.rows("SELECT attname FROM pg_attribute WHERE attrelid = (SELECT oid FROM pg_class "
                        "WHERE relname = 'things')", scope=scope)  # fmt: skip
    assert listed == [("name",)]


@pytest.mark.parametrize("column", ["rows_done", "share", "filled_share", "seconds_left", "watermark", "lane_reason"])
def test_what_tells_of_hidden_rows_is_null(column: str) -> None:
    viewer = Viewer(frozenset(), frozenset(), frozenset(), frozenset(), secured=frozenset({VISITS.oid}))
    assert viewer.untold(["view", column]).count(f'THEN NULL ELSE "{column}" END') == 1
