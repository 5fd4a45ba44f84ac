"""Enum types in the catalog: labels keep their oids, find a place between any two others, fall with their schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.model import EnumType
from catalog.store import Catalog
from mvserver.errors import SqlError


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    catalog = Catalog.open(tmp_path / "catalog.sqlite")
    yield catalog
    catalog.close()


def made(catalog: Catalog, *labels: str) -> EnumType:
    with catalog.transaction():
        return catalog.enums.add(schema_of(catalog), "mood", labels, "postgres")


def schema_of(catalog: Catalog) -> str:
    return catalog.schemas.get(catalog.databases.get("postgres").id, "public").id


def stored(catalog: Catalog) -> EnumType:
    found = catalog.enums.find(schema_of(catalog), "mood")
    assert found is not None
    return found


def test_a_type_has_an_even_oid_and_survives_a_restart(catalog: Catalog) -> None:
    first = made(catalog, "b", "a")
    assert first.oid % 2 == 0
    catalog.close()
    again = Catalog.open(catalog.path)
    assert again.enums.all() == (first,)
    again.close()


def test_labels_can_be_put_at_one_place_again_and_again(catalog: Catalog) -> None:
    made(catalog, "first", "last")
    for number in range(200):  # more often than a number fits between two others
        with catalog.transaction():
            catalog.enums.add_label(stored(catalog), f"label {number}", "last", before=True)
    labels = stored(catalog).labels
    assert [label.name for label in labels] == ["first", *(f"label {n}" for n in range(200)), "last"]
    assert len({label.oid for label in labels}) == 202
    orders = [label.order for label in labels]
    assert orders == sorted(set(orders))


def test_a_schema_takes_its_types_along(catalog: Catalog) -> None:
    with catalog.transaction():
        schema = catalog.schemas.add(catalog.databases.get("postgres").id, "s", "postgres")
        catalog.enums.add(schema.id, "mood", ("a",), "postgres")
    dependents = catalog.dependencies.of_schema(schema)
    assert (dependents.lines, dependents.names) == (("type mood depends on schema s",), ("type mood",))
    with catalog.transaction():
        catalog.schemas.delete(schema.id)
    assert catalog.enums.all() == ()


def test_a_role_that_owns_a_type_cannot_be_dropped(catalog: Catalog) -> None:
    made(catalog, "a")
    assert "type mood" in catalog.roles.owned_by("postgres")


@pytest.mark.parametrize("label", ["x" * 64, "a\0b"])
def test_labels_that_cannot_be(catalog: Catalog, label: str) -> None:
    with pytest.raises(SqlError) as caught:
        made(catalog, label)
    assert caught.value.sqlstate == "42602"
    assert catalog.enums.all() == ()
