"""Records of the Kinesis Producer Library: several user records in one, by its published format.

A record that begins with the format's magic bytes and ends with the right MD5 sum is taken apart. Any other one is
itself. Of a record that was in flight while its shard was split, the producer sends those parts again that belong to
another shard; a reader leaves these out, by their hash keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_MAGIC = b"\xf3\x89\x9a\xc2"
_SUM_BYTES = 16
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class UserRecord:
    """``number`` is its place among those of one record; None for a record that is itself."""

    partition_key: str
    data: bytes
    number: int | None = None


def user_records(partition_key: str, data: bytes, hash_keys: tuple[int, int]) -> Sequence[UserRecord]:
    """``hash_keys`` are the first and the last of the shard's range."""
    if not data.startswith(_MAGIC):
        return (UserRecord(partition_key, data),)
    body, checksum = data[len(_MAGIC) : -_SUM_BYTES], data[-_SUM_BYTES:]
    if len(data) < len(_MAGIC) + _SUM_BYTES or hashlib.md5(body, usedforsecurity=False).digest() != checksum:
        return (UserRecord(partition_key, data),)
    try:
        return [
            UserRecord(key, part, number)
            for number, (key, explicit, part) in enumerate(_parts(body))
            if hash_keys[0] <= (hash_key(key) if explicit is None else int(explicit)) <= hash_keys[1]
        ]
    except (IndexError, ValueError):
        return (UserRecord(partition_key, data),)


def hash_key(partition_key: str) -> int:
    """By which the service chooses a record's shard."""
    return int.from_bytes(hashlib.md5(partition_key.encode(), usedforsecurity=False).digest(), "big")


def _parts(body: bytes) -> Sequence[tuple[str, str | None, bytes]]:
    """Partition key, explicit hash key and data of each."""
    keys: list[str] = []
    explicit: list[str] = []
    records: list[bytes] = []
    for field, value in _fields(body):
        if not isinstance(value, bytes):
            raise ValueError(field)
        if field == 1:
            keys.append(value.decode())
        elif field == 2:
            explicit.append(value.decode())
        elif field == 3:
            records.append(value)
    found = []
    for record in records:
        fields = dict(_fields(record))
        key, own, data = fields.get(1), fields.get(2), fields.get(3)
        if not isinstance(key, int) or not isinstance(data, bytes) or isinstance(own, bytes):
            raise ValueError(record)
        found.append((keys[key], None if own is None else explicit[own], data))
    return found


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Of a Protocol Buffers message: numbers, and bytes of what has a length."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        wire = tag & 7
        if wire == _VARINT:
            value, at = _varint(message, at)
            yield tag >> 3, value
            continue
        if wire == _BYTES:
            size, at = _varint(message, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(wire)
        if at + size > len(message):
            raise ValueError(size)
        yield tag >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError(value)
