"""Digests, encodings and other representations of bytes and numbers."""

from __future__ import annotations

from collections.abc import Sequence

from mvserver import sqlstates
from mvserver.compiler.capabilities.build import BIGINT, BINARY, TEXT, TEXT_CONSTANT, capability, example, fails, on
from mvserver.compiler.capabilities.model import Capability, Lowered
from mvserver.errors import SqlError
from mvserver.sql import types as t
from mvserver.sql.types import SqlType


def _format(argument: Lowered) -> str:
    name = str(argument.constant()).lower()
    if name not in ("hex", "base64"):
        raise SqlError(
            sqlstates.INVALID_PARAMETER_VALUE,
            f'unrecognized encoding: "{argument.constant()}"',
            hint="The encodings are hex and base64.",
        )
    return name


def _base64(binary: str) -> str:
    """In one line, whether or not Spark is set to break it."""
    return f"translate(base64({binary}), '\\r\\n', '')"


def _encode(a: Sequence[Lowered], result: SqlType) -> str:
    if _format(a[1]) == "hex":
        return f"lower(hex({a[0]}))"
    return f"regexp_replace({_base64(str(a[0]))}, '(.{{76}})', '$1\\n')"  # PostgreSQL breaks lines at 76


def _decode(a: Sequence[Lowered], result: SqlType) -> str:
    return f"unhex({a[0]})" if _format(a[1]) == "hex" else f"unbase64({a[0]})"


def _digest(bits: int) -> Capability:
    name = f"sha{bits}"
    empty = {
        224: "d14a028c2a3a2bc9476102bb288234c415a2b01f828ea62ac5b3e42f",
        256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        384: "38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b",
        512: "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f"
        "63b931bd47417a81a538327af927da3e",
    }[bits]
    return capability(
        name, f"the SHA-{bits} digest: of binary as binary, of text as hexadecimal digits",
        [
            on((BINARY,), t.VARBINARY, f"unhex(sha2({{0}}, {bits}))"),
            on((TEXT,), t.VARCHAR, f"sha2(CAST({{0}} AS BINARY), {bits})"),
        ],
        [
            example(f"encode({name}(CAST('' AS bytea)), 'hex')", empty),
            example(f"{name}(CAST('' AS varchar))", empty, postgres=False),
        ],
    )  # fmt: skip


CAPABILITIES: tuple[Capability, ...] = (
    capability(
        "md5", "the MD5 digest in hexadecimal digits",
        [on((TEXT,), t.VARCHAR, "md5(CAST({0} AS BINARY))"), on((BINARY,), t.VARCHAR, "md5({0})")],
        [
            example("md5('abc')", "900150983cd24fb0d6963f7d28e17f72"), example("md5('')",
            "d41d8cd98f00b204e9800998ecf8427e"),
        ],
    ),
    capability(
        "sha1", "the SHA-1 digest in hexadecimal digits",
        [on((TEXT,), t.VARCHAR, "sha1(CAST({0} AS BINARY))"), on((BINARY,), t.VARCHAR, "sha1({0})")],
        [
            example("sha1('abc')", "a9993e364706816aba3e25717850c26c9cd0d89d", postgres=False),
            example("sha1('')", "da39a3ee5e6b4b0d3255bfef95601890afd80709", postgres=False),
        ],
    ),
    *(_digest(bits) for bits in (224, 256, 384, 512)),
    capability(
        "encode", "bytes as text, in hex or base64", [on((BINARY, TEXT_CONSTANT), t.VARCHAR, _encode)],
        [
            example("encode(CAST('abc' AS bytea), 'hex')", "616263"), example("encode(CAST('abc' AS bytea), 'base64')",
            "YWJj"),
            example("length(encode(CAST(repeat('x', 60) AS bytea), 'base64'))", "81"),
            fails("encode(CAST('abc' AS bytea), 'nonsense')", "22023"),
        ],
        note="the encoding must be a constant; escape is not supported",
    ),
    capability(
        "decode", "text in hex or base64 as bytes", [on((TEXT, TEXT_CONSTANT), t.VARBINARY, _decode)],
        [example("decode('616263', 'hex')", "\\x616263"), example("decode('YWJj', 'base64')", "\\x616263")],
        note="the encoding must be a constant; escape is not supported",
    ),
    capability(
        "to_base64", "text in base64", [on((TEXT,), t.VARCHAR, _base64("CAST({0} AS BINARY)"))],
        [example("to_base64('hello')", "aGVsbG8=", postgres=False), example("to_base64('')", "", postgres=False)],
    ),
    capability(
        "from_base64", "the text that base64 stands for", [on((TEXT,), t.VARCHAR, "CAST(unbase64({0}) AS STRING)")],
        [example("from_base64('aGVsbG8=')", "hello", postgres=False), example("from_base64('')", "", postgres=False)],
    ),
    capability(
        "hex", "a number, or text's bytes, in upper-case hexadecimal digits",
        [on((BIGINT,), t.VARCHAR, "hex({0})"), on((TEXT,), t.VARCHAR, "hex(CAST({0} AS BINARY))")],
        [example("hex(255)", "FF", postgres=False), example("hex('hello')", "68656C6C6F", postgres=False)],
    ),
    capability(
        "bin", "a number in binary digits", [on((BIGINT,), t.VARCHAR, "bin({0})")],
        [example("bin(4)", "100", postgres=False), example("bin(0)", "0", postgres=False)],
    ),
)  # fmt: skip
