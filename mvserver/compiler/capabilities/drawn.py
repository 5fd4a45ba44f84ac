"""Names in Spark of the functions that draw a value when a row is evaluated: another one for each row."""

from __future__ import annotations

MOMENT = "mv_moment"  # microseconds since 1970
FRACTION = "mv_random_fraction"  # from 0 to 1, without 1
INTEGER = "mv_random_integer"
UUID = "mv_random_uuid"
