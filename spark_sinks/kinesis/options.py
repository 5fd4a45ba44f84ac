"""The options of a store of TYPE KINESIS, checked once.

Only properties that are known here reach the client. Without keys it looks for credentials in the server's own
environment, by boto3's chain: variables, profiles, and the roles of the machine. Those are used for the service itself
alone, and never for an address that a statement names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.property_values import no_region, one_of, printable, refuse_unknown
from spark_sinks.store_kind import REGION

SECRET_KEYS = ("kinesis.secret_access_key", "kinesis.session_token")
_EXPIRED = "kinesis.expired.records"
_ACCEPTED = ("type", "uris", *REGION, "kinesis.access_key_id", *SECRET_KEYS, "kinesis.account.id", _EXPIRED)
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")
_SERVICE_HOST = re.compile(
    r"(?:[a-z0-9.-]+\.)?kinesis(?:-fips)?\.(?P<region>[a-z0-9-]+)\.(?:amazonaws\.com|amazonaws\.com\.cn|api\.aws)"
)
_ACCOUNT = re.compile(r"\d{12}")


@dataclass(frozen=True)
class KinesisOptions:
    """How a region's streams are reached. ``endpoint`` is None for the region's own; without keys boto3 looks for
    credentials itself. ``account_id`` is the account that the streams must belong to, None for any. ``skips_expired``:
    readers go on behind records that have expired unread."""

    region: str
    endpoint: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    account_id: str | None = None
    skips_expired: bool = False

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> KinesisOptions:
        """Checks a store's properties; 22023 for what is wrong in them, 42501 for credentials that are not its own."""
        refuse_unknown("KINESIS", properties, _ACCEPTED)
        endpoint, host_region = _endpoint(properties.get("uris"))
        texts = {key: printable(properties, key) for key in ("kinesis.access_key_id", *SECRET_KEYS)}
        access_key_id, secret_access_key, session_token = texts.values()
        if (access_key_id is None) != (secret_access_key is None):
            absent = "kinesis.secret_access_key" if secret_access_key is None else "kinesis.access_key_id"
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE, f'a store with a key of access needs the property "{absent}"'
            )
        if session_token is not None and access_key_id is None:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                'property "kinesis.session_token" needs the property "kinesis.access_key_id"',
            )
        if access_key_id is None and endpoint is not None and host_region is None:
            raise SqlError(
                sqlstates.INSUFFICIENT_PRIVILEGE,
                "the server's own credentials are not used for an address that is not the service's",
                hint="Give 'kinesis.access_key_id' and 'kinesis.secret_access_key', or leave 'uris' out.",
            )
        return cls(
            region=_region(properties, host_region),
            endpoint=endpoint,
            access_key_id=access_key_id,
            secret_access_key=secret_access_key,
            session_token=session_token,
            account_id=_account(properties.get("kinesis.account.id")),
            skips_expired=one_of(_EXPIRED, str(properties.get(_EXPIRED, "FAIL")).upper(), ("FAIL", "SKIP")) == "SKIP",
        )

    @property
    def place(self) -> str:
        """What readers of the same streams have in common."""
        return f"{self.endpoint or ''} {self.region} {self.account_id or ''}"


def _endpoint(value: object) -> tuple[str | None, str | None]:
    """The address, and the region that its host names where it is the service's own."""
    if value is None:
        return None, None
    hint = "It is the service's address, as https://kinesis.us-east-2.amazonaws.com:443, or is left out."
    text = str(value).strip()
    address = urlsplit(text if "://" in text else f"https://{text}")
    try:
        port = address.port
    except ValueError:
        port = 0
    wrong = (
        address.scheme not in ("http", "https")
        or not address.hostname
        or port == 0
        or address.path not in ("", "/")
        or address.query
        or address.fragment
        or "@" in address.netloc
        or "," in text
    )
    if wrong or not address.hostname:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, f'property "uris" has "{text}", which is not an address', hint=hint
        )
    service = _SERVICE_HOST.fullmatch(address.hostname) if address.scheme == "https" else None
    return f"{address.scheme}://{address.netloc}", None if service is None else service["region"]


def _region(properties: Mapping[str, Any], host_region: str | None) -> str:
    given = {key: str(properties[key]).strip() for key in REGION if properties.get(key) is not None}
    for key, name in given.items():
        if not _REGION.fullmatch(name):
            raise no_region(key, name)
    names = dict.fromkeys([*given.values(), *([host_region] if host_region else [])])
    if len(names) > 1:
        first, second = list(names)[:2]
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, f"the store is said to be in region {first} and in region {second}"
        )
    if not names:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            'a store of type KINESIS needs the property "access.region"',
            hint="It is the region of the streams, as us-east-2.",
        )
    return next(iter(names))


def _account(value: object) -> str | None:
    if value is None:
        return None
    text = str(value).strip()
    if not _ACCOUNT.fullmatch(text):
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "kinesis.account.id" has "{text}", which is not an account',
            hint="It has 12 digits.",
        )
    return text
