"""ETags of views: equal only where the answer is the same to the byte."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence

_TAG = re.compile(r'(?:W/)?("[^"]*")')


def etag(version: str, parts: Sequence[object]) -> str:
    """``version`` is that of the rows; ``parts`` are whatever else the answer depends on."""
    text = json.dumps([version, *map(str, parts)])
    return f'"{hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=18).hexdigest()}"'


def matches(header: str | None, tag: str) -> bool:
    """If-None-Match, compared weakly as HTTP has it: a proxy that compresses makes tags weak."""
    if header is None:
        return False
    return header.strip() == "*" or tag in _TAG.findall(header)
