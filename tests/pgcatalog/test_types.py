"""Oids stand in one module, written from PostgreSQL's own list; a type is one row and few names elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mvserver.sql.types import Kind
from mvserver.types import oids
from tests.pgcatalog.write_oids import BEGIN, END, TARGET, written

ROOT = Path(__file__).parents[2]
SOURCES = [path for room in ("mvserver", "spark_sinks", "catalog") for path in sorted((ROOT / room).rglob("*.py"))]
TABLE = ROOT / "mvserver" / "sql" / "types.py"

NAMED_IN = {
    "BOOLEAN": 9, "TINYINT": 7, "SMALLINT": 10, "INTEGER": 11, "BIGINT": 17, "FLOAT": 13, "DOUBLE": 12, "DECIMAL": 17,
    "VARCHAR": 15, "VARBINARY": 10, "DATE": 10, "TIME": 9, "TIMESTAMP": 12, "TIMESTAMP_LTZ": 12, "INTERVAL": 13,
}  # fmt: skip
"""In how many files beside the table ``Kind.X`` may occur: those that treat values of the type in a way of its own."""


def test_the_oids_are_those_of_the_recorded_pg_type() -> None:
    body = TARGET.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert body == written()


def test_no_oid_stands_elsewhere_as_a_number() -> None:
    numbers = {value for name, value in vars(oids).items() if name.isupper() and isinstance(value, int)}
    wanted = "|".join(str(number) for number in sorted({*numbers, *oids.ELEMENT_OF}) if 1_042 <= number < 4_000)
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in SOURCES
        if path != TARGET
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(rf"(?<![\w.])(?:{wanted})(?![\w.])", line)
    ]
    assert found == []


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind.name in NAMED_IN], ids=lambda kind: kind.name)
def test_a_type_is_named_in_few_files(kind: Kind) -> None:
    name = re.compile(rf"\bKind\.{kind.name}\b")
    files = [path for path in SOURCES if path != TABLE and name.search(path.read_text(encoding="utf-8"))]
    assert len(files) <= NAMED_IN[kind.name], [str(path.relative_to(ROOT)) for path in files]


def test_each_scalar_type_has_a_whole_row() -> None:
    for kind in Kind:
        row = kind.row
        if row.spellings and kind not in (Kind.INTERVAL, Kind.NULL):
            assert None not in (row.oid, row.name, row.duckdb, row.spark, row.spark_class), kind
