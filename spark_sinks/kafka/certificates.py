"""Certificates and keys in PEM form, from files of the configured folders, as both clients take them: as text, so that
executors on other machines need no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.property_values import configured_file

CERTIFICATE, KEY = "tls.client.cert_file", "tls.client.key_file"
_PEM_BYTES_MAX = 1024 * 1024
_KEY = "-----BEGIN PRIVATE KEY-----"


@dataclass(frozen=True)
class ClientCertificate:
    """What this server shows to a cluster that asks who it is: a chain of certificates, and the key of the first."""

    chain: str
    key: str = field(repr=False)

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any], folders: Sequence[Path]) -> ClientCertificate | None:
        given = [key for key in (CERTIFICATE, KEY) if properties.get(key) is not None]
        if not given:
            return None
        for needed in (CERTIFICATE, KEY):
            if needed not in given:
                raise SqlError(
                    sqlstates.INVALID_PARAMETER_VALUE, f'property "{given[0]}" needs the property "{needed}"'
                )
        return cls(certificates(CERTIFICATE, properties[CERTIFICATE], folders), _key(properties[KEY], folders))

    def librdkafka(self) -> dict[str, str]:
        return {"ssl.certificate.pem": self.chain, "ssl.key.pem": self.key}

    def java(self) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": self.chain,
            "ssl.keystore.key": self.key,
        }


def certificates(property_: str, value: object, folders: Sequence[Path]) -> str:
    """The text of a file that has at least one certificate."""
    text = _pem(property_, value, folders)
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise SqlError(sqlstates.CONFIG_FILE_ERROR, f'file "{value}" holds no certificate in PEM form')
    return text


def _key(value: object, folders: Sequence[Path]) -> str:
    text = _pem(KEY, value, folders)
    if _KEY not in text:  # Java's client reads no other form, and of encrypted ones only what is out of date
        raise SqlError(
            sqlstates.CONFIG_FILE_ERROR,
            f'file "{value}" holds no private key in PKCS #8 form',
            detail="A key that is encrypted is not read either.",
            hint="The command openssl pkcs8 -topk8 -nocrypt turns other keys into that form.",
        )
    return text


def _pem(property_: str, value: object, folders: Sequence[Path]) -> str:
    path = configured_file(property_, value, folders)
    try:
        if path.stat().st_size > _PEM_BYTES_MAX:
            raise SqlError(
                sqlstates.CONFIG_FILE_ERROR,
                f'file "{value}" is too large',
                detail=f"It may have {_PEM_BYTES_MAX} bytes.",
            )
        return path.read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise SqlError(sqlstates.CONFIG_FILE_ERROR, f'file "{value}" cannot be read', detail=f"{error}.") from error
