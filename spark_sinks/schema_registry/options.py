"""The properties of a schema registry, checked once, and what its client is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.schema_registry import limits

TYPES: Mapping[str, tuple[str, str]] = {
    "CONFLUENT": ("confluent.username", "confluent.password"),
    "CONFLUENT_CLOUD": ("confluent_cloud.key", "confluent_cloud.secret"),
}
"""By type, the properties of the name and the secret by which the server proves who it is."""
SECRET_KEYS = ("confluent.password", "confluent_cloud.key", "confluent_cloud.secret")
FILES = ("tls.ca_cert_file", "tls.client.cert_file", "tls.client.key_file")
_COMMON = ("uris", *FILES)
_URI_HINT = "Give the registry's address: 'uris' = 'http://host:port' or 'https://host:port'."


@dataclass(frozen=True)
class RegistryOptions:
    """How a registry is reached. Files are paths below the configured folder."""

    uris: tuple[str, ...]
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    @classmethod
    def from_properties(cls, type_: str, properties: Mapping[str, Any], folder: Path) -> RegistryOptions:
        """22023 for what is wrong in them, 42501 for a file that is not open to registries."""
        known = (*_COMMON, *TYPES[type_])
        for key in properties:
            if key not in known:
                raise SqlError(
                    sqlstates.INVALID_PARAMETER_VALUE,
                    f'property "{key}" is not known for a schema registry of type {type_}',
                    hint="Such a registry has " + ", ".join(f"'{name}'" for name in known) + ".",
                )
        uris = _uris(properties.get("uris"), type_)
        username, password = _credentials(properties, TYPES[type_])
        files = [_file(key, properties[key], folder) if key in properties else None for key in FILES]
        if files[2] is not None and files[1] is None:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                'property "tls.client.key_file" needs the property "tls.client.cert_file"',
            )
        if any(files) and not all(uri.startswith("https:") for uri in uris):
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                'properties that begin with "tls." need addresses that begin with https:',
            )
        return cls(uris, username, password, *files)

    def settings(self) -> dict[str, Any]:
        """Of confluent_kafka's client."""
        found: dict[str, Any] = {
            "url": ",".join(self.uris),
            "timeout": limits.REQUEST_TIMEOUT_S,
            "max.retries": limits.RETRIES_MAX,
            "retries.wait.ms": limits.RETRY_PAUSE_MS,
            "retries.max.wait.ms": limits.RETRY_PAUSE_MS,
        }
        if self.username is not None:
            found["basic.auth.user.info"] = f"{self.username}:{self.password}"
        names = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
        for name, path in zip(names, (self.ca_file, self.cert_file, self.key_file), strict=True):
            if path is not None:
                found[name] = str(path)
        return found


def _uris(value: object, type_: str) -> tuple[str, ...]:
    if not isinstance(value, str) or not value.strip():
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'a schema registry of type {type_} needs the property "uris"',
            hint=_URI_HINT,
        )
    found = tuple(part.strip().rstrip("/") for part in value.split(","))
    for uri in found:
        try:
            parts = urlsplit(uri)
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address or not uri.isprintable() or " " in uri or parts.query or parts.fragment:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                'property "uris" has a part that is not an address of HTTP',
                hint=_URI_HINT,
            )
        if "@" in parts.netloc:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                'property "uris" must not have a user name or password in it',
                hint=f"Give them as '{TYPES[type_][0]}' and '{TYPES[type_][1]}'.",
            )
    return found


def _credentials(properties: Mapping[str, Any], keys: Sequence[str]) -> tuple[str | None, str | None]:
    name, secret = (properties.get(key) for key in keys)
    if (name is None) != (secret is None):
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, f'properties "{keys[0]}" and "{keys[1]}" must be given together'
        )
    for key, value in zip(keys, (name, secret), strict=True):
        if value is not None and (not isinstance(value, str) or not value or not value.isprintable()):
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE, f'property "{key}" must be text without control characters'
            )
    if name is not None and ":" in name:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'property "{keys[0]}" must not have a colon')
    return name, secret


def _file(key: str, value: object, folder: Path) -> Path:
    root = folder.resolve()
    path = (root / str(value)).resolve()
    if not path.is_relative_to(root) or not path.is_file():
        raise SqlError(
            sqlstates.INSUFFICIENT_PRIVILEGE,
            f'file "{value}" is not in the configured folder',
            hint=f"The property '{key}' is relative to the folder of the server's setting store_config_dir.",
        )
    return path
