"""The texts of intervals beside a real PostgreSQL: also fractions, which a Python timedelta would not tell apart."""

from __future__ import annotations

import random
import time
from typing import Any

import psycopg
import pytest

from mvserver.compiler.intervals import parse_interval
from mvserver.types.intervals import Parts, interval_text

pytestmark = pytest.mark.postgres

_WRITTEN = (
    "1.5 weeks", "-1.5 weeks", "1.5 weeks ago", "0.3 weeks", "1.123456789 weeks", "1.5 w", "0.5 month", "1.5 months",
    "-0.5 month", "1.5 years", "0.375 years", "0.125 years", "2.5 decades", "1.1 centuries", "0.5 millennium",
    "1.5 days", "1.7 hours", "1.5 microseconds", "0.0000005 seconds", "0:00:00.0000005", "0:00:00.0000015", "3 4:05:06",
    "P1.5W", "P0.5M", "P1.5D", "PT1.5H", "P1Y2M3DT4H5M6.5S", "1-2 3 04:05:06", "1 day ago", "@ 1 minute ago",
)  # fmt: skip
_UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")


def _random_texts() -> list[str]:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    return [
        " ".join(
            f"{chance.choice(['', '-'])}{chance.randrange(9)}.{chance.randrange(10_000)} {unit}"
            for unit in chance.sample(_UNITS, chance.randrange(1, 4))
        )
        for _ in range(300)
    ]


def _texts(connection: psycopg.Connection[Any], texts: list[str]) -> list[str]:
    asked = "SELECT " + ", ".join(f"'{text}'::interval::text" for text in texts)
    return list(connection.execute(asked).fetchone() or ())


def test_texts_are_postgresqls(our_shop: psycopg.Connection[Any], their_shop: psycopg.Connection[Any]) -> None:
    texts = [*_WRITTEN, *_random_texts()]
    expected = _texts(their_shop, texts)
    assert dict(zip(texts, _texts(our_shop, texts), strict=True)) == dict(zip(texts, expected, strict=True))
    continuous = [interval_text(Parts(*map(int, parse_interval(text).split()))) for text in texts]
    assert dict(zip(texts, continuous, strict=True)) == dict(zip(texts, expected, strict=True))


@pytest.mark.parametrize("text", ["week", "1 fortnight", "1:2:3:4", "", "1 day x", "1.5.5 days"])
def test_what_is_no_interval_is_refused(text: str, our_shop: Any, their_shop: Any) -> None:
    for connection in (our_shop, their_shop):
        with pytest.raises(psycopg.errors.InvalidDatetimeFormat):
            connection.execute(f"SELECT '{text}'::interval")
