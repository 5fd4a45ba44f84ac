"""Arrays of several dimensions, character types and documents answer as a real PostgreSQL's: names, types, values."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.clients.value_documents import DOCUMENTS

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[Any]


def answer(connection: Connection, text: str, *, binary: bool) -> Any:
    """Names, types with their modifiers, and cells; or the SQLSTATE."""
    try:
        result = connection.execute(text, binary=binary).pgresult
    except psycopg.Error as error:
        return error.sqlstate
    assert result is not None
    columns = range(result.nfields)
    names = [bytes(result.fname(column) or b"").decode() for column in columns]
    types = [(result.ftype(column), result.fmod(column)) for column in columns]
    rows = [[result.get_value(row, column) for column in columns] for row in range(result.ntuples)]
    return names, types, rows


SQUARE = "ARRAY[[1,2],[3,4]]"
ARRAYS = (
    "'{{1,2},{3,4}}'::int[]",
    "'{{1,2},{3,4}}'::int[][]",
    "'{1,2}'::int[][]",
    "' { 1 , 2 } '::int[]",
    "'[1:2]={1,2}'::int[]",
    SQUARE,
    f"({SQUARE})[1][2]",
    f"array_ndims({SQUARE}), array_dims({SQUARE}), cardinality({SQUARE})",
    f"array_length({SQUARE}, 1), array_length({SQUARE}, 2), array_length({SQUARE}, 3)",
    f"array_upper({SQUARE}, 2), array_lower({SQUARE}, 2), array_lower({SQUARE}, 3)",
    "array_ndims('{}'::int[]), array_dims('{}'::int[]), cardinality('{}'::int[]), array_length('{}'::int[], 1)",
    "array_dims('{1,2,3}'::int[]), array_length('{1,2,3}'::int[], 2), "
    "array_upper(ARRAY[1,2], 1), array_ndims(ARRAY[1])",
    '\'{{a,"b,c"},{NULL,"x}y"}}\'::text[]',
    "'{{{1,2},{3,4}},{{5,6},{7,8}}}'::int[]",
    "array_dims('{{{1,2},{3,4}},{{5,6},{7,8}}}'::int[]), ('{{{1,2},{3,4}},{{5,6},{7,8}}}'::int[])[2][1][2]",
    "'{{1.5,2},{3,4}}'::float8[], ('{{1.5,2},{3,4}}'::float8[])::text",
    "('{{t,f}}'::bool[])::text, ('{{{a,b}}}'::text[])::text",
    "'{{2024-01-01},{2024-02-01}}'::date[]",
    f"unnest({SQUARE})",
    f"array_to_string({SQUARE}, ','), array_to_string('{{{{t,f}}}}'::bool[], '/')",
    f"({SQUARE})::text",
    f"{SQUARE} = '{{{{1,2}},{{3,4}}}}'",
    f"{SQUARE} || ARRAY[[5,6]]",
    "(SELECT array_agg(x) FROM (VALUES (ARRAY[1,2]), (ARRAY[3,4])) AS t (x))",
    "'{{1,2},{3}}'::int[]",
    "'{{1,2},3}'::int[]",
    "'{{1,2},{x,3}}'::int[]",
    "ARRAY[[1,2],[3]]",
    "'{{{{{{{1}}}}}}}'::int[]",
)
CHARACTERS = (
    "'ab'::char(4), 'abcdef'::char(3), 'ab'::character(4), 'a'::char, NULL::char(3), 123::char(2)",
    "'abc'::varchar(2), 'abc'::varchar, 'abc'::character varying(10), 123::varchar(5)",
    "'ab  '::bpchar, 'abc'::name, 'abc'::\"char\"",
    "'ab'::char(4) = 'ab  ', 'ab  '::char(4) = 'ab', 'ab'::char(4) = 'ab'::char(6), 'ab' = 'ab '::char(3)",
    "'ab'::char(4) < 'ab a', 'ab'::char(4) IN ('ab  ', 'c'), 'ab'::char(4) LIKE 'ab%'",
    "length('ab'::char(4)), 'ab'::char(4) || 'x', 'ab'::char(4)::text, ('ab'::char(4))::varchar(10)",
    "upper('ab'::char(4))",
    "count(*) FROM (VALUES ('a'::char(2)), ('a '::char(2))) AS t (x) GROUP BY x",
)

FRACTIONS = (  # DuckDB's own texts of these have no digit before the point
    "0.5::numeric(2, 2)::text, (-0.5)::numeric(2, 2)::text, 0::numeric(2, 2)::text, NULL::numeric(2, 2)::text",
    "0.5::numeric(38, 38)::text, (-0.00001)::numeric(18, 18)::text, 0.5::numeric(3, 2)::text",
    "0::numeric(1, 1)::text",
    "0.5::numeric(2, 2) || 'x', 'x' || (-0.5)::numeric(2, 2)",
    "concat(0.5::numeric(2, 2), 'x'), concat_ws(',', 0.5::numeric(2, 2), (-0.5)::numeric(2, 2))",
    "format('%s', 0.5::numeric(2, 2)), length(0.5::numeric(2, 2)::text)",
    "ARRAY[0.5::numeric(2, 2), NULL, (-0.5)::numeric(2, 2)]::text, ARRAY[[0.5::numeric(2, 2)]]::text",
    "array_to_string(ARRAY[0.5::numeric(2, 2), (-0.5)::numeric(2, 2)], ',')",
    "to_json(0.5::numeric(2, 2)), to_json(ARRAY[0.5::numeric(2, 2)]), to_jsonb((-0.5)::numeric(2, 2))",
    "json_build_object('a', 0.5::numeric(2, 2)), jsonb_build_array((-0.5)::numeric(2, 2))",
    "row_to_json(t) FROM (SELECT 0.5::numeric(2, 2) AS x) AS t",
    "json_agg(x), jsonb_agg(x), string_agg(x::text, ',') FROM (VALUES (0.5::numeric(2, 2))) AS t (x)",
    "to_json(1e16::float8), to_json(x), json_build_array(x, 1e20::float4) FROM (VALUES (-1.5e300::float8)) AS t (x)",
    "json_object_agg(x, x) FROM (VALUES (0.5::numeric(2, 2))) AS t (x)",
    "max(x)::text, min(x) || '' FROM (VALUES (0.5::numeric(2, 2)), ((-0.5)::numeric(2, 2))) AS t (x)",
    "0.5::numeric(2, 2), (0.5::numeric(2, 2))::float8, (0.5::numeric(2, 2))::varchar(3)",
)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
@pytest.mark.parametrize("expressions", [*ARRAYS, *CHARACTERS, *FRACTIONS, *DOCUMENTS])
def test_values_are_postgresqls(our_shop: Connection, their_shop: Connection, expressions: str, binary: bool) -> None:
    text = expressions if expressions.startswith(("SELECT", "WITH")) else f"SELECT {expressions}"
    assert answer(our_shop, text, binary=binary) == answer(their_shop, text, binary=binary)


def test_rows_of_an_array_of_several_dimensions(our_shop: Connection, their_shop: Connection) -> None:
    text = f"SELECT x FROM unnest({SQUARE}) AS t (x) ORDER BY x DESC"
    assert answer(our_shop, text, binary=True) == answer(their_shop, text, binary=True)


def test_a_parameter_of_two_dimensions(our_shop: Connection, their_shop: Connection) -> None:
    for binary in ("%s", "%b"):
        text = f"SELECT {binary}::int[][], array_dims({binary}::int[][])"
        rows = [[1, 2, 3], [4, None, 6]]
        assert our_shop.execute(text, [rows, rows]).fetchall() == their_shop.execute(text, [rows, rows]).fetchall()


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("'x'::inet", "type inet"), ("'10.0.0.0/8'::cidr", "type cidr"), ("'1'::money", "type money"),
        ("'<a/>'::xml", "type xml"), ("'[1,2)'::int4range", "type int4range"), ("'101'::bit(3)", "bit strings"),
        ("B'101'", "bit strings"), ("'(1,2)'::point", "type point"), ("'a'::tsvector", "type tsvector"),
        ("'08:00:2b:01:02:03'::macaddr", "type macaddr"), ("'[2:3]={1,2}'::int[]", "a lower bound other than 1"),
        ("'12:00+01'::timetz", "type time with time zone"), ("'{[1,2)}'::int8multirange", "type int8multirange"),
    ],
)  # fmt: skip
def test_types_that_there_are_not_are_refused_by_name(our_shop: Connection, value: str, named: str) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
        our_shop.execute(f"SELECT {value}")
    assert named in str(caught.value.diag.message_primary)
    assert caught.value.diag.message_hint is not None


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ("'1'::jsonb < '2'::jsonb", "documents can only be compared for equality"),
        ("jsonb_set(d, p, '1') FROM (VALUES ('{}'::jsonb, '{a}'::text[])) AS t (d, p)",
         "jsonb_set is supported with a constant path only"),
        ("d #- p FROM (VALUES ('{}'::jsonb, '{a}'::text[])) AS t (d, p)", "#- is supported with a constant path only"),
    ],
)  # fmt: skip
def test_what_documents_have_not_is_refused_by_name(our_shop: Connection, items: str, message: str) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
        our_shop.execute(f"SELECT {items}")
    assert caught.value.diag.message_primary == message
    assert caught.value.diag.message_hint is not None
