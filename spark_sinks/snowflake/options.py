"""The options of a store of TYPE SNOWFLAKE: an account, who logs in and how, and where tables lie by default.

Only properties that are known here reach the client.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.property_values import configured_file, refuse_unknown, stripped
from spark_sinks.snowflake.names import TableName, folded, identifier
from spark_sinks.store_kind import REGION

ACCOUNT, USERNAME, PASSWORD = "snowflake.account_id", "snowflake.username", "snowflake.password"
KEY_FILE, KEY, PASSPHRASE = "snowflake.client.key_file", "snowflake.client.key", "snowflake.client.key_passphrase"
ROLE, WAREHOUSE = "snowflake.role_name", "snowflake.warehouse_name"
DATABASE, SCHEMA, TABLE = "snowflake.db.name", "snowflake.schema.name", "snowflake.table.name"
CLOUD_REGION = "snowflake.cloud.region"  # taken since statements of the dialect have it: the address says it
SECRET_KEYS = (PASSWORD, KEY, PASSPHRASE)
_ACCEPTED = (
    "type", "uris", ACCOUNT, USERNAME, PASSWORD, KEY_FILE, KEY, PASSPHRASE, ROLE, WAREHOUSE, DATABASE, SCHEMA,
    CLOUD_REGION, *REGION,
)  # fmt: skip
_ACCOUNT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){0,3}")
_CLOUD = ".snowflakecomputing.com"
_URIS = "It is https://account.snowflakecomputing.com, or the address of a server that stands for it."
_DEFAULT_SCHEMA = "PUBLIC"


@dataclass(frozen=True)
class SnowflakeOptions:
    """One of ``password``, ``key`` and ``key_file`` is there. Names are as Snowflake keeps them."""

    account: str
    protocol: str
    host: str
    port: int
    user: str
    password: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    key_file: Path | None = None
    passphrase: str | None = field(default=None, repr=False)
    role: str | None = None
    warehouse: str | None = None
    database: str | None = None
    schema: str | None = None

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any], key_folders: Sequence[Path]) -> SnowflakeOptions:
        """Checks a store's properties; 22023 for what is wrong in them, 42501 for a key that lies in no configured
        folder."""
        refuse_unknown("SNOWFLAKE", properties, _ACCEPTED)
        texts = {key: stripped(key, value) for key, value in properties.items()}
        protocol, host, port = _address(texts)
        if USERNAME not in texts:
            raise _wrong(f'a store of type SNOWFLAKE needs the property "{USERNAME}"')
        _check_login(texts)
        key_file = texts.get(KEY_FILE)
        names = {key: identifier(key, texts[key]) for key in (ROLE, WAREHOUSE, DATABASE, SCHEMA) if key in texts}
        return cls(
            account=_account(texts, host),
            protocol=protocol,
            host=host,
            port=port,
            user=texts[USERNAME],
            password=texts.get(PASSWORD),
            key=texts.get(KEY),
            key_file=None if key_file is None else configured_file(KEY_FILE, _attached(key_file), key_folders),
            passphrase=texts.get(PASSPHRASE),
            role=names.get(ROLE),
            warehouse=names.get(WAREHOUSE),
            database=names.get(DATABASE),
            schema=names.get(SCHEMA),
        )

    def table_name(self, given: Mapping[str, str], relation: str) -> TableName:
        """By the properties of a table; what they do not say, the store does."""
        names = {key: identifier(key, given[key]) for key in (DATABASE, SCHEMA, TABLE) if key in given}
        database = names.get(DATABASE, self.database)
        if database is None:
            raise _wrong(f"a table needs a database: give it or the store '{DATABASE}'")
        schema = names.get(SCHEMA, self.schema or _DEFAULT_SCHEMA)
        return TableName(database, schema, names.get(TABLE, folded(relation)))


def _address(texts: Mapping[str, str]) -> tuple[str, str, int]:
    uri = texts.get("uris")
    if uri is None:
        if ACCOUNT not in texts:
            raise _wrong(f'a store of type SNOWFLAKE needs the property "uris" or "{ACCOUNT}"', _URIS)
        return "https", f"{_checked_account(texts[ACCOUNT])}{_CLOUD}", 443
    parts = urlsplit(uri if "://" in uri else f"https://{uri}")
    plain = parts.scheme in ("http", "https") and parts.hostname and parts.path in ("", "/")
    if not plain or "@" in parts.netloc or parts.query or parts.fragment:
        raise _wrong('property "uris" is not the address of an account', _URIS)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise _wrong('property "uris" is not the address of an account', _URIS) from error
    return parts.scheme, str(parts.hostname), port


def _account(texts: Mapping[str, str], host: str) -> str:
    if ACCOUNT in texts:
        return _checked_account(texts[ACCOUNT])
    if host.endswith(_CLOUD):
        return _checked_account(host.removesuffix(_CLOUD))
    raise _wrong(f"the address \"{host}\" does not say the account: give '{ACCOUNT}'")


def _checked_account(text: str) -> str:
    if not _ACCOUNT.fullmatch(text):
        raise _wrong(f'property "{ACCOUNT}" is not an account', 'It is "organization-account" or "locator.region".')
    return text


def _check_login(texts: Mapping[str, str]) -> None:
    given = [key for key in (PASSWORD, KEY_FILE, KEY) if key in texts]
    if len(given) != 1:
        raise _wrong(
            f"a store of type SNOWFLAKE needs one of '{KEY_FILE}', '{KEY}' and '{PASSWORD}'",
            f"Given are {' and '.join(given)}." if given else "Snowflake advises keys for programs.",
        )
    if PASSPHRASE in texts and PASSWORD in texts:
        raise _wrong(f'property "{PASSPHRASE}" is that of a key, and there is none')


def _attached(file: str) -> str:
    """Clients of the dialect write '@' before the name of a file that they send along."""
    return file.removeprefix("@").removeprefix("/") if file.startswith("@") else file


def _wrong(message: str, hint: str | None = None) -> SqlError:
    return SqlError(sqlstates.INVALID_PARAMETER_VALUE, message, hint=hint)
