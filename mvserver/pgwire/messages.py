"""The frontend messages, each as a frozen value read from a frame's body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mvserver import sqlstates
from mvserver.errors import fatal
from mvserver.pgwire.codec import BodyReader, violation

PROTOCOL_MAJOR = 3
PROTOCOL_NEWEST = 3 << 16  # 3.0: what is negotiated down to
_SSL_REQUEST = (1234 << 16) | 5679
_GSSENC_REQUEST = (1234 << 16) | 5680
_CANCEL_REQUEST = (1234 << 16) | 5678

_CANCEL_KEY_BYTES_MAX = 256  # protocol 3.2


@dataclass(frozen=True)
class EncryptionRequest:
    kind: str  # "SSL" or "GSS"


@dataclass(frozen=True)
class CancelRequest:
    process: int
    key: bytes


@dataclass(frozen=True)
class StartupMessage:
    major: int
    minor: int
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class SaslInitial:
    mechanism: str
    response: bytes | None


@dataclass(frozen=True)
class Query:
    text: str


@dataclass(frozen=True)
class Parse:
    name: str
    text: str
    parameter_oids: tuple[int, ...]


@dataclass(frozen=True)
class Bind:
    portal: str
    statement: str
    parameter_formats: tuple[int, ...]
    parameters: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True)
class Describe:
    of: str  # "S" or "P"
    name: str


@dataclass(frozen=True)
class Execute:
    portal: str
    max_rows: int  # 0: all


@dataclass(frozen=True)
class Close:
    of: str
    name: str


def read_startup(body: bytes) -> EncryptionRequest | CancelRequest | StartupMessage:
    """A start-up packet; 08P01 FATAL where it is malformed."""
    reader = BodyReader(body)
    code = reader.uint32()
    if code == _SSL_REQUEST:
        return EncryptionRequest("SSL")
    if code == _GSSENC_REQUEST:
        return EncryptionRequest("GSS")
    if code == _CANCEL_REQUEST:
        return _cancel(reader)
    major, minor = code >> 16, code & 0xFFFF
    if major != PROTOCOL_MAJOR:
        raise fatal(
            sqlstates.FEATURE_NOT_SUPPORTED,
            f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0",
        )
    return StartupMessage(major, minor, _startup_parameters(body[4:]))


def _cancel(reader: BodyReader) -> CancelRequest:
    try:
        process = reader.uint32()
    except Exception as error:
        raise fatal(sqlstates.PROTOCOL_VIOLATION, "invalid length of cancel request packet") from error
    key = reader.rest()
    if not 4 <= len(key) <= _CANCEL_KEY_BYTES_MAX:
        raise fatal(sqlstates.PROTOCOL_VIOLATION, "invalid length of cancel request packet")
    return CancelRequest(process, key)


def _startup_parameters(raw: bytes) -> dict[str, str]:
    layout = fatal(sqlstates.PROTOCOL_VIOLATION, "invalid startup packet layout: expected terminator as last byte")
    if not raw.endswith(b"\0"):
        raise layout
    parts = raw.split(b"\0")
    # name, value, name, value, "" and what follows the last zero byte
    if len(parts) % 2 or parts[-1] or parts[-2]:
        raise layout
    parameters: dict[str, str] = {}
    for at in range(0, len(parts) - 2, 2):
        if not parts[at]:
            raise layout
        try:
            parameters[parts[at].decode("utf-8")] = parts[at + 1].decode("utf-8")
        except UnicodeDecodeError as error:
            raise fatal(
                sqlstates.CHARACTER_NOT_IN_REPERTOIRE, 'invalid byte sequence for encoding "UTF8" in startup packet'
            ) from error
    return parameters


def read_password(body: bytes) -> bytes:
    """As a client answers a request for an MD5 hash."""
    if not body.endswith(b"\0") or b"\0" in body[:-1]:
        raise fatal(sqlstates.PROTOCOL_VIOLATION, "invalid password packet size")
    return body[:-1]


def read_sasl_initial(body: bytes) -> SaslInitial:
    reader = BodyReader(body)
    message = SaslInitial(reader.text(), reader.value())
    reader.end()
    return message


def read_query(body: bytes) -> Query:
    reader = BodyReader(body)
    message = Query(reader.text())
    reader.end()
    return message


def read_parse(body: bytes) -> Parse:
    reader = BodyReader(body)
    name, text = reader.text(), reader.text()
    oids = tuple(reader.uint32() for _ in range(reader.uint16()))
    reader.end()
    return Parse(name, text, oids)


def read_bind(body: bytes) -> Bind:
    reader = BodyReader(body)
    portal, statement = reader.text(), reader.text()
    parameter_formats = tuple(reader.int16() for _ in range(reader.uint16()))
    parameters = tuple(reader.value() for _ in range(reader.uint16()))
    result_formats = tuple(reader.int16() for _ in range(reader.uint16()))
    reader.end()
    return Bind(portal, statement, parameter_formats, parameters, result_formats)


def read_describe(body: bytes) -> Describe:
    return Describe(*_target(body, "DESCRIBE"))


def read_close(body: bytes) -> Close:
    return Close(*_target(body, "CLOSE"))


def _target(body: bytes, message: str) -> tuple[str, str]:
    reader = BodyReader(body)
    kind = reader.byte()
    name = reader.text()
    reader.end()
    if kind not in b"SP":
        raise violation(f"invalid {message} message subtype {kind}")
    return chr(kind), name


def read_execute(body: bytes) -> Execute:
    reader = BodyReader(body)
    message = Execute(reader.text(), reader.int32())
    reader.end()
    return message


def read_copy_fail(body: bytes) -> str:
    reader = BodyReader(body)
    reason = reader.text()
    reader.end()
    return reason


def read_nothing(body: bytes) -> None:
    BodyReader(body).end()


# every type byte a client may send once it is logged in; anything else ends the connection
QUERY, PARSE, BIND, DESCRIBE, EXECUTE, CLOSE, FLUSH, SYNC = b"QPBDECHS"
PASSWORD = b"p"[0]  # and every other answer to a request for authentication
TERMINATE, FUNCTION_CALL, COPY_DATA, COPY_DONE, COPY_FAIL = b"XFdcf"
FRONTEND_TYPES = frozenset(b"QPBDECHSXFdcf")
