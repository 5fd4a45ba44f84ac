"""Where a query over several sources begins, as the catalog has it: JSON with the position of each.

A ``REFRESH`` drops the state of such a view before it makes the new one. Between the two the mark says that whatever
the sources still have is all that the view needs, also to a server that starts meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_SOURCES, _REBUILDING = "sources", "rebuilding"


def sources_of(start_position: str) -> Sequence[Any]:
    """The position of each, in their order."""
    found: Sequence[Any] = json.loads(start_position)[_SOURCES]
    return found


def is_rebuilding(start_position: str) -> bool:
    return _REBUILDING in json.loads(start_position)


def rebuilding(start_position: str, *, begun: bool) -> str:
    """With the mark, or without it."""
    mark = {_REBUILDING: True} if begun else {}
    return json.dumps({_SOURCES: sources_of(start_position), **mark}, sort_keys=True)
