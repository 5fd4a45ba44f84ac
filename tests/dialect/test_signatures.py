"""The choice among operators and functions of one name, by the examples of PostgreSQL's manual and of its rules."""

from __future__ import annotations

import pytest

from mvserver.dialect.parameters import signatures
from mvserver.dialect.parameters.signatures import AmbiguousError
from mvserver.types import oids
from tests.dialect.record_signatures import TARGET, written
from tests.services.postgres import PostgresServer

UNKNOWN = oids.UNKNOWN


@pytest.mark.parametrize(
    ("symbol", "types", "arguments", "result"),
    [
        ("+", (oids.INT4, UNKNOWN), (oids.INT4, oids.INT4), oids.INT4),
        ("*", (oids.NUMERIC, oids.INT4), (oids.NUMERIC, oids.NUMERIC), oids.NUMERIC),
        ("*", (oids.INTERVAL, UNKNOWN), (oids.INTERVAL, oids.FLOAT8), oids.INTERVAL),
        ("-", (oids.DATE, UNKNOWN), (oids.DATE, oids.DATE), oids.INT4),
        ("+", (oids.TIMESTAMP, UNKNOWN), (oids.TIMESTAMP, oids.INTERVAL), oids.TIMESTAMP),
        ("||", (oids.TEXT, UNKNOWN), (oids.TEXT, oids.TEXT), oids.TEXT),
        ("||", (oids.ARRAY_OF[oids.INT4], UNKNOWN), (oids.ARRAY_OF[oids.INT4],) * 2, oids.ARRAY_OF[oids.INT4]),
        ("#>>", (oids.JSONB, UNKNOWN), (oids.JSONB, oids.ARRAY_OF[oids.TEXT]), oids.TEXT),
        ("=", (UNKNOWN, UNKNOWN), (oids.TEXT, oids.TEXT), oids.BOOL),
        ("/", (oids.INT2, oids.INT8), (oids.INT2, oids.INT8), oids.INT8),
    ],
)  # fmt: skip
def test_an_operator_is_chosen(symbol: str, types: tuple[int, ...], arguments: tuple[int, ...], result: int) -> None:
    chosen = signatures.operator(symbol, types)
    assert chosen is not None
    assert (chosen.arguments, chosen.result) == (arguments, result)


@pytest.mark.parametrize(
    ("name", "types", "arguments", "result"),
    [
        ("round", (oids.NUMERIC, UNKNOWN), (oids.NUMERIC, oids.INT4), oids.NUMERIC),
        ("round", (UNKNOWN,), (oids.FLOAT8,), oids.FLOAT8),
        ("substr", (oids.TEXT, UNKNOWN), (oids.TEXT, oids.INT4), oids.TEXT),
        ("substring", (oids.TEXT, UNKNOWN), (oids.TEXT, oids.TEXT), oids.TEXT),
        ("lag", (oids.NUMERIC, UNKNOWN, UNKNOWN), (oids.NUMERIC, oids.INT4, oids.NUMERIC), oids.NUMERIC),
        ("array_append", (oids.ARRAY_OF[oids.INT8], oids.INT4), (oids.ARRAY_OF[oids.INT8], oids.INT8),
         oids.ARRAY_OF[oids.INT8]),
        ("make_interval", (UNKNOWN, UNKNOWN), (oids.INT4, oids.INT4), oids.INTERVAL),
    ],
)  # fmt: skip
def test_a_function_is_chosen(name: str, types: tuple[int, ...], arguments: tuple[int, ...], result: int) -> None:
    chosen = signatures.function(name, types)
    assert chosen is not None
    assert (chosen.arguments, chosen.result) == (arguments, result)


def test_none_and_several_are_told_apart() -> None:
    assert signatures.operator("+", (oids.TEXT, oids.INT4)) is None
    assert signatures.function("nonsense", (UNKNOWN,)) is None
    with pytest.raises(AmbiguousError):
        signatures.operator("+", (UNKNOWN, UNKNOWN))
    with pytest.raises(AmbiguousError):
        signatures.function("sum", (UNKNOWN,))


def test_branches_have_a_common_type() -> None:
    assert signatures.common_type((oids.INT4, UNKNOWN, oids.NUMERIC)) == oids.NUMERIC
    assert signatures.common_type((UNKNOWN, UNKNOWN)) == oids.TEXT
    assert signatures.common_type((oids.INT4, oids.DATE)) is None
    assert signatures.common_type((oids.INT4, None)) is None


@pytest.mark.postgres
def test_the_recorded_types_are_postgresqls(postgres_server: PostgresServer) -> None:
    assert TARGET.read_text(encoding="utf-8") == written(postgres_server.dsn), "run tests/dialect/record_signatures.py"
