"""Certificates of OpenSSL's making, in a folder of the test's own."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificate:
    file: Path
    key: Path


def make(folder: Path, name: str = "server", *, algorithm: str = "ec") -> Certificate:
    """Signed by itself, for localhost and 127.0.0.1."""
    certificate = Certificate(folder / f"{name}.crt", folder / f"{name}.key")
    of = {
        "ec": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
        "rsa": ["-newkey", "rsa:2048", "-sha384"],
        "ed25519": ["-newkey", "ed25519"],
    }[algorithm]
    openssl(
        "req", "-x509", *of, "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(certificate.key), "-out", str(certificate.file),
    )  # fmt: skip
    certificate.key.chmod(0o600)
    return certificate


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=30)
