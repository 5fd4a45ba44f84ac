"""Protobuf records by Google's own library, the oracle of the decoder, with id and message index before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from google.protobuf import descriptor_pool, json_format, message_factory

from spark_sinks.schema_registry.base import PROTOBUF, KnownSchemas, RegisteredSchema
from spark_sinks.schema_registry.protobuf import descriptor_set, prepared


@cache
def _class(text: str, name: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_set(RegisteredSchema(1, PROTOBUF, text)).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def known(*texts: str) -> KnownSchemas:
    """With the ids 1, 2 ..."""
    return KnownSchemas(1, tuple(prepared(RegisteredSchema(i, PROTOBUF, text)) for i, text in enumerate(texts, 1)))


def message(text: str, name: str, value: Mapping[str, Any], *, id_: int = 1, index: Sequence[int] = ()) -> bytes:
    """``value`` as in Protobuf's JSON, by the names of the file."""
    found = json_format.ParseDict(dict(value), _class(text, name)())
    head = b"\0" if not index else b"".join(_zigzag(part) for part in (len(index), *index))
    return b"\0" + id_.to_bytes(4, "big") + head + found.SerializeToString()


def read(text: str, name: str, record: bytes) -> Any:
    """The message of a record of the file's first one."""
    return _class(text, name).FromString(record[6:])


def _zigzag(number: int) -> bytes:
    return bytes([number << 1])  # small ones alone
