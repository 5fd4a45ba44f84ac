"""Parameters of many megabytes are checked without holding up the other threads."""

from __future__ import annotations

import pytest

from mvserver import limits
from mvserver.errors import SqlError
from mvserver.pgwire.copy_in import CopyFormat, TextReader
from mvserver.pgwire.types.registry import decode_parameter
from mvserver.sql import parse

_NUMERIC, _JSON = 1700, 114


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


def test_too_many_words() -> None:
    with pytest.raises(SqlError) as raised:
        parse("SELECT " + "a " * (limits.TEXT_TOKENS_MAX + 10))
    assert raised.value.sqlstate == "54000"
