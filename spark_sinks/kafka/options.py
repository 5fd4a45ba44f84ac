"""The options of a store of TYPE KAFKA, checked once, and handed to both clients: librdkafka and Spark's connector.

Only properties that are known here reach a client, since both have settings that read files, load classes or run code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.jars import Connector
from spark_sinks.kafka.authentication import MECHANISMS, PROPERTIES, Authentication, authentication, named_mechanism
from spark_sinks.kafka.certificates import CERTIFICATE, KEY, ClientCertificate, certificates
from spark_sinks.kafka.jars import CONNECTOR
from spark_sinks.property_values import boolean, conflict, one_of, refuse_unknown
from spark_sinks.store_kind import REGION

LIVE_LANE = "live_lane"
_CA_FILE = "tls.ca_cert_file"
_ACCEPTED = (
    "type",
    "uris",
    *REGION,  # the uris say better where a cluster is
    *PROPERTIES,
    "security.protocol",
    "tls.disabled",
    "tls.verify_server_hostname",
    _CA_FILE,
    CERTIFICATE,
    KEY,
    LIVE_LANE,
)
_TLS_PROPERTIES = (_CA_FILE, "tls.verify_server_hostname", CERTIFICATE, KEY)
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?):(?P<port>\d{1,5})")
_PORT_MAX = 65_535


@dataclass(frozen=True)
class KafkaOptions:
    """How a cluster is reached. ``mechanism`` is None without SASL; ``ca_certificates`` is PEM text, so that executors
    on other machines need no file."""

    uris: tuple[str, ...]
    tls: bool = False
    verify_hostname: bool = True
    ca_certificates: str | None = None
    client_certificate: ClientCertificate | None = None
    authentication: Authentication | None = None
    region: str | None = None
    live_lane: bool = True

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, Any],
        *,
        certificate_folders: Sequence[Path] = (),
        kind: str = "KAFKA",
        always_verified: bool = False,
    ) -> KafkaOptions:
        """Checks a store's properties; 22023 for what is wrong in them, 42501 for a file that is not open to stores.
        ``always_verified``: the brokers of this kind are reached by TLS alone, and show who they are."""
        refuse_unknown(kind, properties, _ACCEPTED)
        uris = _uris(properties.get("uris"), kind)
        mechanism = _mechanism(properties)
        tls = _tls(properties, mechanism, default=always_verified)
        verified = bool(boolean(properties, "tls.verify_server_hostname", default=True))
        if always_verified and not (tls and verified):
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f"a store of type {kind} is reached by TLS, and its brokers' names are verified",
                hint="For other clusters there is the type KAFKA.",
            )
        ca_file = properties.get(_CA_FILE)
        return cls(
            uris=uris,
            tls=tls,
            verify_hostname=verified,
            ca_certificates=None if ca_file is None else certificates(_CA_FILE, ca_file, certificate_folders),
            client_certificate=ClientCertificate.from_properties(properties, certificate_folders),
            authentication=authentication(
                mechanism, properties, uris, tls=tls, verified=verified, folders=certificate_folders
            ),
            region=next((str(properties[key]) for key in REGION if properties.get(key) is not None), None),
            live_lane=one_of(LIVE_LANE, str(properties.get(LIVE_LANE, "auto")).lower(), ("auto", "off")) == "auto",
        )

    @property
    def mechanism(self) -> str | None:
        return None if self.authentication is None else self.authentication.mechanism

    @property
    def connectors(self) -> tuple[Connector, ...]:
        """The jars that Spark needs to read such a store."""
        more = None if self.authentication is None else self.authentication.connector
        return (CONNECTOR,) if more is None else (CONNECTOR, more)

    @property
    def protocol(self) -> str:
        if self.mechanism is None:
            return "SSL" if self.tls else "PLAINTEXT"
        return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"

    def librdkafka(self) -> dict[str, Any]:
        """Settings of confluent_kafka's clients."""
        settings: dict[str, Any] = {"bootstrap.servers": ",".join(self.uris), "security.protocol": self.protocol}
        if self.tls:
            settings["ssl.endpoint.identification.algorithm"] = "https" if self.verify_hostname else "none"
            if self.ca_certificates is not None:
                settings["ssl.ca.pem"] = self.ca_certificates
            if self.client_certificate is not None:
                settings |= self.client_certificate.librdkafka()
        if self.authentication is not None:
            settings |= self.authentication.librdkafka()
        return settings

    def spark(self) -> dict[str, str]:
        """Options of Spark's connector; those that begin with ``kafka.`` it passes to the Java client."""
        settings = {"bootstrap.servers": ",".join(self.uris), "security.protocol": self.protocol}
        if self.tls:
            settings["ssl.endpoint.identification.algorithm"] = "https" if self.verify_hostname else ""
            if self.ca_certificates is not None:
                settings["ssl.truststore.type"] = "PEM"
                settings["ssl.truststore.certificates"] = self.ca_certificates
            if self.client_certificate is not None:
                settings |= self.client_certificate.java()
        if self.authentication is not None:
            settings |= self.authentication.java()
        return {f"kafka.{key}": value for key, value in settings.items()}


def _uris(value: object, kind: str) -> tuple[str, ...]:
    if not isinstance(value, str) or not value.strip():
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'a store of type {kind} needs the property "uris"',
            hint="Give the brokers to begin with: 'uris' = 'host:port' or 'host1:port,host2:port'.",
        )
    addresses = tuple(part.strip() for part in value.split(","))
    for address in addresses:
        match = _ADDRESS.fullmatch(address)
        if match is None or not 0 < int(match["port"]) <= _PORT_MAX:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "uris" has "{address}", which is not host:port',
                hint="Give the brokers to begin with: 'uris' = 'host:port' or 'host1:port,host2:port'.",
            )
    return addresses


def _mechanism(properties: Mapping[str, Any]) -> str | None:
    mechanism, protocol = named_mechanism(properties), _protocol(properties)
    if protocol is not None:
        if protocol.startswith("SASL") and mechanism is None:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "security.protocol" is {protocol}, which needs the property "sasl.mechanism"',
                hint=f"It is one of {', '.join(MECHANISMS)}.",
            )
        if not protocol.startswith("SASL") and mechanism is not None:
            newer = properties.get("sasl.mechanism") is not None
            raise conflict("security.protocol", "sasl.mechanism" if newer else "kafka.sasl.hash_function")
    return mechanism


def _tls(properties: Mapping[str, Any], mechanism: str | None, *, default: bool) -> bool:
    """A password never travels in the clear unless the statement says so; without one, plain unless it asks for TLS."""
    protocol = _protocol(properties)
    disabled = boolean(properties, "tls.disabled", default=None)
    given = [key for key in _TLS_PROPERTIES if properties.get(key) is not None]
    if protocol is not None:
        tls = protocol.endswith("SSL")
        if disabled is not None and disabled == tls:
            raise conflict("security.protocol", "tls.disabled")
    elif disabled is not None:
        tls = not disabled
    else:
        tls = default or mechanism is not None or bool(given)
    for key in (_CA_FILE, CERTIFICATE, KEY):
        if not tls and key in given:
            raise conflict(key, "security.protocol" if disabled is None else "tls.disabled")
    return tls


def _protocol(properties: Mapping[str, Any]) -> str | None:
    value = properties.get("security.protocol")
    return None if value is None else one_of("security.protocol", str(value).upper(), _PROTOCOLS)
