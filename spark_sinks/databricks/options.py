"""The options of a store of TYPE DATABRICKS: a workspace's Unity Catalog, and where the tables lie.

A place on this machine lies under a root that the server's configuration opens. Only properties that are known here
reach the clients.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.open_folders import LOCAL_SCHEMES, check_location, open_path
from spark_sinks.property_values import check_keys_of_address, refuse_unknown, region_of_s3, stripped
from spark_sinks.store_kind import REGION

TOKEN, WAREHOUSE_ID, WAREHOUSE_PORT = "databricks.app_token", "databricks.warehouse_id", "databricks.warehouse_port"
BUCKET, CLOUD_REGION, LOCATION = "databricks.cloud.s3.bucket", "databricks.cloud.region", "databricks.location"
KEY, SECRET, SESSION, ENDPOINT = "aws.access_key_id", "aws.secret_access_key", "aws.session_token", "s3.endpoint"
SECRET_KEYS = (TOKEN, SECRET, SESSION)
UNUSED = (WAREHOUSE_ID, WAREHOUSE_PORT)  # taken since statements of the dialect have them: no warehouse is needed
_ACCEPTED = ("type", "uris", TOKEN, BUCKET, LOCATION, CLOUD_REGION, KEY, SECRET, SESSION, ENDPOINT, *UNUSED, *REGION)
_BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_ENTITY = re.compile(r"[\w-]{1,255}(\.[\w-]{1,255}){2}")
_URIS = "It is the address of the workspace: https://name.cloud.databricks.com."


@dataclass(frozen=True)
class S3Options:
    """How the storage is reached; without ``key`` the server's own credentials are used."""

    region: str | None = None
    key: str | None = None
    secret: str | None = field(default=None, repr=False)
    session: str | None = field(default=None, repr=False)
    endpoint: str | None = None


@dataclass(frozen=True)
class DatabricksOptions:
    """``location`` is where tables are made that say no place; ``roots`` are resolved."""

    workspace: str
    token: str = field(repr=False)
    location: str | None
    s3: S3Options
    roots: tuple[Path, ...]

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any], roots: Sequence[Path]) -> DatabricksOptions:
        """Checks a store's properties; 22023 for what is wrong in them, 42501 for a place that is not open."""
        refuse_unknown("DATABRICKS", properties, _ACCEPTED)
        texts = {key: stripped(key, value) for key, value in properties.items() if key not in UNUSED}
        resolved = tuple(root.resolve() for root in roots)
        if TOKEN not in texts:
            raise _wrong(f'a store of type DATABRICKS needs the property "{TOKEN}"', "It is an access token.")
        return cls(
            workspace=_workspace(texts.get("uris")),
            token=texts[TOKEN],
            location=_location(texts, resolved),
            s3=_s3(texts),
            roots=resolved,
        )

    def table_location(self, given: str | None, entity: str) -> str:
        """Where a table is made: the place that its statement names, or one under the store's."""
        if given is not None:
            return place(given, self.roots)
        if self.location is None:
            raise _wrong(
                "a table that is made needs a place",
                f"Give the table 'table.data.file.location', or the store '{LOCATION}' or '{BUCKET}'.",
            )
        return "/".join((self.location, *entity.split(".")))

    def check_location(self, location: str) -> None:
        """42501 for a table on this machine that lies under no root, 0A000 for storage that is not reached."""
        if urlsplit(location).scheme not in (*LOCAL_SCHEMES, "s3", "s3a"):
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                f"storage of the kind {urlsplit(location).scheme}:// is not supported",
                hint="Tables lie in S3, or in folders of the server's machine.",
            )
        check_location(location, self.roots)


def check_name(entity: str) -> None:
    """22023 for what the server does not make a table of."""
    if not _ENTITY.fullmatch(entity):
        raise _wrong(f'"{entity}" is not catalog.schema.table', 'Each name has letters, digits, "_" and "-".')


def place(text: str, roots: Sequence[Path]) -> str:
    """A location as it is kept: with a scheme, without a slash at its end."""
    parts = urlsplit(text)
    if parts.scheme in LOCAL_SCHEMES:
        return open_path(unquote(parts.path), roots).as_uri()
    if parts.scheme == "s3" and parts.netloc and not parts.query and not parts.fragment:
        return text.rstrip("/")
    if parts.scheme and parts.scheme != "s3":
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"storage of the kind {parts.scheme}:// is not supported",
            hint="Tables lie in S3, or in folders of the server's machine.",
        )
    raise _wrong(f"{text} is not s3://bucket/path or a folder")


def _workspace(uri: str | None) -> str:
    if uri is None:
        raise _wrong('a store of type DATABRICKS needs the property "uris"', _URIS)
    parts = urlsplit(uri)
    plain = parts.scheme in ("http", "https") and parts.hostname and parts.path in ("", "/")
    if not plain or "@" in parts.netloc or parts.query or parts.fragment:
        raise _wrong('property "uris" is not the address of a workspace', _URIS)
    return f"{parts.scheme}://{parts.netloc}"


def _location(texts: Mapping[str, str], roots: Sequence[Path]) -> str | None:
    if BUCKET in texts and LOCATION in texts:
        raise _wrong(f'property "{BUCKET}" and property "{LOCATION}" are not given together')
    if BUCKET in texts:
        if not _BUCKET_NAME.fullmatch(texts[BUCKET]):
            raise _wrong(f'property "{BUCKET}" is not the name of a bucket')
        return f"s3://{texts[BUCKET]}"
    return place(texts[LOCATION], roots) if LOCATION in texts else None


def _s3(texts: Mapping[str, str]) -> S3Options:
    check_keys_of_address(texts, KEY, SECRET, (ENDPOINT, SESSION))
    region = region_of_s3(texts, (CLOUD_REGION, *REGION))
    return S3Options(region, texts.get(KEY), texts.get(SECRET), texts.get(SESSION), texts.get(ENDPOINT))


def _wrong(message: str, hint: str | None = None) -> SqlError:
    return SqlError(sqlstates.INVALID_PARAMETER_VALUE, message, hint=hint)
