"""The views over the flights, and what each must hold, computed here without any of the server's code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from mvserver.demo.check import Row
from mvserver.demo.flights_data import Flight

STREAM = """\
CREATE STREAM flights (event_time BIGINT, departure_hour TIMESTAMP, carrier VARCHAR, flight INTEGER, tailnum VARCHAR,
    origin VARCHAR, dest VARCHAR, dep_delay INTEGER, arr_delay INTEGER, air_time INTEGER, distance INTEGER)
  WITH ('store'='{store}', 'topic'='flights', 'topic.partitions' = 4, 'topic.replicas' = 1,
    'value.format'='json', 'timestamp'='event_time');"""
_DELAYS = ("dep_delay", "arr_delay")
_AVERAGE_UNIT = Decimal("0.000001")  # an average of whole numbers has six digits, rounded half up


@dataclass(frozen=True)
class FlightsView:
    """``key`` gives the view's group of a flight, as the client reads it."""

    name: str
    key_columns: tuple[str, ...]
    key: Callable[[Flight], Row]

    def create(self) -> str:
        keys = ", ".join(self.key_columns)
        measures = ",\n    ".join(
            f"sum({c}) AS {c}_sum, min({c}) AS {c}_min, max({c}) AS {c}_max, avg({c}) AS {c}_avg" for c in _DELAYS
        )
        return (
            f"CREATE MATERIALIZED VIEW {self.name} AS SELECT {keys}, count(*) AS flights,\n    {measures}\n"
            f"  FROM flights GROUP BY {keys};"
        )

    def select(self) -> str:
        measures = ", ".join(f"{c}_sum, {c}_min, {c}_max, {c}_avg" for c in _DELAYS)
        return f"SELECT {', '.join(self.key_columns)}, flights, {measures} FROM {self.name};"

    def expected(self, flights: Iterable[Flight]) -> dict[Row, Row]:
        groups: dict[Row, list[Flight]] = {}
        for flight in flights:
            groups.setdefault(self.key(flight), []).append(flight)
        return {
            key: (
                len(group),
                *_measures([f.dep_delay for f in group]),
                *_measures([f.arr_delay for f in group]),
            )
            for key, group in groups.items()
        }


VIEWS = (
    FlightsView("flights_by_origin", ("origin",), lambda flight: (flight.origin,)),
    FlightsView(
        "flights_by_carrier_hour",
        ("carrier", "departure_hour"),
        lambda flight: (flight.carrier, datetime.fromisoformat(flight.departure_hour)),
    ),
    FlightsView("flights_by_tail", ("tailnum",), lambda flight: (flight.tailnum,)),
)


def _measures(values: list[int | None]) -> tuple[int | Decimal | None, ...]:
    """sum, min, max, avg of what is known; all NULL where nothing is, as SQL has it."""
    known = [value for value in values if value is not None]
    if not known:
        return (None, None, None, None)
    average = (Decimal(sum(known)) / len(known)).quantize(_AVERAGE_UNIT, ROUND_HALF_UP)
    return (sum(known), min(known), max(known), average)
