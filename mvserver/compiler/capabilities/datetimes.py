"""Date and time functions. The time zone is UTC throughout; PostgreSQL's meaning where it has the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mvserver import sqlstates
from mvserver.compiler.capabilities.build import (
    BIGINT,
    DATE,
    DOUBLE,
    INSTANT,
    INTEGER,
    INTERVAL,
    TEXT,
    TEXT_CONSTANT,
    TIME,
    TIMESTAMP,
    capability,
    example,
    fails,
    on,
    same,
)
from mvserver.compiler.capabilities.date_patterns import from_java, from_postgres
from mvserver.compiler.capabilities.model import Capability, Lowered, Lowering, Overload, Parameter
from mvserver.compiler.capabilities.spark_text import bound_once, spark_type, string
from mvserver.compiler.expressions import Expression, Literal
from mvserver.compiler.intervals import parts_of
from mvserver.compiler.type_names import postgres_name
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.types import Kind, SqlType

_INTERVAL_CONSTANT = Parameter(Kind.INTERVAL, constant=True)
_ALIASES = {
    "years": "year", "months": "month", "days": "day", "hours": "hour", "minutes": "minute", "seconds": "second",
    "weeks": "week", "quarters": "quarter", "msec": "milliseconds", "millisecond": "milliseconds",
    "usec": "microseconds", "microsecond": "microseconds", "decades": "decade", "centuries": "century",
}  # fmt: skip
_DATE_FIELDS = {
    "year": "year({0})", "month": "month({0})", "day": "day({0})", "quarter": "quarter({0})", "week": "weekofyear({0})",
    "dow": "(dayofweek({0}) - 1)", "isodow": "(weekday({0}) + 1)", "doy": "dayofyear({0})",
    "isoyear": "extract(YEAROFWEEK FROM {0})", "decade": "floor(year({0}) / 10)", "century": "ceil(year({0}) / 100)",
    "millennium": "ceil(year({0}) / 1000)",
}  # fmt: skip
_CLOCK_FIELDS = {
    "hour": "hour({0})", "minute": "minute({0})", "second": "extract(SECOND FROM {0})",
    "milliseconds": "(extract(SECOND FROM {0}) * 1000)", "microseconds": "(extract(SECOND FROM {0}) * 1000000)",
}  # fmt: skip
# Spark would count full days of the hours as days; its text has both apart.
_INTERVAL_FIELDS = {
    **{unit: f"extract({unit.upper()} FROM {{0}})" for unit in ("year", "month", "minute", "second")},
    **{
        unit: f"CAST(regexp_extract(concat(CAST({{0}} AS STRING), ' 0 {unit}s'), '(-?[0-9]+) {unit}s', 1) AS BIGINT)"
        for unit in ("day", "hour")
    },
}
_INTERVAL_EPOCH = (
    "(CAST(extract(YEAR FROM {0}) AS DECIMAL(20,6)) * 31557600 + extract(MONTH FROM {0}) * 2592000L "
    "+ extract(DAY FROM {0}) * 86400L + extract(HOUR FROM {0}) * 3600L + extract(MINUTE FROM {0}) * 60L "
    "+ extract(SECOND FROM {0}))"
)
_EPOCH = {
    Kind.DATE: "(CAST(unix_date({0}) AS BIGINT) * 86400L)",
    Kind.TIMESTAMP: "(CAST(unix_micros(CAST({0} AS TIMESTAMP_LTZ)) AS DECIMAL(20,0)) / 1000000)",
    Kind.TIMESTAMP_LTZ: "(CAST(unix_micros({0}) AS DECIMAL(20,0)) / 1000000)",
    Kind.TIME: "(hour({0}) * 3600 + minute({0}) * 60 + extract(SECOND FROM {0}))",
    Kind.INTERVAL: _INTERVAL_EPOCH,
}


def _word(argument: Expression | Lowered) -> str:
    literal = argument.literal if isinstance(argument, Lowered) else argument
    word = str(literal.value).lower() if isinstance(literal, Literal) else ""
    return _ALIASES.get(word, word)


def _field(field: str, type_: SqlType) -> str:
    """The Spark template of a field; PostgreSQL's errors for what a type does not have."""
    kind = type_.kind
    if field == "epoch":
        return _EPOCH[kind]
    if kind is Kind.INTERVAL:
        fields = _INTERVAL_FIELDS
    elif kind is Kind.TIME:
        fields = _CLOCK_FIELDS
    elif kind is Kind.DATE:
        fields = _DATE_FIELDS
    else:
        fields = {**_DATE_FIELDS, **_CLOCK_FIELDS}
    if field in fields:
        return fields[field]
    if field in _DATE_FIELDS or field in _CLOCK_FIELDS or field in ("julian", "timezone"):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f'unit "{field}" not supported for type {postgres_name(type_)}',
            hint=f"Units are {', '.join(sorted(fields)).upper()}.",
        )
    raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'unit "{field}" not recognized for type {postgres_name(type_)}')


def _extract_type(arguments: Sequence[Expression]) -> SqlType:
    field, type_ = _word(arguments[0]), arguments[1].type
    _field(field, type_)
    if field == "epoch":
        return t.decimal(20, 0 if type_.kind is Kind.DATE else 6)
    return {"second": t.decimal(8, 6), "milliseconds": t.decimal(8, 3)}.get(field, t.decimal(10, 0))


def _date_part(a: Sequence[Lowered], result: SqlType) -> str:
    return f"CAST({_field(_word(a[0]), a[1].type).format(a[1])} AS DOUBLE)"


def _extract(a: Sequence[Lowered], result: SqlType) -> str:
    return f"CAST({_field(_word(a[0]), a[1].type).format(a[1])} AS {spark_type(result)})"


_TRUNCATED = {"microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year"}
_LONG_PERIODS = {
    "decade": "floor(year({0}) / 10) * 10", "century": "floor((year({0}) - 1) / 100) * 100 + 1",
    "millennium": "floor((year({0}) - 1) / 1000) * 1000 + 1",
}  # fmt: skip


def _truncate(a: Sequence[Lowered], result: SqlType) -> str:
    unit = _word(a[0])
    if unit in _LONG_PERIODS:
        year = _LONG_PERIODS[unit].format(a[1])
        return f"CAST(make_date(CAST({year} AS INT), 1, 1) AS {spark_type(result)})"
    if unit not in _TRUNCATED:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, f'unit "{unit}" not recognized for type {postgres_name(result)}'
        )
    spark_unit = unit.removesuffix("s").upper() if unit.endswith("seconds") else unit.upper()
    return f"CAST(date_trunc('{spark_unit}', CAST({a[1]} AS TIMESTAMP_LTZ)) AS {spark_type(result)})"


def _postgres_pattern(function: str, *, parsing: bool = False) -> Lowering:
    return lambda a, _: f"{function}({a[0]}, {string(from_postgres(str(a[1].constant()), parsing=parsing))})"


def _java_pattern(function: str) -> Lowering:
    return lambda a, _: f"{function}({a[0]}, {string(from_java(str(a[1].constant())))})"


def _zone(argument: Lowered) -> str:
    name = str(argument.constant())
    named = name.upper() if name.upper() in ("UTC", "GMT") else name
    try:
        known = "/" in name or named in ("UTC", "GMT")
        ZoneInfo(named)
    except (ZoneInfoNotFoundError, ValueError):
        known = False
    if not known:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'time zone "{name}" not recognized',
            hint="Use UTC or a name of the form Area/City.",
        )
    return string(named)


_UNITS = frozenset({"microseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year"})


def _unit(argument: Lowered) -> str:
    unit = _word(argument)
    if unit not in _UNITS:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'unit "{unit}" not recognized',
            hint="Units are SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER and YEAR.",
        )
    return "MICROSECOND" if unit == "microseconds" else unit.upper()


def _bin(a: Sequence[Lowered], result: SqlType) -> str:
    months, days, micros = parts_of(str(a[0].constant()))
    if months:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "timestamps cannot be binned into intervals containing months or years",
            hint="DATE_TRUNC cuts to months, quarters and years.",
        )
    stride = days * 86_400_000_000 + micros
    if stride <= 0:
        raise SqlError(sqlstates.DATETIME_FIELD_OVERFLOW, "stride must be greater than zero")
    source, origin = (f"unix_micros(CAST({each} AS TIMESTAMP_LTZ))" for each in a[1:])
    return f"CAST(timestamp_micros({source} - pmod({source} - {origin}, {stride}L)) AS {spark_type(result)})"


def _instant_of_clocks(a: Sequence[Lowered], result: SqlType) -> str:
    """In the hour that comes twice PostgreSQL takes the second, where Spark takes the first.

    The second is found by the difference from UTC that holds a day later, and is one if clocks show the same there.
    """
    zone = _zone(a[0])
    if zone == "'UTC'":
        return f"CAST({a[1]} AS TIMESTAMP_LTZ)"
    clocks = f"convert_timezone('UTC', {zone}, {{}})"
    next_day = "(mv_first + INTERVAL '1' DAY)"
    second = f"mv_clock - ({clocks.format(next_day)} - {next_day})"
    chosen = f"IF(mv_second > mv_first AND {clocks.format('mv_second')} = mv_clock, mv_second, mv_first)"
    body = bound_once("mv_second", second, chosen)
    found = bound_once(
        "mv_clock", str(a[1]), bound_once("mv_first", f"convert_timezone({zone}, 'UTC', mv_clock)", body)
    )
    return f"CAST({found} AS TIMESTAMP_LTZ)"


def _part(name: str, meaning: str, spark: str, clock: bool, first: str, second: str) -> Capability:
    def over(parameter: Parameter) -> Callable[[str], Overload]:
        return on((parameter,), t.BIGINT, f"CAST({spark} AS BIGINT)")

    shapes = [TIMESTAMP, INSTANT, *([TIME] if clock else [DATE])]
    return capability(
        name, meaning, [over(shape) for shape in shapes],
        [
            example(f"{name}(TIMESTAMP '2024-05-17 10:11:12')", first, postgres=False),
            example(f"{name}(TIMESTAMP '2023-12-31 23:59:59')", second, postgres=False),
        ],
    )  # fmt: skip


_T = "TIMESTAMP '2024-05-17 10:11:12.345678'"

CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "extract", "a field of a date, time, timestamp or interval, as numeric",
        [on((TEXT_CONSTANT, p), _extract_type, _extract) for p in (TIMESTAMP, INSTANT, DATE, TIME, INTERVAL)],
        [
            example(f"EXTRACT(YEAR FROM {_T})", "2024"), example(f"EXTRACT(SECOND FROM {_T})", "12.345678"),
            example(f"EXTRACT(DOW FROM {_T})", "5"), example("EXTRACT(ISODOW FROM DATE '2024-05-19')", "7"),
            example(f"EXTRACT(DOY FROM {_T})", "138"), example(f"EXTRACT(WEEK FROM {_T})", "20"),
            example(f"EXTRACT(EPOCH FROM {_T})", "1715940672.345678"), example("EXTRACT(EPOCH FROM DATE '2024-01-01')",
            "1704067200"),
            example(f"EXTRACT(MILLISECONDS FROM {_T})", "12345.678"), example(f"EXTRACT(MICROSECONDS FROM {_T})",
            "12345678"),
            example("EXTRACT(CENTURY FROM DATE '2000-12-31')", "20"), example("EXTRACT(DECADE FROM DATE '1999-12-31')",
            "199"),
            example("EXTRACT(MILLENNIUM FROM DATE '2001-01-01')", "3"),
            example("EXTRACT(ISOYEAR FROM DATE '2006-01-01')", "2005"),
            example("EXTRACT(QUARTER FROM DATE '2024-05-01')", "2"), example("EXTRACT(HOUR FROM TIME '21:15:00')",
            "21"),
            example("EXTRACT(DAY FROM INTERVAL '40 days 3 hours')", "40"),
            example("EXTRACT(EPOCH FROM INTERVAL '1 day 00:00:01.5')", "86401.500000"),
            example("EXTRACT(DAY FROM INTERVAL '36 hours')", "0"),
            example("EXTRACT(HOUR FROM INTERVAL '36 hours')", "36"),
            example("EXTRACT(HOUR FROM INTERVAL '2 days -50:30')", "-50"),
            fails("EXTRACT(HOUR FROM DATE '2024-01-01')", "0A000"), fails("EXTRACT(nonsense FROM DATE '2024-01-01')",
            "22023"),
        ],
        note="the field julian and the time zone fields are not supported",
    ),
    capability(
        "date_part", "a field of a date, time, timestamp or interval, as double precision",
        [
            on((TEXT_CONSTANT, p), t.DOUBLE, _date_part)
            for p in (TIMESTAMP, INSTANT, TIME, INTERVAL)
        ],
        [
            example(f"date_part('year', {_T})", "2024"), example(f"date_part('second', {_T})", "12.345678"),
            example("date_part('hour', DATE '2024-01-01')", "0"),
        ],
    ),
    capability(
        "date_trunc", "cut to a unit of time",
        [on((TEXT_CONSTANT, p), same(1), _truncate) for p in (TIMESTAMP, INSTANT)],
        [
            example(f"date_trunc('hour', {_T})", "2024-05-17 10:00:00"), example(f"date_trunc('month', {_T})",
            "2024-05-01 00:00:00"),
            example(f"date_trunc('week', {_T})", "2024-05-13 00:00:00"), example(f"date_trunc('quarter', {_T})",
            "2024-04-01 00:00:00"),
            example(f"date_trunc('milliseconds', {_T})", "2024-05-17 10:11:12.345"),
            example(f"date_trunc('decade', {_T})", "2020-01-01 00:00:00"),
            example(f"date_trunc('century', {_T})", "2001-01-01 00:00:00"), fails(f"date_trunc('nonsense', {_T})",
            "22023"),
        ],
        note="a date is taken as a timestamp with time zone, as in PostgreSQL",
    ),
    capability(
        "date_bin", "the start of the interval, of those counted from an origin, that a timestamp lies in",
        [on((_INTERVAL_CONSTANT, p, p), same(1), _bin) for p in (TIMESTAMP, INSTANT)],
        [
            example(f"date_bin('15 minutes', {_T}, TIMESTAMP '2024-01-01 00:00:00')", "2024-05-17 10:00:00"),
            example("date_bin(INTERVAL '1 day', TIMESTAMP '2024-05-17 10:00:00', TIMESTAMP '2024-01-01 12:00:00')",
            "2024-05-16 12:00:00"),
        ],
    ),
    capability(
        "make_date", "a date of year, month and day", [on((INTEGER,) * 3, t.DATE, "make_date({0}, {1}, {2})")],
        [example("make_date(2024, 2, 29)", "2024-02-29"), fails("make_date(2024, 2, 30)", "22008")],
    ),
    capability(
        "make_timestamp", "a timestamp of its parts",
        [
            on(
                (INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, DOUBLE), t.TIMESTAMP,
                "make_timestamp_ntz({0}, {1}, {2}, {3}, {4}, CAST({5} AS DECIMAL(16,6)))",
            )
        ],
        [
            example("make_timestamp(2024, 5, 17, 10, 11, 12.5)", "2024-05-17 10:11:12.5"),
            fails("make_timestamp(2024, 13, 1, 0, 0, 0)", "22008"),
        ],
    ),
    capability(
        "to_char", "a date or timestamp as text, by a pattern",
        [on((p, TEXT_CONSTANT), t.VARCHAR, _postgres_pattern("date_format")) for p in (TIMESTAMP, INSTANT)],
        [
            example(f"to_char({_T}, 'YYYY-MM-DD HH24:MI:SS.US')", "2024-05-17 10:11:12.345678"),
            example(f"to_char({_T}, 'Dy, FMDD Mon YY')", "Fri, 17 May 24"),
            example(f"to_char({_T}, 'FMDay HH12:MI AM')", "Friday 10:11 AM"),
            example("to_char(DATE '2024-01-05', 'YYYY\"T\"DDD Q')", "2024T005 1"), fails(f"to_char({_T}, 'J')",
            "0A000", postgres=False),
        ],
        note="parts are YYYY, YY, MM, Mon, FMMonth, DD, DDD, Dy, FMDay, Q, HH24, HH12, MI, SS, MS, US, AM, PM",
    ),
    capability(
        "date_format", "a timestamp as text, by a Java pattern",
        [on((p, TEXT_CONSTANT), t.VARCHAR, _java_pattern("date_format")) for p in (TIMESTAMP, INSTANT)],
        [
            example(f"date_format({_T}, 'yyyy-MM-dd HH:mm')", "2024-05-17 10:11", postgres=False),
            example(f"date_format({_T}, 'yyyyMMdd''T''HHmmss.SSS')", "20240517T101112.345", postgres=False),
            fails(f"date_format({_T}, 'qq')", "0A000", postgres=False),
        ],
        note="pattern letters are y, M, d, H, h, m, s, S, E and a",
    ),
    capability(
        "to_timestamp",
        "an instant of seconds since 1970, or of text by a PostgreSQL pattern; of text alone a timestamp",
        [
            on((DOUBLE,), t.TIMESTAMP_LTZ, "timestamp_micros(CAST(rint({0} * 1000000D) AS BIGINT))"),
            on((TEXT, TEXT_CONSTANT), t.TIMESTAMP_LTZ, _postgres_pattern("to_timestamp_ltz", parsing=True)),
            on((TEXT,), t.TIMESTAMP, "TRY_CAST({0} AS TIMESTAMP_NTZ)"),
        ],
        [
            example("to_timestamp(1715940672.5)", "2024-05-17 10:11:12.5+00"),
            example("to_timestamp('05 Dec 2000', 'DD Mon YYYY')", "2000-12-05 00:00:00+00"),
            example("to_timestamp('2024-05-17 10:11:12')", "2024-05-17 10:11:12", postgres=False),
            example("to_timestamp('no time')", None, postgres=False),
        ],
        note="numbers in the text must have as many digits as the pattern; text alone that is no timestamp is NULL",
    ),
    capability(
        "to_date", "a date of text, by a PostgreSQL pattern",
        [
            on((TEXT, TEXT_CONSTANT), t.DATE, _postgres_pattern("to_date", parsing=True)),
            on((TEXT,), t.DATE, "CAST(TRY_CAST({0} AS TIMESTAMP_NTZ) AS DATE)"),
        ],
        [
            example("to_date('05 12 2000', 'DD MM YYYY')", "2000-12-05"), fails("to_date('x', 'YYYY')", "22007"),
            example("to_date('2000-12-05')", "2000-12-05", postgres=False),
            example("to_date('x')", None, postgres=False),
        ],
        note="numbers in the text must have as many digits as the pattern; text alone that is no date is NULL",
    ),
    capability(
        "to_timestamp_ltz",
        "an instant of seconds (0), milliseconds (3, the default) or microseconds (6) since 1970, or of text, which "
        "may have a Java pattern",
        [
            on(
                (BIGINT, Parameter(Kind.INTEGER, constant=True)), t.TIMESTAMP_LTZ,
                lambda a, _: f"{_epoch_function(a[1])}({a[0]})",
            ),
            on((BIGINT,), t.TIMESTAMP_LTZ, "timestamp_millis({0})"),
            on((TEXT,), t.TIMESTAMP_LTZ, "TRY_CAST({0} AS TIMESTAMP_LTZ)"),
            on((TEXT, TEXT_CONSTANT), t.TIMESTAMP_LTZ, _java_pattern("try_to_timestamp")),
        ],
        [
            example("to_timestamp_ltz(1715940672, 0)", "2024-05-17 10:11:12+00", postgres=False),
            example("to_timestamp_ltz(1715940672345, 3)", "2024-05-17 10:11:12.345+00", postgres=False),
            example("to_timestamp_ltz(1715940672345)", "2024-05-17 10:11:12.345+00", postgres=False),
            example("to_timestamp_ltz(1715940672345678, 6)", "2024-05-17 10:11:12.345678+00", postgres=False),
            example("to_timestamp_ltz('17/05/2024 10:11', 'dd/MM/yyyy HH:mm')",
            "2024-05-17 10:11:00+00", postgres=False),
            example("to_timestamp_ltz('x', 'yyyy')", None, postgres=False),
        ],
    ),
    capability(
        "from_unixtime", "seconds since 1970 as text in UTC, by a Java pattern",
        [
            on((BIGINT,), t.VARCHAR, "date_format(timestamp_seconds({0}), 'yyyy-MM-dd HH:mm:ss')"),
            on(
                (BIGINT, TEXT_CONSTANT), t.VARCHAR,
                lambda a, _: f"date_format(timestamp_seconds({a[0]}), {string(from_java(str(a[1].constant())))})",
            ),
        ],
        [
            example("from_unixtime(1715940672)", "2024-05-17 10:11:12", postgres=False),
            example("from_unixtime(0, 'yyyy/MM/dd')", "1970/01/01", postgres=False),
        ],
    ),
    capability(
        "unix_timestamp", "whole seconds since 1970 of a timestamp's text",
        [
            on((TEXT,), t.BIGINT, "unix_timestamp(to_timestamp_ltz({0}, 'yyyy-MM-dd HH:mm:ss'))"),
            on(
                (TEXT, TEXT_CONSTANT), t.BIGINT,
                lambda a, _: f"unix_timestamp(to_timestamp_ltz({a[0]}, {string(from_java(str(a[1].constant())))}))",
            ),
        ],
        [
            example("unix_timestamp('2024-05-17 10:11:12')", "1715940672", postgres=False),
            example("unix_timestamp('1970-01-02', 'yyyy-MM-dd')", "86400", postgres=False),
            fails("unix_timestamp('x')", "22007", postgres=False),
        ],
        note="text that is no timestamp is an error; without an argument it is the present time and refused",
    ),
    capability(
        "timestampdiff", "whole units from the first timestamp to the second",
        [
            on((TEXT_CONSTANT, p, p), t.BIGINT, lambda a, _: f"timestampdiff({_unit(a[0])}, {a[1]}, {a[2]})")
            for p in (TIMESTAMP, INSTANT)
        ],
        [
            example("timestampdiff(DAY, TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-03 12:00:00')",
            "2", postgres=False),
            example("timestampdiff(MONTH, TIMESTAMP '2024-01-31 00:00:00', TIMESTAMP '2024-03-30 00:00:00')",
            "1", postgres=False),
            example("timestampdiff(MONTH, TIMESTAMP '2024-01-31 23:00:00', TIMESTAMP '2024-03-01 00:00:00')",
            "0", postgres=False),
            example("timestampdiff(SECOND, TIMESTAMP '2024-01-01 00:01:00', TIMESTAMP '2024-01-01 00:00:00')",
            "-60", postgres=False),
        ],
        note="the result is BIGINT; for months, a day that is not full is left out before they are counted",
    ),
    capability(
        "timestampadd", "a timestamp so many units later",
        [
            on((TEXT_CONSTANT, INTEGER, p), same(2), lambda a, _: f"timestampadd({_unit(a[0])}, {a[1]}, {a[2]})")
            for p in (TIMESTAMP, INSTANT)
        ],
        [
            example("timestampadd(MONTH, 1, TIMESTAMP '2024-01-31 00:00:00')", "2024-02-29 00:00:00", postgres=False),
            example("timestampadd(HOUR, -1, TIMESTAMP '2024-01-01 00:00:00')", "2023-12-31 23:00:00", postgres=False),
        ],
    ),
    capability(
        "last_day", "the last day of the month", [on((DATE,), t.DATE, "last_day({0})")],
        [
            example("last_day(DATE '2024-02-10')", "2024-02-29", postgres=False),
            example("last_day(DATE '2023-12-31')", "2023-12-31", postgres=False),
        ],
    ),
    capability(
        "timezone", "a timestamp as the instant at which a zone's clocks show it, and the reverse (AT TIME ZONE)",
        [
            on((TEXT_CONSTANT, TIMESTAMP), t.TIMESTAMP_LTZ, _instant_of_clocks),
            on(
                (TEXT_CONSTANT, INSTANT), t.TIMESTAMP,
                lambda a, _: f"convert_timezone('UTC', {_zone(a[0])}, CAST({a[1]} AS TIMESTAMP_NTZ))",
            ),
        ],
        [
            example("TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE 'Europe/Berlin'", "2024-07-01 10:00:00+00"),
            example("CAST('2024-01-01 12:00:00+00' AS timestamp with time zone) AT TIME ZONE 'Europe/Berlin'",
            "2024-01-01 13:00:00"),
            example("TIMESTAMP '2024-10-27 02:30:00' AT TIME ZONE 'Europe/Berlin'", "2024-10-27 01:30:00+00"),
            example("TIMESTAMP '2024-03-31 02:30:00' AT TIME ZONE 'Europe/Berlin'", "2024-03-31 01:30:00+00"),
            example("TIMESTAMP '2024-04-07 01:45:00' AT TIME ZONE 'Australia/Lord_Howe'", "2024-04-06 15:15:00+00"),
        ],
        note="zones are UTC or of the form Area/City, constant",
    ),
    _part("year", "the year", "year({0})", False, "2024", "2023"),
    _part("quarter", "the quarter", "quarter({0})", False, "2", "4"),
    _part("month", "the month", "month({0})", False, "5", "12"),
    _part("week", "the ISO week", "weekofyear({0})", False, "20", "52"),
    _part("dayofyear", "the day of the year", "dayofyear({0})", False, "138", "365"),
    _part("dayofmonth", "the day of the month", "day({0})", False, "17", "31"),
    _part("dayofweek", "the day of the week, 1 for Sunday", "dayofweek({0})", False, "6", "1"),
    _part("hour", "the hour", "hour({0})", True, "10", "23"),
    _part("minute", "the minute", "minute({0})", True, "11", "59"),
    _part("second", "the second, whole", "second({0})", True, "12", "59"),
)  # fmt: skip


def _epoch_function(argument: Lowered) -> str:
    functions = {0: "timestamp_seconds", 3: "timestamp_millis", 6: "timestamp_micros"}
    precision = argument.constant()
    if precision not in functions:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f"precision {precision} of to_timestamp_ltz must be 0 (seconds), 3 (milliseconds) or 6 (microseconds)",
        )
    return functions[int(str(precision))]
