"""Parameters of a JSON body as Python's values: each goes through the text form that the wire reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from mvserver.types import arrays, oids
from mvserver.types.column import TEXT_FORMAT
from mvserver.types.parameter import never_stopped
from mvserver.types.registry import decode_parameter

_JSON = frozenset({oids.JSON, oids.JSONB})
_BARE = re.compile(r"[^\s{}\",\\]+")


class Number(str):
    """A number of a JSON text, with the digits that it was written with."""

    __slots__ = ()


def read_all(
    given: Sequence[Any], types: Sequence[int], zone: str, check: Callable[[], None] = never_stopped
) -> list[Any]:
    """``given`` are values of a JSON text whose numbers are ``Number``. 08P01 where there are not as many as types."""
    if len(given) != len(types):
        raise SqlError(
            sqlstates.PROTOCOL_VIOLATION,
            f"the request has {len(given)} parameters, but the statement requires {len(types)}",
        )
    values = []
    for number, (value, oid) in enumerate(zip(given, types, strict=True), 1):
        check()
        values.append(_read(number, value, oid, zone, check))
    return values


def _read(number: int, value: Any, oid: int, zone: str, check: Callable[[], None]) -> Any:
    """An error says which parameter it is, but not its value, which may be a secret."""
    try:
        raw = None if value is None else written(value, oid).encode()
        return decode_parameter(number, raw, TEXT_FORMAT, oid, zone, check)
    except UnicodeEncodeError:
        raise SqlError(
            sqlstates.CHARACTER_NOT_IN_REPERTOIRE, f"parameter ${number} has half of a surrogate pair"
        ) from None
    except SqlError as error:
        error.context = f"parameter ${number}"
        raise


def written(value: Any, oid: int) -> str:
    """A JSON value that is not null, in PostgreSQL's text form for the type."""
    if oid in _JSON:
        return json_text(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and arrays.element_oid(oid) is not None:
        return _array(value, arrays.element_oid(oid) or oids.TEXT)
    return json_text(value)


def _array(items: Sequence[Any], inner: int) -> str:
    return "{" + ",".join(_item(item, inner) for item in items) + "}"


def _item(item: Any, inner: int) -> str:
    if item is None:
        return "NULL"
    if isinstance(item, list) and inner not in _JSON:
        return _array(item, inner)
    text = written(item, inner)
    if _BARE.fullmatch(text) and text.upper() != "NULL":
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def json_text(value: Any) -> str:
    """The JSON text of a value whose numbers are as they were written."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        items = (f"{json.dumps(key, ensure_ascii=False)}:{json_text(item)}" for key, item in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
