"""What a column holds as it stands in a record that COPY writes: readers take all of it, or it is an error."""

from __future__ import annotations

from decimal import Context, Decimal

import pytest

from mvserver.errors import SqlError
from mvserver.routing.record_values import value_form
from mvserver.sql.types import parse_type


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        ("STRUCT<itemId INT, plain INT>", '{"itemId":1,"PLAIN":2}', '{"itemid":1,"plain":2}'),
        ("STRUCT<itemId INT>", '{"itemId":1,"itemid":2}', '{"itemid":1}'),
        ("STRUCT<itemId INT>", '{"itemId":null,"itemid":2}', '{"itemid":2}'),
        ("STRUCT<itemId INT>", "{}", '{"itemid":null}'),
        ('STRUCT<a INT, "A" INT>', '{"A":1}', '{"a":null,"A":1}'),
        ('STRUCT<a INT, "A" INT>', '{"a":1,"A":2}', '{"a":1,"A":2}'),
        ('STRUCT<itemId INT, "ITEMID" INT>', '{"ITEMID":1}', '{"itemid":null,"ITEMID":1}'),
        (
            "STRUCT<a DOUBLE, b VARCHAR>",
            '{"a":' + "1" * 9 + r',"b":"\u0041"}',
            '{"a":111111111.0,"b":"A"}',
        ),
        ("ARRAY<STRUCT<itemId INT>>", '[{"ITEMID":1}]', '[{"itemid":1}]'),
        ("MAP<VARCHAR, STRUCT<itemId INT>>", '{"A":{"itemId":1}}', '{"A":{"itemid":1}}'),
        ("MAP<VARCHAR, INT>", '{"a":1,"a":2}', '{"a":2}'),
        ("STRUCT<a VARCHAR>", r'{"a":"\ud83d\ude00"}', '{"a":"\U0001f600"}'),
        ("STRUCT<a DECIMAL(38, 10)>", '{"a":0e999999999}', '{"a":0.0000000000}'),
        ("STRUCT<a DOUBLE>", '{"a":-0.0}', '{"a":-0.0}'),
        ("STRUCT<a DOUBLE, b FLOAT>", '{"a":"NaN","b":"-Infinity"}', '{"a":"NaN","b":"-Infinity"}'),
        ("STRUCT<a DECIMAL(38, 10)>", f'{{"a":{"9" * 28}.{"9" * 10}}}', f'{{"a":{"9" * 28}.{"9" * 10}}}'),
        ("STRUCT<a DECIMAL(4, 1)>", '{"a":-0.0}', '{"a":0.0}'),
        ("MAP<VARBINARY, INT>", '{"AP8=":1}', '{"AP8=":1}'),  # bytes in a nested value are base64, keys as well
        ("STRUCT<a VARBINARY>", '{"a":"AP8="}', '{"a":"AP8="}'),
    ],
)
def test_nested_values_are_written_by_the_names_of_their_fields(kind: str, given: str, wanted: str) -> None:
    assert value_form(parse_type(kind), "UTC").json(given) == wanted


@pytest.mark.parametrize(
    ("kind", "given", "sqlstate", "message"),
    [
        ("STRUCT<itemId INT>", '{"ITEMID":1,"ItemId":2}', "22P02", 'type STRUCT<itemId INTEGER> has no field "ITEMID"'),
        ("STRUCT<itemId INT>", '{"itemId":1,"ITEMID":2}', "22P02", 'type STRUCT<itemId INTEGER> has no field "ITEMID"'),
        ("STRUCT<a VARCHAR>", r'{"a":"\u0000"}', "22P05", "unsupported Unicode escape sequence"),
        ("MAP<VARCHAR, INT>", r'{"\ud800":1}', "22P05", "unsupported Unicode escape sequence"),
        ("STRUCT<a VARCHAR>", r'{"\udc00":1}', "22P05", "unsupported Unicode escape sequence"),
        ("STRUCT<a BIGINT, b VARCHAR>", '{"a":' + "1" * 5000 + r',"b":"\u0041"}', "22003",
         f'value "{"1" * 5000}" is out of range for type bigint'),
        ("MAP<VARBINARY, INT>", r'{"\\x00ff":1}', "22P02", "bytes inside a nested value are base64"),
        ("STRUCT<a BIGINT>", '{"a":1e999999999}', "22003", 'value "1E+999999999" is out of range for type bigint'),
        ("STRUCT<a DECIMAL(38, 10)>", '{"a":1e-999999999}', "22003",
         'value "1E-999999999" is out of range for type decimal(38, 10)'),
    ],
)  # fmt: skip
def test_what_readers_would_reject_is_not_written(kind: str, given: str, sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        value_form(parse_type(kind), "UTC").json(given)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


@pytest.mark.parametrize(("precision", "scale"), [(38, 0), (38, 18), (38, 37), (38, 38), (29, 0), (28, 28)])
def test_the_greatest_decimals_are_written(precision: int, scale: int) -> None:
    form = value_form(parse_type(f"DECIMAL({precision}, {scale})"), "UTC")
    nines = Decimal("9" * precision).scaleb(-scale, Context(prec=50))
    assert [form.json(nines), form.json(nines.copy_negate())] == [f"{nines:f}", f"-{nines:f}"]
    over = nines.next_plus(Context(prec=precision))
    with pytest.raises(SqlError) as caught:
        form.json(over)
    assert caught.value.sqlstate == "22003"
