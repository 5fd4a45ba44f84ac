"""The server's certificate, checked when the server starts: what is wrong with it must not be found by a client."""

from __future__ import annotations

import hashlib
import os
import ssl
import stat
from dataclasses import dataclass
from pathlib import Path

from mvserver import sqlstates
from mvserver.errors import SqlError


@dataclass(frozen=True)
class Tls:
    context: ssl.SSLContext
    required: bool  # clients that do without are refused
    binding: bytes | None = None  # tls-server-end-point (RFC 5929); None where the certificate's signature has none


def load(certificate: Path, key: Path, *, required: bool) -> Tls:
    """F0000 with what is wrong and in which file. The certificate's file may have its chain after it."""
    for what, path in (("certificate", certificate), ("key", key)):
        _check_readable(what, path)
    _check_private(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    try:
        # what OpenSSL says of a bad file hardly tells which one: the certificate is read by itself first
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(certificate)
    except (ssl.SSLError, OSError) as error:
        what = f"the TLS certificate {certificate} cannot be used"
        raise _refused(what, f"It is not PEM: {_reason(error)}.") from error
    try:
        context.load_cert_chain(certificate, key, password=_no_passphrase)
    except _PassphraseError as error:
        raise _refused(
            f"the TLS key {key} cannot be used",
            "It is protected by a passphrase.",
            hint="Take the passphrase away: openssl pkey -in FILE -out FILE.",
        ) from error
    except (ssl.SSLError, OSError) as error:
        reason = _reason(error)
        if "key values mismatch" in reason:
            raise _refused(f"the TLS key {key} is not the key of the certificate {certificate}") from error
        raise _refused(f"the TLS key {key} cannot be used", f"With the certificate {certificate}: {reason}.") from error
    return Tls(context, required, _end_point(certificate))


_HASHES = {
    # RSA with MD5, SHA-1, SHA-256, 384, 512, 224; where a signature's own hash is weak, SHA-256 takes its place
    "2a864886f70d010104": "sha256",
    "2a864886f70d010105": "sha256",
    "2a864886f70d01010b": "sha256",
    "2a864886f70d01010c": "sha384",
    "2a864886f70d01010d": "sha512",
    "2a864886f70d01010e": "sha224",
    # ECDSA with SHA-1, SHA-224, 256, 384, 512
    "2a8648ce3d0401": "sha256",
    "2a8648ce3d040301": "sha224",
    "2a8648ce3d040302": "sha256",
    "2a8648ce3d040303": "sha384",
    "2a8648ce3d040304": "sha512",
}


def _end_point(certificate: Path) -> bytes | None:
    """The hash of the server's certificate by which a client ties its proof to this connection."""
    _, mark, rest = certificate.read_text(encoding="ascii", errors="replace").partition(ssl.PEM_HEADER)
    body, footer, _ = rest.partition(ssl.PEM_FOOTER)
    if not mark or not footer:  # OpenSSL reads other labels too
        return None
    der = ssl.PEM_cert_to_DER_cert(f"{ssl.PEM_HEADER}{body}{ssl.PEM_FOOTER}")
    # Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm SEQUENCE { OBJECT IDENTIFIER ... } ... }
    signed, _ = _content(der, 0)
    _, behind = _content(der, signed)
    algorithm, _ = _content(der, behind)
    start, end = _content(der, algorithm)
    name = _HASHES.get(der[start:end].hex())
    return None if name is None else hashlib.new(name, der).digest()


def _content(der: bytes, at: int) -> tuple[int, int]:
    """Where the content of the DER element at ``at`` begins and ends."""
    length, start = der[at + 1], at + 2
    if length >= 0x80:
        size = length & 0x7F
        length, start = int.from_bytes(der[start : start + size]), start + size
    return start, start + length


class _PassphraseError(Exception):
    pass


def _no_passphrase() -> str:
    """Asked for where a key has one; without this OpenSSL would ask at the terminal."""
    raise _PassphraseError


def _check_readable(what: str, path: Path) -> None:
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise _refused(f"the TLS {what} {path} cannot be read", f"{error.strerror}.") from error


def _check_private(key: Path) -> None:
    """As PostgreSQL: nobody but the owner reads it; a key of root's may be read by its group."""
    found = key.stat()
    open_to = stat.S_IRWXG | stat.S_IRWXO
    if found.st_uid == 0 and os.geteuid() != 0:
        open_to &= ~stat.S_IRGRP
    if found.st_mode & open_to:
        raise _refused(
            f"the TLS key {key} has group or world access",
            "The file must have permissions u=rw (0600) or less, or u=rw,g=r (0640) or less if owned by root.",
            hint=f"chmod 600 {key}",
        )


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error)


def _refused(message: str, detail: str | None = None, *, hint: str | None = None) -> SqlError:
    return SqlError(sqlstates.CONFIG_FILE_ERROR, message, detail=detail, hint=hint)
