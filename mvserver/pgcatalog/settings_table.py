"""The answers of ``current_setting`` for settings that the session has left alone; a session tells of the others."""

from __future__ import annotations

from collections.abc import Mapping

from mvserver import limits
from mvserver.pgcatalog.version import SERVER_VERSION, SERVER_VERSION_NUM

DEFAULTS: Mapping[str, str] = {
    "application_name": "",
    "block_size": "8192",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "default_text_search_config": "pg_catalog.english",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "escape_string_warning": "on",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "on",
    "jit": "off",
    "lc_collate": "C.UTF-8",
    "lc_ctype": "C.UTF-8",
    "lc_monetary": "C.UTF-8",
    "lock_timeout": "0",
    "max_connections": str(limits.CONNECTIONS_MAX),
    "max_identifier_length": str(limits.IDENTIFIER_BYTES_MAX),
    "max_index_keys": "32",
    "quote_all_identifiers": "off",
    "row_security": "on",
    "search_path": '"$user", public',
    "server_encoding": "UTF8",
    "server_version": SERVER_VERSION,
    "server_version_num": str(SERVER_VERSION_NUM),
    "session_replication_role": "origin",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "synchronous_commit": "on",
    "timezone": "UTC",
    "transaction_isolation": "read committed",
    "transaction_read_only": "off",
    "work_mem": "4096",
    "xmloption": "content",
}
