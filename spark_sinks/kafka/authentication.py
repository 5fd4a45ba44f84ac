"""How a store of Kafka logs in, as typed properties, and what both clients are told of it.

librdkafka and Spark's Java client are set from the same record. Classes are named here alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.jars import Connector
from spark_sinks.kafka import msk
from spark_sinks.kafka.certificates import certificates
from spark_sinks.kafka.jaas import jaas
from spark_sinks.kafka.msk import MskIam
from spark_sinks.property_values import conflict, one_of, printable

OAUTHBEARER, AWS_MSK_IAM = "OAUTHBEARER", "AWS_MSK_IAM"
_ENDPOINT, _CLIENT_ID, _CLIENT_SECRET, _SCOPE, _EXTENSIONS, _CA_FILE = _OAUTH = (
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.ca_cert_file",
)
_NAMES = ("kafka.sasl.username", "kafka.sasl.password", "sasl.username", "sasl.password")
PROPERTIES = ("kafka.sasl.hash_function", "sasl.mechanism", *_NAMES, *_OAUTH, *msk.PROPERTIES)
SECRET_KEYS = ("kafka.sasl.password", "sasl.password", _CLIENT_SECRET)

_MODULES = "org.apache.kafka.common.security."
_PASSWORD_MODULES = {
    "PLAIN": f"{_MODULES}plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_MODULES}scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_MODULES}scram.ScramLoginModule",
}
MECHANISMS = (*_PASSWORD_MODULES, OAUTHBEARER, AWS_MSK_IAM)
_MECHANISM_OF_HASH = {
    "NONE": None, "PLAIN": "PLAIN", "SHA256": "SCRAM-SHA-256", "SHA512": "SCRAM-SHA-512",
    OAUTHBEARER: OAUTHBEARER, AWS_MSK_IAM: AWS_MSK_IAM,
}  # fmt: skip
_EXTENSION = re.compile(r"(?P<name>[A-Za-z]+)=(?P<value>[\x21-\x2b\x2d-\x7e]+)")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Authentication(Protocol):
    """What the clients of a store need to log in; ``connector`` has jars that Java's needs besides its own.
    ``from_start``: it works only where Spark has the connector from its start on."""

    @property
    def connector(self) -> Connector | None: ...

    @property
    def from_start(self) -> bool: ...

    @property
    def mechanism(self) -> str: ...

    def librdkafka(self) -> dict[str, Any]: ...

    def java(self) -> dict[str, str]: ...


@dataclass(frozen=True)
class Password:
    """A user's name and password, sent as they are (PLAIN) or proved (SCRAM)."""

    mechanism: str
    username: str
    password: str = field(repr=False)
    connector: Connector | None = None
    from_start: bool = False

    def librdkafka(self) -> dict[str, Any]:
        return {
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.username,
            "sasl.password": self.password,
        }

    def java(self) -> dict[str, str]:
        entry = jaas(_PASSWORD_MODULES[self.mechanism], {"username": self.username, "password": self.password})
        return {"sasl.mechanism": self.mechanism, "sasl.jaas.config": entry}


@dataclass(frozen=True)
class ClientCredentials:
    """Tokens of an OAuth 2 service, which are asked for with a client's id and secret and renewed before they expire.

    ``extensions`` travel with the token (KIP-342); ``ca_certificates`` are what the service's own is compared with,
    None for those that the system trusts.
    """

    endpoint: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    extensions: tuple[tuple[str, str], ...] = ()
    ca_certificates: str | None = None
    mechanism: str = OAUTHBEARER
    connector: Connector | None = None
    from_start: bool = True

    def librdkafka(self) -> dict[str, Any]:
        settings = {
            "sasl.mechanism": self.mechanism,
            "sasl.oauthbearer.method": "oidc",
            _ENDPOINT: self.endpoint,
            _CLIENT_ID: self.client_id,
            _CLIENT_SECRET: self.client_secret,
        }
        if self.scope is not None:
            settings[_SCOPE] = self.scope
        if self.extensions:
            settings[_EXTENSIONS] = ",".join(f"{name}={value}" for name, value in self.extensions)
        if self.ca_certificates is not None:
            settings["https.ca.pem"] = self.ca_certificates
        return settings

    def java(self) -> dict[str, str]:
        entry = {"clientId": self.client_id, "clientSecret": self.client_secret}
        if self.scope is not None:
            entry["scope"] = self.scope
        entry |= {f"extension_{name}": value for name, value in self.extensions}
        if self.ca_certificates is not None:
            entry |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": self.ca_certificates}
        return {
            "sasl.mechanism": self.mechanism,
            "sasl.jaas.config": jaas(f"{_MODULES}oauthbearer.OAuthBearerLoginModule", entry),
            "sasl.login.callback.handler.class": f"{_MODULES}oauthbearer.OAuthBearerLoginCallbackHandler",
            _ENDPOINT: self.endpoint,
        }


def named_mechanism(properties: Mapping[str, Any]) -> str | None:
    """That of the older or the newer property."""
    older, newer = properties.get("kafka.sasl.hash_function"), properties.get("sasl.mechanism")
    mechanism = None
    if older is not None:
        name = one_of("kafka.sasl.hash_function", str(older).upper(), tuple(_MECHANISM_OF_HASH))
        mechanism = _MECHANISM_OF_HASH[name]
    if newer is not None:
        named = one_of("sasl.mechanism", str(newer).upper(), MECHANISMS)
        if older is not None and named != mechanism:
            raise conflict("kafka.sasl.hash_function", "sasl.mechanism")
        mechanism = named
    return mechanism


def authentication(
    mechanism: str | None,
    properties: Mapping[str, Any],
    uris: Sequence[str],
    *,
    tls: bool,
    verified: bool,
    folders: Sequence[Path],
) -> Authentication | None:
    """22023 for what is missing, and for what is given and not used by the mechanism."""
    username, password = (_credential(properties, name, mechanism) for name in ("username", "password"))
    for keys, of in ((_OAUTH, OAUTHBEARER), (msk.PROPERTIES, AWS_MSK_IAM)):
        for key in keys:
            if properties.get(key) is not None and mechanism != of:
                raise SqlError(
                    sqlstates.INVALID_PARAMETER_VALUE,
                    f'property "{key}" needs authentication by {of}',
                    hint=f"Give 'sasl.mechanism' = {of}.",
                )
    if mechanism in _PASSWORD_MODULES:
        return Password(mechanism, username or "", password or "")
    if mechanism == OAUTHBEARER:
        return _client_credentials(properties, tls=tls, folders=folders)
    if mechanism == AWS_MSK_IAM:
        return MskIam.from_properties(properties, uris, verified=tls and verified)
    return None


def _credential(properties: Mapping[str, Any], name: str, mechanism: str | None) -> str | None:
    older, newer = properties.get(f"kafka.sasl.{name}"), properties.get(f"sasl.{name}")
    if older is not None and newer is not None and older != newer:
        raise conflict(f"kafka.sasl.{name}", f"sasl.{name}")
    value = newer if newer is not None else older
    if value is not None and (not isinstance(value, str) or not value or not value.isprintable()):
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, f"the {name} of a store must be text without control characters"
        )
    if mechanism in _PASSWORD_MODULES and value is None:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'authentication by {mechanism} needs the property "kafka.sasl.{name}"',
        )
    if mechanism is None and value is not None:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f"a {name} is given, but no way of authentication",
            hint="Give 'kafka.sasl.hash_function' = PLAIN, SHA256 or SHA512.",
        )
    if mechanism not in _PASSWORD_MODULES and value is not None:
        raise SqlError(sqlstates.INVALID_PARAMETER_VALUE, f"a {name} is given, but {mechanism} has none")
    return value


def _client_credentials(properties: Mapping[str, Any], *, tls: bool, folders: Sequence[Path]) -> ClientCredentials:
    texts = {key: printable(properties, key) for key in _OAUTH}
    for key in (_ENDPOINT, _CLIENT_ID, _CLIENT_SECRET):
        if texts[key] is None:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE, f'authentication by {OAUTHBEARER} needs the property "{key}"'
            )
    ca_file = texts[_CA_FILE]
    return ClientCredentials(
        endpoint=_endpoint(texts[_ENDPOINT] or "", tls=tls),
        client_id=texts[_CLIENT_ID] or "",
        client_secret=texts[_CLIENT_SECRET] or "",
        scope=texts[_SCOPE],
        extensions=_extensions(texts[_EXTENSIONS]),
        ca_certificates=None if ca_file is None else certificates(_CA_FILE, ca_file, folders),
    )


def _endpoint(url: str, *, tls: bool) -> str:
    """The secret goes there: in the clear only where the store's own traffic is."""
    parts = urlsplit(url)
    hint = "It is the address of a service that gives tokens, as https://login.example.org/oauth2/token."
    try:
        wrong = parts.port == 0
    except ValueError:
        wrong = True
    if wrong or parts.scheme not in ("https", "http") or not parts.hostname or "@" in parts.netloc or parts.fragment:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE, f'property "{_ENDPOINT}" has "{url}", which is no address', hint=hint
        )
    if parts.scheme == "http" and tls and parts.hostname not in _LOOPBACK:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "{_ENDPOINT}" has an address without TLS',
            detail="The client's secret would travel in the clear.",
            hint=hint,
        )
    return url


def _extensions(value: str | None) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    found: dict[str, str] = {}
    for part in value.split(","):
        match = _EXTENSION.fullmatch(part.strip())
        if match is None or match["name"] in found or match["name"] == "auth":  # "auth" is the token's own
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "{_EXTENSIONS}" has "{part.strip()}", which is not name=value, or a name twice',
                hint="Names have letters only: 'logicalCluster=lkc-1,identityPoolId=pool-1'.",
            )
        found[match["name"]] = match["value"]
    return tuple(found.items())
