"""PostgreSQL's settings that clients ask for or set, and this server's own: one row each.

A setting is here because a client in use sends or shows it. What a setting promises is kept: a value that would change
an answer this server always gives in one way is refused by its checker, and settings that only steer PostgreSQL's
planner or storage are accepted and have no effect.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from mvserver import limits
from mvserver.pgcatalog.version import SERVER_VERSION, SERVER_VERSION_NUM
from mvserver.session.settings import setting_values as check

OWN_PREFIX = "mv"


class Change(enum.Enum):
    """When a setting may change, as PostgreSQL's pg_settings.context has it."""

    USER = "user"
    SUPERUSER = "superuser-backend"
    BACKEND = "backend"
    SERVER = "postmaster"
    NEVER = "internal"


@dataclass(frozen=True)
class Setting:
    name: str  # as SHOW ALL and ParameterStatus spell it
    default: str
    description: str
    check: check.Checker = check.text
    change: Change = Change.USER
    reported: bool = False


_INT_MAX = 2_147_483_647


def _internal(name: str, default: str, description: str, *, reported: bool = False) -> Setting:
    return Setting(name, default, description, change=Change.NEVER, reported=reported)


def _accepted(name: str, default: str, checker: check.Checker) -> Setting:
    return Setting(name, default, "Accepted for compatibility; has no effect.", checker)


_ROWS: tuple[Setting, ...] = (
    # what this server does
    Setting("application_name", "", "Sets the application name to be reported in statistics and logs.", reported=True),
    Setting("client_encoding", "UTF8", "Sets the client's character set encoding.", check.client_encoding,
            reported=True),
    Setting("DateStyle", "ISO, MDY", "Sets the display format for date and time values.", check.date_style,
            reported=True),
    Setting("IntervalStyle", "postgres", "Sets the display format for interval values.",
            check.only("postgres", "postgres_verbose", "sql_standard", "iso_8601"), reported=True),
    Setting("TimeZone", "UTC", "Sets the time zone for displaying and interpreting time stamps.", check.time_zone,
            reported=True),
    Setting("search_path", '"$user", public', "Sets the schema search order for names that are not schema-qualified.",
            check.search_path),
    Setting("statement_timeout", "0", "Sets the maximum allowed duration of any statement.", check.duration),
    Setting("idle_in_transaction_session_timeout", check.duration("", f"{int(limits.IDLE_IN_TRANSACTION_TIMEOUT_S)}s"),
            "Sets the maximum allowed idle time between queries, when in a transaction.", check.duration),
    Setting("idle_session_timeout", "0",
            "Sets the maximum allowed idle time between queries, when not in a transaction.", check.duration),
    Setting("default_transaction_isolation", "read committed",
            "Sets the transaction isolation level of each new transaction.", check.isolation),
    Setting("default_transaction_read_only", "off", "Sets the default read-only status of new transactions.",
            check.boolean, reported=True),
    Setting("default_transaction_deferrable", "off", "Sets the default deferrable status of new transactions.",
            check.boolean),
    Setting("transaction_isolation", "read committed", "Sets the current transaction's isolation level.",
            check.isolation),
    Setting("transaction_read_only", "off", "Sets the current transaction's read-only status.", check.boolean),
    Setting("transaction_deferrable", "off", "Whether to defer a read-only serializable transaction.", check.boolean),
    Setting("password_encryption", "scram-sha-256", "Chooses the algorithm for encrypting passwords.",
            check.choice("scram-sha-256", "md5")),
    Setting("mv.read_while_filling", "off",
            "Lets a SELECT read a view whose history is still being filled, with a notice, instead of waiting.",
            check.boolean),
    Setting("mv.filling_timeout", check.duration("", f"{int(limits.READ_WHILE_FILLING_WAIT_S)}s"),
            "Sets how long a SELECT waits for a view that is still being filled.", check.duration),
    Setting("mv.freshness", "any",
            "Sets how fresh the views of a SELECT must be: any, latest (all that their sources have when it arrives), "
            "or a greatest age.", check.freshness),
    Setting("mv.freshness_timeout", check.duration("", f"{int(limits.FRESHNESS_WAIT_S)}s"),
            "Sets how long a SELECT waits for views that are not as fresh as mv.freshness asks.", check.duration),
    Setting("dialect", "postgres",
            "Sets the dialect of streaming programs: with lenses a text that begins as a program of it is one.",
            check.choice("postgres", "lenses")),
    Setting("mv.stream_reads", "live",
            "Sets what a SELECT from a stream reads: live (its rows as they come) or bounded (what it has now).",
            check.choice("live", "bounded")),
    Setting("mv.as_of", "",
            "Sets the time, or the token, at which a SELECT reads materialized views; empty is now.", check.as_of),
    Setting("mv.fetch_timeout", "0",
            "Sets how long FETCH waits for the first row of a push query's cursor; 0 is as long as it takes.",
            check.duration),
    # fixed answers
    Setting("standard_conforming_strings", "on", "Causes '...' strings to treat backslashes literally.",
            check.only_on, reported=True),
    Setting("bytea_output", "hex", "Sets the output format for bytea.", check.only("hex", "escape")),
    Setting("extra_float_digits", "1", "Sets the number of digits displayed for floating-point values.",
            check.shortest_float_digits),
    Setting("escape_string_warning", "on", "Warn about backslash escapes in ordinary string literals.",
            check.boolean),
    Setting("quote_all_identifiers", "off", "Quote all identifiers when generating SQL fragments.", check.only_off),
    Setting("transform_null_equals", "off", 'Treats "expr=NULL" as "expr IS NULL".', check.only_off),
    Setting("row_security", "on", "Enable row security.", check.boolean),
    Setting("xmloption", "content", "Sets the form of XML data.", check.choice("content", "document")),
    Setting("client_min_messages", "notice", "Sets the message levels that are sent to the client.",
            check.choice("debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error")),
    _internal("server_version", SERVER_VERSION, "Shows the server version.", reported=True),
    _internal("server_version_num", str(SERVER_VERSION_NUM), "Shows the server version as an integer."),
    _internal("server_encoding", "UTF8", "Shows the server (database) character set encoding.", reported=True),
    _internal("integer_datetimes", "on", "Shows whether datetimes are integer based.", reported=True),
    _internal("is_superuser", "off", "Shows whether the current user is a superuser.", reported=True),
    _internal("session_authorization", "", "Shows the session user name.", reported=True),
    _internal("in_hot_standby", "off", "Shows whether hot standby is currently active.", reported=True),
    _internal("max_identifier_length", str(limits.IDENTIFIER_BYTES_MAX), "Shows the maximum identifier length."),
    _internal("max_index_keys", "32", "Shows the maximum number of index keys."),
    _internal("max_function_args", "100", "Shows the maximum number of function arguments."),
    _internal("block_size", "8192", "Shows the size of a disk block."),
    _internal("lc_collate", "C.UTF-8", "Shows the collation order locale."),
    _internal("lc_ctype", "C.UTF-8", "Shows the character classification and case conversion locale."),
    _internal("data_checksums", "off", "Shows whether data checksums are turned on."),
    _internal("wal_block_size", "8192", "Shows the block size in the write ahead log."),
    Setting("max_connections", str(limits.CONNECTIONS_MAX), "Sets the maximum number of concurrent connections.",
            change=Change.SERVER),
    Setting("superuser_reserved_connections", "0", "Sets the number of connection slots reserved for superusers.",
            change=Change.SERVER),
    Setting("listen_addresses", "localhost", "Sets the host name or IP addresses to listen to.",
            change=Change.SERVER),
    Setting("wal_level", "replica", "Sets the level of information written to the WAL.", change=Change.SERVER),
    Setting("ssl", "off", "Enables SSL connections.", change=Change.SERVER),
    # accepted
    _accepted("lc_messages", "C.UTF-8", check.text),
    _accepted("lc_monetary", "C.UTF-8", check.text),
    _accepted("lc_numeric", "C.UTF-8", check.text),
    _accepted("lc_time", "C.UTF-8", check.text),
    _accepted("lock_timeout", "0", check.duration),
    _accepted("deadlock_timeout", "1s", check.duration),
    _accepted("synchronous_commit", "on", check.choice("local", "remote_write", "remote_apply", "on", "off")),
    _accepted("timezone_abbreviations", "Default", check.text),
    _accepted("default_text_search_config", "pg_catalog.english", check.text),
    _accepted("default_tablespace", "", check.text),
    _accepted("temp_tablespaces", "", check.text),
    _accepted("default_table_access_method", "heap", check.text),
    _accepted("check_function_bodies", "on", check.boolean),
    _accepted("jit", "off", check.boolean),
    _accepted("geqo", "on", check.boolean),
    _accepted("geqo_threshold", "12", check.integer(2, _INT_MAX)),
    _accepted("geqo_effort", "5", check.integer(1, 10)),
    _accepted("work_mem", "4MB", check.memory(64)),
    _accepted("maintenance_work_mem", "64MB", check.memory(1024)),
    _accepted("temp_buffers", "8MB", check.memory(100, _INT_MAX // 2, "8kB")),
    _accepted("effective_cache_size", "4GB", check.memory(1, unit="8kB")),
    *(
        _accepted(name, default, check.real(0, sys.float_info.max))
        for name, default in (
            ("seq_page_cost", "1"), ("random_page_cost", "4"), ("cpu_tuple_cost", "0.01"),
            ("cpu_index_tuple_cost", "0.005"), ("cpu_operator_cost", "0.0025"), ("parallel_setup_cost", "1000"),
            ("parallel_tuple_cost", "0.1"),
        )
    ),
    _accepted("cursor_tuple_fraction", "0.1", check.real(0, 1)),
    _accepted("plan_cache_mode", "auto", check.choice("auto", "force_generic_plan", "force_custom_plan")),
    _accepted("max_parallel_workers", "8", check.integer(0, 1024)),
    _accepted("max_parallel_workers_per_gather", "2", check.integer(0, 1024)),
    _accepted("max_parallel_maintenance_workers", "2", check.integer(0, 1024)),
    _accepted("force_parallel_mode", "off", check.choice("off", "on", "regress")),
    _accepted("constraint_exclusion", "partition", check.choice("partition", "on", "off")),
    _accepted("from_collapse_limit", "8", check.integer(1, _INT_MAX)),
    _accepted("join_collapse_limit", "8", check.integer(1, _INT_MAX)),
    *(
        _accepted(f"enable_{name}", "on", check.boolean)
        for name in ("bitmapscan", "gathermerge", "hashagg", "hashjoin", "incremental_sort", "indexscan",
                     "indexonlyscan", "material", "memoize", "mergejoin", "nestloop", "parallel_append",
                     "parallel_hash", "seqscan", "sort", "tidscan")
    ),
    _accepted("log_statement", "none", check.choice("none", "ddl", "mod", "all")),
    _accepted("log_min_duration_statement", "-1", check.text),
    _accepted("log_min_messages", "warning",
              check.choice("debug5", "debug4", "debug3", "debug2", "debug1", "info", "notice", "warning", "error",
                           "log", "fatal", "panic")),
    _accepted("vacuum_cost_delay", "0", check.text),
    _accepted("tcp_keepalives_idle", "0", check.integer(0, _INT_MAX)),
    _accepted("tcp_keepalives_interval", "0", check.integer(0, _INT_MAX)),
    _accepted("tcp_keepalives_count", "0", check.integer(0, _INT_MAX)),
    _accepted("gin_fuzzy_search_limit", "0", check.integer(0, _INT_MAX)),
    _accepted("session_replication_role", "origin", check.choice("origin", "replica", "local")),
    _accepted("ssl_renegotiation_limit", "0", check.integer(0, 0)),
    _accepted("default_with_oids", "off", check.only_off),
    _accepted("array_nulls", "on", check.boolean),
    _accepted("backslash_quote", "safe_encoding", check.choice("safe_encoding", "on", "off")),
    _accepted("default_toast_compression", "pglz", check.choice("pglz", "lz4")),
    _accepted("track_activities", "on", check.boolean),
)  # fmt: skip

SETTINGS: Mapping[str, Setting] = {row.name.lower(): row for row in _ROWS}

ALIASES: Mapping[str, str] = {
    "time zone": "timezone",
    "names": "client_encoding",
    "transaction isolation level": "transaction_isolation",
    "session authorization": "session_authorization",
    "schema": "search_path",
}
