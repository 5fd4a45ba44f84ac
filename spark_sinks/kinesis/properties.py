"""The properties that CREATE ENTITY, CREATE STREAM and CSAS may give a stream that is made for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.kinesis.limits import KINESIS_SHARDS_MAX

DELETED = "_mv_deleted"  # a field of each record by which a row of a changelog is gone
IDENTITY = "_mv_id"  # a field of each record that a query writes
SHARDS = ("topic.shards", "kinesis.shards")


def shards_of(properties: Mapping[str, Any]) -> int:
    """22023 where it is no number, or not said."""
    numbers = set()
    for key in SHARDS:
        value = properties.get(key)
        if value is None:
            continue
        text = str(value)
        good = not isinstance(value, bool) and text.isascii() and text.isdigit() and len(text) <= 9
        if not good or not 0 < int(text) <= KINESIS_SHARDS_MAX:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "{key}" must be a number from 1 to {KINESIS_SHARDS_MAX}, not "{value}"',
            )
        numbers.add(int(text))
    if len(numbers) > 1:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, f'properties "{SHARDS[0]}" and "{SHARDS[1]}" contradict each other'
        )
    if not numbers:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'an entity of a store of type KINESIS needs the property "{SHARDS[0]}"',
            hint="It is the number of shards.",
        )
    return numbers.pop()
