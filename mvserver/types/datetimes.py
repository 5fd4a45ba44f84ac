"""date, time, timestamp and timestamptz as columns. Parameters of these types are read in datetime_parameters."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mvserver.types import clock, oids
from mvserver.types.column import (
    BINARY,
    BINARY_FORMAT,
    Column,
    Encoder,
    any_true,
    big_endian,
    convert,
    join,
    of_runs,
    patched,
    per_cell,
    quick,
)

_INT4 = struct.Struct("!i")
_INT8 = struct.Struct("!q")
_LATE = 2_145_916_800_000_000  # 2038: Arrow's zone rules are listed up to here, Python's go on


def encoder(oid: int, form: int, arrow: Any, zone: str) -> Encoder:
    if oid == oids.DATE:
        return _date(form).after(lambda array: convert(array, pa.date32(), "date").view(pa.int32()))
    if oid == oids.TIME:
        return _time(form).after(lambda array: array.cast(pa.time64("us"), safe=False).view(pa.int64()))
    if form == BINARY_FORMAT:
        plain = _stamp_binary()
    elif oid == oids.TIMESTAMPTZ:
        plain = _instant_text(zone)
    else:
        plain = _stamp_text()
    return plain.after(_microseconds)


def _microseconds(array: Column) -> Column:
    """Instants and zoneless stamps alike as a count; finer units are cut, as PostgreSQL has none."""
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("us"))
    elif pa.types.is_timestamp(array.type) and array.type.unit != "us":
        array = array.cast(pa.timestamp("us", array.type.tz), safe=False)
    return array.view(pa.int64())


def trim(text: Column) -> Column:
    """``.500000`` becomes ``.5``, ``.000000`` nothing: PostgreSQL writes no trailing zeros of a second."""
    return pc.ascii_rtrim(pc.ascii_rtrim(text, characters="0"), characters=".")


def _outside(counts: Column, low: int, high: int) -> Column | None:
    """Which counts a kernel's calendar would write wrongly, None where there are none."""
    bounds = pc.min_max(counts).as_py()
    if bounds["min"] is None or (low <= bounds["min"] and bounds["max"] <= high):
        return None
    return pc.or_(pc.less(counts, low), pc.greater(counts, high))


def _guarded(
    counts: Column, low: int, high: int, column: Callable[[Column], Column], cell: Callable[[int], bytes]
) -> Column:
    odd = _outside(counts, low, high)
    if odd is None:
        return column(counts)
    return patched(column(pc.if_else(odd, pa.scalar(0, counts.type), counts)), odd, cell, counts)


def _date(form: int) -> Encoder:
    if form == BINARY_FORMAT:
        return quick(_date_binary, _date_binary_cell)

    def cell(days: int) -> bytes:
        return clock.date_text(days).encode()

    def plain(days: Column) -> Column:
        return days.view(pa.date32()).cast(pa.string()).cast(BINARY)

    return quick(lambda days: _guarded(days, clock.PLAIN_DATE_FROM, clock.PLAIN_DATE_TO, plain, cell), cell)


def _date_binary_cell(days: int) -> bytes:
    if days >= clock.DATE_INFINITY:
        return _INT4.pack(clock.PG_DATE_INFINITY)
    if days <= clock.DATE_MINUS_INFINITY:
        return _INT4.pack(clock.PG_DATE_MINUS_INFINITY)
    return _INT4.pack(days - clock.UNIX_TO_2000_DAYS)


def _date_binary(days: Column) -> Column:
    shift = pa.scalar(clock.UNIX_TO_2000_DAYS, pa.int32())
    return _guarded(
        days,
        clock.DATE_MINUS_INFINITY + 1,
        clock.DATE_INFINITY - 1,
        lambda plain: big_endian(pc.subtract(plain, shift), "i"),
        _date_binary_cell,
    )


def _time(form: int) -> Encoder:
    if form == BINARY_FORMAT:
        return quick(lambda counts: big_endian(counts, "q"), _INT8.pack)

    def cell(count: int) -> bytes:
        return clock.time_text(count).encode()

    def plain(counts: Column) -> Column:
        return trim(counts.view(pa.time64("us")).cast(pa.string())).cast(BINARY)

    return quick(lambda counts: _guarded(counts, 0, clock.DAY_US - 1, plain, cell), cell)


def _stamp_binary() -> Encoder:
    shift = pa.scalar(clock.UNIX_TO_2000_US, pa.int64())

    def cell(count: int) -> bytes:
        if count >= clock.STAMP_INFINITY:
            return _INT8.pack(clock.PG_STAMP_INFINITY)
        if count <= clock.STAMP_MINUS_INFINITY:
            return _INT8.pack(clock.PG_STAMP_MINUS_INFINITY)
        return _INT8.pack(count - clock.UNIX_TO_2000_US)

    def column(counts: Column) -> Column:
        return _guarded(
            counts,
            clock.STAMP_MINUS_INFINITY + 1,
            clock.STAMP_INFINITY - 1,
            lambda plain: big_endian(pc.subtract(plain, shift), "q"),
            cell,
        )

    return quick(column, cell)


def _plain_stamps(counts: Column) -> Column:
    return trim(counts.view(pa.timestamp("us")).cast(pa.string())).cast(BINARY)


def _stamp_text() -> Encoder:
    def cell(count: int) -> bytes:
        return clock.stamp_text(count).encode()

    def column(counts: Column) -> Column:
        return _guarded(counts, clock.PLAIN_STAMP_FROM, clock.PLAIN_STAMP_TO, _plain_stamps, cell)

    return quick(of_runs(column), cell)


def _instant_text(zone: str) -> Encoder:
    rules = clock.zone_of(zone)

    def cell(count: int) -> bytes:
        return clock.instant_text(count, rules).encode()

    def in_utc(counts: Column) -> Column:
        return join(_plain_stamps(counts), pa.scalar(b"+00", BINARY))

    def in_zone(counts: Column) -> Column:
        local = pc.local_timestamp(counts.view(pa.timestamp("us", zone))).view(pa.int64())
        return join(_plain_stamps(local), _offsets(pc.subtract(local, counts)))

    if rules is not UTC and not _kernels_know(zone):
        return per_cell(cell)
    plain = in_utc if rules is UTC else in_zone
    high = clock.PLAIN_STAMP_TO if rules is UTC else _LATE

    def column(counts: Column) -> Column:
        if any_true(counts.is_valid()):
            return _guarded(counts, clock.PLAIN_STAMP_FROM, high, plain, cell)
        return pa.nulls(len(counts), BINARY)

    return quick(of_runs(column), cell)


def _kernels_know(zone: str) -> bool:
    """Arrow reads the system's zone files, which small images may not have; Python has its own."""
    try:
        pc.local_timestamp(pa.array([0], pa.timestamp("us", zone)))
    except pa.ArrowException:
        return False
    return True


def _offsets(microseconds: Column) -> Column:
    """A column of offsets as text; a zone has few different ones."""
    coded = microseconds.dictionary_encode()
    texts = [clock.offset_text(offset // 1_000_000).encode() for offset in coded.dictionary.to_pylist()]
    return pa.array(texts, BINARY).take(coded.indices)
