"""Settings: where they come from, which wins, what is refused and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvserver import cli, config
from mvserver.config import TABLE, load
from mvserver.errors import SqlError


def refused(**arguments: object) -> SqlError:
    with pytest.raises(SqlError) as raised:
        load(**{"environment": {}, **arguments})  # type: ignore[arg-type]
    return raised.value


def test_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load(environment={})
    data = tmp_path / "mvserver-data"
    assert (settings.data_dir, settings.host, settings.port) == (data, "127.0.0.1", 5432)
    assert settings.stores["file_roots"] == (data / "files",)
    assert (settings.store_config_dir, settings.jar_dir) == (data / "store-config", data / "jars")
    assert settings.spark_master == "local[*]"
    assert settings.idle_in_transaction_timeout == 60.0


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mvserver.toml"
    file.write_text('port = 1\nrecords_per_trigger = 2\nsource_check_interval = "100ms"\nduckdb_memory_limit = "1GB"\n')
    variables = {"MVSERVER_PORT": "3", "MVSERVER_RECORDS_PER_TRIGGER": "4", "PATH": "/bin"}
    settings = load({"port": "5"}, variables, file)
    assert (settings.port, settings.records_per_trigger, settings.source_check_interval) == (5, 4, 0.1)
    assert settings.duckdb_memory_limit == 1024**3
    others = {"MVSERVER_FAILPOINTS": "a=kill", "MVSERVER_TEST_SEED": "1"}
    assert load({}, {"MVSERVER_CONFIG": str(file), **others}).port == 1


def test_paths_follow_the_data_directory(tmp_path: Path) -> None:
    settings = load({"data_dir": str(tmp_path / "x")}, {})
    assert settings.stores["file_roots"] == (tmp_path / "x" / "files",)
    settings = load({"file_roots": f"{tmp_path}/a:{tmp_path}/b"}, {})
    assert settings.stores["file_roots"] == (tmp_path / "a", tmp_path / "b")
    file = tmp_path / "c.toml"
    file.write_text(f"file_roots = ['{tmp_path}/a, b']\n[spark_conf]\n'spark.ui.enabled' = true\n'spark.x' = 2\n")
    settings = load({}, {}, file)
    assert settings.stores["file_roots"] == (tmp_path / "a, b",)
    assert settings.spark_conf == (("spark.ui.enabled", "true"), ("spark.x", "2"))


def test_plugins_are_named_by_module_and_name(tmp_path: Path) -> None:
    settings = load({"rewriter": "a.b:C", "extensions": "a:B, c.d:E"}, {})
    assert (settings.rewriter, settings.extensions) == ("a.b:C", ("a:B", "c.d:E"))
    assert (load({}, {}).rewriter, load({}, {}).extensions) == (None, ())
    file = tmp_path / "c.toml"
    file.write_text("extensions = ['a:B', 'c.d:E']\n")
    assert load({}, {}, file).extensions == ("a:B", "c.d:E")


def test_unknown_settings_are_refused_by_name_wherever_they_come_from(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("prot = 5432\n")
    error = refused(config_file=file)
    assert (error.sqlstate, error.message) == ("F0000", 'unknown setting "prot"')
    assert error.detail == f"It comes from {file}."
    assert refused(environment={"MVSERVER_PROT": "1"}).message == 'unknown setting "MVSERVER_PROT"'
    assert refused(flags={"prot": "1"}).message == 'unknown setting "prot"'
    assert "data_dir, host, port" in (error.hint or "")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("port", "65536", "65536 is not between 0 and 65535"),
        ("port", "x", "'x' is not a whole number"),
        ("port", "-1", "'-1' is not a whole number"),
        ("records_per_trigger", "0", "0 is not 1 or more"),
        ("source_check_interval", "0", "'0' is less than 1ms"),
        ("rewriter", "a.b", "'a.b' is not of the form package.module:Name"),
        ("extensions", "a:B,c", "'c' is not of the form package.module:Name"),
        ("shutdown_timeout", "5 parsecs", "'5 parsecs' is not a duration such as 500ms, 30s, 5min or 1h"),
        ("duckdb_memory_limit", "much", "'much' is not a size such as 512MB or 2GB"),
        ("duckdb_memory_limit", "0GB", "'0GB' is not a size such as 512MB or 2GB"),
        ("log_level", "loud", "'loud' is not one of debug, info, warning, error"),
        ("spark_conf", "a=1;b", "'b' is not key=value"),
        ("spark_master", "  ", "'  ' is not a text"),
    ],
)
def test_values_that_do_not_fit_are_refused_with_their_origin(name: str, value: str, message: str) -> None:
    error = refused(environment={f"MVSERVER_{name.upper()}": value})
    assert (error.sqlstate, error.message) == ("22023", f'invalid value for setting "{name}": {message}')
    assert error.detail == f"It comes from the variable MVSERVER_{name.upper()}."


def test_a_process_has_room_for_what_its_parts_may_take() -> None:
    parts = {"duckdb_memory_limit": "1GB", "query_memory_limit": "512MB", "finished_rows_memory": "64MB"}
    error = refused(flags={**parts, "process_memory_limit": "1599MB"})
    assert (error.sqlstate, error.message) == (
        "F0000",
        "process_memory_limit is less than the other memory limits together",
    )
    assert error.detail == (
        "It is 1599 MiB; duckdb_memory_limit, query_memory_limit and finished_rows_memory are 1600 MiB together."
    )
    assert load({**parts, "process_memory_limit": "1600MB"}, {}).process_memory_limit == 1600 * 2**20
    assert load({**parts, "process_memory_limit": "0"}, {}).process_memory_limit == 0


def test_files_that_cannot_be_read_or_are_not_toml(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    assert refused(config_file=missing).message == f"configuration file {missing} cannot be read"
    file = tmp_path / "c.toml"
    file.write_text("port = = 1")
    assert refused(config_file=file).message == f"configuration file {file} is not TOML"
    file.write_text("port = true")
    assert refused(config_file=file).message == 'invalid value for setting "port": True is not a whole number'


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", ""])
def test_only_loopback_is_listened_on(host: str) -> None:
    if not host:
        assert refused(flags={"host": host}).sqlstate == "22023"
        return
    error = refused(flags={"host": host})
    assert (error.sqlstate, error.message) == ("F0000", f'cannot listen on "{host}": it is not a loopback address')


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_loopback_in_its_spellings(host: str) -> None:
    assert load({"host": host}, {}).host == host


def test_with_passwords_any_address_is_listened_on() -> None:
    settings = load({"host": "0.0.0.0", "authentication": "scram-sha-256"}, {})
    assert (settings.host, settings.authentication, settings.tls) == ("0.0.0.0", "scram-sha-256", "off")
    assert refused(flags={"host": "0.0.0.0", "authentication": "password"}).message == (
        "invalid value for setting \"authentication\": 'password' is not one of trust, scram-sha-256, md5"
    )


def test_tls_needs_its_files(tmp_path: Path) -> None:
    error = refused(flags={"tls": "required", "tls_certificate": "x.crt"})
    assert (error.sqlstate, error.message) == ("F0000", 'setting "tls_key" is missing')
    file = tmp_path / "c.toml"
    file.write_text(f"tls = true\ntls_certificate = '{tmp_path}/x.crt'\ntls_key = '{tmp_path}/x.key'\n")
    settings = load({}, {}, file)
    assert (settings.tls, settings.tls_certificate, settings.tls_key) == ("on", tmp_path / "x.crt", tmp_path / "x.key")
    assert load({}, {}).tls_key is None


def test_the_superusers_password_is_no_setting() -> None:
    load({}, {"MVSERVER_SUPERUSER_PASSWORD": "hush"})


def test_help_and_documentation_have_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["serve", "--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert all(row.flag in told for row in TABLE)
    assert [row[1] for row in config.describe()] == [row.variable for row in TABLE]
    assert len({row.name for row in TABLE}) == len(TABLE)


def test_the_program_says_what_is_wrong_and_ends_with_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MVSERVER_CONFIG", raising=False)
    assert cli.main(["serve", "--host", "192.0.2.1"]) == 2
    told = capsys.readouterr().err
    assert told.startswith('mvserver: cannot listen on "192.0.2.1": it is not a loopback address\nDETAIL:  Authentic')
    with pytest.raises(SystemExit) as ended:
        cli.main(["serve", "--prot", "1"])
    assert ended.value.code == 2


def test_version_and_check(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["version"]) == 0
    assert capsys.readouterr().out == f"mvserver {cli.version()}\n"
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"mvserver {cli.version()}\n")
    assert cli.main(["check", "--data-dir", str(tmp_path)]) in (0, 1)
    told = capsys.readouterr().out
    assert "Python package duckdb 2.0" in told
    assert f"data folder {tmp_path}" in told
    assert "jar kafka-clients-3.9.2.jar" in told
