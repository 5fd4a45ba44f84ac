"""XML, one element a record. Its elements, and its attributes under names with ``_`` before them, are the columns.

The record is read as a whole by a function in Java (``mvserver/streaming/spark/java/Xml.java``), which gives JSON of
the declared columns; from there on it is decoded as JSON is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.decode.columns import DecodeColumn, Decoded, RecordFunction
from spark_sinks.decode.format import Format
from spark_sinks.decode.json_format import decode_json
from spark_sinks.decode.registered_records import declared_fields
from spark_sinks.encode.written import Encode

_DECODER = "Xml"
_ROOT = "record"
_OWN_TEXT = "_value"  # the text of an element that has attributes, too
_NIL = '<{} xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>'
_NO_CHARACTER = re.compile("[^\t\n\r\\u0020-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
_DIGEST_BYTES = 16


def decode_xml(columns: Sequence[DecodeColumn], value: str, prefix: str) -> Decoded:
    declared = json.dumps(declared_fields(columns))
    digest = hashlib.blake2b(declared.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    function = RecordFunction(f"mv_xml_{digest}", declared, "{}", "struct<json:string,reason:string>", _DECODER)
    made, reason = f"{prefix}x", f"{prefix}y"
    of_json = decode_json(columns, f"{made}.json", prefix)
    return Decoded(
        stages=(
            (f"{function.name}({value}) AS {made}",),
            *of_json.stages,
            (f"coalesce({made}.reason, {of_json.reason}) AS {reason}",),
        ),
        columns=of_json.columns,
        good=f"({reason} IS NULL)",
        reason=reason,
        functions=(function,),
    )


def encode_xml(columns: Sequence[DecodeColumn], delimiter: str) -> Encode:
    """Of a row's object. What is NULL has no element."""
    fields = [(column.name, column.type) for column in columns]

    def encode(row: bytes) -> bytes:
        return _element(_ROOT, fields, json.loads(row, parse_int=str, parse_float=str)).encode()

    return encode


def _element(name: str, fields: Sequence[tuple[str, DataType]], value: dict[str, Any]) -> str:
    given = [(field, kind, value[field]) for field, kind in fields if value[field] is not None]
    attributes = "".join(f" {field[1:]}={_attribute(each)}" for field, _, each in given if _is_attribute(field))
    text = "".join(_text(each) for field, _, each in given if field == _OWN_TEXT)
    inside = "".join(_part(field, kind, each) for field, kind, each in given if not field.startswith("_"))
    return f"<{name}{attributes}>{text}{inside}</{name}>"


def _is_attribute(field: str) -> bool:
    return field.startswith("_") and field != _OWN_TEXT


def _part(name: str, kind: DataType, value: Any) -> str:
    if isinstance(kind, ArrayType):
        return "".join(_NIL.format(name) if each is None else _part(name, kind.elementType, each) for each in value)
    if isinstance(kind, StructType):
        return _element(name, [(field.name, field.dataType) for field in kind.fields], value)
    assert not isinstance(kind, MapType)  # noqa: S101 - refused when it was declared
    return f"<{name}>{_text(value)}</{name}>"


def _text(value: Any) -> str:
    # A carriage return that stands for itself would be read as the end of a line.
    return escape(_plain(value), {"\r": "&#13;"})


def _attribute(value: Any) -> str:
    return quoteattr(_plain(value), {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"})


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    found = _NO_CHARACTER.search(text)
    if found is not None:
        raise SqlError(
            sqlstates.DATA_EXCEPTION,
            f"a text with the character U+{ord(found[0]):04X} cannot be written as XML",
            hint="Replace it in the SELECT, or leave such rows out with WHERE.",
        )
    return text


XML = Format("xml", decode_xml, encoder=encode_xml, of_keys=True)
