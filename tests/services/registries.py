"""Registries of packages that tests install from: where one cannot be reached, a test is left out and says so."""

from __future__ import annotations

import re

UNREACHABLE = re.compile(
    r"NewConnectionError|ConnectTimeoutError|ProxyError|"
    r"ENOTFOUND|EAI_AGAIN|ECONN\w+|ETIMEDOUT|EHOSTUNREACH|E40[13]|E50\d|network|dial tcp|Could not resolve"
)
"""What the package tools say then."""
