"""A source position as the metadata of offset commits: text of at most 4 KB for each partition of the sink's topic.

Kafka commits offsets and records in one transaction, and an offset may carry a note. That note is where the position
travels, so that source and sink may be different clusters, or of different kinds.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping, Sequence

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.base import Position
from spark_sinks.kafka.limits import KAFKA_OFFSET_METADATA_BYTES_MAX

_HEADER = re.compile(r"mv1 (?P<number>\d+)/(?P<count>\d+) (?P<check>[0-9a-f]{8}) ")
_HEADER_BYTES_MAX = 32
_CHUNK_BYTES = KAFKA_OFFSET_METADATA_BYTES_MAX - _HEADER_BYTES_MAX


def pack(position: Position, partitions: int) -> list[str]:
    """A note for each of the first partitions; 54000 when they are too few."""
    plain = json.dumps(dict(position), separators=(",", ":"), sort_keys=True).encode()
    text = base64.b85encode(zlib.compress(plain, 9)).decode("ascii")
    chunks = [text[begin : begin + _CHUNK_BYTES] for begin in range(0, len(text), _CHUNK_BYTES)]
    if len(chunks) > partitions:
        raise SqlError(
            sqlstates.PROGRAM_LIMIT_EXCEEDED,
            "source position is too long to be kept in the sink's topic",
            detail=f"It has {len(text)} bytes packed; {partitions} partitions hold {partitions * _CHUNK_BYTES}.",
            hint="Write to a topic with more partitions.",
        )
    check = zlib.crc32(text.encode())
    return [f"mv1 {number}/{len(chunks)} {check:08x} {chunk}" for number, chunk in enumerate(chunks)]


def unpack(notes: Mapping[int, str]) -> Position | None:
    """By partition; None when nothing was ever committed. XX001 for notes that do not belong together.

    Notes of partitions beyond the count are left over from a longer position.
    """
    if not notes.get(0):
        return None
    first = _HEADER.match(notes[0])
    if first is None:
        raise _damaged("The first note is not one of ours.")
    chunks: list[str] = []
    for number in range(int(first["count"])):
        note = notes.get(number, "")
        header = _HEADER.match(note)
        if header is None or int(header["number"]) != number or header["check"] != first["check"]:
            raise _damaged(f"Note {number} of {first['count']} does not belong to the others.")
        chunks.append(note[header.end() :])
    return _decoded(chunks, int(first["check"], 16))


def _decoded(chunks: Sequence[str], check: int) -> Position:
    text = "".join(chunks)
    if zlib.crc32(text.encode()) != check:
        raise _damaged("Its check sum is wrong.")
    position = json.loads(zlib.decompress(base64.b85decode(text)))
    if not isinstance(position, dict):
        raise _damaged("It is not a position.")
    return position


def _damaged(detail: str) -> SqlError:
    return SqlError(sqlstates.DATA_CORRUPTED, "source position kept in the sink cannot be read", detail=detail)
