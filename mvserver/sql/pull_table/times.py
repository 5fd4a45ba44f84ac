"""Functions of dates, times and intervals."""

from __future__ import annotations

from mvserver.sql.pull_table.model import example, function

TIMES = (
    function("age", "1-2",
        "(timestamp with time zone) → interval; (timestamp) → interval; (timestamp with time zone, timestamp with "
        "time zone) → interval; (timestamp, timestamp) → interval", "date difference preserving months and years",
        example("age(timestamp '2024-03-01', timestamp '2023-01-15')", "1 year 1 mon 17 days")),
    # DuckDB has no other clock than that of the transaction, but for the one in its UUIDs, in whole milliseconds.
    function("clock_timestamp", "0", "() → timestamp with time zone", "current clock time",
        example("clock_timestamp() >= now()", "true"),
        macro="() AS greatest(CAST(now() AS TIMESTAMP WITH TIME ZONE) + INTERVAL 1 MICROSECOND, "
        "CAST(uuid_extract_timestamp(uuidv7()) AS TIMESTAMP WITH TIME ZONE))"),
    function("current_date", "0", "→ date", "the date at which the transaction began",
        example("current_date = now()::date", "true")),
    function("current_time", "0-1", "→ time with time zone", "the time of day at which the transaction began"),
    function("current_timestamp", "0-1", "→ timestamp with time zone", "the time at which the transaction began",
        example("current_timestamp = now()", "true")),
    function("date", "1", "(timestamp with time zone) → date; (timestamp) → date",
        "convert timestamp with time zone to date", example("date('2024-02-29')", "2024-02-29")),
    function("date_bin", "3",
        "(interval, timestamp, timestamp) → timestamp; (interval, timestamp with time zone, timestamp with time "
        "zone) → timestamp with time zone", "bin timestamp into specified interval",
        example("date_bin('15 minutes', timestamp '2024-01-01 10:37', timestamp '2024-01-01')", "2024-01-01 10:30:00"),
        example("date_bin('15 minutes', timestamp '2024-01-01 10:37', '2024-01-01')", "2024-01-01 10:30:00"),
        macro="""(stride, source, origin) AS CASE
            WHEN datepart('month', CAST(stride AS INTERVAL)) <> 0 OR datepart('year', CAST(stride AS INTERVAL)) <> 0
            THEN error('timestamps cannot be binned into intervals containing months or years')
            WHEN CAST(stride AS INTERVAL) <= INTERVAL 0 SECONDS THEN error('stride must be greater than zero')
            ELSE time_bucket(stride, source, CASE WHEN true THEN origin ELSE source END) END"""),
    function("date_part", "2", "(text, date or timestamp or interval) → double precision", "one field of a time",
        example("date_part('hour', timestamp '2024-01-01 10:37')", "10")),
    function("date_trunc", "2-3",
        "(text, timestamp or interval) → as the argument; (text, timestamp with time zone, text) → timestamp with "
        "time zone", "a time cut off below a unit",
        example("date_trunc('month', timestamp '2024-02-29 10:37')", "2024-02-01 00:00:00")),
    function("extract", "2", "(field FROM date or timestamp or interval) → numeric", "one field of a time",
        example("extract(epoch FROM timestamp '1970-01-02')", "86400.000000")),
    function("isfinite", "1", "(date) → boolean; (timestamp with time zone) → boolean; (timestamp) → boolean",
        "finite date?", example("isfinite(date '2024-01-01')", "true")),
    function("justify_days", "1", "(interval) → interval", "promote groups of 30 days to numbers of months",
        example("justify_days(interval '35 days')", "1 mon 5 days"),
        macro="(i) AS to_months(CAST({system}.fn._towards_zero({system}.fn._interval_days(i), 30) AS INTEGER)) + "
        "to_days(CAST({system}.fn._interval_days(i) - {system}.fn._towards_zero({system}.fn._interval_days(i), 30) * "
        "30 AS INTEGER)) + (i - to_months(CAST({system}.fn._interval_months(i) AS INTEGER)) - "
        "to_days(CAST(date_part('day', i) AS INTEGER)))"),
    function("justify_hours", "1", "(interval) → interval", "promote groups of 24 hours to numbers of days",
        example("justify_hours(interval '27 hours')", "1 day 03:00:00"),
        macro="(i) AS to_months(CAST({system}.fn._interval_months(i) AS INTEGER)) + "
        "to_days(CAST({system}.fn._towards_zero({system}.fn._interval_us(i), 86400000000) AS INTEGER)) + "
        "to_microseconds({system}.fn._interval_us(i) - {system}.fn._towards_zero({system}.fn._interval_us(i), "
        "86400000000) * 86400000000)"),
    function("justify_interval", "1", "(interval) → interval",
        "promote groups of 24 hours to numbers of days and promote groups of 30 days to numbers of months",
        example("justify_interval(interval '1 mon -1 hour')", "29 days 23:00:00"),
        macro="(i) AS {system}.fn._justified({system}.fn._interval_months(i) * 2592000000000 + "
        "{system}.fn._interval_us(i))"),
    function("localtime", "0-1", "→ time without time zone",
        "the time of day at which the transaction began, without a zone"),
    function("localtimestamp", "0-1", "→ timestamp without time zone",
        "the time at which the transaction began, without a zone",
        example("localtimestamp = now()::timestamp", "true")),
    function("make_date", "3", "(integer, integer, integer) → date", "construct date",
        example("make_date(2024, 2, 29)", "2024-02-29")),
    function("make_interval", "0-7",
        "([years integer [, months integer [, weeks integer [, days integer [, hours integer [, mins integer [, secs "
        "double precision]]]]]]]) → interval", "construct interval",
        example("make_interval(days => 10, hours => 2)", "10 days 02:00:00")),
    function("make_time", "3", "(integer, integer, double precision) → time", "construct time",
        example("make_time(10, 37, 1.5)", "10:37:01.5")),
    function("make_timestamp", "6", "(integer, integer, integer, integer, integer, double precision) → timestamp",
        "construct timestamp", example("make_timestamp(2024, 2, 29, 10, 37, 0)", "2024-02-29 10:37:00")),
    function("make_timestamptz", "6-7",
        "(integer, integer, integer, integer, integer, double precision) → timestamp with time zone; (integer, "
        "integer, integer, integer, integer, double precision, text) → timestamp with time zone",
        "construct timestamp with time zone",
        example("make_timestamptz(2024, 2, 29, 10, 37, 0)", "2024-02-29 10:37:00+00")),
    function("now", "0", "() → timestamp with time zone", "current transaction time",
        example("now() = transaction_timestamp()", "true")),
    function("statement_timestamp", "0", "() → timestamp with time zone", "current statement time",
        example("statement_timestamp() >= now()", "true"), macro="() AS now()"),
    function("timeofday", "0", "() → text", "current date and time - increments during transactions",
        example("length(timeofday()) > 20", "true"), macro="() AS strftime(now(), '%a %b %d %H:%M:%S.%f %Y UTC')"),
    function("timezone", "2",
        "(text, timestamp with time zone) → timestamp; (text, timestamp) → timestamp with time zone",
        "adjust timestamp to new time zone",
        example("timezone('UTC', timestamp '2024-01-01 10:37')", "2024-01-01 10:37:00+00")),
    function("to_date", "2", "(text, text) → date", "a date read by a constant pattern",
        example("to_date('29.02.2024', 'DD.MM.YYYY')", "2024-02-29")),
    function("to_timestamp", "1-2",
        "(double precision) → timestamp with time zone; (text, text) → timestamp with time zone",
        "a time from the seconds since 1970, or read by a constant pattern",
        example("to_timestamp(0)", "1970-01-01 00:00:00+00")),
    function("transaction_timestamp", "0", "() → timestamp with time zone", "current transaction time",
        example("transaction_timestamp() = now()", "true"), macro="() AS {system}.fn._now()"),
)  # fmt: skip
