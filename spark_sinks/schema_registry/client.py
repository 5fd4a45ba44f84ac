"""The client of a registry with Confluent's API, over confluent_kafka's own; its errors in PostgreSQL's terms."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

import httpx2
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from mvserver import sqlstates
from mvserver.errors import SqlError
from spark_sinks.schema_registry import limits
from spark_sinks.schema_registry.base import AVRO, RegisteredSchema
from spark_sinks.schema_registry.options import RegistryOptions

Answer = TypeVar("Answer")

logging.getLogger("httpx2").setLevel(logging.WARNING)  # it tells of each request

_NOT_FOUND = 404
_REFUSED = (401, 403)
_INCOMPATIBLE = 409
_UNPROCESSABLE = 422


class ConfluentClient:
    """``name`` is the registry's, for messages. Safe for several threads, as the client below it is."""

    def __init__(self, name: str, options: RegistryOptions) -> None:
        self._name = name
        try:
            self._client = SchemaRegistryClient(options.settings())
        except (OSError, ssl.SSLError, ValueError) as error:
            raise SqlError(
                sqlstates.CONFIG_FILE_ERROR,
                f'the certificates of schema registry "{name}" cannot be used',
                detail=f"{error}.",
            ) from error

    def check(self) -> None:
        self._asked(lambda: self._client.get_subjects())

    def schema(self, id_: int) -> RegisteredSchema | None:
        found = self._asked(lambda: self._client.get_schema(id_))
        return None if found is None else self._with_references(id_, found)

    def latest(self, subject: str) -> RegisteredSchema | None:
        found = self._asked(lambda: self._client.get_latest_version(subject))
        if found is None or found.schema_id is None:
            return None
        return self._with_references(found.schema_id, found.schema)

    def is_compatible(self, subject: str, kind: str, text: str) -> bool:
        try:
            answer = self._asked(lambda: self._client.test_compatibility(subject, Schema(text, kind)))
        except _RefusedError:
            return False
        return answer is not False

    def register(self, subject: str, kind: str, text: str) -> int:
        try:
            known = self._asked(lambda: self._client.register_schema(subject, Schema(text, kind)))
        except _RefusedError as error:
            raise SqlError(
                sqlstates.INVALID_PARAMETER_VALUE,
                f'schema registry "{self._name}" does not take the schema for subject "{subject}"',
                detail=str(error),
                hint="Change the columns, or the compatibility of the subject.",
            ) from error
        if known is None:
            raise self._failed("It has no place for schemas at this address")
        return int(known)

    def close(self) -> None:
        self._client.close()

    def _with_references(self, id_: int, schema: Schema) -> RegisteredSchema:
        """The schemas that it refers to come first, as whoever reads them needs it."""
        texts: dict[str, str] = {}
        self._collect(schema, texts)
        text = schema.schema_str or ""
        if len(text) + sum(map(len, texts.values())) > limits.SCHEMA_BYTES_MAX:
            raise SqlError(
                sqlstates.PROGRAM_LIMIT_EXCEEDED,
                f'schema {id_} of schema registry "{self._name}" is too large',
                detail=f"With all that it refers to it may have {limits.SCHEMA_BYTES_MAX} characters.",
            )
        return RegisteredSchema(id_, schema.schema_type or AVRO, text, tuple(texts.items()))

    def _collect(self, schema: Schema, texts: dict[str, str]) -> None:
        for reference in schema.references or ():
            name = reference.name or ""
            if name in texts:
                continue
            if len(texts) >= limits.REFERENCES_MAX:
                raise SqlError(
                    sqlstates.PROGRAM_LIMIT_EXCEEDED,
                    f"a schema may refer to {limits.REFERENCES_MAX} others",
                )
            subject, version = reference.subject, reference.version
            found = self._asked(lambda s=subject, v=version: self._client.get_version(s, v))  # type: ignore[misc]
            if found is None:
                raise self._failed(f'It has no version {version} of subject "{subject}", to which a schema refers')
            texts[name] = ""  # a circle ends here
            self._collect(found.schema, texts)
            del texts[name]
            texts[name] = found.schema.schema_str or ""

    def _asked(self, request: Callable[[], Answer]) -> Answer | None:
        """None where the registry says that there is no such thing."""
        try:
            return request()
        except SchemaRegistryError as error:
            status = int(error.http_status_code)
            if status == _NOT_FOUND and int(error.error_code or 0) > 0:
                return None
            if status in _REFUSED:
                raise SqlError(
                    sqlstates.INVALID_AUTHORIZATION_SPECIFICATION,
                    f'schema registry "{self._name}" refuses the server',
                    detail=f"{_told(error)}.",
                    hint="Check the user name and the password of the registry.",
                ) from error
            if status in (_INCOMPATIBLE, _UNPROCESSABLE):
                raise _RefusedError(f"{_told(error)}.") from error
            raise self._failed(f"It answered with status {status}: {_told(error)}") from error
        except (httpx2.HTTPError, RuntimeError) as error:  # RuntimeError: the client was closed for a changed one
            raise self._failed(str(error) or type(error).__name__) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:  # what is not an answer of a registry
            raise self._failed("What answers at its address is no schema registry") from error

    def _failed(self, detail: str) -> SqlError:
        return SqlError(
            sqlstates.CONNECTION_FAILURE,
            f'schema registry "{self._name}" does not answer',
            detail=f"{detail.rstrip('.')}.",
        )


class _RefusedError(Exception):
    """The registry judged a schema, and does not take it."""


def _told(error: Any) -> str:
    return " ".join(str(error.error_message or "without a message").split())[:500].rstrip(".")
