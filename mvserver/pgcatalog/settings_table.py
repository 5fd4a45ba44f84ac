"""pg_settings and the defaults that ``current_setting`` falls back on when a session has set nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mvserver import limits
from mvserver.pgcatalog.version import SERVER_VERSION, SERVER_VERSION_NUM

_STATEMENT = "Client Connection Defaults / Statement Behavior"
_LOCALE = "Client Connection Defaults / Locale and Formatting"
_PRESET = "Preset Options"

# by name: value, unit, category, type and context
_TABLE: dict[str, tuple[str, str | None, str, str, str]] = {
    "application_name": ("", None, "Reporting and Logging / What to Log", "string", "user"),
    "block_size": ("8192", None, _PRESET, "integer", "internal"),
    "bytea_output": ("hex", None, _STATEMENT, "enum", "user"),
    "client_encoding": ("UTF8", None, _LOCALE, "string", "user"),
    "client_min_messages": ("notice", None, _STATEMENT, "enum", "user"),
    "DateStyle": ("ISO, MDY", None, _LOCALE, "string", "user"),
    "default_table_access_method": ("heap", None, _STATEMENT, "string", "user"),
    "default_tablespace": ("", None, _STATEMENT, "string", "user"),
    "default_text_search_config": ("pg_catalog.english", None, _LOCALE, "string", "user"),
    "default_transaction_isolation": ("read committed", None, _STATEMENT, "enum", "user"),
    "default_transaction_read_only": ("off", None, _STATEMENT, "bool", "user"),
    "escape_string_warning": ("on", None, "Version and Platform Compatibility", "bool", "user"),
    "extra_float_digits": ("1", None, _LOCALE, "integer", "user"),
    "idle_in_transaction_session_timeout": ("0", "ms", _STATEMENT, "integer", "user"),
    "in_hot_standby": ("off", None, _PRESET, "bool", "internal"),
    "integer_datetimes": ("on", None, _PRESET, "bool", "internal"),
    "IntervalStyle": ("postgres", None, _LOCALE, "enum", "user"),
    "is_superuser": ("on", None, _PRESET, "bool", "internal"),
    "jit": ("off", None, "Query Tuning / Other Planner Options", "bool", "user"),
    "lc_collate": ("C.UTF-8", None, _PRESET, "string", "internal"),
    "lc_ctype": ("C.UTF-8", None, _PRESET, "string", "internal"),
    "lc_monetary": ("C.UTF-8", None, _LOCALE, "string", "user"),
    "lock_timeout": ("0", "ms", _STATEMENT, "integer", "user"),
    "max_connections": (str(limits.CONNECTIONS_MAX), None, "Connections and Authentication", "integer", "postmaster"),
    "max_identifier_length": (str(limits.IDENTIFIER_BYTES_MAX), None, _PRESET, "integer", "internal"),
    "max_index_keys": ("32", None, _PRESET, "integer", "internal"),
    "quote_all_identifiers": ("off", None, "Version and Platform Compatibility", "bool", "user"),
    "row_security": ("on", None, _STATEMENT, "bool", "user"),
    "search_path": ('"$user", public', None, _STATEMENT, "string", "user"),
    "server_encoding": ("UTF8", None, _PRESET, "string", "internal"),
    "server_version": (SERVER_VERSION, None, _PRESET, "string", "internal"),
    "server_version_num": (str(SERVER_VERSION_NUM), None, _PRESET, "integer", "internal"),
    "session_replication_role": ("origin", None, _STATEMENT, "enum", "superuser"),
    "standard_conforming_strings": ("on", None, "Version and Platform Compatibility", "bool", "user"),
    "statement_timeout": ("0", "ms", _STATEMENT, "integer", "user"),
    "synchronous_commit": ("on", None, "Write-Ahead Log / Settings", "enum", "user"),
    "TimeZone": ("UTC", None, _LOCALE, "string", "user"),
    "transaction_isolation": ("read committed", None, _STATEMENT, "enum", "user"),
    "transaction_read_only": ("off", None, _STATEMENT, "bool", "user"),
    "work_mem": ("4096", "kB", "Resource Usage / Memory", "integer", "user"),
    "xmloption": ("content", None, _STATEMENT, "enum", "user"),
}

DEFAULTS: Mapping[str, str] = {name.lower(): entry[0] for name, entry in _TABLE.items()}


def rows() -> Iterator[Mapping[str, Any]]:
    for name, (value, unit, category, kind, context) in _TABLE.items():
        yield {
            "name": name, "setting": value, "unit": unit, "category": category, "vartype": kind, "context": context,
            "source": "default", "boot_val": value, "reset_val": value, "pending_restart": False,
        }  # fmt: skip
