"""Arrays of every element type: ``{1,NULL,"a b"}``, or PostgreSQL's binary layout of dimensions and elements.

Elements are encoded by their own type's encoder over the flattened column, so that an array of a type can do no less
and no more than the type.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mvserver import limits, sqlstates
from mvserver.errors import SqlError
from mvserver.types import oids
from mvserver.types.column import BINARY, BINARY_FORMAT, Cells, Column, Encoder, bulk, join, keep_nulls, literal
from mvserver.types.parameter import Decoder, bad_binary, never_stopped

_HEAD = struct.Struct("!iiI")  # dimensions, whether there are NULLs, element type
_DIMENSION = struct.Struct("!ii")  # length, lower bound
_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)
_VECTORS = {oids.INT2VECTOR: oids.INT2, oids.OIDVECTOR: oids.OID}
_PIECE_CHARACTERS = 16_384  # of what is read without a look at whether it is still wanted
_PIECE_ELEMENTS = 1_024
_ELEMENTS_MAX = 134_217_727  # PostgreSQL's MaxArraySize

# in these no element needs quotes
_BARE = frozenset({oids.BOOL, oids.INT2, oids.INT4, oids.INT8, oids.OID, oids.FLOAT4, oids.FLOAT8, oids.NUMERIC,
                   oids.UUID, oids.TIME, oids.REGPROC})  # fmt: skip
_MUST_QUOTE = r'^$|^(?i:null)$|[{}",\\ \t\n\r\x0b\x0c]'
_SPACES = " \t\n\r\v\f"
_BARE_ITEM = re.compile(r'[^,{}"\\]*(?:\\.[^,{}"\\]*)*', re.DOTALL)
_QUOTED_ITEM = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_MUST_ESCAPE = r'(["\\])'


def is_list(arrow: Any) -> bool:
    types = pa.types
    return bool(types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow))


def element_oid(oid: int) -> int | None:
    """The element type of an array type, None for other types."""
    return _VECTORS.get(oid) or oids.element_of(oid)


def leaf_type(arrow: Any) -> Any:
    while is_list(arrow):
        arrow = arrow.value_type
    return arrow


def encoder(oid: int, form: int, arrow: Any, element: Encoder) -> Encoder:
    """``element`` encodes the innermost type in the same format."""
    inner = element_oid(oid) or oids.TEXT
    depth = 0
    while is_list(arrow):
        arrow, depth = arrow.value_type, depth + 1
    if form == BINARY_FORMAT:
        start = 0 if oid in _VECTORS else 1
        return bulk(lambda array: pa.array(_binary_cells(array, depth, inner, start, element), BINARY))
    if oid in _VECTORS:
        return bulk(lambda array: _joined(array, lambda items: element.column(items), b"", b" ", b""))
    return bulk(lambda array: _text(array, depth, inner in _BARE, element))


def _ordinary(array: Column) -> Column:
    """Large and fixed-size lists as ordinary ones."""
    return array if pa.types.is_list(array.type) else array.cast(pa.list_(array.type.value_type))


def _text(array: Column, depth: int, bare: bool, element: Encoder) -> Column:
    def items(flat: Column) -> Column:
        if depth > 1:
            return _text(flat, depth - 1, bare, element)
        cells = element.column(flat)
        return cells if bare else _quoted(cells)

    return _joined(array, items, b"{", b",", b"}")


def _quoted(cells: Column) -> Column:
    must = pc.fill_null(pc.match_substring_regex(cells, _MUST_QUOTE), False)
    if not pc.any(must).as_py():
        return cells
    escaped = pc.replace_substring_regex(cells, _MUST_ESCAPE, r"\\\1")
    return pc.if_else(must, join(literal(b'"'), escaped, literal(b'"')), cells)


def _joined(array: Column, items: Any, opening: bytes, separator: bytes, closing: bytes) -> Column:
    array = _ordinary(array)
    cells = pc.fill_null(items(array.flatten()), literal(b"NULL"))
    lists = pa.ListArray.from_arrays(pa.array(_bounds(array), pa.int32()), cells)
    return keep_nulls(join(literal(opening), pc.binary_join(lists, literal(separator)), literal(closing)), array)


def _bounds(array: Column) -> list[int]:
    """Where each list begins in the flattened column; a NULL list has no elements there."""
    bounds = [0]
    for length in array.value_lengths().to_pylist():
        bounds.append(bounds[-1] + (length or 0))
    return bounds


def _binary_cells(array: Column, depth: int, inner: int, start: int, element: Encoder) -> Cells:
    levels: list[list[int]] = []
    valid = array.is_valid().to_pylist()
    level = array
    for at in range(depth):
        level = _ordinary(level)
        if at and level.null_count:
            raise _ragged()
        levels.append(_bounds(level))
        level = level.flatten()
    cells = element.column(level).to_pylist()
    return [_binary(levels, row, cells, inner, start) if present else None for row, present in enumerate(valid)]


def _binary(levels: Sequence[Sequence[int]], row: int, cells: Cells, inner: int, start: int) -> bytes:
    first, last = row, row + 1
    shape: list[int] = []
    for bounds in levels:
        sizes = {bounds[at + 1] - bounds[at] for at in range(first, last)}
        if len(sizes) > 1:
            raise _ragged()
        shape.append(sizes.pop() if sizes else 0)
        first, last = bounds[first], bounds[last]
    own = cells[first:last]
    if not own:
        return _HEAD.pack(0, 0, inner)
    if len(shape) > limits.ARRAY_DIMENSIONS_MAX:
        raise SqlError(
            sqlstates.PROGRAM_LIMIT_EXCEEDED,
            f"number of array dimensions ({len(shape)}) exceeds the maximum allowed ({limits.ARRAY_DIMENSIONS_MAX})",
        )
    parts = [_HEAD.pack(len(shape), int(None in own), inner)]
    parts += [_DIMENSION.pack(size, start) for size in shape]
    for cell in own:
        if cell is None:
            parts.append(_NULL)
        else:
            parts += (_LENGTH.pack(len(cell)), cell)
    return b"".join(parts)


def _ragged() -> SqlError:
    return SqlError(
        sqlstates.ARRAY_SUBSCRIPT_ERROR,
        "multidimensional arrays must have array expressions with matching dimensions",
        hint="Lists of lists of different lengths have no binary form: ask for the text format.",
    )


def decoder(oid: int, element: Decoder, check: Callable[[], None] = never_stopped) -> Decoder:
    """``check`` is called now and then, and raises when nobody wants the array any more."""
    inner = oids.element_of(oid) or oids.TEXT

    def from_text(text: str) -> list[Any]:
        return _TextReader(text, element, check).read()

    def from_binary(raw: bytes) -> list[Any]:
        return _read_binary(raw, inner, element, check)

    return Decoder(from_text, from_binary)


class _TextReader:
    """Reads ``{...}`` without recursion on its length; depth is bounded by PostgreSQL's six dimensions."""

    def __init__(self, text: str, element: Decoder, check: Callable[[], None]) -> None:
        self._text = text
        self._element = element
        self._check = check
        self._at = 0
        self._singly_to = 0  # up to here elements have to be read one by one

    def _bad(self, detail: str) -> SqlError:
        shown = self._text if len(self._text) <= 200 else self._text[:200] + "..."
        return SqlError(sqlstates.INVALID_TEXT_REPRESENTATION, f'malformed array literal: "{shown}"', detail=detail)

    def read(self) -> list[Any]:
        self._skip()
        if self._peek() == "[":  # explicit bounds: the elements are what counts
            equals = self._text.find("=", self._at)
            if equals < 0:
                raise self._bad('Missing "=" after array dimensions.')
            self._at = equals + 1
            self._skip()
        if self._peek() != "{":
            raise self._bad('Array value must start with "{" or dimension information.')
        value = self._list(1)
        self._skip()
        if self._at != len(self._text):
            raise self._bad("Junk after closing right brace.")
        return value

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self) -> None:
        while self._peek() and self._peek() in _SPACES:
            self._at += 1

    def _list(self, depth: int) -> list[Any]:
        if depth > limits.ARRAY_DIMENSIONS_MAX:
            raise SqlError(
                sqlstates.PROGRAM_LIMIT_EXCEEDED,
                f"number of array dimensions ({depth}) exceeds the maximum allowed ({limits.ARRAY_DIMENSIONS_MAX})",
            )
        self._at += 1
        items: list[Any] = []
        self._skip()
        if self._peek() == "}":
            self._at += 1
            return items
        while True:
            self._check()
            items += self._several()
            self._skip()
            items.append(self._list(depth + 1) if self._peek() == "{" else self._item())
            self._skip()
            delimiter = self._peek()
            self._at += 1
            if delimiter == "}":
                return items
            if delimiter != ",":
                raise self._bad("Unexpected end of input." if not delimiter else "Unexpected array element.")

    def _several(self) -> Sequence[Any]:
        """As many elements as are quickly read together, up to a comma."""
        if self._element.texts is None or self._at < self._singly_to:
            return ()
        end = self._text.rfind(",", self._at, self._at + _PIECE_CHARACTERS)
        found = self._element.texts(self._text[self._at : end]) if end > 0 else None
        if found is None:
            self._singly_to = self._at + _PIECE_CHARACTERS
            return ()
        self._at = end + 1
        return found

    def _item(self) -> Any:
        if self._peek() == '"':
            return self._element.text(self._quoted())
        match = _BARE_ITEM.match(self._text, self._at)
        raw = match[0] if match else ""
        self._at += len(raw)
        if self._at >= len(self._text):
            raise self._bad("Unexpected end of input.")
        word = _ESCAPED.sub(r"\1", raw.rstrip(_SPACES))
        if not word:
            raise self._bad("Unexpected array element.")
        return None if word.upper() == "NULL" and "\\" not in raw else self._element.text(word)

    def _quoted(self) -> str:
        match = _QUOTED_ITEM.match(self._text, self._at)
        if match is None:
            raise self._bad("Unexpected end of input.")
        self._at = match.end()
        return _ESCAPED.sub(r"\1", match[1])


def _read_binary(raw: bytes, inner: int, element: Decoder, check: Callable[[], None]) -> list[Any]:
    if element.binary is None or len(raw) < _HEAD.size:
        raise bad_binary()
    depth, flags, oid = _HEAD.unpack_from(raw)
    if not 0 <= depth <= limits.ARRAY_DIMENSIONS_MAX or flags not in (0, 1):
        raise bad_binary()
    if oid != inner:
        raise SqlError(
            sqlstates.DATATYPE_MISMATCH, f"binary data has array element type {oid} instead of expected {inner}"
        )
    at = _HEAD.size
    shape: list[int] = []
    count = 1
    for _ in range(depth):
        if at + _DIMENSION.size > len(raw):
            raise bad_binary()
        size, _lower = _DIMENSION.unpack_from(raw, at)
        at += _DIMENSION.size
        shape.append(size)
        count *= size
        if size < 0 or count > _ELEMENTS_MAX:
            raise bad_binary()
    if depth == 0 or count == 0:
        if at != len(raw):
            raise bad_binary()
        return []
    if count * _LENGTH.size > len(raw) - at:  # before anything is made of the announced size
        raise bad_binary()
    items: list[Any] = []
    cells = _cells(raw, at, count)
    while piece := list(islice(cells, _PIECE_ELEMENTS)):
        check()
        items += [None if cell is None else element.binary(cell) for cell in piece]
    for size in reversed(shape[1:]):
        items = [items[start:end] for start, end in pairwise(range(0, len(items) + 1, size))]
    return items


def _cells(raw: bytes, at: int, count: int) -> Iterator[bytes | None]:
    for _ in range(count):
        if at + _LENGTH.size > len(raw):
            raise bad_binary()
        (size,) = _LENGTH.unpack_from(raw, at)
        at += _LENGTH.size
        if size == -1:
            yield None
            continue
        if size < 0 or at + size > len(raw):
            raise bad_binary()
        yield raw[at : at + size]
        at += size
    if at != len(raw):
        raise bad_binary()
