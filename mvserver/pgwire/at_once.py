"""The messages that are answered on the event loop: short statements, whole from Parse or Bind to Sync.

A look-up takes DuckDB a few hundred microseconds, and two changes of threads take as long again.
"""

from __future__ import annotations

from collections.abc import Iterable

from mvserver.front import AnswersAtOnce
from mvserver.pgwire import messages
from mvserver.pgwire.codec import Frame
from mvserver.types.utf8 import decode_utf8

_ACCOMPANYING = frozenset({messages.DESCRIBE, messages.SYNC, messages.FLUSH})
_ALL_ROWS = b"\0\0\0\0"


def are_short(frames: Iterable[Frame], session: AnswersAtOnce) -> bool:
    """SqlError for a message that cannot be read."""
    parsed: set[str] = set()
    bound = asked = False
    for frame in frames:
        kind = frame.kind
        if kind == messages.BIND:
            statement = decode_utf8(frame.body.split(b"\0", 2)[1]) if frame.body.count(b"\0") > 1 else ""
            if statement not in parsed and not session.is_short(statement):
                return False
            bound = True
        elif kind == messages.EXECUTE:
            if not bound or not frame.body.endswith(_ALL_ROWS):
                return False
        elif kind == messages.PARSE:
            message = messages.read_parse(frame.body)
            if not session.is_short_text(message.text, message.parameter_oids):
                return False
            parsed.add(message.name)
        elif kind == messages.QUERY:
            if not session.is_short_query(messages.read_query(frame.body).text):
                return False
            asked = True
        elif kind not in _ACCOMPANYING:
            return False
    return asked or bound or bool(parsed)
