"""A format as one frozen record. Each has a file of this folder, and a place in ``formats.FORMATS``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spark_sinks.decode.columns import DecodeColumn, Decoded

Decoder = Callable[[Sequence[DecodeColumn], str, str], Decoded]
"""Given the declared columns, the frame's column that has the bytes, and a prefix for the names that it makes."""


@dataclass(frozen=True)
class Format:
    """``trial`` is a cheaper decoder: see :class:`spark_sinks.decode.Decoded`."""

    name: str
    decoder: Decoder
    trial: Decoder | None = None
    typed_by_spark: bool = False  # records come as typed columns, and not as bytes
    of_values: bool = True
    of_keys: bool = False
    declared: bool = True  # statements can name it


@dataclass(frozen=True)
class PlannedFormat:
    """A format that statements may name already, with its own properties, and are told that there is none yet."""

    name: str
    properties: tuple[str, ...] = ()
