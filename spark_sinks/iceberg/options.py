"""The options of a store of TYPE ICEBERG: a catalog, and where the tables that it makes lie.

The catalog is a REST service, or the tables of a database (SQLite, PostgreSQL). Whatever lies on this machine lies
under a root that the server's configuration opens, links followed. Only properties that are known here reach the
client.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.open_folders import LOCAL_SCHEMES, check_location, open_path
from spark_sinks.property_values import check_keys_of_address, refuse_unknown, region_of_s3, stripped
from spark_sinks.store_kind import REGION

USERNAME, PASSWORD = "iceberg.username", "iceberg.password"
CREDENTIAL, TOKEN, SCOPE, OAUTH_URI = "iceberg.credential", "iceberg.token", "iceberg.scope", "iceberg.oauth2.uri"
WAREHOUSE, CATALOG = "iceberg.warehouse", "iceberg.catalog.name"
S3_ENDPOINT, S3_KEY, S3_SECRET, S3_SESSION = (
    "s3.endpoint", "s3.access_key_id", "s3.secret_access_key", "s3.session_token",
)  # fmt: skip
SECRET_KEYS = (PASSWORD, CREDENTIAL, TOKEN, S3_SECRET, S3_SESSION)
_REST_ONLY = (CREDENTIAL, TOKEN, SCOPE, OAUTH_URI)
_DATABASE_ONLY = (USERNAME, PASSWORD)
_S3 = (S3_ENDPOINT, S3_KEY, S3_SECRET, S3_SESSION)
_ACCEPTED = ("type", "uris", WAREHOUSE, CATALOG, *_DATABASE_ONLY, *_REST_ONLY, *_S3, *REGION)
_CLOUDS = ("s3", "s3a", "s3n")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_URIS = "It is the catalog: https://host/path, sqlite:///file.db or postgresql://host:port/database."


@dataclass(frozen=True)
class IcebergOptions:
    """``uri`` is the client's, with the name and the password of a database. ``roots`` are resolved: tables on this
    machine lie there, whatever the catalog says."""

    is_rest: bool
    uri: str = field(repr=False)
    name: str
    warehouse: str | None
    roots: tuple[Path, ...]
    file: Path | None = None  # of a catalog in SQLite
    client: Mapping[str, str] = field(default_factory=dict, repr=False)  # other properties, as the client spells them

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any], roots: Sequence[Path]) -> IcebergOptions:
        """Checks a store's properties; 22023 for what is wrong in them, 42501 for a place that is not open."""
        refuse_unknown("ICEBERG", properties, _ACCEPTED)
        texts = {key: stripped(key, value) for key, value in properties.items()}
        resolved = tuple(root.resolve() for root in roots)
        uri = texts.get("uris")
        if uri is None:
            raise _wrong('a store of type ICEBERG needs the property "uris"', _URIS)
        is_rest = urlsplit(uri).scheme in ("http", "https")
        for key in _DATABASE_ONLY if is_rest else _REST_ONLY:
            if key in texts:
                raise _wrong(
                    f'property "{key}" does not fit a catalog that is a {"REST service" if is_rest else "database"}'
                )
        name = texts.get(CATALOG, "default")
        if not _NAME.fullmatch(name):
            raise _wrong(f'property "{CATALOG}" has letters, digits, "_", "." and "-"')
        client, file = _rest_client(texts) if is_rest else {}, _file(uri, texts, resolved)
        return cls(
            is_rest=is_rest,
            uri=_plain(uri) if is_rest else _database(uri, texts) if file is None else f"sqlite:///{file}",
            name=name,
            warehouse=_warehouse(texts.get(WAREHOUSE), resolved, is_rest=is_rest),
            roots=resolved,
            file=file,
            client={**client, **_s3_client(texts)},
        )

    def check_location(self, location: str) -> None:
        """42501 for a table on this machine that lies under no root."""
        check_location(location, self.roots)


def _rest_client(texts: Mapping[str, str]) -> dict[str, str]:
    names = {CREDENTIAL: "credential", TOKEN: "token", SCOPE: "scope", OAUTH_URI: "oauth2-server-uri"}
    found = {name: texts[key] for key, name in names.items() if key in texts}
    if CREDENTIAL in texts:  # the catalog's own service for tokens; the client will not ask it unless it is told to
        found.setdefault("oauth2-server-uri", f"{texts['uris'].rstrip('/')}/v1/oauth/tokens")
    return found


def _s3_client(texts: Mapping[str, str]) -> dict[str, str]:
    check_keys_of_address(texts, S3_KEY, S3_SECRET, (S3_ENDPOINT, S3_SESSION))
    names = {
        S3_ENDPOINT: "s3.endpoint", S3_KEY: "s3.access-key-id", S3_SECRET: "s3.secret-access-key",
        S3_SESSION: "s3.session-token",
    }  # fmt: skip
    found = {name: texts[key] for key, name in names.items() if key in texts}
    region = region_of_s3(texts, REGION)
    return found if region is None else {**found, "s3.region": region}


def _plain(uri: str) -> str:
    parts = urlsplit(uri)
    if not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
        raise _wrong('property "uris" is not the address of a REST catalog', _URIS)
    return uri


def _file(uri: str, texts: Mapping[str, str], roots: Sequence[Path]) -> Path | None:
    parts = urlsplit(uri)
    if parts.scheme != "sqlite" or parts.netloc or not parts.path.strip("/") or parts.query:
        return None
    for key in _DATABASE_ONLY:
        if key in texts:
            raise _wrong(f'property "{key}" does not fit a catalog in a file')
    return open_path(unquote(parts.path[1:]), roots)


def _database(uri: str, texts: Mapping[str, str]) -> str:
    parts = urlsplit(uri)
    if parts.scheme != "postgresql" or not parts.hostname or not parts.path.strip("/") or parts.query:
        raise _wrong(f'property "uris" is not the address of a catalog: {uri}', _URIS)
    if "@" in parts.netloc:
        raise _wrong(
            'property "uris" has a name or a password in it',
            f"Give '{USERNAME}' and '{PASSWORD}', which are kept sealed.",
        )
    user = quote(texts.get(USERNAME, ""), safe="")
    password = ":" + quote(texts[PASSWORD], safe="") if PASSWORD in texts else ""
    return f"postgresql+psycopg://{user}{password}{'@' if user else ''}{parts.netloc}{parts.path}"


def _warehouse(text: str | None, roots: Sequence[Path], *, is_rest: bool) -> str | None:
    if text is None or is_rest:  # a REST catalog has names of its own for its warehouses
        if text is None and not is_rest:
            raise _wrong(
                f'a catalog in a database needs the property "{WAREHOUSE}"',
                "It is where tables are made: s3://bucket/path, or a folder.",
            )
        return text
    parts = urlsplit(text)
    if parts.scheme in LOCAL_SCHEMES:
        return open_path(unquote(parts.path), roots).as_uri()
    if parts.scheme in _CLOUDS and parts.netloc:
        return text
    raise _wrong(f'property "{WAREHOUSE}" is not s3://bucket/path or a folder: {text}')


def _wrong(message: str, hint: str | None = None) -> SqlError:
    return SqlError(sqlstates.INVALID_PARAMETER_VALUE, message, hint=hint)
