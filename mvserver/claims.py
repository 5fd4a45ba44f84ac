"""Claims: what is known of whom a role acts for. They are settings of a session, which row policies read."""

from __future__ import annotations

import re

PREFIX = "mv.claim."
_NAME = re.compile(r"[a-z_][a-z0-9_$]*(?:\.[a-z_][a-z0-9_$]*)*")


def is_claim(setting: str) -> bool:
    """``setting`` in lower case."""
    return setting.startswith(PREFIX) and is_name(setting[len(PREFIX) :])


def is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None
