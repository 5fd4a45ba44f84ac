"""Schemas of Protobuf as descriptors: what a registry has is the text of a .proto file, or a descriptor in base64.

The text is compiled by protoc, which the package grpcio-tools brings, in a process of its own: what it is given comes
from outside.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.schema_registry import limits
from spark_sinks.schema_registry.base import PROTOBUF, RegisteredSchema

_MAIN = "mvserver_schema.proto"
_WELL_KNOWN = (
    "any",
    "api",
    "duration",
    "empty",
    "field_mask",
    "source_context",
    "struct",
    "timestamp",
    "type",
    "wrappers",
)


def require_compiler() -> None:
    """0A000 where the extra is not installed."""
    if importlib.util.find_spec("grpc_tools") is None:
        raise SqlError(
            sqlstates.FEATURE_NOT_SUPPORTED,
            "the format protobuf needs the package grpcio-tools",
            hint="Install the server with its extra: mvserver[protobuf].",
        )


def prepared(schema: RegisteredSchema) -> RegisteredSchema:
    """With its descriptors, in base64, as the text, as a decoder takes them; unchanged where it is of another kind."""
    if schema.kind != PROTOBUF:
        return schema
    try:
        descriptors = descriptor_set(schema)
    except UnusableError as error:
        return replace(schema, text="", references=(), error=str(error))
    text = base64.b64encode(descriptors.SerializeToString()).decode()
    return replace(schema, text=text, references=())


class UnusableError(Exception):
    """Protoc does not take the schema; the message has its words."""


def descriptor_set(schema: RegisteredSchema) -> Any:
    """A FileDescriptorSet: all that the schema imports, then itself."""
    from google.protobuf import descriptor_pb2

    found = _decoded(schema.text)
    if found is None:
        return descriptor_pb2.FileDescriptorSet.FromString(_compiled(schema))
    known = {file.name: file for file in well_known_files()}
    for name, text in schema.references:
        inner = _decoded(text)
        if inner is None:
            raise UnusableError(f"the schema {name} that it refers to is no descriptor")
        inner.name = name
        known[name] = inner
    return set_for(found, known)


def set_for(file: Any, known: dict[str, Any]) -> Any:
    """A FileDescriptorSet: all that the file imports, by their names in ``known``, then itself."""
    from google.protobuf import descriptor_pb2

    whole = descriptor_pb2.FileDescriptorSet()
    _add(file, known, whole, set())
    return whole


def _add(file: Any, known: dict[str, Any], whole: Any, seen: set[str]) -> None:
    if file.name in seen:
        return
    seen.add(file.name)
    for name in file.dependency:
        if name not in known:
            raise UnusableError(f"it imports {name}, which is not there")
        _add(known[name], known, whole, seen)
    whole.file.append(file)


def _decoded(text: str) -> Any | None:
    """A FileDescriptorProto in base64; None for the text of a .proto file."""
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    try:
        return descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None


def well_known_files() -> Iterable[Any]:
    from google.protobuf import descriptor_pb2

    for name in _WELL_KNOWN:
        module = importlib.import_module(f"google.protobuf.{name}_pb2")
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        yield file


def _compiled(schema: RegisteredSchema) -> bytes:
    import grpc_tools

    with tempfile.TemporaryDirectory(prefix="mvserver-proto-") as folder:
        root = Path(folder) / "files"
        for name, text in ((_MAIN, schema.text), *schema.references):
            path = (root / name).resolve()
            if not path.is_relative_to(root.resolve()):
                raise UnusableError(f"it refers to a file outside of its folder: {name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        out = Path(folder) / "descriptors"
        own = Path(grpc_tools.__file__).parent / "_proto"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{root}", f"-I{own}",
                   "--include_imports", f"--descriptor_set_out={out}", _MAIN]  # fmt: skip
        try:
            told = subprocess.run(
                command, capture_output=True, text=True, timeout=limits.COMPILE_TIMEOUT_S, check=False, cwd=folder
            )
        except subprocess.TimeoutExpired as error:
            raise UnusableError("it is not compiled in time") from error
        if told.returncode != 0 or not out.is_file():
            lines = [line for line in told.stderr.splitlines() if line.strip()]
            told_of = [line for line in lines if f"{_MAIN}:" in line] or [*lines, "protoc does not take it"]
            raise UnusableError(told_of[0].rpartition(f"{_MAIN}:")[2])
        return out.read_bytes()
