"""Structures, maps and their arrays as clients see them: documents with PostgreSQL's forms of what is in them."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from mvserver.dialect.typing.duck_types import output_type
from mvserver.types import oids
from mvserver.types.column import BINARY_FORMAT, TEXT_FORMAT
from mvserver.types.registry import depends_on_zone, encoder


@pytest.fixture(scope="module")
def cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute("SET TimeZone = 'UTC'")
        yield made


@pytest.mark.parametrize(
    ("value", "oid", "wanted"),
    [
        ("{'f': 'NaN'::FLOAT, 'd': '-inf'::DOUBLE}", oids.JSON, '{"f":"NaN","d":"-Infinity"}'),
        ("{'f': 0.1::FLOAT, 'd': 0.1::DOUBLE, 'z': -0.0::DOUBLE}", oids.JSON, '{"f":0.1,"d":0.1,"z":-0}'),
        ("{'n': 0.10::DECIMAL(38, 10), 'i': (-128)::TINYINT}", oids.JSON, '{"n":0.1000000000,"i":-128}'),
        ("{'n': 0.50::DECIMAL(10, 2), 'w': 5::DECIMAL(10, 0)}", oids.JSON, '{"n":0.50,"w":5}'),
        ("{'s': 0.00001::DECIMAL(9, 5), 'f': -0.5::DECIMAL(2, 2)}", oids.JSON, '{"s":0.00001,"f":-0.50}'),
        ("MAP {0.50::DECIMAL(2, 2): 1.50::DECIMAL(4, 2)}", oids.JSON, '{"0.50":1.50}'),
        (r"{'x': '\x00\x5C\xFF'::BLOB, 'e': ''::BLOB}", oids.JSON, r'{"x":"\\x005cff","e":"\\x"}'),
        ("{'ts': TIMESTAMP '1500-01-01 00:00:00.000001'}", oids.JSON, '{"ts":"1500-01-01T00:00:00.000001"}'),
        (
            "{'tz': TIMESTAMPTZ '1969-12-31 23:59:59.999999Z', 'd': DATE '0001-01-01', 't': TIME '23:59:59.999999'}",
            oids.JSON,
            '{"tz":"1969-12-31T23:59:59.999999+00:00","d":"0001-01-01","t":"23:59:59.999999"}',
        ),
        ("{'A': 1, 'json': true, 'b': NULL, 'l': [1, NULL]}", oids.JSON, '{"A":1,"json":true,"b":null,"l":[1,null]}'),
        ("MAP {DATE '2024-01-31': 'NaN'::DOUBLE}", oids.JSON, '{"2024-01-31":"NaN"}'),
        (r"MAP {'\xAA'::BLOB: [MAP {1.5: TIME '01:00'}]}", oids.JSON, r'{"\\xaa":[{"1.5":"01:00:00"}]}'),
        ("[{'f': 'inf'::FLOAT}, NULL]", oids.ARRAY_OF[oids.JSON], r'{"{\"f\":\"Infinity\"}",NULL}'),
    ],
)
def test_documents_have_the_forms_of_postgresql(
    cursor: duckdb.DuckDBPyConnection, value: str, oid: int, wanted: str
) -> None:
    found = cursor.sql(f"SELECT {value} AS v")
    output = output_type(str(found.types[0]))
    shown = f"CAST(v AS {output.cast})" if output.cast else "v"
    column = found.select(shown).to_arrow_table().column(0).combine_chunks()
    assert output.pg.oid == oid
    assert encoder(oid, -1, TEXT_FORMAT, column.type, "UTC").cells(column) == [wanted.encode()]
    binary = encoder(oid, -1, BINARY_FORMAT, column.type, "UTC").column(column).to_pylist()
    assert binary == [wanted.encode()] if oid == oids.JSON else b'{"f":"Infinity"}' in binary[0]


@pytest.mark.parametrize(
    ("zone", "value", "wanted"),
    [
        ("Europe/Paris", "2024-01-01 03:04:05Z", "2024-01-01T04:04:05+01:00"),
        ("Asia/Kolkata", "2024-01-01 03:04:05.5Z", "2024-01-01T08:34:05.5+05:30"),
        ("America/New_York", "0044-03-15 (BC) 12:00:00+00", "0044-03-15T07:03:58-04:56:02 BC"),
    ],
)
def test_instants_are_in_the_zone_of_the_session(
    cursor: duckdb.DuckDBPyConnection, zone: str, value: str, wanted: str
) -> None:
    column = cursor.sql(f"SELECT {{'tz': TIMESTAMPTZ '{value}'}}").to_arrow_table().column(0).combine_chunks()
    assert depends_on_zone(oids.JSON)
    assert encoder(oids.JSON, -1, TEXT_FORMAT, column.type, zone).cells(column) == [f'{{"tz":"{wanted}"}}'.encode()]


def test_what_documents_of_our_own_have_no_form_for_is_duckdbs() -> None:
    assert output_type("STRUCT(u UUID)").cast == "JSON"
    assert output_type("UNION(a INTEGER)").cast == "JSON"
    assert output_type('STRUCT("UUID" DOUBLE)').cast is None
    assert output_type('STRUCT("DOUBLE" INTEGER)').cast == "JSON", "which is quicker, and the same"
