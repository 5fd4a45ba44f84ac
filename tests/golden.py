"""Texts that the server makes of statements, kept in files that a person reads: what a change does to them is its diff.

A file holds cases apart by empty lines: a statement, a line ``=>``, and what becomes of it. With
``MVSERVER_WRITE_GOLDEN=1`` in the environment a test writes the results anew instead of comparing them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

_ARROW = "\n=>\n"
_WRITES = os.environ.get("MVSERVER_WRITE_GOLDEN") == "1"


def check(path: Path, made: Callable[[str], str]) -> None:
    """``made`` gives the text for a statement, without empty lines."""
    statements = [case.split(_ARROW)[0] for case in path.read_text(encoding="utf-8").strip().split("\n\n")]
    now = "\n\n".join(f"{statement}{_ARROW}{made(statement)}" for statement in statements) + "\n"
    if _WRITES:
        path.write_text(now, encoding="utf-8")
    assert now == path.read_text(encoding="utf-8"), f"MVSERVER_WRITE_GOLDEN=1 writes {path.name} anew"
