"""The server's settings: one table, from which parsing, ``mvserver serve --help`` and the documentation are made.
Kinds of stores bring rows of their own.

A value comes from the default, then the TOML file, then an ``MVSERVER_…`` variable, then a flag: the later wins. A name
that is in no row is refused wherever it comes from, since a mistyped setting that is ignored is found in production.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mvserver import config_values as read
from mvserver import failpoints, limits, sqlstates
from mvserver.config_values import ENVIRONMENT_PREFIX, Row
from mvserver.errors import SqlError
from spark_sinks.kinds import KINDS

# the file's place, a secret that has no place in a file, and what tests say
_NO_SETTINGS = ("MVSERVER_CONFIG", "MVSERVER_SUPERUSER_PASSWORD", failpoints.VARIABLE, "MVSERVER_TEST_")


@dataclass(frozen=True)
class ServerSettings:
    """A field for each of the server's own rows, checked. Durations are seconds and sizes bytes; 0 s is no limit."""

    data_dir: Path
    host: str
    port: int
    authentication: str
    authentication_timeout: float
    password_encryption: str
    max_connections: int
    superuser_reserved_connections: int
    tls: str
    tls_certificate: Path | None
    tls_key: Path | None
    http_port: int | None
    http_cors_origins: tuple[str, ...]
    http_max_connections: int
    secrets_key_file: Path
    log_level: str
    spark_master: str
    spark_driver_memory: int
    spark_conf: tuple[tuple[str, str], ...]
    spark_class_archives: Path | None
    spark_start_timeout: float
    spark_restarts: int
    spark_answer_timeout: float
    duckdb_memory_limit: int
    query_memory_limit: int
    process_memory_limit: int
    duckdb_threads: int
    pull_threads: int
    finished_rows_memory: int
    store_config_dir: Path
    jar_dir: Path
    records_per_trigger: int
    max_record_size: int
    batch_timeout: float
    function_timeout: float
    function_memory_limit: int
    live_lane: str
    history_retention: float
    kafka_poll_interval: float
    source_check_interval: float
    read_while_filling_wait: float
    statement_timeout: float
    idle_in_transaction_timeout: float
    shutdown_timeout: float
    rewriter: str | None
    extensions: tuple[str, ...]
    stores: Mapping[str, Any]  # the values of the rows that the kinds of stores bring, by name


_OWN = (
    Row("data_dir", read.PATH, "mvserver-data", "Folder of the catalog, the views' rows and Spark's checkpoints."),
    Row("host", read.TEXT, "127.0.0.1", "Address to listen on; loopback only, as long as authentication is trust."),
    Row("port", read.PORT, "5432", "Port to listen on; 0 takes a free one."),
    Row("authentication", read.choice("trust", "scram-sha-256", "md5"), "trust",
        "How clients prove who they are: trust, scram-sha-256, or md5, which takes both kinds of stored passwords."),
    Row("authentication_timeout", read.POSITIVE_DURATION, f"{int(limits.AUTHENTICATION_TIMEOUT_S)}s",
        "How long a client may take to log in."),
    Row("password_encryption", read.choice("scram-sha-256", "md5"), "scram-sha-256",
        "How passwords are stored: default of the session setting of this name."),
    Row("max_connections", read.COUNT, str(limits.CONNECTIONS_MAX),
        "Clients at the same time; further ones get 53300."),
    Row("superuser_reserved_connections", read.COUNT_OR_ZERO, str(limits.SUPERUSER_RESERVED_CONNECTIONS),
        "How many of these connections are kept for superusers."),
    Row("tls", read.choice("off", "on", "required"), "off",
        "Whether connections are encrypted: off, on where the client asks for it, or required."),
    Row("tls_certificate", read.OPTIONAL_PATH, "", "The server's certificate in PEM, with its chain after it."),
    Row("tls_key", read.OPTIONAL_PATH, "", "The certificate's private key in PEM, without a passphrase."),
    Row("http_port", read.OPTIONAL_PORT, "",
        "Port of the HTTP front end, on the same address; none where it is empty, and 0 takes a free one."),
    Row("http_cors_origins", read.ORIGINS, "",
        "Origins whose pages may read answers over HTTP, separated by commas, or *; none where it is empty."),
    Row("http_max_connections", read.COUNT, str(limits.HTTP_CONNECTIONS_MAX),
        "HTTP connections at the same time; further ones get the status 503."),
    Row("secrets_key_file", read.PATH, "{data_dir}/secrets.key",
        "The key by which properties of stores are sealed in the catalog. It is made where there is none."),
    Row("log_level", read.LOG_LEVEL, "info", "What is logged to standard error: debug, info, warning or error."),
    Row("spark_master", read.TEXT, "local[*]", "Where Spark runs: local[*], or the address of a cluster."),
    Row("spark_driver_memory", read.SIZE, "2GB", "Heap of Spark's driver, which is a child of the server."),
    Row("spark_conf", read.PAIRS, "", "Further Spark settings, as key=value separated by semicolons; a table in TOML."),
    Row("spark_class_archives", read.OPTIONAL_PATH, "~/.cache/mvserver" if read.has_home() else "",
        "Folder of archives of Spark's classes, with which it starts sooner; none are made or used where it is empty."),
    Row("spark_start_timeout", read.DURATION, "120s", "How long a statement that needs Spark waits for it to start."),
    Row("spark_restarts", read.COUNT_OR_ZERO, "20",
        "How often Spark is started again within an hour when it has ended; 0 never starts it again."),
    Row("spark_answer_timeout", read.DURATION, "60s",
        "After how long without an answer Spark is ended and started again; 0 waits for ever."),
    Row("duckdb_memory_limit", read.SIZE, "2GB", "Memory for the views' rows and pull queries; the rest is on disk."),
    Row("query_memory_limit", read.SIZE, "1GB",
        "Memory of one pull query that cannot go to disk, such as the items of array_agg; above it is ended (53200)."),
    Row("process_memory_limit", read.SIZE_OR_ZERO, "0",
        "Memory of the server's process, without Spark; 0 is the three other limits together and 1 GB."),
    Row("duckdb_threads", read.COUNT_OR_ZERO, "0", "Threads of DuckDB; 0 is one per core."),
    Row("pull_threads", read.COUNT, "16", "Pull queries at work in DuckDB at the same time; further ones take turns."),
    Row("finished_rows_memory", read.SIZE_OR_ZERO, "64MB",
        "Memory for rows of views that are looked up often, kept ready beside DuckDB; 0 keeps none."),
    Row("store_config_dir", read.PATH, "{data_dir}/store-config",
        "Folder of the files that the store property 'config_file' may name."),
    Row("jar_dir", read.PATH, "{data_dir}/jars", "Folder in which jars are looked for before the network is asked."),
    Row("records_per_trigger", read.COUNT, "600000", "Most records of one micro-batch, fewer where they are large."),
    Row("max_record_size", read.RECORD_SIZE, "16MB",
        "Largest record that is read from a topic or a file of lines; larger ones are rejected."),
    Row("batch_timeout", read.POSITIVE_DURATION, "60s",
        "How long Spark may evaluate a batch before it is tried with fewer records, and at last by each view alone."),
    Row("function_timeout", read.POSITIVE_DURATION, f"{int(limits.FUNCTION_TIMEOUT_S)}s",
        "How long one call of a function of one's own may take; its property 'timeout.millis' may ask for less."),
    Row("function_memory_limit", read.SIZE, f"{limits.FUNCTION_MEMORY_BYTES // 2**20}MB",
        "Memory of a process that runs a function of one's own; its property 'memory.mb' may ask for less."),
    Row("live_lane", read.choice("auto", "off"), "auto",
        "Whether Kafka topics whose views have caught up are read by tasks that go on, as records come: auto or off."),
    Row("history_retention", read.POSITIVE_DURATION, f"{int(limits.HISTORY_RETENTION_S)}s",
        "How long the changes of a view that is watched are kept, and go on being kept when nobody watches any more."),
    Row("kafka_poll_interval", read.POSITIVE_DURATION, "100ms", "How often an idle source is asked for new records."),
    Row("source_check_interval", read.POSITIVE_DURATION, "3s", "How often each source's health and end are looked at."),
    Row("read_while_filling_wait", read.DURATION, f"{int(limits.READ_WHILE_FILLING_WAIT_S)}s",
        "How long a SELECT waits for a view that is still being filled: default of mv.filling_timeout; 0 is no limit."),
    Row("statement_timeout", read.DURATION, "0s", "Default of the session setting of this name; 0 is no limit."),
    Row("idle_in_transaction_timeout", read.DURATION, f"{int(limits.IDLE_IN_TRANSACTION_TIMEOUT_S)}s",
        "Default of the session setting idle_in_transaction_session_timeout; 0 is no limit."),
    Row("shutdown_timeout", read.DURATION, "10s", "How long statements may finish after SIGTERM."),
    Row("rewriter", read.IMPORT, "", "A buenavista Rewriter that sees each SELECT, as package.module:Name."),
    Row("extensions", read.IMPORTS, "",
        "buenavista Extensions, as package.module:Name separated by commas; a list in TOML."),
)  # fmt: skip


def _table() -> tuple[Row, ...]:
    """The server's own rows, and those of the kinds of stores in the places that they name."""
    rows = list(_OWN)
    for row in (row for kind in KINDS for row in kind.settings):
        names = [known.name for known in rows]
        rows.insert(names.index(row.after) + 1 if row.after is not None else len(rows), row)
    return tuple(rows)


TABLE = _table()
_BY_NAME = {row.name: row for row in TABLE}
_OF_STORES = {row.name for row in TABLE} - {row.name for row in _OWN}


def load(
    flags: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    config_file: Path | None = None,
) -> ServerSettings:
    """The settings in force; F0000 for an unknown name, 22023 for a value that does not fit.

    ``config_file`` may also come from the variable MVSERVER_CONFIG.
    """
    variables = os.environ if environment is None else environment
    if config_file is None and variables.get(ENVIRONMENT_PREFIX + "CONFIG"):
        config_file = Path(variables[ENVIRONMENT_PREFIX + "CONFIG"])
    chosen: dict[str, tuple[str, Any]] = {row.name: ("default", row.default) for row in TABLE}
    if config_file is not None:
        chosen.update(_from_file(config_file))
    chosen.update(_from_environment(variables))
    chosen.update(_from_flags(flags or {}))
    data_dir = _value(_BY_NAME["data_dir"], *chosen["data_dir"])
    values: dict[str, Any] = {"data_dir": data_dir.resolve()}
    for row in TABLE:
        if row.name != "data_dir":
            origin, raw = chosen[row.name]
            if origin == "default":
                raw = raw.replace("{data_dir}", str(values["data_dir"]))
            values[row.name] = _value(row, origin, raw)
    stores = {name: value for name, value in values.items() if name in _OF_STORES}
    settings = ServerSettings(**{name: value for name, value in values.items() if name not in stores}, stores=stores)
    if settings.authentication == "trust":
        check_host(settings.host)
    _check_tls(settings)
    _check_memory(settings)
    return settings


def check_host(host: str) -> None:
    """Only loopback, where whoever reaches the port is let in as any role."""
    try:
        addresses = {info[4][0] for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)} if host else set()
    except OSError as error:
        raise SqlError(
            sqlstates.CONFIG_FILE_ERROR, f'host "{host}" is not known', detail=f"{error.strerror}."
        ) from error
    if not addresses or not all(ipaddress.ip_address(str(a).partition("%")[0]).is_loopback for a in addresses):
        raise SqlError(
            sqlstates.CONFIG_FILE_ERROR,
            f'cannot listen on "{host}": it is not a loopback address',
            detail="Authentication is trust, so that whoever reaches the port could read and change everything.",
            hint="Listen on 127.0.0.1 or ::1, or set authentication to scram-sha-256.",
        )


def _check_tls(settings: ServerSettings) -> None:
    missing = [name for name in ("tls_certificate", "tls_key") if getattr(settings, name) is None]
    if settings.tls != "off" and missing:
        raise SqlError(
            sqlstates.CONFIG_FILE_ERROR,
            f'setting "{missing[0]}" is missing',
            detail=f"It is needed since the setting tls is {settings.tls}.",
        )


def _check_memory(settings: ServerSettings) -> None:
    """A process that may have less than its parts would be above its limit while each of them is within its own."""
    wanted = settings.process_memory_limit
    if wanted and wanted < memory_of_parts(settings):
        raise SqlError(
            sqlstates.CONFIG_FILE_ERROR,
            "process_memory_limit is less than the other memory limits together",
            detail=f"It is {wanted // 2**20} MiB; duckdb_memory_limit, query_memory_limit and finished_rows_memory "
            f"are {memory_of_parts(settings) // 2**20} MiB together.",
            hint="Lower those, raise process_memory_limit, or set it to 0.",
        )


def memory_of_parts(settings: ServerSettings) -> int:
    """Bytes that the server may take by its other limits."""
    return settings.duckdb_memory_limit + settings.query_memory_limit + settings.finished_rows_memory


def describe() -> Sequence[tuple[str, str, str, str, str]]:
    """(setting, variable, type, default, what it does): the table of the documentation."""
    return [(row.name, row.variable, row.type.label, row.default, row.doc) for row in TABLE]


def _value(row: Row, origin: str, raw: object) -> Any:
    try:
        return row.type.read(raw)
    except ValueError as error:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'invalid value for setting "{row.name}": {error}',
            detail=f"It comes from {origin}.",
        ) from error


def _from_file(path: Path) -> dict[str, tuple[str, Any]]:
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise SqlError(
            sqlstates.CONFIG_FILE_ERROR, f"configuration file {path} cannot be read", detail=f"{error.strerror}."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SqlError(
            sqlstates.CONFIG_FILE_ERROR, f"configuration file {path} is not TOML", detail=f"{error}."
        ) from error
    for name in content:
        if name not in _BY_NAME:
            raise _unknown(f'unknown setting "{name}"', f"It comes from {path}.")
    return {name: (str(path), value) for name, value in content.items()}


def _from_environment(variables: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    names = {row.variable: row.name for row in TABLE}
    found: dict[str, tuple[str, Any]] = {}
    for variable, value in variables.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable.startswith(_NO_SETTINGS):
            continue
        if variable not in names:
            raise _unknown(f'unknown setting "{variable}"', "It comes from the environment.")
        found[names[variable]] = (f"the variable {variable}", value)
    return found


def _from_flags(flags: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    for name in flags:
        if name not in _BY_NAME:
            raise _unknown(f'unknown setting "{name}"', "It comes from the command line.")
    return {name: (f"the flag {_BY_NAME[name].flag}", value) for name, value in flags.items()}


def _unknown(message: str, detail: str) -> SqlError:
    return SqlError(
        sqlstates.CONFIG_FILE_ERROR,
        message,
        detail=detail,
        hint="Settings are " + ", ".join(row.name for row in TABLE) + ".",
    )


if {row.name for row in _OWN} != {field.name for field in fields(ServerSettings)} - {"stores"}:
    raise AssertionError("the table of settings and the class ServerSettings differ")
