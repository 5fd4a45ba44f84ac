"""DISCARD ALL as a text, which poolers send after each transaction: it is told without being parsed."""

from __future__ import annotations

from mvserver import limits
from mvserver.session.reads.pulls import bare

DISCARDED_ALL = "DISCARD ALL"


def is_discard_all(text: str) -> bool:
    return text == DISCARDED_ALL or (len(text) <= limits.RESET_BYTES_MAX and bare(text).upper() == DISCARDED_ALL)
