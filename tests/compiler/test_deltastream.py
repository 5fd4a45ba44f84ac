"""DeltaStream's functions by their names there: each is computed with its type, or refused by name."""

from __future__ import annotations

import pytest

from mvserver.errors import SqlError
from tests.compiler.harness import compiled

COMPUTED = {
    "count(*)": "BIGINT",
    "count(DISTINCT s)": "BIGINT",
    "sum(i4)": "BIGINT",
    "avg(f8)": "DOUBLE",
    "min(d)": "DATE",
    "max(s)": "VARCHAR",
    "stddev(f8)": "DOUBLE",
    "listagg(s, ',')": "VARCHAR",
    "max(CAST(i4 AS VARCHAR))": "VARCHAR",
    "max(coalesce(s, '-'))": "VARCHAR",
    "max(CASE WHEN b THEN 1 ELSE 2 END)": "INTEGER",
    "max(concat(s, '-', i4))": "VARCHAR",
    "max(trim(s))": "VARCHAR",
    "max(split_index(s, '-', 0))": "VARCHAR",
    "max(regexp_extract(s, '(a)(b)', 2))": "VARCHAR",
    "max(json_value(s, '$.a'))": "VARCHAR",
    "max(unix_timestamp(s))": "BIGINT",
    "max(from_unixtime(i8))": "VARCHAR",
    "max(to_timestamp_ltz(s, 'yyyy-MM-dd'))": "TIMESTAMP_LTZ",
    "max(date_format(ts, 'yyyy-MM'))": "VARCHAR",
    "max(rowtime())": "BIGINT",
    "max(rowkey())": "VARCHAR",
    "max(rowmetadata()->offset)": "BIGINT",
}
REFUSED = ("uuid()", "unix_timestamp()", "match_rowtime()")


@pytest.mark.parametrize(("call", "type_"), COMPUTED.items())
def test_is_computed(call: str, type_: str) -> None:
    (output,) = compiled(f"SELECT {call} AS value FROM everything").outputs
    assert str(output.type) == type_


@pytest.mark.parametrize("call", REFUSED)
def test_is_refused_by_name(call: str) -> None:
    with pytest.raises(SqlError) as raised:
        compiled(f"SELECT {call} AS value FROM everything")
    assert raised.value.sqlstate == "0A000"
    assert call.partition("(")[0] in raised.value.message
