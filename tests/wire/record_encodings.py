"""Records how a real PostgreSQL writes values, for test_encodings.py.

    python -m tests.wire.record_encodings "host=127.0.0.1 port=5432 user=postgres" > tests/wire/pg15_encodings.json

Each line of the result is [type, oid, typmod, time zone, literal, text, binary as hex].
"""

from __future__ import annotations

import json
import sys

import psycopg

VALUES: dict[str, list[str]] = {
    "bool": ["true", "false"],
    "int2": ["0", "1", "-1", "32767", "-32768"],
    "int4": ["0", "42", "-42", "2147483647", "-2147483648"],
    "int8": ["0", "-7", "9223372036854775807", "-9223372036854775808"],
    "oid": ["0", "16384", "4294967295"],
    "float4": ["0", "-0", "1", "1.5", "0.1", "1e-4", "9.9e-5", "1e-5", "123456", "999999", "1e6", "1234567", "16777216",
               "3.4028235e38", "1e-45", "1.17549435e-38", "NaN", "Infinity", "-Infinity", "-123.456", "1e5",
               "3.14159274",
               "8.5e9", "1.1e-7", "44483368", "-148419390"],
    "float8": ["0", "-0", "1", "-1.5", "0.1", "0.30000000000000004", "1e-4", "1.25e-4", "9.99e-5", "1e-5", "1.25e-5",
               "1e-7", "123456789", "1e9", "9999999999", "1e10", "12345678901.5", "1e14", "123456789012345.6",
               "999999999999999", "1e15", "1e16", "1e20", "1e21", "1.7976931348623157e308", "5e-324",
               "2.2250738585072014e-308", "NaN", "Infinity", "-Infinity", "-1e300", "9007199254740993", "1e100",
               "3.141592653589793", "100", "1e22", "-0.00001", "-5.52810284715932e17", "3.74237755673333e16",
               "1.0760160808460721e18"],
    "numeric": ["0", "1", "-1", "0.5", "-0.5", "1.50", "10000", "100000000", "12345.6789", "0.0001", "0.00000001",
                "0.0000000001", "99999999999999999999999999999999999999", "-12345678901234567890.0123456789",
                "10000.0001", "1e10", "0.00", "0.0000000", "1000000.10", "123.4500", "9999", "0.9999", "-0.00010"],
    "numeric(10,2)": ["0", "1.5", "-99999999.99", "0.01", "1234.50"],
    "numeric(38,18)": ["0", "1", "0.000000000000000001", "-12345678901234567890.123456789012345678"],
    "text": ["", "a", "it's", "h\u00e9llo", "\u65e5\u672c\u8a9e", "a\nb", "\U0001f600"],
    "varchar": ["x", ""],
    "bpchar(4)": ["ab", "abcd", ""],
    "name": ["pg_class"],
    "bytea": ["", "\\x00", "\\xdeadbeef", "\\x5c27"],
    "date": ["2000-01-01", "1970-01-01", "2024-02-29", "0001-01-01", "0001-12-31 BC", "0044-03-15 BC", "4713-01-01 BC",
             "9999-12-31", "10000-01-01", "294276-12-31", "infinity", "-infinity", "1582-10-15", "1900-02-28"],
    "time": ["00:00:00", "23:59:59.999999", "24:00:00", "12:30:00.5", "10:00:00.000001", "01:02:03.120"],
    "timestamp": ["2000-01-01 00:00:00", "1970-01-01 00:00:00", "2024-02-29 23:59:59.999999", "2024-01-01 10:00:00.5",
                  "1969-12-31 23:59:59.999999", "0001-01-01 00:00:00", "0001-12-31 23:59:59 BC",
                  "0044-03-15 12:00:00.25 BC", "4713-01-01 00:00:00 BC", "9999-12-31 23:59:59.999999",
                  "10000-01-01 00:00:00", "294246-12-31 23:59:59.999999", "infinity", "-infinity"],
    "timestamptz": ["2000-01-01 00:00:00+00", "2024-03-31 00:59:59.999999+00", "2024-03-31 01:00:00+00",
                    "2024-10-27 00:59:59+00", "2024-10-27 01:00:00+00", "1969-12-31 23:59:59.5+00",
                    "1900-01-01 00:00:00+00", "1850-06-01 12:00:00+00", "2050-07-01 12:00:00+00",
                    "2050-12-01 12:00:00+00", "0044-03-15 12:00:00+00 BC", "9999-12-31 23:59:59+00",
                    "10000-07-01 00:00:00+00", "infinity", "-infinity"],
    "interval": ["0", "1 day", "-1 day", "1 mon", "2 mons", "1 year", "-1 year", "1 year 2 mons 3 days 04:05:06.5",
                 "-1 year -2 mons +3 days -04:05:06", "1 mon -1 day", "-1 mon 1 day", "1 day -00:00:01", "26:00:00",
                 "-26:00:00.000001", "1 day 00:00:01", "-1 day +00:00:01", "13 mons", "-13 mons", "00:00:00.1",
                 "100 years", "365 days"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"],
    "json": ["{}", '{"a": [1, 2.50, null], "b": "x"}', "null", '"s"'],
    "jsonb": ["{}", '{"a": [1, 2.50, null]}', "null"],
    "int4[]": ["{}", "{1,2,3}", "{NULL,-1}", "{{1,2},{3,4}}", "{NULL}"],
    "int8[]": ["{9223372036854775807}"],
    "bool[]": ["{t,f,NULL}"],
    "float8[]": ["{1,1e20,NaN,-0.5,Infinity}"],
    "text[]": ["{}", "{a,b}", '{"",NULL,"NULL","null","a b","a,b","{x}"}', '{"q\\"q","b\\\\s",its}',
               '{"\u00e9","\n"}', '{{a,"b c"},{NULL,d}}'],
    "numeric[]": ["{1.50,NULL,-0.01}"],
    "date[]": ["{2024-01-01,NULL}"],
    "timestamp[]": ['{"2024-01-01 10:00:00.5",NULL}'],
    "timestamptz[]": ['{"2024-07-01 10:00:00+00"}'],
    "uuid[]": ["{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}"],
    "bytea[]": [r'{"\\xdead","\\x"}'],
    "time[]": ["{10:00:00.5}"],
    "interval[]": ['{"1 day 02:00:00",00:00:01}'],
    "jsonb[]": [r'{"{\"a\": 1}","1"}'],
}  # fmt: skip
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Etc/GMT+5"]


def record(dsn: str) -> list[list[object]]:
    found: list[list[object]] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name, literals in VALUES.items():
            for zone in ZONES if "timestamptz" in name else ["UTC"]:
                connection.execute(f"SET TimeZone = '{zone}'")
                for literal in literals:
                    row: list[object] = []
                    for binary in (False, True):
                        cursor = connection.execute(f"SELECT %s::text::{name}", (literal,), binary=binary)
                        result = cursor.pgresult
                        assert result is not None
                        value = result.get_value(0, 0)
                        assert value is not None
                        if not binary:
                            row = [name, result.ftype(0), result.fmod(0), zone, literal, value.decode()]
                        else:
                            row.append(value.hex())
                    found.append(row)
    return found


if __name__ == "__main__":
    rows = record(sys.argv[1])
    print("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]")
