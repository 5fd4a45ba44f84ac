"""The encoders of backend messages. Rows are not here: they are framed in bulk (types.rows)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

from mvserver.errors import SqlError
from mvserver.front import Field, Notice

_HEAD = struct.Struct("!ci")
_INT32 = struct.Struct("!i")
_UINT32 = struct.Struct("!I")
_INT16 = struct.Struct("!h")
_UINT16 = struct.Struct("!H")
_FIELD = struct.Struct("!IhIhih")

ENCRYPTION_REFUSED = b"N"
TLS_ACCEPTED = b"S"


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return _HEAD.pack(kind, len(body) + 4) + body


def _string(text: str) -> bytes:
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


AUTHENTICATION_OK = _message(b"R", _INT32.pack(0))
PARSE_COMPLETE = _message(b"1")
BIND_COMPLETE = _message(b"2")
CLOSE_COMPLETE = _message(b"3")
NO_DATA = _message(b"n")
EMPTY_QUERY = _message(b"I")
PORTAL_SUSPENDED = _message(b"s")
COPY_DONE = _message(b"c")


def authentication_md5(salt: bytes) -> bytes:
    return _message(b"R", _INT32.pack(5) + salt)


def authentication_sasl(mechanisms: Sequence[str]) -> bytes:
    return _message(b"R", _INT32.pack(10) + b"".join(map(_string, mechanisms)) + b"\0")


def authentication_sasl_continue(data: bytes) -> bytes:
    return _message(b"R", _INT32.pack(11) + data)


def authentication_sasl_final(data: bytes) -> bytes:
    return _message(b"R", _INT32.pack(12) + data)


def negotiate_protocol(newest: int, unknown_options: Sequence[str]) -> bytes:
    body = _INT32.pack(newest) + _INT32.pack(len(unknown_options))
    return _message(b"v", body + b"".join(_string(option) for option in unknown_options))


def parameter_status(name: str, value: str) -> bytes:
    return _message(b"S", _string(name) + _string(value))


def backend_key(process: int, key: bytes) -> bytes:
    return _message(b"K", _UINT32.pack(process) + key)


def ready_for_query(status: str) -> bytes:
    return _message(b"Z", status.encode("ascii"))


def command_complete(tag: str) -> bytes:
    return _message(b"C", _string(tag))


def parameter_description(oids: Sequence[int]) -> bytes:
    return _message(b"t", _UINT16.pack(len(oids)) + b"".join(map(_UINT32.pack, oids)))


@lru_cache(maxsize=512)  # most statements run again
def row_description(fields: tuple[Field, ...], formats: tuple[int, ...]) -> bytes:
    parts = [_UINT16.pack(len(fields))]
    for field, form in zip(fields, formats, strict=True):
        parts.append(_string(field.name))
        parts.append(
            _FIELD.pack(field.table_oid, field.column_number, field.type_oid, field.type_size, field.typmod, form)
        )
    return _message(b"T", b"".join(parts))


def copy_out(columns: int, form: int) -> bytes:
    """CopyOutResponse: all columns have the format of the whole."""
    return _message(b"H", struct.pack(f"!bH{columns}h", form, columns, *([form] * columns)))


def copy_in(columns: int, form: int) -> bytes:
    """CopyInResponse."""
    return _message(b"G", struct.pack(f"!bH{columns}h", form, columns, *([form] * columns)))


def error_response(error: SqlError) -> bytes:
    return _report(
        b"E", error.severity, error.sqlstate, error.message, error.detail, error.hint, error.position, error.context
    )


def notice_response(notice: Notice) -> bytes:
    return _report(b"N", notice.severity, notice.sqlstate, notice.message, notice.detail, notice.hint, None)


def _report(
    kind: bytes,
    severity: str,
    sqlstate: str,
    message: str,
    detail: str | None,
    hint: str | None,
    position: int | None,
    context: str | None = None,
) -> bytes:
    fields = [("S", severity), ("V", severity), ("C", sqlstate), ("M", message)]
    if detail:
        fields.append(("D", detail))
    if hint:
        fields.append(("H", hint))
    if position is not None and position > 0:
        fields.append(("P", str(position)))
    if context:
        fields.append(("W", context))
    return _message(kind, b"".join(code.encode("ascii") + _string(value) for code, value in fields) + b"\0")
