"""The log-in module of a Java client as one entry of a JAAS configuration."""

from __future__ import annotations

from collections.abc import Mapping


def jaas(module: str, options: Mapping[str, str]) -> str:
    given = "".join(f" {name}={_string(value)}" for name, value in options.items())
    return f"{module} required{given};"


def _string(text: str) -> str:
    """A quoted string, in which a line break has to be escaped; unquoted, a password could add options or another
    module."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return f'"{escaped}"'
