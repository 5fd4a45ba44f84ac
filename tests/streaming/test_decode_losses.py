"""What decoding must not lose or take: digits, names in other case, repeated keys, characters that are none."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from tests.streaming.decoding import decoded

pytestmark = pytest.mark.spark
D = Decimal
SEED = int(os.environ.get("MVSERVER_TEST_SEED", "0")) or random.randrange(1 << 30)
_RANDOM_RECORDS = 1000
ONE = "1.5" + "0" * 60
CUT = "1.5" + "0" * 40 + "1"
# (type, JSON, value), or (type, JSON) of what is rejected.
_VALUES: list[tuple[Any, ...]] = [
    # One of each that the quick decoder takes goes first.
    *[(kind, text, value) for kind, text, value in [
        ("DECIMAL(38, 10)", "1.5", D("1.5")), ("DECIMAL(10, 2)", "1.5", D("1.5")), ("DECIMAL(38, 0)", "1", D(1)),
        ("ARRAY<DECIMAL(38, 10)>", "[1.5]", [D("1.5")]), ("MAP<VARCHAR, DECIMAL(38, 10)>", '{"a":1}', [("a", D(1))]),
        ("STRUCT<price DECIMAL(38, 10)>", '{"price":1}', {"price": D(1)}), ("SMALLINT", "1", 1), ("INTEGER", "1", 1),
        ("BIGINT", "1", 1), ("ARRAY<INTEGER>", "[1]", [1]), ("MAP<VARCHAR, INTEGER>", "{}", []), ("FLOAT", "1", 1.0),
        ("STRUCT<a INTEGER>", '{"a":1}', {"a": 1}), ("DOUBLE", "1", 1.0), ("VARCHAR", '"x"', "x"),
        ("TIMESTAMP", '"2024-01-31 10:11:12"', dt.datetime(2024, 1, 31, 10, 11, 12)),
        ("TIME", '"10:11"', dt.time(10, 11)),
        ("TINYINT", "1", 1), ("ARRAY<BIGINT>", "[]", []), ("ARRAY<DECIMAL(10, 2)>", "[1.5]", [D("1.5")]),
        ("ARRAY<DOUBLE>", "[0]", [0.0]), ("STRUCT<pRice DECIMAL(38, 10)>", '{"pRice":1}', {"price": D(1)}),
        ("STRUCT<a FLOAT>", '{"a":0}', {"a": 0.0}), ("DATE", '"2024-02-29"', dt.date(2024, 2, 29)),
        ("TIMESTAMP_LTZ", '"2024-01-31T10:11:12Z"', dt.datetime(2024, 1, 31, 10, 11, 12, tzinfo=dt.UTC)),
        ("ARRAY<TIMESTAMP>", "[]", []), ("VARCHAR(2)", '"ab"', "ab"), ("VARCHAR(20)", '"ab"', "ab"),
        ("ARRAY<VARCHAR(2)>", "[]", []), ("ARRAY<VARCHAR>", "[]", []),
        ("STRUCT<a VARCHAR(2)>", '{"a":"x"}', {"a": "x"}),
        ("STRUCT<a VARCHAR>", '{"a":"x"}', {"a": "x"}), ("MAP<VARCHAR, VARCHAR>", "{}", []),
        ("STRUCT<a ARRAY<VARCHAR>>", '{"a":[]}', {"a": []}),
    ]],
    *[("DECIMAL(38, 10)", text, D(str(value))) for text, value in [
        ("1.0000000000", 1), ("1.00000000000000", 1), ('"1.00000000000"', 1), ("-0.0000000001", "-1e-10"),
        ("1e-10", "1e-10"),
        ("1E+2", 100), ("0e-99999999", 0), ("0e99999999", 0), ("0.0e400", 0), ("-0.0", 0), ("1000e-12", "1e-9"),
        ("0.00000000012e1", "1.2e-9"), (ONE, "1.5"), ("1.5e0", "1.5"), ("1e00", 1), ("15e-0001", "1.5"),
        ("9999999999999999999999999999.9999999999", "9999999999999999999999999999.9999999999"),
    ]],
    *[("DECIMAL(38, 10)", text) for text in [
        "1.00000000001", '"1.00000000001"', "1e-11", '"1e-11"', "12e-11", "1e28", "1e999999999", "1e-999999999",
        '"1e999999999"', '"1e-999999999"',
        "1.234567890123e1", CUT, '"1\u2019000"', '"\uff11"', '"1_0"', '"- 1"', '"1e"', '"."',
        "9999999999999999999999999999.99999999991", "99999999999999999999999999999",
    ]],
    ("DECIMAL(38, 10)", "1.23456789012e1", D("12.3456789012")), ("DECIMAL(10, 2)", ONE, D("1.50")),
    ("DECIMAL(10, 2)", CUT), ("DECIMAL(10, 2)", f'"{CUT}"'),
    ("DECIMAL(10, 2)", "1.4" + "9" * 41), ("DECIMAL(10, 2)", "99999999.99", D("99999999.99")),
    ("DECIMAL(10, 2)", "1e8"),
    ("DECIMAL(38, 0)", "1.0", D(1)), ("DECIMAL(38, 0)", "1.5"), ("DECIMAL(38, 0)", "1e-1"),
    ("DECIMAL(38, 0)", "9" * 38, D("9" * 38)), ("DECIMAL(38, 0)", "9" * 39),
    ("DECIMAL(38, 38)", "0." + "1" * 38, D("0." + "1" * 38)),
    ("DECIMAL(38, 38)", "1"), ("DECIMAL(38, 38)", "0." + "1" * 39),
    ("ARRAY<DECIMAL(38, 10)>", "[1.00000000000, 1e-10, null]", [D(1), D("1e-10"), None]),
    ("ARRAY<DECIMAL(38, 10)>", "[1.00000000001]"), ("ARRAY<DECIMAL(38, 10)>", "[1, 1e-11]"),
    ("ARRAY<DECIMAL(10, 2)>", f"[{CUT}]"), ("ARRAY<DECIMAL(10, 2)>", "[1e999999999]"),
    ("MAP<VARCHAR, DECIMAL(38, 10)>", '{"a": 1.00000000001}'),
    ("MAP<VARCHAR, DECIMAL(38, 10)>", '{"a": 1e1}', [("a", D(10))]),
    ("MAP<DECIMAL(38, 10), INTEGER>", '{"1.00000000001": 1}'),
    ("MAP<DECIMAL(38, 10), INTEGER>", '{"1.50": 1}', [(D("1.5"), 1)]),
    ("STRUCT<pRice DECIMAL(38, 10)>", '{"pRice": 1.00000000001}'),
    ("STRUCT<pRice DECIMAL(38, 10)>", '{"price": 1e-11}'),
    ("STRUCT<price DECIMAL(38, 10)>", r'{"pr\u0069ce": 1e-11}'),
    ("STRUCT<price DECIMAL(38, 10)>", '{"price": "1.5"}', {"price": D("1.5")}),
    ("TINYINT", "128e0"), ("SMALLINT", "32767.0000", 32767), ("SMALLINT", "3.2768e4"), ("INTEGER", "1e-1"),
    ("INTEGER", "10e-1", 1),
    ("INTEGER", '"1e999999999"'), ("INTEGER", "2147483647.00000000000000000000000000000000001"),
    ("INTEGER", "2.147483647e9", 2**31 - 1),
    ("BIGINT", "9223372036854775807.0", 2**63 - 1), ("BIGINT", "9223372036854775807.5"),
    ("BIGINT", "9.223372036854775808e18"),
    ("BIGINT", "9.223372036854775807e18", 2**63 - 1), ("BIGINT", "1." + "0" * 50 + "1"),
    ("ARRAY<INTEGER>", "[1.0, 2e1, 3]", [1, 20, 3]), ("ARRAY<INTEGER>", "[1.5]"),
    ("ARRAY<BIGINT>", "[9223372036854775808.0]"),
    ("ARRAY<INTEGER>", '["7"]', [7]), ("MAP<VARCHAR, INTEGER>", '{"a":1.0}', [("a", 1)]),
    ("STRUCT<a INTEGER>", '{"a":1.0}', {"a": 1}),
    ("DOUBLE", "1e-400"), ("DOUBLE", '"1e-400"'), ("DOUBLE", "0e-400", 0.0), ("DOUBLE", "5e-324", 5e-324),
    ("DOUBLE", "-0.0", -0.0),
    ("DOUBLE", "0." + "0" * 330 + "1"), ("DOUBLE", "1.8e308"), ("FLOAT", "1e-46"), ("FLOAT", "3.5e38"),
    ("FLOAT", "0", 0.0),
    ("ARRAY<DOUBLE>", "[1e-400]"), ("ARRAY<DOUBLE>", "[1e400]"), ("STRUCT<a FLOAT>", '{"a":1e39}'),
    ("TIMESTAMP", '"2024-01-31 10:11:12.123456000"', dt.datetime(2024, 1, 31, 10, 11, 12, 123456)),
    ("TIMESTAMP", '"2024-01-31 10:11:12.1234567"'), ("TIMESTAMP_LTZ", '"2024-01-31T10:11:12.123456789Z"'),
    ("TIMESTAMP", '"0000-01-01 00:00:00"'), ("TIME", '"10:11:12.1234560"', dt.time(10, 11, 12, 123456)),
    ("TIME", '"10:11:12.1234561"'),
    ("DATE", '"0000-12-31"'), ("DATE", '"12024-01-01"'), ("ARRAY<TIMESTAMP>", '["2024-01-31 10:11:12.1234567"]'),
    ("VARCHAR(2)", '"abc"'), ("ARRAY<VARCHAR(2)>", '["abc"]'), ("STRUCT<a VARCHAR(2)>", '{"a":"abc"}'),
    ("MAP<VARCHAR(2), INTEGER>", '{"abc": 1}'), ("MAP<VARCHAR(2), INTEGER>", '{"ab": 1}', [("ab", 1)]),
    # A key that is there twice: the last one counts.
    ("MAP<VARCHAR, INTEGER>", '{"a":1,"b":2,"a":3}', [("a", 3), ("b", 2)]),
    ("MAP<VARCHAR, INTEGER>", '{"a":"x","a":3}', [("a", 3)]),
    ("MAP<VARCHAR, INTEGER>", '{"a":3,"a":"x"}'), ("MAP<INTEGER, INTEGER>", '{"1":1,"01":2}', [(1, 2)]),
    ("ARRAY<MAP<VARCHAR, VARCHAR>>", '[{"a":"x","a":"y"}]', [[("a", "y")]]),
    ("MAP<VARCHAR, DATE>", '{"a":"x","a":"2024-01-31"}', [("a", dt.date(2024, 1, 31))]),
    ("STRUCT<a INTEGER>", '{"a":1,"a":2}', {"a": 2}), ("STRUCT<a INTEGER>", '{"a":1,"a":null}', {"a": None}),
    ("STRUCT<a INTEGER>", '{"a":1,"a":"x"}'),
    ("STRUCT<a MAP<VARCHAR, INTEGER>>", '{"a":{"k":1,"k":2}}', {"a": [("k", 2)]}),
    ("INTEGER", '1,"c":2', 2), ("INTEGER", '"x","c":2', 2), ("INTEGER", '2,"c":"x"'), ("INTEGER", '1,"c":null', None),
    # Characters that are none, and those that are.
    ("VARCHAR", r'"\ud83d\ude00\u00e9"', "\U0001f600é"), ("VARCHAR", r'"\\ud800\\u0000"', r"\ud800\u0000"),
    ("VARCHAR", r'"\\\\u0000"', r"\\u0000"),
    *[(kind, text.replace("?", bad))
      for bad in (r"\u0000", r"a\ud800", r"\uDC00b", r"\ud83d\ud83d", r"\ude00\ud83d", r"\\\u0000")
      for kind, text in [
        ("VARCHAR", '"?"'), ("VARCHAR(20)", '"?"'), ("VARCHAR", '{"k":"?"}'), ("VARCHAR", '{"?":1}'),
        ("ARRAY<VARCHAR>", '["?"]'), ("MAP<VARCHAR, INTEGER>", '{"?":1}'),
        ("MAP<VARCHAR, VARCHAR>", '{"k":"?"}'), ("STRUCT<a VARCHAR>", '{"a":"?"}'),
        ("STRUCT<a ARRAY<VARCHAR>>", '{"a":["?"]}'),
        ("INTEGER", '"?"'),
    ]],
]  # fmt: skip


def _same(value: Any, wanted: Any) -> bool:
    return value == wanted and (not isinstance(wanted, float) or repr(value) == repr(wanted))


def test_values_are_taken_whole_or_not_at_all(spark: Any) -> None:
    kinds = list(dict.fromkeys(case[0] for case in _VALUES))
    # Decimals without a name before them are looked for in another way, by which all would be found.
    named = [kind for kind in kinds if "<" not in kind or kind.startswith("STRUCT")]
    for chosen in (kinds, named):
        names = {kind: f"c{i}" for i, kind in enumerate(chosen)}
        clean = {
            names[kind]: text
            for kind, text, *wanted in reversed(_VALUES)
            if kind in names and wanted and ',"c"' not in text
        }
        cases = [
            (case, f"{{{fields}}}".replace('"c":', f'"{name}":').encode())
            for case in _VALUES
            if (name := names.get(case[0])) is not None
            for spelling in ((name,) if '"c":' in case[1] else (name, name.upper()))
            for fields in [
                ",".join(
                    f'"{spelling if each == name else each}":{case[1] if each == name else text}'
                    for each, text in clean.items()
                )
            ]
        ]
        rows = decoded(spark, [record for _, record in cases], {name: kind for kind, name in names.items()}, "json")
        wrong = []
        for ((kind, text, *wanted), record), (reason, *row) in zip(cases, rows, strict=True):
            value = row[chosen.index(kind)]
            if wanted:
                fine = reason is None and _same(value, wanted[0])
            else:
                fine = reason is not None and reason.startswith(f'column "{names[kind]}" ') and "\0" not in reason
            if not fine:
                wrong.append(f"{kind} {text} {names[kind] in record.decode()}: {value!r}, {reason}")
        assert not wrong, "\n".join(wrong)


_STRUCT = 'STRUCT<itemId INTEGER, unitPrice DECIMAL(10, 2), "Note" VARCHAR, plain INTEGER>'


def _item(item: Any = None, price: Any = None, note: Any = None, plain: Any = None) -> dict[str, Any]:
    return {"itemid": item, "unitprice": price, "Note": note, "plain": plain}


# JSON of the struct, its value or None where it is rejected, whether the quick decoder takes it.
_SPELLED: list[tuple[str, Any, bool]] = [
    ('{"itemId":1,"unitPrice":1.5,"Note":"x","plain":2}', _item(1, D("1.5"), "x", 2), True),
    ('{"itemId":1,"unitPrice":null}', _item(1), True),
    ("{}", _item(), True),
    ('{"itemid":1,"unitprice":1.5,"note":"x","PLAIN":2}', _item(1, D("1.5"), "x", 2), False),
    ('{"ITEMID":1,"itemID2":3}', _item(1), False),
    ('{"itemId":1,"itemid":2}', _item(1), False),  # the declared spelling goes first
    ('{"itemId":null,"itemid":2}', _item(2), False),
    ('{"itemId":null,"ITEMID":2}', _item(), False),
    ('{"ItemId":1,"ITEMID":2}', _item(), False),  # which one is not to be guessed
    ('{"ItemId":1,"ItemId":2}', _item(2), False),
    (r'{"item\u0049d":1,"plain":null}', _item(1), False),
    (r'{"ITEM\u0049D":1}', _item(1), False),
    ('{"itemId":"x"}', None, False),
    ('{"ITEMID":"x"}', None, False),
    ('{"itemId":1.0,"UNITPRICE":"2.50"}', _item(1, D("2.5")), False),
    ('{"itemId":1,"UNITPRICE":2.505}', None, False),
]  # fmt: skip


def test_fields_of_structs_at_every_depth_are_found_by_their_declared_spelling(spark: Any) -> None:
    places: dict[str, tuple[str, str, Any]] = {
        "st": (_STRUCT, "%s", lambda value: value),
        "items": (f"ARRAY<{_STRUCT}>", "[%s, null]", lambda value: [value, None]),
        "byname": (f"MAP<VARCHAR, {_STRUCT}>", '{"itemID":%s}', lambda value: [("itemID", value)]),
        "deep": (
            f"STRUCT<inNer STRUCT<liSt ARRAY<{_STRUCT}>>>",
            '{"inNer":{"liSt":[%s]}}',
            lambda value: {"inner": {"list": [value]}},
        ),
    }
    for chosen in (["st"], ["items", "byname", "deep"]):
        kinds = {name: places[name][0] for name in chosen}
        records = [
            ("{" + ",".join(f'"{name}":{places[name][1] % text}' for name in chosen) + "}").encode()
            for text, _, _ in _SPELLED
        ]
        rows = decoded(spark, records, kinds, "json", quick=True)
        for record, (_, wanted, quick), (good, reason, *values) in zip(records, _SPELLED, rows, strict=True):
            if wanted is None:
                assert str(reason).startswith(f'column "{chosen[0]}" is not of type '), record
                assert values == [None] * len(chosen), record
            else:
                assert (reason, values) == (None, [places[name][2](wanted) for name in chosen]), record
            # Inside arrays and maps a NULL is not looked for: the names decide alone.
            assert good is quick or chosen != ["st"], record


def test_nulls_beside_values_of_every_kind(spark: Any) -> None:
    """The trial takes a NULL that the record means, and none that the parser made of what it could not read."""
    print(f"seed {SEED} (MVSERVER_TEST_SEED)")
    chance = random.Random(SEED)
    kinds = list(dict.fromkeys(case[0] for case in _VALUES))
    names = {kind: f"c{i}" for i, kind in enumerate(kinds)}
    values = [(names[kind], text) for kind, text, *_ in _VALUES if ',"c"' not in text]
    records = [_record([value]) for value in values]  # all other columns are missing
    for _ in range(_RANDOM_RECORDS):
        fields = [(_other_case(name, chance), text) for name, text in chance.sample(values, chance.randint(0, 4))]
        fields += [(_other_case(name, chance), "null") for name in chance.sample(sorted(names.values()), 3)]
        chance.shuffle(fields)
        records.append(_record(fields))
    decoded(spark, records, {name: kind for kind, name in names.items()}, "json")  # compares both decoders
    nulls = [_record([(name, "null")]) for name in names.values()]
    for quick, reason, *row in decoded(spark, nulls, {n: kind for kind, n in names.items()}, "json", quick=True):
        assert (quick, reason) == (True, None)
        assert row == [None] * len(names)


def _record(fields: Sequence[tuple[str, str]]) -> bytes:
    return ("{" + ",".join(f'"{name}":{text}' for name, text in fields) + "}").encode()


def _other_case(name: str, chance: random.Random) -> str:
    return chance.choice((name, name, name, name, name.upper(), rf"\u00{ord(name[0]):x}{name[1:]}"))


def test_csv_fields_hold_structs_and_characters_as_json_does(spark: Any) -> None:
    kinds = {"st": _STRUCT, "s": "VARCHAR", "n": "DECIMAL(38, 10)", "m": "MAP<VARCHAR, INTEGER>"}
    cases: list[tuple[bytes, Any]] = [
        (b'"{""itemId"":1,""UNITPRICE"":1.50}",x,1.00000000000,"{""a"":1,""a"":2}"',
         (None, _item(1, D("1.5")), "x", D(1), [("a", 2)])),
        (b"\xef\xbb\xbf,x,1,", (None, None, "x", D(1), None)),
        (b"\xef\xbb\xbf\xef\xbb\xbf,x,1,", 'column "st" is not of type '),
        (b",a\0b,1,", 'column "s" has \\u0000 or half of a surrogate pair, which no text can hold: a\ufffdb'),
        (b"\0,x,1,", 'column "st" '),
        (b",\0,1,", 'column "s" has '),
        (b",x,1.00000000001,", 'column "n" is not of type DECIMAL(38, 10): 1.00000000001'),
        (b",x,1e-999999999,", 'column "n" is not of type DECIMAL(38, 10): 1e-999999999'),
        (b",x,1e-10,", (None, None, "x", D("1e-10"), None)),
        (b',x,1,"{""a"":1}, ""w"": 1"', 'column "m" is not of type '),
        (b',x,1,"{1:2}"', 'column "m" is not of type '),
        (b',x,1,"{""a"":01}"', 'column "m" is not of type '),
    ]  # fmt: skip
    rows = decoded(spark, [record for record, _ in cases], kinds, "csv")
    for (record, wanted), row in zip(cases, rows, strict=True):
        assert row[0].startswith(wanted) if isinstance(wanted, str) else row == wanted, (record, row)


def test_a_byte_order_mark_before_a_record_is_no_part_of_it(spark: Any) -> None:
    mark = b"\xef\xbb\xbf"
    rows = decoded(
        spark, [mark + b'{"a":1}', mark + mark + b'{"a":1}', b"{" + mark + b'"a":1}', mark], {"a": "INTEGER"}, "json"
    )
    bad = ("the value is not one JSON object", None)
    assert rows == [(None, 1), bad, bad, bad]


def test_what_is_not_declared_may_be_anything(spark: Any) -> None:
    others = [r'"\u0000"', r'{"\ud800":"\u0000"}', "1e999999999", "[1.00000000001]", '{"a":{"A":1,"a":2}}', "9" * 500]
    records = [f'{{"id":1,"x":{other},"st":{{"a":2,"y":{other}}}}}'.encode() for other in others]
    assert decoded(spark, records, {"id": "INTEGER", "st": "STRUCT<a INTEGER>"}, "json") == [(None, 1, {"a": 2})] * 6


def test_each_way_to_write_a_name_otherwise_is_noticed(spark: Any) -> None:
    """By the trial, which leaves it to the whole decoder: capitals, also those of plain letters that are not of ASCII,
    and escapes. Names that are as they are declared it takes, whatever is NULL and in other texts."""
    meant = ["Kiss", "kIss", "KISS", "\\u004biss", "ki\\u0053s"]
    others = ["\u212aiss", "ki\u017fs", "k\u0130ss", "k\u0131ss"]
    records = [
        record.encode()
        for name in (*meant, *others)
        for record in (f'{{"a":1,"{name}":"x","s":{{"kiss":2}}}}', f'{{"kiss":"x","s":{{"a":1,"{name}":2}}}}')
    ]
    same = [b'{"kiss":"x","s":{"kiss":2}}', b'{"kiss":"Kiss","s":{"kiss":null},"A":"B"}', b'{"kiss":null,"s":null}']
    kinds = {"kiss": "VARCHAR", "s": "STRUCT<kiss BIGINT>"}
    found = decoded(spark, [*records, *same], kinds, "json", quick=True)
    assert not any(good for good, *_ in found[: len(records)])
    assert found[: 2 * len(meant)] == [(False, None, "x", {"kiss": 2})] * 2 * len(meant)
    assert found[len(records) :] == [
        (True, None, "x", {"kiss": 2}),
        (True, None, "Kiss", {"kiss": None}),
        (True, None, None, None),
    ]
