"""Look-ups whose rows the session has at hand, answered from the bytes of their messages to those of the answer.

Bind, Describe, Execute and Sync, each by itself, make a portal, a result and a transaction that are gone at Sync. Here
the messages of one look-up are told by their form, and what does not change from one to the next (the beginning of
Bind, RowDescription, how values are read and rows are framed) is made once. Whatever is not of that form, or cannot be
read, is left to the conversation, which also knows how to refuse it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mvserver.errors import SqlError
from mvserver.front import KeptRead, KeptReads, KeptRows
from mvserver.pgwire import messages, replies
from mvserver.pgwire.codec import Frame
from mvserver.pgwire.rows import RowFramer, all_formats, row_framer
from mvserver.types.column import BINARY_FORMAT, TEXT_FORMAT
from mvserver.types.registry import decoder, depends_on_zone
from mvserver.types.utf8 import decode_utf8

_ANY_ZONE = "UTC"
_LENGTH = struct.Struct("!i")
_COUNT_BYTES = _FORMAT_BYTES = 2
_READY = replies.ready_for_query("I")

# about the unnamed portal
_DESCRIBE = Frame(messages.DESCRIBE, b"P\0")
_EXECUTE = Frame(messages.EXECUTE, b"\0\0\0\0\0")  # all rows
_SYNC = Frame(messages.SYNC, b"")
_AFTER_BIND = ([_EXECUTE, _SYNC], [_DESCRIBE, _EXECUTE, _SYNC])


@dataclass(frozen=True, slots=True)
class _Form:
    """A Bind that differs from others in its values alone, or a simple query; and what its answers have in common."""

    head: bytes  # up to and with the number of parameters
    tail: bytes  # the formats of the result
    readers: tuple[Callable[[bytes], Any], ...]
    framer: RowFramer
    description: bytes


def answer(frames: Sequence[Frame], reads: KeptReads) -> bytes | None:
    """None where these are not the messages of one look-up, or it is not to be answered here."""
    try:
        if frames[0].kind == messages.QUERY and len(frames) == 1:
            return _answer_query(messages.read_query(frames[0].body).text, reads)
        if frames[0].kind == messages.PARSE:
            return _answer_bind(frames[1:], reads, messages.read_parse(frames[0].body))
        return _answer_bind(frames, reads, None)
    except (SqlError, ValueError, IndexError, struct.error):
        return None  # something cannot be read, as the conversation will tell


def _answer_query(text: str, reads: KeptReads) -> bytes | None:
    found = reads.query(text)
    if found is None:
        return None
    read, values = found
    form: _Form | None = read.wire
    if form is None:
        form = read.wire = _form(read, b"", b"", (), (TEXT_FORMAT,) * len(read.fields))
    rows = _rows(form, read.rows(values, text))
    return None if rows is None else b"".join((form.description, *rows, _complete(len(rows)), _READY))


def _answer_bind(frames: Sequence[Frame], reads: KeptReads, parse: messages.Parse | None) -> bytes | None:
    bind, after = frames[0], frames[1:]
    if bind.kind != messages.BIND or after not in _AFTER_BIND or bind.body[0] != 0:
        return None
    name = decode_utf8(bind.body[1 : bind.body.index(b"\0", 1)])
    if parse is None:
        read = reads.prepared(name)
    else:
        read = None if parse.name or name else reads.prepared("", parse.text, parse.parameter_oids)
    if read is None:
        return None
    body = bind.body
    form: _Form | None = read.wire
    if form is None or not (body.startswith(form.head) and body.endswith(form.tail)):
        form = read.wire = _form_of_bind(body, read)
    values = None if form is None else _values(body, form)
    if form is None or values is None:
        return None
    rows = _rows(form, read.rows(values))
    if rows is None:
        return None
    told = (
        b"" if parse is None else replies.PARSE_COMPLETE,
        replies.BIND_COMPLETE,
        form.description if len(after) == len(_AFTER_BIND[1]) else b"",
    )
    return b"".join((*told, *rows, _complete(len(rows)), _READY))


def _values(body: bytes, form: _Form) -> list[Any] | None:
    """Those of the parameters. No key is NULL, so neither is a value that is compared with one."""
    at, end = len(form.head), len(body) - len(form.tail)
    values = []
    for read in form.readers:
        (size,) = _LENGTH.unpack_from(body, at)
        start, at = at + _LENGTH.size, at + _LENGTH.size + size
        if size < 0 or at > end:
            return None
        values.append(read(body[start:at]))
    return values if at == end else None


def _form_of_bind(body: bytes, read: KeptRead) -> _Form | None:
    bind, oids = messages.read_bind(body), read.parameter_oids
    if len(bind.parameters) != len(oids) or any(map(depends_on_zone, oids)):
        return None
    readers = tuple(map(_reader, oids, all_formats(bind.parameter_formats, len(oids))))
    names = len(bind.portal.encode()) + 1 + len(bind.statement.encode()) + 1
    head = names + _COUNT_BYTES + _FORMAT_BYTES * len(bind.parameter_formats) + _COUNT_BYTES
    tail = len(body) - _COUNT_BYTES - _FORMAT_BYTES * len(bind.result_formats)
    return _form(read, body[:head], body[tail:], readers, all_formats(bind.result_formats, len(read.fields)))


def _form(
    read: KeptRead, head: bytes, tail: bytes, readers: tuple[Callable[[bytes], Any], ...], formats: tuple[int, ...]
) -> _Form:
    framer = row_framer(read.fields, formats, read.time_zone)
    return _Form(head, tail, readers, framer, replies.row_description(read.fields, formats))


def _reader(oid: int, form: int) -> Callable[[bytes], Any]:
    """ValueError for a value that has to be refused."""
    found = decoder(oid, _ANY_ZONE)
    if form == TEXT_FORMAT:
        return lambda raw: found.text(decode_utf8(raw))
    if form != BINARY_FORMAT or found.binary is None:
        raise ValueError(f"format {form} of type {oid}")
    return found.binary


def _rows(form: _Form, rows: KeptRows | None) -> Sequence[bytes] | None:
    return None if rows is None else form.framer.frame_kept(rows)


@lru_cache(maxsize=256)
def _complete(rows: int) -> bytes:
    return replies.command_complete(f"SELECT {rows}")
