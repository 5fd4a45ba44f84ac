"""``->>`` of numbers and texts, against what PostgreSQL shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mvserver.dialect import binding
from mvserver.errors import SqlError
from tests.serving.world import TYPES_ID, World

_DOCUMENT = (
    r'{"n":1e3,"m":1.50,"i":12,"s":"1.50","t":"x, 1e3","b":1.5e-3,"c":-12E+20,"q\"1.0":-0.0,"":"",'
    r'"o":{"z":1E2,"y":[1.50,"2.0",7]},"d":12345678901234567890.123456789}'
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(Path(tmp_path_factory.mktemp("world")))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("steps", "json", "jsonb"),
    [
        ("->> 'n'", "1e3", "1000"),
        ("->> 'm'", "1.50", "1.50"),
        ("->> 'i'", "12", "12"),
        ("->> 's'", "1.50", "1.50"),
        ("->> 't'", "x, 1e3", "x, 1e3"),
        ("->> 'b'", "1.5e-3", "0.0015"),
        ("->> 'c'", "-12E+20", "-1200000000000000000000"),
        ("->> 'd'", "12345678901234567890.123456789", "12345678901234567890.123456789"),
        ("-> 'o' ->> 'z'", "1E2", "100"),
        ("-> 'o' -> 'y' ->> 0", "1.50", "1.50"),
        ("-> 'o' -> 'y' ->> 1", "2.0", "2.0"),
        ("-> 'o' -> 'y' ->> -1", "7", "7"),
        ("->> 'nothing'", None, None),
        ("-> 'n' ->> 'x'", None, None),
    ],
)
def test_a_number_is_shown_as_it_is_written(world: World, steps: str, json: str | None, jsonb: str | None) -> None:
    for kind, wanted in (("json", json), ("jsonb", jsonb)):
        assert world.rows(f"SELECT d {steps} FROM (SELECT '{_DOCUMENT}'::{kind} AS d) AS t") == [(wanted,)], kind


@pytest.mark.parametrize(
    ("number", "jsonb"),
    [
        ("1e-20", "0.00000000000000000001"),
        ("1.2345e-16", "0.00000000000000012345"),
        ("1.50e1", "15.0"),
        ("1.50e2", "150"),
        ("0.05e1", "0.5"),
        ("-0.05E-1", "-0.005"),
        ("123.456e-2", "1.23456"),
        ("1e40", "1" + "0" * 40),
        ("12345678901234567890.5e1", "123456789012345678905"),
        ("-7e+2", "-700"),
    ],
)
def test_a_number_of_jsonb_has_no_exponent_and_all_its_digits(world: World, number: str, jsonb: str) -> None:
    document = f'{{"n":{number}, "a":[{number}]}}'
    assert world.rows(f"SELECT d ->> 'n', d -> 'a' ->> 0 FROM (SELECT '{document}'::jsonb AS d) AS t") == [
        (jsonb, jsonb)
    ]
    assert world.value(f"SELECT '{document}'::json ->> 'n'") == number


@pytest.mark.large
@pytest.mark.parametrize("kind", ["json", "jsonb"])
def test_nested_operators_grow_with_their_text(world: World, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[int] = []
    bind = binding.bind
    monkeypatch.setattr(binding, "bind", lambda cursor, sql: bound.append(len(sql)) or bind(cursor, sql))
    sizes = []
    for depth in (5, 10, 20, 35):
        nested = "x"
        for _ in range(depth):
            nested = f"({nested}::{kind} ->> 'a')"
        text = f'SELECT {nested} FROM (SELECT \'{{"a":{{"b":1.50}}}}\' AS x) AS t'
        bound.clear()
        assert world.rows(text) == [(None,)]
        sizes.append(max(bound))
    assert sizes[3] < 10 * sizes[0]
    chain = "SELECT '{}'::json" + " ->> 'k'" * 40
    assert world.rows(chain) == [(None,)]


def test_a_text_that_there_cannot_be_is_an_error(world: World) -> None:
    with pytest.raises(SqlError) as caught:
        world.rows(r"""SELECT '{"n":"a\u0000b"}'::json ->> 'n'""")
    assert (caught.value.sqlstate, caught.value.message) == ("22P05", "unsupported Unicode escape sequence")
    with pytest.raises(SqlError) as caught:
        world.rows(r"""SELECT '{"n":"\ud800"}'::json ->> 'n'""")
    assert caught.value.sqlstate == "22P02"
    assert world.rows(r"""SELECT '{"n":"\\u0000"}'::json ->> 'n'""") == [(r"\u0000",)]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("MAP {'a\"b': 1.50::DECIMAL(10, 2), 'c': NULL}", r'{"a\"b":1.50,"c":null}'),
        ("MAP {0.50::DECIMAL(2, 2): [2.0::DOUBLE, 0.25]}", '{"0.50":[2,0.25]}'),
        ("MAP {1: {'x, \"y': MAP {'z': 0.50::DECIMAL(3, 3)}, 'd': DATE '0001-01-01'}}",
         r'{"1":{"x, \"y":{"z":0.500},"d":"0001-01-01"}}'),
        ("[MAP {'a': 1.50::DECIMAL(10, 2)}]", '[{"a":1.50}]'),
        ("NULL::MAP(VARCHAR, DECIMAL(10, 2))", None),
        ("row(1.50::DECIMAL(10, 2), row('x', 2.0::FLOAT))", '{"f1":1.50,"f2":{"f1":"x","f2":2}}'),
    ],
)  # fmt: skip
def test_a_document_of_a_map_or_a_row_has_postgresqls_numbers(tmp_path: Path, value: str, wanted: str | None) -> None:
    world = World(tmp_path)
    try:
        world.writer.execute(f'CREATE OR REPLACE VIEW _views."{TYPES_ID}" AS SELECT {value} AS m')
        assert world.rows("SELECT to_json(m) FROM all_types") == [(wanted,)]
    finally:
        world.close()
