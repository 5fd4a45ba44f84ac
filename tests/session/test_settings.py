"""PostgreSQL's settings: values, errors, SET LOCAL and what a transaction takes back."""

from __future__ import annotations

import pytest

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.session.settings.setting_table import SETTINGS
from mvserver.session.settings.settings import SessionSettings, parse_options


@pytest.fixture
def settings() -> SessionSettings:
    return SessionSettings({"session_authorization": "anna", "is_superuser": "off"})


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("statement_timeout", "5000", "5s"),
        ("statement_timeout", "1500", "1500ms"),
        ("statement_timeout", "2min", "2min"),
        ("statement_timeout", "0", "0"),
        ("statement_timeout", "1.5s", "1500ms"),
        ("STATEMENT_TIMEOUT", "1 h", "1h"),
        ("timezone", "europe/berlin", "Europe/Berlin"),
        ("time zone", "utc", "UTC"),
        ("TimeZone", "+02:00", "Etc/GMT-2"),
        ("TimeZone", "-7", "Etc/GMT+7"),
        ("TimeZone", "GMT+3", "Etc/GMT+3"),
        ("DateStyle", "iso", "ISO, MDY"),
        ("DateStyle", "ISO, DMY", "ISO, DMY"),
        ("client_encoding", "utf-8", "UTF8"),
        ("names", "UNICODE", "UTF8"),
        ("default_transaction_isolation", "REPEATABLE  READ", "repeatable read"),
        ("default_transaction_read_only", "t", "on"),
        ("jit", "0", "off"),
        ("extra_float_digits", "3", "3"),
        ("search_path", 'sales, "Odd Name", PUBLIC', 'sales, "Odd Name", public'),
        ("bytea_output", "HEX", "hex"),
        ("my.own", "anything", "anything"),
        ("work_mem", "100kB", "100kB"),
        ("work_mem", "1.5MB", "1536kB"),
        ("work_mem", "65536B", "64kB"),
        ("work_mem", "4096", "4MB"),
        ("temp_buffers", "1000", "8000kB"),
        ("effective_cache_size", "16 GB", "16GB"),
        ("effective_cache_size", "10", "80kB"),
        ("random_page_cost", "1.1", "1.1"),
        ("max_parallel_workers", "0", "0"),
        ("geqo_threshold", "1.6", "2"),
        ("client_encoding", "sql-ascii", "SQL_ASCII"),
    ],
)
def test_values_are_made_canonical(settings: SessionSettings, name: str, value: str, shown: str) -> None:
    settings.set(name, value)
    assert settings.get(name) == shown


@pytest.mark.parametrize(
    ("name", "value", "sqlstate", "message"),
    [
        ("nonsense", "1", "42704", 'unrecognized configuration parameter "nonsense"'),
        ("mv.nonsense", "1", "42602", 'invalid configuration parameter name "mv.nonsense"'),
        ("jit", "maybe", "22023", 'parameter "jit" requires a Boolean value'),
        ("statement_timeout", "soon", "22023", 'invalid value for parameter "statement_timeout": "soon"'),
        ("statement_timeout", "-1", "22023",
         '-1 ms is outside the valid range for parameter "statement_timeout" (0 .. 2147483647)'),
        ("extra_float_digits", "9", "22023",
         '9 is outside the valid range for parameter "extra_float_digits" (-15 .. 3)'),
        ("server_version", "16", "55P02", 'parameter "server_version" cannot be changed'),
        ("max_connections", "5", "55P02",
         'parameter "max_connections" cannot be changed without restarting the server'),
        ("TimeZone", "Mars/Olympus", "22023", 'invalid value for parameter "TimeZone": "Mars/Olympus"'),
        ("work_mem", "x", "22023", 'invalid value for parameter "work_mem": "x"'),
        ("work_mem", "5 x", "22023", 'invalid value for parameter "work_mem": "5 x"'),
        ("work_mem", "63", "22023", '63 kB is outside the valid range for parameter "work_mem" (64 .. 2147483647)'),
        ("work_mem", "5000000GB", "22023", 'invalid value for parameter "work_mem": "5000000GB"'),
        ("effective_cache_size", "0", "22023",
         '0 8kB is outside the valid range for parameter "effective_cache_size" (1 .. 2147483647)'),
        ("random_page_cost", "-1", "22023",
         '-1 is outside the valid range for parameter "random_page_cost" (0 .. 1.79769e+308)'),
        ("random_page_cost", "nan", "22023", 'invalid value for parameter "random_page_cost": "nan"'),
        ("geqo_threshold", "1", "22023",
         '1 is outside the valid range for parameter "geqo_threshold" (2 .. 2147483647)'),
        ("max_parallel_workers", "many", "22023", 'invalid value for parameter "max_parallel_workers": "many"'),
        ("log_min_messages", "x", "22023", 'invalid value for parameter "log_min_messages": "x"'),
        ("statement_timeout", "9999999999999", "22023",
         'invalid value for parameter "statement_timeout": "9999999999999"'),
        ("extra_float_digits", "0", "0A000", 'value "0" of parameter "extra_float_digits" is not supported'),
        ("client_encoding", "nonsense", "22023", 'invalid value for parameter "client_encoding": "nonsense"'),
        ("client_encoding", "LATIN1", "0A000", 'value "LATIN1" of parameter "client_encoding" is not supported'),
        ("standard_conforming_strings", "off", "0A000",
         'value "off" of parameter "standard_conforming_strings" is not supported'),
        ("DateStyle", "German", "0A000", 'value "German" of parameter "DateStyle" is not supported'),
        ("IntervalStyle", "iso_8601", "0A000", 'value "iso_8601" of parameter "IntervalStyle" is not supported'),
        ("default_transaction_isolation", "chaos", "22023",
         'invalid value for parameter "default_transaction_isolation": "chaos"'),
        ("search_path", "a,,b", "22023", 'invalid value for parameter "search_path": "a,,b"'),
    ],
)  # fmt: skip
def test_what_is_refused_and_how(settings: SessionSettings, name: str, value: str, sqlstate: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        settings.set(name, value)
    assert (caught.value.sqlstate, caught.value.message) == (sqlstate, message)


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("work_mem", "5 x", 'Valid units for this parameter are "B", "kB", "MB", "GB", and "TB".'),
        ("work_mem", "5000000GB", "Value exceeds integer range."),
        ("work_mem", "x", None),
        ("statement_timeout", "5 parsecs", 'Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".'),
        ("statement_timeout", "soon", None),
        ("geqo_threshold", "9999999999", "Value exceeds integer range."),
    ],
)
def test_hints_are_postgresqls(settings: SessionSettings, name: str, value: str, hint: str | None) -> None:
    with pytest.raises(SqlError) as caught:
        settings.set(name, value)
    assert caught.value.hint == hint


def test_every_default_passes_its_own_check(settings: SessionSettings) -> None:
    for row in SETTINGS.values():
        assert row.check(row.name, row.default) == row.default, row.name


def test_reported_settings_are_those_that_postgresql_reports(settings: SessionSettings) -> None:
    assert set(settings.reported()) == {
        "application_name", "client_encoding", "DateStyle", "default_transaction_read_only", "in_hot_standby",
        "integer_datetimes", "IntervalStyle", "is_superuser", "server_encoding", "server_version",
        "session_authorization", "standard_conforming_strings", "TimeZone",
    }  # fmt: skip
    assert settings.reported()["session_authorization"] == "anna"
    assert settings.reported()["server_version"].startswith("15.")


def test_reported_is_the_same_object_until_a_setting_changes(settings: SessionSettings) -> None:
    before = settings.reported()
    assert settings.reported() is before
    settings.set("application_name", "x")
    assert settings.reported()["application_name"] == "x"


def test_local_values_end_and_session_values_stay(settings: SessionSettings) -> None:
    start = settings.state()
    settings.set("application_name", "session")
    settings.set("application_name", "local", local=True)
    assert settings.get("application_name") == "local"
    settings.end_local()
    assert settings.get("application_name") == "session"
    settings.restore(start)
    assert settings.get("application_name") == ""


def test_a_session_value_replaces_a_local_one(settings: SessionSettings) -> None:
    settings.set("application_name", "local", local=True)
    settings.set("application_name", "session")
    assert settings.get("application_name") == "session"


def test_start_up_values_are_what_reset_goes_back_to(settings: SessionSettings) -> None:
    settings.start_with("application_name", "psql")
    settings.set("application_name", "other")
    settings.reset("application_name")
    assert settings.get("application_name") == "psql"
    settings.set("TimeZone", "Asia/Tokyo")
    settings.reset_all()
    assert settings.get("timezone") == "UTC"


def test_invented_settings_are_bounded(settings: SessionSettings) -> None:
    for number in range(limits.CUSTOM_SETTINGS_MAX):
        settings.set(f"app.s{number}", "x")
    settings.set("app.s0", "again")
    with pytest.raises(SqlError) as caught:
        settings.set("app.more", "x")
    assert caught.value.sqlstate == sqlstates.CONFIGURATION_LIMIT_EXCEEDED
    with pytest.raises(SqlError) as caught:
        settings.set("application_name", "x" * (limits.SETTING_VALUE_BYTES_MAX + 1))
    assert caught.value.sqlstate == sqlstates.PROGRAM_LIMIT_EXCEEDED


def test_options_of_the_start_up_packet() -> None:
    text = r"-c statement_timeout=5s -csearch_path=a\ b --application-name=x"
    assert parse_options(text) == [("statement_timeout", "5s"), ("search_path", "a b"), ("application_name", "x")]
    for bad in ("-d 5", "-c novalue"):
        with pytest.raises(SqlError) as caught:
            parse_options(bad)
        assert caught.value.severity == "FATAL"
