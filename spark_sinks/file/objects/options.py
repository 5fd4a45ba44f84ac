"""The options of a store of TYPE FILE that is in S3, Azure's storage or Google's: a bucket, and a place in it.

In S3 and Google's storage, the server's own credentials are used where there are none, by the chain of the client: for
the service itself alone, and never for an address that a statement names.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.file.options import FILES_MAX, files_max
from spark_sinks.property_values import (
    check_keys_of_address,
    own_credentials_elsewhere,
    refuse_unknown,
    region_of_s3,
    stripped,
)
from spark_sinks.store_kind import REGION

_BASE = ("type", "uris", FILES_MAX, *REGION)


@dataclass(frozen=True)
class Service:
    """``keys`` are the properties of who it is, what proves it, and a token for some time. ``module`` is what its
    client is in, ``extra`` what installs it where the server alone does not."""

    name: str
    schemes: tuple[str, ...]
    key: str | None
    secret: str
    token: str | None
    endpoint: str
    module: str
    extra: str | None = None


S3 = Service(
    "S3", ("s3", "s3a"), "aws.access_key_id", "aws.secret_access_key", "aws.session_token", "s3.endpoint", "boto3"
)
AZURE = Service(
    "Azure", ("abfs", "abfss"), None, "azure.account_key", "azure.sas_token", "azure.endpoint", "azure.storage.blob",
    "azure",
)  # fmt: skip
GOOGLE = Service(
    "Google's storage", ("gs",), None, "gcs.service_account_key", "gcs.token", "gcs.endpoint", "google.auth", "gcs"
)
SERVICES = (S3, AZURE, GOOGLE)
SECRET_KEYS = tuple(key for service in SERVICES for key in (service.secret, service.token) if key is not None)
_CONTAINER = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
_AZURE_HOST = re.compile(r"(?P<account>[a-z0-9]{3,24})\.(?:dfs|blob)\.core\.windows\.net")
_PREFIX_BYTES_MAX = 512


@dataclass(frozen=True)
class ObjectOptions:
    """``container`` is the bucket, ``prefix`` what all keys begin with, without slashes at its ends. Without ``secret``
    and ``token`` the server's own credentials are used, without ``endpoint`` the service's own address."""

    service: Service
    place: str  # as it was given
    container: str
    prefix: str
    account: str | None = None  # of Azure
    region: str | None = None
    key: str | None = None
    secret: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    endpoint: str | None = None
    files_max: int | None = None

    def below(self, entity: str) -> tuple[str, str]:
        """What the keys of an entity begin with, and its place for messages."""
        return "/".join(filter(None, (self.prefix, entity))), f"{self.place}/{entity}"


def service_of(uris: object) -> Service | None:
    """That which the address names; None for a place on this machine. 0A000 for a service that is not reached."""
    scheme = str(uris).strip().partition("://")[0].lower() if "://" in str(uris) else ""
    if scheme in ("", "file"):
        return None
    found = next((service for service in SERVICES if scheme in service.schemes), None)
    if found is None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"a store of type FILE at {scheme}:// is not supported",
            hint="It is a directory of the server's machine, s3://bucket/path, gs://bucket/path, or "
            "abfss://container@account.dfs.core.windows.net/path.",
        )
    return found


def object_options(service: Service, properties: Mapping[str, Any]) -> ObjectOptions:
    """Checks a store's properties: 22023 for what is wrong in them, 42501 for credentials that are not its own, 0A000
    where the service's client is not installed."""
    own = tuple(key for key in (service.key, service.secret, service.token, service.endpoint) if key is not None)
    if service is GOOGLE:
        _refuse_hmac(properties)
    refuse_unknown("FILE", properties, (*_BASE, *own))
    _require(service)
    texts = {key: stripped(key, value) for key, value in properties.items() if key != FILES_MAX}
    place = texts["uris"].rstrip("/")
    parts = urlsplit(place)
    container, account = (parts.username, parts.hostname) if service is AZURE else (parts.netloc, None)
    prefix = parts.path.strip("/")
    if parts.query or parts.fragment or not container or not _CONTAINER.fullmatch(container) or _is_odd(prefix):
        raise _wrong(f'property "uris" is not the address of a place in {service.name}: {place}', _form(service))
    if service is AZURE:
        account = _account(account or "", place)
    _check_keys(service, texts)
    return ObjectOptions(
        service=service,
        place=place,
        container=container,
        prefix=prefix,
        account=account,
        region=region_of_s3(texts, REGION) if service is S3 else None,
        key=None if service.key is None else texts.get(service.key),
        secret=texts.get(service.secret),
        token=None if service.token is None else texts.get(service.token),
        endpoint=_endpoint(service, texts.get(service.endpoint)),
        files_max=files_max(properties),
    )


def _check_keys(service: Service, texts: Mapping[str, str]) -> None:
    if service is S3:
        check_keys_of_address(texts, S3.key or "", S3.secret, (S3.endpoint, S3.token or ""))
        return
    given = [key for key in (service.secret, service.token) if key is not None and key in texts]
    if len(given) > 1:
        raise _wrong(f'properties "{given[0]}" and "{given[1]}" exclude each other')
    if service is GOOGLE:
        _check_google(texts, given)
        return
    if not given:
        raise _wrong(
            f'a store of type FILE in {service.name} needs the property "{service.secret}" or "{service.token}"',
            "The server's own identity is not used there.",
        )
    if AZURE.secret in given and not _is_base64(texts[AZURE.secret]):
        raise _wrong(f'property "{AZURE.secret}" is not the key of an account', "It is base64, as the portal shows it.")


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except ValueError:
        return False


def _refuse_hmac(properties: Mapping[str, Any]) -> None:
    """Its API for programs takes tokens; where these keys are good, writes have no conditions."""
    if any(key.startswith("gcs.hmac.") or key in (S3.key, S3.secret) for key in properties):
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"HMAC keys are not supported for a store of type FILE in {GOOGLE.name}",
            hint=f"Give '{GOOGLE.secret}' or '{GOOGLE.token}'.",
        )


def _check_google(texts: Mapping[str, str], given: Sequence[str]) -> None:
    """A key is one of a service account alone: others say themselves which files, programs and addresses are asked."""
    if not given and GOOGLE.endpoint in texts:
        raise own_credentials_elsewhere(f"Give '{GOOGLE.secret}' or '{GOOGLE.token}'.")
    if GOOGLE.secret in given and not _is_account_key(texts[GOOGLE.secret]):
        raise _wrong(
            f'property "{GOOGLE.secret}" is not the key of a service account', "It is the text of its JSON file."
        )


def _is_account_key(text: str) -> bool:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = json.loads(text)
        is_rsa = isinstance(load_pem_private_key(key["private_key"].encode(), None), RSAPrivateKey)
        return bool(is_rsa and key["type"] == "service_account" and isinstance(key["client_email"], str))
    except (ValueError, KeyError, TypeError, AttributeError, UnsupportedAlgorithm):
        return False


def _account(host: str, place: str) -> str:
    found = _AZURE_HOST.fullmatch(host)
    if found is None:
        raise _wrong(f'property "uris" is not the address of a place in Azure: {place}', _form(AZURE))
    return found["account"]


def _endpoint(service: Service, text: str | None) -> str | None:
    if text is None:
        return None
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
        raise _wrong(f'property "{service.endpoint}" is not an address', "It is one as https://host:port.")
    return text.rstrip("/")


def _is_odd(prefix: str) -> bool:
    names = prefix.split("/") if prefix else []
    return len(prefix.encode()) > _PREFIX_BYTES_MAX or any(name in ("", ".", "..") for name in names)


def _form(service: Service) -> str:
    if service is AZURE:
        return "It is abfss://container@account.dfs.core.windows.net/path."
    return f"It is {service.schemes[0]}://bucket/path."


def _require(service: Service) -> None:
    try:
        there = find_spec(service.module) is not None
    except ModuleNotFoundError:  # not even the package that it is in
        there = False
    if not there:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"stores of type FILE in {service.name} need packages that are not installed",
            detail=f"There is no package {service.module}.",
            hint=f"pip install 'mvserver[{service.extra}]' installs them; then start the server anew.",
        )


def _wrong(message: str, hint: str | None = None) -> SqlError:
    return SqlError(sqlstates.INVALID_PARAMETER_VALUE, message, hint=hint)
