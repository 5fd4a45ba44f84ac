"""The common part of the decoders of parameters: their shape and their errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError


@dataclass(frozen=True)
class Decoder:
    """Text comes checked as UTF-8; ``binary`` is None where a type has no binary form here. ``texts`` reads many at
    once, joined by commas, where that costs less; None where they have to be looked at one by one."""

    text: Callable[[str], Any]
    binary: Callable[[bytes], Any] | None
    texts: Callable[[str], Sequence[Any] | None] | None = None


def never_stopped() -> None:
    """For what is read without anybody who could stop it."""


def bad_text(name: str, text: str, sqlstate: str = sqlstates.INVALID_TEXT_REPRESENTATION) -> SqlError:
    shown = text if len(text) <= 200 else text[:200] + "..."
    return SqlError(sqlstate, f'invalid input syntax for type {name}: "{shown}"')


def bad_binary() -> SqlError:
    """The number of the parameter is added where it is known."""
    return SqlError(sqlstates.INVALID_BINARY_REPRESENTATION, "incorrect binary data format in bind parameter")


def out_of_range(name: str, text: str) -> SqlError:
    shown = text if len(text) <= 200 else text[:200] + "..."
    return SqlError(sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, f'value "{shown}" is out of range for type {name}')
