"""The common part of the type families: the shape of an encoder, and bulk operations on Arrow columns.

An encoder turns a whole Arrow column into cells at once. ``column`` gives a ``binary`` array of the same length, NULLs
kept, made by Arrow's kernels outside the interpreter's lock wherever PostgreSQL's form allows it; ``cells`` gives a
list of bytes for results of a few rows, where calling kernels costs more than the cells do. Both must agree.
"""

from __future__ import annotations

import sys
from array import array as machine_array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mvserver import sqlstates
from mvserver.errors import SqlError

TEXT_FORMAT = 0
BINARY_FORMAT = 1

_RUNS_FROM_ROWS = 64

BINARY = pa.binary()
NO_BYTES = pa.scalar(b"", BINARY)

Column = Any  # a pyarrow array; the library ships no types
Cells = list[bytes | None]


@dataclass(frozen=True)
class Encoder:
    column: Callable[[Column], Column]
    cells: Callable[[Column], Cells]
    cell: Callable[[Any], bytes] | None = None  # of one Python value, where it is made from that

    def after(self, change: Callable[[Column], Column]) -> Encoder:
        """The same, for a column that has to be changed first."""
        column, cells = self.column, self.cells
        return Encoder(lambda array: column(change(array)), lambda array: cells(change(array)))


def bulk(column: Callable[[Column], Column]) -> Encoder:
    """For types too rare in look-ups to have a way of their own for a few rows."""
    return Encoder(column, lambda array: list(column(array).to_pylist()))


def per_cell(cell: Callable[[Any], bytes], values: Callable[[Column], Sequence[Any]] | None = None) -> Encoder:
    """For types whose form Arrow has no kernel for."""

    def cells(array: Column) -> Cells:
        found = array.to_pylist() if values is None else values(array)
        return [None if value is None else cell(value) for value in found]

    return Encoder(lambda array: pa.array(cells(array), BINARY), cells, cell if values is None else None)


def quick(column: Callable[[Column], Column], cell: Callable[[Any], bytes]) -> Encoder:
    """Kernels for many rows, ``cell`` over Python values for a few."""
    return Encoder(column, lambda array: [None if value is None else cell(value) for value in array.to_pylist()], cell)


def of_runs(column: Callable[[Column], Column]) -> Callable[[Column], Column]:
    """For values that are dear to write: where most are as the one before, as the times of commits are, each is written
    once."""

    def made(array: Column) -> Column:
        if len(array) < _RUNS_FROM_ROWS or not _has_runs(array):
            return column(array)
        coded = array.dictionary_encode()
        return column(coded.dictionary).take(coded.indices)

    return made


def _has_runs(array: Column) -> bool:
    same = pc.sum(pc.equal(array[1:], array[:-1])).as_py() or 0
    return bool(same * 4 >= len(array) * 3)


def as_text(array: Column) -> Column:
    """Arrow's own text form, as bytes."""
    return array.cast(pa.string()).cast(BINARY)


def convert(array: Column, to: Any, what: str) -> Column:
    """A cast that must not lose anything; a value that does not fit is 22003."""
    if array.type.equals(to):
        return array
    try:
        return array.cast(to)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SqlError(
            sqlstates.NUMERIC_VALUE_OUT_OF_RANGE, f"a value is out of range for type {what}", detail=str(error)
        ) from error


@lru_cache(maxsize=64)
def _steps(rows: int, width: int) -> Any:
    return pa.py_buffer(machine_array("i", range(0, rows * width + 1, width)))


def fixed(raw: Any, rows: int, width: int) -> Column:
    """``rows`` cells of ``width`` bytes each, laid end to end."""
    steps = _steps(rows, width) if rows <= 8192 else pa.py_buffer(machine_array("i", range(0, rows * width + 1, width)))
    return pa.Array.from_buffers(BINARY, rows, [None, steps, pa.py_buffer(raw)])


def keep_nulls(cells: Column, of: Column) -> Column:
    """``cells`` with NULL wherever ``of`` is NULL."""
    if of.null_count == 0:
        return cells
    return pc.if_else(of.is_valid(), cells, pa.scalar(None, BINARY))


def numbers(array: Column, code: str) -> machine_array[Any]:
    """A copy of a fixed-width column's values, NULLs being zero; ``code`` as the array module has it."""
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(0, array.type))
    values = machine_array(code)
    size = values.itemsize
    buffer = array.buffers()[1]
    if buffer is not None and len(array):
        values.frombytes(memoryview(buffer)[array.offset * size : (array.offset + len(array)) * size])
    return values


def big_endian(array: Column, code: str) -> Column:
    """Each value of a fixed-width column as its bytes in network order."""
    values = numbers(array, code)
    if sys.byteorder == "little":
        values.byteswap()
    return keep_nulls(fixed(values, len(array), values.itemsize), array)


def join(*parts: Column) -> Column:
    """Cells laid end to end, row by row; NULL where any part is."""
    return pc.binary_join_element_wise(*parts, NO_BYTES)


def literal(raw: bytes) -> Any:
    return pa.scalar(raw, BINARY)


def patched(column: Column, odd: Column, cell: Callable[[Any], bytes], values: Column) -> Column:
    """``column`` with the rows marked in ``odd`` encoded one by one, for the few values a kernel cannot do."""
    mask = pc.fill_null(odd, False)
    rare = pa.array([cell(value) for value in values.filter(mask).to_pylist()], BINARY)
    return pc.replace_with_mask(column, mask, rare)


def any_true(mask: Column) -> bool:
    return bool(pc.any(mask).as_py())


def offsets(array: Column) -> machine_array[int]:
    """The n + 1 offsets of a binary or string column."""
    values = machine_array("i")
    buffer = array.buffers()[1]
    if len(array) == 0 or buffer is None:
        return machine_array("i", [0] * (len(array) + 1))
    values.frombytes(memoryview(buffer)[array.offset * 4 : (array.offset + len(array) + 1) * 4])
    return values
