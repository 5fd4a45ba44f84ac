"""The options of a store of TYPE KAFKA, checked once, and handed to both clients: librdkafka and Spark's connector.

Only properties that are known here reach a client, since both have settings that read files, load classes or run code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.store_kind import REGION

_ACCEPTED = (
    "type",
    "uris",
    *REGION,  # the uris say better where a cluster is
    "kafka.sasl.hash_function",
    "kafka.sasl.username",
    "kafka.sasl.password",
    "security.protocol",
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "tls.disabled",
    "tls.verify_server_hostname",
    "tls.ca_cert_file",
)
_MECHANISM_OF_HASH = {"NONE": None, "PLAIN": "PLAIN", "SHA256": "SCRAM-SHA-256", "SHA512": "SCRAM-SHA-512"}
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?):(?P<port>\d{1,5})")
_PORT_MAX = 65_535
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@dataclass(frozen=True)
class KafkaOptions:
    """How a cluster is reached. ``mechanism`` is None without SASL; ``ca_certificates`` is PEM text, so that executors
    on other machines need no file."""

    uris: tuple[str, ...]
    tls: bool = False
    verify_hostname: bool = True
    ca_certificates: str | None = None
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    region: str | None = None

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, Any], *, certificate_folders: Sequence[Path] = ()
    ) -> KafkaOptions:
        """Checks a store's properties; 22023 for what is wrong in them, 42501 for a file that is not open to stores."""
        for key in properties:
            if key not in _ACCEPTED:
                raise SqlError(
                    sqlstates.INVALID_PARAMETER_VALUE,
                    f'property "{key}" is not known for a store of type KAFKA',
                    hint="Such a store has " + ", ".join(f"'{name}'" for name in _ACCEPTED if name != "type") + ".",
                )
        uris = _uris(properties.get("uris"))
        mechanism = _mechanism(properties)
        username, password = _credentials(properties, mechanism)
        ca_file = properties.get("tls.ca_cert_file")
        return cls(
            uris=uris,
            tls=_tls(properties, mechanism),
            verify_hostname=_boolean(properties, "tls.verify_server_hostname", default=True),
            ca_certificates=None if ca_file is None else _certificates(ca_file, certificate_folders),
            mechanism=mechanism,
            username=username,
            password=password,
            region=next((str(properties[key]) for key in REGION if properties.get(key) is not None), None),
        )

    @property
    def protocol(self) -> str:
        if self.mechanism is None:
            return "SSL" if self.tls else "PLAINTEXT"
        return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"

    def librdkafka(self) -> dict[str, str]:
        """Settings of confluent_kafka's clients."""
        settings = {"bootstrap.servers": ",".join(self.uris), "security.protocol": self.protocol}
        if self.tls:
            settings["ssl.endpoint.identification.algorithm"] = "https" if self.verify_hostname else "none"
            if self.ca_certificates is not None:
                settings["ssl.ca.pem"] = self.ca_certificates
        if self.mechanism is not None:
            settings["sasl.mechanism"] = self.mechanism
            settings["sasl.username"] = self.username or ""
            settings["sasl.password"] = self.password or ""
        return settings

    def spark(self) -> dict[str, str]:
        """Options of Spark's connector; those that begin with ``kafka.`` it passes to the Java client."""
        options = {"kafka.bootstrap.servers": ",".join(self.uris), "kafka.security.protocol": self.protocol}
        if self.tls:
            options["kafka.ssl.endpoint.identification.algorithm"] = "https" if self.verify_hostname else ""
            if self.ca_certificates is not None:
                options["kafka.ssl.truststore.type"] = "PEM"
                options["kafka.ssl.truststore.certificates"] = self.ca_certificates
        if self.mechanism is not None:
            module = _LOGIN_MODULES[self.mechanism]
            username, password = _jaas_string(self.username or ""), _jaas_string(self.password or "")
            options["kafka.sasl.mechanism"] = self.mechanism
            options["kafka.sasl.jaas.config"] = f"{module} required username={username} password={password};"
        return options


def _uris(value: object) -> tuple[str, ...]:
    if not isinstance(value, str) or not value.strip():
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            'a store of type KAFKA needs the property "uris"',
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
    older, newer = properties.get("kafka.sasl.hash_function"), properties.get("sasl.mechanism")
    protocol = _protocol(properties)
    mechanism = None
    if older is not None:
        name = str(older).upper()
        if name == "AWS_MSK_IAM":
            raise SqlError(
                sqlstates.FEATURE_NOT_SUPPORTED,
                "authentication by AWS_MSK_IAM is not supported",
                hint="Use SHA512 with a user name and a password that the cluster keeps.",
            )
        mechanism = _MECHANISM_OF_HASH[_one_of("kafka.sasl.hash_function", name, tuple(_MECHANISM_OF_HASH))]
    if newer is not None:
        named = _one_of("sasl.mechanism", str(newer).upper(), _MECHANISMS)
        if older is not None and named != mechanism:
            raise _conflict("kafka.sasl.hash_function", "sasl.mechanism")
        mechanism = named
    if protocol is not None:
        if protocol.startswith("SASL") and mechanism is None:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'property "security.protocol" is {protocol}, which needs the property "sasl.mechanism"',
                hint=f"It is one of {', '.join(_MECHANISMS)}.",
            )
        if not protocol.startswith("SASL") and mechanism is not None:
            raise _conflict("security.protocol", "kafka.sasl.hash_function" if newer is None else "sasl.mechanism")
    return mechanism


def _credentials(properties: Mapping[str, Any], mechanism: str | None) -> tuple[str | None, str | None]:
    found: list[str | None] = []
    for name in ("username", "password"):
        older, newer = properties.get(f"kafka.sasl.{name}"), properties.get(f"sasl.{name}")
        if older is not None and newer is not None and older != newer:
            raise _conflict(f"kafka.sasl.{name}", f"sasl.{name}")
        value = newer if newer is not None else older
        if value is not None and (not isinstance(value, str) or not value or not value.isprintable()):
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE, f"the {name} of a store must be text without control characters"
            )
        if mechanism is not None and value is None:
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
        found.append(value)
    return found[0], found[1]


def _tls(properties: Mapping[str, Any], mechanism: str | None) -> bool:
    """A password never travels in the clear unless the statement says so; without one, plain unless it asks for TLS."""
    protocol = _protocol(properties)
    disabled = _boolean(properties, "tls.disabled", default=None)
    if protocol is not None:
        tls = protocol.endswith("SSL")
        if disabled is not None and disabled == tls:
            raise _conflict("security.protocol", "tls.disabled")
    elif disabled is not None:
        tls = not disabled
    else:
        tls = mechanism is not None or any(
            properties.get(key) is not None for key in ("tls.ca_cert_file", "tls.verify_server_hostname")
        )
    if not tls and properties.get("tls.ca_cert_file") is not None:
        raise _conflict("tls.ca_cert_file", "security.protocol" if disabled is None else "tls.disabled")
    return tls


def _protocol(properties: Mapping[str, Any]) -> str | None:
    value = properties.get("security.protocol")
    return None if value is None else _one_of("security.protocol", str(value).upper(), _PROTOCOLS)


def _boolean(properties: Mapping[str, Any], key: str, *, default: bool | None) -> Any:
    value = properties.get(key)
    if value is None:
        return default
    return _one_of(key, str(value).lower(), ("true", "false")) == "true"


def _one_of(key: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'property "{key}" cannot be "{value}"',
            hint=f"It is one of {', '.join(allowed)}.",
        )
    return value


def _certificates(value: object, folders: Sequence[Path]) -> str:
    given = Path(str(value))
    for folder in (folder.resolve() for folder in folders):
        path = (folder / given).resolve()
        if path.is_relative_to(folder) and path.is_file():
            try:
                text = path.read_text("ascii")
            except (OSError, UnicodeDecodeError) as error:
                raise SqlError(
                    sqlstates.CONFIG_FILE_ERROR, f'file "{given}" cannot be read', detail=f"{error}."
                ) from error
            if "-----BEGIN CERTIFICATE-----" not in text:
                raise SqlError(sqlstates.CONFIG_FILE_ERROR, f'file "{given}" holds no certificate in PEM form')
            return text
    raise SqlError(
        sqlstates.INSUFFICIENT_PRIVILEGE,
        f'file "{given}" is not under a configured folder',
        hint="The property 'tls.ca_cert_file' names a file, relative to a folder of the server's configuration.",
    )


def _conflict(first: str, second: str) -> SqlError:
    return SqlError(sqlstates.INVALID_PARAMETER_VALUE, f'properties "{first}" and "{second}" contradict each other')


def _jaas_string(text: str) -> str:
    """A quoted string of a JAAS configuration; unquoted, a password could add options or another module."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
