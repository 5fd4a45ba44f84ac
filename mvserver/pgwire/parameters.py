"""The parameters of a Bind message as Python's values. They may come to megabytes, and so be told to stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.types.column import TEXT_FORMAT
from mvserver.types.parameter import never_stopped
from mvserver.types.registry import decode_parameter


def read_all(
    portal: str, sent: Sequence[tuple[bytes | None, int, int]], zone: str, check: Callable[[], None] = never_stopped
) -> list[Any]:
    """Each was sent as bytes in a format, and is of a type."""
    values = []
    for number, (raw, form, oid) in enumerate(sent, 1):
        check()
        values.append(_parameter(portal, number, raw, form, oid, zone, check))
    return values


def _parameter(
    portal: str, number: int, raw: bytes | None, form: int, oid: int, zone: str, check: Callable[[], None]
) -> Any:
    """The value of a parameter; an error says which one it is, but not its value, which may be a secret."""
    try:
        return decode_parameter(number, raw, form, oid, zone, check)
    except SqlError as error:
        named = f'portal "{portal}"' if portal else "unnamed portal"
        value = " = '...'" if form == TEXT_FORMAT and error.sqlstate != sqlstates.CHARACTER_NOT_IN_REPERTOIRE else ""
        error.context = f"{named} parameter ${number}{value}"
        raise
