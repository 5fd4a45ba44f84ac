"""Records that cannot be encoded: an error, or refused one by one where their records allow that."""

from __future__ import annotations

import pytest

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Refusal, Refusals, SinkRecords
from spark_sinks.encode.encoded_sink import encoded


def number(part: bytes) -> bytes:
    if not part.isdigit():
        raise SqlError(sqlstates.DATA_EXCEPTION, f"{part.decode()} is no number")
    return b"#" + part


def away(part: bytes) -> bytes:
    raise SqlError(sqlstates.CONNECTION_FAILURE, "the registry is away")


def records(keys: list[bytes | None], values: list[bytes | None], refusals: Refusals | None) -> SinkRecords:
    return SinkRecords(keys, values, [None] * len(keys), refusals=refusals)


def test_without_refusals_it_is_an_error() -> None:
    assert encoded(records([b"k"], [b"1"], None), None, number).values == [b"#1"]
    with pytest.raises(SqlError, match="x is no number"):
        encoded(records([b"k", b"k"], [b"1", b"x"], None), None, number)


def test_what_cannot_be_encoded_stays_as_it_was() -> None:
    given = records([b"1", b"2", b"y", None], [b"1", b"x", b"3", b"z"], Refusals([None] * 4, keyed=True))
    found = encoded(given, number, number)
    assert (found.keys, found.values) == ([b"#1", b"#2", b"y", None], [b"#1", b"x", b"#3", b"z"])
    assert found.refusals == Refusals(
        [None, Refusal("x is no number"), Refusal("y is no number", in_key=True), Refusal("z is no number")], keyed=True
    )
    again = encoded(found, None, lambda part: part + b"!")  # a further encoder has nothing to do with them
    assert again.values == [b"#1!", b"x", b"#3", b"z"]
    assert again.refusals == found.refusals


def test_what_is_not_a_record_s_fault_is_an_error() -> None:
    with pytest.raises(SqlError, match="the registry is away"):
        encoded(records([None], [b"1"], Refusals([None], keyed=False)), None, away)
