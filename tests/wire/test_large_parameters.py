"""Parameters of many megabytes are checked without holding up the other threads."""

from __future__ import annotations

import random
import struct
import time
from typing import Any

import pytest

from mvserver import limits
from mvserver.copy_data.readers import CopyFormat, TextReader
from mvserver.errors import SqlError
from mvserver.sql import parse
from mvserver.types.registry import decode_parameter

_NUMERIC, _JSON = 1700, 114
_ARRAYS = {1005: 2**15, 1007: 2**31, 1016: 2**63}  # of smallint, integer, bigint


def _refusal(oid: int, text: str) -> tuple[str, str]:
    with pytest.raises(SqlError) as raised:
        decode_parameter(1, text.encode(), 0, oid, "UTC")
    return raised.value.sqlstate, raised.value.message[:40]


def test_a_number_has_as_many_digits_as_postgresqls() -> None:
    assert len(str(decode_parameter(1, b"1" * 131_072, 0, _NUMERIC, "UTC"))) == 131_072
    assert _refusal(_NUMERIC, "1" * 131_073)[0] == "22003"
    assert _refusal(_NUMERIC, "1" * 10_000_000)[0] == "22003"


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('{"a": [1, 2.5, {"b": null}], "a": -0}', True), ("[1, 2", False), ("NaN", False), ("[Infinity]", False),
        ("01", False), ('{"a": 1,}', False), ('"x"', True), ("", False), ("1e400", True),
    ],
)  # fmt: skip
def test_a_document_is_checked_and_kept(text: str, right: bool) -> None:
    if right:
        assert decode_parameter(1, text.encode(), 0, _JSON, "UTC") == text
    else:
        assert _refusal(_JSON, text)[0] == "22P02"


def test_too_many_columns_are_not_all_cut() -> None:
    form = CopyFormat(force_not_null=(False, False), force_null=(False, False))
    reader = TextReader(form, ("a", "b"))
    assert list(reader.feed(b"1\t2\n")) == [[b"1", b"2"]]
    with pytest.raises(SqlError, match="extra data after last expected column"):
        list(reader.feed(b"\t" * 5_000_000 + b"\n"))


@pytest.mark.slow
@pytest.mark.large
def test_too_many_words() -> None:
    with pytest.raises(SqlError) as raised:
        parse("SELECT " + "a " * (limits.TEXT_TOKENS_MAX + 10))
    assert raised.value.sqlstate == "54000"


# --- arrays: several elements are read at once where they are plain numbers -----------------------------------------
def _written(number: Any, chance: random.Random) -> str:
    if number is None:
        return chance.choice(("NULL", "null"))
    return chance.choices((f"{number}", f"{number:+}", f" {number}", f"{number} ", f'"{number}"', f"{number:07}"),
                          (94, 2, 1, 1, 1, 1))[0]  # fmt: skip


@pytest.mark.large
@pytest.mark.parametrize("oid", _ARRAYS)
def test_arrays_of_any_length_and_spelling(oid: int) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chance, most = random.Random(seed), _ARRAYS[oid]
    for length in (0, 1, 2, 100, 5_000, 40_000):
        numbers = [chance.choice((0, chance.randrange(100), chance.randrange(-most, most))) for _ in range(length)]
        values = [None if chance.random() < 0.0005 else number for number in numbers]
        plain = "{" + ",".join("NULL" if value is None else str(value) for value in values) + "}"
        mixed = "{" + ",".join(_written(value, chance) for value in values) + "}"
        for text in (plain, mixed):
            assert decode_parameter(1, text.encode(), 0, oid, "UTC") == values
        rows = f"{{{plain},{plain}}}" if length else "{}"
        assert decode_parameter(1, rows.encode(), 0, oid, "UTC") == ([values, values] if length else [])


@pytest.mark.parametrize(
    ("wrong", "sqlstate"),
    [("32768", "22003"), ("1.5", "22P02"), ("", "22P02"), ("x", "22P02"), ("1}", "22P02"), ("9" * 30, "22003")],
)
def test_a_wrong_element_is_found_wherever_it_is(wrong: str, sqlstate: str) -> None:
    for before, after in ((0, 20_000), (20_000, 20_000), (20_000, 0)):
        text = "{" + ",".join(["7"] * before + [wrong] + ["8"] * after) + "}"
        assert _refusal(1005, text)[0] == sqlstate
    assert _refusal(1005, "{" + "1," * 20_000)[0] == "22P02"


def test_elements_that_are_read_one_by_one_cost_no_square() -> None:
    """The pieces before the first odd element of each are not looked at again and again."""
    text = "{" + ",".join((["1"] * 30 + ["+1"]) * 3_000) + "}"
    began = time.process_time()
    assert len(decode_parameter(1, text.encode(), 0, 1016, "UTC")) == 93_000
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize("form", [0, 1])
def test_the_reading_is_stopped(form: int) -> None:
    class Stopped(Exception):
        pass

    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise Stopped

    count = 1_000_000
    text = ("{" + "1," * count + "1}").encode()
    element = b"\0\0\0\x04\0\0\0\x01"
    binary = struct.pack("!iiIii", 1, 0, 23, count, 1) + element * count
    began = time.process_time()
    with pytest.raises(Stopped):
        decode_parameter(1, binary if form else text, form, 1007, "UTC", check)
    assert time.process_time() - began < 0.3
